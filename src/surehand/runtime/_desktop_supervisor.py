"""The process that owns an isolated desktop's processes and outlives its owner just long enough to remove them.

Runs on its own (`python -I -S this_file CONFIG`), imports only the standard library, and is single-threaded. It
starts what it is told over a sequenced-packet socket, reports what ended, and ends everything when told to, when the
last channel to its owner closes, when the owner dies, or when it gets SIGTERM.

Guarantees:
- Every process it starts dies with it: each gets `PR_SET_PDEATHSIG`, and the supervisor is the subreaper of their
  descendants, so a process that forks away is found again and killed.
- A program that shares the host's network cannot reach the host's abstract sockets (the person's display, their
  buses), which have no file permissions: Landlock scopes them, or the program is not started.
- Once everything runs a desktop ends with its display or its session bus: half of one would take programs that
  nobody can see or reach.
- The display server is asked to end after its clients are gone, so that it removes its socket; what it leaves is
  removed, but only where the display's lock names this supervisor.
- The desktop's folder, record and control socket are removed last; why it ended is told to everybody connected, since
  the log goes with the folder.
It never decides what is started or how it is confined; its owner does.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import selectors
import shutil
import signal
import socket
import struct
import sys
import time
from typing import Any, Final

#: The number under which a confined program's launcher reports its state; the owner's command line names it.
STATUS_FD: Final = 3
#: Where file descriptors wait while the low numbers are arranged for a new program.
_PARKED_FD: Final = 200
_PACKET_BYTES_MAX: Final = 192 * 1024
_FDS_MAX: Final = 16
_INT_BYTES: Final = 4
_SERVER_END_S: Final = 1.0
_RESOLVE_S: Final = 2.0
_NAMED_S: Final = 0.25
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
SYS_LANDLOCK_CREATE_RULESET: Final = 444  # the same number on every architecture
_SYS_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET: Final = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _scope_abstract_sockets() -> None:
    """Cut this process off from abstract sockets made outside of it (Linux 6.12)."""
    attributes = struct.pack("QQQ", 0, 0, _LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    ruleset = _libc.syscall(SYS_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0 or _libc.syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(ruleset)


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - pathlib is a slow import here
            return file.read()
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    return [int(word) for word in _read_text(f"/proc/{pid}/task/{pid}/children").split()]


def _receive_message(sock: socket.socket) -> tuple[bytes, list[int], int]:
    """Return one packet with its descriptors, none of which a program that is started inherits by accident.

    `socket.recv_fds` of Python 3.11 takes flags and ignores them.
    """
    space = socket.CMSG_SPACE(_FDS_MAX * _INT_BYTES)
    packet, ancillary, flags, _ = sock.recvmsg(_PACKET_BYTES_MAX, space, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += struct.unpack(f"{len(data) // _INT_BYTES}i", data[: len(data) // _INT_BYTES * _INT_BYTES])
    return packet, fds, flags


def _descendants(pid: int) -> list[int]:
    found = []
    pending = [pid]
    while pending:
        children = _children(pending.pop())
        found += children
        pending += children
    return found


def _defect(error: BaseException) -> str:
    """Say where a defect is and of what type; its message may hold anything."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" in {place.tb_frame.f_code.co_name}, line {place.tb_lineno}"
    return f"a defect of its supervisor: {type(error).__name__}{where}"


class _Child:
    """One started program: `pid` is our own child, `app_pid` the program itself once it is known."""

    def __init__(self, key: int, pid: int, message: dict[str, Any], channel: _Channel) -> None:
        self.key = key
        self.pid = pid
        self.channel = channel
        self.role = str(message.get("role", "app"))
        self.vital = str(message.get("vital", ""))
        self.launcher = message.get("launcher")
        self.inner_init = bool(message.get("inner_init"))
        self.app_pid: int | None = None
        self.launcher_child: int | None = None
        self.status_fd: int | None = None
        self.status = b""
        self.resolve_until = time.monotonic() + _RESOLVE_S
        self.named_until: float | None = None


