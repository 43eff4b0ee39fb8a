"""Commands that look: nothing here has an effect on the desktop."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from surehand import limits
from surehand.cli.output import out, table
from surehand.cli.targeting import (
    TIMEOUT_DEFAULT,
    AppArgument,
    ContainsOption,
    ContextOption,
    DesktopOption,
    LabelOption,
    NameOption,
    QueryOption,
    RoleOption,
    SurfaceOption,
    TimeoutOption,
    filters_from,
    hand,
    locator_of,
    place_of,
    read_json,
)
from surehand.client.aim import describe
from surehand.client.queries import filters_of
from surehand.client.scenes import Picture, Target
from surehand.client.sync_client import App
from surehand.errors import InvalidRequest, Unavailable
from surehand.model.query import Query
from surehand.model.record import to_value

_LABEL: Final = re.compile(r"e[0-9]+\Z", re.ASCII)


def apps(desktop: DesktopOption = None) -> None:
    """List the applications that run, and those that do not answer.

    Example:
      surehand apps
    """
    with hand(desktop) as session:
        found, silent = session.apps(), session.silent()
    rows = [(one.get("app"), one.get("pid"), one.get("toolkit"), len(one.get("surfaces", ()))) for one in found]
    lines = table(("APP", "PID", "TOOLKIT", "WINDOWS"), rows)
    out().data({"apps": found, "silent": silent}, [*lines, *map(_silence, silent)])


def _silence(letter: dict[str, Any]) -> str:
    error = letter.get("error") or {}
    fix = f" (fix: {error['fix']})" if error.get("fix") else ""
    return f"silent: {letter.get('app') or 'an application'}, pid {letter.get('pid')}: {error.get('message')}{fix}"


def surfaces(app: AppArgument = None, desktop: DesktopOption = None) -> None:
    """List windows.

    Examples:
      surehand surfaces
      surehand surfaces mousepad
    """
    with hand(desktop) as session:
        found = session.surfaces(app)
    rows = [(one["surface_id"], one.get("app"), one.get("role"), one.get("title")) for one in found]
    out().data({"surfaces": found}, table(("WINDOW", "APP", "ROLE", "TITLE"), rows))


def observe(
    app: AppArgument = None,
    surface: SurfaceOption = None,
    max_nodes: Annotated[int | None, typer.Option("--max-nodes", help="Most elements in the text.")] = None,
    targets: Annotated[bool, typer.Option("--targets", help="With --json: every element with its reference.")] = False,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Only what is inside this element: filters in JSON, as in --query.")
    ] = None,
    desktop: DesktopOption = None,
) -> None:
    """Show a window as text: one line for each element, with its label, role, name and state.

    Examples:
      surehand observe mousepad
      surehand observe --surface w3 --json --targets
      surehand observe mousepad --scope '[{"role":"menubar"}]'

    Labels such as e17 belong to one session. Each command is a session of its own, so name elements by what they are
    (--role, --name) in the next command.
    """
    with hand(desktop) as session:
        place = place_of(session, app, surface)
        with out().working("observing"):
            within = None if scope is None else _only(place, scope)
            scene = place.observe(max_nodes=max_nodes, targets=targets, scope=within)
    out().data(scene.value, scene.text)


def _only(place: App, scope: str) -> str:
    """Return the label of the element that `--scope` means.

    Raises:
        InvalidRequest: a label: it belonged to the session of the command before.
    """
    if _LABEL.match(scope):
        raise InvalidRequest(
            f"{scope} is a label, and each command is a session of its own",
            fix="""say what the element is: --scope '[{"role":"menubar"}]'""",
        )
    filters = filters_of(read_json(scope, "--scope"))
    return str(place.locator(Query(filters=filters)).one().label)


def query(  # noqa: PLR0913 - one parameter for each option
    *,
    app: AppArgument = None,
    surface: SurfaceOption = None,
    role: RoleOption = None,
    name: NameOption = None,
    contains: ContainsOption = None,
    context: ContextOption = None,
    labelled: LabelOption = None,
    query: QueryOption = None,
    desktop: DesktopOption = None,
) -> None:
    """Find elements.

    Examples:
      surehand query mousepad --role menuitem
      surehand query mousepad --query '[{"capability":"toggle"},{"state":{"checked":false}}]'
    """
    filters = filters_from(role=role, name=name, contains=contains, context=context, labelled=labelled, query=query)
    with hand(desktop) as session:
        found = locator_of(place_of(session, app, surface), filters).all()
    out().data({"matches": [one.value for one in found]}, [_line(one) for one in found] or ["nothing matches"])


def _line(target: Target) -> str:
    value = "" if target.text is None else f" = {target.text!r}"
    return f"{describe(target.value)}{value}"


def read(  # noqa: PLR0913 - one parameter for each option
    *,
    app: AppArgument = None,
    surface: SurfaceOption = None,
    role: RoleOption = None,
    name: NameOption = None,
    contains: ContainsOption = None,
    context: ContextOption = None,
    labelled: LabelOption = None,
    query: QueryOption = None,
    start: Annotated[int, typer.Option("--start", min=0, help="First character.")] = 0,
    end: Annotated[int, typer.Option("--end", min=-1, help="One past the last character; -1: to the end.")] = -1,
    timeout: TimeoutOption = TIMEOUT_DEFAULT,
    desktop: DesktopOption = None,
) -> None:
    """Print an element's whole text.

    Example:
      surehand read mousepad --role text
    """
    filters = filters_from(role=role, name=name, contains=contains, context=context, labelled=labelled, query=query)
    with hand(desktop) as session:
        text = locator_of(place_of(session, app, surface), filters).read(start, end, timeout_s=timeout)
    out().data({"text": text}, text)


def screenshot(
    file: Annotated[str, typer.Argument(help="Where to write the PNG; - for standard output.")],
    app: Annotated[str | None, typer.Option("--app", help="The application whose window is meant.")] = None,
    surface: SurfaceOption = None,
    marks: Annotated[bool, typer.Option("--marks", help="Draw labels on what can be acted upon.")] = False,
    desktop: DesktopOption = None,
) -> None:
    """Take a picture of a window, or of an isolated desktop.

    Examples:
      surehand screenshot desktop.png
      surehand screenshot --app mousepad --marks window.png
      surehand screenshot --surface w3 - | feh -
    """
    if file == "-" and out().as_json:
        raise InvalidRequest("--json and a picture cannot share standard output", fix="name a file")
    if app is not None and surface is not None:
        raise InvalidRequest("name an application or a window, not both")
    with hand(desktop) as session, out().working("taking a picture"):
        picture = session.screenshot(surface if app is None else session.app(app).window_id(), marks=marks)
    png = _marked(picture) if marks else picture.png
    if file == "-":
        sys.stdout.buffer.write(png)
        return
    try:
        Path(file).write_bytes(png)
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}", fix="name another file") from error
    size = f"{picture.capture.get('width')}×{picture.capture.get('height')} pixels"
    found = {"file": file, "bytes": len(png), "capture": picture.capture}
    named = [f"[{one['label']}] {one['role']} {one['name']!r}" for one in picture.marks]
    out().data(found | ({"marks": list(picture.marks)} if marks else {}), [f"{file}: {size}", *named])


def _marked(picture: Picture) -> bytes:
    """Draw a picture's marks on it, whole."""
    from surehand.tools.drawing import Drawn  # noqa: PLC0415 - only pictures need what draws
    from surehand.tools.encoding import Wish, deliver  # noqa: PLC0415

    drawn = [Drawn(one["label"], tuple(one["box"]), one.get("cut", False)) for one in picture.marks]
    edge = max(picture.capture["width"], picture.capture["height"])
    return deliver(picture.png, Wish("png", 100, edge, limits.FRAME_BYTES_MAX), drawn).data


