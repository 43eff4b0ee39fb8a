"""One HTTP connection to a policy server: a Unix socket, loopback TCP, or TLS with pinned roots.

The standard library's client, kept alive between questions. Guarantees: nothing goes to another host than the one that
was named (no redirects, no proxies); an answer is read up to its bound and no further; `abort` may be called from
another thread and ends whatever the connection is doing.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from dataclasses import dataclass
from typing import Final

from surehand import limits
from surehand.core.policy.engine import EngineFailure

_OK: Final = 200
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the server is: a Unix socket, or a host and port with TLS where `tls` is given."""

    unix_socket: str | None = None
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Wire:
    """A connection that opens itself when it is needed. Used by one thread at a time; see `abort`."""

    def __init__(self, place: Place, timeout_s: float) -> None:
        self._place = place
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def _open(self) -> http.client.HTTPConnection:
        place, timeout = self._place, self._timeout_s
        if place.unix_socket is not None:
            return _UnixConnection(place.unix_socket, timeout)
        if place.tls is not None:
            return http.client.HTTPSConnection(place.host, place.port, timeout=timeout, context=place.tls)
        return http.client.HTTPConnection(place.host, place.port, timeout=timeout)

    def exchange(self, method: str, path: str, body: bytes | None) -> bytes:
        """Send one request and return its answer's body.

        A connection that the server closed while it lay idle is opened again once: a question has no effect.

        Raises:
            EngineFailure: unavailable, timeout, too_large or malformed.
        """
        reused = self._connection is not None
        try:
            return self._once(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            if not reused:
                raise EngineFailure("unavailable", type(error).__name__) from error
        except TimeoutError as error:
            self.close()
            raise EngineFailure("timeout") from error
        except EngineFailure:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _failure_of(error) from error
        return self.exchange(method, path, body)

    def _once(self, method: str, path: str, body: bytes | None) -> bytes:
        if self._connection is None:
            self._connection = self._open()
        self._connection.request(method, path, body=body, headers=_HEADERS)
        with self._connection.getresponse() as answer:
            return _body_of(answer)

    def abort(self) -> None:
        """End what another thread is doing with this connection: its read fails at once."""
        connection = self._connection
        sock = None if connection is None else connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next exchange opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _body_of(answer: http.client.HTTPResponse) -> bytes:
    if answer.length is None and not answer.chunked:
        raise EngineFailure("malformed", "the answer's length is not said, so its end could be missing")
    data = answer.read(limits.POLICY_ANSWER_BYTES_MAX + 1)
    if len(data) > limits.POLICY_ANSWER_BYTES_MAX:
        raise EngineFailure("too_large", f"the answer has more than {limits.POLICY_ANSWER_BYTES_MAX} bytes")
    if answer.length:
        # The library hands out what came of a body that was cut off.
        raise EngineFailure("malformed", f"the answer ended {answer.length} bytes early")
    if answer.status != _OK:
        raise EngineFailure("error", f"the server answered with status {answer.status}")
    return data


def _failure_of(error: Exception) -> EngineFailure:
    if isinstance(error, ssl.SSLError):
        # Such as a certificate that has expired, or is another host's, or a client certificate that is not accepted.
        return EngineFailure("unavailable", f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}")
    if isinstance(error, http.client.HTTPException):
        return EngineFailure("malformed", type(error).__name__)
    return EngineFailure("unavailable", getattr(error, "strerror", None) or type(error).__name__)
