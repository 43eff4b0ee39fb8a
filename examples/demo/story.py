"""The demo: an agent works on real applications, and everything it is told is checked against what really happened.

    ./scripts/demo [--view] [--keep] [--output DIR] [--pace SECONDS] [--json]

Ends with a table of what was tried and one HTML page of evidence. Exit code 0 only if every step ended as it had to,
the applications themselves agree, and an auditor that shares no code with Surehand finds the journal whole.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from expected import CHECKS, STEPS, Step
from world import (
    AgentProcess,
    Applications,
    Broken,
    Daemon,
    OperatorProcess,
    end_on_signals,
    private_folder,
    program,
    uninterrupted,
    wait_until,
)

from surehand.cli.evidence import page
from surehand.cli.film import read_film
from surehand.client.control import Control
from surehand.errors import SurehandError, Unavailable
from surehand.testing.desktop import running_desktop

ROOT: Final = Path(__file__).resolve().parents[2]
GEOMETRY: Final = (1440, 900)
WATCHED_PACE_S: Final = 0.8  # with --view, so that a person can follow
AUDIT_S: Final = 60


class Story:
    """One run: what the agent said, and what is true."""

    def __init__(self, say: Callable[[str], None], output: Path) -> None:
        self.say = say
        self.output = output
        self.started = time.monotonic()
        self.said: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, Any] = {"read": {}}
        self.report: dict[str, Any] = {}
        self.verdict: dict[str, Any] = {}

    # --- the run ------------------------------------------------------------------------------------------------

    def run(self, daemon: Daemon, applications: Applications, agent: AgentProcess, operator: OperatorProcess) -> None:
        """Play the world for the agent until it is done."""
        while (told := agent.next()) is not None:
            if "step" in told:
                self.said[told["step"]] = told
                self.say(f"  {_mark(told['reply']['status'])} {told['title']}: {_short(told['reply'])}")
            elif "waiting" in told:
                self._move(told["waiting"], daemon, applications)
                agent.go()
            elif "about_to" in told:
                self._kill(daemon, applications)
            elif "read" in told:
                self.facts["read"].setdefault(told["read"], []).append(told["text"])
            else:
                self.facts.update(told)
        self.facts["asked"] = operator.said()

    def _move(self, what: str, daemon: Daemon, applications: Applications) -> None:
        if what == "rows":
            applications.recycle_rows()
            self.say("  · the list puts other guests into its rows")
        elif what == "daemon":
            daemon.start()
            daemon.wait_ready()
            self.say("  · a new daemon serves the same journal")
        else:
            raise Broken(f"the agent waits for {what}")

    def _kill(self, daemon: Daemon, applications: Applications) -> None:
        """Kill the daemon once the application has the press, and before anybody can know what came of it."""
        wait_until(lambda: ("backup", None) in applications.guests_received(), "the press")
        in_flight = _state_of("backup")
        self.facts["killed"] = {"pid": daemon.kill(), "state": in_flight}
        self.say("  ✂ SIGKILL for the daemon, between claim and terminal")

    def look_at_the_truth(self, applications: Applications) -> None:
        """Ask the applications themselves."""
        self.facts["guests"] = applications.guests_received()
        self.facts["calculator"] = applications.calculator_says()
        self.facts["note_file"] = (applications.home / "note.txt").read_text("utf-8")
        self.facts["list_file"] = (applications.home / "list.txt").read_text("utf-8")

    # --- the evidence -------------------------------------------------------------------------------------------

    def collect(self, daemon: Daemon) -> None:
        """Take the report, end the daemon in order, and have the auditor look at the closed journal."""
        with Control(client="demo") as control:
            self.report = control.call("audit.report", wait_ms=AUDIT_S * 1000)
        daemon.stop()
        journal = self.output / "journal.sqlite"
        shutil.copyfile(daemon.state / journal.name, journal)
        held = [f"--holds={seq}:{record_hash}" for seq, record_hash in sorted(self.proofs().items())]
        done = subprocess.run(
            [program("surehand-verify"), str(journal), "--json", *held],
            capture_output=True,
            text=True,
            timeout=AUDIT_S,
            check=False,
        )
        self.verdict = {**json.loads(done.stdout), "exit_code": done.returncode}
        head = {"seq": self.verdict.get("events"), "record_hash": self.verdict.get("head")}
        self.report |= {"verdict": self.verdict, "head": head}

    def proofs(self) -> dict[int, str]:
        """Return the records the agent was told of: number and hash."""
        found = [told["reply"].get("proof") for told in self.said.values()]
        return {proof["seq"]: proof["record_hash"] for proof in found if proof}

    def write_page(self, film: Path) -> Path:
        """Write the one page."""
        path = self.output / "evidence.html"
        path.write_text(page(self.report, read_film(film)), "utf-8")
        return path

    # --- what is checked ----------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each thing the agent tried, with whether it ended as told."""
        return [self._row(number, step) for number, step in enumerate(STEPS, 1)]

    def _row(self, number: int, step: Step) -> dict[str, Any]:
        told = self.said.get(step.name)
        if told is None:
            return {"number": number, "step": step.name, "ok": False, "problem": "it was never tried"}
        reply = told["reply"]
        error = reply.get("error") or {}
        receipt = (reply.get("terminal") or {}).get("receipt") or (error.get("details") or {}).get("receipt") or {}
        row = {
            "number": number,
            "step": step.name,
            "title": told["title"],
            "operation_id": step.operation_id,
            "outcome": reply["status"],
            "code": error.get("code"),
            "gate": error.get("gate"),
            "effect": receipt.get("effect") if reply["status"] == "succeeded" else None,
            "route": receipt.get("route") or None,
            "replayed": bool(reply.get("replayed")),
            "ms": told["ms"],
            "evidence": self._evidence(step, reply),
        }
        problem = step.problem(row, reply)
        return {**row, "ok": problem is None, "problem": problem}

    def _evidence(self, step: Step, reply: dict[str, Any]) -> str | None:
        """Return the record behind an answer: what the agent was given, else the last of its kind in the journal."""
        if proof := reply.get("proof"):
            return f"{proof['seq']}:{proof['record_hash']}"
        events: list[dict[str, Any]] = next(
            (found for stream, found in self.report["operations"].items() if stream.endswith(f"/{step.operation_id}")),
            [],
        )
        fitting = [event for event in events if event["type"] in step.records]
        return f"{fitting[-1]['seq']}:{fitting[-1]['record_hash']}" if fitting else None

    def checks(self) -> list[dict[str, Any]]:
        """Return what the applications, the person and the auditor say, each with whether it fits."""
        found = []
        for name, check in CHECKS:
            try:
                problem = check(self.facts, self.verdict)
            except (KeyError, IndexError, TypeError) as error:
                problem = f"{type(error).__name__}: {error}"
            found.append({"check": name, "ok": problem is None, "problem": problem})
        return found


