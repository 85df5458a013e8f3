"""Lines in any order say the same; no line makes the decoder fail."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.activities import decode_activities
from analytics.decode.halves import match_halves
from analytics.model.activity import BY_LABEL
from analytics.model.trace import HalfMessage, TraceBatch
from tests.support.spark_log import rows

NAMES = st.sampled_from(["w1", "w2", "w3"])
TIMES = st.integers(-50, 50)
ACTIVITIES = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(BY_LABEL)), "worker": NAMES, "start_ns": TIMES, "end_ns": TIMES},
    optional={"peer": NAMES, "operator": NAMES},
)
HALVES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["data_message", "control_message"]),
        "event": st.sampled_from(["sent", "received"]),
        "worker": NAMES,
        "at_ns": TIMES,
        "correlation": st.sampled_from("ab"),
    },
    optional={"peer": NAMES},
)


def said(batch: TraceBatch) -> tuple[object, ...]:
    """What a batch means, apart from the order."""
    names = [worker.name for worker in batch.workers]
    pairs, unmatched, odd = match_halves(batch.halves)

    def named(half: HalfMessage) -> str:
        peer = names[half.peer] if half.peer >= 0 else None
        return repr((half.type, half.received, names[half.worker], peer, half.at_ns, half.correlation))

    return (
        sorted(map(repr, rows(batch))),
        sorted((named(sent), named(received)) for sent, received in pairs),
        sorted(map(named, unmatched)),
        sorted((item.code, item.count) for item in [*batch.diagnostics, *odd]),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIVITIES | HALVES, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(lines: list[dict[str, object]], random: object) -> None:
    encoded = [json.dumps(line).encode() for line in lines]
    shuffled = list(encoded)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert said(decode_activities(shuffled)) == said(decode_activities(encoded))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=6))
def test_bytes_never_fail(lines: list[bytes]) -> None:
    assert len(decode_activities(lines).records) == 0


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.integers())
)


@settings(max_examples=300, deadline=None)
@given(
    ACTIVITIES | HALVES,
    st.dictionaries(
        st.sampled_from(
            sorted(
                {"type", "worker", "peer", "event", "at_ns", "start_ns", "end_ns", "operator", "correlation"}
            )
        ),
        VALUES,
        max_size=3,
    ),
)
def test_any_value_in_any_field_gives_a_record_or_a_diagnostic(
    line: dict[str, object], changes: dict[str, object]
) -> None:
    batch = decode_activities([json.dumps(line | changes).encode()])
    assert len(batch.records) + len(batch.halves) + len(batch.diagnostics) == 1
