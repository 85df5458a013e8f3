"""Joining the two ends of messages that were reported apart.

A Sent and a Received belong together when sender, receiver, type and correlation agree; an end that does not
know its peer agrees with any. One Sent may have several Received (a broadcast): each is a message. Nothing is
guessed: a Received that several senders could have sent stays unmatched and is reported.

On a live stream the ends come in different batches. A caller then matches the new halves together with those
it carries: the unmatched ones, and the Sents that already matched and may be received again
(:func:`to_carry`). A matched Received is never carried, so no message is made twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analytics.decode.batch import Oddities
from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import NONE, HalfMessage

Pair = tuple[HalfMessage, HalfMessage]
_SentKey = tuple[int, str, int, int]


def match_halves(halves: Sequence[HalfMessage]) -> tuple[list[Pair], list[HalfMessage], list[Diagnostic]]:
    """Pair Sents with Receiveds (SnailTrail, algorithm 1, keyed by both workers and the correlation).

    Parameters
    ----------
    halves
        In any order; the result does not depend on it.

    Returns
    -------
    pairs
        ``(sent, received)``, sorted by the Sent, then the Received. A Sent may occur in several.
    unmatched
        Halves that are in no pair, sorted; duplicates left out.
    diagnostics
        ``duplicate_sent`` (same ends and correlation; the earliest counts), ``duplicate_received`` (equal in
        everything), ``ambiguous_message`` and ``message_ends_disagree`` (both ends exist, yet name other
        peers or types). The last two come again while the halves are carried and given again.
    """
    oddities = Oddities()
    sents = _distinct_sents(halves, oddities)
    by_receiver: dict[tuple[int, str, int], list[HalfMessage]] = {}
    for sent in sents.values():
        by_receiver.setdefault((sent.type, sent.correlation, sent.peer), []).append(sent)
    pairs: list[Pair] = []
    lonely: list[HalfMessage] = []
    for received in _distinct_received(halves, oddities):
        candidates = _candidates(received, sents, by_receiver)
        if len(candidates) == 1:
            pairs.append((candidates[0], received))
            continue
        lonely.append(received)
        if candidates:
            oddities.add(
                "ambiguous_message", f"correlation {received.correlation!r} was sent by several workers"
            )
    matched = {_sent_key(sent) for sent, _ in pairs}
    unmatched_sents = [sent for key, sent in sents.items() if key not in matched]
    _report_disagreement(unmatched_sents, lonely, oddities)
    pairs.sort(key=lambda pair: (_order(pair[0]), _order(pair[1])))
    return pairs, sorted(unmatched_sents + lonely, key=_order), list(oddities.diagnostics())


def to_carry(pairs: Iterable[Pair], unmatched: Iterable[HalfMessage]) -> list[HalfMessage]:
    """Halves that may be part of messages of later batches, sorted. How long to keep them is up to you."""
    return sorted({*unmatched, *(sent for sent, _ in pairs)}, key=_order)


def message_rows(pairs: Iterable[Pair]) -> list[tuple[int, int, int, int, int, int]]:
    """The pairs as rows for ``Records.of``: sender and receiver as seen by the ends themselves."""
    return [
        (sent.type, sent.worker, received.worker, NONE, sent.at_ns, received.at_ns)
        for sent, received in pairs
    ]


def unmatched_diagnostics(unmatched: Iterable[HalfMessage]) -> list[Diagnostic]:
    """Say how many ends were given up: their messages are lost, no edge is drawn for them."""
    oddities = Oddities()
    for half in unmatched:
        code = "unmatched_received" if half.received else "unmatched_sent"
        oddities.add(code, f"correlation {half.correlation!r} at {half.at_ns} ns has no other end")
    return list(oddities.diagnostics())


def _order(half: HalfMessage) -> tuple[int, int, int, str, int, bool]:
    return half.at_ns, half.worker, half.peer, half.correlation, half.type, half.received


def _sent_key(sent: HalfMessage) -> _SentKey:
    return sent.type, sent.correlation, sent.worker, sent.peer


def _distinct_sents(halves: Sequence[HalfMessage], oddities: Oddities) -> dict[_SentKey, HalfMessage]:
    sents: dict[_SentKey, HalfMessage] = {}
    for sent in sorted((half for half in halves if not half.received), key=_order):
        if _sent_key(sent) in sents:
            oddities.add(
                "duplicate_sent", f"correlation {sent.correlation!r} was sent again at {sent.at_ns} ns"
            )
        else:
            sents[_sent_key(sent)] = sent
    return sents


def _distinct_received(halves: Sequence[HalfMessage], oddities: Oddities) -> list[HalfMessage]:
    distinct: dict[HalfMessage, None] = {}
    for received in sorted((half for half in halves if half.received), key=_order):
        if received in distinct:
            example = f"correlation {received.correlation!r} was received twice at {received.at_ns} ns"
            oddities.add("duplicate_received", example)
        distinct[received] = None
    return list(distinct)


def _candidates(
    received: HalfMessage,
    sents: dict[_SentKey, HalfMessage],
    by_receiver: dict[tuple[int, str, int], list[HalfMessage]],
) -> Sequence[HalfMessage]:
    """Sents this may be the end of: those that name this receiver, else those that name none."""
    for receiver in (received.worker, NONE):
        if received.peer != NONE:
            sent = sents.get((received.type, received.correlation, received.peer, receiver))
            found = [sent] if sent else []
        else:
            found = by_receiver.get((received.type, received.correlation, receiver), [])
        if found:
            return found
    return ()


def _report_disagreement(sents: list[HalfMessage], lonely: list[HalfMessage], oddities: Oddities) -> None:
    by_sender = {(sent.correlation, sent.worker) for sent in sents}
    by_receiver = {(sent.correlation, sent.peer) for sent in sents if sent.peer != NONE}
    for received in lonely:
        known = received.correlation, received.worker
        if (received.correlation, received.peer) in by_sender or known in by_receiver:
            example = f"correlation {received.correlation!r}: its ends name other peers or types"
            oddities.add("message_ends_disagree", example)
