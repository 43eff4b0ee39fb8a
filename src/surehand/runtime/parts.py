"""Everything a host is made of, wired by `compose` and handed to the methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from surehand.ports import Clock, Journal
from surehand.runtime.approvals import Approvals
from surehand.runtime.authority import Authority
from surehand.runtime.brakes import Brakes
from surehand.runtime.config import Config
from surehand.runtime.desks import Desks
from surehand.runtime.facts import FactFinder
from surehand.runtime.findings import Findings
from surehand.runtime.gateway import Gateway
from surehand.runtime.operations import Operations
from surehand.runtime.people import People
from surehand.runtime.reads import Reads
from surehand.runtime.scenes import Scenes
from surehand.runtime.session import Session


@dataclass(slots=True)
class Parts:
    """One host's parts. `describe_keys` says which keys there are, without them."""

    config: Config
    clock: Clock
    journal: Journal
    operations: Operations
    authority: Authority
    approvals: Approvals
    people: People
    findings: Findings
    facts: FactFinder
    scenes: Scenes
    reads: Reads
    gateway: Gateway
    desks: Desks
    describe_keys: Callable[[], dict[str, Any]]
    describe_journal: Callable[[], dict[str, Any]]
    verify_journal: Callable[[], Awaitable[dict[str, Any]]]
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)
    brakes: Brakes = field(default_factory=Brakes)
    #: What people who watch were shown last, by desktop (runtime/frames.py).
    views: dict[str, Any] = field(default_factory=dict)
    #: Tells whoever listens on the control socket; set by the host.
    publish: Callable[[str, dict[str, Any]], None] = lambda _kind, _value: None
    #: Set when an operator asks the daemon to stop.
    stop: Callable[[], None] = lambda: None
