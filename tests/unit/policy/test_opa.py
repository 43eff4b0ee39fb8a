"""The OPA client against a real server, and against servers that are broken in every way one can be."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import json
import socket
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from surehand import limits
from surehand.adapters.policy_opa import open_opa
from surehand.core.policy import engine
from surehand.core.policy.engine import EngineFailure
from surehand.core.policy.model import Match, Rule
from surehand.errors import InvalidRequest
from tests import policy_engines
from tests.rules_kit import document

#: The first test that wants OPA may have to wait until it is built, once on a machine.
pytestmark = pytest.mark.timeout(600)
QUESTIONS = [engine.input_value(document(), {})]
DEFAULTS = engine.defaults_policy("r1")
FAST_MS = 150


@contextlib.asynccontextmanager
async def asking(**changes):
    fields = {"url": None, "unix_socket": None, "path": "surehand/decision", "timeout_ms": 5_000}
    asked = open_opa(**{**fields, **changes})
    try:
        yield asked
    finally:
        await asked.close()


async def failure(asked, questions=QUESTIONS) -> EngineFailure:
    with pytest.raises(EngineFailure) as caught:
        await asked.ask(questions)
    return caught.value


# --- a real server --------------------------------------------------------------------------------------------------


async def test_a_real_server_answers_and_says_that_it_is_well(opa):
    opa.rules([Rule(id="mine", effect="allow", reason="because", match=Match(app=("exe:/usr/bin/mousepad",)))])
    async with asking(unix_socket=opa.socket_path) as asked:
        assert "OPA answers" in await asked.check()
        assert (await asked.ask(QUESTIONS * 2))[1]["rule"] == "mine"


async def test_a_decision_that_the_server_does_not_know_is_undefined(opa):
    async with asking(unix_socket=opa.socket_path, path="surehand/nothing") as asked:
        assert await asked.ask(QUESTIONS) == [None]
        assert engine.decide_from(DEFAULTS, document(), [None], "d1").rule == "engine.undefined"


async def test_rules_that_contradict_each_other_are_an_error():
    two = "package two\nimport rego.v1\ndecision := 1 if input.principal\ndecision := 2 if input.action\n"
    require_opa()
    with policy_engines.opa_server(modules={"two.rego": two}) as opa:
        async with asking(unix_socket=opa.socket_path, path="two/decision") as asked:
            assert (await failure(asked)).kind == "error"


async def test_a_server_that_is_killed_is_unavailable_and_its_successor_is_found():
    require_opa()
    with policy_engines.opa_server() as first:
        async with asking(unix_socket=first.socket_path) as asked:
            assert await asked.ask(QUESTIONS) == [{"outcome": "default"}]
            first.process.kill()
            first.process.wait()
            assert (await failure(asked)).kind == "unavailable"
            with pytest.raises(EngineFailure):
                await asked.check()
            remove(first.socket_path)
            answered = b'{"result": {"outcome": "default"}}'
            async with false_server(http(answered), first.socket_path):
                assert await asked.ask(QUESTIONS) == [{"outcome": "default"}]


def remove(path: str) -> None:
    Path(path).unlink()


def require_opa() -> None:
    if not policy_engines.is_opa_server():
        pytest.skip("no opa on PATH, and no Go that could build it")


# --- TLS ------------------------------------------------------------------------------------------------------------


class Certificates:
    """An authority of a test's own."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.name = name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test {name}")])
        self.ca = self._write(name, self._sign(self.subject, self.key, ca=True), self.key)[0]

    def _sign(self, subject, key, *, ca: bool, days: int = 1):
        now = dt.datetime.now(dt.UTC)
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=ca, crl_sign=ca, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=2))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )

    def issue(self, name: str, days: int = 1) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._write(name, self._sign(subject, key, ca=False, days=days), key)

    def _write(self, name: str, certificate, key) -> tuple[str, str]:
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(paths[0]), str(paths[1])


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("pki"))


@contextlib.contextmanager
def tls_server(pki, days: int = 1):
    require_opa()
    cert, key = pki.issue(f"server{days}", days)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--tls-cert-file", cert, "--tls-private-key-file", key, "--tls-ca-cert-file", pki.ca]
    with policy_engines.opa_server(*options, "--authentication", "tls", addr=f"https://127.0.0.1:{port}"):
        until = time.monotonic() + policy_engines.START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
        yield f"https://127.0.0.1:{port}"


async def test_both_sides_prove_who_they_are(pki, tmp_path):
    cert, key = pki.issue("client")
    stranger = Certificates(tmp_path, "stranger")
    strange_cert, strange_key = stranger.issue("client")
    with tls_server(pki) as url:
        async with asking(url=url, ca=pki.ca, cert=cert, key=key) as asked:
            assert await asked.ask(QUESTIONS) == [{"outcome": "default"}]
            assert "OPA answers" in await asked.check()
        async with asking(url=url, ca=pki.ca) as asked:
            assert (await failure(asked)).kind in ("unavailable", "error")
        async with asking(url=url, ca=pki.ca, cert=strange_cert, key=strange_key) as asked:
            assert (await failure(asked)).kind in ("unavailable", "error")
        async with asking(url=url, ca=stranger.ca, cert=cert, key=key) as asked:
            found = await failure(asked)
            assert found.kind == "unavailable"
            assert "TLS" in found.detail
        async with asking(url=url.replace("127.0.0.1", "localhost"), ca=pki.ca, cert=cert, key=key) as asked:
            assert (await failure(asked)).kind == "unavailable"