def _state_of(operation_id: str) -> str | None:
    """Return the state of an operation that is in flight, as the operator sees it."""
    with Control(client="demo") as control:
        found = control.call("ps")["in_flight"]
    return next((str(one["state"]) for one in found if one["operation_id"] == operation_id), None)


def _mark(status: str) -> str:
    return {"succeeded": "✓", "refused": "⊘", "approval_required": "?", "outcome_unknown": "!"}.get(status, "✗")


def _short(reply: dict[str, Any]) -> str:
    if error := reply.get("error"):
        if "gate" not in error:
            return f"{reply['status'].replace('_', ' ')}: {error['message']}"
        words = f"{reply['status'].replace('_', ' ')}, {error['code']} at the {error['gate']} gate"
        rule = (error.get("details") or {}).get("rule")
        return f"{words}: {error['message']}" + (f" [rule {rule}]" if rule else "") + _difference(error)
    if reply["status"] == "succeeded":
        receipt = reply["terminal"]["receipt"]
        again = ", replayed: nothing was done again" if reply.get("replayed") else ""
        return f"{receipt['effect'].replace('_', ' ')} via {receipt['route']}{again}"
    return str(reply["status"]).replace("_", " ")


def _difference(error: dict[str, Any]) -> str:
    found = (error.get("observed") or {}).get("difference")
    return f" ({found['what']}: {found['before']!r} is now {found['now']!r})" if isinstance(found, dict) else ""


