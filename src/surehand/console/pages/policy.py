"""The policy: what is in force, in plain words; what it would say; what one that is only tried would do otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.views import console, failed, render, see
from surehand.errors import SurehandError

TITLE: Final = "Policy"
PATH: Final = "/policy"

#: What a person can ask about, as a case names it; the last ones are what the screen says.
_ASKED: Final = ("action", "principal", "app", "place", "risk", "isolation", "name", "role", "title")
_OBSERVED: Final = ("name", "role", "title")
_RISKS: Final = ("read", "reversible", "external", "destructive")
_ISOLATIONS: Final = ("isolated", "display_only", "shared")
_SAYS: Final[dict[str, tuple[str, str]]] = {
    "allow": ("Allowed", "good"),
    "deny": ("Denied", "bad"),
    "require_approval": ("A person is asked", "warn"),
}

_SAID: Final = {
    "read": {"tone": "good", "text": "It was read again, and what it says is in force."},
    "kept": {"tone": "bad", "text": "The policy in force stays: the file cannot be used."},
}


async def listed(request: Request) -> Response:
    """Show the policy in force, and the answer to a question where one is asked."""
    daemon = console(request).daemon
    question = {name: request.query_params.get(name, "").strip() for name in _ASKED}
    after = request.query_params.get("after", "")
    first = int(after) if after.isascii() and after.isdecimal() and len(after) < 6 else 0
    state, rules, answer, fault = None, None, None, None
    try:
        state = await daemon.call("policy")
        rules = await daemon.call("policy.rules", {"after": first, "limit": limits.CONSOLE_ROWS_MAX})
    except SurehandError:
        state = None
    if state is not None and question["action"]:
        try:
            answer = told(await daemon.call("policy.ask", {"request": case_of(question)}))
        except SurehandError as error:
            fault = error
    return await render(
        request,
        "policy.html",
        state=None if state is None else standing(state),
        shadow=None if state is None else state.get("shadow"),
        rules=rules,
        own=[] if rules is None else [ruled(one) for one in rules["rules"] if not one["built_in"]],
        built_in=[] if rules is None else [ruled(one) for one in rules["rules"] if one["built_in"]],
        next_path="" if rules is None or rules["next"] is None else f"{PATH}?after={rules['next']}",
        actions=[] if rules is None else rules["actions"],
        question=question,
        risks=_RISKS,
        isolations=_ISOLATIONS,
        answer=answer,
        fault=fault,
        # In the address, not in the session: a load in the background must not take it away.
        flash=_SAID.get(request.query_params.get("said", "")),
    )


def standing(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of the policy in force; what is not known is empty."""
    names = ("closed", "reload_failed", "fails", "answers", "file", "revision")
    return {
        **{name: state.get(name) or "" for name in names},
        "engine": state.get("engine", "builtin"),
        "generation": state.get("generation", 1),
    }


def case_of(question: Mapping[str, str]) -> str:
    """Return a question as the case that the daemon reads; every text is quoted as TOML quotes it."""
    lines = [f"{name} = {_quoted(question[name])}" for name in _ASKED if question[name] and name not in _OBSERVED]
    seen = [f"{name} = {_quoted(question[name])}" for name in _OBSERVED if question[name]]
    return "\n".join([*lines, *([f"observed = {{{', '.join(seen)}}}"] if seen else [])])


def _quoted(text: str) -> str:
    # JSON's strings are TOML's, but for what TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def ruled(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a rule."""
    text, tone = _SAYS.get(one["effect"], (one["effect"], ""))
    return {**one, "says": text, "tone": tone}


def told(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of an answer."""
    text, tone = _SAYS.get(found["outcome"], (found["outcome"], ""))
    return {
        **found,
        "says": text,
        "tone": tone,
        "looks": [
            {
                "title": "With what the screen says" if look["with_screen"] else "Without the screen",
                "categories": look.get("categories", ()),
                "matched": [{**ruled(one), "covers": one.get("covers", ())} for one in look.get("matched", ())],
            }
            for look in found["looks"]
        ],
    }


async def reload(request: Request) -> Response:
    """Have the daemon read its policy again."""
    try:
        found = await console(request).daemon.call("policy.reload")
    except SurehandError as error:
        return await failed(request, error, back=PATH)
    return see(f"{PATH}?said={'read' if found['reloaded'] else 'kept'}")


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(PATH, listed), Route(f"{PATH}/reload", reload, methods=["POST"]))
