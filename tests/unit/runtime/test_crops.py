"""The picture beside a question: what was taken is what is signed and shown, secrets are in none, and all is bounded."""

from __future__ import annotations

import asyncio
import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surehand import limits
from surehand.core.approval import presentation_hash, still_covers
from surehand.errors import TooLarge
from surehand.model.approval import crop_hash
from surehand.model.scene import Bounds
from surehand.runtime.cropping import _shrunk, crop_of
from surehand.runtime.crops import CropFiles, CropsInMemory, is_shown
from surehand.runtime.host import Host
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_reach import host_of
from tests.unit.runtime.test_shots import PAINT, SIZE, WHITE, Screen, colours, pin, window

ID, OTHER = "0123456789abcdef", "fedcba9876543210"
KEY = bytes(range(32))


class Asking:
    """A world in which deleting is asked about, beside a password in red."""

    def __init__(self, bounds: Bounds | None = (30, 30, 20, 10), **facts: Any) -> None:
        self.world = World([button("d", "Delete", bounds=bounds), pin((60, 60, 10, 10))], **facts)
        self.screen = Screen(self.world, window(self.world))
        self.screen.secrets = lambda: [(60, 60, 10, 10)]
        self.screen.modal_before = lambda _: None  # type: ignore[attr-defined]
        self.host: Host = host_of(self.world)
        self.world.approvals.take_crop = lambda run: crop_of(self.host.parts, run)

    async def ask(self) -> Any:
        assert (await self.world.act("op", "d")).status == "approval_required"
        (pending,) = self.world.approvals.pending()
        return pending

    async def picture(self, approval_id: str) -> dict[str, Any]:
        control = await self.host.open_channel(principal="uid:0", role="control", client={}, desktop=None)
        return await self.host.call(control, "approvals.picture", {"approval_id": approval_id})


def opened(answer: dict[str, Any]) -> Image.Image:
    with Image.open(io.BytesIO(base64.b64decode(answer["png_base64"]))) as image:
        return image.convert("RGB")


async def test_a_question_comes_with_a_picture_whose_hash_is_signed_and_no_secret_is_in_it() -> None:
    asking = Asking()
    pending = await asking.ask()
    answer = await asking.picture(pending.approval_id)
    assert answer["crop_hash"] == pending.presentation.crop_hash == crop_hash(base64.b64decode(answer["png_base64"]))
    assert colours(opened(answer)) == {WHITE, PAINT}
    assert presentation_hash(pending.presentation) == pending.presentation_hash


async def test_what_changed_in_the_picture_since_does_not_void_a_yes() -> None:
    """A clock that ticks beside the button; what the yes was to is said in words, and compared."""
    asking = Asking()
    pending = await asking.ask()
    asking.screen.secrets = lambda: [(5, 5, 3, 3)]
    await asking.world.answer(pending)
    reply = await asking.world.act("op", "d")
    assert reply.status == "succeeded"
    # Asked about once, pictured once.
    assert asking.screen.taken == 1


async def test_what_changed_in_words_voids_a_yes_whatever_the_picture_shows() -> None:
    asking = Asking()
    pending = await asking.ask()
    await asking.world.answer(pending)
    asking.world.app.change("d", name="Delete all")
    assert (await asking.world.act("op", "d")).status == "approval_required"
    (again,) = asking.world.approvals.pending()
    assert again.replaces == pending.approval_id
    assert "crop_hash" not in {one.name for one in again.changed}
    assert await asking.world.approvals.crops.get(pending.approval_id) is None
    assert not still_covers(pending, again.presentation)


async def test_another_picture_in_its_place_is_shown_to_nobody() -> None:
    asking = Asking()
    pending = await asking.ask()
    asking.world.approvals.crops.forget(pending.approval_id)
    await asking.world.approvals.crops.put(pending.approval_id, b"another picture")
    assert await asking.picture(pending.approval_id) == {}
    assert not is_shown(b"x", None)
    assert not is_shown(None, crop_hash(b"x"))


@pytest.mark.parametrize("end", ["approve", "deny"])
async def test_the_picture_goes_with_its_question(end: Any) -> None:
    asking = Asking()
    pending = await asking.ask()
    await asking.world.answer(pending, end)
    await asking.world.act("op", "d")
    assert asking.world.approvals.pending() == []
    assert await asking.world.approvals.crops.get(pending.approval_id) is None


async def test_who_may_not_be_pictured_is_asked_about_without_a_picture() -> None:
    asking = Asking()
    asking.screen.after = lambda: asking.world.app.change("pw", bounds=(asking.screen.taken, 0, 5, 5))
    pending = await asking.ask()
    assert pending.presentation.crop_hash is None
    assert await asking.picture(pending.approval_id) == {}


