"""OPA's own engine, from its C library, behind as much of OPA's HTTP API as the tests use.

Stands in for the `opa` program where neither it nor a Go compiler is there: `scripts/opa` makes a launcher of it. The
decisions are the real engine's; the server is not, so tests of TLS and of the server's own life are skipped with it.

Usage: opa_of_wheel.py run --server --addr unix:///PATH [OPTIONS OF OPA, PASSED OVER] FILE.rego...
"""

from __future__ import annotations

import json
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from opa_bindings import OpaEngine
from opa_bindings.engine import OpaError, OpaUndefinedError

UNIX = "unix://"


class State:
    """Modules for ever, data as it was put last; the library merges data and never lets go, so it is made anew."""

    def __init__(self, modules: dict[str, str]) -> None:
        self.modules = modules
        self.data: dict = {}
        self.engine = self.make()

    def make(self) -> OpaEngine:
        engine = OpaEngine()
        for name, text in self.modules.items():
            engine.add_policy(name, text)
        engine.add_data(self.data)
        return engine

    def put(self, path: list[str], value) -> None:
        inside = self.data
        for name in path[:-1]:
            inside = inside.setdefault(name, {})
        inside[path[-1]] = value
        self.engine = self.make()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_) -> None:
        return

    def do_GET(self) -> None:
        self.answer(200 if self.path.startswith("/health") else 404, {})

    def do_PUT(self) -> None:
        self.state.put(self.named(), self.body())
        self.answer(200, {})

    def do_POST(self) -> None:
        try:
            found = self.state.engine.eval_document(".".join(self.named()), self.body()["input"])
        except OpaUndefinedError:
            self.answer(200, {})
        except OpaError as error:
            self.answer(500, {"code": error.code, "message": error.message})
        else:
            self.answer(200, {"result": found})

    def named(self) -> list[str]:
        return self.path.removeprefix("/v1/data/").split("/")

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, value) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def main() -> None:
    where = next(word for word in sys.argv if word.startswith(UNIX)).removeprefix(UNIX)
    Handler.state = State({path: Path(path).read_text() for path in sys.argv if path.endswith(".rego")})
    with Server(where, Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
