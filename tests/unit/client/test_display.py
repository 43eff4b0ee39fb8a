"""Notebook HTML: what the screen says stays text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from surehand.client.display import batch_html, receipt_html, scene_html, target_html
from surehand.client.results import Receipt
from surehand.client.scenes import Picture, Scene, Target
from tests.unit.client.conftest import match, receipt, reply

TAGS = {"div", "pre", "table", "tr", "td"}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"' style=x &lt; \u202eevil\u0007"


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser would."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def safe(html: str) -> Reader:
    found = read(html)
    assert found.tags <= TAGS
    assert found.attributes <= {"class", "style"}
    assert "\u202e" not in html
    assert "\u0007" not in html
    return found


def test_hostile_text_is_shown_and_does_nothing() -> None:
    found = safe(scene_html(EVIL, EVIL, EVIL))
    assert "<script>alert(1)</script>" in found.text
    assert "⟨U+202E⟩" in found.text
    safe(target_html(match(name=EVIL, value=EVIL, context=EVIL, states=[EVIL])))
    evil = reply(EVIL, approval={"approval_id": EVIL})
    evil["terminal"]["receipt"] = receipt(EVIL, route=EVIL, warnings=[EVIL], principal=EVIL, action=EVIL)
    safe(receipt_html(evil))
    safe(receipt_html({"status": EVIL, "operation_id": [EVIL]}))
    safe(batch_html([evil, evil]))


@given(st.text())
def test_no_text_ever_becomes_a_tag(text: str) -> None:
    safe(scene_html(text, text, text)) if not set(text) & {"\u202e", "\u0007"} else None
    assert read(scene_html(text, text, "")).tags <= TAGS


def test_results_show_themselves() -> None:
    value: dict[str, Any] = {"surface": "w1", "scene_id": "sc1", "generation": 2, "text": "e1 button", "kind": "full"}
    assert "e1 button" in read(Scene(value)._repr_html_()).text
    shown = read(Receipt(reply("o", replayed=True))._repr_html_()).text
    assert "verified" in shown
    assert "trust level A" in shown
    assert "7 ms" in shown
    assert "e1" in read(Target(match())._repr_html_()).text


def test_a_picture_is_its_png() -> None:
    picture = Picture.of({"capture": {"capture_id": "c1", "width": 2, "height": 1}, "png_base64": "iVBORw=="})
    assert picture._repr_png_() == b"\x89PNG"
    assert repr(picture) == "<Picture c1 2×1, 4 bytes>"
