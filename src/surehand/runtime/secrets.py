"""Secrets by reference: what each is bound to before anybody is asked, the secret itself after the permit (spec §3.2).

Guarantees:
- `bound` says where a reference may be used and holds no secret. `reveal` gives one to a run whose permit was consumed,
  to a process whose identity is read again at that moment, for exactly what the person or the rule had agreed to.
- What is enrolled, changed and removed is on record with the vault's generation, so that an old vault that was put
  back is refused. Names and bindings are on record; secrets are not.
- A secret is in one buffer, which is overwritten when the run ends. The vault's key is in one, until it is locked.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from surehand.core.secrets import check_binding, check_bound, is_bound
from surehand.errors import AuthorityDenied, Conflict, InternalError, InvalidRequest, SurehandError, Unavailable
from surehand.model.actions import secret_of
from surehand.model.events import NewEvent
from surehand.model.record import to_value
from surehand.model.request import Request
from surehand.model.secrets import (
    BoundSecret,
    EnvSecret,
    HeldSecret,
    OpenedVault,
    SecretBinding,
    VaultKeyKind,
    check_name,
    check_reference,
    check_secret_text,
)
from surehand.ports import Clock, Journal, Vault, VaultKeyring
from surehand.runtime.run import Run

_log: Final = logging.getLogger("surehand.secrets")
_STREAM: Final = "secrets"
_PAGE: Final = 1_000

#: Who a process is now, by its pid.
Identify = Callable[[int], str]


@dataclass(slots=True)
class _Recorded:
    """What the journal says of the vault."""

    vault_id: str = ""
    generation: int = 0
    seal: str = ""


class Secrets:
    """What is enrolled. One per daemon.

    Args:
        vault: Where `vault:` secrets are.
        keyring: Of the desktop; None where there is none.
        environment: The `env:` secrets, from `take_from_environment`.
        journal: Of the daemon.
        clock: Of the daemon.
        identify: Says who a process is now.
    """

    def __init__(
        self,
        vault: Vault,
        keyring: VaultKeyring | None,
        environment: Mapping[str, tuple[SecretBinding, bytearray]],
        journal: Journal,
        clock: Clock,
        identify: Identify,
    ) -> None:
        self._vault = vault
        self._keyring = keyring
        self._environment = environment
        self._journal = journal
        self._clock = clock
        self._identify = identify
        self._key: bytearray | None = None
        self._key_of = ""
        #: An operator locked it; only an operator opens it again.
        self._locked = False
        self._recorded: _Recorded | None = None
        self._turn = asyncio.Lock()

    # --- for runs -----------------------------------------------------------------------------------------------

    async def bound(self, request: Request, app: str, place: str) -> BoundSecret | None:
        """Return what a request enters by reference, with its binding; None where it enters no secret.

        Raises:
            AuthorityDenied: it may not be used in this application and place, there is none, or the vault was changed.
            Unavailable: the vault is locked, or its key is not to be had.
        """
        reference = secret_of(request.action)
        if reference is None:
            return None
        found = await self._find(reference)
        check_bound(reference, None if found is None else found.bound_to, app, place)
        return found

    async def reveal(self, run: Run) -> None:
        """Give a run its secret, once its permit is consumed and its claim durable.

        Raises:
            AuthorityDenied, Unavailable: nothing was done, and nothing is held.
        """
        agreed, surface = run.aim.secret, run.aim.surface
        if agreed is None:
            return
        if run.permit is None or surface is None:
            raise InternalError("a secret without a permit")
        # What the process is now, and where the page is now: either may have changed since somebody agreed.
        app = self._identify(surface.app.pid) if surface.app.pid else surface.app.key
        check_bound(agreed.reference, agreed.bound_to, app, run.aim.origin)
        if app != surface.app.key:
            raise _changed_meanwhile(agreed.reference)
        buffer = await self._take(agreed)
        node, desk = run.aim.now or run.aim.node, run.session.desk
        named = node is not None and any(field.name == node.name for field in agreed.bound_to.fields)

        def remember() -> None:
            if desk is not None and node is not None:
                desk.secret_fields.remember(surface, node.handle)

        run.secret = HeldSecret(buffer, may_show=named, on_entering=remember)

    async def _find(self, reference: str) -> BoundSecret | None:
        source, _, name = reference.partition(":")
        if source == "env":
            held = self._environment.get(name)
            return None if held is None else BoundSecret(reference=reference, bound_to=held[0])
        opened = await self._look()
        return None if opened is None else opened.secrets.get(name)

    async def _take(self, agreed: BoundSecret) -> bytearray:
        source, _, name = agreed.reference.partition(":")
        if source == "env":
            return bytearray(self._environment[name][1])
        opened = await self._look()
        if opened is None or opened.secrets.get(name) != agreed or self._key is None:
            raise _changed_meanwhile(agreed.reference)
        return await asyncio.to_thread(self._vault.reveal, self._key, name, opened.seal)

    # --- the vault ----------------------------------------------------------------------------------------------

    async def _look(self) -> OpenedVault | None:
        """Return what the vault holds; None where there is none.

        Raises:
            AuthorityDenied: it was changed, or an old one was put back.
            Unavailable: locked.
        """
        head = await asyncio.to_thread(self._vault.head)
        recorded = await self._on_record()
        if head is None:
            if recorded.vault_id:
                raise _put_back("the vault is gone")
            return None
        opened = await asyncio.to_thread(self._vault.open, await self._key_now())
        await self._check_recorded(opened)
        return opened

    async def _key_now(self) -> bytearray:
        head = await asyncio.to_thread(self._vault.head)
        if head is None:
            raise Unavailable("there is no vault", fix="surehand secret init", details={"reason": "no_vault"})
        if self._key is not None and self._key_of == head.vault_id:
            return self._key
        if self._locked or head.key == "passphrase":
            raise Unavailable("the vault is locked", fix="surehand secret unlock", details={"reason": "vault_locked"})
        if head.key == "keyring":
            key = await self._of_keyring().key(head.vault_id)
        else:
            key = await asyncio.to_thread(self._vault.key_in_file)
        self._hold(key, head.vault_id)
        return key

    def _of_keyring(self) -> VaultKeyring:
        if self._keyring is None:
            raise Unavailable(
                "this vault's key is in a desktop's keyring, and there is none in this session",
                fix="start the daemon in the desktop's session",
                details={"reason": "keyring"},
            )
        return self._keyring

    def _hold(self, key: bytearray, vault_id: str) -> None:
        if key is not self._key:
            self._drop()
        self._key, self._key_of, self._locked = key, vault_id, False

    def _drop(self) -> None:
        if self._key is not None:
            self._key[:] = bytes(len(self._key))
        self._key, self._key_of = None, ""

    # --- against an old vault -----------------------------------------------------------------------------------

    async def _on_record(self) -> _Recorded:
        if self._recorded is None:
            found, after = _Recorded(), 0
            while page := await self._journal.stream(_STREAM, after_version=after, limit=_PAGE):
                for event in page:
                    if "generation" in event.payload:
                        found = _Recorded(event.payload["vault_id"], event.payload["generation"], event.payload["seal"])
                after = page[-1].stream_version
            self._recorded = found
        return self._recorded

    async def _check_recorded(self, opened: OpenedVault) -> None:
        """Refuse a vault that is not the one on record; one change ahead is of a process that died meanwhile."""
        known = await self._on_record()
        if (opened.vault_id, opened.generation, opened.seal) == (known.vault_id, known.generation, known.seal):
            return
        ahead = opened.vault_id == known.vault_id and opened.generation == known.generation + 1
        if not ahead and not (not known.vault_id and opened.generation == 1):
            raise _put_back("the vault is not the one that was enrolled into last")
        await self._record("vault.found.v1", "daemon", opened)

    async def _record(self, what: str, person: str, opened: OpenedVault | None, **facts: Any) -> None:
        payload = dict(facts)
        if opened is not None:
            payload |= {"vault_id": opened.vault_id, "generation": opened.generation, "seal": opened.seal}
        await self._journal.append([NewEvent(stream=_STREAM, type=what, actor=person, payload=payload)])
        if opened is not None:
            self._recorded = _Recorded(opened.vault_id, opened.generation, opened.seal)

    # --- for the operator ---------------------------------------------------------------------------------------

    async def begin(
        self, person: str, kind: VaultKeyKind | None, passphrase: bytearray | None, *, replace: bool = False
    ) -> dict[str, Any]:
        """Make the vault. Without a kind its key is in the desktop's keyring where that is open, else in a file.

        Raises:
            Conflict: there is one. Unavailable: the keyring does not take the key.
        """
        async with self._turn:
            return await self._begin(person, kind, passphrase, replace=replace)

    async def _begin(
        self, person: str, kind: VaultKeyKind | None, passphrase: bytearray | None, *, replace: bool
    ) -> dict[str, Any]:
        if kind is None:
            kind = "keyring" if self._keyring is not None and await self._keyring.is_open() else "file"
        if (kind == "passphrase") != (passphrase is not None):
            raise InvalidRequest("a passphrase goes with a vault whose key is one")
        if not replace and await asyncio.to_thread(self._vault.head) is not None:
            raise Conflict("there is a vault already", fix="`surehand secret list` shows what is in it")
        if not replace and (await self._on_record()).vault_id:
            raise _put_back("the vault is gone")
        head = await asyncio.to_thread(self._vault.new_head, kind)
        if passphrase is not None:
            key = await asyncio.to_thread(self._vault.key_of_passphrase, head, passphrase)
        elif kind == "keyring":
            key = self._vault.new_key()
            await self._of_keyring().keep(head.vault_id, key)
        else:
            key = await asyncio.to_thread(lambda: self._vault.key_in_file(create=True))
        opened = await asyncio.to_thread(lambda: self._vault.create(key, head, replace=replace))
        self._hold(key, head.vault_id)
        await self._record("vault.made.v1", person, opened, key=kind)
        return {"vault_id": head.vault_id, "key": kind}

    async def unlock(self, person: str, passphrase: bytearray | None) -> dict[str, Any]:
        """Hold the vault's key from now on.

        Raises:
            AuthorityDenied: the passphrase is another one, or the vault was changed.
        """
        async with self._turn:
            head = await asyncio.to_thread(self._vault.head)
            if head is None:
                raise Unavailable("there is no vault", fix="surehand secret init", details={"reason": "no_vault"})
            if head.key != "passphrase":
                self._locked = False
                key = await self._key_now()
            elif passphrase is None:
                raise InvalidRequest("this vault is opened with its passphrase")
            else:
                key = await asyncio.to_thread(self._vault.key_of_passphrase, head, passphrase)
            opened = await asyncio.to_thread(self._vault.open, key)
            await self._check_recorded(opened)
            self._hold(key, head.vault_id)
            await self._record("vault.unlocked.v1", person, None)
            return {"vault_id": head.vault_id, "secrets": len(opened.secrets)}

    async def lock(self, person: str) -> dict[str, Any]:
        """Forget the vault's key until an operator unlocks it."""
        async with self._turn:
            self._drop()
            self._locked = True
            await self._record("vault.locked.v1", person, None)
            return {"locked": True}

    async def put(self, person: str, name: str, bound_to: SecretBinding, value: bytearray) -> BoundSecret:
        """Enrol a secret, in place of one of that name. Makes the vault where there is none.

        Raises:
            InvalidRequest: the name, the binding or the secret is not one.
        """
        check_name("vault", name)
        check_binding(bound_to)
        check_secret_text(value.decode("utf-8", "surrogateescape"))
        async with self._turn:
            if await asyncio.to_thread(self._vault.head) is None:
                await self._begin(person, None, None, replace=False)
            await self._look()
            key, now_ms = await self._key_now(), self._clock.wall_ms()
            opened = await asyncio.to_thread(self._vault.put, key, name, bound_to, value, now_ms)
            await self._record("secret.enrolled.v1", person, opened, name=name, bound_to=to_value(bound_to))
            return opened.secrets[name]

    async def remove(self, person: str, name: str) -> None:
        """Forget a secret.

        Raises:
            InvalidRequest: there is none of this name.
        """
        check_name("vault", name)
        async with self._turn:
            await self._look()
            opened = await asyncio.to_thread(self._vault.remove, await self._key_now(), name)
            await self._record("secret.removed.v1", person, opened, name=name)

    async def listed(self) -> dict[str, Any]:
        """Return what is enrolled, without the secrets: names, bindings, since when; and how the vault stands."""
        head = await asyncio.to_thread(self._vault.head)
        vault: dict[str, Any] | None = None
        found = [
            BoundSecret(reference=f"env:{name}", bound_to=binding)
            for name, (binding, _) in sorted(self._environment.items())
        ]
        if head is not None or (await self._on_record()).vault_id:
            vault = {"key": "" if head is None else head.key, "state": "open"}
            try:
                opened = await self._look()
                found = [*(opened.secrets.values() if opened is not None else ()), *found]
            except SurehandError as error:
                vault |= {"state": str(error.details.get("reason", error.code)), "error": error.to_value()}
        return {"vault": vault, "secrets": [to_value(one) for one in found]}

    async def test(self, reference: str, app: str, place: str) -> dict[str, Any]:
        """Say whether a secret could be used in an application, and whether it opens; nothing of it is told.

        Raises:
            InvalidRequest: there is no such secret. What `bound` raises of the vault.
        """
        check_reference("the secret", reference)
        found = await self._find(reference)
        if found is None:
            raise InvalidRequest(f"no secret is called {reference}", fix="surehand secret list")
        buffer = await self._take(found)
        held = HeldSecret(buffer)
        try:
            held.reveal()
        finally:
            held.wipe()
        return {"opens": True, "bound_to": to_value(found.bound_to), "usable": is_bound(found.bound_to, app, place)}

    async def close(self) -> None:
        """Overwrite what is held."""
        self._drop()
        for _, value in self._environment.values():
            value[:] = bytes(len(value))


def _changed_meanwhile(reference: str) -> AuthorityDenied:
    return AuthorityDenied(
        f"{reference}, or the application it goes to, is not what it was when this was decided",
        fix="observe again and present it as a new operation",
        details={"reason": "secret_changed", "secret_ref": reference},
    )


def _put_back(what: str) -> AuthorityDenied:
    return AuthorityDenied(
        what,
        fix="put the current vault back, or begin anew with `surehand secret init --replace`",
        details={"reason": "vault_rolled_back"},
    )


def take_from_environment(
    listed: tuple[EnvSecret, ...], environ: MutableMapping[str, str]
) -> dict[str, tuple[SecretBinding, bytearray]]:
    """Take the listed variables out of the environment, so that nothing this process starts has them.

    Raises:
        InvalidRequest: a binding or a value that is none; without the value.
    """
    found: dict[str, tuple[SecretBinding, bytearray]] = {}
    for one in listed:
        check_binding(one.bound_to)
        text = environ.pop(one.name, None)
        if text is None:
            _log.warning("env_secrets lists %s, which is not in the daemon's environment", one.name)
            continue
        check_secret_text(text)
        found[one.name] = (one.bound_to, bytearray(os.fsencode(text)))
    return found
