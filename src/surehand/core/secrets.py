"""Where a secret may be used: the rules, without the secrets (spec §3.2, §6.3).

Guarantees: a secret goes to an application by the identity its process proves, never by a name or a title; a page gets
one only where its origin is listed, so that a look-alike gets none; an interpreter, which could be any program, gets
none. Which fields it may go into is the kernel's to say: `safety.check_secret_use`.
"""

from __future__ import annotations

import re
from typing import Final

from surehand.core.policy.evaluate import is_interpreter
from surehand.errors import AuthorityDenied, InvalidRequest
from surehand.model.secrets import SecretBinding

#: A place that is an origin, as browsers' adapters name it; other places are windows.
_IS_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)

#: Stands for the origin of a page that only says of itself where it is; no secret is bound to it.
UNPROVEN_ORIGIN: Final = "page:unproven"


def is_origin(place: str) -> bool:
    """Say whether a place is an origin, and not a window."""
    return _IS_ORIGIN.match(place) is not None


def check_binding(binding: SecretBinding) -> None:
    """Refuse a binding that would open a secret to programs nobody named.

    Raises:
        InvalidRequest: naming the application.
    """
    for app in binding.apps:
        if is_interpreter(app):
            raise InvalidRequest(
                f"{app} runs any program, so it is no application to bind a secret to",
                fix="bind it to the script: script:/INTERPRETER:/PATH, as `surehand apps` shows it",
            )


def is_bound(binding: SecretBinding, app: str, place: str) -> bool:
    """Say whether a secret may be used in this application, at this place."""
    if app not in binding.apps or is_interpreter(app):
        return False
    if binding.origins or is_origin(place):
        return place in binding.origins
    return True


def check_bound(reference: str, binding: SecretBinding | None, app: str, place: str) -> SecretBinding:
    """Return the binding of a secret that may be used here.

    Raises:
        AuthorityDenied: it may not, or there is no such secret. Which of the two an agent is not told: it could try
            out which secrets there are, and for what.
    """
    if binding is None or not is_bound(binding, app, place):
        raise AuthorityDenied(
            f"{reference} is not enrolled for this application and place",
            gate="authority",
            fix="the operator sees what it is bound to with `surehand secret show`",
            details={"reason": "secret_not_bound", "secret_ref": reference, "app": app, "place": place},
        )
    return binding
