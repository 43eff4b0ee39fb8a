"""Starting a program: one operation, the window it opened, and whether that shows what was expected.

A launch aims at no window, so nothing of it is read back by the daemon: its receipt says that it was executed. What is
expected (`expect`) is looked for here, in the windows that it opened and in no others, and the answer says whether it
came; that it did not come never means that the program was not started.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any, Final

from surehand import limits
from surehand.errors import InvalidRequest, VerificationFailed
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.deeds import Deed
from surehand.tools.doing import Change, Deadline, Expect, Expected, Terms, present
from surehand.tools.outcomes import CHANGE, answer_of
from surehand.tools.picturing import with_picture
from surehand.tools.places import Find
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool, refusal

#: How long each of several windows is waited on before the next one is looked at.
_TURN_MS: Final = 250


class LaunchApp(Record, frozen=True, kw_only=True):
    """Starts a program."""

    name: Annotated[str, brief("a program, or an application such as org.gnome.gedit.desktop", "string")]
    arguments: list[str] | None = None
    expect: Annotated[Expected, brief("of its window, as in act", "string", "object")] = None
    operation_id: str | None = None
    deadline_ms: Deadline = limits.DEADLINE_MS_DEFAULT
    reconciles: str | None = None
    change: Change = "diff"
    image: bool = False


async def launch_app(context: Context, args: LaunchApp) -> Answer:
    """Start a program; the daemon waits until its window is there."""
    conditions = _conditions(args.expect) if isinstance(args.expect, Expect) else []
    terms = Terms(
        operation_id=context.operation_id(args.operation_id),
        chosen=args.operation_id is not None,
        deadline_ms=args.deadline_ms,
        reconciles=args.reconciles,
        # Its text is what changed; without it, which windows are new is still told.
        change="windows" if args.change == "none" else args.change,
    )
    reply = await present(context, Deed(do="launch_app", name=args.name, arguments=args.arguments), terms)
    answer = answer_of(context, reply)
    if answer.is_error and answer.data["error"]["code"] == "app_not_found" and "fix" not in answer.data["error"]:
        fix = "name a program of this desktop, such as mousepad, or a file of /usr/share/applications"
        answer.data["error"] = {**answer.data["error"], "message": "there is no such program", "fix": fix}
        return Answer(answer.data, f"app_not_found: there is no such program\nfix: {fix}", is_error=True)
    if answer.is_error or answer.data["status"] != "succeeded":
        return answer
    if opened := answer.data.get("opened"):
        # Where its text was not asked for, it is where the agent is all the same.
        context.window = context.window if context.window in opened else opened[0]
    elif not answer.data.get("replayed"):
        answer = replace(answer, text=f"{answer.text}\n{_no_window(answer.data.get('output', {}))}")
    if conditions:
        answer = await _expected(context, answer, conditions, args.deadline_ms)
    return await with_picture(context, answer, context.window) if args.image and opened else answer


def _no_window(output: dict[str, Any]) -> str:
    if (code := output.get("exit_code")) is not None:
        return f"the program ended at once with status {code}"
    if output.get("ended"):
        return "the program has ended and opened no window: it handed over to one that runs, or had nothing to show"
    return "no window of it yet: wait_for or list_windows"


def _conditions(expect: Expect) -> list[dict[str, Any]]:
    """Return what must be so in one window that was opened, in the daemon's words.

    A launch has no element of its own: `value`, `state` and `text` are of one that shows in the window.

    Raises:
        InvalidRequest: it says nothing.
    """
    found: list[dict[str, Any]] = []
    if expect.value is not None or expect.state is not None or expect.text is not None:
        element = Find(contains=expect.text, value=expect.value, state=expect.state)
        found.append({"kind": "element_exists", "query": element.query()})
    if expect.appears is not None:
        found.append({"kind": "element_exists", "query": expect.appears.query()})
    if expect.disappears is not None:
        found.append({"kind": "element_gone", "query": expect.disappears.query()})
    if expect.title is not None:
        found.append({"kind": "title_contains", "contains": expect.title})
    if not found:
        raise InvalidRequest("expect says nothing; leave it out for the window alone")
    return found


async def _expected(context: Context, answer: Answer, conditions: list[dict[str, Any]], deadline_ms: int) -> Answer:
    """Say whether what was expected shows in a window that was opened, waiting for it."""
    if answer.data.get("replayed"):
        said = "not looked for what is expected: this had ended before; look with wait_for"
        return replace(answer, text=f"{answer.text}\n{said}")
    budget_ms = min(deadline_ms, limits.WAIT_MS_DEFAULT)
    window = await _window_with(context, answer.data.get("opened") or [], conditions, budget_ms)
    if window is not None:
        context.window = window
        text = f"{answer.text}\nwhat was expected shows in window {window}"
        return replace(answer, data={**answer.data, "expected": True}, text=text)
    told = refusal(
        VerificationFailed(
            "the program was started, and no window of it showed what was expected",
            fix="observe its window; do not start it again",
        ),
        operation_id=answer.data["operation_id"],
    )
    kept: dict[str, Any] = {name: answer.data[name] for name in ("change", "opened", "output") if name in answer.data}
    return Answer({**told.data, **kept, "expected": False}, f"{told.text}\n{answer.text}", is_error=True)


async def _window_with(
    context: Context, opened: list[str], conditions: list[dict[str, Any]], budget_ms: int
) -> str | None:
    """Return the first of some windows in which all conditions hold, as soon as there is one."""
    until = time.monotonic() + budget_ms / 1000
    while opened:
        for window in opened:
            left_ms = max(1, round((until - time.monotonic()) * 1000))
            turn_ms = left_ms if len(opened) == 1 else min(left_ms, _TURN_MS)
            params = {"surface": window, "conditions": conditions, "timeout_ms": turn_ms}
            found = await context.ask("wait", params, wait_ms=turn_ms + limits.APP_READ_MS_MAX)
            if found["satisfied"]:
                return window
        if time.monotonic() >= until:
            break
    return None


TOOLS: Final = (
    Tool(
        name="launch_app",
        title="Start an application",
        description="Start a program; answers with the text of its window. Never a shell line.",
        kind="act",
        args=LaunchApp,
        output=CHANGE,
        handler=launch_app,
        core=True,
        destructive=False,
    ),
)
