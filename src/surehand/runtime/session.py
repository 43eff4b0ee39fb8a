"""Sessions and desks: who is connected, to which desktop, and what they have seen.

A session owns its labels and scenes; nothing of one session can be named from another (spec §2). A desk is one
attached desktop with its adapters; several sessions may share it.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from weakref import WeakValueDictionary

from surehand import limits
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.tree import forget_derived
from surehand.errors import SurehandError, Unavailable, WindowNotFound
from surehand.model.scene import Scene, Surface
from surehand.ports import Actor, Interruptions, Marker, Observer, Screen
from surehand.runtime.brakes import Brakes, refusal
from surehand.runtime.covering import SecretFields
from surehand.runtime.shown import Before, Shown
from surehand.runtime.sights import Sights

Isolation = Literal["isolated", "display_only", "shared"]


@dataclass(slots=True)
class Desk:
    """One attached desktop: what it is, as recorded by the host, and the adapters that reach it."""

    name: str
    isolation: Isolation
    #: The desktop itself, for actions that aim at no window: launching, letting go.
    root: Surface
    observers: tuple[Observer, ...]
    actors: tuple[Actor, ...]
    screen: Screen | None = None
    interruptions: Interruptions | None = None
    #: Shows the person that somebody acts, where one uses it.
    marker: Marker | None = None
    #: Has a listener called when a person presses the stop key there.
    on_stop: Callable[[Callable[[], None]], None] | None = None
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    opt_ins: tuple[str, ...] = ()
    generation: str = ""
    #: When anything was last done to it, by the daemon's clock; long ago when nothing was.
    effect_at_ms: int = -limits.SETTLE_MIN_MS
    #: Windows of applications that did not answer when the windows were listed last.
    silent: dict[str, Surface] = field(default_factory=dict)
    #: Pointer and keyboard belong to one operation at a time; input of two would interleave.
    input_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: The id of the installed application that a plain program name stands for, None where it stands for none.
    application_of: Callable[[str], str | None] = lambda _: None
    #: What comes close to the name of a program that is not there, None where it may be launched.
    missing: Callable[[str], tuple[str, ...] | None] = lambda _: None
    #: Only of applications that something waits for or acts on now.
    _app_turns: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _owners: dict[str, Observer] = field(default_factory=dict)
    _surfaces: dict[str, Surface] = field(default_factory=dict)
    #: Fields that are secret although their application does not say so any more.
    secret_fields: SecretFields = field(default_factory=SecretFields)

    def acts(self, principal: str) -> None:
        """An agent begins to act here."""
        if self.marker is not None:
            self.marker.begin(principal)

    def acted(self, now_ms: int) -> None:
        """It has."""
        self.effect_at_ms = now_ms
        if self.marker is not None:
            self.marker.end()

    async def surfaces(self) -> tuple[Surface, ...]:
        """Return every window of every application that answers."""
        found: dict[str, Surface] = {}
        await self._list(found)
        unlisted = {surface_id: one for surface_id, one in self._surfaces.items() if surface_id not in found}
        silent = await self._silent(unlisted)
        closed = {one.app.pid for surface_id, one in unlisted.items() if surface_id not in silent}
        if closed:
            # Or the application was slow for a moment and answers again: asked by itself it has the time of a call.
            for pid in closed:
                await self._list(found, pid)
            silent = await self._silent({key: one for key, one in unlisted.items() if key not in found})
        self.silent, self._surfaces = silent, found | silent
        for gone in self._owners.keys() - self._surfaces.keys():
            del self._owners[gone]
        self.secret_fields.keep(self._surfaces.keys())
        return tuple(found.values())

    async def _list(self, found: dict[str, Surface], pid: int | None = None) -> None:
        for observer in self.observers:
            for surface in await observer.surfaces(pid):
                found[surface.surface_id] = surface
                self._owners[surface.surface_id] = observer

    async def _silent(self, unlisted: Mapping[str, Surface]) -> dict[str, Surface]:
        """Return those windows of before whose application does not answer: they are neither there nor gone."""
        if not unlisted:
            return {}
        letters = [letter for observer in self.observers for letter in await observer.dead_letters()]
        pids = {letter["pid"] for letter in letters if letter["error"]["code"] == Unavailable.default_code}
        return {
            surface_id: surface
            for surface_id, surface in unlisted.items()
            if surface.app.pid in pids and surface_id in self._surfaces
        }

    async def surface(self, surface_id: str) -> tuple[Surface, Observer]:
        """Return a surface's facts and who reads it; what was listed before is not asked for again.

        Reading it says whether it is still there, and its root says how it is called now.

        Raises:
            WindowNotFound: no such window.
        """
        if surface_id not in self._surfaces:
            await self.surfaces()
        if surface_id not in self._surfaces:
            raise WindowNotFound("no such window", fix="list the surfaces again", details={"surface": surface_id})
        return self._surfaces[surface_id], self._owners[surface_id]

    async def siblings(self, surface: Surface) -> tuple[Surface, ...]:
        """Return the windows of a surface's application now, asking nobody else."""
        return await self.observer_of(surface.surface_id).surfaces(surface.app.pid)

    def update(self, surface: Surface) -> None:
        """Remember newer facts of a surface."""
        self._surfaces[surface.surface_id] = surface

    def forget(self, surface_id: str) -> None:
        """Forget a surface that is gone."""
        self._surfaces.pop(surface_id, None)
        self.secret_fields.forget(surface_id)

    def observer_of(self, surface_id: str) -> Observer:
        """Return who reads a surface seen before.

        Raises:
            WindowNotFound: never seen, or gone.
        """
        observer = self._owners.get(surface_id)
        if observer is None:
            raise WindowNotFound("no such window", fix="list the surfaces again", details={"surface": surface_id})
        return observer

    def turn(self, backend: str, surface: Surface | None) -> asyncio.Lock:
        """Return the lock an operation holds while it acts and is verified.

        Semantic actions take turns per application, so that one application that hangs makes nobody else wait; what
        goes through pointer or keyboard takes turns per desktop.
        """
        if surface is None or surface is self.root or backend == "x11":
            return self.input_turn
        lock = self._app_turns.get(surface.app.pid)
        if lock is None:
            # Whoever holds it or waits for it keeps it; with the last of them it goes.
            lock = self._app_turns[surface.app.pid] = asyncio.Lock()
        return lock

    async def close(self) -> None:
        """Release what is held and let go of every adapter."""
        for actor in self.actors:
            await actor.release_all()
        for closer in reversed(self.closers):
            await closer()


