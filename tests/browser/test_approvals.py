"""The page of approvals in a real browser, before a real host."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from surehand.model.approval import PendingApproval
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
