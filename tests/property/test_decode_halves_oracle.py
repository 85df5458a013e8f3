"""Matching against a slow restatement of the rule, and in any order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.halves import match_halves, to_carry
from analytics.model.trace import NONE, HalfMessage

HALVES = st.lists(
    st.builds(
        HalfMessage,
        type=st.sampled_from([9, 10]),
        received=st.booleans(),
        worker=st.integers(0, 2),
        peer=st.integers(NONE, 2),
        at_ns=st.integers(0, 20),
        correlation=st.sampled_from("ab"),
    ),
    max_size=12,
)


def by_rule(halves: list[HalfMessage]) -> set[tuple[HalfMessage, HalfMessage]]:
    """All pairs, by looking at every Sent for every Received."""
    first: dict[object, HalfMessage] = {}
    for half in sorted((half for half in halves if not half.received), key=lambda half: half.at_ns):
        first.setdefault((half.type, half.correlation, half.worker, half.peer), half)
    pairs = set()
    for end in (half for half in halves if half.received):
        fitting = [
            sent
            for sent in first.values()
            if (sent.type, sent.correlation) == (end.type, end.correlation)
            and end.peer in (NONE, sent.worker)
            and sent.peer in (NONE, end.worker)
        ]
        exact = [sent for sent in fitting if sent.peer == end.worker] or fitting
        if len(exact) == 1:
            pairs.add((exact[0], end))
    return pairs


@settings(max_examples=400, deadline=None)
@given(HALVES)
def test_pairs_are_those_of_the_rule_and_every_half_is_somewhere(halves: list[HalfMessage]) -> None:
    pairs, unmatched, _ = match_halves(halves)
    assert set(pairs) == by_rule(halves)
    assert len(pairs) == len(set(pairs))
    assert not {half for pair in pairs for half in pair} & set(unmatched)
    assert {half for half in halves if half.received} == {
        half for half in [*unmatched, *(received for _, received in pairs)] if half.received
    }


@settings(max_examples=200, deadline=None)
@given(HALVES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(halves: list[HalfMessage], random: object) -> None:
    shuffled = list(halves)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert match_halves(shuffled) == match_halves(halves)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(1, 3), min_size=1)), max_size=5), st.data())
def test_unambiguous_messages_are_found_whichever_batch_their_ends_come_in(
    sends: list[tuple[int, set[int]]], data: st.DataObject
) -> None:
    halves = [HalfMessage(10, False, 0, NONE, at, str(n)) for n, (at, _) in enumerate(sends)]
    for n, (at, receivers) in enumerate(sends):
        halves += [HalfMessage(10, True, worker, 0, at + worker, str(n)) for worker in sorted(receivers)]
    halves = data.draw(st.permutations(halves))
    carried: list[HalfMessage] = []
    found: list[tuple[HalfMessage, HalfMessage]] = []
    while halves:
        size = data.draw(st.integers(1, len(halves)))
        pairs, unmatched, _ = match_halves([*carried, *halves[:size]])
        halves, carried = halves[size:], to_carry(pairs, unmatched)
        found += pairs
    assert len(found) == len(set(found)) == sum(len(receivers) for _, receivers in sends)