class ReadDecision(NamedTuple):
    """What policy said of reading something: the rule that closes it, "" for none, and what is redacted in it."""

    rule: str
    redact: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """One agent's (or person's) connection."""

    session_id: str
    principal: str
    role: Literal["agent", "control"]
    trust_level: Literal["A", "B"]
    authority_mode: Literal["host", "daemon"]
    desk: Desk | None
    #: Names the journal that its operations are in.
    journal: str = ""
    client: dict[str, str] = field(default_factory=dict)
    labels: LabelTable = field(default_factory=LabelTable)
    scenes: OrderedDict[str, Scene] = field(default_factory=OrderedDict)
    latest: dict[str, Scene] = field(default_factory=dict)
    #: What the caller was shown, by label (runtime/shown.py).
    shown: Shown = field(default_factory=Shown)
    sights: Sights = field(default_factory=Sights)
    #: What was known before the effects whose change is asked for later (runtime/changes.py).
    later: Before | None = None
    read_decisions: dict[tuple[str, ...], ReadDecision] = field(default_factory=dict)
    scene_counter: int = 0
    #: Random, so that a scene of one session can never be named in another.
    scene_mark: str = field(default_factory=lambda: secrets.token_hex(8))
    #: Why there is no desk, and what to do about it.
    no_desk: str = ""
    closed: bool = False
    #: Whether it left a button down; its end lets go of it.
    holds: bool = False
    #: Requests to people that it waits for; while there is one it does not act.
    waits_for: set[str] = field(default_factory=set)
    #: Questions to people it was told of, and whether it was given their words to show (runtime/asserted.py).
    asked: dict[str, bool] = field(default_factory=dict)
    #: Watches that run.
    watches: int = 0
    #: What people see it called, for as long as the daemon runs.
    label: str = ""
    #: How often a person stopped what it had in flight (runtime/halting.py).
    halts: int = 0
    brakes: Brakes = field(default_factory=Brakes)

    @property
    def session(self) -> str:
        """The opaque id the client is told."""
        return self.session_id

    @property
    def desktop(self) -> str:
        """The name of its desktop, empty where it has none."""
        return "" if self.desk is None else self.desk.name

    def handed_over(self) -> str | None:
        """Return the request for which this session does not act now: its own, or one by which a person took over.

        A hand-over holds for every session of the same principal on the desktop, so that a new one is no way around it.
        """
        for request_id in self.waits_for:
            return request_id
        hold = self.brakes.over(self, "handed_over")
        return None if hold is None else hold.hold_id

    def is_held(self) -> bool:
        """Whether a person keeps it from acting now."""
        return self.handed_over() is not None or self.brakes.over(self) is not None

    def check_not_handed_over(self) -> None:
        """Refuse to act while a person was asked in, is at it, or paused the agent.

        Raises:
            AuthorityDenied.
        """
        request_id = self.handed_over()
        if request_id is not None:
            raise refusal("handed_over", request_id)
        self.brakes.check(self)

    def next_scene_id(self) -> str:
        """Return an id no other scene of this session has."""
        self.scene_counter += 1
        return f"sc{self.scene_counter}-{self.scene_mark}"

    def keep_scene(self, scene: Scene) -> None:
        """Remember a scene so that its targets can be named while it may be acted upon."""
        self.scenes[scene.scene_id] = scene
        self.scenes.move_to_end(scene.scene_id)
        while next(iter(self.scenes.values())).expires_at_ms < scene.observed_at_ms:
            self.scenes.popitem(last=False)
        while len(self.scenes) > limits.SCENES_KEPT_MAX:
            self.scenes.popitem(last=False)
        self._slim()

    def _slim(self) -> None:
        """Keep of a scene that others followed what is named in it, without what was worked out from it."""
        # The newest are likely to be looked at again.
        aging = next(itertools.islice(reversed(self.scenes.values()), limits.SCENES_WHOLE_MAX, None), None)
        if aging is not None:
            in_use = [*self.latest.values(), *self.shown.scenes.values()]
            if all(scene.tree is not aging.tree for scene in in_use):
                forget_derived(aging, aging.tree)


async def is_gone(observer: Observer, surface: Surface) -> bool:
    """Return whether a window that was not listed is gone for certain.

    A silent application does not list its own; one whose process has ended has none any more.
    """
    try:
        await observer.read(surface.surface_id)
    except WindowNotFound:
        return True
    except SurehandError:
        return has_ended(surface.app.pid)
    return False


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, waited for or not; false where that cannot be told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
    except (OSError, IndexError):
        return False


def new_session_id() -> str:
    """Return 128 random bits in hex."""
    return secrets.token_hex(16)
