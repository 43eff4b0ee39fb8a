"""The parameters of every method, as strict records: an unknown or misspelt one is refused before anything is done."""

from __future__ import annotations

from typing import Literal

from surehand import limits
from surehand.core.policy.model import check_known
from surehand.core.review import Mode
from surehand.core.scene.textsearch import Sought
from surehand.core.summary import OUTCOMES
from surehand.core.waiting import Condition
from surehand.errors import InvalidRequest
from surehand.model.approval import ApprovalAnswer
from surehand.model.authority import StandingGrant
from surehand.model.credential import Invitation, Registration
from surehand.model.query import Query
from surehand.model.record import Record, check_count, check_identifier, check_range, check_text
from surehand.model.request import Batch, Request
from surehand.model.targets import PointTarget


class Nothing(Record, frozen=True, kw_only=True):
    """No parameters."""


class Where(Record, frozen=True, kw_only=True):
    """A window by id, or the windows of an application by key, file name or pid; at most one of the two."""

    surface: str | None = None
    app: str | None = None


class Observe(Where, frozen=True, kw_only=True):
    """One observation.

    `base` names an earlier scene of this session to give a diff against; `shown` is the one whose text it was given
    last. `scope` names an element, to be shown alone with all that is inside it.
    `aside` is a text for somebody else than who acts: labels that were shown before keep the meaning they had then.
    """

    scope: str | None = None
    aside: bool = False
    base: str | None = None
    full: bool = False
    max_nodes: int = limits.RENDER_NODES_DEFAULT
    max_tokens: int | None = None
    after_generation: int | None = None
    timeout_ms: int = limits.SETTLE_CAP_MS
    targets: bool = False
    settle: bool = False

    def __post_init__(self) -> None:
        check_range("max_nodes", self.max_nodes, 1, limits.RENDER_NODES_MAX)
        if self.max_tokens is not None:
            check_range("max_tokens", self.max_tokens, limits.RENDER_TOKENS_MIN, limits.RENDER_TOKENS_MAX)
        if self.scope is not None:
            check_identifier("scope", self.scope)
        check_range("timeout_ms", self.timeout_ms, 0, limits.WAIT_MS_MAX)


class Find(Where, frozen=True, kw_only=True):
    """A query."""

    query: Query


class Act(Record, frozen=True, kw_only=True):
    """One request. `wait_approval_ms`: how long the caller waits for a person before it is told to come back.

    With `observe_after` the reply says what it changed, with `full` by the whole text; `later` leaves it to `changes`;
    `windows` names new windows and tells nothing of what they show.
    """

    request: Request
    observe_after: bool | Literal["later", "windows"] = False
    full: bool = False
    wait_approval_ms: int = 0

    def __post_init__(self) -> None:
        check_range("wait_approval_ms", self.wait_approval_ms, 0, limits.WAIT_MS_MAX)


class Propose(Record, frozen=True, kw_only=True):
    """A request to be hashed and decided, not run."""

    request: Request


class RunBatch(Record, frozen=True, kw_only=True):
    """A batch; with `observe_after` also what it changed in the windows it was aimed at."""

    batch: Batch
    observe_after: bool = False


class Plan(Record, frozen=True, kw_only=True):
    """Steps that a person is asked about at once, and that are then presented one by one."""

    batch: Batch


class Changes(Record, frozen=True, kw_only=True):
    """What effects changed that were to be asked for later."""

    full: bool = False


class Labels(Record, frozen=True, kw_only=True):
    """Elements as the caller was shown them."""

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("labels", len(self.labels), 1, limits.BATCH_STEPS_MAX)
        for label in self.labels:
            check_identifier("label", label)


class Element(Where, frozen=True, kw_only=True):
    """An element by its label, or by a query that has exactly one match; or only a window.

    A label without a window is one that this session was shown, and is refused when it means something else now.
    """

    label: str | None = None
    query: Query | None = None

    def __post_init__(self) -> None:
        if self.label is not None:
            check_identifier("label", self.label)
            if self.query is not None:
                raise InvalidRequest("name an element by label or by query, not both")


