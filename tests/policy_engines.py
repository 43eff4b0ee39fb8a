"""Every engine with policies equal to given rules, and a real OPA server, for tests and benchmarks.

What runs the OPA tests is told in the test report: see `opa_program`.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from surehand.adapters.policy_cedar import CedarEngine, open_cedar
from surehand.adapters.policy_opa import OpaEngine, open_opa
from surehand.adapters.policy_rego import RegoEngine, open_rego
from surehand.core.policy.to_cedar import cedar_schema, cedar_text
from surehand.core.policy.to_rego import MODULE_FILE, rules_data

ROOT = Path(__file__).parents[1]
MODULE = resources.files("surehand.core.policy").joinpath("data", MODULE_FILE).read_text("utf-8")
SCHEMA = cedar_schema()
START_S = 20


def rego_of(rules) -> RegoEngine:
    return open_rego({MODULE_FILE: MODULE}, rules_data(rules), revision="r1")


def cedar_of(rules) -> CedarEngine:
    return open_cedar(cedar_text(rules), schema=SCHEMA, revision="r1")


@functools.cache
def opa_program() -> str | None:
    """The path of a real OPA, or None where there is none and none can be built."""
    found = subprocess.run([ROOT / "scripts" / "opa"], capture_output=True, text=True, check=False, timeout=600)
    return found.stdout.strip() or None


def is_opa_server() -> bool:
    """Whether it is OPA's own server, which has TLS, and not its engine behind a server of ours."""
    program = opa_program()
    return program is not None and not program.endswith("opa-of-wheel")


class Opa:
    """A running OPA server with the fixed module, told rules over its own API."""

    def __init__(self, socket_path: str, process: subprocess.Popen) -> None:
        self.socket_path = socket_path
        self.process = process

    def engine(self, timeout_ms: int = 5_000, path: str = "surehand/decision") -> OpaEngine:
        return open_opa(url=None, unix_socket=self.socket_path, path=path, timeout_ms=timeout_ms)

    def put(self, path: str, body: bytes, content_type: str = "application/json") -> None:
        connection = http.client.HTTPConnection("localhost", timeout=5)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5)
        connection.sock.connect(self.socket_path)
        with contextlib.closing(connection):
            connection.request("PUT", path, body, {"Content-Type": content_type})
            answer = connection.getresponse()
            assert answer.status < 300, answer.read()

    def rules(self, rules) -> None:
        for name, value in rules_data(rules)["surehand"].items():
            self.put(f"/v1/data/surehand/{name}", json.dumps(value).encode())


@contextlib.contextmanager
def opa_server(*arguments: str, modules: dict[str, str] | None = None, addr: str | None = None) -> Iterator[Opa]:
    program = opa_program()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="opa-") as folder:
        where = f"{folder}/opa.sock"
        names = []
        for name, text in (modules or {MODULE_FILE: MODULE}).items():
            Path(folder, name).write_text(text)
            names.append(f"{folder}/{name}")
        process = subprocess.Popen(
            [program, "run", "--server", "--addr", f"unix://{where}", *(["--addr", addr] if addr else []),
             "--log-level", "error", "--disable-telemetry", "--v1-compatible", *arguments, *names],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            _wait_for(where, process)
            yield Opa(where, process)
        finally:
            process.kill()
            process.communicate()


def _wait_for(where: str, process: subprocess.Popen) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(where)
            return
        time.sleep(0.02)
    raise AssertionError("OPA did not start")
