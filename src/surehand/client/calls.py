"""What a hand can ask and do, written once over a session; the two clients wrap it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surehand import limits
from surehand.client.aim import Aim, send, until_answered
from surehand.client.locators import Step
from surehand.client.options import ActOptions, new_operation_id, plain, request_value
from surehand.client.results import BatchResult
from surehand.client.scenes import Picture, Scene, Target
from surehand.client.session import Session
from surehand.core.wire.messages import Welcome
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.actions import Action, kind_of
from surehand.model.query import Query
from surehand.model.record import Record, convert, to_value
from surehand.model.request import Batch, Request
from surehand.model.targets import Target as TargetRecord


def place(app: str | None, surface: str | None) -> dict[str, str]:
    """Return where to look.

    Raises:
        TypeError: not exactly one of them.
    """
    if (app is None) == (surface is None):
        raise TypeError("name either an app or a surface")
    return {"app": app} if app is not None else {"surface": str(surface)}


class Calls:
    """One session's calls, as coroutines over links."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def apps(self) -> list[dict[str, Any]]:
        """Return the running applications."""
        return list((await self.session.ask("apps", {}, wait_ms=limits.APP_READ_MS_MAX))["apps"])

    async def silent(self) -> list[dict[str, Any]]:
        """Return the applications that run and do not answer, or show nothing."""
        return list((await self.session.ask("apps", {}, wait_ms=limits.APP_READ_MS_MAX)).get("silent", ()))

    async def surfaces(self, app: str | None) -> list[dict[str, Any]]:
        """Return the windows."""
        params = {} if app is None else {"app": app}
        return list((await self.session.ask("surfaces", params, wait_ms=limits.APP_READ_MS_MAX))["surfaces"])

    async def capabilities(self, surface: str | None) -> dict[str, Any]:
        """Return what works."""
        params = {} if surface is None else {"surface": surface}
        found: dict[str, Any] = await self.session.ask("capabilities", params, wait_ms=limits.APP_READ_MS_MAX)
        return found

    async def observe(self, where: dict[str, str], wishes: dict[str, Any]) -> Scene:
        """Return a scene; with its elements, and of a window at rest, unless the wishes say otherwise."""
        given = {name: value for name, value in wishes.items() if value is not None}
        params = {"targets": True, "settle": True, **where, **given}
        wait_ms = limits.APP_READ_MS_MAX + int(params.get("timeout_ms", limits.SETTLE_BUSY_CAP_MS))
        return Scene(await self.session.ask("observe", params, wait_ms=wait_ms))

    async def query(self, where: dict[str, str], query: Query) -> list[Target]:
        """Return what matches."""
        return [Target(match) for match in await Aim(self.session, where, query.filters).matches(query.max_results)]

    async def screenshot(self, surface: str | None, label: str | None, *, marks: bool) -> Picture:
        """Return a picture."""
        params: dict[str, Any] = {"marks": True} if marks else {}
        params |= {name: value for name, value in (("surface", surface), ("label", label)) if value is not None}
        return Picture.of(await self.session.ask("screenshot", params, wait_ms=limits.APP_READ_MS_MAX))

    async def wait_for(
        self, where: dict[str, str], conditions: Sequence[Record | dict[str, Any]], mode: str, timeout_s: float
    ) -> bool:
        """Wait for conditions."""
        if not 1 <= len(conditions) <= limits.WAIT_CONDITIONS_MAX:
            raise ValueError(f"1..{limits.WAIT_CONDITIONS_MAX} conditions, not {len(conditions)}")
        waited = await Aim(self.session, where).wait([plain(one) for one in conditions], timeout_s, mode)
        return bool(waited["satisfied"])

    async def status(self, operation_id: str) -> dict[str, Any]:
        """Return what is known of an operation."""
        found: dict[str, Any] = await self.session.ask("status", {"operation_id": operation_id})
        return found

    async def cancel(self, operation_id: str) -> dict[str, Any]:
        """Cancel an operation that is not dispatched yet."""
        found: dict[str, Any] = await self.session.ask("cancel", {"operation_id": operation_id})
        return found

    async def propose(self, request: Request | dict[str, Any]) -> dict[str, Any]:
        """Return the action hash a host would sign."""
        found: dict[str, Any] = await self.session.ask("propose", {"request": checked(request)})
        return found

    async def batch(self, steps: Sequence[Step], operation_id: str | None, on_refusal: str) -> BatchResult:
        """Send a batch."""
        batch_id = operation_id or new_operation_id()
        requests = [await self._step(batch_id, index, step) for index, step in enumerate(steps)]
        value = {"operation_id": batch_id, "steps": requests, "on_refusal": on_refusal}
        checked_batch = to_value(convert(Batch, value))
        checked_batch.setdefault("steps", [])
        wait_ms = sum(int(one.get("deadline_ms", limits.DEADLINE_MS_DEFAULT)) for one in requests)
        answer = await self.session.act("batch", {"batch": checked_batch}, batch_id, wait_ms=wait_ms)
        return BatchResult(tuple(answer["replies"]), len(steps), answer.get("stopped_by"))

    async def _step(self, batch_id: str, index: int, step: Step) -> dict[str, Any]:
        """Resolve a step now where its target is there, else leave it to the moment it runs."""
        try:
            found = await step.aim.matches(2)
        except SurehandError:
            found = []
        if len(found) == 1:
            target = found[0]["ref"]
        else:
            surface = await step.aim.only_surface()
            target = {"kind": "query", "surface": surface, "query": to_value(step.aim.query(2))}
        return request_value(f"{batch_id}:{index}", step.action, target, step.options)