# --- the table ----------------------------------------------------------------------------------------------------


def show(rows: list[dict[str, Any]], checks: list[dict[str, Any]], *, stream: Any) -> None:
    """Print the table: with colours on a terminal, plain elsewhere."""
    from rich.console import Console  # noqa: PLC0415 - only a run that got this far needs it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=stream, width=None if stream.isatty() else 150, highlight=False)
    table = Table(box=None if not stream.isatty() else _box(), pad_edge=False, header_style="bold")
    for name in ("", "#", "what the agent tried", "outcome", "effect or code", "route", "ms", "evidence"):
        table.add_column(name, justify="right" if name in {"#", "ms"} else "left", overflow="fold")
    for row in rows:
        outcome = str(row.get("outcome", "never tried")).replace("_", " ")
        again = " (replayed)" if row.get("replayed") else ""
        table.add_row(
            Text("✓" if row["ok"] else "✗", style="green" if row["ok"] else "bold red"),
            str(row["number"]),
            Text(str(row.get("title", row["step"]))),
            Text(outcome + again, style=_COLOURS.get(str(row.get("outcome")), "")),
            Text(str(row.get("effect") or row.get("code") or "").replace("_", " ")),
            Text(str(row.get("route") or "")),
            "" if row.get("ms") is None else f"{row['ms']:.0f}",
            Text(_brief(row.get("evidence"))),
        )
    console.print(table)
    console.print()
    for check in checks:
        problem = "" if check["ok"] else f": {check['problem']}"
        console.print(
            Text(f"{'✓' if check['ok'] else '✗'} {check['check']}{problem}", style="" if check["ok"] else "bold red")
        )
    for row in rows:
        if not row["ok"]:
            console.print(Text(f"✗ step {row['number']} ({row['step']}): {row['problem']}", style="bold red"))


_COLOURS: Final = {
    "succeeded": "green",
    "refused": "yellow",
    "approval_required": "yellow",
    "outcome_unknown": "red",
    "failed": "red",
}


def _box() -> Any:
    from rich import box  # noqa: PLC0415

    return box.SIMPLE_HEAD


def _brief(evidence: str | None) -> str:
    if not evidence:
        return ""
    seq, _, record_hash = evidence.partition(":")
    return f"{seq}:{record_hash[:12]}"


# --- main ---------------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="An agent does real work in real applications; everything is checked."
    )
    parser.add_argument("--view", action="store_true", help="show the desktop in a window, and go slowly")
    parser.add_argument("--keep", action="store_true", help="leave desktop and daemon running until Ctrl-C")
    parser.add_argument("--output", type=Path, default=ROOT / "demo-output", metavar="DIR", help="where evidence goes")
    parser.add_argument("--pace", type=float, metavar="SECONDS", help="wait this long before each step")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output instead of the table")
    return parser.parse_args()


@contextlib.contextmanager
def ended(thing: Any) -> Iterator[Any]:
    """End a thing when its part of the story is over."""
    try:
        yield thing
    finally:
        thing.end()


