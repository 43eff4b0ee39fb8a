"""The command tree, and the one place where errors become exit codes.

`--json` may stand anywhere before a `--`; it is taken out first, so that even a usage error answers in JSON.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer

from surehand.cli import (
    acting,
    agents,
    approving,
    auditing,
    budgets,
    calling,
    consoling,
    desktops,
    installing,
    keys,
    looking,
    machine,
    modes,
    operating,
    policies,
    requesting,
    secrets,
    separating,
    stopping,
    watching,
)
from surehand.cli.output import EXIT_OK, EXIT_SIGINT, EXIT_USAGE, Finished, Output, start_run
from surehand.errors import Cancelled, InternalError, InvalidRequest, SurehandError

#: Typer carries its own copy of click in newer releases; the base of its usage errors is found through a public one.
_USAGE_ERROR: Final[type[Exception]] = next(
    cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException"
)

_EPILOG: Final = "Add --json for one JSON envelope on standard output. Exit codes: docs/reference/cli.md."

_HELP: Final = """Let software agents use real computers in a way people can trust.

First steps:
  surehand doctor                                  what works here, and how to fix what does not
  surehand desktop start --name play               an isolated desktop, until you stop it
  surehand desktop launch play -- mousepad         an application in it
  surehand observe mousepad                        what is on the screen, as text
  surehand act set_value "Hello" --app mousepad --role text
  surehand audit verify                            check the evidence

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no daemon or no backend,
4 outcome unknown, 5 interrupted by the person, 6 a person has to approve first."""


def build() -> typer.Typer:
    """Return the command tree."""
    app = typer.Typer(
        name="surehand",
        help=_laid_out(_HELP),
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in (machine, looking, acting, agents, calling, installing, operating, consoling, stopping):
        for name, command in module.COMMANDS.items():
            _add(app, name, command)
    approvals = {**approving.COMMANDS, "watch": watching.watch}
    for name, about, commands in (
        ("desktop", "Isolated desktops: start one, list them.", desktops.COMMANDS),
        ("approvals", "What agents ask people: list, show, approve, deny, watch.", approvals),
        ("requests", "What agents ask people to do: list, take over, hand back.", requesting.COMMANDS),
        ("standing", "Standing grants: leave for several uses, counted and revocable.", approving.STANDING),
        ("mode", "What answers questions to people: ask, deny, risk-auto, full-access.", modes.COMMANDS),
        ("budgets", "What agents have spent of their budgets, and leave to go on.", budgets.COMMANDS),
        ("audit", "The evidence: verify it, show it, make a page of it.", auditing.COMMANDS),
        ("keys", "Keys: which there are, and an approver's own.", keys.COMMANDS),
        ("secret", "Secrets that agents enter by reference and never see.", secrets.COMMANDS),
        ("policy", "What agents may do: write it, check it, try it, ask why.", policies.COMMANDS),
        ("setup", "Set this machine up: users apart for daemon, agents and approvers.", separating.COMMANDS),
    ):
        group = typer.Typer(help=about, short_help=about, no_args_is_help=True, rich_markup_mode=None, epilog=_EPILOG)
        for command_name, command in commands.items():
            _add(group, command_name, command)
        app.add_typer(group, name=name)
    return app


def _add(group: typer.Typer, name: str, command: Callable[..., Any]) -> None:
    settings = {"help_option_names": ["-h", "--help"]}
    text = inspect.getdoc(command) or ""
    # Given, a list of commands wraps it; what is made up by itself is cut in the middle of a sentence.
    short = " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."
    group.command(name, help=_laid_out(text), short_help=short, epilog=_EPILOG, context_settings=settings)(command)


def _laid_out(text: str) -> str:
    """Mark paragraphs with indented lines, such as examples, so that help keeps their lines apart."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"\b\n{one}" if "\n  " in f"\n{one}" else one for one in paragraphs)


def _show_version(wanted: bool) -> None:
    if wanted:
        machine.version_()
        raise Finished(EXIT_OK)


def _root(
    json: Annotated[
        bool, typer.Option("--json", help="One JSON envelope on standard output; may stand anywhere.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Take what every command takes."""


def split_json(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--json` out of the arguments before a `--`."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    kept = [word for word in given[:end] if word != "--json"]
    return kept + given[end:], len(kept) < end


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given, as_json = split_json(sys.argv[1:] if arguments is None else arguments)
    output = start_run(as_json=as_json)
    try:
        value = build()(args=given, prog_name="surehand", standalone_mode=False)
        # Typer turns Ctrl-C into this value; a command's own exit codes come as `Finished`.
        return _failed(output, KeyboardInterrupt()) if value == EXIT_SIGINT else EXIT_OK
    except Finished as end:
        return end.exit_code
    except BrokenPipeError:
        # Whoever read our output has enough; writing more, even at exit, would only raise again.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115, PTH123
        return EXIT_OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where errors become exit codes
        return _failed(output, error)


def _failed(output: Output, error: BaseException) -> int:
    """Say what went wrong in the form this run speaks, and return the exit code."""
    if isinstance(error, SurehandError):
        return output.failed(error)
    if isinstance(error, _USAGE_ERROR):
        return _usage(output, error)
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        return output.failed(Cancelled("ended by the person"), exit_code=EXIT_SIGINT)
    if not output.as_json:
        raise error  # a defect: the traceback is for whoever reports it
    return output.failed(InternalError(f"a defect of the command line: {type(error).__name__}", retry_safe=False))


def _usage(output: Output, error: Exception) -> int:
    message = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "surehand")
    if type(error).__name__ == "NoArgsIsHelpError":  # a command with subcommands alone: its message is the whole help
        if not output.as_json:
            output.note(message)
            return EXIT_USAGE
        message = "no command was given"
    return output.failed(InvalidRequest(message, fix=f"see `{path} --help`"), exit_code=EXIT_USAGE)
