"""Dataflows and results of the DS2 paper's evaluation, to be tried again on the model.

Source: Kalavri et al., OSDI 2018, section 5.1 (Heron word count, figure 6) and 5.3 (Nexmark on Flink,
tables 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass

from analytics.scaling.dataflow import Curve, Dataflow, ModelOperator, ModelSource, linear

WORDS_PER_SENTENCE = 20.0
HERON_QUEUE_RECORDS = 5e6
"""Queues of 100 MiB (words of about 20 bytes), which is why Dhalion takes so long to see what it did."""

HERON_START = {"flatmap": 1, "count": 1}
HERON_INTERVAL_S = 60.0
NEXMARK_INTERVAL_S = 30.0


def heron_word_count() -> Dataflow:
    """One million sentences a minute; an instance splits 100,000 sentences or counts a million words a minute."""
    return Dataflow(
        (ModelSource("source", 1e6 / 60),),
        (
            ModelOperator("flatmap", linear(1e5 / 60), WORDS_PER_SENTENCE, HERON_QUEUE_RECORDS),
            ModelOperator("count", linear(1e6 / 60), 0.0, HERON_QUEUE_RECORDS),
        ),
        (("source", "flatmap"), ("flatmap", "count")),
    )


@dataclass(frozen=True, slots=True)
class NexmarkQuery:
    """A query: its sources' rates, the decision of its main operator at each parallelism, and where it ends.

    ``published`` are the decisions of table 4 by where they start. A decision d at a parallelism p says that p
    instances do between target ÷ d and target ÷ (d − 1) each.
    """

    name: str
    rates_per_s: tuple[tuple[str, float], ...]
    decisions: tuple[tuple[int, int], ...]
    published: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def final(self) -> int:
        """The parallelism at which every published run ends."""
        return self.published[0][1][-1]


def nexmark(query: NexmarkQuery) -> Dataflow:
    """The query's main operator behind its sources, with the middle of the capacities its decisions imply."""
    target = sum(rate for _, rate in query.rates_per_s)
    curve = Curve(tuple((parallelism, target / (asked - 0.5)) for parallelism, asked in query.decisions))
    return Dataflow(
        tuple(ModelSource(name, rate) for name, rate in query.rates_per_s),
        (ModelOperator("main", curve, 0.0),),
        tuple((name, "main") for name, _ in query.rates_per_s),
    )


# Q5 decided 15 at 14 once and 16 twice: no curve gives both, and the first is taken.
NEXMARK = (
    NexmarkQuery(
        "Q1",
        (("bids", 4e6),),
        ((8, 12), (12, 16), (28, 16)),
        ((8, (12, 16)), (12, (16,)), (16, (16,)), (20, (16,)), (24, (16,)), (28, (16,))),
    ),
    NexmarkQuery(
        "Q2",
        (("bids", 4e6),),
        ((8, 11), (11, 13), (12, 14), (14, 14), (16, 12), (20, 13), (24, 14), (28, 14)),
        ((8, (11, 13, 14)), (12, (14,)), (16, (12, 14)), (20, (13, 14)), (24, (14,)), (28, (14,))),
    ),
    NexmarkQuery(
        "Q3",
        (("auctions", 5e5), ("persons", 1e5)),
        ((8, 16), (12, 18), (16, 20), (28, 20)),
        ((8, (16, 20)), (12, (18, 20)), (16, (20,)), (20, (20,)), (24, (20,)), (28, (20,))),
    ),
    NexmarkQuery(
        "Q5",
        (("bids", 5e5),),
        ((8, 14), (12, 16), (13, 16), (14, 15), (15, 16), (16, 16), (20, 14), (24, 14), (28, 13)),
        ((8, (14, 15, 16)), (12, (16,)), (16, (16,)), (20, (14, 16)), (24, (14, 16)), (28, (13, 16))),
    ),
    NexmarkQuery(
        "Q8",
        (("auctions", 4.2e5), ("persons", 1.2e5)),
        ((8, 10), (12, 10), (16, 8), (28, 8)),
        ((8, (10,)), (12, (10,)), (16, (8, 10)), (20, (8, 10)), (24, (8, 10)), (28, (8, 10))),
    ),
    NexmarkQuery(
        "Q11",
        (("bids", 1e6),),
        ((8, 12), (12, 22), (16, 26), (20, 28), (28, 28)),
        ((8, (12, 22, 28)), (12, (22, 28)), (16, (26, 28)), (20, (28,)), (24, (28,)), (28, (28,))),
    ),
)
