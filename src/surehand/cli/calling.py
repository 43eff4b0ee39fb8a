"""`surehand call`: one tool, or a sequence of them in one session, with the arguments that agents give (spec §11.6)."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand import limits
from surehand.cli.output import EXIT_APPROVAL, EXIT_INTERRUPTED, Finished, out, table
from surehand.cli.targeting import DesktopOption
from surehand.errors import InvalidRequest, SurehandError, from_value
from surehand.model.record import Record, convert
from surehand.tools.catalog import TOOLS, UsageError, find_tool
from surehand.tools.catalog import call as call_tool
from surehand.tools.context import Context
from surehand.tools.references import NAME, fill, names_in
from surehand.tools.schema import input_schema
from surehand.tools.tool import Answer, Tool

_STATUSES: Final = {"interrupted": EXIT_INTERRUPTED, "approval_required": EXIT_APPROVAL}


class Call(Record, frozen=True, kw_only=True, rename={"name": "as"}):
    """One call of a sequence."""

    tool: str
    args: dict[str, Any] = {}
    name: str | None = None


def call(
    tool: Annotated[str | None, typer.Argument(help="Which; --list shows them.")] = None,
    *,
    args: Annotated[str | None, typer.Option("--args", help="Its arguments, a JSON object.")] = None,
    args_file: Annotated[str | None, typer.Option("--args-file", help="The same from a file, or - for input.")] = None,
    calls: Annotated[
        str | None, typer.Option("--calls", help='A sequence from a file, or -: [{"tool", "args", "as"}, …].')
    ] = None,
    desktop: DesktopOption = None,
    image_file: Annotated[
        Path | None,
        typer.Option("--image-file", help="Where to write the picture that the last call gave, in its format."),
    ] = None,
    list_tools: Annotated[bool, typer.Option("--list", help="Show the tools; with a tool, its arguments.")] = False,
) -> None:
    """Call a tool as an agent would, and show what an agent gets.

    Examples:
      surehand call --list
      surehand call list_windows
      surehand call query --args '{"app": "mousepad", "role": "menu"}'
      surehand call observe --args-file observe.json --json
      surehand call --calls steps.json

    A sequence runs in one session and stops at the first call that is refused or fails. A call with "as" names its
    result; later arguments use it: {"target": "${found.matches.0.label}"}. What stands alone keeps its type.
    """
    if list_tools:
        _list(tool)
        return
    if (tool is None) == (calls is None):
        raise InvalidRequest("name a tool, or give --calls", fix="`surehand call --list` shows the tools")
    if calls is not None:
        if args is not None or args_file is not None:
            raise InvalidRequest("--calls has the arguments in it; --args and --args-file go with one tool")
        planned = read_calls(_read(calls))
    else:
        planned = [Call(tool=str(tool), args=_arguments(args, args_file))]
    check(planned)
    with out().working("calling"):
        answers, stopped = asyncio.run(_run(planned, desktop))
    _tell(planned, answers, stopped, sequence=calls is not None, image_file=image_file)


def _list(name: str | None) -> None:
    if name is None:
        shown = [{"name": tool.name, "title": tool.title, "kind": tool.kind, "core": tool.core} for tool in TOOLS]
        rows = [[tool.name, tool.kind, tool.title] for tool in TOOLS]
        out().data({"tools": shown}, table(["TOOL", "KIND", "WHAT"], rows))
        return
    tool = _find(name)
    schema = input_schema(tool.args)
    value = {"name": tool.name, "description": tool.description, "input_schema": schema}
    out().data(value, [tool.description, json.dumps(schema, indent=2, ensure_ascii=False)])


def _find(name: str) -> Tool:
    try:
        return find_tool(TOOLS, name)
    except UsageError as error:
        raise InvalidRequest(str(error)) from error


# --- reading ---------------------------------------------------------------------------------------------------------


def _arguments(inline: str | None, source: str | None) -> dict[str, Any]:
    if inline is not None and source is not None:
        raise InvalidRequest("give --args or --args-file, not both")
    if inline is None and source is None:
        return {}
    try:
        data = _read(source) if source is not None else str(inline).encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest("the arguments are not Unicode") from error
    value = read_json(data)
    if not isinstance(value, dict):
        raise InvalidRequest("arguments are a JSON object")
    return value


def _read(source: str) -> bytes:
    try:
        if source == "-":
            data = sys.stdin.buffer.read(limits.REQUEST_BYTES_MAX + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(limits.REQUEST_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidRequest(f"cannot read {source}: {error.strerror}") from error
    if len(data) > limits.REQUEST_BYTES_MAX:
        raise InvalidRequest(f"{source} has more than {limits.REQUEST_BYTES_MAX} bytes")
    return data


def read_json(data: bytes) -> Any:
    """Return strict JSON's value.

    Raises:
        InvalidRequest: not UTF-8, not JSON, a key twice, or a number that is none.
    """
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"not JSON: {error}", fix="""such as '{"app": "mousepad"}', quotes and all""") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise InvalidRequest("a key stands twice in one object")
    return value


def _no_number(text: str) -> Any:
    raise InvalidRequest(f"{text} is no number of JSON")


def read_calls(data: bytes) -> list[Call]:
    """Return the calls of a file.

    Raises:
        InvalidRequest: not a list of calls, none, or too many.
    """
    value = read_json(data)
    if not isinstance(value, list) or not value:
        raise InvalidRequest("a sequence is a list of calls", fix='[{"tool": "list_windows", "as": "found"}]')
    if len(value) > limits.MCP_CALLS_MAX:
        raise InvalidRequest(f"a sequence has at most {limits.MCP_CALLS_MAX} calls")
    return [convert(Call, one) for one in value]


def check(planned: list[Call]) -> None:
    """Refuse what cannot work before anything is called.

    Raises:
        InvalidRequest: an unknown tool, a name twice, or a reference to what is not named before.
    """
    named: set[str] = set()
    for number, one in enumerate(planned, 1):
        _find(one.tool)
        for name in names_in(one.args):
            if name not in named:
                raise InvalidRequest(f"call {number} refers to {name}, which no earlier call is named")
        if one.name is not None:
            if one.name in named:
                raise InvalidRequest(f"two calls are named {one.name}")
            if NAME.fullmatch(one.name) is None:
                raise InvalidRequest(f"call {number}: a name is letters, digits, _ and -")
            named.add(one.name)


# --- calling ---------------------------------------------------------------------------------------------------------


async def _run(planned: list[Call], desktop: str | None) -> tuple[list[Answer], SurehandError | None]:
    """Call one after the other; return the answers, and what kept the next call from being made."""
    context = Context(desktop=desktop, client="cli")
    answers: list[Answer] = []
    results: dict[str, Any] = {}
    try:
        for one in planned:
            try:
                answer = await call_tool(context.for_call(None), _find(one.tool), fill(one.args, results))
            except UsageError as error:
                return answers, InvalidRequest(str(error), fix=f"`surehand call {one.tool} --list` shows its arguments")
            except InvalidRequest as error:
                return answers, error
            answers.append(answer)
            if one.name is not None:
                results[one.name] = answer.data
            if _is_short_of_success(answer):
                break
    finally:
        await context.close()
    return answers, None


def _tell(
    planned: list[Call],
    answers: list[Answer],
    stopped: SurehandError | None,
    *,
    sequence: bool,
    image_file: Path | None,
) -> None:
    """Say what every call came to, and end with the exit code of the last."""
    for one, answer in zip(planned, answers, strict=False):
        if not out().as_json and not _is_short_of_success(answer):
            heading = [("dim", f"# {one.tool}{f' as {one.name}' if one.name else ''}")] if sequence else []
            out().data(answer.data, [*heading, answer.text])
    pictures = answers[-1].images if answers else ()
    if image_file is not None and pictures:
        image_file.write_bytes(pictures[0].data)
    elif pictures and not out().as_json:
        out().note("(there is a picture: --image-file FILE writes it)")
    error, code = _end(answers, stopped)
    if error is not None:
        if sequence:
            error.details = {**error.details, "results": [answer.data for answer in answers]}
        raise Finished(out().failed(error, exit_code=code))
    if out().as_json:
        values = [_value(answer, written=image_file is not None) for answer in answers]
        out().data({"results": values} if sequence else values[0])


def _is_short_of_success(answer: Answer) -> bool:
    return answer.is_error or answer.data.get("status") in _STATUSES


def _end(answers: list[Answer], stopped: SurehandError | None) -> tuple[SurehandError | None, int | None]:
    if stopped is not None or not answers:
        return stopped, None
    last = answers[-1]
    more = {name: value for name, value in last.data.items() if name != "error"}
    if last.is_error:
        error = from_value(_error_in(last.data))
        error.details = {**error.details, **more}
        return error, None
    status = last.data.get("status")
    if status in _STATUSES:
        message = last.text.partition("\n")[0]
        waiting = status == "approval_required"  # nothing happened yet
        return SurehandError(message, code=status, details=more, retry_safe=waiting), _STATUSES[status]
    return None, None


def _error_in(data: dict[str, Any]) -> dict[str, Any]:
    """Return the error of an answer, or of the step that stopped its steps."""
    steps = data.get("steps")
    found = data.get("error") or next((one["error"] for one in reversed(steps or ()) if "error" in one), None)
    return found if isinstance(found, dict) else {}


def _value(answer: Answer, *, written: bool) -> dict[str, Any]:
    if not answer.images or written:
        return answer.data
    images = [{"mime": one.mime, "base64": base64.b64encode(one.data).decode()} for one in answer.images]
    return {**answer.data, "images": images}


COMMANDS: Final[dict[str, Any]] = {"call": call}
