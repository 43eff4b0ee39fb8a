"""Every bound, once: value, unit in the name, and what accident or attack it stops.

Nothing else in Surehand writes a limit as a number. Tests try each at the limit and one past it.
"""

from __future__ import annotations

from typing import Final

# --- identifiers and requests (spec §3.1) ---------------------------------------------------------------------
IDENTIFIER_CHARS_MAX: Final = 256  # an id is a name, not a payload
DEADLINE_MS_DEFAULT: Final = 30_000
DEADLINE_MS_MAX: Final = 600_000  # ten minutes: no operation may hold a session for ever
SALT_BYTES: Final = 16  # 128 bits: hashes of short texts cannot be guessed back
REQUEST_BYTES_MAX: Final = 2 * 1024 * 1024  # above the largest legal action, below a memory attack
JSON_DEPTH_MAX: Final = 32  # deeper input is an attack on recursive readers
JSON_NODES_MAX: Final = 20_000  # wide input of tiny values
INTEGER_MAX: Final = 2**53 - 1  # beyond it JSON readers disagree
BATCH_STEPS_MAX: Final = 64

# --- actions (spec §3.2) --------------------------------------------------------------------------------------
TEXT_BYTES_MAX: Final = 64 * 1024
VALUE_BYTES_MAX: Final = 1024 * 1024
CHORDS_MAX: Final = 32
CHORD_KEYS_MAX: Final = 8
CLICK_COUNT_MAX: Final = 3
SCROLL_AMOUNT_MILLI_MAX: Final = 100_000  # a hundred pages
DRAG_PATH_POINTS_MAX: Final = 256
HOLD_MS_MAX: Final = 60_000  # a held button is released after a minute whatever happens
NAME_CHARS_MAX: Final = 1024  # action names, option labels, titles in requests
PATHS_MAX: Final = 32
COORDINATE_MAX: Final = 65_535  # X11 coordinates are 16 bit

# --- scenes (spec §2, §8) -------------------------------------------------------------------------------------
SCENE_ACT_MS_MAX: Final = 30_000  # a scene older than this may not be acted upon
SCENE_NODES_MAX: Final = 100_000  # an application that never ends its tree costs this many nodes
SCENE_DEPTH_MAX: Final = 64
FIELD_BYTES_STORED_MAX: Final = 4096  # a name longer than this is cut and marked when it is read
CHILDREN_READ_MAX: Final = 5_000  # one virtual list of a million rows must not stall the read
POINT_REGION_PX: Final = 64
POINT_LEVELS_TOLERATED: Final = 24  # of 255: what compositing and sub-pixel text may change
POINT_PIXELS_TOLERATED_MILLI: Final = 100  # a caret, a hover; a tenth of the region is another thing
PICTURE_EDGE_DEFAULT: Final = 1_568  # models shrink what is longer
PICTURE_EDGE_MIN: Final = 16  # nothing can be told on less
PICTURE_BYTES_DEFAULT: Final = 3 * 1024 * 1024  # in base64 still under what model APIs take
PICTURE_BYTES_MIN: Final = 1_024
PICTURE_BYTES_MAX: Final = 8 * 1024 * 1024
PICTURE_PIXELS_MAX: Final = 128 * 1024 * 1024  # of what the daemon sent; a larger desktop does not exist
MARKS_MAX: Final = 200  # elements marked in one picture; more hide what they mark
PICTURE_TRIES_MAX: Final = 3  # a picture in which secret fields moved is taken again; what moves on and on is refused
PICTURE_REST_MS: Final = 100  # what accessibility tells is painted within a few frames; a secret is photographed after
PICTURE_REST_MS_CAP: Final = 400  # a window that never rests is photographed all the same, before and after compared
CROP_MS_MAX: Final = 2_000  # nobody is asked later than this for want of a picture
CROP_MARGIN_PX: Final = 80  # of what stands around what is acted on: a line or two, and the names beside it
CROP_EDGE_MAX: Final = 800  # a person is shown it beside the words
CROP_BYTES_MAX: Final = 256 * 1024  # of one picture beside a question
CROPS_BYTES_KEPT_MAX: Final = 64 * 1024 * 1024  # of all of them; questions past it are asked without one
SECRET_MARGIN_PX: Final = 4  # painted around a secret: at scale 4 a window on an odd pixel is told up to 3 beside it
SECRET_MARGIN_GTK4_PX: Final = 20  # its places leave out an entry's padding: 9 and a border, at scale 2
SECRET_FIELDS_MAX: Final = 4_096  # remembered of one process; past it each of its fields counts as secret
SECRET_APPS_MAX: Final = 1_024  # processes whose secret fields are remembered; a desktop runs fewer
OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024  # of one operation, as JSON; more is withheld, for it happened
CAPTURES_KEPT_MAX: Final = 32  # pictures of one session in which places can still be named
CAPTURES_BYTES_KEPT_MAX: Final = 16 * 1024 * 1024  # an agent that only takes pictures costs this much memory
CONTEXT_PARTS_MAX: Final = 8  # the nearest labels around a target; farther ones identify nothing more
CONTEXT_SCAN_NODES_MAX: Final = 256  # nodes looked at to find one row's label
CONTEXT_CARD_NODES_MAX: Final = 24  # elements inside one card; a larger box is layout, not a thing
CONTEXT_ROW_TEXTS_MAX: Final = 6  # texts of a row that may tell it from a row with the same first text
SCENES_KEPT_MAX: Final = 96  # of one session, that may still be named within their 30 s
SCENES_WHOLE_MAX: Final = 8  # of these with all that was worked out from them, which is most of their memory
GLANCES_KEPT_MAX: Final = 64  # looks of the host's own that no scene was made of yet
READ_DECISIONS_MAX: Final = 1_000  # answers about reading that one session keeps; titles change without end
REFUSALS_COALESCED_MAX: Final = 4_096  # kinds of refusals that are told apart within a second
LABEL_SURFACES_MAX: Final = 256  # windows whose labels one session keeps
CANDIDATES_MAX: Final = 10  # elements named in one error

