"""What is looked at on a cluster's page and what is tried out, as it stands in the address."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs

from analytics.model.bursts import BurstModel
from webapp.bursts.live import Change

SLIDERS = {"cap": (25, 300), "cost": (25, 300), "rate": (0, 300)}
"""Each in per cent of what it is, with its ends."""


@dataclass(frozen=True, slots=True)
class Wish:
    """``pair`` are names of applications, empty if none is chosen."""

    pair: tuple[str, str]
    change: Change

    @staticmethod
    def parse(query: str) -> Wish:
        """Read a query string; values that make no sense count as absent."""
        fields = {key: values[-1] for key, values in parse_qs(query.lstrip("?")).items()}
        ratios = {name: _ratio(fields.get(name), *ends) for name, ends in SLIDERS.items()}
        change = Change(
            node=fields.get("node", ""), capacity_ratio=ratios["cap"], application=fields.get("app", ""),
            cost_ratio=ratios["cost"], rate_of=fields.get("of", ""), rate_ratio=ratios["rate"],
            lost=fields.get("lose", ""), resource=fields.get("res", ""),
        )  # fmt: skip
        return Wish((fields.get("x", ""), fields.get("y", "")), change)

    def known(self, model: BurstModel) -> Wish:
        """The same for a cluster of this model: what it has not counts as the first, or as nothing."""
        names = [one.name for one in model.applications]
        has = {node.name: node.capacity for node in model.nodes}
        places = list(has)
        first = self.pair[0] if self.pair[0] in names else names[0]
        others = [name for name in names if name != first]
        second = self.pair[1] if self.pair[1] in others else others[0] if others else ""
        asked = self.change
        node = asked.node if asked.node in places else places[0]
        change = Change(
            node=node, resource=asked.resource if asked.resource in has[node] else "",
            capacity_ratio=asked.capacity_ratio,
            application=asked.application if asked.application in names else names[0],
            cost_ratio=asked.cost_ratio, rate_of=asked.rate_of if asked.rate_of in names else "",
            rate_ratio=asked.rate_ratio, lost=asked.lost if asked.lost in places else "",
        )  # fmt: skip
        return Wish((first, second), change)


def _ratio(text: str | None, low: int, high: int) -> float:
    try:
        value = int(text or "100")
    except ValueError:
        return 1.0
    return min(max(value, low), high) / 100
