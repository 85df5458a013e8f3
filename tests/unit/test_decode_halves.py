"""Which Sent belongs to which Received."""

from analytics.decode.halves import match_halves, message_rows, to_carry, unmatched_diagnostics
from analytics.model.trace import NONE, HalfMessage

A, B, C = 0, 1, 2


def sent(by: int, to: int, at: int, correlation: str = "c", kind: int = 10) -> HalfMessage:
    return HalfMessage(kind, False, by, to, at, correlation)


def received(by: int, sender: int, at: int, correlation: str = "c", kind: int = 10) -> HalfMessage:
    return HalfMessage(kind, True, by, sender, at, correlation)


def found(*halves: HalfMessage) -> dict[str, int]:
    return {item.code: item.count for item in match_halves(halves)[2]}


def test_ends_that_name_each_other_are_a_message() -> None:
    pairs, unmatched, odd = match_halves([received(B, A, 7), sent(A, B, 3)])
    assert message_rows(pairs) == [(10, A, B, NONE, 3, 7)]
    assert (unmatched, odd) == ([], [])


def test_an_end_that_does_not_know_its_peer_takes_the_other_ends_word() -> None:
    assert message_rows(match_halves([sent(A, NONE, 3), received(B, A, 7)])[0]) == [(10, A, B, NONE, 3, 7)]
    assert message_rows(match_halves([sent(A, B, 3), received(B, NONE, 7)])[0]) == [(10, A, B, NONE, 3, 7)]
    assert message_rows(match_halves([sent(A, NONE, 3), received(B, NONE, 7)])[0]) == [(10, A, B, NONE, 3, 7)]


def test_a_broadcast_is_one_message_to_each_receiver() -> None:
    pairs, unmatched, _ = match_halves([sent(A, NONE, 3), received(B, A, 7), received(C, A, 8)])
    assert message_rows(pairs) == [(10, A, B, NONE, 3, 7), (10, A, C, NONE, 3, 8)]
    assert unmatched == []


def test_one_correlation_may_be_used_between_several_pairs_of_workers() -> None:
    pairs, unmatched, odd = match_halves([sent(A, B, 1), sent(A, C, 2), received(C, A, 5), received(B, A, 6)])
    assert message_rows(pairs) == [(10, A, B, NONE, 1, 6), (10, A, C, NONE, 2, 5)]
    assert (unmatched, odd) == ([], [])


def test_a_second_sent_with_the_same_ends_is_reported_and_the_first_counts() -> None:
    pairs, unmatched, _ = match_halves([sent(A, B, 4), sent(A, B, 3), received(B, A, 7)])
    assert message_rows(pairs) == [(10, A, B, NONE, 3, 7)]
    assert unmatched == []
    assert found(sent(A, B, 4), sent(A, B, 3)) == {"duplicate_sent": 1}


def test_the_same_received_twice_is_one_message() -> None:
    assert found(sent(A, B, 3), received(B, A, 7), received(B, A, 7)) == {"duplicate_received": 1}


def test_ends_that_name_other_peers_or_types_are_reported_and_not_joined() -> None:
    for halves in (
        [sent(A, B, 3), received(C, A, 7)],
        [sent(A, B, 3), received(B, C, 7)],
        [sent(A, B, 3), received(B, A, 7, kind=9)],
    ):
        pairs, unmatched, _ = match_halves(halves)
        assert (pairs, len(unmatched)) == ([], 2)
        assert found(*halves) == {"message_ends_disagree": 1}


def test_a_received_that_two_workers_could_have_sent_is_not_guessed() -> None:
    halves = [sent(A, B, 3), sent(C, B, 4), received(B, NONE, 7)]
    assert match_halves(halves)[0] == []
    assert found(*halves)["ambiguous_message"] == 1


def test_halves_of_different_batches_are_joined_by_carrying() -> None:
    pairs, unmatched, _ = match_halves([sent(A, NONE, 3), received(B, A, 7), sent(A, B, 4, "later")])
    carried = to_carry(pairs, unmatched)
    assert carried == [sent(A, NONE, 3), sent(A, B, 4, "later")]
    pairs, unmatched, odd = match_halves([*carried, received(C, A, 9), received(B, A, 10, "later")])
    assert message_rows(pairs) == [(10, A, C, NONE, 3, 9), (10, A, B, NONE, 4, 10)]
    assert (unmatched, odd) == ([], [])


def test_what_was_given_up_is_counted() -> None:
    lost = unmatched_diagnostics([sent(A, B, 3), received(B, A, 7, "d"), received(B, A, 8, "e")])
    assert [(item.code, item.count) for item in lost] == [("unmatched_received", 2), ("unmatched_sent", 1)]
