"""Which workers belong together."""

import pytest

from analytics.critical_path.collocation import propose_collocation
from analytics.model.results import WindowStatus
from tests.support.summaries import summary


def test_one_worker_is_put_beside_those_it_talks_to():
    # Workers 2, 9, 10 and 11 are on host a, 5 and 6 on host b. 5 with the four: 0.08 + 0.06 + 0.05 + 0.01 = 0.2;
    # with 6, its neighbour, 0.02. 0.9 of 0.2 is reached with the first three.
    hosts = ["c", "c", "a", "c", "c", "b", "b", "c", "c", "a", "a", "a"]
    window = summary(
        channel={(5, 2): 0.05, (2, 5): 0.03, (9, 5): 0.06, (5, 10): 0.05, (5, 11): 0.01, (5, 6): 0.02}
    )
    answer = propose_collocation([window], hosts)
    (proposal,) = answer.proposals
    assert proposal.worker == 5
    assert [(p.worker, p.cp) for p in proposal.beside] == [
        (2, pytest.approx(0.08)), (9, pytest.approx(0.06)), (10, pytest.approx(0.05))
    ]  # fmt: skip
    assert proposal.cp_removed == pytest.approx(0.19)
    assert answer.hosts[proposal.host] == "b"
    assert answer.hosts[proposal.best_host] == "a"
    assert proposal.cp_removed_at_best_host == pytest.approx(0.19)
    assert proposal.cp_at_risk == pytest.approx(0.02)
    assert (answer.cp_messages, answer.cp_across_hosts) == (pytest.approx(0.22), pytest.approx(0.2))


def test_a_partner_names_the_window_in_which_a_channel_of_the_two_had_most():
    windows = [
        summary(0, 10, channel={(0, 1): 0.2, (1, 0): 0.2}),
        summary(10, 20, channel={(1, 0): 0.3}),
        summary(20, 30, channel={(0, 1): 0.1}),
    ]
    (proposal,) = propose_collocation(windows, ["a", "b"]).proposals
    assert [(p.worker, p.peak_ns) for p in proposal.beside] == [(1, 10)]


def test_partners_on_several_hosts_are_priced_by_host():
    answer = propose_collocation([summary(channel={(0, 1): 0.3, (0, 2): 0.2})], ["a", "b", "c"])
    (proposal,) = answer.proposals
    assert (proposal.worker, proposal.cp_removed) == (0, pytest.approx(0.5))
    assert (answer.hosts[proposal.best_host], proposal.cp_removed_at_best_host) == ("b", pytest.approx(0.3))


def test_no_message_counts_in_two_proposals():
    channels = {(0, 1): 0.2, (1, 2): 0.15, (2, 3): 0.1, (3, 0): 0.05}
    answer = propose_collocation([summary(channel=channels)], ["a", "b", "c", "d"])
    pairs = [tuple(sorted((p.worker, q.worker))) for p in answer.proposals for q in p.beside]
    assert len(pairs) == len(set(pairs))
    assert sum(p.cp_removed for p in answer.proposals) <= answer.cp_across_hosts + 1e-12
    assert [p.cp_removed for p in answer.proposals] == sorted(
        (p.cp_removed for p in answer.proposals), reverse=True
    )


def test_messages_within_a_host_or_a_worker_are_no_reason_to_move():
    answer = propose_collocation([summary(channel={(0, 1): 0.4, (1, 1): 0.1})], ["a", "a"])
    assert answer.proposals == ()
    assert (answer.cp_messages, answer.cp_across_hosts) == (pytest.approx(0.5), 0.0)


def test_a_worker_of_unknown_host_counts_as_a_host_of_its_own():
    answer = propose_collocation([summary(channel={(0, 1): 0.4})], ["", ""])
    assert (answer.unknown_host_count, len(answer.proposals), answer.hosts) == (2, 1, ("", ""))


def test_windows_weigh_as_much_as_they_are_long_and_bad_ones_nothing():
    windows = [
        summary(0, 10, channel={(0, 1): 0.4}),
        summary(10, 40),
        summary(40, 90, channel={(0, 1): 0.9}, status=WindowStatus.CYCLE),
    ]
    answer = propose_collocation(windows, ["a", "b"])
    assert (answer.window_count, answer.windows_left_out, answer.length_ns) == (2, 1, 40)
    assert answer.proposals[0].cp_removed == pytest.approx(0.1)


def test_small_pairs_are_no_reason_and_proposals_are_bounded():
    small = summary(channel={(0, 1): 0.0005})
    assert propose_collocation([small], ["a", "b"]).proposals == ()
    many = summary(channel={(2 * i, 2 * i + 1): 0.01 for i in range(30)})
    hosts = [str(i) for i in range(60)]
    assert len(propose_collocation([many], hosts).proposals) == 20
    assert len(propose_collocation([many], hosts, most=3).proposals) == 3


def test_every_worker_needs_a_host_even_if_unknown():
    with pytest.raises(ValueError, match="worker 1"):
        propose_collocation([summary(channel={(0, 1): 0.4})], ["a"])
    assert propose_collocation([], []).proposals == ()
