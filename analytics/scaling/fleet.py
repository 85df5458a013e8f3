"""Policies for a whole fleet: evidence in, moves out, as bytes, so that a partition of jobs is one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from analytics.model.plain import to_plain
from analytics.scaling.evidence import UnreadableEvidenceError, act, from_json


def act_on_each(stored: Iterable[bytes]) -> Iterator[bytes]:
    """The move of each piece of evidence, in their order.

    Parameters
    ----------
    stored
        JSON of `analytics.scaling.evidence.to_json`.

    Yields
    ------
    bytes
        JSON of ``{"action": …, "state": …}``, the state being what the policy remembers afterwards; or of
        ``{"error": …}`` for evidence that cannot be read, which does not stop the others.
    """
    for payload in stored:
        try:
            action, state = act(from_json(orjson.loads(payload)))
        except (UnreadableEvidenceError, orjson.JSONDecodeError) as error:
            yield orjson.dumps({"error": str(error)})
            continue
        yield orjson.dumps({"action": to_plain(action), "state": to_plain(state)})
