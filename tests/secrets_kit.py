"""What tests of secrets share: a world with a real vault, and the search for a secret in everything that was written."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from surehand.adapters.secrets_vault import VaultFile
from surehand.model.actions import SetValue
from surehand.model.secrets import SecretBinding
from surehand.runtime.resolve import Resolver
from surehand.runtime.secrets import Secrets
from surehand.testing.memory import button, field
from surehand.testing.worlds import World

#: Odd enough to occur nowhere by itself, with what each encoding would change.
CANARY = 'Kanarie-7f3a!\u00e9"\\<w\u00f6rt>-93bd'
APP = "exe:/opt/memory"
PERSON = "uid:1000"
ALLOW = (
    'version = 1\n[[rule]]\nid = "all"\neffect = "allow"\nreason = "for tests"\n'
    'match = { app = ["exe:/opt/memory"] }\ncovers = ["credentials"]\n'
)


def forms_of(secret: str) -> Iterator[tuple[str, bytes]]:
    """Yield how a secret may stand in a file or a memory image, by the name of the form."""
    plain = secret.encode()
    yield "utf-8", plain
    yield "latin-1", secret.encode("latin-1")  # which is how Python keeps a text like this
    yield "utf-16-le", secret.encode("utf-16-le")
    yield "utf-16-be", secret.encode("utf-16-be")
    yield "utf-32", secret.encode("utf-32-le")
    for start in range(3):
        # Wherever it begins in what was encoded, this much in the middle is the same.
        whole = base64.b64encode(b"\0" * start + plain)
        yield f"base64 at {start}", whole[4:-4]
        yield f"base64url at {start}", base64.urlsafe_b64encode(b"\0" * start + plain)[4:-4]
    yield "hex", plain.hex().encode()
    yield "HEX", plain.hex().upper().encode()
    yield "json", json.dumps(secret)[1:-1].encode()
    yield "json, as it is", json.dumps(secret, ensure_ascii=False)[1:-1].encode()
    yield "repr", repr(secret)[1:-1].encode()
    yield "backwards", secret[::-1].encode()
    half = len(secret) // 2
    yield "halves exchanged", (secret[half:] + secret[:half]).encode()
    # Either half alone is already too much.
    yield "first half", secret[:half].encode()
    yield "second half", secret[half:].encode()


def found_in(data: bytes, secret: str = CANARY) -> list[str]:
    """Return in which forms a secret stands in this."""
    return [name for name, form in forms_of(secret) if form in data]


class SecretWorld(World):
    """A world with a password field `pw`, a plain field `name`, a button, and a vault in a folder."""

    def __init__(self, folder: Path, *, policy: str = ALLOW, **facts: Any) -> None:
        nodes = (
            msgspec.structs.replace(field("pw", "Password", ""), role="password", secret=True),
            field("name", "Name", "old"),
            field("code", "Code", ""),
            button("save", "Save"),
        )
        super().__init__(nodes, policy=policy, **facts)
        self.folder = folder
        folder.chmod(0o700)
        self.vault = VaultFile(folder / "secrets.vault", folder / "keys" / "vault.key")
        self.identity: str | None = None
        self.secrets = self.new_secrets()

    def new_secrets(self, **environment: Any) -> Secrets:
        """Return what is enrolled as a daemon that starts now would see it, and have the gateway use it."""
        self.secrets = Secrets(
            self.vault,
            None,
            environment,
            self.journal,
            self.clock,
            lambda _: self.identity or self.app.surface.app.key,
        )
        self.gateway.secrets = self.secrets
        self.gateway.resolver = Resolver(self.scenes, self.clock, self.secrets.bound)
        return self.secrets

    async def enrol(self, name: str = "mail", secret: str = CANARY, **bound_to: Any) -> None:
        """Enrol a secret for the application."""
        binding = SecretBinding(**{"apps": (APP,), **bound_to})
        await self.secrets.put(PERSON, name, binding, bytearray(secret, "utf-8"))

    async def enter(self, operation_id: str, reference: str = "vault:mail", handle: str = "pw", **facts: Any) -> Any:
        """Have a secret set into a field."""
        return await self.act(operation_id, handle, action=SetValue(secret_ref=reference), **facts)
