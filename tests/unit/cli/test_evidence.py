"""The evidence page: complete, self-contained, and deaf to whatever it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.cli.evidence import page
from surehand.cli.film import read_film
from surehand.errors import InvalidRequest, SurehandError, TooLarge, Unavailable
from tests.unit.cli.conftest import Cli
from tests.unit.client.conftest import HASH, Desk

EVIL = "</pre></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u202e\u0007&#x3c;"
REFUSED = "operation.refused.v1"
CLAIMED = "operation.claimed.v1"
TERMINAL = "operation.terminal.v1"


def event(seq: int, type_: str, /, **payload: Any) -> dict[str, Any]:
    return {
        "seq": seq,
        "occurred_at": "2026-11-30T09:00:00.000Z",
        "type": type_,
        "actor": "uid:7",
        "record_hash": f"{seq:064x}",
        "payload": payload,
    }


def decision(outcome: str = "allow") -> dict[str, Any]:
    return {"outcome": outcome, "rule": "notes", "reason": "The agent keeps notes.", "policy_revision": HASH}


def receipt(**facts: Any) -> dict[str, Any]:
    value = {"action": "desktop.invoke", "effect": "verified", "route": "atspi.action", "trust_level": "A"}
    return {**value, "started_at_ms": 1000, "finished_at_ms": 1042, "evidence": {"before": HASH}, **facts}


def report(**operations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "operations": {f"operation/uid:7/{name.replace('_', '-')}": events for name, events in operations.items()},
        "head": {"seq": 9, "record_hash": "b" * 64},
        "verdict": {"ok": True, "reason": "every record is whole", "events": 9, "held": 3, "counts": {"claims": 2}},
        "journal": {"tier": "plain"},
        "trust_level": "A",
        "authority_mode": "daemon",
    }


class Reader(HTMLParser):
    """What a browser would make of it: tags, attributes, and text outside of the style sheet."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.style = ""
        self._text: list[str] = []
        self._in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, _tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.style += data
        else:
            self._text.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._text).split())


