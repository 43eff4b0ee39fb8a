"""`surehand console`: the page where people approve, watch and stop, in a browser on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from surehand import limits
from surehand.cli.approving import AsOption
from surehand.cli.keys import KeysOption, folder_of
from surehand.cli.output import out
from surehand.core.wire.places import places
from surehand.errors import InvalidRequest, Unavailable
from surehand.signing.private_files import create_private, private_directory
from surehand.signing.runtime_folder import with_runtime_folder

if TYPE_CHECKING:
    from surehand.console.door import Door

_OPENERS: Final = (("xdg-open",), ("gio", "open"))


def console(
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=limits.COORDINATE_MAX, help="Which. Default: one that is free.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only show the link; open no browser.")] = False,
    approver: AsOption = None,
    keys: KeysOption = None,
) -> None:
    """Serve the console page for a browser on this machine, until Ctrl-C.

    Examples:
      surehand console
      surehand console --port 8700 --no-open

    The link works once, within two minutes; Enter in this terminal shows a new one. The page answers with your
    approver key, whose passphrase it asks for each time. While it runs no agent reads or operates a browser that
    shows it.
    """
    if out().as_json:
        raise InvalidRequest("this is for people", fix="the other commands have --json")
    try:
        from surehand.console import server  # noqa: PLC0415 - a web server that only this command needs
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"jinja2", "starlette", "uvicorn"}:
            raise
        raise Unavailable("the console page is not installed", fix="pip install 'surehand[console]'") from error
    terminal = _Terminal(opens=not no_open)
    server.run(port, folder_of(keys), approver, ready=terminal.ready, opened=terminal.opened)
    out().note("ended")


class _Terminal:
    """The operator's terminal: where links are shown and asked for."""

    def __init__(self, *, opens: bool) -> None:
        self._opens = opens

    @contextlib.asynccontextmanager
    async def ready(self, door: Door) -> AsyncIterator[None]:
        """Show a link, open it, and show a new one at each Enter."""
        link = door.link()
        self._show(link)
        loop, listens = asyncio.get_running_loop(), sys.stdin.isatty()
        if listens:
            loop.add_reader(sys.stdin.fileno(), self._enter, door)
        else:
            out().note("without a terminal there is no other link; start again for one")
        try:
            with _opened(link) if self._opens else contextlib.nullcontext():
                yield
        finally:
            if listens:
                loop.remove_reader(sys.stdin.fileno())

    def _enter(self, door: Door) -> None:
        if os.read(sys.stdin.fileno(), limits.LOG_TAIL_BYTES):
            self._show(door.link())
        else:  # a terminal that went away
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    @staticmethod
    def _show(link: str) -> None:
        minutes = limits.CONSOLE_LINK_MS_MAX // 60_000
        out().note(f"open this, once, within {minutes} minutes; Enter shows a new link, Ctrl-C ends the page\n  {link}")

    @staticmethod
    def opened(pid: int | None) -> None:
        """Say that a link was opened, so that one that somebody else opened is noticed."""
        if pid is None:
            out().note("opened, by a process that hides: agents are kept out of its windows by their titles alone")
        else:
            out().note(f"opened by process {pid}; agents are kept out of its windows while this runs")


@contextlib.contextmanager
def _opened(link: str) -> Any:
    """Open a link in the person's browser, if there is one; gone with it is the file that names it.

    The link is a secret, and arguments are everybody's to read: the browser is given a file of this user alone.
    """
    opener = next((words for words in _OPENERS if shutil.which(words[0])), None)
    if opener is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    runtime = places(with_runtime_folder(os.environ, os.getuid()), os.getuid()).runtime_dir
    path = private_directory(Path(runtime)) / f"console-{os.getpid()}.html"
    path.unlink(missing_ok=True)  # of an earlier process with this number
    address = html.escape(link, quote=True)
    create_private(path, f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n'.encode())
    try:
        subprocess.Popen(  # noqa: S603 - the desktop's own opener, and a file of ours
            [*opener, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield
    finally:
        path.unlink(missing_ok=True)


COMMANDS: Final[dict[str, Any]] = {"console": console}