# --- queries (spec §8.4) --------------------------------------------------------------------------------------
QUERY_FILTERS_MAX: Final = 32
QUERY_RESULTS_MAX: Final = 10_000
QUERY_REGEX_BYTES_MAX: Final = 256
QUERY_TEXT_BYTES_MAX: Final = 16 * 1024
QUERY_DEPTH_MAX: Final = 4  # a query inside a relation of a query; deeper is an attack on recursion
QUERY_REGEX_MEMORY_BYTES: Final = 1024 * 1024  # what one compiled pattern and its automaton may take

# --- text form and diffs (spec §8.5) --------------------------------------------------------------------------
RENDER_NODES_DEFAULT: Final = 600
RENDER_NODES_MAX: Final = 2000
RENDER_OPENED_NODES_MAX: Final = 120  # of a window that an effect opened: a dialog whole, of more the beginning
RENDER_BYTES_MAX: Final = 120 * 1024
RENDER_FIELD_BYTES_MAX: Final = 256
SHOWN_FORMS_MAX: Final = 256  # texts of one session of which is known in which form they were given
RENDER_TOKENS_MIN: Final = 200  # the window's line and the count of what is left out always fit
RENDER_TOKENS_MAX: Final = 100_000  # more than the bytes that fit
#: Of more neighbours out of sight than the first number only the first and last so many are shown; fewer still where
#: what they are in is out of sight itself.
RENDER_UNSEEN: Final = (24, 8, 4)
RENDER_UNSEEN_DEEP: Final = (12, 6, 2)
#: The same of a list in a window in which nothing has a place, so that nobody can tell what is in sight.
RENDER_PLACELESS: Final = (60, 40, 8)

# --- settle and wait (spec §8.6) ------------------------------------------------------------------------------
SETTLE_MIN_MS: Final = 75
SETTLE_QUIET_MS: Final = 150
SETTLE_CAP_MS: Final = 1_000
SETTLE_BUSY_CAP_MS: Final = 5_000
SETTLE_VERIFIED_QUIET_MS: Final = 10  # after an effect that was read back: what else it caused comes at once
SETTLE_VERIFIED_CAP_MS: Final = 250
SETTLE_SEEN_QUIET_MS: Final = 25  # after an effect that was not read back, once something is seen to have changed
CHANGES_LATER_MAX: Final = 32  # windows whose change a caller may ask for after several effects
WAIT_CONDITIONS_MAX: Final = 8
WAIT_URL_BYTES_MAX: Final = 16 * 1024  # the longest address a navigation takes
WAIT_MS_DEFAULT: Final = 5_000
WAIT_MS_MAX: Final = 300_000
LAUNCH_WINDOW_MS_MAX: Final = 10_000  # until the window of a launched program is there
LAUNCH_SAID_CHARS_MAX: Final = 500  # of what a program printed before it ended at once; the last lines say why
LAUNCH_ENDED_MS: Final = 1_500  # a program that ended handed its work to one that runs, which shows a window by then
LAUNCH_HANDED_ON_MS: Final = 1_000  # after which a new window of another process counts as the launched program's

