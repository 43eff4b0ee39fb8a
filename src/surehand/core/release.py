"""What may leave: secret fields never do, and output goes through the obligations of its decision (spec §6.3, §3.5).

Guarantees: the value and even the length of a secret field are in nothing that is released; a field that its label
calls a password, or that a rule names, is a secret however plainly its application shows it; a resolved secret is
masked in every output; output that must be asked about and was not agreed to, or is larger than anybody may hand out,
is withheld whole, with no byte of it in the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.redaction import mask
from surehand.errors import SecureSurface
from surehand.model.decision import Obligations
from surehand.model.record import Record
from surehand.model.scene import LiveNode, Node

#: Roles whose content is secret even where the toolkit forgot to say so.
SECRET_ROLES: Final = frozenset({"password"})
#: Roles into which something is entered, and which a rule can therefore call a secret.
FIELD_ROLES: Final = frozenset({"combobox", "password", "spinbutton", "text"})
#: What a rule's `redact` says of what is read: every field, those whose label holds a text, every picture.
REDACT_VALUES: Final = "value"
REDACT_FIELD: Final = "field:"
REDACT_PICTURES: Final = "png"

#: What input says of how much of it went out: with a secret that is how long the secret is.
_COUNTS: Final = frozenset({"delivered", "units"})

#: How labels call a password. A field shown in clear from the start has no role that would tell (spec §6.3).
_PASSWORD: Final = re.compile(
    r"pass-?\s?(?:word|wort|code|phrase)|passwd|kennwort|mot de passe|contrase[nñ]a|clave de acceso|senha"
    r"|palavra-?\s?passe|wachtwoord|has[lł]o|heslo|jelsz[oó]|parol[aăe]|l[oö]senord|adgangskode|kodeord|passord"
    r"|salasana|[sş]ifre|пароль|парол|κωδικ[οό]ς προσβασης|κωδικ[οό]ς πρόσβασης|συνθηματικ|كلمة المرور|كلمة السر"
    r"|גּ?סיסמה|סיסמ|گذرواژه|पासवर्ड|รหัสผ่าน|mật khẩu|kata sandi|パスワード|暗証番号|비밀번호|암호|密码|密碼|口令"
    r"|(?<!\w)pin(?:\s?-?code)?(?!\w)"
)


class Released(Record, frozen=True, kw_only=True):
    """Output that may leave."""

    output: dict[str, Any] | None


class Withheld(Record, frozen=True, kw_only=True):
    """Output that may not. The reason holds nothing of it."""

    reason: str


def is_secret(node: Node) -> bool:
    """Say whether the node's content must never leave."""
    return node.secret or node.role in SECRET_ROLES


def cover(node: Node) -> Node:
    """Return the node as a secret field, whatever its application says it is."""
    if node.secret and node.value is None and node.text_chars is None:
        return node
    role = "password" if node.role == "text" else node.role
    return msgspec.structs.replace(node, role=role, secret=True, value=None, text_chars=None)


def cover_live(live: LiveNode) -> LiveNode:
    """Return a live reading as one of a secret field."""
    return msgspec.structs.replace(live, node=cover(live.node))


@lru_cache(maxsize=limits.LABELS_READ_MAX)
def names_a_secret(label: str) -> bool:
    """Say whether a label calls what is entered beside it a password; a label that lies hides, and opens nothing."""
    return _PASSWORD.search(unicodedata.normalize("NFKC", label).casefold()) is not None


def is_redacted_field(label: str, redact: Iterable[str]) -> bool:
    """Say whether a rule's `redact` names the field of this label, or every field."""
    called = _as_read(label)
    return any(
        one == REDACT_VALUES or (one.startswith(REDACT_FIELD) and _as_read(one[len(REDACT_FIELD) :]) in called)
        for one in redact
    )


def _as_read(text: str) -> str:
    """Return a text without what a reader does not see: case, wide letters, what kind of blank and how many."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def release_node(node: Node) -> Node:
    """Return the node without what a secret field holds; other nodes as they are."""
    if not is_secret(node):
        return node
    if node.secret and node.value is None and node.text_chars is None:
        return node
    # The length of a password is worth having to whoever guesses it.
    return msgspec.structs.replace(node, secret=True, value=None, text_chars=None)


def release_live(live: LiveNode) -> LiveNode:
    """Return a live reading without what a secret field holds."""
    node = release_node(live.node)
    return live if node is live.node else msgspec.structs.replace(live, node=node)


def check_readable(node: Node) -> None:
    """Refuse to read the text of a secret field.

    Raises:
        SecureSurface: always for a secret field; no policy opens it.
    """
    if is_secret(node):
        raise SecureSurface(
            "this field holds a secret, which is never read out",
            gate="policy",
            fix="Compare it with a verification; the comparison is made where the secret is.",
        )


def release_output(
    output: dict[str, Any] | None, obligations: Obligations, *, secrets: Iterable[str] = (), agreed: bool = False
) -> Released | Withheld:
    """Decide what of an operation's output leaves quarantine.

    Args:
        output: What the actor returned.
        obligations: Of the decision the operation ran under.
        secrets: Every secret that was resolved for the operation; nor does what counts its characters leave.
        agreed: Whether whoever must be asked has said yes to this output.
    """
    if output is None:
        return Released(output=None)
    if obligations.release == "ask" and not agreed:
        return Withheld(reason="its output needs a yes that was not given")
    secrets = tuple(secrets)
    told = output.items() if not secrets else [(name, item) for name, item in output.items() if name not in _COUNTS]
    kept = {name: "[redacted]" if name in obligations.redact else item for name, item in told}
    try:
        released: dict[str, Any] = mask(kept, secrets)
        size = len(msgspec.json.encode(released))
    except (TypeError, ValueError, RecursionError):
        # It happened; what cannot be looked through is not given out, and is no failure of the operation either.
        return Withheld(reason="its output cannot be looked through")
    if size > limits.OUTPUT_BYTES_MAX:
        return Withheld(reason="its output is larger than may be handed out")
    return Released(output=released)
