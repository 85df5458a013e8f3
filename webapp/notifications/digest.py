"""What a digest says, before it is a mail: sections of items, each a title that leads to a page and some lines.

The HTML and the plain text are both made of this and of nothing else, so they say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """What an item means to its reader; the mark stands beside the colour."""

    WAITS = "waits"
    HARM = "harm"
    WARN = "warn"
    GOOD = "good"
    PLAIN = "plain"


MARKS = {Tone.WAITS: "◆", Tone.HARM: "▼", Tone.WARN: "!", Tone.GOOD: "✓", Tone.PLAIN: "•"}


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart of the limiter's CP: ``(CP from 0 to 1, activity code)`` a bar, None where nothing is known.

    ``first`` and ``last`` are the words under its ends, ``says`` the same in a sentence.
    """

    bars: tuple[tuple[float, int] | None, ...]
    first: str
    last: str
    says: str

    @property
    def activities(self) -> tuple[int, ...]:
        """The codes that occur, in the order in which they first do."""
        return tuple(dict.fromkeys(bar[1] for bar in self.bars if bar is not None))


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to know. ``path`` is the address of its page within Weir."""

    title: str
    path: str
    lines: tuple[str, ...]
    tone: Tone = Tone.PLAIN
    action: str = ""
    chart: Bars | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Items of one kind. ``told`` is how the headline puts them ("2 decisions wait"); ``more`` says what is left
    out, and ``path`` leads to it."""

    heading: str
    told: str
    items: tuple[Item, ...]
    more: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """All of it. Without sections nothing happened."""

    about: str
    rhythm: str
    period: str
    sections: tuple[Section, ...]

    @property
    def headline(self) -> str:
        """The first line of the mail."""
        if not self.sections:
            return "Nothing happened: no decision waits, no limiter moved, every job reports."
        told = "; ".join(section.told for section in self.sections)
        return f"{told[0].upper()}{told[1:]}."

    @property
    def subject(self) -> str:
        """The subject: what it is about, then what happened."""
        what = self.headline.removesuffix(".") if self.sections else "nothing happened"
        return " ".join(f"Weir {self.rhythm}, {self.about}: {what}".split())[:200]