# --- verification (spec §9) -----------------------------------------------------------------------------------
VERIFY_BUDGET_MS_DEFAULT: Final = 2_000
VERIFY_STABLE_MS: Final = 400  # a contradiction must stand this long before it counts as failed
VERIFY_SEEN_CHARS_MAX: Final = 256  # how much of what was read goes into an error
VERIFICATION_DEPTH_MAX: Final = 4  # all[] inside any[] inside all[] is enough
VERIFICATION_PARTS_MAX: Final = 16
GTK4_HANDLER_DELAY_MS: Final = 400  # GTK 4.8 runs a handler 250 ms after DoAction; watched this long (spec §8.3)
QT5_HANDLER_DELAY_MS: Final = 250  # Qt 5 presses a button for 100 ms before its handler runs; watched this long

# --- authority, policy, approval, permits (spec §3.4, §6) -----------------------------------------------------
UNRESOLVED_MAX: Final = 1_024  # unknown outcomes of one principal; whoever leaves more acts blindly
PERMIT_MS: Final = 30_000
APPROVAL_MS_DEFAULT: Final = 600_000
APPROVAL_MS_MAX: Final = 24 * 3_600_000  # a yes that holds longer than a day is a standing grant in disguise
ASSERTED_MS_MAX: Final = 60_000  # how long a yes holds that a client only says; the call that asked uses it at once
ASKING_CLIENTS_MAX: Final = 16  # clients whose word an operator takes; more is no list of exceptions any more
CLIENT_NAME_CHARS_MAX: Final = 64  # of an MCP client whose word counts; each stands in the journal
PRESENTATION_TEXT_CHARS_MAX: Final = 16 * 1024  # what a person is shown of one text; more is cut in the open
APPROVALS_PENDING_MAX: Final = 256  # per principal: an agent cannot bury its operator
ANCESTORS_MAX: Final = 64  # processes above one that are looked at; deeper ones are no terminal
NOTICES_QUEUED_MAX: Final = 256  # what one herald has still to tell; a dead web server must not fill memory
NOTICE_MS_MAX: Final = 5_000  # one try at telling one notice
NOTICE_PAUSES_S: Final = (1.0, 10.0, 60.0)  # between tries; after the last one it is let go of
APPROVALS_OPEN_MAX: Final = 10_000  # of all principals together: what one operator's daemon keeps and looks through
APPROVAL_CHANGE_CHARS_MAX: Final = 1_024  # of one thing that changed, before and after; the whole is shown beside it
APPROVAL_FILE_BYTES_MAX: Final = 2 * 1024 * 1024  # an open question beside the journal, with its answers
APPROVALS_BYTES_MAX: Final = 1024 * 1024  # of all of them together: the operator's list of them fits one frame
APPROVALS_ENDED_KEPT_MAX: Final = 1_024  # ends of questions that can still be asked for by approval id
STANDING_USES_MAX: Final = 10_000
LEVEL_REASONS_MAX: Final = 16  # that keep a daemon from level B; one is enough, and the first few show the pattern
LEVEL_LINKS_MAX: Final = 40  # symbolic links on one path, as the kernel follows them
WEBAUTHN_AUTHENTICATOR_BYTES_MAX: Final = 2_048  # 55 bytes, an id of up to 1023, a key, extensions of no interest here
WEBAUTHN_CLIENT_BYTES_MAX: Final = 2_048  # browsers write about 150; it is hashed and kept in the journal
WEBAUTHN_CREDENTIAL_BYTES_MAX: Final = 1_023  # W3C WebAuthn level 2 §4
WEBAUTHN_SIGNATURE_BYTES_MAX: Final = 128  # ES256 in DER takes at most 72, EdDSA 64
WEBAUTHN_COUNT_MAX: Final = 2**32 - 1  # four bytes of the authenticator's data
CREDENTIALS_MAX: Final = 64  # in force in one daemon; each is looked at with every answer
CREDENTIAL_LABEL_BYTES_MAX: Final = 128  # a person's word for a device
CONSOLE_ASKED_MAX: Final = 64  # answers that authenticators are signing now; each is a person's
INVITATION_CODE_BYTES_MAX: Final = 64  # ten letters and what people type between them
INVITATION_MS_MAX: Final = 600_000  # from the terminal to the page; a code that lies about is not good for ever
INVITATIONS_OPEN_MAX: Final = 8  # the oldest gives way
INVITATION_TRIES_MAX: Final = 5  # wrong codes until every open invitation is void; a code has 50 bits
POLICY_MS_MAX: Final = 5_000
POLICY_RULES_MAX: Final = 1_000
POLICY_BYTES_MAX: Final = 1024 * 1024  # a rule file is written by a person
POLICY_PATTERNS_MAX: Final = 256  # patterns in one condition
POLICY_OBSERVED_CHARS_MAX: Final = 1024  # of each observed text that a rule is compared with
KEY_BYTES_MIN: Final = 32  # a key shorter than its hash is the weak part
KEYS_BEGUN_MAX: Final = 16  # keys and domains whose hash is kept begun; a daemon has four
LABELS_READ_MAX: Final = 4_096  # labels of controls whose meaning is remembered; a busy window has a few hundred
LABEL_CHARS_REMEMBERED_MAX: Final = 512  # longer texts are read anew, so that what is remembered stays small
LABEL_CHARS_READ_MAX: Final = 16_384  # nobody reads a longer label; reading it would hold up everything else
ADDRESS_CHARS_READ_MAX: Final = 4_096  # of an address that is read for what it does; browsers cut not far above
FORM_FIELDS_MAX: Final = 32  # entry fields of a form whose names its button is judged by
FORM_NODES_MAX: Final = 512  # elements of a form that are looked through for them
APPS_CLASSIFIED_MAX: Final = 256  # applications, each under one title, whose kind is remembered
POLICY_ANSWERS_KEPT_MAX: Final = 1_024  # verdicts kept with their policy; an agent at work asks a few dozen questions
OBLIGATIONS_HASHED_MAX: Final = 64  # different obligations whose hash is remembered; a policy has a few
POLICY_QUESTION_BYTES_MAX: Final = 256 * 1024  # what an engine is asked; texts in it are digests and cut observations
POLICY_ANSWER_BYTES_MAX: Final = 64 * 1024  # what it may answer; a reason and a few names
POLICY_ENGINE_MS_DEFAULT: Final = 1_000  # an engine that takes longer answers nothing; every effect waits for it
POLICY_LOOK_MS: Final = 1_000  # between two looks at the policy's files; an edit holds within this
POLICY_LIVE_READ_MS: Final = 5_000  # a server's answer about reads is kept this long: it may change unseen
POLICY_FILES_MAX: Final = 64  # modules in a folder
SHADOW_PENDING_MAX: Final = 64  # decisions waiting to be tried; beyond it they are counted and left out
SHADOW_KINDS_MAX: Final = 1_000  # differences told apart; a tried policy that differs in more is simply different
SHADOW_NOTE_MS: Final = 5_000  # differences of one kind within this are one record
POLICY_STARS_MAX: Final = 8  # each * multiplies the cost of one comparison
APPROVALS_NEEDED_MAX: Final = 16
REVIEW_MS_MAX: Final = 5_000  # one assessment of an evaluator; then a person is asked
REVIEW_ANSWER_BYTES_MAX: Final = 16 * 1024  # of one assessment: two words and a reason; more is none
REVIEW_END_MS: Final = 1_000  # until an evaluator that was ended is gone; then nobody waits for what it left
REVIEWS_AT_ONCE: Final = 4  # evaluators that run side by side; others wait, within their own time
EVALUATOR_WORDS_MAX: Final = 32  # the program and its arguments
STOP_KEY_MS_MAX: Final = 600  # between two presses of a stop key; slower ones are two single presses
STOP_KEY_PRESSES_MAX: Final = 4  # more is a password, not a stop
MARKER_IDLE_MS: Final = 700  # the badge goes this long after the last action: within a second, without flicker
VIEW_MS_MIN: Final = 250  # between two pictures of a desktop for people who watch; each costs looks at all its windows
VIEW_WAIT_MS_MAX: Final = 25_000  # one question for the next picture; nothing new is a normal answer
VIEW_WATCHERS_MAX: Final = 8  # questions that wait for one desktop's next picture
VIEW_EDGE_MAX: Final = 1_600  # the longer edge of a picture for people
VIEW_BYTES_MAX: Final = 768 * 1024  # of one picture; of more it is made smaller
VIEW_OLD_MS: Final = 2_000  # where nobody asks a picture is not kept up; one older than this is taken anew
RECENT_OPERATIONS_MAX: Final = 64  # that ended last, for people who watch; the journal has all
HOLDS_MAX: Final = 64  # pauses and desktops taken at once; past it a stop pauses everything
HALT_MS_MAX: Final = 100  # from a person's stop to everything released (spec §1); measured by the tests
HALT_REPORT_MS_MAX: Final = 2_000  # what was stopped may end in its own way this long before the answer says `running`
HALT_NAMED_MAX: Final = 64  # operations that the record of a stop names; how many there were it says
REASON_CHARS_MAX: Final = 1_000