def wait(  # noqa: PLR0913 - one parameter for each option
    *,
    app: AppArgument = None,
    surface: SurfaceOption = None,
    role: RoleOption = None,
    name: NameOption = None,
    contains: ContainsOption = None,
    context: ContextOption = None,
    labelled: LabelOption = None,
    query: QueryOption = None,
    value: Annotated[str | None, typer.Option("--value", help="Until it has this value.")] = None,
    gone: Annotated[bool, typer.Option("--gone", help="Until it is gone instead.")] = False,
    title: Annotated[str | None, typer.Option("--title", help="Until the title of that window contains this.")] = None,
    condition: Annotated[list[str] | None, typer.Option("--condition", help="A condition in JSON; repeatable.")] = None,
    mode: Annotated[Literal["all", "any"], typer.Option("--mode", help="All conditions, or any.")] = "all",
    timeout: TimeoutOption = TIMEOUT_DEFAULT,
    desktop: DesktopOption = None,
) -> None:
    """Wait until something is there, has a value, or is gone. Not in time is a normal answer: exit code 0.

    Examples:
      surehand wait mousepad --role dialog
      surehand wait gnome-calculator --role text --value 408 --timeout 10
      surehand wait mousepad --role dialog --gone --json | jq .data.satisfied
    """
    filters = filters_from(role=role, name=name, contains=contains, context=context, labelled=labelled, query=query)
    conditions: list[dict[str, Any]] = [read_json(one, "--condition") for one in condition or ()]
    if title is not None:
        conditions.append({"kind": "title_contains", "contains": title})
    if filters:
        wanted = [*(to_value(one) for one in filters)]
        if value is not None:
            wanted.append({"value": {"text": value}})
        kind = "element_gone" if gone else "element_exists"
        conditions.append({"kind": kind, "query": {"filters": wanted, "max_results": 1}})
    if not conditions:
        raise InvalidRequest("say what to wait for", fix="--role and --name, --title, or --condition")
    with hand(desktop) as session, out().working("waiting"):
        satisfied = place_of(session, app, surface).wait_for(*conditions, mode=mode, timeout_s=timeout)
    out().data({"satisfied": satisfied}, "satisfied" if satisfied else "not in time")


