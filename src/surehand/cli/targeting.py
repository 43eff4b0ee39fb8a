"""The options that say where to look and what for, shared by every command that needs them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import out
from surehand.client import queries
from surehand.client.sync_client import App, Hand, Locator
from surehand.client.sync_client import open as open_hand
from surehand.errors import InvalidRequest
from surehand.model.query import Filter, Query

AppOption = Annotated[str | None, typer.Option("--app", help="Application, as `surehand apps` lists it.")]
AppArgument = Annotated[str | None, typer.Argument(help="Application, as `surehand apps` lists it.")]
SurfaceOption = Annotated[str | None, typer.Option("--surface", help="Window id, as `surehand surfaces` lists it.")]
RoleOption = Annotated[str | None, typer.Option("--role", help="Role, such as button, text, checkbox, menuitem.")]
NameOption = Annotated[str | None, typer.Option("--name", help="The name on the screen, exactly.")]
ContainsOption = Annotated[str | None, typer.Option("--contains", help="A part of the name instead.")]
ContextOption = Annotated[str | None, typer.Option("--context", help="The label around it, such as its row's.")]
LabelOption = Annotated[str | None, typer.Option("--labelled", help="The text of the label beside it.")]
QueryOption = Annotated[
    str | None, typer.Option("--query", help="A query in JSON instead: a list of filters. See docs/reference/wire.md.")
]
DesktopOption = Annotated[
    str | None, typer.Option("--desktop", help="Which desktop; policy decides. Default: the one.")
]
TimeoutOption = Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait for the target.")]

TIMEOUT_DEFAULT: Final = 5.0


@contextlib.contextmanager
def hand(desktop: str | None) -> Iterator[Hand]:
    """Open a session, starting the daemon where none runs."""
    with out().working("connecting"):
        session = open_hand(desktop=desktop, client="cli")
        session.__enter__()
    try:
        yield session
    finally:
        session.close()


def place_of(session: Hand, app: str | None, surface: str | None) -> App:
    """Return the application or window meant.

    Raises:
        InvalidRequest: none, or both.
    """
    if (app is None) == (surface is None):
        raise InvalidRequest("name either an application or --surface", fix="`surehand surfaces` lists both")
    return session.app(app) if app is not None else session.surface(str(surface))


def filters_from(
    *,
    role: str | None,
    name: str | None,
    contains: str | None,
    context: str | None,
    labelled: str | None,
    query: str | None,
) -> tuple[Filter, ...]:
    """Return the filters that the options mean; none where none is given."""
    filters: list[Filter] = []
    if query is not None:
        filters += queries.filters_of(read_json(query, "--query"))
    if role is not None:
        filters.append(Filter(role=queries.checked_role(role)))
    if name is not None:
        filters += queries.by_text(name)
    if contains is not None:
        filters += queries.by_text(contains, exact=False)
    if context is not None:
        filters.append(Filter(context=queries.text_match(context)))
    if labelled is not None:
        filters += queries.by_label(labelled)
    return tuple(filters)


def locator_of(place: App, filters: tuple[Filter, ...]) -> Locator:
    """Return the locator; refuses to mean everything.

    Raises:
        InvalidRequest: no filter at all.
    """
    if not filters:
        raise InvalidRequest("say what to look for", fix="--role and --name, or --query")
    return place.locator(Query(filters=filters))


def read_json(text: str, what: str) -> Any:
    """Read an option's JSON.

    Raises:
        InvalidRequest: it is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{what} is not JSON: {error}") from error
