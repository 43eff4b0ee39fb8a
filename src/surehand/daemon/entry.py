"""What runs as the operator: the daemon itself, a desktop in the foreground, and the looking around of doctor.

The command line imports this lazily; it is the one place above the runtime that composes it. Configuration comes from
the operator's files and from the arguments an operator gives to `surehand serve`; a daemon that a client starts gets
neither arguments nor environment from that client beyond which runtime folder is meant.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import pwd
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from surehand import limits
from surehand.core.wire.places import Places, places, state_dir
from surehand.daemon.paths import Lease, prepare
from surehand.daemon.peer import trust_of
from surehand.daemon.server import collect_rarely, harden, return_memory, serve
from surehand.errors import InternalError, SurehandError, Unavailable
from surehand.model.record import Record
from surehand.signing.private_files import open_private, private_directory
from surehand.signing.runtime_folder import with_runtime_folder

_SYSTEM_CONFIG: Final = Path("/etc/surehand/config.toml")
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_log: Final = logging.getLogger("surehand.daemon")


class ServeOptions(Record, frozen=True, kw_only=True):
    """How to serve. Absent paths mean the operator's usual ones; `idle_exit_s` absent means the configuration's."""

    config: str | None = None
    state_dir: str | None = None
    idle_exit_s: float | None = None
    ready_fd: int | None = None
    #: An operator's own command, and not a client that found no daemon.
    by_operator: bool = False


def home() -> Path:
    """Return the user's home as the user database has it; the environment's HOME can be set by anyone."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def config_path(given: str | None) -> Path:
    """Return the configuration file: the given one, the system's, or the user's."""
    if given is not None:
        return Path(given).absolute()
    return _SYSTEM_CONFIG if _SYSTEM_CONFIG.exists() else home() / ".config/surehand/config.toml"


def run_daemon(options: ServeOptions, announce: Callable[[Places], None] = lambda _: None) -> None:
    """Serve until told to stop or idle.

    Raises:
        SurehandError: it could not start; the reason also goes to whoever waits on `ready_fd`.
    """
    where = places(with_runtime_folder(os.environ, os.getuid()), os.getuid())
    word = _Word(options.ready_fd)
    try:
        asyncio.run(_serve(options, where, word, announce))
    except SurehandError as error:
        word.failed(error)
        raise
    except BaseException as error:
        word.failed(InternalError(f"the daemon failed to start: {type(error).__name__}", fix=f"read {where.log}"))
        raise


async def _serve(options: ServeOptions, where: Places, word: _Word, announce: Callable[[Places], None]) -> None:
    # Only the daemon itself needs the runtime; a doctor or a desktop in the foreground starts faster without.
    from surehand.runtime import compose, levels  # noqa: PLC0415
    from surehand.runtime.config import POLICY_NAME, load  # noqa: PLC0415

    harden()
    return_memory()
    refused = Refused(where)
    if not options.by_operator:
        refused.check()
    configuration = config_path(options.config)
    with refused.noted(options):
        config = load(configuration)
    config = levels.checked(config, (configuration, _state_path(options, where), Path(where.runtime_dir)))
    for reason in config.held_back:
        _log.warning("trust level A, although the users are apart: %s", reason)
    trust = trust_of(config.agent_uids, config.approver_uids)
    prepare(where, foreign=trust.foreign(os.getuid()))
    # The lease comes before the journal is opened: the loser of a race must not even look at it.
    lease = await asyncio.to_thread(Lease.take, where.lease, wait_ms=_lease_wait_ms(where))
    with refused.noted(options):
        host = await compose.build_host(
            config, state_dir=_state_path(options, where), policy_beside=configuration.parent / POLICY_NAME
        )
    collect_rarely()

    def ready() -> None:
        refused.forget()
        word.ready()
        announce(where)
        _log.info("ready, pid %d", os.getpid())

    idle = options.idle_exit_s if options.idle_exit_s is not None else float(config.idle_exit_s)
    await serve(host, where, trust, idle_exit_s=idle, ready=ready, lease=lease)
    _log.info("ended")