# --- requests to people (spec §6.4) ---------------------------------------------------------------------------
HUMAN_TEXT_BYTES_MAX: Final = 1_000  # what an agent tells a person, and a person an agent: a paragraph
HUMAN_SESSION_MAX: Final = 4  # open requests of one session
HUMAN_PRINCIPAL_MAX: Final = 16  # of one principal: many sessions do not bury its operator
HUMAN_OPEN_MAX: Final = 64  # of all: the operator's list stays readable
HUMAN_MS_MAX: Final = 600_000  # a request that nobody has taken up by then is unanswered
HUMAN_WAIT_MS_DEFAULT: Final = 45_000  # below the minute after which many clients give a call up
HUMAN_WINDOWS_MAX: Final = 8  # windows whose text comes with a hand-back

# --- the console page (spec §11.5) ----------------------------------------------------------------------------
CONSOLE_LINK_MS_MAX: Final = 120_000  # a link that nobody opened by then is no longer worth stealing
CONSOLE_SESSION_MS_MAX: Final = 12 * 3_600_000  # a working day; then the operator's terminal is asked again
CONSOLE_IDLE_MS_MAX: Final = 3_600_000  # a browser that was left open somewhere asks for nothing
CONSOLE_SESSIONS_MAX: Final = 8  # browsers of one operator; one more ends the oldest
CONSOLE_HEAD_BYTES_MAX: Final = 16 * 1024  # a request's line and headers
CONSOLE_BODY_BYTES_MAX: Final = 64 * 1024  # a form; its longest field is a reason
CONSOLE_FIELDS_MAX: Final = 64  # fields of one form
CONSOLE_CONNECTIONS_MAX: Final = 128  # a browser opens six
CONSOLE_PIDS_MAX: Final = 64  # processes that show the page
CONSOLE_STREAMS_MAX: Final = 16  # streams of events of one browser; its tabs share one
CONSOLE_EVENTS_MAX: Final = 256  # told and not yet taken by one stream; beyond it the page looks again
CONSOLE_PULSE_MS: Final = 15_000  # a silent stream says that it lives this often
CONSOLE_ROWS_MAX: Final = 50  # rows of one page of a list
CONSOLE_TRIES_MAX: Final = 5  # wrong passphrases in a row, before a pause; guessing must not be free
CONSOLE_PAUSE_MS: Final = 30_000
CONSOLE_DAEMON_MS_MAX: Final = 5_000  # a page waits this long for the daemon, then says that it does not answer
CONSOLE_HEAD_MS_MAX: Final = 10_000  # a connection that asks for nothing
CONSOLE_READ_MS_MIN: Final = 400  # a question stood for so long before it is answered: nobody reads faster
CONSOLE_SHOWN_MAX: Final = 1_024  # questions of which is remembered when a browser was shown them
CONSOLE_USES_DEFAULT: Final = 20  # of leave that comes with a yes
CONSOLE_MINUTES_DEFAULT: Final = 30
CONSOLE_MINUTES_MAX: Final = 24 * 60  # a day, as the daemon takes it
CONSOLE_DESKTOPS_MAX: Final = 16  # desktops that one page follows, and pictures kept for one browser
CONSOLE_FOLLOW_MS: Final = 5_000  # one question what is new on the desktops; then the page asks again
CONSOLE_ANSWERED_MAX: Final = 256  # answers of one browser that a form sent twice is told of again

