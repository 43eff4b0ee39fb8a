"""The page of approvals: what waits, one question as it is signed, and the answer.

Guarantees (spec §6.4):
- An answer is signed for the record that this browser was shown, recomputed here; a question that changed since, that
  was never shown, or that stood for less than `CONSOLE_READ_MS_MIN`, is not answered.
- A form that is sent twice is answered once; whoever sent it again is told what became of it.
- Nothing counts that the daemon has not taken.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console import question
from surehand.console.credentials import CREDENTIAL_FIELD, Said
from surehand.console.door import BY_ITSELF, Session
from surehand.console.views import console, form, now_ms, render, see, session
from surehand.core.approval import presentation_hash
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, SurehandError
from surehand.model.approval import PendingApproval, crop_hash
from surehand.model.record import convert, to_value

TITLE: Final = "Approvals"
PATH: Final = "/approvals"

_SAID: Final = {"approve": "Approved", "while": "Approved for a while", "deny": "Denied"}
#: What a question may be after each word; else somebody else's came first.
_FITS: Final = {"approve": {"approved", "waiting"}, "deny": {"denied"}}
#: How an end is told; the rest is told as it is called.
_ENDS: Final = {
    "unanswered": "nobody answered in time",
    "used": "approved, and done",
    "changed": "changed, and asked anew",
    "withdrawn": "taken back",
    "pending": "waits for an answer",
}


class _Shown(NamedTuple):
    """When this browser was first shown a question, and which record."""

    at_ms: int
    presentation_hash: str


class _Memory:
    """What is remembered of one browser: what it was shown, and what it answered."""

    def __init__(self) -> None:
        self.shown: OrderedDict[str, _Shown] = OrderedDict()
        #: What became of an answer, by question and credential.
        self.answered: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        #: One answer at a time: the second of a form sent twice finds what became of the first.
        self.answering = asyncio.Lock()
        self.flash: dict[str, str] | None = None

    def show(self, pending: PendingApproval) -> None:
        """Note that a question is shown now, unless this very record was before."""
        wanted = presentation_hash(pending.presentation)
        known = self.shown.get(pending.approval_id)
        if known is None or known.presentation_hash != wanted:
            self.shown[pending.approval_id] = _Shown(now_ms(), wanted)
        while len(self.shown) > limits.CONSOLE_SHOWN_MAX:
            self.shown.popitem(last=False)

    def note(self, key: tuple[str, str], told: dict[str, str]) -> None:
        """Keep what became of an answer."""
        self.answered[key] = told
        while len(self.answered) > limits.CONSOLE_ANSWERED_MAX:
            self.answered.popitem(last=False)


def _memory(who: Session) -> _Memory:
    found: _Memory = who.kept.setdefault(PATH, _Memory())
    return found


# --- the list --------------------------------------------------------------------------------------------------


async def listed(request: Request) -> Response:
    """Show what waits, oldest first, a page at a time, and below it what nobody answered."""
    after = request.query_params.get("after", "")
    memory = _memory(session(request))
    rows: list[dict[str, Any]] | None = None
    ended: list[dict[str, Any]] = []
    found: dict[str, Any] = {"total": 0, "next": None}
    try:
        wanted = {"limit": limits.CONSOLE_ROWS_MAX, **({"after": after} if after else {})}
        found = await console(request).daemon.call("approvals", wanted)
        rows = [question.summary(convert(PendingApproval, one)) for one in found["pending"]]
        ends = (await console(request).daemon.call("approvals.ended", {}))["ended"]
        ended = [_end(one) for one in ends if one["status"] == "unanswered"]
        # What ended between the two looks waits no more.
        over = {one["approval_id"] for one in ends}
        rows = [one for one in rows if one["approval_id"] not in over]
    except SurehandError as error:
        if after and isinstance(error, InvalidRequest):
            return see(PATH)  # the question that the page began after is gone
    flash = None
    if BY_ITSELF not in request.headers:
        # A page that loads itself again shows none of it, and must not take it from the one that is about to.
        flash, memory.flash = memory.flash, None
    return await render(
        request,
        "approvals.html",
        rows=rows,
        ended=ended,
        total=found["total"],
        after=after,
        following=found["next"],
        flash=flash,
    )


def _end(one: dict[str, Any]) -> dict[str, Any]:
    shown = {**one, "verb": question.verb(one["action"]), "tone": question.tone(one["risk"])}
    return {**shown, "said": _ENDS.get(one["status"], one["status"])}


# --- one question ----------------------------------------------------------------------------------------------


async def shown(request: Request) -> Response:
    """Show one question, whole."""
    return await _page(request, {})


async def _page(request: Request, said: dict[str, str], error: SurehandError | None = None) -> Response:
    """Show a question with what was typed, but for a passphrase, and with what was wrong."""
    shared, memory = console(request), _memory(session(request))
    found = await shared.daemon.call("approvals.show", {"approval_id": request.path_params["approval_id"]})
    pending = None if found["pending"] is None else convert(PendingApproval, found["pending"])
    context: dict[str, Any] = {"stands": found["stands"], "approvers": found["approvers"], "error": error, "said": said}
    context["mine"] = [told for (approval_id, _), told in memory.answered.items() if approval_id == _id(request)]
    context["how"] = _how(found)
    status = 200 if error is None else 403 if isinstance(error, AuthorityDenied) else 409
    if pending is None:
        return await render(request, "approval_over.html", status=status, **context)
    memory.show(pending)
    kinds, what = await shared.credentials.offers(pending), pending.presentation
    return await render(
        request,
        "approval.html",
        status=status,
        pending=pending,
        is_open=found["stands"]["status"] == "pending",
        summary=question.summary(pending),
        lines=question.lines(what),
        steps=question.steps(what),
        record=question.record(what),
        kinds=kinds,
        offers=[offer for _, offers in kinds for offer in offers],
        why_not=question.why_not_for_a_while(pending),
        uses=said.get("uses", str(limits.CONSOLE_USES_DEFAULT)),
        minutes=said.get("minutes", str(limits.CONSOLE_MINUTES_DEFAULT)),
        chosen=said.get(CREDENTIAL_FIELD, ""),
        reason_max=limits.REASON_CHARS_MAX,
        **context,
    )


async def picture(request: Request) -> Response:
    """Send the picture that belongs to a question: the one whose hash is signed, or none."""
    shared, name = console(request), {"approval_id": _id(request)}
    pending = (await shared.daemon.call("approvals.show", name))["pending"]
    wanted = None if pending is None else convert(PendingApproval, pending).presentation.crop_hash
    png = b""
    if wanted is not None:
        told = (await shared.daemon.call("approvals.picture", name)).get("png_base64", "")
        png = base64.b64decode(told, validate=True)
    if wanted is None or crop_hash(png) != wanted:
        raise InvalidRequest("this question has no picture, or not the one that is signed")
    return Response(png, media_type="image/png")


def _how(found: dict[str, Any]) -> str:
    status = str(found["stands"]["status"])
    return _ENDS.get(status, status)


def _id(request: Request) -> str:
    found: str = request.path_params["approval_id"]
    return found


# --- the answer ------------------------------------------------------------------------------------------------


async def answered(request: Request) -> Response:
    """Sign and give an answer."""
    said, memory = form(request), _memory(session(request))
    key = (_id(request), said.get(CREDENTIAL_FIELD, ""))
    async with memory.answering:
        if key in memory.answered:
            return await _page(request, {}, Conflict(f"you answered this before: {memory.answered[key]['text']}"))
        try:
            told = await _answer(request, said, memory)
        except SurehandError as error:
            return await _page(request, said, error)
        memory.note(key, told)
    memory.flash = told
    return see(PATH)


async def _answer(request: Request, said: dict[str, str], memory: _Memory) -> dict[str, str]:
    wanted = word(said)
    shared = console(request)
    found = await shared.daemon.call("approvals.show", {"approval_id": _id(request)})
    if found["pending"] is None or found["stands"]["status"] != "pending":
        raise Conflict(f"this question is over: {_how(found)}")
    pending = convert(PendingApproval, found["pending"])
    _check_shown(pending, said, memory)
    signed = await shared.credentials.sign(pending, wanted, said)
    state = (await shared.daemon.call("answer", {"answer": to_value(signed)}))["state"]
    what = f"{question.verb(pending.presentation.action)} {question.about(pending.presentation)}"
    done = _SAID[said["answer"]] if state in _FITS[wanted.answer] else f"Taken, but the question is {state}"
    text = f"{done}, as {signed.approver}: {what}"
    if state == "waiting":
        text += f". Your yes counts; {pending.needed} people are needed"
    if signed.standing is not None:
        text += f". {signed.standing.uses_max} more uses, for {said['minutes']} minutes"
    return {"text": text, "tone": "warn" if state == "waiting" else "bad" if wanted.answer == "deny" else "good"}


def _check_shown(pending: PendingApproval, said: dict[str, str], memory: _Memory) -> None:
    """Refuse an answer to anything but what this browser was shown, for long enough to be read.

    Raises:
        Conflict: naming what is otherwise; the question stays open.
    """
    wanted = presentation_hash(pending.presentation)
    known = memory.shown.get(pending.approval_id)
    if known is None or known.presentation_hash != wanted or said.get("hash") != wanted:
        raise Conflict("this is not what you were shown before", fix="read it as it is now, then answer")
    if now_ms() - known.at_ms < limits.CONSOLE_READ_MS_MIN:
        raise Conflict("the answer came before this could be read", fix="read it, then answer again")


def word(said: dict[str, str]) -> Said:
    """Return what the form says.

    Raises:
        InvalidRequest: it says nothing that can be taken.
    """
    answer = said.get("answer", "")
    if answer not in _SAID:
        raise InvalidRequest("neither a yes nor a no was given")
    reason = said.get("reason", "")
    if len(reason) > limits.REASON_CHARS_MAX:
        raise InvalidRequest(f"a reason has at most {limits.REASON_CHARS_MAX} characters")
    if answer != "while":
        return Said(answer="deny" if answer == "deny" else "approve", reason=reason)
    uses = _number("uses", said, limits.STANDING_USES_MAX)
    minutes = _number("minutes", said, limits.CONSOLE_MINUTES_MAX)
    return Said(answer="approve", reason=reason, leave=(uses, minutes))


def _number(name: str, said: dict[str, str], most: int) -> int:
    text = said.get(name, "").strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and 1 <= int(text) <= most):
        raise InvalidRequest(f"{name}: a whole number from 1 to {most} is needed")
    return int(text)


ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route(PATH, listed),
    Route(f"{PATH}/{{approval_id}}", shown, methods=["GET"]),
    Route(f"{PATH}/{{approval_id}}", answered, methods=["POST"]),
    Route(f"{PATH}/{{approval_id}}/picture", picture),
)
