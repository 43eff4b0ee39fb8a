"""What the answer to an acting call proves, per toolkit, as tables of what was measured.

After the call was sent only two things are ever claimed: `done` when the application acknowledged it, and `no_effect`
where the answer proves that nothing happened. Silence is `sent`; everything else is `unknown`. An acknowledgement is
not an effect: GTK 3 answers true for disabled controls and before it acts, so effects are verified elsewhere.

A third thing is said before any answer came: `begun`. Qt 5 handles the calls of one connection in order and in one
thread, so an application that answers a question sent behind the act has taken the act up, and runs a loop of its own
inside the handler: a dialog or menu, which acknowledges when it closes. That holds for named actions only: GTK 4 never
answers when it selects text, so silence there proves no handler. And for no other toolkit: one that answers questions
in another thread does so while it hangs. An application that hangs answers neither, and stays `sent`; windows that come
up meanwhile prove nothing either way.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from surehand.adapters.atspi.transport import Failure, Reply

Kind = Literal["action", "text", "range", "value", "selection", "focus", "scroll_to"]
Status = Literal["done", "begun", "sent", "no_effect", "unknown"]

#: Errors that the receiver gives before it looks for what to do → our code for why nothing happened. `GDBus…Code13`
#: is GTK 4's "no such action"; Qt says UnknownObject for every call it does not carry out.
_BEFORE_ANYTHING: Final[dict[str, str]] = {
    "org.freedesktop.DBus.Error.UnknownObject": "stale_target",
    "org.freedesktop.DBus.Error.UnknownInterface": "unsupported_action",
    "org.freedesktop.DBus.Error.UnknownMethod": "unsupported_action",
    "org.freedesktop.DBus.Error.UnknownProperty": "unsupported_action",
    "org.freedesktop.DBus.Error.NotSupported": "unsupported_action",
    "org.freedesktop.DBus.Error.InvalidArgs": "stale_target",
    "org.freedesktop.DBus.Error.InvalidSignature": "unsupported_action",
    "org.freedesktop.DBus.Error.PropertyReadOnly": "target_not_actionable",
    "org.freedesktop.DBus.Error.AccessDenied": "permission_missing",
    "org.gtk.GDBus.UnmappedGError.Quark._g_2dio_2derror_2dquark.Code13": "stale_target",
}
#: The bus had nobody to deliver it to. `NoReply` is not among them: it also stands for a receiver that died with it.
_NOT_DELIVERED: Final = frozenset(
    ["org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner"]
)

#: Where a `false` was seen to prove that nothing happens, then or later (GTK 3.24, GTK 4.8, Qt 5.15; the fixture
#: applications logged nothing). Anywhere else `false` proves nothing.
_FALSE_IS_NO_EFFECT: Final[dict[str, frozenset[Kind]]] = {
    "gtk3": frozenset(["range", "selection", "scroll_to"]),
    "gtk4": frozenset(["action", "text", "range", "selection"]),
    "qt5": frozenset(["range", "focus"]),
}


#: Where an answer behind an unanswered action was seen to prove that its handler runs (Qt 5.15).
_ANSWERS_IN_ORDER: Final = frozenset(["qt5"])


class Verdict(NamedTuple):
    """What is known after the acting call; with `no_effect`, `detail` is a code of spec §12 that says why."""

    status: Status
    detail: str


def judge(reply: Reply, kind: Kind, family: str) -> Verdict:
    """Return what a reply to an acting call of some kind proves in a toolkit family."""
    if isinstance(reply, Failure):
        return _judge_failure(reply)
    if reply and reply[0] is False:
        if kind in _FALSE_IS_NO_EFFECT.get(family, ()):
            return Verdict("no_effect", "target_not_actionable")
        return Verdict("unknown", "the application answered false, which proves nothing here")
    return Verdict("done", "acknowledged")


def judge_silence(behind: Reply | None, kind: Kind, family: str) -> Verdict:
    """Return what is known while an acting call is unanswered, by the answer to the question sent behind it."""
    in_order = kind == "action" and family in _ANSWERS_IN_ORDER
    if in_order and behind is not None and not isinstance(behind, Failure):
        return Verdict("begun", "its handler runs, and serves other work meanwhile")
    return Verdict("sent", "not acknowledged")


def _judge_failure(failure: Failure) -> Verdict:
    if failure.kind == "unsent":
        return Verdict("no_effect", "backend_unavailable")
    if failure.kind == "timeout":
        return Verdict("sent", "no acknowledgement in time")
    if failure.kind == "refused" and failure.name in _BEFORE_ANYTHING:
        return Verdict("no_effect", _BEFORE_ANYTHING[failure.name])
    if failure.kind == "gone" and failure.name in _NOT_DELIVERED:
        return Verdict("no_effect", "backend_unavailable")
    if failure.kind in {"lost", "gone"}:
        return Verdict("unknown", "the application's connection ended during the call")
    return Verdict("unknown", f"the application answered with an error: {failure.name or failure.kind}")
