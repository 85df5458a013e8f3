"""Requests of Prometheus remote write as bytes, written field by field after the specification."""

import struct
from collections.abc import Mapping, Sequence

from cramjam import snappy

Labels = Mapping[str, str]
Sample = tuple[float, int]
"""Value and time in ms."""


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value) if value else b""


def double(number: int, value: float | bytes) -> bytes:
    data = value if isinstance(value, bytes) else struct.pack("<d", value)
    return b"" if data == bytes(8) else varint(number << 3 | 1) + data


def sample(value: float | bytes, at_ms: int) -> bytes:
    return double(1, value) + whole(2, at_ms)


def labels_v1(labels: Labels) -> bytes:
    return b"".join(field(1, field(1, key) + field(2, value)) for key, value in labels.items())


def series_v1(labels: Labels, samples: Sequence[Sample], histograms: Sequence[bytes] = ()) -> bytes:
    told = labels_v1(labels) + b"".join(field(2, sample(*item)) for item in samples)
    return field(1, told + b"".join(field(4, item) for item in histograms))


def histogram(count: int, total: float | bytes, at_ms: int) -> bytes:
    """A native histogram with a span and two buckets."""
    buckets = field(11, whole(2, 2)) + field(12, bytes([2, 4]))
    return whole(1, count) + double(3, total) + whole(4, 6) + buckets + whole(15, at_ms)


class RequestV2:
    """A request of version 2 with its table of symbols."""

    def __init__(self) -> None:
        self.symbols = [""]
        self.series: list[bytes] = []

    def ref(self, symbol: str) -> int:
        if symbol not in self.symbols:
            self.symbols.append(symbol)
        return self.symbols.index(symbol)

    def add(
        self, labels: Labels, samples: Sequence[Sample], *, kind: int = 0, created_ms: int = 0,
        histograms: Sequence[bytes] = (), refs: Sequence[int] | None = None,
    ) -> "RequestV2":  # fmt: skip
        pairs = [self.ref(text) for pair in labels.items() for text in pair] if refs is None else refs
        self.series.append(
            field(1, b"".join(map(varint, pairs)))
            + b"".join(field(2, sample(*item)) for item in samples)
            + b"".join(field(3, item) for item in histograms)
            + field(4, double(2, 1.5))  # an exemplar
            + field(5, whole(1, kind) + whole(3, self.ref("help")))
            + whole(6, created_ms)
        )
        return self

    def data(self) -> bytes:
        symbols = b"".join(field(4, symbol) for symbol in self.symbols)
        return symbols + b"".join(field(5, series) for series in self.series)


def packed(data: bytes) -> bytes:
    return bytes(snappy.compress_raw(data))