# --- watching (spec §11) --------------------------------------------------------------------------------------
WATCHES_MAX: Final = 4  # watches of one session
WATCH_SURFACES_MAX: Final = 16  # windows of one watch
WATCH_SCENE_MS_MIN: Final = 250  # between two events about one window; what happens in between is one event
DOCTOR_KEPT_MS: Final = 60_000  # findings about the machine are looked for again after this long

# --- journal (spec §7) ----------------------------------------------------------------------------------------
EVENT_BYTES_MAX: Final = 4 * 1024 * 1024
COMMIT_GROUP_MAX: Final = 256  # appends that share one commit
READS_COALESCE_MS: Final = 1_000  # reads of one kind within it are one record: polling must not fill the journal
SIEVE_STREAMS_MAX: Final = 200_000  # above it filling the filter of known ids would delay the daemon's start
COMMIT_QUEUE_MAX: Final = 4_096  # waiting appends; beyond it callers wait, memory does not grow
COMMIT_QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024  # the same, for few large events
COMMIT_GROUP_BYTES_MAX: Final = 16 * 1024 * 1024  # a commit of large events must not hold up all others
APPEND_EVENTS_MAX: Final = 256  # events of one append; a batch of 64 steps with their notes fits
STREAM_CHARS_MAX: Final = 640  # `operation:` with a principal and an operation id of the longest kind
ACTOR_BYTES_MAX: Final = 256
USE_KEYS_MAX: Final = 16  # keys one append may consume
USE_KEY_CHARS_MAX: Final = 320
JOURNAL_READ_EVENTS_MAX: Final = 10_000  # events of one page, whatever the caller asks for
JOURNAL_READ_BYTES_MAX: Final = 32 * 1024 * 1024  # a page ends early here
JOURNAL_INLINE_EVENTS: Final = 64  # a stream's first events are read without a thread hop; it costs under 1 ms
STREAM_VERSIONS_CACHED: Final = 1_024  # above what is in flight; an older stream's end costs one look at its row
JOURNAL_CHECKPOINT_PAGES: Final = 4_000  # 16 MB of write-ahead log between two moves into the file
JOURNAL_WAL_BYTES_KEPT: Final = 64 * 1024 * 1024
JOURNAL_BUSY_MS_MAX: Final = 5_000  # how long another program's lock on the file is waited for
JOURNAL_VERIFY_START_EVENTS: Final = 10_000  # a longer log is verified at its end before the first append
RECOVERY_PASS_MAX: Final = 1_024

