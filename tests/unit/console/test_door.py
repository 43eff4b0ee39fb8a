"""Who comes in at the console page, and every way in which somebody else might."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surehand import limits
from surehand.console import door
from surehand.console.door import BY_ITSELF, EVENTS, HEADERS
from surehand.console.peers import Peer
from tests.unit.console.conftest import ORIGIN, OWN, PORT, UID, Pages

PAGE = "/approvals"


def test_a_link_opens_once_and_what_it_begins_is_kept_from_scripts_and_other_sites(pages: Pages) -> None:
    link = pages.door.link()
    first = pages.browser()
    answer = first.get(link)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    token = link.partition("=")[2]
    assert token not in answer.text + cookie
    assert first.get(PAGE).status_code == 200
    second = pages.browser().get(link)
    assert second.status_code == 403
    assert "set-cookie" not in second.headers
    assert "opened before" in second.text
    assert len(pages.opened) == 1


def test_a_link_runs_out_and_a_new_one_voids_it(pages: Pages) -> None:
    link = pages.door.link()
    pages.now_ms += limits.CONSOLE_LINK_MS_MAX
    assert pages.browser().get(link).status_code == 403
    old = pages.door.link()
    pages.now_ms += limits.CONSOLE_LINK_MS_MAX - 1
    assert pages.browser().get(old).status_code == 200
    old, new = pages.door.link(), pages.door.link()
    assert pages.browser().get(old).status_code == 403
    assert pages.browser().get(new).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "é" * 10, "a" * 4000])
def test_no_other_token_comes_in(pages: Pages, token: str) -> None:
    link = pages.door.link()
    assert pages.browser().get("/enter", params={"token": token}).status_code == 403
    assert pages.browser().get(link).status_code == 200


def test_without_a_link_given_out_nobody_comes_in(pages: Pages) -> None:
    assert pages.browser().get("/enter?token=").status_code == 403


@pytest.mark.parametrize("header", [{"sec-purpose": "prefetch"}, {"purpose": "prefetch"}])
def test_a_link_that_is_fetched_ahead_is_not_used_up(pages: Pages, header: dict[str, str]) -> None:
    link = pages.door.link()
    assert pages.browser().get(link, headers=header).status_code == 403
    assert pages.browser().head(link).status_code == 405
    assert pages.browser().get(link).status_code == 200


@pytest.mark.parametrize("path", [PAGE, "/", "/events", "/approvals/x", "/nothing", "/enterx", "/static/../approvals"])
def test_without_a_session_no_page_is_shown(pages: Pages, path: str) -> None:
    answer = pages.browser().get(path)
    assert answer.status_code == 403
    assert "has not come in" in answer.text
    for secret in ("", "x", "a" * 43, "a" * 43 + "; x=1"):
        named = pages.browser().get(path, headers={"cookie": f"{pages.door.cookie}={secret}"})
        assert named.status_code == 403, secret


def test_a_cookie_that_comes_twice_is_none(pages: Pages) -> None:
    browser, _ = pages.inside()
    secret = browser.cookies[pages.door.cookie]
    twice = f"{pages.door.cookie}={secret}; {pages.door.cookie}={secret}"
    assert pages.browser().get(PAGE, headers={"cookie": twice}).status_code == 403
    assert pages.browser().get(PAGE, headers={"cookie": f"a=1; {pages.door.cookie}={secret}"}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        f"127.0.0.1:{PORT}", f"[::1]:{PORT}", "localhost", f"localhost:{PORT + 1}", f"rebound.example:{PORT}",
        f"localhost.:{PORT}", f"LOCALHOST:{PORT}x", f"x.localhost:{PORT}", "",
    ],
)  # fmt: skip
def test_under_another_name_nothing_is_served(pages: Pages, host: str) -> None:
    browser, _ = pages.inside()
    link = pages.door.link()
    for path in (PAGE, link.removeprefix(ORIGIN), "/static/console.css", "/events"):
        assert browser.get(path, headers={"host": host}).status_code == 403
    assert pages.browser().get(link).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://localhost:{PORT + 1}"},
        {"origin": f"https://localhost:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-dest": "frame"},
        {"sec-fetch-dest": "embed"},
        {"sec-fetch-dest": "object"},
    ],
    ids=str,
)
def test_another_origin_another_site_and_a_frame_are_refused(pages: Pages, headers: dict[str, str]) -> None:
    browser, csrf = pages.inside()
    for path in (PAGE, "/events", "/static/live.js"):
        assert browser.get(path, headers=headers).status_code == 403
    sent = browser.post("/leave", data={"csrf": csrf}, headers={**OWN, **headers})
    assert sent.status_code == 403
    assert browser.get(PAGE).status_code == 200


def test_headers_that_come_twice_are_refused(pages: Pages) -> None:
    browser, _ = pages.inside()
    for name, value in (("host", f"localhost:{PORT}"), ("origin", ORIGIN), ("sec-fetch-site", "same-origin")):
        assert browser.get(PAGE, headers=[(name, value), (name, value)]).status_code == 403, name


@pytest.mark.parametrize("missing", ["origin", "csrf", "both"])
def test_a_form_needs_its_origin_and_its_sessions_token(pages: Pages, missing: str) -> None:
    browser, csrf = pages.inside()
    other, _ = pages.inside()
    headers = {name: value for name, value in OWN.items() if missing == "csrf" or name != "origin"}
    data = {"csrf": csrf} if missing == "origin" else {"x": "1"}
    assert browser.post("/leave", data=data, headers=headers).status_code == 403
    # Another browser's token is nobody's here, and a form without a session is none.
    assert other.post("/leave", data={"csrf": csrf}, headers=OWN).status_code == 403
    assert pages.browser().post("/leave", data={"csrf": csrf}, headers=OWN).status_code == 403
    assert browser.post("/leave", data={"csrf": csrf}, headers={**OWN, "sec-fetch-site": "none"}).status_code == 403
    assert browser.get(PAGE).status_code == 200
    assert browser.post("/leave", data={"csrf": csrf}, headers=OWN).status_code == 200
    assert browser.get(PAGE).status_code == 403


@pytest.mark.parametrize("peer", [None, Peer(UID + 1, 1), Peer(0, 1)], ids=["unknown", "another", "root"])
def test_another_users_connection_is_refused_with_the_right_cookie_too(pages: Pages, peer: Peer | None) -> None:
    browser, csrf = pages.inside()
    link = pages.door.link()
    pages.peer = peer
    for path in (PAGE, link, "/static/console.css"):
        assert browser.get(path).status_code == 403
    assert browser.post("/leave", data={"csrf": csrf}, headers=OWN).status_code == 403
    pages.peer = Peer(UID, 2)
    assert browser.get(PAGE).status_code == 200
    assert pages.browser().get(link).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_is_known(pages: Pages, method: str) -> None:
    browser, _ = pages.inside()
    assert browser.request(method, PAGE, headers=OWN).status_code == 403


def test_a_websocket_gets_nothing(pages: Pages) -> None:
    browser, _ = pages.inside()
    with pytest.raises(Exception), browser.websocket_connect("/events"):  # noqa: B017, PT011 - whatever the library calls it
        pass


def test_every_answer_forbids_scripts_frames_and_copies(pages: Pages) -> None:
    browser, _ = pages.inside()
    for path in (PAGE, "/static/live.js", "/nothing"):
        answer = browser.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (path, name)
    policy = dict(part.strip().partition(" ")[::2] for part in HEADERS["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert "no-store" in HEADERS["cache-control"]
    refused = pages.browser().get(PAGE)
    assert refused.headers["content-security-policy"] == HEADERS["content-security-policy"]


def test_a_page_names_nothing_of_elsewhere_and_holds_no_script_or_style(pages: Pages) -> None:
    browser, _ = pages.inside()
    text = browser.get(PAGE).text
    assert not re.search(r"<script(?![^>]*src=\"/static/)|<style|\son\w+=|style=", text)
    assert not re.findall(r"(?:src|href|action)=\"(?!/|#)", text)


# --- how long and how much ------------------------------------------------------------------------------------------


def test_a_session_ends_when_idle_and_after_a_day_at_the_latest(pages: Pages) -> None:
    browser, _ = pages.inside()
    pages.now_ms += limits.CONSOLE_IDLE_MS_MAX - 1
    assert browser.get(PAGE).status_code == 200
    pages.now_ms += limits.CONSOLE_IDLE_MS_MAX
    assert browser.get(PAGE).status_code == 403
    browser, _ = pages.inside()
    began = pages.now_ms
    while pages.now_ms + limits.CONSOLE_IDLE_MS_MAX // 2 < began + limits.CONSOLE_SESSION_MS_MAX:
        pages.now_ms += limits.CONSOLE_IDLE_MS_MAX // 2
        assert browser.get(PAGE).status_code == 200
    pages.now_ms = began + limits.CONSOLE_SESSION_MS_MAX
    assert browser.get(PAGE).status_code == 403


def test_what_a_page_asks_by_itself_keeps_no_session_alive(pages: Pages) -> None:
    browser, _ = pages.inside()
    pages.now_ms += limits.CONSOLE_IDLE_MS_MAX - 1
    assert browser.get(PAGE, headers={BY_ITSELF: "1"}).status_code == 200
    [session] = pages.door._sessions.values()
    assert pages.door.stands(session)
    pages.now_ms += 1
    assert not pages.door.stands(session)
    for path in (PAGE, EVENTS):
        assert browser.get(path).status_code == 403
    assert BY_ITSELF in (Path(door.__file__).parent / "static" / "live.js").read_text("utf-8").lower()


def test_one_browser_more_than_there_may_be_ends_the_one_that_was_away_longest(pages: Pages) -> None:
    browsers = []
    for _ in range(limits.CONSOLE_SESSIONS_MAX):
        browsers.append(pages.inside()[0])
        pages.now_ms += 1
    assert browsers[0].get(PAGE).status_code == 200
    pages.now_ms += 1
    pages.inside()
    assert [one.get(PAGE).status_code for one in browsers[:3]] == [200, 403, 200]


def post(pages: Pages, body: bytes, kind: str = "application/x-www-form-urlencoded") -> int:
    browser, csrf = pages.inside()
    whole = body.replace(b"CSRF", csrf.encode())
    return browser.post("/leave", content=whole, headers={**OWN, "content-type": kind}).status_code


def test_a_form_has_its_bounds_at_the_limit_and_one_past(pages: Pages) -> None:
    head = b"csrf=CSRF&x="
    room = limits.CONSOLE_BODY_BYTES_MAX - len(head) - (43 - 4)
    assert post(pages, head + b"a" * room) == 200
    assert post(pages, head + b"a" * (room + 1)) == 413
    fields = b"&".join(b"f%d=" % number for number in range(limits.CONSOLE_FIELDS_MAX - 1))
    assert post(pages, b"csrf=CSRF&" + fields) == 200
    assert post(pages, b"csrf=CSRF&one=more&" + fields) == 400


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"csrf=CSRF", "multipart/form-data; boundary=x"),
        (b"csrf=CSRF", "text/plain"),
        (b'{"csrf": "CSRF"}', "application/json"),
        (b"csrf=CSRF&csrf=CSRF", "application/x-www-form-urlencoded"),
        (b"csrf=CSRF&x=1&x=2", "application/x-www-form-urlencoded"),
        (b"csrf=CSRF&x=%ff", "application/x-www-form-urlencoded"),
        (b"csrf=CSRF&\xff=1", "application/x-www-form-urlencoded"),
        (b"csrf=CSRF&nothing", "application/x-www-form-urlencoded"),
    ],
)
def test_what_is_no_form_of_the_page_is_refused(pages: Pages, body: bytes, kind: str) -> None:
    assert post(pages, body, kind) == 400


def test_without_a_daemon_a_page_says_so_and_stays_a_page(pages: Pages) -> None:
    browser, _ = pages.inside()
    answer = browser.get(PAGE)
    assert answer.status_code == 200
    assert "No daemon answers" in answer.text
    assert browser.get("/approvals/x").status_code == 503
