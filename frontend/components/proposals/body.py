"""A proposal as every page shows it: the card with its buttons."""

from __future__ import annotations

import hashlib
from typing import Any

from dash import no_update
from django.utils import timezone

from frontend.components.proposals import card, deciding
from frontend.components.proposals.card import Shown
from frontend.request import person
from frontend.state import View
from webapp.reconfigurations.models import Proposal


def shown(row: Proposal, view: View) -> Shown:
    """The proposal as the person of this request sees it now."""
    return card.look(person(), row, view, timezone.now())


def draw(seen: Shown) -> Any:
    """Card and buttons."""
    return card.draw(seen, deciding.buttons(seen))


def changed(drawn: str | None, children: Any) -> list[Any]:
    """What to draw and its digest, or nothing if it is drawn already: focus and open details stay."""
    digest = hashlib.blake2b(repr(children).encode(), digest_size=12).hexdigest()
    return [no_update, no_update] if digest == drawn else [children, digest]
