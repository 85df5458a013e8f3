"""A small process that outlives its parent just long enough to stop what the parent started.

It reads its standard input, which only the parent can write to. When the parent ends for whatever reason,
kill -9 included, the pipe is closed, and the watchdog stops every registered session in order of its stage,
then kills what is left. Works wherever pipes do; nothing here is special to Linux.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable

from webapp.ops.embedded.processes import send, session_members, wait_or_kill
from webapp.ops.embedded.watchdog import GRACE_S, Guarded


def stop_all(guarded: Iterable[Guarded]) -> None:
    """Stop sessions stage by stage: ask all of a stage, wait for all of it, kill the rest."""
    everything = list(guarded)
    for stage in sorted({item.stage for item in everything}):
        turn = [item for item in everything if item.stage == stage]
        for item in turn:
            if item.session in session_members(item.session):
                send(item.session, signal.Signals(item.signal))
        wait_or_kill([item.session for item in turn], GRACE_S.get(stage, 3.0))


def main() -> None:
    """The watchdog process: remember what standard input says, act when it ends."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)
    guarded: dict[int, Guarded] = {}
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # the parent was killed in the middle of a line
        if "guard" in message:
            item = Guarded(**message["guard"])
            guarded[item.session] = item
        else:
            guarded.pop(message["forget"], None)
    stop_all(guarded.values())


if __name__ == "__main__":
    main()