# --- looking through it ---------------------------------------------------------------------------------------
OPERATIONS_PAGE_DEFAULT: Final = 50
OPERATIONS_PAGE_MAX: Final = 200  # operations of one page; a person reads fewer
OPERATIONS_TOLD_MS: Final = 250  # between two words that operations ended: a page that shows them loads them again
OPERATIONS_LOOKED_MAX: Final = 2_000  # looked at for one page; then whoever asks says whether to go on
OPERATION_EVENTS_MAX: Final = 1_000  # of one operation that are shown; a refusal repeated for ever has more
SOUGHT_BYTES_MAX: Final = 256  # of one thing that is looked for
TIME_MS_MAX: Final = 253_402_300_799_999  # the last moment of the year 9999, which the journal's times can say
RULES_PAGE_DEFAULT: Final = 100

# --- keys (spec §3.4, §7) -------------------------------------------------------------------------------------
KEY_FILE_BYTES_MAX: Final = 4 * 1024
KEYRING_BYTES_MAX: Final = 256 * 1024
KEYRING_KEYS_MAX: Final = 256
PASSPHRASE_BYTES_MAX: Final = 1_024
PASSPHRASE_OPS: Final = 3  # Argon2id passes and memory: about 0.3 s for a person, and as much for every guess
PASSPHRASE_MEMORY_BYTES: Final = 256 * 1024 * 1024
PASSPHRASE_OPS_MAX: Final = 16  # a key file that asks for more is an attack on whoever opens it
PASSPHRASE_MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024

# --- secrets by reference (spec §3.2) -------------------------------------------------------------------------
SECRET_NAME_CHARS_MAX: Final = 64  # a name is for people to type
SECRET_BYTES_MAX: Final = 4 * 1024  # passwords, tokens and codes; a document is no secret to type
SECRET_PAD_BYTES: Final = 64  # sealed secrets are as long as a multiple of this, so that the file tells no lengths
SECRETS_MAX: Final = 256  # of one vault; it is read whole at each use
SECRET_BINDINGS_MAX: Final = 8  # applications, origins or fields of one secret; bound to more it is bound to nothing
SECRET_BINDING_BYTES_MAX: Final = 1_024  # of one of them
ENV_SECRETS_MAX: Final = 64
VAULT_BYTES_MAX: Final = 16 * 1024 * 1024  # the largest vault that these bounds allow, below a memory attack
VAULT_BUSY_MS_MAX: Final = 5_000  # another process that writes the vault takes milliseconds
KEYRING_MS_MAX: Final = 5_000  # a Secret Service that asks a person to unlock it does not answer; it is not waited for

# --- channels (spec §11) --------------------------------------------------------------------------------------
HELLO_BYTES_MAX: Final = 16 * 1024
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024  # a full-desktop PNG fits
CONNECTIONS_MAX: Final = 64
CONNECTION_REQUESTS_MAX: Final = 256  # in flight on one connection
SOCKET_PATH_BYTES_MAX: Final = 104
DAEMON_IDLE_EXIT_S: Final = 900
HEAP_BLOCK_BYTES_MAX: Final = 128 * 1024  # larger blocks go back to the system when they are free
GARBAGE_OBJECTS_MAX: Final = 10_000  # made and not freed, before the collector looks for cycles among them
HELLO_MS_MAX: Final = 5_000  # a peer that never says hello holds no slot
CONTROL_CONNECTIONS_MAX: Final = 16  # counted apart, so that no number of agents locks the operator out
SOCKETS_MAX: Final = 2 * (CONNECTIONS_MAX + CONTROL_CONNECTIONS_MAX)  # refused peers linger to read why, up to here
UNSENT_BYTES_MAX: Final = 2 * FRAME_BYTES_MAX  # replies a slow reader has not taken; one more and it is cut off
WRITE_STALL_MS_MAX: Final = 30_000  # a peer that takes nothing for this long is gone
DAEMON_DRAIN_MS_MAX: Final = 5_000  # what is in flight at SIGTERM may end by itself for this long
DAEMON_START_MS_MAX: Final = 10_000  # a daemon that is not ready by then has failed to start
LEASE_WAIT_MS_MAX: Final = 5_000  # a daemon that is just going lets go of its lease within this
CALL_MARGIN_MS: Final = 15_000  # what a client grants the daemon beyond a call's own deadline
LOG_TAIL_BYTES: Final = 4_096  # how much of the daemon's log an error quotes

