"""A segment of a timeline as it stands in an address: by its number, or by what it is.

A table of numbers knows who and when, or the group its number is of, but not how a window counts its segments. So
it writes ``at.<worker>.<peer>.<operator>.<from_ns>.<to_ns>`` or ``top.<dimension>.<id>[.<peer>]``, with an empty
part for what it does not say, and the window finds the segment: the one that covers most of that time, or the one
with the highest CP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webapp.analysis.edge_index import EdgeIndex

DIMENSIONS = ("activity", "worker", "operator", "channel", "pair")
NUMBER = r"\d{1,19}"
LARGEST = 2**63 - 1
_AT = re.compile(rf"at\.({NUMBER})?\.({NUMBER})?\.({NUMBER})?\.({NUMBER})\.({NUMBER})")
_TOP = re.compile(rf"top\.({'|'.join(DIMENSIONS)})\.({NUMBER})(?:\.({NUMBER}))?")


def at(worker: int, peer: int, operator: int, from_ns: int, to_ns: int) -> str:
    """The segment of these ends, where negative numbers say nothing, that covers most of the time."""
    parts = [str(number) if number >= 0 else "" for number in (worker, peer, operator)]
    return ".".join(["at", *parts, str(from_ns), str(to_ns)])


def top(dimension: str, number: int, peer: int = -1) -> str:
    """The segment of a group with the highest CP; ``peer`` is the receiver of a channel, or the other of a pair."""
    return ".".join(["top", dimension, str(number), *([str(peer)] if peer >= 0 else [])])


@dataclass(frozen=True, slots=True)
class Place:
    """What an address says of a segment. Without any of it nothing is selected."""

    number: int | None = None
    ends: tuple[int | None, int | None, int | None] | None = None
    span_ns: tuple[int, int] = (0, 0)
    dimension: str = ""
    group: int = -1
    peer: int | None = None

    @staticmethod
    def parse(text: str) -> Place:
        """Read what stands in an address; what makes no sense is no place."""
        if any(int(number) > LARGEST for number in re.findall(NUMBER, text)):
            return Place()
        if re.fullmatch(NUMBER, text):
            return Place(number=int(text))
        if found := _AT.fullmatch(text):
            worker, peer, operator, from_ns, to_ns = (int(part) if part else None for part in found.groups())
            return Place(ends=(worker, peer, operator), span_ns=(from_ns or 0, to_ns or 0))
        if found := _TOP.fullmatch(text):
            return Place(dimension=found[1], group=int(found[2]), peer=int(found[3]) if found[3] else None)
        return Place()

    def find(self, index: EdgeIndex) -> int | None:
        """The segment's number in this window; None if there is none, or none is meant."""
        if self.number is not None:
            return self.number if self.number < len(index.edges.src) else None
        if self.ends is not None:
            return index.covering(*self.ends, *self.span_ns)
        return index.most_critical(self.dimension, self.group, self.peer) if self.dimension else None
