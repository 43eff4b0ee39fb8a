"""The page of approvals in a real browser, before a real host."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.kit import LiveHost


def test_a_question_is_on_the_page_as_soon_as_it_is_asked(page: Page, live: LiveHost) -> None:
    page.goto("/approvals")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    live.ask(element="button Send")
    expect(page.get_by_role("link", name="Press button Send")).to_be_visible()
    expect(page).to_have_title("(1) Approvals - Surehand console")
    live.ask(element="button Delete", risk="destructive", categories=["destructive"])
    expect(page.get_by_role("listitem").filter(has_text="button Delete")).to_contain_text("destructive")
