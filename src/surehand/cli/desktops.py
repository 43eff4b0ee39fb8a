"""`surehand desktop`: isolated desktops in the foreground, and a list of what runs."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import Finished, out, table
from surehand.client.control import Control
from surehand.errors import InvalidRequest
from surehand.limits import DESKTOP_HEIGHT_DEFAULT, DESKTOP_START_MS_MAX, DESKTOP_WIDTH_DEFAULT

_GEOMETRY: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,5})")

_Bind = Annotated[
    list[str] | None,
    typer.Option("--bind", metavar="PATH", help="A file or folder that its programs may read; repeatable."),
]
_BindWritable = Annotated[
    list[str] | None,
    typer.Option("--bind-writable", metavar="PATH", help="One that they may change as well; repeatable."),
]


def run(
    *,
    command: Annotated[list[str] | None, typer.Argument(help="A program to run in it, after --.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="What to call it.")] = None,
    geometry: Annotated[
        str, typer.Option("--geometry", help="WIDTHxHEIGHT in pixels.")
    ] = f"{DESKTOP_WIDTH_DEFAULT}x{DESKTOP_HEIGHT_DEFAULT}",
    view: Annotated[bool, typer.Option("--view", help="Show it in a window.")] = False,
    network: Annotated[bool, typer.Option("--network", help="Its programs may use the network.")] = False,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Do not confine its programs; receipts say so.")
    ] = False,
    bind: _Bind = None,
    bind_writable: _BindWritable = None,
) -> None:
    """Start a desktop of its own and run a program in it. Everything in it ends with this command.

    Examples:
      surehand desktop run -- mousepad
      surehand desktop run --name play --view --geometry 1600x1000 -- gnome-calculator
      surehand desktop run --bind-writable ~/notes -- mousepad ~/notes/today.txt
      surehand desktop run --name work          (until Ctrl-C; launch into it from elsewhere)

    It has its own display, window manager, buses and home; agents reach it with --desktop NAME.
    Of yours its programs see what --bind and --bind-writable name, at the same path, and nothing else.
    """
    match = _GEOMETRY.fullmatch(geometry)
    if match is None:
        raise InvalidRequest(f"{geometry!r} is not WIDTHxHEIGHT", fix="such as 1280x800")
    from surehand.daemon import entry  # noqa: PLC0415 - desktops are the operator's; loaded by this command alone

    options = entry.DesktopOptions(
        command=tuple(command or ()),
        name=name,
        width=int(match[1]),
        height=int(match[2]),
        view=view,
        network=network,
        sandbox=not no_sandbox,
        binds=_absolute(bind),
        writable=_absolute(bind_writable),
    )
    started: dict[str, Any] = {}

    def announce(facts: dict[str, Any]) -> None:
        started.update(facts)
        why = f" ({facts['isolation_reason']})" if facts.get("isolation_reason") else ""
        out().note(f"desktop {facts['name']} on {facts['display']}, {facts['isolation']}{why}; Ctrl-C ends it")

    exit_code = asyncio.run(entry.run_desktop(options, announce))
    out().data({**started, "exit_code": exit_code})
    raise Finished(exit_code)


def list_() -> None:
    """List the desktops that run.

    Example:
      surehand desktop list
    """
    with Control(start=True) as control:
        found = control.call("desktop.list")
    rows = [
        (one["name"], one.get("display"), one.get("isolation"), "x".join(str(side) for side in one.get("geometry", ())))
        for one in found["desktops"]
    ]
    out().data(found, table(("NAME", "DISPLAY", "ISOLATION", "GEOMETRY"), rows))


def start(
    name: Annotated[str | None, typer.Option("--name", help="What to call it.")] = None,
    geometry: Annotated[
        str, typer.Option("--geometry", help="WIDTHxHEIGHT in pixels.")
    ] = f"{DESKTOP_WIDTH_DEFAULT}x{DESKTOP_HEIGHT_DEFAULT}",
    bind: _Bind = None,
    bind_writable: _BindWritable = None,
) -> None:
    """Have the daemon start a desktop, which lives until `desktop stop` or the daemon's end.

    Examples:
      surehand desktop start --name work
      surehand desktop start --name work --bind ~/tools --bind-writable ~/notes

    Of yours its programs see what --bind and --bind-writable name, at the same path, and nothing else.
    """
    match = _GEOMETRY.fullmatch(geometry)
    if match is None:
        raise InvalidRequest(f"{geometry!r} is not WIDTHxHEIGHT", fix="such as 1280x800")
    params: dict[str, Any] = {"width": int(match[1]), "height": int(match[2])}
    if name is not None:
        params["name"] = name
    for key, paths in (("binds", _absolute(bind)), ("writable", _absolute(bind_writable))):
        if paths:
            params[key] = list(paths)
    with Control(start=True) as control, out().working("starting a desktop"):
        found = control.call("desktop.start", params, wait_ms=DESKTOP_START_MS_MAX)
    out().data(found, f"desktop {found['name']} on {found.get('display')}, {found.get('isolation')}")


def stop(name: Annotated[str, typer.Argument(help="The desktop's name.")]) -> None:
    """End a desktop that the daemon started, with everything in it.

    Example:
      surehand desktop stop work
    """
    with Control() as control:
        found = control.call("desktop.stop", {"name": name}, wait_ms=DESKTOP_START_MS_MAX)
    out().data(found, f"desktop {name} ended")


def launch(
    name: Annotated[str, typer.Argument(help="The desktop's name.")],
    command: Annotated[list[str], typer.Argument(help="A program and its arguments, after --.")],
) -> None:
    """Start a program in a desktop, as its operator. One that fails at once is an error, with what it printed.

    Examples:
      surehand desktop launch work -- mousepad
      surehand desktop launch work -- mousepad ~/notes/today.txt

    A file of yours is there only where the desktop was started with it: surehand desktop start --bind-writable ~/notes
    """
    with Control() as control:
        found = control.call("desktop.launch", {"name": name, "argv": command}, wait_ms=DESKTOP_START_MS_MAX)
    out().data(found, f"{command[0]}: pid {found.get('pid')}")


def _absolute(paths: list[str] | None) -> tuple[str, ...]:
    """Return paths as the caller's folder has them; links stay, so that they are in the desktop under the same name.

    Raises:
        InvalidRequest: one is empty, which would mean this whole folder.
    """
    if "" in (paths or ()):
        raise InvalidRequest("a path to bind is empty", fix="name a file or a folder")
    return tuple(os.path.abspath(path) for path in paths or ())  # noqa: PTH100 - Path.absolute keeps `..`


COMMANDS: Final[dict[str, Any]] = {"run": run, "list": list_, "start": start, "stop": stop, "launch": launch}