def play(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Run everything and return the result.

    Raises:
        Broken, SurehandError: it could not be run to its end.
    """
    output = options.output.absolute()
    film = output / "film"
    shutil.rmtree(film, ignore_errors=True)
    film.mkdir(parents=True)
    pace_s = options.pace if options.pace is not None else WATCHED_PACE_S if options.view else 0.0
    story = Story(say, output)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        daemon = stack.enter_context(ended(Daemon(folder)))
        operator = stack.enter_context(ended(OperatorProcess(daemon.keys)))
        operator.enroll()
        daemon.start()
        say("starting an isolated desktop with four applications")
        with uninterrupted():  # about a second; an event loop is no place for a signal
            desktop = stack.enter_context(
                running_desktop(
                    name=f"demo-{secrets.token_hex(3)}",  # several demos may run at once
                    geometry=GEOMETRY,
                    view=options.view,
                    view_environment=os.environ if options.view else None,
                )
            )
        stack.callback(_keep_log, daemon.log, output)
        applications = Applications(desktop)
        stack.callback(applications.close)
        applications.start()
        daemon.wait_ready()
        operator.watch()
        say(f"desktop {desktop.name} on {desktop.display}, {desktop.isolation}; the agent begins")
        with uninterrupted():
            agent = stack.enter_context(ended(AgentProcess(desktop.name, film, pace_s, output / "agent.log")))
        story.run(daemon, applications, agent, operator)
        story.look_at_the_truth(applications)
        story.collect(daemon)
        written = story.write_page(film)
        rows, checks = story.rows(), story.checks()
        result = {
            "ok": all(one["ok"] for one in (*rows, *checks)),
            "steps": rows,
            "checks": checks,
            "verdict": story.verdict,
            "trust_level": story.report.get("trust_level"),
            "isolation": desktop.isolation,
            "seconds": round(time.monotonic() - story.started, 1),
            "page": str(written),
            "journal": str(output / "journal.sqlite"),
        }
        (output / "story.json").write_text(json.dumps(result, ensure_ascii=False, indent=1), "utf-8")
        tell_result(result, options, say)
        if options.keep:
            stay(daemon, folder, say)
    return result


def _keep_log(log: Path, output: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.copyfile(log, output / "daemon.log")


def tell_result(result: dict[str, Any], options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Print what came of it."""
    if options.json:
        print(json.dumps(result, ensure_ascii=False), flush=True)
        return
    say("")
    show(result["steps"], result["checks"], stream=sys.stdout)
    level = f"trust level {result['trust_level']}, {result['isolation']}"
    print(f"\n{'Everything ended as it had to' if result['ok'] else 'NOT everything ended as it had to'}; {level}; "
          f"{result['seconds']} s")  # fmt: skip
    print(f"evidence: {result['page']}")
    print(f"journal:  {result['journal']} (surehand-verify {result['journal']})", flush=True)


def stay(daemon: Daemon, folder: Path, say: Callable[[str], None]) -> None:
    """Leave everything running until Ctrl-C."""
    daemon.start()
    daemon.wait_ready()
    say(
        "\nEverything is still there. In another terminal:\n"
        f"  export XDG_RUNTIME_DIR={folder} SUREHAND_RUNTIME_DIR={folder}/surehand\n"
        f"  {program('surehand')} observe guests.py\n"
        "Ctrl-C ends it."
    )
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            signal.pause()


def main() -> int:
    """Run the demo and return its exit code."""
    options = arguments()
    end_on_signals()

    def say(text: str) -> None:
        print(text, file=sys.stderr if options.json else sys.stdout, flush=True)

    try:
        if options.view and not os.environ.get("DISPLAY"):
            raise Unavailable(
                "there is no display to show the desktop on: DISPLAY is not set",
                fix="run it in a graphical session, or without --view",
            )
        return 0 if play(options, say)["ok"] else 1
    except KeyboardInterrupt:
        print("\ndemo: ended; nothing was left running", file=sys.stderr)
        return 130
    except (Broken, SurehandError, OSError, subprocess.SubprocessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1) or 1


if __name__ == "__main__":
    sys.exit(main())