class _Channel:
    """One connection that may ask for programs; answers are dropped when nobody listens any more."""

    def __init__(self, sock: socket.socket, *, is_owner: bool) -> None:
        self.sock = sock
        self.is_owner = is_owner

    def send(self, value: dict[str, Any], flags: int = 0) -> None:
        with contextlib.suppress(OSError):
            self.sock.send(json.dumps(value).encode(), flags)


class Supervisor:
    """Starts, reports and ends the processes of one desktop."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.selector = selectors.DefaultSelector()
        self.children: dict[int, _Child] = {}
        self.resolving: list[_Child] = []
        self.channels: list[_Channel] = []
        self.is_up = False
        self.ending = False
        self.reason = "it was never told to end"

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until the desktop must end, then remove it."""
        try:
            self._open()
            while not self.ending:
                self.turn(0.001 if self.resolving else None)
                for child in list(self.resolving):
                    self._resolve(child)
        except BaseException as error:
            self.reason = _defect(error)
            raise
        finally:
            self._end()
            for channel in self.channels:
                channel.send({"event": "ended", "reason": self.reason}, flags=socket.MSG_DONTWAIT)

    def turn(self, timeout: float | None) -> None:
        """Wait once and answer all that came; `timeout` in seconds."""
        for key, _ in self.selector.select(timeout):
            # An answer may close what another event of the same wait is about: a reaped child takes its pipe along.
            if self.selector.get_map().get(key.fd) is key:
                key.data(key.fileobj)

    def _open(self) -> None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        os.umask(0o077)
        # The lock on the folder came with this descriptor and is held for life: whoever finds the folder unlocked
        # knows that nobody looks after it. Started programs must not hold it.
        os.set_inheritable(int(self.config["folder_fd"]), False)
        os.set_inheritable(int(self.config["fd"]), False)
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda got, _: self._stop(f"its supervisor got {signal.Signals(got).name}"))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self.selector.register(wake_read, selectors.EVENT_READ, self._woken)
        channel = _Channel(socket.socket(fileno=int(self.config["fd"])), is_owner=True)
        self._listen_to(channel)
        self._watch_owner()
        if self.config.get("control"):
            self._open_control(self.config["control"])
        channel.send({"event": "ready"})

    def _watch_owner(self) -> None:
        # A forked child of the owner may keep the channel open; the owner's own death must still count.
        owner = int(self.config["owner_pid"])
        if os.getppid() != owner:
            self._stop("its owner ended")
            return
        pid_fd = os.pidfd_open(owner)
        self.selector.register(pid_fd, selectors.EVENT_READ, lambda _: self._stop("its owner ended"))

    def _open_control(self, path: str) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.listen(8)
        self.selector.register(listener, selectors.EVENT_READ, self._accept)

    def _accept(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = int.from_bytes(credentials[4:8], sys.byteorder)
        if uid != os.getuid():
            sock.close()
            return
        channel = _Channel(sock, is_owner=False)
        self._listen_to(channel)
        channel.send({"event": "ready"})

    def _listen_to(self, channel: _Channel) -> None:
        channel.sock.setblocking(True)
        self.channels.append(channel)
        self.selector.register(channel.sock, selectors.EVENT_READ, lambda _: self._receive(channel))

    def _stop(self, reason: str) -> None:
        if not self.ending:
            self.ending, self.reason = True, reason

    def _woken(self, wake_fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(wake_fd, 4096)
        self._reap()

    # --- requests -----------------------------------------------------------------------------------------------

    def _receive(self, channel: _Channel) -> None:
        try:
            packet, fds, flags = _receive_message(channel.sock)
        except OSError:
            packet, fds, flags = b"", [], 0
        if not packet:
            self.selector.unregister(channel.sock)
            self.channels.remove(channel)
            channel.sock.close()
            if channel.is_owner:
                self._stop("its owner let go of it")
            return
        try:
            is_whole = not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
            self._obey(json.loads(packet) if is_whole else {"op": "too large"}, fds, channel)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
            self._refuse(packet, error, channel)
        finally:
            for fd in fds:
                os.close(fd)

    @staticmethod
    def _refuse(packet: bytes, error: Exception, channel: _Channel) -> None:
        key = 0
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            key = json.loads(packet).get("id", 0)
        channel.send({"event": "refused", "id": key, "error": f"{type(error).__name__}: {error}"})

    def _obey(self, message: dict[str, Any], fds: list[int], channel: _Channel) -> None:
        if message["op"] == "spawn":
            self._spawn(message, fds, channel)
        elif message["op"] == "signal":
            self._signal(int(message["id"]), int(message["signal"]), channel, everything=bool(message["everything"]))
        elif message["op"] == "close":
            self._stop("its owner closed it")
        elif message["op"] == "up" and channel.is_owner:
            self.is_up = True
        else:
            raise ValueError("unknown operation")

    def _signal(self, key: int, number: int, channel: _Channel, *, everything: bool) -> None:
        for child in self.children.values():
            if child.key == key and child.channel is channel:
                # A program may want to end in its own way; a launcher takes its whole namespace with it.
                pids = [child.app_pid or child.pid]
                if everything:
                    pids = [child.pid] if child.launcher else [child.pid, *_descendants(child.pid)]
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)

    # --- starting -------------------------------------------------------------------------------------------------

    def _spawn(self, message: dict[str, Any], fds: list[int], channel: _Channel) -> None:
        numbers = [int(number) for number in message["fds"]]
        if len(numbers) != len(fds):
            raise ValueError("file descriptors do not match")
        status_read = status_write = None
        if message.get("launcher"):
            status_read, status_write = os.pipe()
            numbers, fds = [*numbers, STATUS_FD], [*fds, status_write]
        failed_read, failed_write = os.pipe()  # closed by a successful exec, so silence is success
        supervisor_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(message, dict(zip(numbers, fds, strict=True)), supervisor_pid, failed_write)
        os.close(failed_write)
        child = _Child(int(message["id"]), pid, message, channel)
        self.children[pid] = child
        with open(failed_read, "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
            failure = pipe.read()
        if status_read is None or status_write is None:
            child.app_pid = pid
            if not failure:
                self._spawned(child, pid)
        else:
            os.close(status_write)
            os.set_blocking(status_read, False)
            child.status_fd = status_read
            self.selector.register(status_read, selectors.EVENT_READ, lambda fd: self._status(child, fd))
        if failure:
            raise OSError(failure.decode(errors="replace"))

    @staticmethod
    def _become(message: dict[str, Any], fds: dict[int, int], supervisor_pid: int, failed_fd: int) -> None:
        """Turn the forked child into the program; never returns."""
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor_pid:  # it died before the line above could count
                os._exit(127)
            os.setsid()
            signal.set_wakeup_fd(-1)
            # What this process, Python itself or whoever started it handles or ignores; programs get the defaults.
            for one in signal.valid_signals():
                if signal.getsignal(one) not in {signal.SIG_DFL, None}:
                    signal.signal(one, signal.SIG_DFL)
            if message.get("scoped"):
                _scope_abstract_sockets()
            failed_fd = fcntl.fcntl(failed_fd, fcntl.F_DUPFD_CLOEXEC, _PARKED_FD)
            parked = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _PARKED_FD) for number, fd in fds.items()}
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(parked.get(number, null), number, inheritable=True)
            for number, fd in parked.items():
                os.dup2(fd, number, inheritable=True)
            os.chdir(message["cwd"])
            os.execve(message["argv"][0], message["argv"], message["env"])  # noqa: S606 - a shell is what we avoid
        except BaseException as error:  # noqa: BLE001 - nothing may run on in the forked child
            with contextlib.suppress(OSError):
                os.write(failed_fd, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(127)

    def _status(self, child: _Child, status_fd: int) -> None:
        data = os.read(status_fd, 65536)  # the launcher writes a line in several pieces
        *lines, child.status = (child.status + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if "child-pid" in value:
                    child.launcher_child = int(value["child-pid"])
                    self.resolving.append(child)
                if "exit-code" in value and child.app_pid is None:
                    self._spawned(child, child.launcher_child or child.pid)  # it ran, and is gone already
        if not data:
            self.selector.unregister(status_fd)
            os.close(status_fd)
            child.status_fd = None

    def _spawned(self, child: _Child, app_pid: int) -> None:
        if child in self.resolving:
            self.resolving.remove(child)
        child.app_pid = app_pid
        child.channel.send({"event": "spawned", "id": child.key, "pid": child.pid, "app_pid": app_pid})

    def _resolve(self, child: _Child) -> None:
        """Find the program behind its launcher and wait, bounded, until it is no longer the launcher itself."""
        now = time.monotonic()
        if child.pid not in self.children or now > child.resolve_until or child.launcher_child is None:
            self.resolving.remove(child)
            return
        candidates = _children(child.launcher_child) if child.inner_init else [child.launcher_child]
        if not candidates:
            return
        app_pid = candidates[0]
        if child.named_until is None:
            child.named_until = now + _NAMED_S
        still_launcher = _read_text(f"/proc/{app_pid}/comm").strip() in {str(child.launcher), ""}
        if still_launcher and now < child.named_until:
            return
        self._spawned(child, app_pid)

    # --- ending ---------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is not None:
                with contextlib.suppress(BlockingIOError):  # what it said last comes before its end
                    while child.status_fd is not None:
                        self._status(child, child.status_fd)
                code = os.waitstatus_to_exitcode(status)
                child.channel.send({"event": "exited", "id": child.key, "code": code})
                if self.is_up and child.vital:
                    self._stop(f"its {child.vital} ended with status {code}")

    def _end(self) -> None:
        servers = [child for child in self.children.values() if child.role == "server"]
        server_pids = {pid for server in servers for pid in (server.pid, server.app_pid, server.launcher_child) if pid}
        self._kill_all(except_pids=server_pids)
        for server in servers:
            self._end_server(server)
        self._kill_all(except_pids=set())
        self._release_display()
        for name in ("record", "control"):
            with contextlib.suppress(OSError):
                if self.config.get(name):
                    os.unlink(self.config[name])  # noqa: PTH108 - pathlib is a slow import here
        shutil.rmtree(self.config["folder"], ignore_errors=True)

    def _kill_all(self, except_pids: set[int]) -> None:
        """Kill every descendant; those whose parent died come back to us as the subreaper and are found again."""
        until = time.monotonic() + 5 * _SERVER_END_S
        while time.monotonic() < until:
            mine = [pid for pid in _children(os.getpid()) if pid not in except_pids]
            if not mine:
                return
            for pid in mine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in mine:
                self._await_end(pid, until)

    def _await_end(self, pid: int, until: float) -> bool:
        try:
            pid_fd = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
            return True
        try:
            ended = bool(select.select([pid_fd], [], [], max(0.0, until - time.monotonic()))[0])
        finally:
            os.close(pid_fd)
        self._reap()
        return ended

    def _end_server(self, server: _Child) -> None:
        target = server.app_pid or server.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, signal.SIGTERM)
        if not self._await_end(server.pid, time.monotonic() + _SERVER_END_S):
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
            self._await_end(server.pid, time.monotonic() + _SERVER_END_S)

    def _release_display(self) -> None:
        number = _read_text(f"{self.config['folder']}/etc/display").strip()
        lock, sock = f"/tmp/.X{number}-lock", f"/tmp/.X11-unix/X{number}"  # noqa: S108 - X11's own place
        if number and _read_text(lock).strip() == str(os.getpid()):
            for path in (sock, lock):
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108 - pathlib is a slow import here


if __name__ == "__main__":
    Supervisor(json.loads(sys.argv[1])).run()
