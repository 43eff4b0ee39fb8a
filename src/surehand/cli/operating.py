"""Commands of the operator: run the daemon, look at it, end it, record a person's word."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import typer

from surehand.cli.output import Line, out, table
from surehand.client.control import Control
from surehand.core.wire.places import Places
from surehand.errors import InvalidRequest


def serve(
    config: Annotated[str | None, typer.Option("--config", help="Configuration file. Default: the operator's.")] = None,
    state_dir: Annotated[str | None, typer.Option("--state-dir", help="Where journal and keys live.")] = None,
    idle_exit: Annotated[
        float | None,
        typer.Option("--idle-exit", min=0, help="End after so many seconds without a connection; 0: never."),
    ] = None,
) -> None:
    """Run the daemon in this terminal until Ctrl-C.

    Examples:
      surehand serve
      surehand serve --config /etc/surehand/config.toml --idle-exit 0

    Clients start a daemon by themselves where none runs; this is for a terminal, a service manager, or a
    configuration of your own. SUREHAND_RUNTIME_DIR chooses the folder of its sockets. Where a start with --config or
    --state-dir fails, clients do not start one with the usual configuration instead.
    """
    from surehand.daemon import entry  # noqa: PLC0415 - the daemon's own entry is loaded by this command alone

    def announce(where: Places) -> None:
        out().note(f"serving at {where.agent_socket}; Ctrl-C ends it in order")

    entry.set_up_logging()
    options = entry.ServeOptions(config=config, state_dir=state_dir, idle_exit_s=idle_exit, by_operator=True)
    entry.run_daemon(options, announce)
    out().data({"ended": True}, "ended")


def ps() -> None:
    """Show who is connected, which desktops run, what is in flight and what is unresolved.

    Example:
      surehand ps
    """
    with Control() as control:
        found = control.call("ps")
    lines: list[Line] = []
    lines += table(
        ("SESSION", "PRINCIPAL", "ROLE", "CLIENT", "PID", "DESKTOP"),
        [
            (
                one.get("session"),
                one.get("principal"),
                one.get("role"),
                (one.get("client") or {}).get("name"),
                (one.get("client") or {}).get("pid"),
                one.get("desktop"),
            )
            for one in found.get("sessions", ())
        ],
    )
    for title, key in (("in flight", "in_flight"), ("unresolved", "unresolved"), ("desktops", "desktops")):
        rows = found.get(key) or ()
        lines += ["", f"{title}: {len(rows)}"]
        names = list(dict.fromkeys(name for row in rows for name in row))
        if rows:
            lines += table(
                [name.upper().replace("_", " ") for name in names], [[row.get(n) for n in names] for row in rows]
            )
    held = found.get("holds") or ()
    if held:
        lines += ["", ("bad", f"{len(held)} {'hold keeps' if len(held) == 1 else 'holds keep'} agents from acting")]
        lines.append("fix: surehand holds, then surehand resume or surehand hand-back DESKTOP")
    paused = [str(one["principal"]) for one in found.get("budgets") or () if one["paused"]]
    if paused:
        lines += ["", ("bad", f"paused, their budget is used up: {', '.join(paused)}")]
        lines.append("fix: surehand budgets renew PRINCIPAL")
    out().data(found, lines)


def stop() -> None:
    """End the daemon in order: what is in flight may finish, everything held is released.

    Example:
      surehand stop
    """
    with Control() as control:
        found = control.call("stop")
    out().data(found, "the daemon is ending")


def resolve(
    operation_id: Annotated[str, typer.Argument(help="An operation that ended as outcome_unknown.")],
    verdict: Annotated[Literal["happened", "not_happened"], typer.Argument(help="What you saw.")],
    principal: Annotated[
        str | None, typer.Option("--principal", help="Whose operation; needed where several have this id.")
    ] = None,
) -> None:
    """Record your word about an unknown outcome, beside the terminal, which stays.

    Example:
      surehand resolve op-5f1c… not_happened
    """
    with Control() as control:
        owner = principal or _owner(control, operation_id)
        found = control.call("resolve", {"principal": owner, "operation_id": operation_id, "verdict": verdict})
    out().data(found, f"{operation_id} of {owner}: recorded as {verdict.replace('_', ' ')}")


def _owner(control: Control, operation_id: str) -> str:
    unresolved = control.call("ps").get("unresolved") or ()
    owners = sorted({one["principal"] for one in unresolved if one["operation_id"] == operation_id})
    if len(owners) != 1:
        raise InvalidRequest(
            f"{len(owners) or 'no'} principals have an unresolved operation {operation_id}",
            fix="`surehand ps` lists them; name one with --principal",
            details={"principals": owners},
        )
    return str(owners[0])


COMMANDS: Final[dict[str, Any]] = {"serve": serve, "ps": ps, "stop": stop, "resolve": resolve}
