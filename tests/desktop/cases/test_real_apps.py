"""Applications that nobody wrote for this project, through the whole host: editors and their questions (C05, C16, C28)."""

from __future__ import annotations

import pytest

from surehand.model.actions import Invoke, SetValue
from surehand.testing.desktop import IsolatedDesktop
from tests.desktop.cases.kit import UNICODE, Hand, until_so, window_of

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

TEXT = f"{UNICODE} 😀\nzweite Zeile"


@pytest.mark.parametrize("program", ["mousepad", "featherpad"])
async def test_c05_a_real_editor_that_asks_whether_to_save_is_not_written_behind_its_question(
    hand: Hand, desktop: IsolatedDesktop, program: str
) -> None:
    app = await desktop.launch([program])
    try:
        surface = await hand.window(app.pid)
        page = {"role": "text"}, {"state": {"multiline": True}}
        found = await until_so(lambda: hand.find(surface, *page), "its text")
        reply = await hand.act(SetValue(value=TEXT), found[0])
        assert (reply["status"], reply["terminal"]["receipt"]["effect"]) == ("succeeded", "verified"), reply
        read = await hand.call("read_text", surface=surface, label=found[0]["label"])
        assert read["text"] == TEXT

        # Closing it is not closed: it asks.
        closing = await hand.act({"kind": "window", "op": "close"}, window_of(surface))
        assert closing["status"] in {"failed", "outcome_unknown"}, closing

        async def question() -> str | None:
            listed = (await hand.call("surfaces"))["surfaces"]
            return next(
                (one["surface_id"] for one in listed if one["pid"] == app.pid and one["surface_id"] != surface), None
            )

        dialog = await until_so(question, "the question")
        behind = await hand.act(SetValue(value="written behind the question"), found[0])
        assert (behind["status"], behind["error"]["code"]) == ("refused", "behind_modal"), behind
        assert behind["error"]["observed"]["dialog"] is not None

        cancel = await hand.find(dialog, {"role": "button"}, {"name": {"text": "Cancel", "match": "contains"}})
        reply = await hand.act(Invoke(), cancel[0], verification={"kind": "disappears"})
        assert (reply["status"], reply["terminal"]["receipt"]["effect"]) == ("succeeded", "verified"), reply
        read = await hand.call("read_text", surface=surface, label=found[0]["label"])
        assert read["text"] == TEXT
        again = await hand.find(surface, *page)
        reply = await hand.act(SetValue(value="and on it goes"), again[0])
        assert reply["status"] == "succeeded", reply
    finally:
        app.kill()