async def test_a_certificate_that_has_expired_is_none(pki):
    cert, key = pki.issue("client")
    with tls_server(pki, days=-1) as url:
        async with asking(url=url, ca=pki.ca, cert=cert, key=key) as asked:
            found = await failure(asked)
            assert found.kind == "unavailable"
            assert "expired" in found.detail


# --- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://policy.example:8181"},
        {"url": "http://192.0.2.7:8181"},
        {"url": "http://127.0.0.1.example:8181"},
        {"url": "https://policy.example"},
        {"url": "https://policy.example", "ca": "PEM"},
        {"url": "https://127.0.0.1", "ca": "PEM", "cert": "PEM"},
        {"url": "https://127.0.0.1", "ca": "/nothing/here"},
        {"url": "https://user:pw@127.0.0.1", "ca": "PEM"},
        {"url": "https://127.0.0.1/v1/data", "ca": "PEM"},
        {"url": "ftp://127.0.0.1"},
        {"url": "127.0.0.1:8181"},
        {},
        {"url": "http://127.0.0.1:8181", "unix_socket": "/run/opa.sock"},
        *(
            {"unix_socket": "/run/opa.sock", "path": path}
            for path in ("/surehand", "a/../b", "", "a b", "a//b", "a?x=1", "a/")
        ),
    ],
)
async def test_addresses_that_would_tell_strangers_or_mean_something_else_are_refused(changes, pki):
    given = {name: pki.ca if value == "PEM" else value for name, value in changes.items()}
    with pytest.raises(InvalidRequest):
        async with asking(**given):
            pass


# --- false servers --------------------------------------------------------------------------------------------------


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def false_server(reply: bytes, path: str, *, drip_s: float = 0, close: bool = False):
    """Answers everything with the same bytes, at once or a byte at a time."""
    held: list[asyncio.StreamWriter] = []

    async def serve(reader, writer) -> None:
        held.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                await reader.readexactly(size[0] if size else 0)
                for part in (reply[i : i + 1] for i in range(len(reply))) if drip_s else (reply,):
                    writer.write(part)
                    await writer.drain()
                    if drip_s:
                        await asyncio.sleep(drip_s)
                if close:
                    writer.close()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        server.close()
        for writer in held:
            writer.close()
        await asyncio.sleep(0)


ANSWER = {"outcome": "allow", "rule": "mine", "reason": "because"}
BIG = json.dumps({"result": "x" * limits.POLICY_ANSWER_BYTES_MAX}).encode()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (http(b"no json"), "malformed"),
        (http(b"[]"), "malformed"),
        (http(b'{"result": {}, "result": {}}'), "malformed"),
        (http(b'{"result": 1.5}'), "malformed"),
        (http(b'{"result": {}, "allow": true}'), "malformed"),
        (http(b'{"result": {}}', length=9999), "malformed"),
            (b'HTTP/1.1 200 OK\r\n\r\n{"result": {}}', "malformed"),
        (http(b"{}", "500 Internal Server Error"), "error"),
        (http(b"{}", "401 Unauthorized"), "error"),
        (http(b"", "302 Found"), "error"),
        (http(BIG), "too_large"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n" + b"10\r\n" + b" " * 16 + b"\r\n", "too_large"),
        (b"SSH-2.0-OpenSSH\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", "malformed"),
        (b"", "timeout"),
        (b"HTTP/1.1 200 OK\r\n", "timeout"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_what_is_no_answer_is_a_failure_of_its_kind(reply, kind, tmp_path):
    path = str(tmp_path / "s")
    ends = b"9999" in reply
    async with false_server(reply, path, close=ends), asking(unix_socket=path, timeout_ms=FAST_MS) as asked:
        found = await failure(asked)
    assert found.kind == kind


async def test_a_server_that_sends_a_byte_at_a_time_is_late_and_holds_nobody(tmp_path):
    path = str(tmp_path / "s")
    reply = http(json.dumps({"result": ANSWER}).encode())
    async with false_server(reply, path, drip_s=0.02), asking(unix_socket=path, timeout_ms=FAST_MS) as asked:
        before = time.monotonic()
        assert (await failure(asked, QUESTIONS * 2)).kind == "timeout"
        assert time.monotonic() - before < 5 * FAST_MS / 1000


async def test_a_server_that_is_not_there_is_unavailable(tmp_path):
    async with asking(unix_socket=str(tmp_path / "none")) as asked:
        assert (await failure(asked)).kind == "unavailable"
    async with asking(url="http://127.0.0.1:1") as asked:
        assert (await failure(asked)).kind == "unavailable"


async def test_a_connection_that_was_closed_while_idle_is_opened_again(tmp_path):
    path = str(tmp_path / "s")
    answered = http(b'{"result": {"outcome": "default"}}')
    async with false_server(answered, path, close=True), asking(unix_socket=path) as asked:
        for _ in range(3):
            assert await asked.ask(QUESTIONS) == [{"outcome": "default"}]


async def test_many_decisions_at_once_are_all_answered(opa):
    async with asking(unix_socket=opa.socket_path) as asked:
        found = await asyncio.gather(*(asked.ask(QUESTIONS * 2) for _ in range(20)))
    assert len(found) == 20


async def test_a_question_above_the_bound_is_not_sent(opa):
    large = {**QUESTIONS[0], "parameters": {"text": "x" * limits.POLICY_QUESTION_BYTES_MAX}}
    async with asking(unix_socket=opa.socket_path) as asked:
        assert (await failure(asked, [large])).kind == "too_large"