def checked(request: Request | dict[str, Any]) -> dict[str, Any]:
    """Return a request's JSON value, checked as the daemon will check it."""
    record = request if isinstance(request, Request) else convert(Request, request)
    value: dict[str, Any] = to_value(record)
    return value


class Operation:
    """One operation given as a whole request, or as an action and a target; its id never changes."""

    def __init__(
        self,
        session: Session,
        action: Request | Action | dict[str, Any],
        target: Target | TargetRecord | dict[str, Any] | None,
        options: ActOptions,
    ) -> None:
        self._session = session
        self._options = options
        if isinstance(action, Request) or (isinstance(action, dict) and "action" in action):
            if target is not None or options.keys() - {"observe_after"}:
                raise TypeError("a whole request takes no target and no options but observe_after")
            self.request = checked(action)
            return
        value = plain(action) if isinstance(action, dict) else {"kind": kind_of(action), **to_value(action)}
        aimed = target.ref if isinstance(target, Target) else {"kind": "none"} if target is None else plain(target)
        if not isinstance(aimed, dict):
            raise InvalidRequest("a target is a Target, a target record or its JSON value")
        operation_id = options.get("operation_id") or new_operation_id()
        self.request = request_value(operation_id, value, aimed, options)

    async def present(self, wait_approval_ms: int = 0) -> dict[str, Any]:
        """Send it and return the reply value."""
        return await send(self._session, self.request, self._options, wait_approval_ms)

    async def present_until_answered(self, timeout_s: float) -> dict[str, Any]:
        """Present again until the approval is answered or the time is over."""
        return await until_answered(self._session, self.present, timeout_s)


def launch_action(argv: Sequence[str]) -> dict[str, Any]:
    """Return the action that launches a program.

    Raises:
        TypeError, ValueError: a shell line instead of a list, or an empty list.
    """
    if isinstance(argv, str):
        raise TypeError("launch takes a list of words, not a shell line")
    if not argv:
        raise ValueError("launch needs a program")
    return {"kind": "app", "op": "launch", "name": argv[0], "arguments": list(argv[1:])}


def about(welcome: Welcome | None) -> dict[str, Any]:
    """Return a welcome as plain facts; empty before the connection."""
    if welcome is None:
        return {}
    names = ("principal", "session", "role", "trust_level", "authority_mode", "daemon")
    return {name: getattr(welcome, name) for name in names}
