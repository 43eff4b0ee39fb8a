"""`surehand keys`: which keys there are, and an approver's own key."""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from surehand.cli.output import out, table
from surehand.client.control import Control
from surehand.client.credentials import invite
from surehand.core.wire.places import places, state_dir
from surehand.errors import InvalidRequest, PermissionMissing, SurehandError, Unavailable
from surehand.model.record import to_value
from surehand.signing.runtime_folder import with_runtime_folder

if TYPE_CHECKING:
    from surehand.signing.ed25519 import SigningKey
    from surehand.signing.keystore import KeyStore

#: What is shown of a credential.
_CREDENTIAL: Final = ("approver", "key_id", "label", "algorithm", "enrolled_by")

KeysOption = Annotated[str | None, typer.Option("--keys", help="Folder of approver keys. Default: the daemon's own.")]


def folder_of(folder: str | None) -> Path:
    """Return the folder of the approver's keys."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    default = state_dir(os.environ, home, places(with_runtime_folder(os.environ, os.getuid()), os.getuid()))
    return Path(folder) if folder is not None else Path(default) / "keys"


def store(folder: str | None) -> KeyStore:
    """Open the approver's key store."""
    from surehand.signing.keystore import KeyStore  # noqa: PLC0415 - cryptography loads for these commands alone

    return KeyStore.open(folder_of(folder))


def approver_key(folder: str | None, approver: str | None) -> tuple[str, SigningKey]:
    """Return an approver's name and private key; asks for the passphrase where it has one.

    Raises:
        InvalidRequest: no key, or several and none named.
    """
    keys = store(folder)
    names = [one.approver for one in keys.approvers()]
    if approver is None and len(names) != 1:
        raise InvalidRequest(
            f"{len(names)} approver keys are here" if names else "there is no approver key here",
            fix="name one with --as" if names else "make one: surehand keys create NAME",
            details={"approvers": names},
        )
    name = approver if approver is not None else names[0]
    try:
        return name, keys.approver(name)
    except SurehandError as error:
        if "needs a passphrase" not in error.message:
            raise
    return name, keys.approver(name, passphrase=_passphrase(f"Passphrase of {name}: "))


def _passphrase(prompt: str) -> str:
    import getpass  # noqa: PLC0415 - beside its only use

    if not sys.stdin.isatty():
        raise PermissionMissing("the passphrase is asked for at a terminal only", fix="run this in a terminal")
    return getpass.getpass(prompt, stream=sys.stderr)


def show(keys: KeysOption = None) -> None:
    """Show which keys there are: the daemon's by what they are for, and your approver keys. Never a key itself.

    Example:
      surehand keys show
    """
    daemon: dict[str, Any] | None = None
    with contextlib.suppress(Unavailable), Control() as control:
        daemon = control.call("keys")
    mine = [to_value(one) for one in store(keys).approvers()]
    for one in mine:
        one["passphrase"] = store(keys).behind_passphrase(one["approver"])
    rows = [(one["approver"], one["key_id"], "yes" if one["passphrase"] else "no", one["public_key"]) for one in mine]
    lines = table(("APPROVER", "KEY", "PASSPHRASE", "PUBLIC KEY"), rows) if rows else ["no approver key here"]
    told = dict(daemon or {"keys": "no daemon answers"})
    enrolled = told.pop("credentials", [])
    if enrolled:
        heads = ("APPROVER", "CREDENTIAL", "AUTHENTICATOR", "KIND", "ENROLLED WITH")
        lines += table(heads, [tuple(one[name] for name in _CREDENTIAL) for one in enrolled])
    lines += [f"daemon {name}: {value}" for name, value in told.items()]
    out().data({"daemon": daemon, "approvers": mine}, lines)


def enrol_webauthn(
    approver: Annotated[str | None, typer.Argument(help="Which approver, where this machine has several.")] = None,
    keys: KeysOption = None,
) -> None:
    """Print a code that lets an authenticator (a security key, a fingerprint) answer for you in the console page.

    Example:
      surehand keys enrol-webauthn ann

    Your key signs the invitation; its code is good once, for ten minutes. Open the page with `surehand console`, choose
    Credentials, and type the code there. The authenticator must verify you each time, by a PIN or a touch it knows.
    """
    name, key = approver_key(keys, approver)
    with Control() as control:
        code, until_ms = invite(control, name, key)
    lines = [f"code for the console page: {code}", "it is good once, for ten minutes"]
    out().data({"approver": name, "code": code, "expires_at_ms": until_ms}, lines)


def remove_webauthn(
    key_id: Annotated[str, typer.Argument(help="The credential, as `surehand keys show` lists it.")],
) -> None:
    """Take a WebAuthn credential away. No answer of it counts from now on.

    Example:
      surehand keys remove-webauthn 9f0c2a4b6d8e0f12
    """
    with Control() as control:
        gone = control.call("credentials.remove", {"key_id": key_id})["credential"]
    out().data(gone, f"the credential {key_id} of {gone['approver']} is gone")


def create(
    approver: Annotated[str, typer.Argument(help="Your name as an approver: letters, digits, . _ -")],
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Seal it; asked for at each answer.")] = False,
    keys: KeysOption = None,
) -> None:
    """Make an approver's key pair, and show its public half as the configuration lists it.

    Example:
      surehand keys create ann --passphrase

    Without a passphrase it can say no to anything, and yes to nothing of consequence while agent and approver are one
    user (level A). There the daemon takes the keys in its own folder after its next start. Where the configuration
    lists approvers, the printed lines go there; only its operator may write it, and the private half stays with you.
    """
    words = _new_passphrase() if passphrase else None
    made = store(keys).create_approver(approver, passphrase=words)
    lines = [
        "[[approvers]]",
        f'approver = "{made.approver}"',
        f'key_id = "{made.key_id}"',
        f'public_key = "{made.public_key}"',
        *(["passphrase = true"] if passphrase else []),
    ]
    if not passphrase:
        out().note("without a passphrase this key says yes to nothing of consequence at level A")
    out().note("a running daemon knows the key after a restart (`surehand stop`)")
    out().data({**to_value(made), "config": "\n".join(lines) + "\n"}, lines)


def remove(
    approver: Annotated[str, typer.Argument(help="Whose key, as `surehand keys show` lists it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    keys: KeysOption = None,
) -> None:
    """Destroy an approver's key. No answer of it counts from now on, also where the daemon runs.

    Example:
      surehand keys remove ann

    WebAuthn credentials that it enrolled go with it. Where the daemon's configuration lists approvers, take the entry
    out there and start the daemon again.
    """
    if not yes:
        if out().as_json or not sys.stdin.isatty():
            raise InvalidRequest("this needs a person at a terminal", fix="add --yes if you are one")
        typer.confirm(f"Destroy the key of {approver}?", abort=True)
    gone = store(keys).remove_approver(approver)
    out().data(to_value(gone), f"the key {gone.key_id} of {approver} is gone")


def _new_passphrase() -> str:
    first = _passphrase("New passphrase: ")
    if first != _passphrase("Again: "):
        raise InvalidRequest("the two differ; nothing was made")
    return first


COMMANDS: Final[dict[str, Any]] = {
    "show": show,
    "create": create,
    "remove": remove,
    "enrol-webauthn": enrol_webauthn,
    "remove-webauthn": remove_webauthn,
}
