"""Change windows as people write them: ``mon tue wed 09:00-17:00 Europe/Berlin``, one a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError

from frontend import words as spoken
from webapp.reconfigurations.change_windows import DAYS

LINE = re.compile(r"^((?:[a-z]{3}[ ,]+)+)(\d\d:\d\d)\s*[-–]\s*(\d\d:\d\d)\s+(\S+)$", re.IGNORECASE)


def read(text: str) -> list[dict[str, Any]]:
    """What stands in the field, as it is stored.

    Raises
    ------
    ValidationError
        With the line that is none.
    """
    found = []
    for line in filter(None, (item.strip() for item in text.splitlines())):
        match = LINE.match(line)
        days = re.split(r"[ ,]+", match[1].strip(" ,").lower()) if match else []
        if match is None or any(day not in DAYS for day in days):
            raise ValidationError({"windows": f"“{line}” is none: write mon tue 09:00-17:00 Europe/Berlin"})
        found.append({"days": days, "from": match[2], "to": match[3], "zone": match[4]})
    return found


def text(stored: Sequence[dict[str, Any]]) -> str:
    """What is stored, as it stands in the field."""
    return "\n".join(_line(item) for item in stored)


def words(stored: Sequence[dict[str, Any]]) -> str:
    """What is stored, in a sentence: on mon tue 09:00-17:00 Europe/Berlin."""
    return f"only on {spoken.series([_line(item) for item in stored])}"


def _line(item: dict[str, Any]) -> str:
    return f"{' '.join(item['days'])} {item['from']}-{item['to']} {item['zone']}"