class Refused:
    """The note that an operator's start with a configuration of its own failed in this folder.

    A client that finds no daemon starts one with the usual configuration. Where the operator meant another one, which
    has a mistake in it, that would open what was to stay closed; so nobody starts one until the operator did.
    """

    def __init__(self, where: Places) -> None:
        self._path = Path(where.refused)

    def check(self) -> None:
        """Refuse to start.

        Raises:
            Unavailable: there is a note; it says which configuration failed.
        """
        try:
            given = self._path.read_text("utf-8", "replace")[: limits.HELLO_BYTES_MAX]
        except OSError:
            return
        raise Unavailable(
            f"the operator's daemon for this folder did not start: {given}",
            fix="correct that configuration and run `surehand serve` with it; a start that succeeds lifts this",
        )

    @contextlib.contextmanager
    def noted(self, options: ServeOptions) -> Iterator[None]:
        """Leave the note when an operator's start with a configuration or state of its own fails in here."""
        try:
            yield
        except SurehandError as error:
            if options.by_operator and (options.config or options.state_dir):
                self._leave(f"{options.config or options.state_dir}: {error.code}")
            raise

    def _leave(self, text: str) -> None:
        with contextlib.suppress(OSError, SurehandError):  # the start fails loudly in any case
            if not self._path.parent.exists():
                private_directory(self._path.parent)
            with open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as note:
                os.write(note, text.encode("utf-8", "surrogateescape"))

    def forget(self) -> None:
        """Lift it: a daemon serves."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()


def _lease_wait_ms(where: Places) -> int:
    """A daemon that is ending has removed its sockets; one that serves is not waited for."""
    return 0 if os.path.lexists(where.agent_socket) else limits.LEASE_WAIT_MS_MAX


def _state_path(options: ServeOptions, where: Places) -> Path:
    return Path(options.state_dir or state_dir(os.environ, str(home()), where)).absolute()


class _Word:
    """The one line a starter waits for."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def ready(self) -> None:
        self._say({"ready": os.getpid()})

    def failed(self, error: SurehandError) -> None:
        self._say({"error": error.to_value()})

    def _say(self, value: dict[str, Any]) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):  # the starter may be gone; the daemon is not
                os.write(descriptor, orjson.dumps(value) + b"\n")
            with contextlib.suppress(OSError):
                os.close(descriptor)


def set_up_logging() -> None:
    """Log to standard error; no line carries content of requests or screens."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=_LOG_FORMAT)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m surehand.daemon`: what a client starts."""
    parser = argparse.ArgumentParser(prog="surehand-daemon")
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--ready-fd", type=int)
    given = parser.parse_args(arguments)
    if given.detach and os.fork() != 0:
        # The parent ends at once, so that the daemon is nobody's child and leaves no zombie behind.
        return 0
    if given.detach:
        os.setsid()
    set_up_logging()
    try:
        run_daemon(ServeOptions(ready_fd=given.ready_fd))
    except SurehandError as error:
        _log.error("%s", error)
        return error.exit_code
    return 0


# --- a desktop in the foreground --------------------------------------------------------------------------------


class DesktopOptions(Record, frozen=True, kw_only=True):
    """What `surehand desktop run` was asked for."""

    command: tuple[str, ...]
    name: str | None = None
    width: int
    height: int
    view: bool = False
    network: bool = False
    sandbox: bool = True
    binds: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


async def run_desktop(options: DesktopOptions, announce: Callable[[dict[str, Any]], None]) -> int:
    """Start a desktop, run a command in it, and end everything when the command, or the person, ends it.

    Args:
        options: What was asked for.
        announce: Called once it is up, with its name, display, isolation and geometry.

    Returns:
        The command's exit status; without a command 0, once the person ends it.

    Raises:
        SurehandError: it could not start, or the command could not.
    """
    from surehand.runtime.desktops import IsolatedDesktop  # noqa: PLC0415 - see _serve

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    desktop = await IsolatedDesktop.start(
        geometry=(options.width, options.height),
        sandbox=options.sandbox,
        view=options.view,
        view_environment=os.environ if options.view else None,
        name=options.name,
        network=options.network,
        extra_binds=options.binds,
        extra_writable=options.writable,
    )
    async with desktop:
        announce(
            {
                "name": desktop.name,
                "display": desktop.display,
                "isolation": desktop.isolation,
                "isolation_reason": desktop.isolation_reason,
                "geometry": list(desktop.geometry),
            }
        )
        ends: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(stop.wait()),
            asyncio.ensure_future(desktop.wait_closed()),
        ]
        if options.command:
            app = await desktop.launch(options.command, stdio=(0, 1, 2))
            ends.append(asyncio.ensure_future(app.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            command = ends[-1] if options.command else None
            return int(command.result()) if command is not None and command.done() else 0
        finally:
            for end in ends:
                end.cancel()


def doctor_facts() -> list[dict[str, Any]]:
    """Return what this machine has for desktops; looks only."""
    from surehand.runtime.desktops import doctor_facts as look  # noqa: PLC0415 - see _serve

    facts = asyncio.run(look(os.environ))
    return [{name: getattr(fact, name) for name in ("name", "ok", "detail", "fix", "needed")} for fact in facts]
