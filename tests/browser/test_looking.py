"""Timeline, audit, policy, sessions and doctor in a real browser, before a real host and its real journal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from surehand.errors import PolicyDenied
from surehand.model.authority import StandingGrant
from surehand.model.events import NewEvent
from tests.browser.kit import LiveHost

HOSTILE = (
    "<script>window.stolen=1</script>",
    "<img src=x onerror='window.stolen=1'>",
    '"><svg onload=window.stolen=1>',
    "javascript:window.stolen=1",
    "{{ 7*7 }}{% raw %}",
    "\u202eevil\u2066\x1b[31m",
    "</pre></details><h1>Approved</h1>",
)
PAGES = ("/timeline", "/audit", "/policy?action=desktop.invoke&name=Send", "/sessions", "/doctor")


def refuse(live: LiveHost, operation_id: str, *, rule: str = "no-mail", **facts: Any) -> None:
    """Have an operation refused, as the gateway records it."""
    error = PolicyDenied("the operator said no", gate="policy", details={"rule": rule})
    known = {"effect": "desktop.invoke", "app": "exe:/usr/bin/mail", "categories": ["send_publish"], **facts}
    live.do(live.host.parts.operations.refused("uid:1000", operation_id, error, known))


def test_an_operation_is_on_the_timeline_as_soon_as_it_ended_and_leads_to_its_records(
    page: Page, live: LiveHost
) -> None:
    page.goto("/timeline")
    refuse(live, "op-live", app="exe:/usr/bin/appears")
    link = page.get_by_role("link", name="desktop.invoke in exe:/usr/bin/appears")
    expect(link).to_be_visible()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("desktop.invoke in exe:/usr/bin/appears")
    expect(page.get_by_role("definition").filter(has_text="no-mail")).to_be_visible()
    page.locator("summary").filter(has_text="Refused").click()
    expect(page.locator("pre").first).to_contain_text('"code": "policy_denied"')
    page.get_by_role("link", name="What does the policy say about it now?").click()
    expect(page.locator("#answer")).to_contain_text("default.isolated")


def test_a_search_finds_by_words_and_says_how_far_it_looked(page: Page, live: LiveHost) -> None:
    refuse(live, "op-rare", rule="a-rare-rule")
    for number in range(3):
        refuse(live, f"op-{number}")
    page.goto("/timeline")
    page.get_by_label("Look for").fill("A-RARE")
    page.get_by_label("What came of it").select_option("refused")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("ol.rows > li")).to_have_count(1)
    assert "text=A-RARE" in page.url
    page.goto("/timeline?text=nowhere-at-all")
    expect(page.get_by_text("Nothing that fits among")).to_be_visible()
    page.goto("/timeline?principal=a%2Fb")
    expect(page.get_by_role("alert")).to_contain_text("principal")


def test_older_operations_are_on_further_pages_each_once(page: Page, live: LiveHost) -> None:
    for number in range(120):
        refuse(live, f"op-page-{number}", app="exe:/usr/bin/pages")
    page.goto("/timeline?app=usr/bin/pages")
    seen: list[str] = []
    while True:
        seen += [str(one.get_attribute("id")) for one in page.locator("ol.rows a.whole").all()]
        older = page.get_by_role("link", name="Look further back")
        if older.count() == 0:
            break
        older.click()
    assert len(seen) == len(set(seen)) == 120


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone_and_every_field_has_a_name(page: Page, live: LiveHost, path: str) -> None:
    refuse(live, "op-long", app="exe:/" + "long/" * 40)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(path)
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
        ".filter((one) => !one.labels.length).map((one) => one.name)"
    )
    assert nameless == []
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_no_text_from_outside_becomes_part_of_a_page(page: Page, live: LiveHost) -> None:
    """Stored on every way that a page shows: an application, a rule, a client's name, an actor, a payload."""
    text = " ".join(HOSTILE)
    refuse(live, "op-hostile", app=text, place=text, rule=text, categories=[text])
    event = NewEvent(stream="daemon", type="policy.loaded.v1", actor="daemon", payload={text: text})
    live.do(live.host.parts.journal.append([event]))
    opened = live.host.open_channel(principal="uid:7", role="control", client={"name": text}, desktop=None)
    session = live.do(opened)
    one = "/timeline/operation?principal=uid%3A1000&operation=op-hostile"
    try:
        for path in ("/timeline", one, "/audit", "/sessions"):
            page.goto(path)
            assert "stolen" in (page.locator("main").text_content() or ""), path
            assert page.evaluate("window.stolen") is None
            assert page.locator("main h1").count() == 1
            assert page.locator("main script, main img, main svg").count() == 0
            assert not {"\u202e", "\u2066", "\x1b"} & set(page.content())
    finally:
        live.do(live.host.close_channel(session))