def png(width: int = 40, height: int = 30) -> bytes:
    """A real picture, all black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"\x00" * (1 + width * 3) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def film(folder: Path, *frames: dict[str, Any], version: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    for frame in frames:
        path = folder / str(frame["file"])
        if re.fullmatch(r"[a-z0-9]+\.png", str(frame["file"])) and not path.exists():
            path.write_bytes(png())
    (folder / "film.json").write_text(json.dumps({"version": version, "frames": list(frames)}), "utf-8")
    return folder


def frame(operation_id: str = "press", file: str = "1.png", **facts: Any) -> dict[str, Any]:
    return {"operation_id": operation_id, "file": file, **facts}


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_success_shows_its_decision_its_receipt_and_its_records() -> None:
    found = report(
        press=[
            event(7, CLAIMED, decision=decision(), app="exe:/usr/bin/mousepad", receipt=receipt()),
            event(8, TERMINAL, kind="succeeded", receipt=receipt()),
        ]
    )
    text = Reader(page(found)).text
    for fact in ("press", "desktop.invoke", "succeeded", "verified", "atspi.action", "42 ms", "exe:/usr/bin/mousepad"):
        assert fact in text
    for fact in ("allow", "notes", "The agent keeps notes.", "7", f"8:{8:064x}"[:14], CLAIMED, TERMINAL):
        assert fact in text


def test_the_verdict_the_trust_level_and_the_head_are_at_the_top() -> None:
    text = Reader(page(report())).text
    assert text.index("Whole") < text.index("every record is whole") < text.index("Trust level")
    assert "A. The agent and Surehand ran as the same user" in text
    assert f"9:{'b' * 64}" in text
    assert "There are no operations" in text


@pytest.mark.parametrize(
    "verdict", [{"ok": False, "reason": "a hash"}, {"ok": None}, {"ok": "true"}, {"ok": 1}, {}, None]
)
def test_nothing_but_a_plain_yes_of_the_auditor_is_shown_as_whole(verdict: Any) -> None:
    html = page({**report(), "verdict": verdict})
    assert "Not whole" in html
    assert 'class="card banner bad"' in html


def test_a_refusal_names_its_gate_its_rule_and_what_was_refused() -> None:
    text = Reader(
        page(
            report(
                reset=[
                    event(3, REFUSED, code="policy_denied", gate="policy", message="No resets.", rule="no-resets"),
                    event(4, REFUSED, code="stale_target", gate="final_fence", effect="desktop.invoke", what="context"),
                ]
            )
        )
    ).text
    for fact in ("refused", "policy_denied", "deny", "no-resets", "No resets.", "final_fence", "what changed context"):
        assert fact in text
    assert "desktop.invoke" in text


def test_an_approval_shows_who_answered_and_how() -> None:
    events = [
        event(1, "operation.approval_requested.v1", presentation_hash=HASH),
        event(2, "operation.approved.v1", approver="ann", how="ed25519:0a1b", reason="fine by me"),
        event(3, CLAIMED, decision=decision(), approval_id="ap1", receipt=receipt()),
    ]
    text = Reader(page(report(delete=events[:1]))).text
    assert "approval pending" in text
    text = Reader(page(report(delete=events))).text
    for fact in ("ann", "ed25519:0a1b", "fine by me", "allow, after a person's yes", "no end"):
        assert fact in text


def test_a_denied_approval_and_a_persons_word_are_told() -> None:
    denied = [event(1, "operation.denied.v1", approver="ann", how="ed25519:0a1b", reason="no")]
    assert "denied" in Reader(page(report(delete=denied))).text
    lost = [
        event(2, CLAIMED, receipt=receipt()),
        event(
            3,
            TERMINAL,
            kind="outcome_unknown",
            code="outcome_unknown",
            message="Not recorded.",
            receipt=receipt(route=""),
        ),
        event(4, "operation.resolved.v1", verdict="not_happened"),
    ]
    text = Reader(page(report(backup=lost))).text
    assert "not happened" in text
    # Nobody knows how long it took.
    assert "took" not in text


def test_an_unknown_outcome_names_who_looked_into_it() -> None:
    found = report(
        backup=[event(1, CLAIMED, receipt=receipt()), event(2, TERMINAL, kind="outcome_unknown", receipt=receipt())],
        second=[
            event(3, CLAIMED, reconciles="backup", receipt=receipt()),
            event(4, TERMINAL, kind="succeeded", receipt=receipt()),
        ],
    )
    text = Reader(page(found)).text
    assert "looked into by second" in text
    assert "looked into backup" in text


def test_a_payload_is_shown_up_to_its_limit_and_says_when_it_is_cut() -> None:
    most = limits.EVIDENCE_PAYLOAD_CHARS_MAX
    room = most - len(json.dumps({"x": ""}, indent=1))
    assert "more characters" not in page(report(a=[event(1, REFUSED, x="y" * room)]))
    assert "1 more characters are in the journal" in page(report(a=[event(1, REFUSED, x="y" * (room + 1))]))


# --- what it never does -------------------------------------------------------------------------------------------------

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "div", "span", "h1", "h2", "h3", "h4", "p", "strong"),
    *("dl", "dt", "dd", "table", "tr", "th", "td", "a", "code", "article", "header", "section", "br"),
    *("figure", "figcaption", "details", "summary", "pre", "svg", "defs", "image", "use", "rect"),
}


def evil_report() -> dict[str, Any]:
    """Every text that could come from anywhere is hostile."""
    payload = {"kind": EVIL, "receipt": receipt(action=EVIL, effect=EVIL, route=EVIL, warnings=[EVIL]), "message": EVIL}
    refusal = {"code": EVIL, "gate": EVIL, "message": EVIL, "rule": EVIL, "what": EVIL, "effect": EVIL, "app": EVIL}
    events = [
        {**event(1, EVIL), "seq": EVIL, "occurred_at": EVIL, "actor": EVIL, "record_hash": EVIL},
        event(2, REFUSED, **refusal),
        event(3, "operation.approval_requested.v1", presentation_hash=EVIL),
        event(4, "operation.approved.v1", approver=EVIL, how=EVIL, reason=EVIL),
        event(
            5, CLAIMED, decision={"outcome": EVIL, "rule": EVIL, "reason": EVIL, "obligations": {EVIL: EVIL}}, app=EVIL
        ),
        event(6, TERMINAL, **payload),
        event(7, "operation.resolved.v1", verdict=EVIL),
        {"payload": EVIL, "type": REFUSED},
    ]
    verdict = {"ok": True, "reason": EVIL, "source": EVIL, "limits": EVIL, "events": EVIL, "counts": {"claims": EVIL}}
    return {
        "operations": {f"operation/{EVIL}/{EVIL}": [*events, EVIL], EVIL: []},
        "verdict": verdict,
        "head": {"seq": EVIL, "record_hash": EVIL},
        "journal": {"tier": EVIL},
        "trust_level": EVIL,
        "authority_mode": EVIL,
    }


def test_no_text_from_anywhere_becomes_part_of_the_page_itself(tmp_path: Path) -> None:
    frames = read_film(
        film(tmp_path / "film", frame("press", caption=EVIL.replace("\u0007", ""), outline=[1, 2, 3, 4]))
    )
    found = evil_report()
    found["operations"]["operation/uid:7/press"] = [event(9, EVIL)]
    html = page(found, frames)
    read = Reader(html)
    assert {tag for tag, _ in read.tags} <= TAGS
    assert sum(tag == "style" for tag, _ in read.tags) == 1
    assert "<script" not in html
    assert not any(character in html for character in "\u202e\u0007")
    assert "⟨U+202E⟩" in read.text


def test_nothing_runs_and_nothing_is_fetched(tmp_path: Path) -> None:
    frames = read_film(film(tmp_path / "film", frame(outline=[1, 2, 3, 4])))
    html = page(report(press=[event(1, REFUSED, code="conflict")]), frames)
    for tag, attributes in Reader(html).tags:
        assert not any(name.startswith("on") or name in {"style", "src", "action"} for name in attributes), (
            tag,
            attributes,
        )
        target = attributes.get("href")
        assert (
            target is None or target.startswith("#") or (tag == "image" and target.startswith("data:image/png;base64,"))
        )
    assert "http" not in html.replace("http-equiv", "")


def test_the_pages_own_policy_allows_its_style_sheet_and_its_pictures_alone() -> None:
    read = Reader(page(report()))
    policy = next(attributes["content"] for tag, attributes in read.tags if attributes.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(read.style.encode()).digest()).decode()
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        "img-src data:",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "@import" not in read.style
    assert "url(" not in read.style


# --- pictures -----------------------------------------------------------------------------------------------------------


def test_a_picture_is_shown_with_its_target_outlined_and_again_close_by(tmp_path: Path) -> None:
    big = png(400, 300)
    (tmp_path / "film").mkdir()
    (tmp_path / "film/1.png").write_bytes(big)
    frames = read_film(film(tmp_path / "film", frame(caption="Save", outline=[100, 50, 40, 20])))
    html = page(report(press=[event(1, REFUSED, code="conflict")]), frames)
    assert base64.b64encode(big).decode() in html
    assert 'x="100" y="50" width="40" height="20"' in html
    assert 'viewBox="76 26 88 68"' in html
    assert "no journal vouches for them" in html
    assert "no picture was recorded" not in html


def test_equal_pictures_are_in_the_page_once(tmp_path: Path) -> None:
    frames = read_film(film(tmp_path / "film", frame(), frame(file="2.png"), frame("other", "3.png")))
    html = page(report(press=[event(1, REFUSED)], other=[event(2, REFUSED)]), frames)
    assert html.count("data:image/png") == 1


def test_pictures_of_operations_that_the_journal_does_not_know_are_left_out(tmp_path: Path) -> None:
    frames = read_film(film(tmp_path / "film", frame("unknown")))
    assert "data:image/png" not in page(report(press=[event(1, REFUSED)]), frames)


@pytest.mark.parametrize(
    ("outline", "kept"),
    [
        ([-5, -5, 10, 10], (0, 0, 5, 5)),
        ([30, 20, 100, 100], (30, 20, 10, 10)),
        ([40, 0, 5, 5], None),
        ([0, 0, 0, 5], None),
        ([-10, 0, 10, 5], None),
        ([0, 0, 40, 30], (0, 0, 40, 30)),
    ],
)
def test_an_outline_stays_within_its_picture(tmp_path: Path, outline: list[int], kept: tuple[int, ...] | None) -> None:
    (found,) = read_film(film(tmp_path / "film", frame(outline=outline)))
    assert found.outline == kept


@pytest.mark.parametrize("name", ["../1.png", "/etc/1.png", "a/1.png", ".png/..", "1.txt", "", "1.png\x00.png"])
def test_a_film_reads_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "1.png").write_bytes(png())
    with pytest.raises(SurehandError):
        read_film(film(tmp_path / "film", frame(file=name)))


def test_a_link_in_a_film_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    folder = film(tmp_path / "film", frame(file="1.png"))
    (folder / "1.png").unlink()
    (folder / "1.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InvalidRequest, match="link"):
        read_film(folder)


def test_a_film_that_is_missing_broken_or_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"film\.json"):
        read_film(tmp_path / "nowhere")
    with pytest.raises(InvalidRequest, match="version 2"):
        read_film(film(tmp_path / "new", frame(), version=2))
    with pytest.raises(InvalidRequest):
        read_film(film(tmp_path / "extra", {**frame(), "script": "x"}))
    for data in (b"GIF89a", png()[:20], b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, png(1, 1)[:16] + b"\x00" * 8):
        folder = film(tmp_path / "broken", frame())
        (folder / "1.png").write_bytes(data)
        with pytest.raises(InvalidRequest):
            read_film(folder)


def test_a_film_is_bounded_in_frames_bytes_and_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FILM_FRAMES_MAX", 3)
    assert len(read_film(film(tmp_path / "film", *[frame()] * 3))) == 3
    with pytest.raises(TooLarge):
        read_film(film(tmp_path / "film", *[frame()] * 4))
    size = len(png())
    monkeypatch.setattr(limits, "FILM_BYTES_MAX", 2 * size)
    assert len(read_film(film(tmp_path / "film", *[frame()] * 2))) == 2
    monkeypatch.setattr(limits, "FILM_BYTES_MAX", 2 * size - 1)
    with pytest.raises(TooLarge):
        read_film(film(tmp_path / "film", *[frame()] * 2))
    for width, fits in ((limits.DESKTOP_SIDE_MAX, True), (limits.DESKTOP_SIDE_MAX + 1, False)):
        folder = film(tmp_path / "wide", frame())
        (folder / "1.png").write_bytes(png(width, 1))
        if fits:
            assert len(read_film(folder)) == 1
        else:
            with pytest.raises(InvalidRequest, match="no picture of a desktop"):
                read_film(folder)


def test_an_index_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = film(tmp_path / "film", frame())
    size = (folder / "film.json").stat().st_size
    monkeypatch.setattr(limits, "FILM_INDEX_BYTES_MAX", size)
    assert len(read_film(folder)) == 1
    monkeypatch.setattr(limits, "FILM_INDEX_BYTES_MAX", size - 1)
    with pytest.raises(TooLarge):
        read_film(folder)


# --- the command ----------------------------------------------------------------------------------------------------------


def test_the_command_writes_the_same_page_with_the_film_that_is_named(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    found = report(press=[event(1, REFUSED, code="conflict")])

    async def answer(*_: Any) -> dict[str, Any]:
        return found

    desk.script["audit.report"] = answer
    folder = film(tmp_path / "film", frame(caption="Save"))
    plain, shown = tmp_path / "plain.html", tmp_path / "shown.html"
    assert cli("audit", "report", str(plain), "--json").data["operations"] == 1
    assert cli("audit", "report", str(shown), "--film", str(folder), "--json").data["operations"] == 1
    assert plain.read_text("utf-8") == page(found)
    assert shown.read_text("utf-8") == page(found, read_film(folder))
    assert (
        cli("audit", "report", str(shown), "--film", str(tmp_path / "no"), "--json").error["code"]
        == "backend_unavailable"
    )


def test_the_same_reading_before_and_after_is_explained() -> None:
    def compared(after: str | None, effect: str, **claim: Any) -> str:
        ends = receipt(effect=effect, evidence={"before": HASH, "after": after})
        events = [event(1, CLAIMED, **claim), event(2, TERMINAL, kind="succeeded", receipt=ends)]
        return Reader(page(report(op=events))).text

    asked = {"request": {"verification": {"kind": "appears"}}}
    assert "the element reads the same; verified by appears" in compared(HASH, "verified", **asked)
    assert "the element reads the same; verified by its own state" in compared(HASH, "verified")
    assert "verified by" not in compared(HASH, "executed_unverified")
    for after in ("b" * 64, None):
        assert "reads the same" not in compared(after, "verified", **asked)
