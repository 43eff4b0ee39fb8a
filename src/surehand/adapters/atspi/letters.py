"""Applications that are there and cannot be observed: who, and what to do about it (cases C26, C31, C40, C43).

Each is named with a typed error; none costs the others anything. A window of the window system whose process is on no
accessibility bus is named too, where somebody tells us of windows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from surehand.adapters.atspi import entries, identity
from surehand.adapters.atspi.bus import Application, Bus
from surehand.adapters.atspi.calls import ROOT_PATH
from surehand.errors import AccessibilityDisabled, SurehandError, Unavailable
from surehand.model.scene import AppIdentity

#: Tells (process, title) of every window of the window system that a person could see.
NativeWindows = Callable[[], Iterable[tuple[int, str]]]

RENDERER_FIX: Final = "start it with --force-renderer-accessibility, or switch accessibility on before it starts"
_POINT_FIX: Final = "use a point target on a capture of its window"

_CHROMIUM_NAMES: Final = re.compile(
    r"(chromium|chrome|google-chrome|electron|msedge|brave|opera|vivaldi|code)([-.].*)?"
)
#: Files that only Chromium and what embeds it (Electron, CEF) put beside their executable.
_CHROMIUM_FILES: Final = ("v8_context_snapshot.bin", "icudtl.dat", "chrome_100_percent.pak")


def silent(application: Application) -> Unavailable:
    """Return the error of an application that does not answer."""
    return Unavailable(
        "the application does not answer",
        fix="wait until it responds, or quit it",
        details={"app": application.identity.key, "pid": application.identity.pid},
    )


def without_tree() -> AccessibilityDisabled:
    """Return the error of a Chromium or Electron that shows nothing of its pages."""
    return AccessibilityDisabled("the application shows no accessibility tree", fix=RENDERER_FIX)


def dead_letters(bus: Bus, native_windows: NativeWindows | None) -> Iterator[dict[str, Any]]:
    """Yield one letter per application in trouble: handle, app, pid, toolkit, title where known, and the error."""
    for owner, error in bus.unreachable.items():
        yield _letter(owner, None, "", "", error)
    for application in bus.applications.values():
        trouble = _trouble_of(application)
        if trouble is not None:
            yield _letter(application.owner, application.identity, application.toolkit, "", trouble)
    if native_windows is not None:
        yield from _absent(bus, native_windows())


def _letter(owner: str, who: AppIdentity | None, toolkit: str, title: str, error: SurehandError) -> dict[str, Any]:
    return {
        "handle": owner,
        "app": None if who is None else who.key,
        "pid": 0 if who is None else who.pid,
        "toolkit": toolkit,
        "title": title,
        "error": error.to_value(),
    }


def _trouble_of(application: Application) -> SurehandError | None:
    if application.hung:
        return silent(application)
    known = application.tree.entries
    windows = [known[path] for path in known[ROOT_PATH].children if path in known]
    read = [window for window in windows if not window.doubt & entries.CHILDREN]
    if not read or any(window.children for window in read):
        return None
    if application.profile.family == "chromium":
        return without_tree()
    return AccessibilityDisabled("accessibility shows one node only; points still work", fix=_POINT_FIX)


def _absent(bus: Bus, windows: Iterable[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    pids = {application.identity.pid for application in bus.applications.values()}
    titles = {
        entry.name
        for application in bus.applications.values()
        for entry in application.tree.entries.values()
        if entry.parent == ROOT_PATH
    }
    for pid, title in windows:
        # A process that is not proven is known by its titles only.
        if pid in pids or (0 in pids and title in titles):
            continue
        who = identity.identify(pid, "")
        if is_chromium(who.executable):
            yield _letter("", who, "chromium", title, without_tree())
        else:
            error = AccessibilityDisabled(
                "the application is on no accessibility bus; points still work", fix=_POINT_FIX
            )
            yield _letter("", who, "", title, error)


def is_chromium(executable: str) -> bool:
    """Return whether an executable is Chromium or embeds it, by its name or by what lies beside it."""
    path = Path(executable)
    if not executable:
        return False
    if _CHROMIUM_NAMES.fullmatch(path.name.lower()):
        return True
    return all((path.parent / name).exists() for name in _CHROMIUM_FILES)