class ReadText(Element, frozen=True, kw_only=True):
    """Characters `start..end` of an element's text, −1 means the end; or a page of at most `chars` from `start`.

    A page ends between characters as a reader takes them.
    """

    start: int = 0
    end: int = -1
    chars: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("start", self.start, 0, limits.INTEGER_MAX)
        check_range("end", self.end, -1, limits.INTEGER_MAX)
        if self.chars is not None:
            check_range("chars", self.chars, 1, limits.TEXT_PAGE_CHARS_MAX)
            if self.end != -1:
                raise InvalidRequest("say where a read ends, or how long its page is, not both")


class FindText(Element, frozen=True, kw_only=True):
    """Places in an element's text."""

    find: Sought


class ReadTable(Element, frozen=True, kw_only=True):
    """Rows of the table that an element is or stands in; or of the only one of a window."""

    row_start: int = 0
    rows: int = limits.TABLE_ROWS_DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("row_start", self.row_start, 0, limits.INTEGER_MAX)
        check_range("rows", self.rows, 1, limits.TABLE_ROWS_MAX)


class At(Record, frozen=True, kw_only=True):
    """A place in a picture."""

    point: PointTarget


class TakePicture(Element, frozen=True, kw_only=True):
    """A window's own pixels, with an element only its part; without either the desktop's.

    `region` is x, y, width, height in pixels of the window, or of the desktop. `monitor` names a part of the desktop.
    `marks` also tells where what can be acted upon stands. With `settle` a named window comes to rest first.
    """

    region: tuple[int, int, int, int] | None = None
    monitor: str | None = None
    marks: bool = False
    settle: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        is_element = self.label is not None or self.query is not None
        if sum((is_element, self.region is not None, self.monitor is not None)) > 1:
            raise InvalidRequest("a picture is of an element, a region or a monitor; name one of them")
        if self.region is not None:
            for name, value in zip(("x", "y"), self.region[:2], strict=True):
                check_range(name, value, -limits.COORDINATE_MAX, limits.COORDINATE_MAX)
            for name, value in zip(("width", "height"), self.region[2:], strict=True):
                check_range(name, value, 1, limits.COORDINATE_MAX)
        if self.monitor is not None:
            check_text("monitor", self.monitor, limits.NAME_CHARS_MAX, empty=False)
            if self.surface is not None or self.app is not None:
                raise InvalidRequest("a monitor is a part of the desktop; name no window")

    @property
    def is_desktop(self) -> bool:
        """Whether no window and no element is named."""
        return self.surface is None and self.app is None and self.label is None and self.query is None


class Wait(Where, frozen=True, kw_only=True):
    """1..8 conditions about one window, or about each window of an application until one fulfils them."""

    conditions: tuple[Condition, ...]
    mode: Literal["all", "any"] = "all"
    timeout_ms: int = limits.WAIT_MS_DEFAULT

    def __post_init__(self) -> None:
        check_count("conditions", len(self.conditions), 1, limits.WAIT_CONDITIONS_MAX)
        check_range("timeout_ms", self.timeout_ms, 1, limits.WAIT_MS_MAX)


class OperationName(Record, frozen=True, kw_only=True):
    """One operation of the caller."""

    operation_id: str

    def __post_init__(self) -> None:
        check_identifier("operation_id", self.operation_id)


class SurfaceName(Record, frozen=True, kw_only=True):
    """A window, or everything."""

    surface: str | None = None


class Approval(Record, frozen=True, kw_only=True):
    """An approval of the caller's principal, by its id or the newest of an operation; neither: all that are open."""

    approval_id: str | None = None
    operation_id: str | None = None
    wait_ms: int = 0

    def __post_init__(self) -> None:
        check_range("wait_ms", self.wait_ms, 0, limits.WAIT_MS_MAX)
        for name in ("approval_id", "operation_id"):
            if (value := getattr(self, name)) is not None:
                check_identifier(name, value)


class Human(Record, frozen=True, kw_only=True):
    """A request to a person. `request_id` goes on with an earlier one; `withdraw` takes it back."""

    reason: str
    kind: Literal["captcha", "second_factor", "choice", "other"] = "other"
    wait_ms: int = 0
    request_id: str | None = None
    withdraw: bool = False

    def __post_init__(self) -> None:
        check_text("reason", self.reason, limits.HUMAN_TEXT_BYTES_MAX, empty=False)
        check_range("wait_ms", self.wait_ms, 0, limits.WAIT_MS_MAX)
        if self.request_id is not None:
            check_identifier("request_id", self.request_id)


