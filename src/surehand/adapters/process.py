"""Starts programs in a desktop: the actor behind `app{launch}`. It launches through the desktop's own sandbox only.

Never a shell: a name and arguments. What it started dies with the desktop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from surehand.errors import AppNotFound, SurehandError
from surehand.model.actions import Action, App
from surehand.model.scene import CapabilityFact, Node, Surface
from surehand.ports import Attempt, Dispatched

Launch = Callable[[Sequence[str]], Awaitable[int]]


class ProcessActor:
    """Launches programs in one desktop.

    Args:
        launch: Starts an argument list in the desktop and returns the pid.
    """

    backend = "process"

    def __init__(self, launch: Launch) -> None:
        self._launch = launch

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return what can be launched into: the desktop itself."""
        if surface.role != "desktop":
            return ()
        return (CapabilityFact(action="app", target_kind="none", route="process.launch", background="isolated_only"),)

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Return `process.launch` for launching, None for everything else."""
        if node is None and surface.role == "desktop" and isinstance(action, App) and action.op == "launch":
            return "process.launch"
        return None

    async def perform(self, attempt: Attempt) -> Dispatched:
        """Launch once; the program's pid is the output."""
        action = attempt.action
        if not isinstance(action, App):
            raise TypeError("only launching is routed here")
        attempt.enter({})
        try:
            pid = await self._launch([action.name, *action.arguments])
        except AppNotFound:
            return Dispatched(status="no_effect", route="process.launch", detail="app_not_found")
        except SurehandError as error:
            return Dispatched(status="unknown", route="process.launch", detail=error.code)
        return Dispatched(status="done", route="process.launch", output={"pid": pid})

    async def release_all(self) -> None:
        """Nothing is held."""
