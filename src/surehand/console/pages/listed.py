"""The pages, in the order of the navigation. A page is a module with `TITLE`, `PATH` and `ROUTES`."""

from __future__ import annotations

from typing import Final, Protocol

from starlette.routing import BaseRoute

from surehand.console.pages import approvals, audit, credentials, doctor, now, policy, sessions, timeline


class Page(Protocol):
    """What a module of this folder has."""

    TITLE: str
    PATH: str
    ROUTES: tuple[BaseRoute, ...]


PAGES: Final[tuple[Page, ...]] = (approvals, now, timeline, audit, policy, sessions, credentials, doctor)