class Watch(Record, frozen=True, kw_only=True):
    """What to tell of: these windows, else those whose text the session was given."""

    surfaces: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.surfaces is not None:
            check_count("surfaces", len(self.surfaces), 0, limits.WATCH_SURFACES_MAX)


# --- control ------------------------------------------------------------------------------------------------------


class Answer(Record, frozen=True, kw_only=True):
    """A signed answer."""

    answer: ApprovalAnswer


class Operations(Record, frozen=True, kw_only=True):
    """Operations that are looked for, newest first; `before_seq` is the `next` of the page before."""

    before_seq: int | None = None
    limit: int = limits.OPERATIONS_PAGE_DEFAULT
    principal: str | None = None
    app: str = ""
    action: str = ""
    outcome: str = ""
    category: str = ""
    text: str = ""
    since_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        check_range("limit", self.limit, 1, limits.OPERATIONS_PAGE_MAX)
        if self.principal is not None:
            check_identifier("principal", self.principal)
        for name in ("app", "action", "outcome", "category", "text"):
            check_text(name, getattr(self, name), limits.SOUGHT_BYTES_MAX)
        check_known("outcome", (self.outcome,) if self.outcome else (), OUTCOMES)
        for name in ("before_seq", "since_ms", "until_ms"):
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name), 0, limits.TIME_MS_MAX)


class AnyOperation(Record, frozen=True, kw_only=True):
    """One operation of whoever."""

    principal: str
    operation_id: str

    def __post_init__(self) -> None:
        check_identifier("principal", self.principal)
        check_identifier("operation_id", self.operation_id)


class ApprovalsPage(Record, frozen=True, kw_only=True):
    """A page of open questions; `after` is the `next` of the page before."""

    after: str | None = None
    limit: int = limits.APPROVALS_OPEN_MAX

    def __post_init__(self) -> None:
        check_range("limit", self.limit, 1, limits.APPROVALS_OPEN_MAX)


class SetMode(Record, frozen=True, kw_only=True):
    """A mode; `confirm` says it once more where it is raised."""

    mode: Mode
    confirm: str = ""

    def __post_init__(self) -> None:
        check_text("confirm", self.confirm, limits.SOUGHT_BYTES_MAX)


class RulesPage(Record, frozen=True, kw_only=True):
    """A page of rules; `after` is how many came before."""

    after: int = 0
    limit: int = limits.RULES_PAGE_DEFAULT

    def __post_init__(self) -> None:
        check_range("after", self.after, 0, limits.INTEGER_MAX)
        check_range("limit", self.limit, 1, limits.POLICY_RULES_MAX)


class PolicyQuestion(Record, frozen=True, kw_only=True):
    """A request to ask policy about: its input document as JSON, or a case as TOML."""

    request: str

    def __post_init__(self) -> None:
        check_text("request", self.request, limits.POLICY_QUESTION_BYTES_MAX)


class Resolve(Record, frozen=True, kw_only=True):
    """A person's word about an unknown outcome."""

    principal: str
    operation_id: str
    verdict: Literal["happened", "not_happened"]

    def __post_init__(self) -> None:
        check_identifier("principal", self.principal)
        check_identifier("operation_id", self.operation_id)


class RequestName(Record, frozen=True, kw_only=True):
    """A request to a person."""

    request_id: str

    def __post_init__(self) -> None:
        check_identifier("request_id", self.request_id)


class HandBack(RequestName, frozen=True, kw_only=True):
    """A person's answer to a request. `note` is the operator's guidance for the agent."""

    note: str = ""

    def __post_init__(self) -> None:
        check_identifier("request_id", self.request_id)
        check_text("note", self.note, limits.HUMAN_TEXT_BYTES_MAX)


class ApprovalName(Record, frozen=True, kw_only=True):
    """A question to people."""

    approval_id: str

    def __post_init__(self) -> None:
        check_identifier("approval_id", self.approval_id)


class EndedPage(Record, frozen=True, kw_only=True):
    """How many of the newest ends."""

    limit: int = limits.CONSOLE_ROWS_MAX

    def __post_init__(self) -> None:
        check_range("limit", self.limit, 1, limits.APPROVALS_ENDED_KEPT_MAX)


