"""Run by a test in a process of its own: one analysis on whatever Spark the environment names."""

import json
import sys
from pathlib import Path

from analytics.spark.jobs.critical_participation import Task, run
from analytics.spark.session import create_session, warm_up
from analytics.spark.sources import PostgresSegments


def main(dsn: str, state_dir: str, job_id: str, window_ns: str, first_ns: str, last_ns: str) -> None:
    """Print the CP of every window, and what kind of session computed it."""
    session = create_session(Path(state_dir))
    warm_up(session)
    width, bounds = int(window_ns), (int(first_ns), int(last_ns))
    first = bounds[0] // width
    task = Task(int(job_id), width, 60 * 10**9, bounds, first, -(-bounds[1] // width) - first)
    found = [
        (s.index, s.cp_total, s.worker_cp.tolist()) for _, s in run(session, PostgresSegments(dsn), [task])
    ]
    sys.stdout.write("\n" + json.dumps({"session": type(session).__module__, "windows": found}) + "\n")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
