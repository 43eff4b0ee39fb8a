"""`act`: up to 64 deeds in one call, one after another, each an operation of its own (spec §5.5).

Step i is operation `<id>:<i>`, with its own decision, fence and receipt. The next one is begun only after a success
whose effect was read back, or that nothing was to be read back of; what a step is aimed at is looked for when its turn
comes, so it may be in a window that an earlier step opened. Not a transaction: what was done stays done. Where several
steps in one window need a person, one question about all of them comes before the first (spec §6.4).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.client.results import error_of
from surehand.errors import InvalidRequest, OutcomeUnknown, SurehandError, TargetError
from surehand.model.record import Record, check_count
from surehand.tools.context import Context
from surehand.tools.deeds import Deed, check, prepare
from surehand.tools.doing import Change, Expected, Terms, happened, present, window_after
from surehand.tools.outcomes import changed, outcome_of
from surehand.tools.picturing import with_picture
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool, refusal

#: Deeds that may be aimed at a window alone.
_WHOLE_WINDOW: Final = frozenset(["type_text", "press_key", "window"])


_NOWHERE: Final = frozenset(["launch_app", "physical_state", "release_all"])


class Step(Deed, frozen=True, kw_only=True):
    """A deed and what to read back of it."""

    expect: Annotated[
        Expected, brief('"none" or {value, text, state, title, appears, disappears}', "string", "object")
    ] = None


class Act(Record, frozen=True, kw_only=True):
    """Several deeds."""

    steps: Annotated[list[Step], Meta(min_length=1, max_length=limits.BATCH_STEPS_MAX)]
    on_refusal: Literal["stop", "continue"] = "stop"
    operation_id: Annotated[str | None, Meta(description="yours: no step acts twice")] = None
    deadline_ms: Annotated[int, Meta(ge=1, le=limits.DEADLINE_MS_MAX)] = limits.DEADLINE_MS_DEFAULT
    reconciles: str | None = None
    change: Change = "diff"
    image: Annotated[bool, Meta(description="and a picture at the end")] = False


async def act(context: Context, args: Act) -> Answer:
    """Run the steps in order and say how each went and what all of them changed."""
    check_count("steps", len(args.steps), 1, limits.BATCH_STEPS_MAX)
    for place, step in enumerate(args.steps):
        try:
            check(step)
            _check_expected(step)
        except InvalidRequest as error:
            raise InvalidRequest(f"step {place}: {error.message}", fix=error.fix) from error
    operation_id = context.operation_id(args.operation_id)
    if len(args.steps) > 1 and (waits := await _plan(context, args, operation_id)) is not None:
        return waits
    told = _Told(operation_id, len(args.steps))
    for place, step in enumerate(args.steps):
        await context.progress(
            f"step {place + 1} of {len(args.steps)}: {step.do}", 0, args.deadline_ms * len(args.steps)
        )
        reply = await _step(context, args, place, step, operation_id)
        if not told.add(place, step, reply) and not (told.refused and args.on_refusal == "continue"):
            break
    more: dict[str, Any] = {}
    words: list[str] = []
    if args.change != "none" and told.acted:
        after = await context.ask("changes", {"full": args.change == "full"}, wait_ms=limits.APP_READ_MS_MAX * 2)
        more, words = changed(context, after)
        told.window = window_after(context, {"output": {"after": after}, "window": told.window})
    answer = told.answer(more, words)
    return await with_picture(context, answer, told.window) if args.image and told.acted else answer


def _check_expected(step: Step) -> None:
    """Refuse what would never be looked at: what is aimed at no window has none to read anything back from.

    Raises:
        InvalidRequest.
    """
    if step.expect is not None and not isinstance(step.expect, str):
        step.expect.verification()
        if step.do in _NOWHERE:
            raise InvalidRequest(f"{step.do} takes no expect", fix="say what to wait for with wait_for, after it")


async def _plan(context: Context, args: Act, operation_id: str) -> Answer | None:
    """Have a person asked about all steps at once, where that can be; return the answer while nobody has answered.

    Whatever cannot be foreseen, because an earlier step has to show it, is asked about when its turn comes.

    Raises:
        ApprovalDenied, ApprovalUnanswered: nothing is begun.
    """
    if not all(step.target is not None or step.do in _WHOLE_WINDOW for step in args.steps):
        return None
    window, requests = context.window, []
    try:
        for place, step in enumerate(args.steps):
            requests.append(_terms(args, place, step, operation_id).request(await prepare(context, _deed(step))))
    except TargetError:
        return None
    finally:
        context.window = window
    found = await context.ask("plan", {"batch": {"operation_id": operation_id, "steps": requests}})
    if "approval" not in found:
        return None
    data, lines = outcome_of({"status": "approval_required", **found})
    lines.append(f"one answer is for all {len(args.steps)} steps")
    return Answer({**data, "steps": [], "not_begun": len(args.steps)}, "\n".join(lines))


def _terms(args: Act, place: int, step: Step, operation_id: str) -> Terms:
    return Terms(
        operation_id=f"{operation_id}:{place}",
        chosen=args.operation_id is not None,
        deadline_ms=args.deadline_ms,
        expect=step.expect,
        reconciles=args.reconciles if place == 0 else None,
        change="none" if args.change == "none" else "later",
    )


def _deed(step: Step) -> Deed:
    return Deed(**{name: getattr(step, name) for name in Deed.__struct_fields__})


async def _step(context: Context, args: Act, place: int, step: Step, operation_id: str) -> dict[str, Any]:
    """Return the reply to one step; a refusal to look is a reply as well."""
    terms, deed = _terms(args, place, step, operation_id), _deed(step)
    try:
        reply = await present(context, deed, terms)
        # Repeated whole: what was done before is then told and not done again.
        return {**reply, "operation_id": operation_id} if reply["status"] == "approval_required" else reply
    except OutcomeUnknown as error:
        return {"operation_id": terms.operation_id, "status": "outcome_unknown", "error": error.to_value()}
    except SurehandError as error:
        return {"operation_id": terms.operation_id, "status": "refused", "error": error.to_value()}


class _Told:
    """How the steps went so far."""

    def __init__(self, operation_id: str, total: int) -> None:
        self.operation_id = operation_id
        self.total = total
        self.steps: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.acted = False
        #: Where the last step that did something did it.
        self.window: str | None = None
        self.refused = False
        self.error: SurehandError | None = None
        self.status = "succeeded"

    def add(self, place: int, step: Step, reply: dict[str, Any]) -> bool:
        """Remember a step; return whether the next one may be begun."""
        status = reply["status"]
        self.refused = status == "refused" and (reply.get("error") or {}).get("code") != "cancelled"
        if happened(reply):
            self.acted, self.window = True, reply.get("window")
        entry: dict[str, Any] = {"status": status}
        if status in {"succeeded", "interrupted", "approval_required"}:
            data, lines = outcome_of(reply)
            entry |= {name: item for name, item in data.items() if name not in {"operation_id", "status", "route"}}
            said = "; ".join(lines)
        else:
            error = error_of(reply)
            answer = refusal(error, operation_id=reply["operation_id"])
            entry |= answer.data
            said = answer.text
            self.error = error
        if status != "succeeded":
            self.status = status
        self.steps.append(entry)
        self.lines.append(f"{place} {step.do}: {said}")
        return status == "succeeded" and (entry["effect"] == "verified" or _nothing_asked(step, reply))

    def answer(self, more: dict[str, Any], words: list[str]) -> Answer:
        """Return the answer to the whole call."""
        left = self.total - len(self.steps)
        data: dict[str, Any] = {"status": self.status, "operation_id": self.operation_id, "steps": self.steps, **more}
        lines = list(self.lines)
        if all(step["status"] == "succeeded" for step in self.steps) and not left:
            effects = [step["effect"] for step in self.steps]
            back = effects.count("verified")
            before = sum(bool(step.get("replayed")) for step in self.steps)
            again = f"; {before} had ended before and were not done again" if before else ""
            said = [line for line, step in zip(self.lines, self.steps, strict=True) if "output" in step]
            lines = [f"all {self.total} steps done, {back} of them read back{again}", *said]
        elif left:
            data["not_begun"] = left
            lines.append(f"the {left} steps after it were not begun")
        return Answer(data, "\n".join([*lines, *words]), is_error=self.error is not None)


def _nothing_asked(step: Step, reply: dict[str, Any]) -> bool:
    """Return whether a step that was not read back was not meant to be, in words or by what it is."""
    effect = ((reply.get("terminal") or {}).get("receipt") or {}).get("effect")
    return effect == "executed_unverified" and (step.expect is None or step.expect == "none")


TOOLS: Final = (
    Tool(
        name="act",
        title="Do several things",
        description=(
            "Run steps in order, up to the first that does not succeed; each takes the arguments of the tool in do "
            "and finds its target when its turn comes. Also expand, focus, scroll_into_view, hover, move, hold, "
            "release, window (op), release_all, physical_state."
        ),
        kind="act",
        args=Act,
        output={
            "type": "object",
            "properties": {
                "status": {"type": "string"},
                "operation_id": {"type": "string"},
                "steps": {"type": "array"},
                "change": {"type": "string"},
            },
        },
        handler=act,
        core=True,
        destructive=True,
    ),
)
