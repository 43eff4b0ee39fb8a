"""A host that signs each action: propose, look at the hash, sign, act. Nothing else gets past its daemon.

    python examples/host_grant.py

It starts a daemon of its own in authority mode `host`, with an isolated desktop and an editor in it, and ends both.
The signer here uses nothing of Surehand: spec/grant.md is all that a host in another language needs.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import surehand

ISSUER, KEY_ID, GENERATION = "acme", "key-1", 1


class Signer:
    """The host's side: a key, and the canonical bytes of a grant."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public_key = self._key.public_key().public_bytes_raw().hex()

    def grant(self, *, principal: str, operation_id: str, action_hash: str) -> dict[str, Any]:
        """Return a signed grant for one operation, good for a minute."""
        grant = {
            "action_hash": action_hash,
            "expires_at_ms": int(time.time() * 1000) + 60_000,
            "issuer": ISSUER,
            "key_id": KEY_ID,
            "operation_id": operation_id,
            "policy_generation": GENERATION,
            "principal": principal,
            "risk": "reversible",
        }
        # Sorted keys, no spaces, no floats: the canonical form of spec/canonical.md for a value like this one.
        body = json.dumps(grant, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return {"grant": grant, "signature": self._key.sign(b"surehand/grant/v1\x00" + body).hex()}


def main() -> None:
    """Run the host, the daemon and the agent."""
    signer = Signer()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "keyring.json").write_text(
            json.dumps(
                {
                    "key": [
                        {
                            "issuer": ISSUER,
                            "key_id": KEY_ID,
                            "policy_generation": GENERATION,
                            "public_key": signer.public_key,
                        }
                    ]
                }
            )
        )
        (home / "config.toml").write_text(f'authority = "host"\nkeyring = "{home}/keyring.json"\n')
        os.environ["SUREHAND_RUNTIME_DIR"] = f"{home}/run"
        daemon = subprocess.Popen([*cli("serve"), "--config", f"{home}/config.toml"])
        try:
            wait_until_it_serves(daemon, home / "run" / "control.sock")
            name = f"grant-{secrets.token_hex(3)}"
            subprocess.run([*cli("desktop", "start"), "--name", name], check=True)
            subprocess.run([*cli("desktop", "launch"), name, "--", "mousepad"], check=True)
            with surehand.open(desktop=name, start=False) as hand:
                agent(hand, signer)
            subprocess.run(cli("desktop", "stop", name), check=True)
        finally:
            subprocess.run(cli("stop"), check=False)
            daemon.wait(30)


def wait_until_it_serves(daemon: subprocess.Popen[bytes], socket: Path) -> None:
    """Wait for its socket; otherwise the next command would start a daemon with the default configuration."""
    deadline = time.monotonic() + 10
    while not socket.exists():
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("FAILED: the daemon did not start")
        time.sleep(0.02)


def agent(hand: surehand.Hand, signer: Signer) -> None:
    """Propose, have it signed, act; and fail with a grant for something else."""
    target = hand.app("mousepad").get_by_role("text").one(timeout_s=20)
    request = {
        "operation_id": f"op-{secrets.token_hex(8)}",
        "action": {"kind": "set_value", "value": "signed by the host"},
        "target": {"kind": "element", **target.ref},
    }

    try:
        hand.act(request)
    except surehand.SurehandError as error:
        check(error.code == "authority_denied", "without a grant nothing happens")
    else:
        check(False, "without a grant nothing happens")

    proposal = hand.propose(request)
    print("to sign:", proposal["action_hash"])
    signed = signer.grant(
        principal=hand.about["principal"],
        operation_id=request["operation_id"],
        action_hash=proposal["action_hash"],
    )
    receipt = hand.act({**request, "authority": signed})
    check(isinstance(receipt, surehand.Receipt) and receipt.verified, "with a grant it happens, and is read back")
    check(receipt.receipt["authority_mode"] == "host", "the receipt says on whose word")

    other = {**request, "operation_id": f"op-{secrets.token_hex(8)}"}
    try:
        hand.act({**other, "authority": signed})
    except surehand.SurehandError as error:
        check(error.code == "authority_denied", "a grant is for one operation and no other")
    else:
        check(False, "a grant is for one operation and no other")


def cli(*words: str) -> list[str]:
    """Return a command of this very installation."""
    return [str(Path(sys.executable).with_name("surehand")), *words]


def check(holds: bool, what: str) -> None:
    """End with an error where something does not hold."""
    if not holds:
        raise SystemExit(f"FAILED: {what}")
    print(f"ok: {what}")


if __name__ == "__main__":
    main()
