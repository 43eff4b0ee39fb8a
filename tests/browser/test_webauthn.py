"""Authenticators in a real browser: enrolled with a code, asked for one answer, and what the daemon makes of forgeries."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from surehand.client.credentials import invitation, new_code
from surehand.signing.keystore import KeyStore
from surehand.testing.terminal import with_passphrase
from tests.browser.kit import PASSPHRASE, SUREHAND, LiveHost
from tests.browser.test_approvals import open_question, stood

ENROLLED = "The authenticator is enrolled"


@dataclass
class Device:
    """Chromium's virtual authenticator, a part of one tab."""

    cdp: CDPSession
    id: str

    def set(self, **facts: Any) -> None:
        self.cdp.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, **facts})

    def credentials(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cdp.send("WebAuthn.getCredentials", {"authenticatorId": self.id})[
            "credentials"
        ]
        return found


@pytest.fixture
def device(page: Page) -> Device:
    cdp = page.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "usb",
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    return Device(cdp, cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"])


@pytest.fixture(autouse=True)
def nothing_enrolled(live: LiveHost) -> Iterator[None]:
    yield

    async def forget() -> None:
        for key_id in list(live.approvals.approvers.enrolled):
            await live.approvals.credentials.remove(key_id, "uid:0")

    live.do(forget())


def code_for(live: LiveHost) -> str:
    """Return a code as `surehand keys enrol-webauthn` prints it."""
    code = new_code()
    key = KeyStore.open(live.keys).approver("ann", passphrase=PASSPHRASE)
    made, signature = invitation("ann", key, code)

    async def invite() -> None:
        live.approvals.credentials.invite(made, signature)

    live.do(invite())
    return code


def at_a_terminal(live: LiveHost, *words: str) -> dict[str, Any]:
    """Run the approver's command line, which asks for the passphrase where it signs."""
    environment = {**os.environ, "SUREHAND_RUNTIME_DIR": str(live.folder / "run")}
    command = [SUREHAND, *words, "--json"]
    if words[1] == "enrol-webauthn":
        said = with_passphrase(command, PASSPHRASE, env=environment)[1]
    else:
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    data: dict[str, Any] = json.loads(said)["data"]
    return data


def enrol(page: Page, live: LiveHost, label: str = "my key", code: str = "") -> str:
    page.goto("/credentials")
    page.get_by_label("Code").fill(code or code_for(live))
    page.get_by_label("Your name for it").fill(label)
    page.get_by_role("button", name="Enrol this authenticator").click()
    expect(page.get_by_role("status").filter(has_text=ENROLLED)).to_be_visible()
    (key_id,) = live.approvals.approvers.enrolled
    return key_id


def answer(page: Page, key_id: str, word: str) -> None:
    page.get_by_label("Answer as").select_option(f"webauthn:{key_id}")
    page.get_by_role("button", name=word, exact=True).click()


def test_an_authenticator_is_enrolled_says_yes_and_no_and_is_taken_away(
    page: Page, live: LiveHost, device: Device
) -> None:
    key_id = enrol(page, live)
    expect(page.get_by_text("ann: my key")).to_be_visible()
    pending = live.ask(risk="external", categories=["send_publish"])
    open_question(page, pending)
    expect(page.get_by_role("option", name="ann (my key)")).to_be_enabled()
    answer(page, key_id, "Approve")
    expect(page.get_by_role("status").filter(has_text="Approved, as ann")).to_be_visible()
    assert live.stands(pending) == "approved"
    other = live.ask()
    open_question(page, other)
    page.get_by_label("Reason").fill("wrong account")
    answer(page, key_id, "Deny")
    expect(page.get_by_role("status").filter(has_text="Denied, as ann")).to_be_visible()
    assert live.told(other)["operator_reason"] == "wrong account"
    assert device.credentials()[0]["signCount"] == live.approvals.approvers.enrolled[key_id].sign_count
    page.goto("/credentials")
    page.get_by_role("button", name="Take away").click()
    expect(page.get_by_role("status").filter(has_text="taken away")).to_be_visible()
    assert live.approvals.approvers.enrolled == {}


def test_leave_for_a_while_is_signed_with_the_yes(page: Page, live: LiveHost, device: Device) -> None:
    key_id = enrol(page, live)
    pending = live.ask()
    open_question(page, pending)
    page.get_by_text("Approve for a while").first.click()
    page.get_by_label("Uses").fill("3")
    answer(page, key_id, "Approve for a while")
    expect(page.get_by_role("status").filter(has_text="3 more uses")).to_be_visible()
    assert live.stands(pending) == "approved"
    del device


def test_who_is_not_verified_answers_nothing(page: Page, live: LiveHost, device: Device) -> None:
    key_id = enrol(page, live)
    pending = live.ask(risk="external", categories=["send_publish"])
    open_question(page, pending)
    device.set(isUserVerified=False)
    answer(page, key_id, "Approve")
    expect(page.get_by_role("alert")).to_contain_text("could not verify you")
    assert live.stands(pending) == "pending"
    # The page asked for verification. One that did not gets a signature that the daemon takes for nothing.
    refused = page.evaluate(_WITHOUT_VERIFICATION, key_id)
    assert refused == "the authenticator did not verify its person"
    assert live.stands(pending) == "pending"
    device.set(isUserVerified=True)
    stood(page)
    answer(page, key_id, "Approve")
    expect(page.get_by_role("status").filter(has_text="Approved, as ann")).to_be_visible()


#: A page of somebody else's making: it asks the authenticator without verification and sends what it gets.
_WITHOUT_VERIFICATION = """async (keyId) => {
  const bytes = (hex) => Uint8Array.from(hex.match(/../g), (two) => parseInt(two, 16));
  const hex = (buffer) => [...new Uint8Array(buffer)].map((one) => one.toString(16).padStart(2, "0")).join("");
  const form = document.getElementById("answer");
  const fields = new FormData(form);
  fields.set("answer", "approve");
  fields.set("credential", "webauthn:" + keyId);
  fields.set("approval_id", location.pathname.split("/").pop());
  const asked = await (await fetch("/credentials/challenge", { method: "POST", body: new URLSearchParams(fields) })).json();
  const said = await navigator.credentials.get({ publicKey: {
    challenge: bytes(asked.challenge), rpId: asked.rp_id, userVerification: "discouraged",
    allowCredentials: [{ type: "public-key", id: bytes(asked.credential_id) }] } });
  fields.set("webauthn_token", asked.token);
  fields.set("webauthn_authenticator", hex(said.response.authenticatorData));
  fields.set("webauthn_client", hex(said.response.clientDataJSON));
  fields.set("webauthn_signature", hex(said.response.signature));
  const answer = await fetch(location.href, { method: "POST", body: new URLSearchParams(fields) });
  const text = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[role=alert]").textContent;
  return text.match(/Not answered: ([^.]*)/)[1];
}"""


def test_an_answer_signed_for_a_yes_is_not_sent_with_other_words(page: Page, live: LiveHost, device: Device) -> None:
    """What the page's script is given is for one answer: with other words it is none, and it is good once."""
    key_id = enrol(page, live)
    pending = live.ask()
    open_question(page, pending)
    changed = _WITHOUT_VERIFICATION.replace('"discouraged"', '"required"').replace(
        "const answer = await fetch(location.href",
        'fields.set("reason", "other words");\n  const answer = await fetch(location.href',
    )
    assert page.evaluate(changed, key_id) == "the authenticator was not asked for this answer"
    assert live.stands(pending) == "pending"
    del device


def test_a_wrong_code_enrols_nothing_and_says_so(page: Page, live: LiveHost, device: Device) -> None:
    page.goto("/credentials")
    page.get_by_label("Code").fill("AAAAA-AAAAA")
    page.get_by_role("button", name="Enrol this authenticator").click()
    expect(page.get_by_role("alert")).to_contain_text("not the code of an open invitation")
    assert live.approvals.approvers.enrolled == {}
    assert device.credentials() == []


def test_an_authenticator_is_enrolled_once(page: Page, live: LiveHost, device: Device) -> None:
    enrol(page, live)
    page.get_by_label("Code").fill(code_for(live))
    page.get_by_role("button", name="Enrol this authenticator").click()
    expect(page.get_by_role("alert")).to_contain_text("enrolled already")
    assert len(device.credentials()) == 1


def test_the_command_line_invites_shows_and_takes_away(page: Page, live: LiveHost, device: Device) -> None:
    invited = at_a_terminal(live, "keys", "enrol-webauthn", "ann", "--keys", str(live.keys))
    assert invited["approver"] == "ann"
    # As people type it.
    key_id = enrol(page, live, code=invited["code"].lower().replace("-", " "))
    (shown,) = at_a_terminal(live, "keys", "show", "--keys", str(live.keys))["daemon"]["credentials"]
    assert (shown["key_id"], shown["label"]) == (key_id, "my key")
    assert at_a_terminal(live, "keys", "remove-webauthn", key_id)["key_id"] == key_id
    pending = live.ask()
    open_question(page, pending)
    assert page.locator("option[data-kind=webauthn]").count() == 0
    del device


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_every_control_has_a_name(page: Page, live: LiveHost, device: Device, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    enrol(page, live, "a rather long name for an authenticator on the desk")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tree = page.locator("main").aria_snapshot()
    for name in ('textbox "Code"', 'textbox "Your name for it', 'button "Enrol this authenticator"', "Take away"):
        assert name in tree
    del device
