"""PNG bytes are read back by an independent reader."""

from __future__ import annotations

import numpy as np
import pytest

from surehand.adapters.x11 import png
from tests.desktop.x11_support import decode_png


@pytest.mark.parametrize("blue_first", [True, False])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (640, 17)])
def test_every_pixel_comes_back(size: tuple[int, int], blue_first: bool) -> None:
    width, height = size
    rgb = np.random.default_rng(5).integers(0, 256, (height, width, 3), np.uint8)
    stride = width * 4 + 8
    rows = np.zeros((height, stride), np.uint8)
    words = rows[:, : width * 4].reshape(height, width, 4)
    if blue_first:
        words[:, :, 2::-1] = rgb
    else:
        words[:, :, 1:4] = rgb
    data = png.encode(png.rows_from_words(rows.tobytes(), width, height, stride, blue_first=blue_first))
    assert (decode_png(data) == rgb).all()