# --- applications (spec §8.1) ---------------------------------------------------------------------------------
APP_CALL_MS_MAX: Final = 1_000  # one call to one application; only that application pays
APP_READ_MS_MAX: Final = 3_000  # one whole read of one application
APP_PATIENCE_MS: Final = 250  # a list of all windows waits this long for a slow application, then names it
TEXT_CHARS_PER_READ_MAX: Final = 64 * 1024  # one page of a text; the reader asks for the next
DOCUMENT_CHARS_MAX: Final = 16 * 1024 * 1024  # of one text that is searched; more would cost the daemon its memory
DOCUMENT_PART_CHARS: Final = 1024 * 1024  # of one answer; an application needs some ten milliseconds for it
TEXT_PAGE_CHARS_MAX: Final = 64_000  # with what follows it, still one read
GRAPHEME_CHARS_MAX: Final = 64  # a page ends before a character; a longer heap of marks is cut
FIND_PATTERN_BYTES_MAX: Final = 1_024
FIND_MATCHES_DEFAULT: Final = 20
FIND_MATCHES_MAX: Final = 200
FIND_COUNTED_MAX: Final = 10_000  # matches that are counted beyond those told; a dot matches everywhere
FIND_CONTEXT_LINES_MAX: Final = 10
FIND_LINE_CHARS_MAX: Final = 240  # of one line told with a match; a file without line ends is one line
TABLE_ROWS_DEFAULT: Final = 50
TABLE_ROWS_MAX: Final = 500
TABLE_COLUMNS_MAX: Final = 256
TABLE_CELLS_MAX: Final = 5_000  # of one page: three questions each, a quarter of a second
ACCESSIBILITY_JOIN_MS: Final = 1_500  # a window without accessibility is listed alone only after this long
APP_LAYOUT_MS: Final = 500  # places are read again this long after an event: layout and animation settle unannounced
APP_SWEEP_MS: Final = 100  # between two looks at an application whose events are incomplete, while somebody waits
HUNG_PROBE_MS_MAX: Final = 3_600_000  # one waiting call tells when a hung application is back
APPS_MAX: Final = 256
DBUS_MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
DBUS_UNSENT_BYTES_MAX: Final = 4 * 1024 * 1024  # a peer that stops reading costs this much memory
EVENT_COALESCE_MS: Final = 5
ACTIONS_READ_MAX: Final = 256  # named actions of one object that are read before one is run
GTK4_PRESS_MS: Final = 260  # GTK 4.8 shows a press for 250 ms and drops another one of the same button meanwhile
QT5_PRESS_MS: Final = 110  # the same in Qt 5: 100 ms
DESKTOP_ENTRIES_MAX: Final = 4_096  # installed applications that are looked through for a program's name
DROPDOWN_OPEN_MS_MAX: Final = 1_500  # a list that an action opens is waited for this long, and again until it closed
ACTION_ACK_GRACE_MS: Final = 100  # an acting call whose successor was answered is waited for this long, then is `sent`

# --- input (spec §10) -----------------------------------------------------------------------------------------
KEYMAP_SETTLE_MS_MAX: Final = 1_000  # a toolkit must have read a changed keymap before the key is sent
DRAG_STEPS: Final = 24
GRAB_GATE_MS_MAX: Final = 250  # how long a busy event loop may keep every other program waiting
LENT_MS_MAX: Final = 60_000  # a keycode lent to a character goes back by then, whether or not it was read
GUARD_START_MS_MAX: Final = 10_000  # no input before the guard stands; a machine under load needs seconds
GUARD_RESTARTS_MAX: Final = 5
GUARD_RESTART_PAUSE_MS: Final = 200  # doubled after each failure
HELD_MAX: Final = 16  # keys and buttons down at once; more is a defect
WHEEL_LINES: Final = 3  # lines that a wheel step scrolls in common toolkits
WHEEL_STEPS_PER_PAGE: Final = 10
WHEEL_PIXELS: Final = 50  # pixels that a wheel step scrolls, roughly
WINDOW_ACTION_MS_MAX: Final = 1_000  # a window manager that has not obeyed by then counts as not having answered

# --- X11 (spec §10, §13) --------------------------------------------------------------------------------------
X_CALL_MS_MAX: Final = 5_000  # a display server that hangs costs one call this long
X_AUTHORITY_BYTES_MAX: Final = 1024 * 1024  # an authority file has a few hundred bytes
X_PROPERTY_BYTES_MAX: Final = 256 * 1024  # an application cannot make us read an endless property
X_TREE_DEPTH_MAX: Final = 32  # windows inside windows
X_TREE_WINDOWS_MAX: Final = 4_096  # windows of one application asked to draw themselves
WINDOWS_MAX: Final = 1_024
REPAINT_MS_MAX: Final = 1_000  # an application must draw a window this soon after it was asked to

