"""The page of approvals in a real browser, before a real host."""

from __future__ import annotations

import hashlib
import io

from PIL import Image
from playwright.sync_api import APIResponse, Page, expect

from surehand import limits
from surehand.core.history import APPROVED
from surehand.model.approval import PendingApproval, crop_hash
from tests.browser.kit import PASSPHRASE, LiveHost


def test_a_question_is_on_the_page_as_soon_as_it_is_asked(page: Page, live: LiveHost) -> None:
    page.goto("/approvals")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    live.ask(element="button Send")
    expect(page.get_by_role("link", name="Press button Send")).to_be_visible()
    expect(page).to_have_title("(1) Approvals - Surehand console")
    live.ask(element="button Delete", risk="destructive", categories=["destructive"])
    expect(page.get_by_role("listitem").filter(has_text="button Delete")).to_contain_text("destructive")


def open_question(page: Page, pending: PendingApproval) -> None:
    page.goto(f"/approvals/{pending.approval_id}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    stood(page)


def stood(page: Page) -> None:
    """Wait until the question stood for as long as reading takes, for the page's scripts and for its server."""
    page.wait_for_selector("html[data-stands]")


def press(page: Page, name: str, passphrase: str = PASSPHRASE) -> None:
    page.get_by_label("Passphrase").fill(passphrase)
    page.get_by_role("button", name=name, exact=True).click()


def test_a_yes_with_the_passphrase_is_signed_for_what_stood_there(page: Page, live: LiveHost) -> None:
    pending = live.ask(risk="external", categories=["send_publish"])
    open_question(page, pending)
    press(page, "Approve")
    expect(page.get_by_role("status").filter(has_text="Approved, as ann: Press button Send")).to_be_visible()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert live.stands(pending) == "approved"


def test_a_wrong_passphrase_answers_nothing_and_what_was_typed_stays_but_for_it(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    page.get_by_label("Reason").fill("because")
    press(page, "Approve", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("passphrase of ann is wrong")
    expect(page.get_by_label("Passphrase")).to_be_focused()
    # What happens meanwhile makes the page fresh, and leaves the word of what was wrong.
    live.ask(element="button Other")
    expect(page.locator("#waiting .count")).to_have_text("2")
    expect(page.get_by_role("alert")).to_contain_text("passphrase of ann is wrong")
    assert page.get_by_label("Passphrase").input_value() == ""
    assert page.get_by_label("Reason").input_value() == "because"
    assert live.stands(pending) == "pending"
    stood(page)
    press(page, "Deny")
    expect(page.get_by_role("status").filter(has_text="Denied, as ann")).to_be_visible()
    assert live.stands(pending) == "denied"


def test_a_no_tells_the_agent_the_persons_words(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    page.get_by_label("Reason").fill("wrong <b>account</b>\nreally")
    press(page, "Deny")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert live.told(pending)["operator_reason"] == "wrong <b>account</b>\nreally"


def test_a_yes_for_a_while_gives_leave_that_is_counted(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    page.get_by_text("Approve for a while").first.click()
    page.get_by_label("Uses").fill("5")
    page.get_by_label("Minutes").fill("10")
    press(page, "Approve for a while")
    expect(page.get_by_role("status").filter(has_text="5 more uses, for 10 minutes")).to_be_visible()
    (grant,) = live.do(live.approvals.leave.listed())
    assert (grant["app"], grant["place"], list(grant["actions"])) == ("exe:/usr/bin/mail", "main", ["desktop.invoke"])
    assert grant["uses_left"] == 5
    # What is consequential offers none.
    open_question(page, live.ask(risk="external", categories=["purchase"]))
    expect(page.get_by_text("What is consequential is asked about each time.")).to_be_visible()
    expect(page.get_by_label("Uses")).to_have_count(0)


def test_a_key_without_a_passphrase_says_no_yes_to_what_is_consequential(page: Page, live: LiveHost) -> None:
    pending = live.ask(risk="external", categories=["send_publish"])
    open_question(page, pending)
    page.get_by_label("Answer as").select_option(index=1)
    expect(page.get_by_label("Passphrase")).to_be_hidden()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("takes a key behind a passphrase")
    assert live.stands(pending) == "pending"


def test_several_people_are_counted_as_they_answer(page: Page, live: LiveHost) -> None:
    pending = live.ask(needed=2)
    open_question(page, pending)
    expect(page.get_by_text("0 of 2 people said yes")).to_be_visible()
    press(page, "Approve")
    expect(page.get_by_role("status").filter(has_text="2 people are needed")).to_be_visible()
    open_question(page, pending)
    expect(page.get_by_text("1 of 2 people said yes: ann")).to_be_visible()
    page.get_by_label("Answer as").select_option(index=1)
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert live.stands(pending) == "approved"


def test_a_question_that_changed_is_not_answered_and_shows_what_changed(page: Page, live: LiveHost) -> None:
    first = live.ask(operation_id="op-change", context="row carol", parameters={"text": "10"})
    open_question(page, first)
    second = live.ask(operation_id="op-change", context="row dave", parameters={"text": "1000"})
    expect(page.get_by_text("Nothing is to be answered any more: changed, and asked anew.")).to_be_visible()
    press(page, "Approve")
    expect(page.get_by_role("alert")).to_contain_text("Not answered")
    assert [one.approval_id for one in live.open()] == [second.approval_id]
    open_question(page, second)
    changes = page.locator(".changes")
    expect(changes).to_contain_text("Changed since it was asked")
    for text in ("row carol", "row dave", "10", "1000", "parameters.text"):
        expect(changes).to_contain_text(text)


def test_a_plan_shows_each_of_its_steps_in_order(page: Page, live: LiveHost) -> None:
    step = {"context": "form Checkout", "risk": "reversible", "action_hash": "b" * 64}
    steps = [
        {"action": "desktop.set_value", "element": "text Name", "parameters": {"value": "Carol"}, **step},
        {"action": "desktop.invoke", "element": "button Pay", "categories": ["purchase"], **step, "risk": "external"},
    ]
    pending = live.ask(
        element="a plan of 2 steps", action="batch", parameters={"steps": steps}, steps=["b" * 64, "c" * 64], context=""
    )
    open_question(page, pending)
    shown = page.locator(".steps > li").all_inner_texts()
    assert len(shown) == 2
    assert "Fill in text Name" in shown[0]
    assert "Carol" in shown[0]
    assert "Press button Pay" in shown[1]
    assert "purchase" in shown[1]


def test_the_record_is_shown_byte_for_byte_and_its_hash_is_what_is_signed(page: Page, live: LiveHost) -> None:
    pending = live.ask(parameters={"text": "é"})
    open_question(page, pending)
    page.get_by_text("The record, byte for byte").click()
    record = page.get_by_label("The signed record").inner_text().encode()
    assert hashlib.sha256(b"surehand/presentation/v1\x00" + record).hexdigest() == pending.presentation_hash
    expect(page.get_by_text(pending.presentation_hash)).to_be_visible()


def test_the_picture_that_is_signed_is_shown_and_no_other(page: Page, live: LiveHost) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 20), (200, 0, 0)).save(buffer, "PNG")
    png = buffer.getvalue()
    right, wrong = live.ask(crop_hash=crop_hash(png)), live.ask(crop_hash="b" * 64)
    for one in (right, wrong):
        assert live.do(live.approvals.crops.put(one.approval_id, png))
    open_question(page, right)
    shown = page.get_by_role("img", name="What it is aimed at, as it looked when you were asked")
    assert shown.evaluate("one => one.naturalWidth") == 60
    open_question(page, wrong)
    assert shown.evaluate("one => one.naturalWidth") == 0
    assert page.request.get(f"/approvals/{wrong.approval_id}/picture").status == 400


# --- twice, too early, too late ---------------------------------------------------------------------------------------


def sent_by_hand(page: Page, pending: PendingApproval, **fields: str) -> APIResponse:
    """Send the question's form as a program would that has the browser's cookie."""
    form = page.locator("#answer")
    hidden = {name: form.locator(f"input[name={name}]").input_value() for name in ("csrf", "hash")}
    key = page.locator("#credential option").first.get_attribute("value")
    data = {**hidden, "credential": str(key), "answer": "approve", "passphrase": PASSPHRASE, "reason": "", **fields}
    origin = page.url.partition("/approvals")[0]
    return page.request.post(
        f"/approvals/{pending.approval_id}", form=data, headers={"origin": origin}, max_redirects=0
    )


def test_a_form_sent_twice_is_answered_once(page: Page, live: LiveHost) -> None:
    pending = live.ask(needed=2)
    open_question(page, pending)
    assert sent_by_hand(page, pending).status == 303
    again = sent_by_hand(page, pending)
    assert again.status == 409
    assert "you answered this before" in again.text()
    events = live.do(live.host.parts.journal.stream(f"operation/{pending.principal}/{pending.operation_id}"))
    assert [one.type for one in events].count(APPROVED) == 1


def test_an_answer_comes_neither_before_the_question_was_shown_nor_before_it_could_be_read(
    page: Page, live: LiveHost
) -> None:
    first, second = live.ask(), live.ask(element="button Delete")
    open_question(page, first)
    # One that this browser never saw, with its own hash.
    unseen = sent_by_hand(page, second, hash=second.presentation_hash)
    assert unseen.status == 409
    # One that it has only just been sent.
    page.request.get(f"/approvals/{second.approval_id}")
    early = sent_by_hand(page, second, hash=second.presentation_hash)
    assert early.status == 409
    assert "before this could be read" in early.text()
    # Another's hash, and another's question.
    assert sent_by_hand(page, second, hash=first.presentation_hash).status == 409
    assert sent_by_hand(page, first, hash="").status == 409
    assert live.stands(first) == live.stands(second) == "pending"


def test_an_answer_after_the_end_is_told_the_end(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    live.answer(pending, "deny")
    expect(page.get_by_text("Nothing is to be answered any more: denied.")).to_be_visible()
    late = sent_by_hand(page, pending)
    assert late.status == 409
    assert live.stands(pending) == "denied"


def test_without_a_key_or_with_an_unknown_one_nothing_is_answered(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    for credential in ("", "key:", "key:nobody", "key:../../x", "other:ann", "ann"):
        assert sent_by_hand(page, pending, credential=credential).status in {400, 403, 409, 503}, credential
    assert sent_by_hand(page, pending, answer="maybe").status == 409
    assert sent_by_hand(page, pending, passphrase="").status == 409
    for uses, minutes in (("0", "5"), ("5", "0"), ("x", "5"), ("5", "1441"), ("10001", "5"), ("-1", "5"), ("", "")):
        assert sent_by_hand(page, pending, answer="while", uses=uses, minutes=minutes).status == 409, (uses, minutes)
    assert sent_by_hand(page, pending, reason="x" * (limits.REASON_CHARS_MAX + 1)).status == 409
    assert live.stands(pending) == "pending"
    assert sent_by_hand(page, pending, reason="x" * limits.REASON_CHARS_MAX).status == 303


# --- keys ---------------------------------------------------------------------------------------------------------------


def test_keys_find_open_and_answer_a_question_and_no_single_key_does(page: Page, live: LiveHost) -> None:
    live.ask(element="button First")
    second = live.ask(element="button Second")
    page.goto("/approvals")
    stood(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/approvals/{second.approval_id}")
    stood(page)
    page.keyboard.press("d")
    expect(page.get_by_text("Enter denies.")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.get_by_text("Enter approves.")).to_be_visible()
    expect(page.get_by_label("Passphrase")).to_be_focused()
    page.keyboard.type(PASSPHRASE)
    assert live.stands(second) == "pending"
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Approved, as ann: Press button Second")).to_be_visible()
    assert [one.presentation.element for one in live.open()] == ["button First"]


def test_keys_pressed_before_a_question_stood_there_do_nothing(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    page.goto(f"/approvals/{pending.approval_id}", wait_until="commit")
    for key in ("d", "Enter", "a", "Enter", "w", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("html[data-stands]")).to_have_count(1)
    expect(page.locator("#answer :focus")).to_have_count(0)
    assert live.stands(pending) == "pending"


def test_enter_in_a_field_answers_nothing_by_itself(page: Page, live: LiveHost) -> None:
    pending = live.ask()
    open_question(page, pending)
    page.get_by_text("Approve for a while").first.click()
    for label in ("Uses", "Minutes"):
        page.get_by_label(label).press("Enter")
    assert page.url.endswith(pending.approval_id)
    assert live.stands(pending) == "pending"
