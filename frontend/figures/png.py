"""A picture of few colours as PNG bytes (W3C, PNG specification, third edition)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Shade = tuple[int, int, int, int]
"""Red, green, blue, opacity, each 0-255."""


def encode(cells: NDArray[np.uint8], shades: Sequence[Shade]) -> bytes:
    """A PNG with a pixel per cell, ``cells`` (rows, columns) being positions in ``shades``."""
    height, width = cells.shape
    above = np.zeros_like(cells)
    above[1:] = cells[:-1]
    lines = np.empty((height, width + 1), np.uint8)
    lines[:, 0] = 2  # filter "up": equal rows become zeros
    lines[:, 1:] = cells - above
    colours = bytes(part for shade in shades for part in shade[:3])
    opacities = bytes(shade[3] for shade in shades)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", colours),
            _chunk(b"tRNS", opacities),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 1)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
