"""Which workers belong together? Pairs whose messages are critical across hosts, as proposals to put them together.

A proposal names a worker and those it should be beside: its partners on other hosts, largest participation of
the messages between them first (both directions and both message types), until what is left of the worker's
traffic across hosts is small. The worker with the most such participation comes first; the pairs of a proposal
are then taken, so no message counts in two.

What a proposal removes is an upper bound: it supposes that a message within a host takes no time, and the window's
other paths stay. Where one host holds most of the partners, moving there alone is priced too, with what it
puts at risk: the messages with the workers that are beside the worker now.

A worker of unknown host counts as a host of its own, since nothing says that it is beside anyone.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from analytics.model.answers import CollocationAnswer, CollocationPartner, CollocationProposal
from analytics.model.results import WindowStatus, WindowSummary

COVERED = 0.9
"""How much of a worker's participation across hosts its partners make up before the rest is left out."""
MOST_PROPOSALS = 20
SMALLEST_CP = 1e-3
"""A pair below this participation is not worth a move."""

Pairs = dict[int, dict[int, float]]
Peaks = dict[tuple[int, int], tuple[float, int]]
"""Of two workers, the lower first: the most a channel of theirs had in a window, and when that window begins."""


def propose_collocation(
    summaries: Iterable[WindowSummary],
    hosts: Sequence[str],
    *,
    smallest_cp: float = SMALLEST_CP,
    most: int = MOST_PROPOSALS,
) -> CollocationAnswer:
    """Proposals from the channels of some windows.

    Parameters
    ----------
    summaries
        The windows; those without status OK are counted and left out. Channels are means weighted with their
        effective lengths.
    hosts
        ``(workers,)``: the host of every worker by name, "" if unknown.
    smallest_cp, most
        Pairs below this participation are no reason to move; how many proposals to make at most.

    Raises
    ------
    ValueError
        If a channel names a worker without an entry in ``hosts``.
    """
    windows = list(summaries)
    fine = [window for window in windows if window.status is WindowStatus.OK]
    length_ns = sum(window.end_ns - window.start_ns for window in fine)
    traffic, peaks = _traffic(fine, length_ns, len(hosts))
    names, host_of = _number_hosts(hosts)
    across = {
        worker: {p: cp for p, cp in partners.items() if host_of[p] != host_of[worker]}
        for worker, partners in traffic.items()
    }
    total = sum(sum(partners.values()) for partners in traffic.values()) / 2
    proposals = _propose(across, traffic, peaks, host_of, smallest_cp, most)
    return CollocationAnswer(
        window_count=len(fine),
        windows_left_out=len(windows) - len(fine),
        length_ns=length_ns,
        hosts=names,
        unknown_host_count=sum(not host for host in hosts),
        cp_messages=total + _own_messages(fine, length_ns),
        cp_across_hosts=sum(sum(partners.values()) for partners in across.values()) / 2,
        proposals=tuple(proposals),
    )


def _traffic(fine: Sequence[WindowSummary], length_ns: int, workers: int) -> tuple[Pairs, Peaks]:
    """Participation of the messages between two workers, both ways, found under either, and where it peaks."""
    pairs: Pairs = defaultdict(lambda: defaultdict(float))
    peaks: Peaks = {}
    for window in fine:
        weight = (window.end_ns - window.start_ns) / length_ns
        channels = zip(
            window.channel_src.tolist(), window.channel_dst.tolist(), window.channel_cp, strict=True
        )
        for src, dst, cp in channels:
            if max(src, dst) >= workers:
                raise ValueError(f"no host is given for worker {max(src, dst)}")
            if src != dst and cp > 0:
                pairs[src][dst] += float(cp) * weight
                pairs[dst][src] += float(cp) * weight
                pair = min(src, dst), max(src, dst)
                peaks[pair] = max(peaks.get(pair, (0.0, 0)), (float(cp) * weight, window.start_ns))
    return pairs, peaks


def _own_messages(fine: Sequence[WindowSummary], length_ns: int) -> float:
    """Participation of messages from a worker to itself."""
    return sum(
        float(window.channel_cp[window.channel_src == window.channel_dst].sum())
        * (window.end_ns - window.start_ns)
        / length_ns
        for window in fine
    )


def _number_hosts(hosts: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Names of the hosts, and the host of every worker; an unknown host is one more, without a name."""
    names: list[str] = []
    known: dict[str, int] = {}
    host_of = []
    for host in hosts:
        if not host or host not in known:
            names.append(host)
        if not host:
            host_of.append(len(names) - 1)
        else:
            host_of.append(known.setdefault(host, len(names) - 1))
    return tuple(names), host_of


def _propose(
    across: Pairs, traffic: Pairs, peaks: Peaks, host_of: Sequence[int], smallest_cp: float, most: int
) -> list[CollocationProposal]:
    left = {
        worker: {p: cp for p, cp in partners.items() if cp >= smallest_cp}
        for worker, partners in across.items()
    }
    proposals: list[CollocationProposal] = []
    while len(proposals) < most:
        worker = max(left, key=lambda w: (sum(left[w].values()), len(left[w]), -w), default=None)
        if worker is None or not left[worker]:
            break
        beside = _enough(worker, left[worker], peaks)
        proposals.append(_proposal(worker, beside, traffic[worker], host_of))
        for partner in beside:
            del left[worker][partner.worker]
            del left[partner.worker][worker]
        # What was too little for this proposal is too little for another of the same worker.
        for partner_id in list(left[worker]):
            del left[partner_id][worker]
        left[worker].clear()
    proposals.sort(key=lambda proposal: (-proposal.cp_removed, proposal.worker))
    return proposals


def _enough(worker: int, partners: dict[int, float], peaks: Peaks) -> tuple[CollocationPartner, ...]:
    """The partners that make up most of the participation, largest first."""
    goal = COVERED * sum(partners.values())
    taken: list[CollocationPartner] = []
    for other, cp in sorted(partners.items(), key=lambda item: (-item[1], item[0])):
        if sum(partner.cp for partner in taken) >= goal:
            break
        taken.append(CollocationPartner(other, cp, peaks[min(worker, other), max(worker, other)][1]))
    return tuple(taken)


def _proposal(
    worker: int, beside: tuple[CollocationPartner, ...], traffic: dict[int, float], host_of: Sequence[int]
) -> CollocationProposal:
    by_host: dict[int, float] = defaultdict(float)
    for partner in beside:
        by_host[host_of[partner.worker]] += partner.cp
    best = max(by_host, key=lambda host: (by_host[host], -host))
    return CollocationProposal(
        worker=worker,
        host=host_of[worker],
        beside=beside,
        cp_removed=sum(partner.cp for partner in beside),
        best_host=best,
        cp_removed_at_best_host=by_host[best],
        cp_at_risk=sum(cp for other, cp in traffic.items() if host_of[other] == host_of[worker]),
    )
