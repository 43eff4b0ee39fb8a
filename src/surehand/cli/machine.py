"""Commands about this machine and this installation: doctor, version, policy files, a bundle for support."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import pwd
import sys
import tarfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import EXIT_OK, EXIT_UNAVAILABLE, Finished, Line, out
from surehand.client.control import Control
from surehand.client.sync_client import open as open_hand
from surehand.core.wire.places import Places, places
from surehand.errors import PermissionMissing, SurehandError, Unavailable
from surehand.limits import LOG_TAIL_BYTES
from surehand.signing.runtime_folder import with_runtime_folder

_DEPENDENCIES: Final = (
    "apsw",
    "cryptography",
    "dbus-fast",
    "google-re2",
    "isal",
    "msgspec",
    "numpy",
    "orjson",
    "pynacl",
    "rich",
    "typer",
    "xcffib",
)


#: What the page of `surehand console` needs beside that.
_CONSOLE: Final = ("jinja2", "starlette", "uvicorn")
#: What of the daemon's own findings is not said here by another look.
_TOLD: Final = frozenset({"journal", "approvers", "vault", "stop key"})

_LEVEL_A: Final = (
    "Trust level A: it restrains agents that have Surehand's tools only; an agent with a shell of the same user can "
    "reach keys and sockets. `surehand setup level-b` separates the users."
)
_LEVEL_B: Final = (
    "Trust level B: daemon, agents and approvers are users apart; an agent with a shell of its own is restrained too."
)


def doctor() -> None:
    """Say what works on this machine, and how to fix what does not. Looks only; changes nothing, starts nothing.

    Examples:
      surehand doctor
      surehand doctor --json | jq '.data.facts[] | select(.ok|not)'

    Exit code 3 where isolated desktops cannot work yet.
    """
    with out().working("looking around"):
        facts = [*_installation(), _console(), _daemon(), *_policy(), *_health(), *_desktops()]
    blocked = [fact for fact in facts if fact["needed"] and not fact["ok"]]
    lines: list[Line] = []
    for fact in facts:
        mark, colour = ("ok  ", "good") if fact["ok"] else ("MISS", "bad") if fact["needed"] else ("lack", "warn")
        lines.append((colour, f"{mark} {fact['name']:24} {fact['detail']}"))
        if fact["fix"]:
            lines.append(f"     fix: {fact['fix']}")
    level, level_facts = _level()
    lines += [("warn", f"lack {fact['name']:24} {fact['detail']}") for fact in level_facts]
    facts += level_facts
    summary = f"{len(blocked)} things keep desktops from working" if blocked else "isolated desktops work here"
    value = {"facts": facts, "desktops_work": not blocked, "trust_level_note": level}
    if blocked and out().as_json:
        error = Unavailable(summary, fix="; ".join(fact["fix"] for fact in blocked if fact["fix"]), details=value)
        raise Finished(out().failed(error))
    out().data(value, [*lines, "", level, ("bad" if blocked else "good", summary)])
    raise Finished(EXIT_UNAVAILABLE if blocked else EXIT_OK)


def _fact(name: str, *, ok: bool, detail: str, fix: str | None = None, needed: bool = False) -> dict[str, Any]:
    return {"name": name, "ok": ok, "detail": detail, "fix": None if ok else fix, "needed": needed}


def _installation() -> list[dict[str, Any]]:
    found = [_fact("python", ok=sys.version_info >= (3, 11), detail=platform.python_version(), fix="use Python 3.11")]
    missing = [name for name in _DEPENDENCIES if _version(name) is None]
    detail = f"surehand {_version('surehand') or 'from source'}" + (
        f"; missing {', '.join(missing)}" if missing else ""
    )
    found.append(_fact("packages", ok=not missing, detail=detail, fix="install surehand again", needed=True))
    return found


def _console() -> dict[str, Any]:
    missing = [name for name in _CONSOLE if _version(name) is None]
    detail = f"lacks {', '.join(missing)}" if missing else "`surehand console` shows the page where people answer"
    return _fact("console", ok=not missing, detail=detail, fix="pip install 'surehand[console]'")


def _health() -> list[dict[str, Any]]:
    """Return what the running daemon says of itself to an operator; nothing where none answers."""
    try:
        with Control() as control:
            found = control.call("health").get("facts", ())
    except SurehandError:
        return []
    told = [one for one in found if one["name"] in _TOLD]
    return [_fact(one["name"], ok=one["ok"], detail=one["detail"], fix=one.get("fix")) for one in told]


def _daemon() -> dict[str, Any]:
    try:
        with Control() as control:
            who = control.call("ps")
    except Unavailable as error:
        detail = "none runs; clients start one by themselves" if error.message == "no daemon answers" else error.message
        return _fact("daemon", ok=True, detail=detail)
    except SurehandError as error:
        return _fact("daemon", ok=False, detail=error.message, fix=error.fix)
    paused = [str(one["principal"]) for one in who.get("budgets") or () if one["paused"]]
    if paused:
        fix = f"surehand budgets renew {paused[0]}"
        return _fact("daemon", ok=False, detail=f"runs; {len(paused)} principals have used up their budget", fix=fix)
    count = len(who.get("sessions", ()))
    return _fact("daemon", ok=True, detail=f"runs, {count} {'session' if count == 1 else 'sessions'}")


def _level() -> tuple[str, list[dict[str, Any]]]:
    """Return what the trust level of the running daemon means, and what keeps separate users from being level B."""
    found: dict[str, Any] = {}
    with contextlib.suppress(SurehandError):
        try:
            with Control() as control:
                found = control.call("keys")
        except PermissionMissing:
            # An agent at level B has no way in there; its own socket names the level too.
            with open_hand(client="cli", start=False) as hand:
                found = {"trust_level": hand.about["trust_level"]}
    fix = "let root own it, and no agent's group write it; docs/guides/level-b.md"
    held_back = [_fact("trust level", ok=False, detail=one, fix=fix) for one in found.get("held_back", ())]
    return (_LEVEL_B if found.get("trust_level") == "B" else _LEVEL_A), held_back


def _policy() -> list[dict[str, Any]]:
    """Say whether the running daemon decides by the policy that is written; nothing where none runs."""
    try:
        with Control() as control:
            found = control.call("policy")
    except SurehandError:
        return []
    wrong = found.get("closed") or found.get("fails")
    if found.get("reload_failed"):
        wrong = f"the one in force is an earlier one: {found['reload_failed']}"
    detail = wrong or f"engine {found.get('engine', 'builtin')}, generation {found.get('generation', 1)}"
    return [_fact("policy", ok=not wrong, detail=detail, fix="`surehand policy check` names the place")]


def _desktops() -> list[dict[str, Any]]:
    from surehand.daemon import entry  # noqa: PLC0415 - the runtime's own look around; loaded by this command alone

    return entry.doctor_facts()


def version_() -> None:
    """Show the version.

    Example:
      surehand version
    """
    found = {"surehand": _version("surehand") or "from source", "python": platform.python_version()}
    out().data(found, f"surehand {found['surehand']} (Python {found['python']})")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def support_bundle(
    file: Annotated[str, typer.Argument(help="Where to write the .tar.gz.")] = "surehand-support.tar.gz",
) -> None:
    """Collect what helps to find a fault: versions, doctor, daemon state, the end of its log. Redacted.

    Example:
      surehand support-bundle

    It holds no keys, no content of screens or requests, no environment and no journal. Look through it before you
    send it.
    """
    where = places(with_runtime_folder(os.environ, os.getuid()), os.getuid())
    parts: dict[str, Any] = {
        "versions.json": {name: _version(name) for name in ("surehand", *_DEPENDENCIES)}
        | {"python": platform.python_version(), "kernel": platform.release(), "machine": platform.machine()},
        "doctor.json": [*_installation(), _daemon(), *_desktops()],
        "daemon.json": _daemon_state(),
        "log-end.txt": _log_end(where),
    }
    try:
        with tarfile.open(file, "w:gz") as bundle:
            for name, value in parts.items():
                text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
                _add(bundle, f"surehand-support/{name}", _redacted(text))
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}", fix="name another file") from error
    Path(file).chmod(0o600)
    out().data({"file": file, "parts": sorted(parts)}, f"{file}: {', '.join(sorted(parts))}")


def _daemon_state() -> dict[str, Any]:
    """Return counts and modes of the running daemon; nothing that names an application, a window or an operation."""
    with contextlib.suppress(SurehandError), Control() as control:
        who = control.call("ps")
        counts = {name: len(who.get(name) or ()) for name in ("sessions", "desktops", "in_flight", "unresolved")}
        return {"answers": True, "counts": counts, "policy": control.call("policy")}
    return {"answers": False}


def _log_end(where: Places) -> str:
    try:
        with Path(where.log).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _redacted(text: str) -> str:
    """Take out who and where: the home folder and the user's name, the environment's and those of the user database.

    The daemon goes by the database, whatever HOME says.
    """
    homes, users = {str(Path.home())}, {os.environ.get("USER") or ""}
    with contextlib.suppress(KeyError):
        person = pwd.getpwuid(os.getuid())
        homes.add(person.pw_dir)
        users.add(person.pw_name)
    for home in sorted(homes, key=len, reverse=True):
        if len(home) > 1:
            text = text.replace(home, "~")
    for user in sorted(users - {""}):
        text = text.replace(f"/{user}/", "/USER/")
    return text


def _add(bundle: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8")
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
    bundle.addfile(info, io.BytesIO(data))


COMMANDS: Final[dict[str, Any]] = {"doctor": doctor, "version": version_, "support-bundle": support_bundle}
