"""Colours. Each means one thing everywhere, in both themes: the only place where they are written down.

Every colour has a contrast of at least 3:1 against its theme's card (4.5:1 for text); a test holds that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analytics.model.activity import ActivityType as T

THEMES = ("light", "dark")

LIGHT_ACTIVITIES: Final = {
    T.PROCESSING: "#1f6fd6", T.SCHEDULING: "#c8590a", T.SERIALIZATION: "#7b3fc4", T.DESERIALIZATION: "#d6409f",
    T.BUFFER: "#a58200", T.BARRIER: "#7a4a21", T.DATA_MESSAGE: "#0b8a83", T.CONTROL_MESSAGE: "#3f8f1f",
    T.INPUT: "#0a93c2", T.FAULT_TOLERANCE: "#971b2f", T.WAITING: "#8f949b", T.UNKNOWN: "#6b7280",
}  # fmt: skip
DARK_ACTIVITIES: Final = {
    T.PROCESSING: "#5aa2ff", T.SCHEDULING: "#f59b4c", T.SERIALIZATION: "#b48cf2", T.DESERIALIZATION: "#f78fc5",
    T.BUFFER: "#f2d544", T.BARRIER: "#b9855a", T.DATA_MESSAGE: "#35c4b8", T.CONTROL_MESSAGE: "#7fcf5f",
    T.INPUT: "#63daf8", T.FAULT_TOLERANCE: "#e0525f", T.WAITING: "#c3c8cf", T.UNKNOWN: "#8b929b",
}  # fmt: skip
LIGHT_SURFACES: Final = {
    "page": "#f6f7f9", "card": "#ffffff", "line": "#d5d9e0", "grid": "#e8ebef", "text": "#171a20",
    "muted": "#565d6a", "accent": "#0b57c2", "on-accent": "#ffffff", "skeleton": "#e6e9ee",
    "warn": "#7d5000", "warn-back": "#fff4d6", "harm": "#a3172b", "harm-back": "#fdebec", "good": "#1d6b34",
    "open": "#4a3fc0",
}  # fmt: skip
DARK_SURFACES: Final = {
    "page": "#0f1115", "card": "#171a20", "line": "#343a45", "grid": "#262b34", "text": "#eceff4",
    "muted": "#a9b1be", "accent": "#8ab8ff", "on-accent": "#0f1115", "skeleton": "#262b34",
    "warn": "#ffd479", "warn-back": "#2e2611", "harm": "#ff9aa5", "harm-back": "#351a1e", "good": "#86d99c",
    "open": "#b9b2ff",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one theme."""

    activities: dict[T, str]
    surfaces: dict[str, str]

    def activity(self, code: int) -> str:
        """The colour of an activity code."""
        return self.activities[T(code)]

    def surface(self, name: str) -> str:
        """A colour of the frame, such as ``text`` or ``line``."""
        return self.surfaces[name]


_PALETTES = {
    "light": Palette(LIGHT_ACTIVITIES, LIGHT_SURFACES),
    "dark": Palette(DARK_ACTIVITIES, DARK_SURFACES),
}


def of(theme: str) -> Palette:
    """The palette of a theme."""
    return _PALETTES[theme]


def stylesheet() -> str:
    """All colours as CSS variables: ``--weir-card``, ``--weir-data-message`` …"""
    parts = []
    for theme, palette in _PALETTES.items():
        named = {
            **palette.surfaces,
            **{kind.label.replace("_", "-"): c for kind, c in palette.activities.items()},
        }
        body = "".join(f"--weir-{name}:{colour};" for name, colour in named.items())
        parts.append(f':root[data-mantine-color-scheme="{theme}"]{{color-scheme:{theme};{body}}}')
    return "".join(parts)


def css(kind: T) -> str:
    """The CSS variable of an activity type, for parts that follow the theme by themselves."""
    return f"var(--weir-{kind.label.replace('_', '-')})"
