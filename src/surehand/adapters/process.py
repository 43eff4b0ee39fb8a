"""Starts programs in a desktop: the actor behind `app{launch}`. It launches through the desktop's own sandbox only.

Never a shell: a name and arguments, or the id of an installed application. What it started dies with the desktop.
Whatever ends in `.desktop` is such an id and nothing else, because policy takes it for one: it is looked up among the
system's applications, never run as a path, and never found in a folder that a program could write. A plain word that is
the whole command of exactly one of them is another name of it, before policy is asked (`application_of`). A name that
nothing here has is told from the others by `missing`, so that nobody is asked about it.
"""

from __future__ import annotations

import asyncio
import difflib
import itertools
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from surehand import limits
from surehand.errors import AppNotFound, SurehandError, UnsupportedAction
from surehand.model.actions import Action, App
from surehand.model.scene import CapabilityFact, Node, Surface
from surehand.ports import Attempt, Dispatched

Launch = Callable[[Sequence[str]], Awaitable[int]]

#: Where the system installs applications; a user's own folder could hold anything.
APPLICATIONS: Final = (Path("/usr/local/share/applications"), Path("/usr/share/applications"))
#: Where the system installs programs.
_PROGRAMS: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_SUFFIX: Final = ".desktop"
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.desktop")
#: A word of an `Exec` line: quoted, where a backslash escapes, or plain.
_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_CODE: Final = re.compile(r"%(.)")
#: How alike a name has to be to be offered instead, and how many are.
_ALIKE: Final = 0.7
_OFFERED_MAX: Final = 5


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
        argv = [action.name, *action.arguments]
        if action.name.endswith(_SUFFIX):
            argv = await asyncio.to_thread(installed_command, action.name)
        attempt.enter({})
        try:
            pid = await self._launch(argv)
        except AppNotFound:
            return Dispatched(status="no_effect", route="process.launch", detail="app_not_found")
        except SurehandError as error:
            if isinstance(code := error.details.get("exit_code"), int):
                return Dispatched(status="done", route="process.launch", output=_died(code, error))
            return Dispatched(status="unknown", route="process.launch", detail=error.code)
        return Dispatched(status="done", route="process.launch", output={"pid": pid})

    async def release_all(self) -> None:
        """Nothing is held."""


def _died(code: int, error: SurehandError) -> dict[str, str | int]:
    """Return what is told of a program that was started and ended at once: its status, and the end of what it said."""
    said = str((error.observed or {}).get("log", "")).strip()
    return {"exit_code": code, **({"said": said[-limits.LAUNCH_SAID_CHARS_MAX :]} if said else {})}


def installed_command(desktop_id: str, folders: Sequence[Path] = APPLICATIONS) -> list[str]:
    """Return the command line of an installed application, as its desktop file has it, without files to open.

    Raises:
        AppNotFound: no application of this id is installed for everybody.
        UnsupportedAction: it is installed and needs a terminal, or has no command.
    """
    entry = _entry(desktop_id, folders)
    if entry.get("Type") != "Application" or entry.get("Hidden") == "true":
        raise _not_installed(desktop_id)
    words = [_expanded(quoted or plain) for quoted, plain in _WORD.findall(entry.get("Exec", ""))]
    argv = [word for word in words if word]
    if not argv or entry.get("Terminal") == "true":
        raise UnsupportedAction("this application cannot be started by itself", details={"application": desktop_id})
    return argv


def application_of(program: str, folders: Sequence[Path] = APPLICATIONS) -> str | None:
    """Return the id of the one installed application whose whole command is this program, None for anything else.

    What people call "mousepad" is then the application, and not any program of that name. Found are only applications
    that menus show; two of them, or a command with words of its own, decide nothing.
    """
    if not _PROGRAM.fullmatch(program) or program.endswith(_SUFFIX):
        return None
    ids = dict.fromkeys(path.name for folder in folders for path in _listed(folder))
    found: list[str] = []
    for desktop_id in itertools.islice(ids, limits.DESKTOP_ENTRIES_MAX):
        try:
            hidden = _entry(desktop_id, folders).get("NoDisplay") == "true"
            command = installed_command(desktop_id, folders)
        except (AppNotFound, UnsupportedAction):
            continue
        if not hidden and len(command) == 1 and command[0] in {program, *(f"{path}/{program}" for path in _PROGRAMS)}:
            found.append(desktop_id)
    return found[0] if len(found) == 1 and len(ids) <= limits.DESKTOP_ENTRIES_MAX else None


def missing(name: str, path: str, folders: Sequence[Path] = APPLICATIONS) -> tuple[str, ...] | None:
    """Return what comes close to a name that nothing here has; None where it may be launched.

    Args:
        name: A plain name, or the id of an application. Only a launch says what is behind the path of a file.
        path: Where the desktop looks for programs.
        folders: Where the system installs applications.
    """
    if not name or "/" in name:
        return None
    if name.endswith(_SUFFIX):
        if _ID.fullmatch(name) and any((folder / name).is_file() for folder in folders):
            return None
        return _close(name.removesuffix(_SUFFIX), [one.name for folder in folders for one in _listed(folder)])
    if shutil.which(name, path=path) is not None:
        return None
    return _close(name, [one for folder in path.split(":") for one in _programs(folder, name[0])])


def _programs(folder: str, first: str) -> list[str]:
    """Return the programs of a folder with this first letter: most folders hold thousands."""
    try:
        with os.scandir(folder) as found:
            alike = [one for one in found if one.name[0].lower() == first.lower()]
            return [one.name for one in alike if one.is_file() and os.access(one.path, os.X_OK)]
    except OSError:
        return []


def _close(name: str, known: Sequence[str]) -> tuple[str, ...]:
    by_word = {one.removesuffix(_SUFFIX).lower(): one for one in sorted(known)}
    word = name[: limits.NAME_CHARS_MAX].lower()
    alike = difflib.get_close_matches(word, by_word, n=_OFFERED_MAX, cutoff=_ALIKE)
    return tuple(by_word[one] for one in alike)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob(f"*{_SUFFIX}"))
    except OSError:
        return []


def _entry(desktop_id: str, folders: Sequence[Path]) -> dict[str, str]:
    """Return the main group of a desktop file."""
    if not _ID.fullmatch(desktop_id):
        raise _not_installed(desktop_id)
    for folder in folders:
        try:
            with (folder / desktop_id).open("rb") as file:
                text = file.read(limits.DESKTOP_ENTRY_BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            continue
        group = text.partition("[Desktop Entry]\n")[2].partition("\n[")[0]
        pairs = (line.partition("=") for line in group.splitlines() if "=" in line and not line.startswith("#"))
        return {name.strip(): value.strip() for name, _, value in pairs}
    raise _not_installed(desktop_id)


def _expanded(word: str) -> str:
    """Return a word of an `Exec` line with its escapes undone and its field codes, which stand for files, taken out."""
    return _CODE.sub(lambda code: "%" if code[1] == "%" else "", re.sub(r"\\(.)", r"\1", word))


def _not_installed(desktop_id: str) -> AppNotFound:
    return AppNotFound(
        "no application of this id is installed",
        fix="use the name of a file in /usr/share/applications",
        details={"application": desktop_id[: limits.NAME_CHARS_MAX]},
    )
