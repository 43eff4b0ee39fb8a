"""The asynchronous client: `async with surehand.connect() as hand`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from surehand.client.aim import Aim
from surehand.client.calls import Calls, Operation, about, launch_action, place
from surehand.client.locators import AsyncLocator, AsyncResult, Finder, Step
from surehand.client.opening import connector
from surehand.client.options import TIMEOUT_S_DEFAULT, ActOptions, check_options
from surehand.client.results import BatchResult, outcome
from surehand.client.scenes import Picture, Scene, Target
from surehand.client.session import Session
from surehand.client.streaming import StreamingWay
from surehand.core.wire.messages import Welcome
from surehand.model.actions import Action
from surehand.model.query import Filter
from surehand.model.record import Record
from surehand.model.request import Request
from surehand.model.targets import Target as TargetRecord

Mode = Literal["all", "any"]


class AsyncApp(Finder[AsyncLocator]):
    """One application, or one window of it: a place to find elements in."""

    __slots__ = ("_calls", "_where")

    def __init__(self, calls: Calls, where: dict[str, str]) -> None:
        self._calls = calls
        self._where = where

    def _below(self, filters: tuple[Filter, ...]) -> AsyncLocator:
        return AsyncLocator(Aim(self._calls.session, self._where, filters))

    async def observe(self, **wishes: Any) -> Scene:
        """Return the scene now; takes what `AsyncHand.observe` takes, and `scope`, a label: only what is inside it."""
        return await self._calls.observe(self._where, wishes)

    async def window_id(self) -> str:
        """Return the id of its one window.

        Raises:
            WindowNotFound: it has none, or several.
        """
        return await Aim(self._calls.session, self._where).only_surface()

    async def wait_for(
        self,
        *conditions: Record | dict[str, Any],
        mode: Mode = "all",
        timeout_s: float = TIMEOUT_S_DEFAULT,
    ) -> bool:
        """Wait until conditions hold (docs/reference/wire.md lists them); false when the time is over."""
        return await self._calls.wait_for(self._where, conditions, mode, timeout_s)


class AsyncHand:
    """A session with a daemon. Everything it holds is released when it closes or its process ends."""

    def __init__(self, *, desktop: str | None = None, client: str = "python", start: bool = True) -> None:
        self._calls = Calls(Session(StreamingWay(connector("agent", desktop, client, start=start))))
        self._welcome: Welcome | None = None

    async def __aenter__(self) -> Self:
        self._welcome = await self._calls.session.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session."""
        await self._calls.session.close()

    @property
    def about(self) -> dict[str, Any]:
        """What the daemon said at the start: principal, session, trust level, authority mode."""
        return about(self._welcome)

    def app(self, name: str) -> AsyncApp:
        """Return an application by name, as `apps` lists it; it may start later."""
        return AsyncApp(self._calls, {"app": name})

    def surface(self, surface_id: str) -> AsyncApp:
        """Return one window by its id, as `surfaces` lists it."""
        return AsyncApp(self._calls, {"surface": surface_id})

    def element(self, target: Target) -> AsyncLocator:
        """Return the very element that was observed: acting on it reaches it as it was meant, or is refused."""
        return AsyncLocator(Aim(self._calls.session, {}, fixed=target.value))

    async def apps(self) -> list[dict[str, Any]]:
        """Return the running applications."""
        return await self._calls.apps()

    async def silent(self) -> list[dict[str, Any]]:
        """Return the applications that run and do not answer, or show nothing, each with why."""
        return await self._calls.silent()

    async def surfaces(self, app: str | None = None) -> list[dict[str, Any]]:
        """Return the windows, of one application or of all."""
        return await self._calls.surfaces(app)

    async def capabilities(self, surface: str | None = None) -> dict[str, Any]:
        """Return what works here before anything is done (spec §5.8)."""
        return await self._calls.capabilities(surface)

    async def observe(
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
        return await self._calls.observe(place(app, surface), wishes)

    async def screenshot(self, surface: str | None = None, *, label: str | None = None, marks: bool = False) -> Picture:
        """Return a picture of a window, of one element, or of the desktop; with `marks` also what can be acted upon."""
        return await self._calls.screenshot(surface, label, marks=marks)

    async def act(
        self,
        action: Request | Action | dict[str, Any],
        target: Target | TargetRecord | dict[str, Any] | None = None,
        **options: Unpack[ActOptions],
    ) -> AsyncResult:
        """Present one operation: a whole request, or an action and its target.

        Raises:
            SurehandError: every refusal and every terminal that is neither a success nor an interruption (spec §12).
        """
        check_options(options)
        operation = Operation(self._calls.session, action, target, options)

        async def again(timeout_s: float) -> AsyncResult:
            return outcome(await operation.present_until_answered(timeout_s), again)

        return outcome(await operation.present(), again)

    async def launch(self, argv: Sequence[str], **options: Unpack[ActOptions]) -> AsyncResult:
        """Launch a program: `["mousepad", "notes.txt"]`. Never a shell line."""
        return await self.act(launch_action(argv), **options)

    async def batch(
        self,
        steps: Sequence[Step],
        *,
        operation_id: str | None = None,
        on_refusal: Literal["stop", "continue"] = "stop",
    ) -> BatchResult:
        """Present steps made with `locator.step`, in order (spec §5.5). Not a transaction."""
        return await self._calls.batch(steps, operation_id, on_refusal)

    async def status(self, operation_id: str) -> dict[str, Any]:
        """Return what is known of an operation, whether or not this session presented it."""
        return await self._calls.status(operation_id)

    async def cancel(self, operation_id: str) -> dict[str, Any]:
        """Cancel an operation that is not dispatched yet."""
        return await self._calls.cancel(operation_id)

    async def propose(self, request: Request | dict[str, Any]) -> dict[str, Any]:
        """Return the action hash a host would sign, what it means, and a preview of the decision. Has no effect."""
        return await self._calls.propose(request)


def connect(*, desktop: str | None = None, client: str = "python", start: bool = True) -> AsyncHand:
    """Return a hand to be used with `async with`.

    Args:
        desktop: Which desktop; a wish that policy decides about.
        client: A name for people to see in `surehand ps`.
        start: Start the daemon if none answers.

    Raises:
        Unavailable: on entering, when there is no daemon and none could be started.
    """
    return AsyncHand(desktop=desktop, client=client, start=start)
