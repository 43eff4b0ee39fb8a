"""A fake host behind real sockets, in a thread of its own, and the values it answers with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.daemon.fakes import FakeHost, Running, running_in_thread

HASH = "a" * 64


def until(fact: Callable[[], bool], seconds: float = 5) -> None:
    """Wait until a fact about the host's thread holds."""
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, "it never became so"
        time.sleep(0.002)


def match(label: str = "e1", **facts: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "label": label,
        "role": "button",
        "name": "Save",
        "states": ["enabled", "showing", "visible"],
        "actions": ["click"],
        "context": "",
        "ref": {
            "kind": "element",
            "scene_id": "sc1",
            "generation": 1,
            "element_id": label,
            "provenance_hash": HASH,
            "fingerprint_hash": HASH,
            "context_hash": HASH,
        },
    }
    return {**value, **facts}


def receipt(operation_id: str, **facts: Any) -> dict[str, Any]:
    value = {
        "operation_id": operation_id,
        "action_hash": HASH,
        "action": "invoke",
        "principal": "uid:0",
        "started_at_ms": 1000,
        "finished_at_ms": 1007,
        "backend": "atspi",
        "route": "atspi.action",
        "isolation": "isolated",
        "interaction_mode": "interactive",
        "context_preservation": "not_applicable",
        "effect": "verified",
        "evidence": {},
        "authority_mode": "daemon",
        "trust_level": "A",
        "decision_id": "d1",
    }
    return {**value, **facts}


def reply(operation_id: str, status: str = "succeeded", **facts: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"operation_id": operation_id, "status": status}
    if status not in {"refused", "approval_required"}:
        effect = "unknown" if status == "outcome_unknown" else "verified"
        value["terminal"] = {"kind": status, "receipt": receipt(operation_id, effect=effect)}
        value["proof"] = {"seq": 3, "record_hash": HASH}
    if status == "approval_required":
        value["approval"] = {"approval_id": "ap1"}
    return {**value, **facts}


def refused(operation_id: str, code: str, **facts: Any) -> dict[str, Any]:
    return reply(operation_id, "refused", error={"code": code, "message": f"it is {code}", "retry_safe": True, **facts})


class Desk(FakeHost):
    """A host with one application whose matches and replies a test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.matches: list[Any] = [[match()]]
        self.replies: list[Any] = []
        self.acts: list[dict[str, Any]] = []
        self.script.update(query=self.query, act=self.act, wait=self.wait, surfaces=self.surfaces)

    @staticmethod
    def _next(queue: list[Any]) -> Any:
        value = queue.pop(0) if len(queue) > 1 else queue[0]
        if isinstance(value, Exception):
            raise value
        return value

    async def query(self, _channel: Any, _params: Any, _progress: Any) -> dict[str, Any]:
        return {"matches": self._next(self.matches), "scene_id": "sc1", "generation": 1}

    async def act(self, _channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        self.acts.append(params["request"])
        operation_id = params["request"]["operation_id"]
        if not self.replies:
            return reply(operation_id)
        value = self._next(self.replies)
        return value(operation_id) if callable(value) else value

    async def wait(self, *_: Any) -> dict[str, Any]:
        return {"satisfied": False, "elapsed_ms": 0, "conditions": []}

    async def surfaces(self, *_: Any) -> dict[str, Any]:
        return {"surfaces": [{"surface_id": "w1", "title": "notes"}]}

    def named(self, method: str) -> list[dict[str, Any]]:
        """The params of every call of a method."""
        return [params for name, params in self.calls if name == method]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    host = Desk()
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "run"))
    with running_in_thread(tmp_path, host) as run:
        host.run = run  # type: ignore[attr-defined]
        yield host


@pytest.fixture
def run(desk: Desk) -> Running:
    found: Running = desk.run  # type: ignore[attr-defined]
    return found
