"""Every protocol for the outside world: what the core and the runtime expect of clocks, journals, adapters, people.

Adapters implement these and never import each other. An `Actor` is reached only from `runtime/gateway.py`, and only
with an `Attempt`, which is how a permit looks from below: it can be entered once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from surehand.errors import SurehandError
from surehand.model.actions import Action
from surehand.model.approval import Notice
from surehand.model.decision import Permit
from surehand.model.events import Event, NewEvent
from surehand.model.scene import Bounds, CapabilityFact, Capture, LiveNode, Node, Surface, Tree
from surehand.model.secrets import HeldSecret, OpenedVault, SecretBinding, VaultHead, VaultKeyKind
from surehand.model.tables import TableSlice

# --- time and chance --------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Monotonic and wall-clock milliseconds; the only source of time."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, for people and expiries that cross processes."""


# --- evidence -----------------------------------------------------------------------------------------------------


class Journal(Protocol):
    """The append-only record (spec §7). Appends are durable when the awaitable returns."""

    async def append(self, events: Sequence[NewEvent]) -> list[Event]:
        """Append all events in one transaction, in order.

        Raises:
            Conflict: an `expected_version` differs; nothing was written.
            JournalRecovery: the store is read-only.
        """

    async def stream(self, stream: str, *, after_version: int = 0, limit: int = 1000) -> list[Event]:
        """Return events of one stream in order, each verified as it is read."""

    async def streams_ending(self, event_type: str, *, limit: int = 1000) -> list[str]:
        """Return streams that end in this type, oldest first; recovery asks for claims without an end.

        A claim counts as the end of its stream until it is released or has its terminal, whatever else follows it.
        """

    async def latest(self, prefix: str, *, before_seq: int | None = None, limit: int = 100) -> list[tuple[str, int]]:
        """Return streams whose names begin so with the number of their last event, newest first.

        `before_seq` is exclusive. Costs what it returns and what lies between, not the length of the log.
        """

    async def read(self, *, after_seq: int = 0, limit: int = 1000) -> list[Event]:
        """Return events of the whole log in order, each verified as it is read."""

    async def head(self) -> tuple[int, str]:
        """Return the last sequence number and record hash (0 and 64 zeros when empty)."""

    async def consume(self, keys: Mapping[str, int], events: Sequence[NewEvent]) -> list[Event]:
        """Append like `append` and count one use of every key in the same transaction; values are the most uses.

        Raises:
            PermitInvalid: a key already has its most uses; nothing was written, no key was counted.
        """

    def known(self, stream: str) -> bool:
        """Return at once whether the stream has any event committed or waiting; cheap enough for every request."""

    async def uses(self, key: str) -> int:
        """Return how often `key` was consumed."""

    async def close(self) -> None:
        """Write what waits, then close."""


# --- seeing -------------------------------------------------------------------------------------------------------


