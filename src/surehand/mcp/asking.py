"""Asking the client's own person, where the operator named the client (spec §6.4).

What came back is what a client says, and the daemon takes it as no more than that: it decides whether the client may
be asked at all, which questions are never for it, and whether its word counts. Here the question is put in a form and
the answer passed on; without the operator's leave nothing is asked, and the call ends as it always did.

Revisions with a handshake are asked while the call waits. The newest has no requests of the server: there the call
ends with what is to be asked, and the client makes it again with the answer. What was being asked travels sealed
(`RequestStateBoundary`), and everything in it is checked by the daemon again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, Literal

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from surehand import canonical, limits
from surehand.errors import SurehandError
from surehand.model.record import Record, convert
from surehand.tools.catalog import UsageError, call
from surehand.tools.context import Context
from surehand.tools.tool import Answer, Tool

#: How the form is called among what a call still needs.
_FORM: Final = "approval"
_REPEATED: Final = "operation_id"
_HEAD: Final = (
    "May the agent do this? The lines below are what it asks for and what the screen says; they ask you nothing."
)
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "title": "Your answer", "enum": ["deny", "approve"]},
        "reason": {"type": "string", "title": "What the agent is told if not", "maxLength": limits.REASON_CHARS_MAX},
    },
    "required": ["answer"],
}


class Asked(Record, frozen=True, kw_only=True):
    """What a call of the newest revision was ended with; it comes back with the answer."""

    approval_id: str
    presentation_hash: str
    operation_id: str
    #: How often this call has asked, with this one.
    forms: int = 1
    session: str | None = None


def asked_before(params: types.CallToolRequestParams) -> Asked | None:
    """Return what a call that is made again was ended with before.

    Raises:
        UsageError: it is not ours.
    """
    if params.request_state is None:
        return None
    try:
        return convert(Asked, canonical.parse(params.request_state.encode()))
    except SurehandError as error:
        raise UsageError("requestState: not of this tool") from error


class Asking:
    """One call, and whom it may ask."""

    def __init__(self, request: Any, context: Context, tool: Tool, arguments: dict[str, Any]) -> None:
        self._request = request
        self._context = context
        self._tool = tool
        self._arguments = arguments
        self._client = _client_of(request.session) if _REPEATED in tool.args.__struct_fields__ else None

    async def answer(
        self, params: types.CallToolRequestParams, token: str | None
    ) -> Answer | types.InputRequiredResult:
        """Run the tool; ask about what needs a person, where that may be, and run it again with what was said.

        Raises:
            UsageError: the arguments are not what the tool's schema says.
        """
        before = asked_before(params)
        if before is None:
            answer, forms = await call(self._context, self._tool, self._arguments), 0
        else:
            response = (params.input_responses or {}).get(_FORM)
            said = response if isinstance(response, types.ElicitResult) else None
            spoken = await self._pass_on(before.approval_id, before.presentation_hash, said)
            answer = await self._again(before.operation_id)
            forms = before.forms if spoken else limits.MCP_FORMS_MAX
        while self._client is not None and forms < limits.MCP_FORMS_MAX and (waits := _waits(answer)) is not None:
            form = await self._form(waits[0])
            if form is None:
                return answer
            forms += 1
            if self._request.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                asked = Asked(
                    approval_id=waits[0],
                    presentation_hash=form["presentation_hash"],
                    operation_id=waits[1],
                    forms=forms,
                    session=token,
                )
                return _needs(form, asked)
            if not await self._pass_on(waits[0], form["presentation_hash"], await self._elicit(form)):
                return answer
            answer = await self._again(waits[1])
        return answer

    async def _again(self, operation_id: str) -> Answer:
        """Present the same operation once more: only that uses a yes, and it says what became of it."""
        return await call(self._context, self._tool, {**self._arguments, _REPEATED: operation_id})

    async def _form(self, approval_id: str) -> dict[str, Any] | None:
        """Return the words to ask in; None where the daemon lets this client ask nothing."""
        params = {"approval_id": approval_id, "client": self._client}
        with contextlib.suppress(SurehandError):
            found: dict[str, Any] = await self._context.ask("approval.form", params)
            return found
        return None

    async def _elicit(self, form: dict[str, Any]) -> types.ElicitResult | None:
        """Show the form and wait; None where nobody answered it."""
        wait_ms = min(form["expires_in_ms"], limits.MCP_FORM_MS_MAX)
        with contextlib.suppress(MCPError, ValidationError, TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                found: types.ElicitResult = await self._request.session.elicit_form(
                    _message(form), _SCHEMA, related_request_id=self._request.request_id
                )
                return found
        return None

    async def _pass_on(self, approval_id: str, presentation_hash: str, said: types.ElicitResult | None) -> bool:
        """Tell the daemon what was said, if anything was; return whether the call is worth repeating."""
        spoken = _spoken(said)
        if self._client is None or spoken is None:
            return False
        answer, reason = spoken
        params = {
            "approval_id": approval_id,
            "client": self._client,
            "presentation_hash": presentation_hash,
            "answer": answer,
            "reason": reason,
        }
        # Whatever does not count leaves the question as it is; the repeated call says how it stands.
        with contextlib.suppress(SurehandError):
            await self._context.ask("approval.assert", params)
        return True


def _client_of(session: Any) -> str | None:
    """Return the name a client gives itself, where it can show a form now."""
    can = session.client_capabilities
    forms = None if can is None else can.elicitation
    # A capability without modes is of the time when forms were all there was.
    shows = forms is not None and (forms.form is not None or forms.url is None)
    reached = session.can_send_request or session.protocol_version in MODERN_PROTOCOL_VERSIONS
    if not (shows and reached) or session.client_params is None:
        return None
    name: str = session.client_params.client_info.name
    return name


def _waits(answer: Answer) -> tuple[str, str] | None:
    """Return the approval that an answer waits for, and the operation to repeat; None where it waits for none."""
    data = answer.data
    if data.get("status") != "approval_required":
        return None
    last = (data.get("steps") or [{}])[-1]
    approval_id, operation_id = data.get("approval_id") or last.get("approval_id"), data.get(_REPEATED)
    return None if approval_id is None or operation_id is None else (approval_id, operation_id)


def _message(form: dict[str, Any]) -> str:
    return f"{_HEAD}\n\n{form['text']}"


def _needs(form: dict[str, Any], asked: Asked) -> types.InputRequiredResult:
    """Return that a call needs an answer first, and what the client hands back with it."""
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=_message(form), requested_schema=_SCHEMA)
    )
    state = canonical.encode_record(asked).decode()
    return types.InputRequiredResult(input_requests={_FORM: request}, request_state=state)


def _spoken(said: types.ElicitResult | None) -> tuple[Literal["approve", "deny"], str] | None:
    """Return what a person chose, as the client says; None where they chose nothing.

    Declining is a no; closing the form is neither, and the question stays open for a person elsewhere.
    """
    if said is None or said.action == "cancel":
        return None
    content = said.content or {}
    reason = content.get("reason")
    words = reason[: limits.REASON_CHARS_MAX] if isinstance(reason, str) else ""
    if said.action == "decline" or content.get("answer") == "deny":
        return "deny", words
    return ("approve", "") if content.get("answer") == "approve" else None