# --- desktops (spec §13) --------------------------------------------------------------------------------------
DESKTOPS_OWNED_MAX: Final = 8  # what agents start by asking for one; the operator may start more
DESKTOP_START_MS_MAX: Final = 15_000
DESKTOP_END_MS_MAX: Final = 10_000  # the supervisor has killed and removed everything by then
DESKTOP_LAUNCH_MS_MAX: Final = 10_000  # from the request to a running program
DESKTOP_LAUNCH_SURE_MS: Final = 300  # a program that fails to start has usually ended by then
DESKTOP_TERMINATE_MS: Final = 2_000  # a program may end in its own way this long before it is killed
DESKTOP_SIDE_MIN: Final = 64  # a screen too small for one title bar is a mistake
DESKTOP_NAME_CHARS_MAX: Final = 32  # socket paths below the desktop's folder must fit 108 bytes
DESKTOP_LOG_TAIL_BYTES: Final = 2_000  # how much of a part's log an error quotes
DESKTOP_ENTRY_BYTES_MAX: Final = 64 * 1024  # of an installed application's own description
DISPLAY_TRIES_MAX: Final = 16  # other starters may take the number first
DESKTOP_WIDTH_DEFAULT: Final = 1280
DESKTOP_HEIGHT_DEFAULT: Final = 800
DESKTOP_SIDE_MAX: Final = 8192
DISPLAY_FIRST: Final = 90
DISPLAY_LAST: Final = 4_000

# --- evidence pages -------------------------------------------------------------------------------------------
FILM_FRAMES_MAX: Final = 1_000
FILM_INDEX_BYTES_MAX: Final = 1024 * 1024
FILM_BYTES_MAX: Final = 128 * 1024 * 1024  # a page with more pictures than this opens in no browser
REPORT_BYTES_MAX: Final = 8 * 1024 * 1024  # of an evidence page's records; it fits a frame, older ones are counted
EVIDENCE_PAYLOAD_CHARS_MAX: Final = 16_384  # of each event's payload; the journal has the rest

# --- MCP (spec §11.4) -----------------------------------------------------------------------------------------
MODEL_RESULT_BYTES_MAX: Final = 64 * 1024  # of one result that a model is shown; more fills its memory with one look
MODEL_TURN_BYTES_MAX: Final = 256 * 1024  # of all results between two words of the person
MODEL_RESULT_BYTES_MIN: Final = 8 * 1024  # of each one after that: a window of two hundred controls has four
MODEL_TURN_CHARS_MAX: Final = 128  # of a turn's name, which a session remembers
MODEL_TURN_IDLE_MS: Final = 60_000  # without a call for so long, the next one belongs to another turn
MCP_LINE_BYTES_MAX: Final = 16 * 1024 * 1024  # one message; above what any tool takes, below a memory attack
MCP_DRAIN_MS: Final = 500  # answers under way when the client goes; nobody may be left to read them
MCP_CLOSE_MS: Final = 2_000  # letting go of the daemon at the end
MCP_PROGRESS_MS: Final = 1_000  # a call that takes longer says so, this often
MCP_FORM_MS_MAX: Final = 120_000  # a client's form; who takes longer answers where the operator does
MCP_FORMS_MAX: Final = 4  # forms of one call: what a deed takes first, and itself; a client is not worn out
MCP_SESSIONS_MAX: Final = 32  # sessions of one HTTP server, each a connection to the daemon
MCP_IDLE_MS_MAX: Final = 600_000  # a session that nobody used for ten minutes holds nothing any more
MCP_BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # one HTTP request; above the largest legal action
MCP_HEAD_MS_MAX: Final = 10_000  # an HTTP connection that asks for nothing; silent ones must not keep others out
MCP_WAITING_MAX: Final = 64  # HTTP connections that wait to ask; one past it closes the one that waits longest
MCP_OPEN_MAX: Final = 512  # requests of one pipe under way, and refusals unread; above what the daemon takes at once
MCP_WRITE_MS_MAX: Final = 60_000  # a client that reads nothing for so long is gone; a paused one gets a minute
MCP_TELL_MS_MAX: Final = 5_000  # passing one notification on; who does not take it looks again anyway
MCP_SUBSCRIPTIONS_MAX: Final = 64  # addresses one session follows, and streams of one server
MCP_EVENTS_MAX: Final = 256  # told and not yet passed on; who is told that much reads again anyway
MCP_CALLS_MAX: Final = 256  # calls of one file for `surehand call`
MCP_CONFIG_BYTES_MAX: Final = 16 * 1024 * 1024  # a client's configuration; larger is something else
