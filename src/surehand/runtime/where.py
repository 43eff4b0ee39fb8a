"""Which windows and which element a call means, decided by policy before anything is looked at (spec §5.6)."""

from __future__ import annotations

from surehand import limits
from surehand.core.scene.describe import quote
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.query import resolve_one
from surehand.errors import AmbiguousApp, AppNotFound, InvalidRequest, TargetNotFound, Unavailable
from surehand.model.scene import Scene, Surface
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.shown import still_means


async def surfaces_of(parts: Parts, session: Session, where: p.Where, *, listed: bool = True) -> tuple[Surface, ...]:
    """Return the windows a call means; all that may be read where it names nothing.

    Without `listed` a window that is named is not looked for among all windows: for whoever reads it next anyway,
    which says whether it is there and how it is called now.

    Raises:
        AppNotFound, InvalidRequest, PolicyDenied.
    """
    parts.authority.check_usable()
    found = await parts.scenes.surfaces(session) if listed or where.surface is None else ()
    if where.surface is not None:
        if where.app is not None:
            raise InvalidRequest("name a surface or an app, not both")
        surface, _ = await desk_of(session).surface(where.surface)
        # Refused by name, so that it says why; nothing about a closed window is told, its title least of all.
        await parts.authority.check_read(session, surface)
        return (surface,)
    if where.app is None:
        return found
    named = tuple(surface for surface in found if _is_app(surface, where.app))
    if not named:
        if any(_is_app(surface, where.app) for surface in desk_of(session).silent.values()):
            raise Unavailable("the application does not answer", fix="wait until it responds, or quit it")
        running = sorted({surface.app.key for surface in found})
        raise AppNotFound(
            f"no running application is called {where.app}",
            fix="use one of the candidates, or start it",
            observed={"candidates": running},
        )
    return named


def _is_app(surface: Surface, name: str) -> bool:
    """An application is named by its key, its program's or script's file name, or its pid; never by what it claims."""
    app = surface.app
    paths = [path for path in (app.executable, app.script) if path]
    return name in (app.key, str(app.pid), *paths, *(path.rsplit("/", 1)[-1] for path in paths))


async def one_surface(parts: Parts, session: Session, where: p.Where, *, listed: bool = True) -> Surface:
    """Return the one window a call means; of several of an application the active one.

    Raises:
        AmbiguousApp, InvalidRequest, and what `surfaces_of` raises.
    """
    found = await surfaces_of(parts, session, where, listed=listed)
    if len(found) > 1:
        active = tuple(surface for surface in found if "active" in surface.states)
        found = active if len(active) == 1 else found
    if where.app is not None and len({surface.app.pid for surface in found}) > 1:
        # Several programs under one name: which one is meant nobody guesses.
        raise AmbiguousApp(
            f"several running applications are called {where.app}",
            fix="name one by its pid, or a window of it with surface",
            observed={"candidates": [f"{one.app.pid} {quote(one.title)}" for one in found[: limits.CANDIDATES_MAX]]},
        )
    if len(found) != 1:
        raise InvalidRequest(
            f"{len(found)} windows are meant",
            fix="name one of them with surface",
            observed={"candidates": [f"{one.surface_id} {quote(one.title)}" for one in found[: limits.CANDIDATES_MAX]]},
        )
    return found[0]


async def element_of(
    parts: Parts, session: Session, args: p.Element, *, places: bool = False
) -> tuple[Scene, int | None]:
    """Return what a call means: an element in the window as it is now, or None where it names only a window.

    A label alone means what this session was shown under it, or nothing (see `shown`); with a window it means what
    bears it there now.

    Raises:
        StaleTarget, TargetNotFound, AmbiguousTarget, and what `one_surface` raises.
    """
    if args.label is not None and args.surface is None and args.app is None:
        meaning = session.shown.meaning(args.label)
        scene = await parts.scenes.observe(session, meaning.surface_id, places=places)
        return scene, still_means(meaning, scene)
    surface = await one_surface(parts, session, args)
    scene = await parts.scenes.observe(session, surface.surface_id, places=places)
    if args.label is not None:
        return scene, index_in(scene, args.label)
    return scene, None if args.query is None else resolve_one(scene, args.query)


def index_in(scene: Scene, label: str) -> int:
    """Return where a label is in a scene.

    Raises:
        TargetNotFound: it is not there.
    """
    index = index_of_label(scene, label)
    if index is None:
        raise TargetNotFound(f"{label} is not in this window now", fix="observe again", details={"element": label})
    return index
