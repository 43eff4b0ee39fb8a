"""A fixture application, its observer and an actor, together: what the acting tests stand on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from surehand.adapters.atspi.acting import AtspiActor
from surehand.adapters.atspi.observer import AtspiObserver
from surehand.model.actions import Action, Expand, Invoke, Perform, SelectOption, Toggle
from surehand.model.scene import Node, Surface, Tree
from surehand.ports import Dispatched
from surehand.testing.attempts import RecordingAttempt
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp, FixtureEvent

#: Events that an action may bring along without being its effect.
NOISE = frozenset({"focus", "window_focus", "selection", "command", "key_press", "key_release"})

#: Actions that may run a handler which the toolkit puts off.
_BY_HANDLER = (Expand, Invoke, Perform, SelectOption, Toggle)


class Stage:
    """One application under test. `find` looks at the tree of now."""

    def __init__(self, app: FixtureApp, observer: AtspiObserver, surface: Surface) -> None:
        self.app = app
        self.observer = observer
        self.surface = surface
        self.actor = AtspiActor(observer)
        self.mark = app.mark()

    @property
    def toolkit(self) -> str:
        return self.app.toolkit

    async def tree(self) -> Tree:
        return await self.observer.read(self.surface.surface_id)

    async def find(
        self,
        name: str | None = None,
        role: str | None = None,
        *,
        nth: int = 0,
        within: Node | None = None,
        where: Callable[[Node], bool] = lambda _: True,
    ) -> Node:
        """Return a node of the current tree by name and role; `nth` among equals."""
        tree = await self.tree()
        found = []
        for index, node in enumerate(tree.nodes):
            if (name is None or node.name == name) and (role is None or node.role == role) and where(node):
                above = index
                while within is not None and above >= 0 and tree.nodes[above].handle != within.handle:
                    above = tree.parents[above]
                if within is None or above >= 0:
                    found.append(node)
        assert len(found) > nth, f"{name} {role}: {sorted({(n.role, n.name) for n in tree.nodes})}"
        return found[nth]

    def begin(self, action: Action, node: Node, **options: Any) -> RecordingAttempt:
        """Return an attempt, and remember that events from here on count."""
        self.mark = self.app.mark()
        return RecordingAttempt(action, self.surface, node, **options)

    async def act(self, action: Action, node: Node, **options: Any) -> Dispatched:
        """Perform an action and let the toolkit run what it put off."""
        attempt = self.begin(action, node, **options)
        done = await self.actor.perform(attempt)
        assert attempt.entered
        await self.rest(action)
        return done

    async def rest(self, action: Action) -> None:
        """Wait until whatever the action led to has reached the application's log."""
        if isinstance(action, _BY_HANDLER):
            await self.app.settle()
        else:
            await self.app.run("sync")

    def effects(self, event: str | None = None, control: str | None = None) -> list[tuple[str, str, Any]]:
        """Return what reached the application since `begin`, without what merely comes along."""
        return [
            (entry.event, entry.control, entry.value)
            for entry in self.app.events(event, control, after=self.mark)
            if event is not None or entry.event not in NOISE
        ]

    def raw_events(self) -> list[FixtureEvent]:
        return self.app.events(after=self.mark)

    async def surfaces(self) -> tuple[Surface, ...]:
        owner = self.surface.handle.partition("/")[0]
        return tuple(s for s in await self.observer.surfaces() if s.handle.partition("/")[0] == owner)


@asynccontextmanager
async def stage(desktop: IsolatedDesktop, app: FixtureApp) -> AsyncIterator[Stage]:
    """Observe a running fixture application."""
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    try:
        yield Stage(app, observer, await surface_of(observer, app))
    finally:
        await observer.close()


async def surface_of(observer: AtspiObserver, app: FixtureApp) -> Surface:
    """Return the main window of a fixture application, waiting until it is on the bus."""
    async with asyncio.timeout(10):
        while True:
            for surface in await observer.surfaces():
                if surface.title == app.title:
                    return surface
            await asyncio.sleep(0.02)
