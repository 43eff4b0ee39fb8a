"""`surehand secret`: enrol secrets that agents enter by reference, and never see.

A secret is read from a terminal without being shown, or from standard input; never from an argument, which every
program of this machine could read. No command here prints one.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer

from surehand import limits
from surehand.cli.output import Line, out, table
from surehand.client.control import Control
from surehand.errors import AuthorityDenied, InvalidRequest
from surehand.model.record import convert, to_value
from surehand.model.secrets import SecretBinding, SecretField, check_name, check_reference, check_secret_text

_KEYS: Final = ("file", "passphrase", "keyring")

Name = Annotated[str, typer.Argument(help="Its name; agents say vault:NAME.")]
Reference = Annotated[str, typer.Argument(help="vault:NAME or env:NAME; a plain NAME is one of the vault.")]


def set_secret(
    name: Name,
    app: Annotated[
        list[str], typer.Option("--app", help="Application it is for, as `surehand apps` shows it; repeatable.")
    ],
    origin: Annotated[
        list[str] | None, typer.Option("--origin", help="Only at this origin, https://…; repeatable.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="ROLE:NAME", help="Also into this field, which shows it; repeatable."),
    ] = None,
) -> None:
    """Enrol a secret, in place of one of that name. Asks for it, or reads one line from standard input.

    Examples:
      surehand secret set mail --app exe:/usr/bin/evolution
      pass show bank | surehand secret set bank --app exe:/usr/lib/chromium/chromium --origin https://bank.example

    It is entered in these applications alone and, where an origin is given, at these origins alone. It goes into fields
    that hide what is in them; into another one only where --field names it by role and name, and then everybody can
    read it on the screen. The vault is made where there is none; see `surehand secret init`.
    """
    check_name("vault", name)
    bound_to = SecretBinding(apps=tuple(app), origins=tuple(origin or ()), fields=tuple(map(_field, field or ())))
    for one in app:
        if one.startswith("script:"):
            out().note(f"{one}: another program of the same interpreter could pass for this script")
    value = _asked(f"Secret for {name}: ", "the secret", twice=True)
    check_secret_text(value)
    with Control(start=True) as control:
        params = {"name": name, "bound_to": to_value(bound_to), "value": value}
        kept = control.call("secrets.set", params)["secret"]
    out().data(kept, f"vault:{name} is enrolled for {bound_to.told()}")


def list_secrets() -> None:
    """List what is enrolled and what it is bound to. Never a secret.

    Example:
      surehand secret list
    """
    with Control() as control:
        found = control.call("secrets")
    rows = [(one["reference"], *_told(one)) for one in found["secrets"]]
    lines: list[Line] = list(table(("SECRET", "APPS", "ORIGINS", "FIELDS"), rows) if rows else ["nothing is enrolled"])
    if (vault := found["vault"]) is not None and vault["state"] != "open":
        lines.append(("bad", f"vault: {vault['error']['message']} (fix: {vault['error'].get('fix', '')})"))
    out().data(found, lines)


def show(reference: Reference) -> None:
    """Show what a secret is bound to and since when it is the one that it is. Never the secret.

    Example:
      surehand secret show mail
    """
    wanted = _reference(reference)
    with Control() as control:
        found = control.call("secrets")
    one = next((one for one in found["secrets"] if one["reference"] == wanted), None)
    if one is None:
        if (vault := found["vault"]) is not None and vault["state"] != "open":
            raise InvalidRequest(f"the vault does not open: {vault['error']['message']}", fix=vault["error"].get("fix"))
        raise InvalidRequest(f"no secret is called {wanted}", fix="surehand secret list")
    bound_to = convert(SecretBinding, one["bound_to"])
    out().data(one, [f"secret: {wanted}", f"bound to: {bound_to.told()}"])


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
) -> None:
    """Forget a secret. It is not entered any more from now on.

    Example:
      surehand secret rm mail
    """
    check_name("vault", name)
    if not yes:
        if out().as_json or not sys.stdin.isatty():
            raise InvalidRequest("this needs a person at a terminal", fix="add --yes if you are one")
        typer.confirm(f"Forget vault:{name}?", abort=True)
    with Control() as control:
        gone = control.call("secrets.remove", {"name": name})
    out().data(gone, f"vault:{name} is gone")


def try_secret(
    reference: Reference,
    app: Annotated[str, typer.Option("--app", help="Application, as `surehand apps` shows it.")] = "",
    origin: Annotated[str, typer.Option("--origin", help="Origin of the page.")] = "",
) -> None:
    """Say whether a secret opens, and whether an application could be given it. Nothing is entered or shown.

    Example:
      surehand secret test mail --app exe:/usr/bin/evolution

    The exit code is 0 only if it opens and, where an application is named, may go there.
    """
    wanted = _reference(reference)
    with Control() as control:
        found = control.call("secrets.test", {"reference": wanted, "app": app, "place": origin})
    bound_to, where = convert(SecretBinding, found["bound_to"]), f"{app} {origin}".strip()
    if where and not found["usable"]:
        raise AuthorityDenied(f"{wanted} opens, and may not go to {where}", fix=f"it is bound to {bound_to.told()}")
    lines: list[Line] = [("good", f"{wanted} opens" + (f", and may go to {where}" if where else ""))]
    out().data(found, [*lines, f"bound to: {bound_to.told()}"])


def init(
    key: Annotated[
        str | None, typer.Option("--key", help="Where its key is: file, passphrase or keyring. See below.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Give up the vault that is there, and all secrets in it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --replace: do not ask again.")] = False,
) -> None:
    """Make the vault. `surehand secret set` does so by itself where there is none.

    Examples:
      surehand secret init --key passphrase
      surehand secret init --key file --replace

    file: beside the daemon's own keys, mode 0600. It protects a copy of the vault alone, a backup of it say; whoever
    reads your files reads both. passphrase: the daemon has it from `surehand secret unlock` until it ends. keyring:
    in the desktop's Secret Service. Without --key it is the keyring where there is an unlocked one, else the file.
    """
    if key is not None and key not in _KEYS:
        raise InvalidRequest(f"--key is one of {', '.join(_KEYS)}")
    if replace and not yes:
        if out().as_json or not sys.stdin.isatty():
            raise InvalidRequest("this needs a person at a terminal", fix="add --yes if you are one")
        typer.confirm("Give up the vault that is there, and all secrets in it?", abort=True)
    params: dict[str, Any] = {"replace": replace} | ({} if key is None else {"key": key})
    if key == "passphrase":
        params["passphrase"] = _asked("New passphrase of the vault: ", "the passphrase", twice=True)
    with Control(start=True) as control:
        made = control.call("secrets.init", params)
    out().data(made, f"the vault is made; its key is in {_WHERE[made['key']]}")


_WHERE: Final = {
    "file": "a file beside the daemon's own keys",
    "passphrase": "your passphrase: after each start of the daemon, `surehand secret unlock`",
    "keyring": "the desktop's keyring",
}


def unlock() -> None:
    """Open the vault: asks for its passphrase where it has one, and lifts `surehand secret lock`.

    Example:
      surehand secret unlock
    """
    with Control(start=True) as control:
        vault = control.call("secrets")["vault"]
        asks = vault is not None and vault["key"] == "passphrase"
        params = {"passphrase": _asked("Passphrase of the vault: ", "the passphrase")} if asks else {}
        found = control.call("secrets.unlock", params)
    out().data(found, f"the vault is open; secrets in it: {found['secrets']}")


def lock() -> None:
    """Have the daemon forget the vault's key until `surehand secret unlock`.

    Example:
      surehand secret lock
    """
    with Control() as control:
        value = control.call("secrets.lock")
    out().data(value, "the vault is locked; no secret of it is entered until `surehand secret unlock`")


def _asked(prompt: str, what: str, *, twice: bool = False) -> str:
    """Read one line: from the terminal without showing it, or from standard input where that is no terminal."""
    if not sys.stdin.isatty():
        data = sys.stdin.buffer.read(limits.SECRET_BYTES_MAX + 3)
        line = data.removesuffix(b"\n").removesuffix(b"\r")
        if not line or len(line) > limits.SECRET_BYTES_MAX:
            raise InvalidRequest(f"standard input is to give {what}: one line of 1..{limits.SECRET_BYTES_MAX} bytes")
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest(f"{what} on standard input is not UTF-8") from None
    import getpass  # noqa: PLC0415 - beside its only use

    first = getpass.getpass(prompt, stream=sys.stderr)
    if twice and first != getpass.getpass("Again: ", stream=sys.stderr):
        raise InvalidRequest("the two differ; nothing was changed")
    if not first:
        raise InvalidRequest(f"{what} is empty; nothing was changed")
    return first


def _field(text: str) -> SecretField:
    role, colon, name = text.partition(":")
    if not colon:
        raise InvalidRequest("--field is ROLE:NAME, such as 'text:One-time code'")
    return SecretField(role=role, name=name)


def _reference(text: str) -> str:
    wanted = text if ":" in text else f"vault:{text}"
    check_reference("the secret", wanted)
    return wanted


def _told(one: dict[str, Any]) -> tuple[Any, Any, Any]:
    bound_to = one["bound_to"]
    fields = [f"{field['role']}:{field['name']}" for field in bound_to.get("fields", ())]
    return bound_to["apps"], bound_to.get("origins", ()), fields


COMMANDS: Final[dict[str, Any]] = {
    "set": set_secret,
    "list": list_secrets,
    "show": show,
    "rm": remove,
    "test": try_secret,
    "init": init,
    "unlock": unlock,
    "lock": lock,
}
