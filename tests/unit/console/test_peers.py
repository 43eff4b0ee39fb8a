"""Who is at the other end of a connection, by the kernel's word."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from surehand.console.peers import Address, Peer, peer_of, process_of
from surehand.console.server import listening
from surehand.errors import Unavailable


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_other_end_is_named_by_user_and_process(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        script = f"import socket, sys; s = socket.create_connection(({host!r}, {port})); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as client:
            connected, address = server.accept()
            with connected:
                peer = peer_of(Address(*address[:2]), Address(*connected.getsockname()[:2]))
                assert peer is not None
                assert peer.uid == os.getuid()
                assert process_of(peer) == client.pid
                assert process_of(peer, likely=[client.pid]) == client.pid
                assert process_of(peer, likely=[1, os.getpid()]) == client.pid
                assert process_of(Peer(peer.uid, 1)) is None
            client.communicate()


def test_a_connection_that_nobody_has_is_nobodys() -> None:
    assert peer_of(Address("127.0.0.1", 1), Address("127.0.0.1", 2)) is None


def test_a_connection_whose_other_end_was_closed_is_nobodys() -> None:
    # The kernel lists it with the number of root, whoever it was of.
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        client.sendall(b"GET / HTTP/1.1")
        ours, theirs = client.getpeername(), client.getsockname()
        client.close()
        assert peer_of(Address(*theirs), Address(*ours)) is None


def test_the_page_is_on_this_machines_own_addresses_of_both_kinds_on_one_port() -> None:
    found = listening(None)
    try:
        addresses = {one.getsockname()[0] for one in found}
        assert addresses <= {"127.0.0.1", "::1"}
        assert len({one.getsockname()[1] for one in found}) == 1
        taken = found[0].getsockname()[1]
        with pytest.raises(Unavailable, match=str(taken)):
            listening(taken)
    finally:
        for one in found:
            one.close()


def test_a_port_that_somebody_has_on_the_other_kind_is_not_taken() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        with pytest.raises(Unavailable):
            listening(port)