def capabilities(surface: SurfaceOption = None, desktop: DesktopOption = None) -> None:
    """Say what works, before anything is done: actions, routes, and whether they work in the background.

    Example:
      surehand capabilities
    """
    with hand(desktop) as session:
        found = session.capabilities(surface)
    listed = {"(desktop)": found.get("desktop_actions", ()), **found.get("surfaces", {})}
    rows = [
        (window, fact["action"], fact["target_kind"], fact["route"], fact["background"])
        for window, facts in listed.items()
        for fact in facts
    ]
    level = f"{found.get('desktop')}: {found.get('isolation')}, trust level {found.get('trust_level')}"
    out().data(found, [level, *table(("WINDOW", "ACTION", "TARGET", "ROUTE", "BACKGROUND"), rows)])


def status(
    operation_id: Annotated[str, typer.Argument(help="The operation's id.")], desktop: DesktopOption = None
) -> None:
    """Say what is known of an operation: its end, what was sent, what to check.

    Example:
      surehand status op-5f1c…
    """
    with hand(desktop) as session:
        found = session.status(operation_id)
    kind = (found.get("terminal") or {}).get("kind") or found.get("state") or "never seen"
    lines = [f"{operation_id}: {kind}"]
    if check := found.get("check"):
        lines.append(str(check))
    if resolution := found.get("resolution"):
        lines.append(f"a person said: {resolution}")
    out().data(found, lines)


COMMANDS: Final[dict[str, Any]] = {
    "apps": apps,
    "surfaces": surfaces,
    "observe": observe,
    "query": query,
    "read": read,
    "screenshot": screenshot,
    "wait": wait,
    "capabilities": capabilities,
    "status": status,
}
