"""Pictures for an evidence page: what an agent recorded before it acted. Data of the recorder, vouched for by nobody.

A film is a folder with PNG files and an index `film.json`:

    {"version": 1, "frames": [{"operation_id": "note-save", "file": "07.png", "caption": "File ▸ Save",
                               "outline": [12, 40, 90, 28]}]}

`outline` is left, top, width and height in pixels of the picture, absent where the target showed no place. Nothing
outside of the folder is read, whatever the index names, and everything is bounded.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from surehand import limits
from surehand.client.display import escape
from surehand.errors import InvalidRequest, TooLarge, Unavailable
from surehand.model.record import Record, check_count, check_identifier, check_text, decode

_INDEX: Final = "film.json"
_HEAD: Final = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_SIZE: Final = struct.Struct(">II")
_CROP_MARGIN_PX: Final = 24


class Entry(Record, frozen=True, kw_only=True):
    """One line of the index."""

    operation_id: str
    file: str
    caption: str = ""
    outline: tuple[int, int, int, int] | None = None

    def __post_init__(self) -> None:
        check_identifier("operation_id", self.operation_id)
        check_text("caption", self.caption, limits.NAME_CHARS_MAX)
        # A name, and no way out of the folder.
        if Path(self.file).name != self.file or not self.file.endswith(".png") or "\0" in self.file:
            raise InvalidRequest(f"{self.file[:64]!r} is no name of a PNG file in the film's folder")


class Index(Record, frozen=True, kw_only=True):
    """The index of a film."""

    version: int
    frames: tuple[Entry, ...]

    def __post_init__(self) -> None:
        check_count("frames", len(self.frames), 0, limits.FILM_FRAMES_MAX)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One picture of one operation; `digest` is equal for equal pictures."""

    operation_id: str
    caption: str
    png: bytes
    digest: str
    width: int
    height: int
    outline: tuple[int, int, int, int] | None


def read_film(folder: Path) -> Sequence[Frame]:
    """Return the frames of a film in order.

    Raises:
        Unavailable: a file is missing or cannot be read.
        InvalidRequest, TooLarge: the index or a picture is not as it must be; names it.
    """
    index = decode(Index, _read(folder / _INDEX, limits.FILM_INDEX_BYTES_MAX), bytes_max=limits.FILM_INDEX_BYTES_MAX)
    if index.version != 1:
        raise InvalidRequest(f"a film of version {index.version}; this reads version 1")
    frames: list[Frame] = []
    left = limits.FILM_BYTES_MAX
    for entry in index.frames:
        png = _read(folder / entry.file, left)
        left -= len(png)
        width, height = _size(entry.file, png)
        frames.append(
            Frame(
                operation_id=entry.operation_id,
                caption=entry.caption,
                png=png,
                digest=hashlib.sha256(png).hexdigest(),
                width=width,
                height=height,
                outline=_within(entry.outline, width, height),
            )
        )
    return frames


def _read(path: Path, most: int) -> bytes:
    try:
        if path.is_symlink():
            raise InvalidRequest(f"{path.name} is a link, and a film is read from its own folder only")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise Unavailable(
            f"the film cannot be read: {path.name}: {error.strerror}", fix="name the folder that holds film.json"
        ) from error
    if len(data) > most:
        raise TooLarge(f"the film is too large at {path.name}", details={"limit": limits.FILM_BYTES_MAX})
    return data


def _size(name: str, png: bytes) -> tuple[int, int]:
    """Return width and height. Whoever shows the page decodes the rest; a broken picture shows as one."""
    if not png.startswith(_HEAD) or len(png) < len(_HEAD) + _SIZE.size:
        raise InvalidRequest(f"{name} is no PNG picture")
    width, height = _SIZE.unpack_from(png, len(_HEAD))
    if not (0 < width <= limits.DESKTOP_SIDE_MAX and 0 < height <= limits.DESKTOP_SIDE_MAX):
        raise InvalidRequest(f"{name} is {width} by {height} pixels, which is no picture of a desktop")
    return width, height


def _within(outline: tuple[int, int, int, int] | None, width: int, height: int) -> tuple[int, int, int, int] | None:
    """Return the part of an outline that lies in the picture, None where nothing does."""
    if outline is None:
        return None
    left, top = max(0, outline[0]), max(0, outline[1])
    right, bottom = min(width, outline[0] + outline[2]), min(height, outline[1] + outline[3])
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None


# --- on the page ------------------------------------------------------------------------------------------------------


def store(frames: Sequence[Frame]) -> str:
    """Return every picture once; the frames, crops and the strip only point at it."""
    once = {frame.digest: frame for frame in frames}
    images = "".join(
        f'<image id="picture-{digest}" width="{frame.width}" height="{frame.height}" '
        f'href="data:image/png;base64,{base64.b64encode(frame.png).decode("ascii")}"/>'
        for digest, frame in once.items()
    )
    return f'<svg class="store" aria-hidden="true"><defs>{images}</defs></svg>' if images else ""


def picture(frame: Frame, kind: str = "", view: tuple[int, int, int, int] | None = None) -> str:
    """Return a frame as a drawing: the picture, or the part that `view` names, and the outline over it."""
    left, top, width, height = view or (0, 0, frame.width, frame.height)
    boxes = ""
    if frame.outline is not None:
        x, y, wide, high = frame.outline
        place = f'x="{x}" y="{y}" width="{wide}" height="{high}" rx="3"'
        boxes = f'<rect class="halo" {place}/><rect class="box" {place}/>'
    return (
        f'<svg class="{kind}" viewBox="{left} {top} {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(frame.caption)}"><use href="#picture-{frame.digest}"/>{boxes}</svg>'
    )


def shot(frame: Frame) -> str:
    """Return a frame in full, and its outlined part again where that is a small part of it."""
    crop = ""
    if frame.outline is not None:
        x, y, wide, high = frame.outline
        left, top = max(0, x - _CROP_MARGIN_PX), max(0, y - _CROP_MARGIN_PX)
        right, bottom = min(frame.width, x + wide + _CROP_MARGIN_PX), min(frame.height, y + high + _CROP_MARGIN_PX)
        whole = (right - left) * (bottom - top) * 2 > frame.width * frame.height
        crop = "" if whole else picture(frame, "crop", (left, top, right - left, bottom - top))
    caption = f'<figcaption class="soft">{escape(frame.caption)}</figcaption>'
    return f'<figure class="shot">{picture(frame)}{crop}{caption}</figure>'
