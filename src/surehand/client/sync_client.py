"""The blocking client: `with surehand.open() as hand`. The same calls as the asynchronous one, without `await`.

It needs no event loop and no thread, so it works in a plain script, in a notebook and under any framework alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, Unpack

from surehand.client.aim import Aim, Attempt
from surehand.client.blocking import BlockingWay, run
from surehand.client.calls import Calls, Operation, about, launch_action, place
from surehand.client.locators import Condition, Finder, Reading, Step, Steps, extra_filters
from surehand.client.opening import connector
from surehand.client.options import TIMEOUT_S_DEFAULT, ActOptions, check_options
from surehand.client.queries import Text
from surehand.client.results import ApprovalRequired, BatchResult, Interrupted, Receipt, outcome
from surehand.client.scenes import Picture, Scene, Target
from surehand.client.session import Session
from surehand.client.verbs import Verbs
from surehand.core.wire.messages import Welcome
from surehand.model.actions import Action
from surehand.model.query import Filter
from surehand.model.record import Record
from surehand.model.request import Request
from surehand.model.targets import Target as TargetRecord

#: What an action comes back as; only a `Receipt` is true.
Result: TypeAlias = "Receipt | Interrupted | ApprovalRequired[Result]"


class Locator(Finder["Locator"], Verbs["Result"]):
    """What to find in one place, resolved at each use. Verbs wait until there is exactly one and it is enabled."""

    __slots__ = ("_aim",)

    def __init__(self, aim: Aim) -> None:
        self._aim = aim

    def _below(self, filters: tuple[Filter, ...]) -> Locator:
        return Locator(self._aim.narrowed(filters))

    def filter(self, *, context: Text | None = None, states: dict[str, bool] | None = None, exact: bool = True) -> Self:
        """Keep only matches with this context or these states."""
        return type(self)(self._aim.filtered(extra_filters(context, states, exact=exact)))

    @property
    def step(self) -> Steps:
        """The same verbs as steps of a batch."""
        return Steps(self._aim)

    def _do(self, action: dict[str, Any], options: ActOptions) -> Result:
        attempt = Attempt.of(self._aim, action, options)

        def again(timeout_s: float) -> Result:
            return outcome(run(attempt.present_until_answered(timeout_s)), again)

        return outcome(run(attempt.present()), again)

    def all(self) -> list[Target]:
        """Return every match now, without waiting."""
        return run(Reading(self._aim).all())

    def count(self) -> int:
        """Return how many match now, without waiting."""
        return run(Reading(self._aim).count())

    def one(self, *, timeout_s: float = TIMEOUT_S_DEFAULT) -> Target:
        """Return the one match, waiting up to `timeout_s` seconds for it."""
        return run(Reading(self._aim).one(timeout_s))

    def read(self, start: int = 0, end: int = -1, *, timeout_s: float = TIMEOUT_S_DEFAULT) -> str:
        """Return its text, without the cap of the text form; `end` −1 means to the end."""
        return run(Reading(self._aim).read(start, end, timeout_s))

    @property
    def value(self) -> str | None:
        """Its value."""
        return run(Reading(self._aim).value())

    def wait_for(self, condition: Condition = "present", *, timeout_s: float = TIMEOUT_S_DEFAULT) -> bool:
        """Wait for a condition; returns false when the time is over, which is a normal answer."""
        return run(Reading(self._aim).wait_for(condition, timeout_s))

    def expect(
        self,
        *,
        value: Text | None = None,
        name: Text | None = None,
        states: dict[str, bool] | None = None,
        exact: bool = True,
        timeout_s: float = TIMEOUT_S_DEFAULT,
    ) -> None:
        """Wait until it has this value, name or these states.

        Raises:
            Timeout: it did not; `observed` shows what there was instead.
        """
        run(Reading(self._aim).expect(value=value, name=name, states=states, exact=exact, timeout_s=timeout_s))

    def __repr__(self) -> str:
        return f"<Locator {self._aim}>"


class App(Finder[Locator]):
    """One application, or one window of it: a place to find elements in."""

    __slots__ = ("_calls", "_where")

    def __init__(self, calls: Calls, where: dict[str, str]) -> None:
        self._calls = calls
        self._where = where

    def _below(self, filters: tuple[Filter, ...]) -> Locator:
        return Locator(Aim(self._calls.session, self._where, filters))

    def observe(self, **wishes: Any) -> Scene:
        """Return the scene now; takes what `Hand.observe` takes, and `scope`, a label: only what is inside it."""
        return run(self._calls.observe(self._where, wishes))

    def window_id(self) -> str:
        """Return the id of its one window.

        Raises:
            WindowNotFound: it has none, or several.
        """
        return run(Aim(self._calls.session, self._where).only_surface())

    def wait_for(
        self,
        *conditions: Record | dict[str, Any],
        mode: Literal["all", "any"] = "all",
        timeout_s: float = TIMEOUT_S_DEFAULT,
    ) -> bool:
        """Wait until conditions hold (docs/reference/wire.md lists them); false when the time is over."""
        return run(self._calls.wait_for(self._where, conditions, mode, timeout_s))


class Hand:
    """A session with a daemon. Everything it holds is released when it closes or its process ends.

    One call at a time: threads that share a hand take turns; open one for each to work side by side.
    """

    def __init__(self, *, desktop: str | None = None, client: str = "python", start: bool = True) -> None:
        self._calls = Calls(Session(BlockingWay(connector("agent", desktop, client, start=start))))
        self._welcome: Welcome | None = None

    def __enter__(self) -> Self:
        self._welcome = run(self._calls.session.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        run(self._calls.session.close())

    @property
    def about(self) -> dict[str, Any]:
        """What the daemon said at the start: principal, session, trust level, authority mode."""
        return about(self._welcome)

    def app(self, name: str) -> App:
        """Return an application by name, as `apps` lists it; it may start later."""
        return App(self._calls, {"app": name})

    def surface(self, surface_id: str) -> App:
        """Return one window by its id, as `surfaces` lists it."""
        return App(self._calls, {"surface": surface_id})

    def element(self, target: Target) -> Locator:
        """Return the very element that was observed: acting on it reaches it as it was meant, or is refused."""
        return Locator(Aim(self._calls.session, {}, fixed=target.value))

    def apps(self) -> list[dict[str, Any]]:
        """Return the running applications."""
        return run(self._calls.apps())

    def silent(self) -> list[dict[str, Any]]:
        """Return the applications that run and do not answer, or show nothing, each with why."""
        return run(self._calls.silent())

    def surfaces(self, app: str | None = None) -> list[dict[str, Any]]:
        """Return the windows, of one application or of all."""
        return run(self._calls.surfaces(app))

    def capabilities(self, surface: str | None = None) -> dict[str, Any]:
        """Return what works here before anything is done (spec §5.8)."""
        return run(self._calls.capabilities(surface))

    def observe(
        self,
        app: str | None = None,
        *,
        surface: str | None = None,
        base: str | None = None,
        max_nodes: int | None = None,
        after_generation: int | None = None,
        timeout_ms: int | None = None,
        targets: bool = True,
        settle: bool = True,
    ) -> Scene:
        """Return a scene.

        Args:
            app: An application by name.
            surface: A window by id, instead.
            base: A scene id; the text is then a diff against it where that is exact.
            max_nodes: Most nodes in the text form.
            after_generation: Wait for a strictly newer generation.
            timeout_ms: How long; when it passes the answer is the scene as it is.
            targets: False gives the text alone.
            settle: Wait a moment until the window is at rest; false takes it as it is.
        """
        wishes = {
            "base": base,
            "max_nodes": max_nodes,
            "after_generation": after_generation,
            "timeout_ms": timeout_ms,
            "targets": targets,
            "settle": settle,
        }
        return run(self._calls.observe(place(app, surface), wishes))

    def screenshot(self, surface: str | None = None, *, label: str | None = None, marks: bool = False) -> Picture:
        """Return a picture of a window, of one element, or of the desktop; with `marks` also what can be acted upon."""
        return run(self._calls.screenshot(surface, label, marks=marks))

    def act(
        self,
        action: Request | Action | dict[str, Any],
        target: Target | TargetRecord | dict[str, Any] | None = None,
        **options: Unpack[ActOptions],
    ) -> Result:
        """Present one operation: a whole request, or an action and its target.

        Raises:
            SurehandError: every refusal and every terminal that is neither a success nor an interruption (spec §12).
        """
        check_options(options)
        operation = Operation(self._calls.session, action, target, options)

        def again(timeout_s: float) -> Result:
            return outcome(run(operation.present_until_answered(timeout_s)), again)

        return outcome(run(operation.present()), again)

    def launch(self, argv: Sequence[str], **options: Unpack[ActOptions]) -> Result:
        """Launch a program: `["mousepad", "notes.txt"]`. Never a shell line."""
        return self.act(launch_action(argv), **options)

    def batch(
        self,
        steps: Sequence[Step],
        *,
        operation_id: str | None = None,
        on_refusal: Literal["stop", "continue"] = "stop",
    ) -> BatchResult:
        """Present steps made with `locator.step`, in order (spec §5.5). Not a transaction."""
        return run(self._calls.batch(steps, operation_id, on_refusal))

    def status(self, operation_id: str) -> dict[str, Any]:
        """Return what is known of an operation, whether or not this session presented it."""
        return run(self._calls.status(operation_id))

    def cancel(self, operation_id: str) -> dict[str, Any]:
        """Cancel an operation that is not dispatched yet."""
        return run(self._calls.cancel(operation_id))

    def propose(self, request: Request | dict[str, Any]) -> dict[str, Any]:
        """Return the action hash a host would sign, what it means, and a preview of the decision. Has no effect."""
        return run(self._calls.propose(request))


def open(*, desktop: str | None = None, client: str = "python", start: bool = True) -> Hand:  # noqa: A001 - `surehand.open()` reads as what it does
    """Return a hand to be used with `with`.

    Args:
        desktop: Which desktop; a wish that policy decides about.
        client: A name for people to see in `surehand ps`.
        start: Start the daemon if none answers.

    Raises:
        Unavailable: on entering, when there is no daemon and none could be started.
    """
    return Hand(desktop=desktop, client=client, start=start)