class TextSlice(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an element's text, in characters."""

    text: str
    start: int
    total_chars: int


class Observer(Protocol):
    """Reads the applications of one desktop. One application's trouble is that application's alone."""

    backend: str

    async def surfaces(self, pid: int | None = None) -> tuple[Surface, ...]:
        """Return every top-level window of every application that answers, or of the one with this pid."""

    async def read(self, surface_id: str, *, places: bool = True) -> Tree:
        """Return the surface's current tree: maintained from events where proven, swept or re-read where not.

        Without `places` the bounds may be those of an earlier read, which can spare a question for each element.

        Raises:
            WindowNotFound, Unavailable (application hung or gone), AccessibilityDisabled.
        """

    async def changed(self, surface_id: str, after_version: int, timeout_ms: int) -> bool:
        """Wait until the surface's tree has a version above `after_version`; false at the time-out."""

    def mark(self, surface_id: str) -> int:
        """Return a number that is another one after anything the surface's application said; asks nobody."""

    async def stirred(self, surface_id: str, mark: int, timeout_ms: int) -> bool:
        """Wait until `mark` is another one and read nothing; false at the time-out.

        Raises:
            WindowNotFound: the surface is unknown, or its application is gone.
        """

    def busy(self, surface_id: str) -> tuple[int, bool]:
        """Return milliseconds since the surface's last event, and whether it says it is busy loading."""

    async def live(
        self, surface_id: str, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> dict[str, LiveNode | None]:
        """Read these nodes straight from the application, pipelined, past every cache; None where dead.

        `around` are more of them, of which only what says who they are, where they hang and what they show is read:
        kind, identifier, names, texts, states, parent. Their actions and places may be missing.
        """

    async def look(
        self, surface: Surface, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> tuple[tuple[Surface, ...], dict[str, LiveNode | None] | SurehandError]:
        """Return the windows of a surface's application and these nodes, as `surfaces` and `live` would.

        Both are asked for before either answer is waited for. Why the nodes could not be read stands in their place:
        it counts only where their window is there.
        """

    def windows(self, surface_id: str) -> tuple[Surface, ...]:
        """Return the windows of a surface's application as known since the last `live` or `surfaces`, at once."""

    async def text(self, surface_id: str, handle: str, start: int, end: int) -> TextSlice:
        """Read characters `start..end` (end −1: to the end) of an element that is not secret."""

    async def document(self, surface_id: str, handle: str) -> TextSlice:
        """Read a text that is not secret from its beginning, up to `limits.DOCUMENT_CHARS_MAX` characters."""

    async def table(self, surface_id: str, handle: str, row_start: int, rows: int) -> TableSlice | None:
        """Read rows of a table by their numbers, without looking at the others.

        None where the toolkit does not offer that: then its rows are elements of the tree.
        """

    async def selection(self, surface_id: str, handle: str) -> tuple[int, int] | None:
        """Return the selection of an element's text as (start, length), the caret as length 0; None if unreadable."""

    async def equals(self, surface_id: str, handle: str, expected: str) -> bool | None:
        """Compare a secret's text where it is; None if it cannot be read. The text itself never leaves."""

    async def dead_letters(self) -> tuple[dict[str, Any], ...]:
        """Return applications that are present and did not answer or show no tree, each with its error value."""

    async def close(self) -> None:
        """Let go of every connection."""


class Screen(Protocol):
    """Windows and pixels of one desktop."""

    async def changed(self, timeout_ms: int) -> bool:
        """Wait until any window came, went, moved or got the focus, says the window system; false when time is up."""

    async def stacking(self) -> tuple[dict[str, Any], ...]:
        """Return managed windows from front to back: id, pid, title, bounds, minimized, focused."""

    async def popups(self) -> tuple[dict[str, Any], ...]:
        """Return windows that show and that no window manager manages, such as menus: id, pid, bounds."""

    async def monitors(self) -> tuple[dict[str, Any], ...]:
        """Return the parts of the desktop that are monitors: name, bounds in desktop pixels, primary."""

    async def place(self, surface: Surface) -> Bounds | None:
        """Return where a window's pixels stand now, as a capture of it would say; None where it is not certain."""

    async def states(self, surface: Surface) -> frozenset[str] | None:
        """Return which of `active`, `iconified` and `modal` the window system says of a window; None if not certain."""

    def modal_before(self, surface: Surface) -> str | None:
        """Return the title of a modal window of the same process that stands before this one, as read last; at once."""

    async def capture(self, surface: Surface | None) -> tuple[Capture, bytes]:
        """Return a capture record and its PNG: one window's own pixels even when covered, or the desktop."""


# --- acting -------------------------------------------------------------------------------------------------------


class Attempt(Protocol):
    """One permitted dispatch, as an actor sees it."""

    permit: Permit
    action: Action
    surface: Surface
    node: Node | None
    #: Handles whose live state the final fence needs; read them last, then call `enter`.
    fence_handles: tuple[str, ...]
    #: Place of a pointer action in desktop pixels; None for semantic actions.
    point: tuple[int, int] | None
    path: tuple[tuple[int, int], ...]
    #: What a secret_ref stands for; never logged, masked from output.
    secret: HeldSecret | None
    deadline_ms: int

    def enter(self, live: Mapping[str, LiveNode | None]) -> None:
        """Cross the line, once, immediately before the first byte that can cause an effect.

        Runs the final fence on what was just read, then checks permit, cancellation and deadline. Whatever it raises,
        the actor must do nothing more and let it pass.
        """

    def checkpoint(self, delivered: int) -> None:
        """Between two units of input: record how many were delivered; raises when the rest must not be sent."""


class Dispatched(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor knows after entering.

    `done`: the application acknowledged. `begun`: it has not, but answered what was asked behind the act on the same
    connection, so that it runs the handler and serves its other work meanwhile. `sent`: it was delivered and not
    acknowledged in time. `no_effect`: the application refused and provably did nothing. `unknown`: anything else.
    """

    status: Literal["done", "begun", "sent", "no_effect", "unknown"]
    route: str
    detail: str = ""
    #: The toolkit runs the handler up to this long after the acknowledgement.
    handler_delay_ms: int = 0
    output: dict[str, Any] | None = None


class Actor(Protocol):
    """Does one decided thing. Holds no rule. Called by the gateway only."""

    backend: str

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return what this actor can do on a surface."""

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Return the route this actor would take (such as `atspi.action`), or None when it cannot."""

    async def perform(self, attempt: Attempt) -> Dispatched:
        """Read the fence handles, `attempt.enter(live)`, act once, say what is known.

        Raises before entering: a `TargetError` or `Unavailable`. After entering it returns; an exception after
        entering counts as `unknown`.
        """

    async def release_all(self) -> None:
        """Let go of everything held."""


class Interruptions(Protocol):
    """Whether a person touched the desktop."""

    def sequence(self) -> int:
        """Return a number that grows with every physical input."""

    def mark(self) -> Callable[[], bool]:
        """Return a function that is true once physical input happened after this call."""


class Marker(Protocol):
    """Shows a person that an agent acts on their desktop. Never waits, never fails an action."""

    def begin(self, principal: str) -> None:
        """An agent of this principal begins to act."""

    def end(self) -> None:
        """It has."""


# --- deciding -----------------------------------------------------------------------------------------------------


class PolicyEngine(Protocol):
    """Answers policy's questions in place of the built-in rules (spec §6.1). `core.policy.engine` weighs the answers.

    Every method that fails raises `core.policy.engine.EngineFailure`, whose kind says what became of the question.
    """

    #: Which engine this is: `rego`, `cedar`, `opa`.
    name: str
    #: Changes whenever an answer may change.
    revision: str

    async def ask(self, questions: Sequence[dict[str, Any]]) -> list[Any]:
        """Return one answer for each question, as JSON values; None where the policy is undefined for one."""

    async def check(self) -> str:
        """Return what answers, for people; an engine that cannot answer raises."""

    async def close(self) -> None:
        """Let go of what is held."""


class Herald(Protocol):
    """Tells people outside that they are asked. Telling answers nothing."""

    #: What it is, for the log.
    name: str

    async def tell(self, notice: Notice) -> None:
        """Tell one thing, at least once; whoever hears it twice knows it by its id.

        Raises:
            Unavailable: it could not be told now.
        """

    async def close(self) -> None:
        """Let go of what is held."""


class Vault(Protocol):
    """Enrolled secrets in one place, sealed. Its methods wait for the disk, so they are called on threads.

    Raises throughout:
        AuthorityDenied: the key is another one, or what is there was changed.
        PermissionMissing, Unavailable: it is not there, others may open it, or it does not answer.
    """

    def head(self) -> VaultHead | None:
        """Return what it says of itself; None where there is none yet."""

    def new_head(self, kind: VaultKeyKind) -> VaultHead:
        """Return what a new one will say of itself."""

    def new_key(self) -> bytearray:
        """Return a random key."""

    def key_in_file(self, *, create: bool = False) -> bytearray:
        """Return the key that is in a file."""

    def key_of_passphrase(self, head: VaultHead, passphrase: bytearray) -> bytearray:
        """Return the key that a passphrase becomes."""

    def create(self, key: bytearray, head: VaultHead, *, replace: bool = False) -> OpenedVault:
        """Make an empty one."""

    def open(self, key: bytearray) -> OpenedVault:
        """Return what it holds, without the secrets."""

    def put(self, key: bytearray, name: str, bound_to: SecretBinding, value: bytearray, now_ms: int) -> OpenedVault:
        """Keep a secret under this name, in place of one of that name."""

    def remove(self, key: bytearray, name: str) -> OpenedVault:
        """Forget a secret."""

    def reveal(self, key: bytearray, name: str, seal: str) -> bytearray:
        """Return a secret of exactly the content that `seal` names, in a buffer that the caller overwrites."""


class VaultKeyring(Protocol):
    """Something of the desktop's that keeps keys of vaults, and never asks a person."""

    async def is_open(self) -> bool:
        """Say whether it is there and gives and takes keys now."""

    async def key(self, vault_id: str) -> bytearray:
        """Return the key of a vault; raises Unavailable."""

    async def keep(self, vault_id: str, key: bytearray) -> None:
        """Keep the key of a new vault; raises Unavailable."""


Notifier = Callable[[str, dict[str, Any]], Awaitable[None]]
EventFeed = AsyncIterator[Event]