class Console(Record, frozen=True, kw_only=True):
    """A console page that people use: its port, and the processes that show it."""

    port: int
    pids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_range("port", self.port, 1, limits.COORDINATE_MAX)
        check_count("pids", len(self.pids), 0, limits.CONSOLE_PIDS_MAX)
        for pid in self.pids:
            check_range("pid", pid, 1, limits.INTEGER_MAX)


class GiveStanding(Record, frozen=True, kw_only=True):
    """A standing grant to give, signed with the key of the approver that it names."""

    grant: StandingGrant
    key_id: str
    signature: str


class Invite(Record, frozen=True, kw_only=True):
    """Leave to enrol a WebAuthn credential, signed with the key of the approver that it names."""

    invitation: Invitation
    signature: str


class InvitationCode(Record, frozen=True, kw_only=True):
    """The code of an open invitation."""

    code: str

    def __post_init__(self) -> None:
        check_text("code", self.code, limits.INVITATION_CODE_BYTES_MAX)


class Enrol(Record, frozen=True, kw_only=True):
    """A credential to enrol."""

    registration: Registration


class CredentialName(Record, frozen=True, kw_only=True):
    """Which credential, by its key id."""

    key_id: str


class RevokeStanding(Record, frozen=True, kw_only=True):
    """A standing grant to take back."""

    grant_id: str


class PrincipalName(Record, frozen=True, kw_only=True):
    """Whose budget begins anew."""

    principal: str

    def __post_init__(self) -> None:
        check_identifier("principal", self.principal)


class Show(Record, frozen=True, kw_only=True):
    """Which events to show, newest last."""

    after_seq: int = 0
    limit: int = 100
    operation_id: str | None = None
    principal: str | None = None
    type: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        check_range("after_seq", self.after_seq, 0, limits.INTEGER_MAX)
        check_range("limit", self.limit, 1, 10_000)


class Report(Record, frozen=True, kw_only=True):
    """The operations of the last runs, for an evidence page."""

    after_seq: int = 0


class StartDesktop(Record, frozen=True, kw_only=True):
    """A desktop for the daemon to start and own."""

    name: str | None = None
    width: int = limits.DESKTOP_WIDTH_DEFAULT
    height: int = limits.DESKTOP_HEIGHT_DEFAULT
    binds: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_range("width", self.width, 1, limits.DESKTOP_SIDE_MAX)
        check_range("height", self.height, 1, limits.DESKTOP_SIDE_MAX)
        check_count("binds", len(self.binds) + len(self.writable), 0, limits.PATHS_MAX)


class DesktopName(Record, frozen=True, kw_only=True):
    """A desktop by name."""

    name: str


class Launch(Record, frozen=True, kw_only=True):
    """A program to start in a desktop; never a shell line."""

    name: str
    argv: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("argv", len(self.argv), 1, limits.PATHS_MAX)


class Scoped(Record, frozen=True, kw_only=True):
    """Which agents: those that fit everything that is named; nothing named means all. `session` is a label of `ps`."""

    desktop: str | None = None
    principal: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in ("desktop", "principal", "session"):
            if (value := getattr(self, name)) is not None:
                check_text(name, value, limits.IDENTIFIER_CHARS_MAX)


class Pause(Scoped, frozen=True, kw_only=True):
    """Whom to pause, and why, in the operator's words: agents are told them."""

    reason: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("reason", self.reason, limits.REASON_CHARS_MAX)


class Halt(Pause, frozen=True, kw_only=True):
    """Whom to stop. `go_on` ends only what is in flight; without it they stay paused."""

    go_on: bool = False


class Resume(Scoped, frozen=True, kw_only=True):
    """Which pauses end: one by its id, those of exactly this scope, or with nothing named all."""

    hold_id: str | None = None


class Frame(Record, frozen=True, kw_only=True):
    """The next picture of a desktop: one that differs from what the caller has, or after `wait_ms` what there is."""

    name: str
    #: The `tag` of the picture, and the `state_tag` of what goes on, that the caller has.
    after: str | None = None
    state_after: str | None = None
    wait_ms: int = 0

    def __post_init__(self) -> None:
        check_range("wait_ms", self.wait_ms, 0, limits.VIEW_WAIT_MS_MAX)


class TakeDesktop(Record, frozen=True, kw_only=True):
    """A desktop to take over, and why."""

    name: str
    reason: str = ""

    def __post_init__(self) -> None:
        check_text("reason", self.reason, limits.REASON_CHARS_MAX)