async def test_a_screen_that_never_answers_holds_up_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CROP_MS_MAX", 20)
    asking = Asking()

    async def never(_: Any) -> Any:
        await asyncio.Event().wait()

    asking.screen.capture = never  # type: ignore[method-assign]
    assert (await asking.ask()).presentation.crop_hash is None


@pytest.mark.parametrize(("bounds", "size"), [((30, 30, 20, 10), (80, 70)), (None, (SIZE, SIZE))])
async def test_it_shows_what_is_acted_on_and_what_stands_around_it(
    bounds: Bounds | None, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CROP_MARGIN_PX", 30)
    asking = Asking(bounds)
    pending = await asking.ask()
    assert opened(await asking.picture(pending.approval_id)).size == size


def noise(edge: int) -> bytes:
    out = io.BytesIO()
    pixels = np.random.default_rng(7).integers(0, 255, (edge, edge, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, format="PNG")
    return out.getvalue()


@pytest.mark.parametrize(("edge", "shown"), [(8, 8), (9, 8)])
def test_its_edges_are_bounded(edge: int, shown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CROP_EDGE_MAX", 8)
    assert Image.open(io.BytesIO(_shrunk(noise(edge)))).size == (shown, shown)


def test_its_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CROP_EDGE_MAX", 64)
    whole = len(_shrunk(noise(64)))
    monkeypatch.setattr(limits, "CROP_BYTES_MAX", whole)
    assert Image.open(io.BytesIO(_shrunk(noise(64)))).size == (64, 64)
    monkeypatch.setattr(limits, "CROP_BYTES_MAX", whole - 1)
    assert Image.open(io.BytesIO(_shrunk(noise(64)))).size == (32, 32)
    monkeypatch.setattr(limits, "CROP_BYTES_MAX", 10)
    with pytest.raises(Exception, match="too many bytes"):
        _shrunk(noise(64))


async def test_all_together_are_bounded_and_what_finds_no_room_is_asked_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = 40  # nonce and tag
    for crops, more in ((CropsInMemory(), 0), (CropFiles(tmp_path / "c", KEY), seal)):
        monkeypatch.setattr(limits, "CROPS_BYTES_KEPT_MAX", 2 * (10 + more))
        assert await crops.put(ID, b"x" * 10)
        assert not await crops.put(OTHER, b"x" * 11)
        assert await crops.put(OTHER, b"x" * 10)
        assert await crops.get(OTHER) == b"x" * 10
        crops.keep([OTHER])
        assert await crops.get(ID) is None
        assert await crops.put(ID, b"y")
    asking = Asking()
    monkeypatch.setattr(limits, "CROPS_BYTES_KEPT_MAX", 1)
    assert (await asking.ask()).presentation.crop_hash is None


async def test_a_question_that_finds_no_room_leaves_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "APPROVALS_PENDING_MAX", 0)
    asking = Asking()
    reply = await asking.world.act("op", "d")
    assert reply.error is not None
    assert reply.error["code"] == TooLarge.default_code
    assert vars(asking.world.approvals.crops)["_kept"] == {}


async def test_a_restart_shows_the_same_picture_and_lets_go_of_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "crops"
    await CropFiles(folder, KEY).put(OTHER, b"of a question that ended")
    asking = Asking()
    asking.world.approvals.crops = CropFiles(folder, KEY)
    pending = await asking.ask()
    sealed = (folder / f"{pending.approval_id}.picture").read_bytes()
    assert b"PNG" not in sealed
    again = await asking.world.restart()
    again.approvals.crops = CropFiles(folder, KEY)
    await again.approvals.restore()
    png = await again.approvals.crops.get(pending.approval_id)
    assert is_shown(png, pending.presentation.crop_hash)
    assert await again.approvals.crops.get(OTHER) is None
    assert sorted(path.stem for path in folder.iterdir()) == [pending.approval_id]


async def test_a_file_that_was_changed_or_put_in_anothers_place_is_no_picture(tmp_path: Path) -> None:
    crops = CropFiles(tmp_path / "crops", KEY)
    await crops.put(ID, b"one")
    await crops.put(OTHER, b"two")
    first, second = (tmp_path / "crops" / f"{name}.picture" for name in (ID, OTHER))
    first.write_bytes(second.read_bytes())
    second.write_bytes(b"short")
    assert await crops.get(ID) is None
    assert await crops.get(OTHER) is None