def test_a_rule_file_is_told_in_plain_words_and_read_again_on_request(
    page: Page, live: LiveHost, tmp_path: Path
) -> None:
    policies = live.host.parts.authority.policies
    policies.beside = tmp_path / "policy.toml"
    before = policies.ruling
    try:
        (tmp_path / "policy.toml").write_text(
            'version = 1\n[[rule]]\nid = "no-mail"\neffect = "deny"\nreason = "mail is mine"\n'
            '[rule.match]\napp = ["exe:/usr/bin/mail"]\n'
        )
        page.goto("/policy")
        page.get_by_role("button", name="Read it again now").click()
        expect(page.get_by_role("status").filter(has_text="read again")).to_be_visible()
        expect(page.get_by_text("No agent may do anything in exe:/usr/bin/mail.")).to_be_visible()
        page.get_by_label("Action", exact=True).fill("desktop.invoke")
        page.get_by_label("In the application").fill("exe:/usr/bin/mail")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#answer")).to_contain_text("Denied by no-mail: mail is mine")
        (tmp_path / "policy.toml").write_text("version = ")
        page.get_by_role("button", name="Read it again now").click()
        expect(page.get_by_role("alert")).to_contain_text("line 1")
    finally:
        policies.beside, policies.ruling, policies.failure = None, before, None


def test_a_question_that_makes_no_sense_is_answered_with_what_helps(page: Page) -> None:
    page.goto("/policy?action=fly")
    expect(page.get_by_role("alert")).to_contain_text("fly")


def test_a_standing_grant_is_shown_with_what_is_left_and_taken_back(page: Page, live: LiveHost) -> None:
    leave = live.host.parts.approvals.leave
    grant = StandingGrant(
        grant_id="g-1",
        principal="uid:1000",
        app="exe:/usr/bin/mousepad",
        actions=("desktop.set_value",),
        risk_max="reversible",
        uses_max=20,
        expires_at_ms=int(time.time() * 1000) + 600_000,
        issued_by="ann",
    )
    live.do(leave.grant(grant, "ed25519:test"))
    page.goto("/sessions")
    expect(page.get_by_text("20 of 20 uses left")).to_be_visible()
    page.get_by_role("button", name="Take back the grant of uid:1000").click()
    expect(page.get_by_role("status").filter(has_text="taken back")).to_be_visible()
    assert live.do(leave.listed()) == []


def test_the_auditor_looks_at_the_whole_journal_on_request(page: Page, live: LiveHost) -> None:
    refuse(live, "op-audit")
    page.goto("/audit")
    page.get_by_role("button", name="Check everything now").click()
    expect(page.get_by_role("status").filter(has_text="Whole.")).to_be_visible()
    expect(page.locator("main li").first).to_contain_text(str(live.do(live.host.parts.journal.head())[0]))


def test_the_doctor_says_what_is_wrong_first_with_what_helps(page: Page, live: LiveHost) -> None:
    policies = live.host.parts.authority.policies
    policies.failure = "line 3: no such thing"
    try:
        page.goto("/doctor")
        expect(page.get_by_role("heading", name="policy")).to_be_visible()
        expect(page.get_by_text("surehand policy check", exact=False)).to_be_visible()
    finally:
        policies.failure = None


@pytest.mark.parametrize("path", PAGES)
def test_every_page_works_without_scripts(browser: Browser, inside: dict[str, Any], live: LiveHost, path: str) -> None:
    refuse(live, "op-plain")
    context = browser.new_context(storage_state=inside["state"], base_url=inside["base"], java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if path == "/audit":
            page.get_by_role("button", name="Check").click()
            expect(page.get_by_text("Whole.")).to_be_visible()
    finally:
        context.close()
