"""Approvals: what a person is shown, the hash that is signed, and whether an answer counts (spec §6.4).

Guarantees: the person sees exactly what the hash covers, with nothing invisible in it; looking at the application again
does not void an answer, any change of what would happen does; an answer counts only if an allowed approver signed it,
for this question, in time; one "no" is a no. One use is counted by the journal under `use_key`.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from surehand import canonical, limits
from surehand.core.authority import Verify
from surehand.core.policy.model import RISKS
from surehand.core.redaction import mask
from surehand.errors import AuthorityDenied, InvalidRequest
from surehand.model.actions import Action
from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, Change, PendingApproval, Presentation
from surehand.model.decision import PolicyInput
from surehand.model.record import Record, check_identifier, check_range, to_value

_PRESENTATION_DOMAIN: Final = "surehand/presentation/v1"
_PLAN_DOMAIN: Final = "surehand/plan/v1"
#: What is shown of each step of a plan; the rest is the plan's.
_STEP_FIELDS: Final = ("action", "element", "context", "parameters", "risk", "categories", "action_hash")
_ANSWER_DOMAIN: Final = b"surehand/approval-answer/v1\x00"

#: Among the parameters that are shown: a yes gives out what the operation returns as well.
GIVES_OUTPUT: Final = "gives_its_output_to_the_agent"

#: Categories whose characters change what is seen without being seen: controls, formats (bidi, zero width, tags),
#: separators, surrogates, unassigned and private ones.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
#: Letters and marks that draw nothing: fillers, joiners and variation selectors.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for codes in ((0x180B, 0x1810), (0xFE00, 0xFE10), (0xE0100, 0xE01F0)) for code in range(*codes)
}


_GAP: Final = " " * 8
_GAPS: Final = re.compile(f"{_GAP} *")


class Approver(Record, frozen=True, kw_only=True):
    """Who may answer, with which key. `public_key` is 64 hex digits.

    `passphrase` says that the private half is kept behind one: read from the key's own file, or the operator's word.
    """

    approver: str
    key_id: str
    public_key: str
    passphrase: bool = False

    def __post_init__(self) -> None:
        check_identifier("approver", self.approver)
        check_identifier("key_id", self.key_id)
        if self.key_id == CLIENT_ASSERTED or self.approver.startswith("client:"):
            raise InvalidRequest(f"{self.approver} {self.key_id}: this is how a client's word is recorded, not a key")
        if len(self.public_key) != 64 or any(c not in "0123456789abcdef" for c in self.public_key):
            raise InvalidRequest("public_key must be 64 lower-case hex digits")


def visible(text: str) -> str:
    r"""Return text in which everything can be seen: `\u{202e}` for what would act without showing.

    A backslash is doubled, so that text which merely looks like an escape stays apart from one.
    """
    if text.isascii() and text.isprintable() and "\\" not in text and _GAP not in text:
        return text
    spelled = "".join(_visible(character) for character in text)
    # Enough spaces would push what follows to where the next line of the question stands.
    return _GAPS.sub(lambda gap: "\\u{20}" * len(gap[0]), spelled)


def _visible(character: str) -> str:
    if character == "\\":
        return "\\\\"
    category = unicodedata.category(character)
    if category in _UNSEEN or character in _BLANK or (category == "Zs" and character != " "):
        return f"\\u{{{ord(character):x}}}"
    return character


def shown(value: Any) -> Any:
    """Return a JSON value with every text made visible, and texts too long to read cut in the open.

    A cut text says how many characters are missing; the action hash beside it covers them.
    """
    if isinstance(value, str):
        return visible(_cut(value))
    if isinstance(value, dict):
        return {visible(str(key)): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return value


def _cut(text: str, most: int = limits.PRESENTATION_TEXT_CHARS_MAX) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} […{len(text) - 2 * half} more characters…] {text[-half:]}"


def present(
    document: PolicyInput,
    action: Action,
    *,
    reason: str,
    action_hash: str,
    crop_hash: str | None = None,
    steps: tuple[str, ...] = (),
    secrets: Iterable[str] = (),
    releases_output: bool = False,
) -> Presentation:
    """Return what the approver is shown. Scene, generation and label are left out on purpose.

    Args:
        document: What policy was asked: principal, application, place, effect, risk, categories, and the observed
            role, name and context of the element, which are made visible here.
        action: Shown with its texts: a person cannot agree to what is hidden.
        reason: Why policy asks.
        action_hash: Of the request.
        crop_hash: Digest of the picture shown beside it.
        steps: Action hashes of a plan, in order.
        secrets: Resolved secrets, which are masked.
        releases_output: A yes gives what the operation returns to whoever proposes it, too.
    """
    observed = document.facts.observed
    parameters: dict[str, Any] = to_value(action)
    parameters.pop("kind", None)
    if document.facts.secret:
        # The secret itself is not here to be shown; what a yes gives away is which one, and where it may go.
        parameters["secret_bound_to"] = document.facts.secret_bound_to
        if observed.get("secret_shown"):
            parameters["secret_will_show"] = True
    if releases_output:
        parameters[GIVES_OUTPUT] = True
    element = f"{observed.get('role', '')} {observed.get('name', '')}".strip()
    if not element and observed.get("title"):
        # What is aimed at a whole window: its title is all that tells a person which.
        element = f"window {observed['title']}"
    return Presentation(
        principal=document.principal,
        app=shown(document.facts.app),
        place=shown(document.facts.place),
        element=shown(mask(element, secrets)),
        context=shown(mask(observed.get("context", ""), secrets)),
        action=document.action,
        parameters=shown(mask(parameters, secrets)),
        risk=document.risk,
        categories=tuple(sorted({*document.facts.categories, *observed.get("categories", ())})),
        reason=shown(reason),
        action_hash=action_hash,
        crop_hash=crop_hash,
        steps=steps,
    )


def present_plan(steps: Sequence[Presentation], *, reason: str) -> Presentation:
    """Return what the approver of several steps in one window is shown: each of them, in order, as one question.

    Args:
        steps: As each alone would be shown, at least one.
        reason: Why policy asks.
    """
    first, hashes = steps[0], tuple(presentation_hash(step) for step in steps)
    listed = []
    for step in steps:
        value: dict[str, Any] = to_value(step)
        listed.append({name: value[name] for name in _STEP_FIELDS if value.get(name)})
    return Presentation(
        principal=first.principal,
        app=first.app,
        place=first.place,
        element=f"a plan of {len(steps)} steps",
        context="",
        action="batch",
        parameters={"steps": listed},
        risk=max((step.risk for step in steps), key=_risk_of),
        categories=tuple(sorted({category for step in steps for category in step.categories})),
        reason=shown(reason),
        action_hash=canonical.hash_value(_PLAN_DOMAIN, list(hashes)),
        steps=hashes,
    )


def _risk_of(risk: str) -> int:
    return next(place for place, one in enumerate(RISKS) if one == risk)


def step_of(presentation: Presentation, plan: PendingApproval, operation_id: str) -> int | None:
    """Return which step of a plan an operation is: by its id and by everything that is shown of it; None if none."""
    head, _, place = operation_id.rpartition(":")
    if head != plan.operation_id or presentation.principal != plan.principal or not place.isdecimal():
        return None
    hashes, index = plan.presentation.steps, int(place)
    if index >= len(hashes) or not hmac.compare_digest(hashes[index], presentation_hash(presentation)):
        return None
    return index


def presentation_hash(presentation: Presentation) -> str:
    """Return the hash that an approver signs."""
    return canonical.hash_record(_PRESENTATION_DOMAIN, presentation)


def ask(
    presentation: Presentation,
    *,
    approval_id: str,
    operation_id: str,
    now_ms: int,
    life_ms: int = limits.APPROVAL_MS_DEFAULT,
    needed: int = 1,
    instead_of: PendingApproval | None = None,
    was_approved: bool = False,
) -> PendingApproval:
    """Return the question, open until `now_ms + life_ms` of the wall clock.

    Args:
        presentation: What is shown.
        approval_id: Its id.
        operation_id: What it is about.
        now_ms: Wall-clock.
        life_ms: For how long.
        needed: How many different people.
        instead_of: The question about the same operation that this one replaces, because something changed.
        was_approved: Whether that one had its yes.
    """
    check_range("needed", needed, 1, limits.APPROVALS_NEEDED_MAX)
    return PendingApproval(
        approval_id=approval_id,
        operation_id=operation_id,
        principal=presentation.principal,
        presentation=presentation,
        presentation_hash=presentation_hash(presentation),
        requested_at_ms=now_ms,
        expires_at_ms=now_ms + life_ms,
        needed=needed,
        replaces=None if instead_of is None else instead_of.approval_id,
        replaces_approved=was_approved,
        changed=() if instead_of is None else difference(instead_of.presentation, presentation),
    )


def difference(before: Presentation, after: Presentation) -> tuple[Change, ...]:
    """Return what is shown otherwise, so that whoever agreed before need not find it by eye.

    The hash of the action is among it only where nothing else shows what changed.
    """
    was, now = _flat(before), _flat(after)
    changed = [
        Change(name=name, before=_short(was.get(name)), after=_short(now.get(name)))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    return tuple(one for one in changed if one.name != "action_hash") or tuple(changed)


def _flat(presentation: Presentation) -> dict[str, Any]:
    value: dict[str, Any] = to_value(presentation)
    parameters = value.pop("parameters", {})
    value.pop("crop_hash", None)
    return {**value, **{f"parameters.{name}": item for name, item in parameters.items()}}


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else canonical.encode(value).decode("utf-8")
    return _cut(text, limits.APPROVAL_CHANGE_CHARS_MAX)


def still_covers(pending: PendingApproval, presentation: Presentation) -> bool:
    """Say whether an answer to `pending` is one to `presentation`: everything that was said is the same.

    The picture is that of the question (ADR 14): a clock in it that ticks on changes nothing of what was agreed to.
    """
    presentation = msgspec.structs.replace(presentation, crop_hash=pending.presentation.crop_hash)
    return hmac.compare_digest(pending.presentation_hash, presentation_hash(presentation))


def answer_message(answer: ApprovalAnswer) -> bytes:
    """Return the bytes an approver signs: the domain, a zero byte, the canonical bytes of all but the proof itself."""
    value: dict[str, Any] = to_value(answer)
    del value["signature"]
    value.pop("assertion", None)
    return _ANSWER_DOMAIN + canonical.encode(value)


def check_answer(
    answer: ApprovalAnswer,
    pending: PendingApproval,
    approvers: Iterable[Approver],
    verify: Verify,
    *,
    now_ms: int,
    needs_passphrase: bool = False,
) -> Approver:
    """Accept an answer that an allowed approver signed for exactly this question, in time.

    Args:
        answer: From the control side; never from the agent's socket.
        pending: The open question.
        approvers: Who may answer.
        verify: Strict Ed25519.
        now_ms: Wall-clock.
        needs_passphrase: Whether a yes takes a key behind a passphrase.

    Raises:
        AuthorityDenied: naming what does not hold; the question stays open.
    """
    approver = next((one for one in approvers if (one.approver, one.key_id) == (answer.approver, answer.key_id)), None)
    if (
        approver is None
        or answer.assertion is not None
        or not verify(bytes.fromhex(approver.public_key), answer_message(answer), signature_bytes(answer.signature))
    ):
        raise not_allowed()
    check_words(answer, pending, now_ms=now_ms)
    if needs_passphrase and answer.answer == "approve" and not approver.passphrase:
        raise _denied(
            "what this does is consequential: a yes takes a key behind a passphrase, or a WebAuthn authenticator",
            fix="make one with `surehand keys create NAME --passphrase`; a key without may still say no",
        )
    return approver


def not_allowed() -> AuthorityDenied:
    """Return the refusal of an answer that no allowed key or credential gave."""
    return _denied(
        "the answer is not signed by an allowed approver",
        fix="use a key that the daemon knows; it reads keys when it starts, so after `surehand keys create` "
        "end it with `surehand stop`: the next command starts it again",
    )


def check_words(answer: ApprovalAnswer, pending: PendingApproval, *, now_ms: int) -> None:
    """Accept what an answer says, whoever signed it: it is to exactly this question, and in time.

    Raises:
        AuthorityDenied: naming what does not hold.
    """
    asked = presentation_hash(pending.presentation)
    checks = (
        ("the answer is to another question", answer.approval_id == pending.approval_id),
        ("what was asked has changed", hmac.compare_digest(asked, pending.presentation_hash)),
        ("the answer is about something else", hmac.compare_digest(answer.presentation_hash, asked)),
        ("nobody approves their own proposal", answer.approver != pending.principal),
        ("the question has expired", now_ms < pending.expires_at_ms),
        ("the answer has expired", now_ms < answer.expires_at_ms),
        ("the answer was given before the question", pending.requested_at_ms <= answer.answered_at_ms),
        ("the answer lies in the future", answer.answered_at_ms <= now_ms),
        (
            "the answer would hold for too long",
            answer.expires_at_ms - answer.answered_at_ms <= limits.APPROVAL_MS_MAX,
        ),
    )
    for message, holds in checks:
        if not holds:
            raise _denied(message)


def tally(
    answers: Iterable[ApprovalAnswer], pending: PendingApproval, *, now_ms: int
) -> Literal["waiting", "approved", "denied", "unanswered"]:
    """Count accepted answers: one no denies, enough different people approve, and time runs out as neither.

    Args:
        answers: Those that `check_answer` accepted for this question.
        pending: The question.
        now_ms: Wall-clock. A yes counts until it expires, even when the question was answered long before.
    """
    yes: set[str] = set()
    for answer in answers:
        if answer.answer == "deny":
            return "denied"
        if now_ms < answer.expires_at_ms:
            yes.add(answer.approver)
    if len(yes) >= pending.needed:
        return "approved"
    return "waiting" if now_ms < pending.expires_at_ms else "unanswered"


def use_key(approval_id: str, step: int | None = None) -> str:
    """Return the key under which the journal counts the one use of the approval, or of one step of a plan."""
    return f"approval/{approval_id}" if step is None else f"approval/{approval_id}/{step}"


def signature_bytes(text: str) -> bytes:
    """Return a signature's bytes; none for what is not hex."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _denied(message: str, fix: str | None = None) -> AuthorityDenied:
    return AuthorityDenied(message, gate="approval", fix=fix)
