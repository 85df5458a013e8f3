"""One finished Spark task attempt: what it did, and where on its core's timeline it fits.

The log says how long each part of a task took, and when the driver launched it and took its result back; not
when the executor began. What remains between is the scheduler delay, of which a share ``f`` is taken to lie
before the task (SnailTrail's Spark parser: 0.33).
"""

from __future__ import annotations

from dataclasses import dataclass

from analytics.decode.batch import Oddities
from analytics.decode.json_fields import NS_PER_MS, Event, amount, identifier, mapping, text, time_ms, whole
from analytics.model.activity import ActivityType

Part = tuple[int, int]
"""Activity type and duration in ns."""

DELAY_SHARE_BEFORE_START = 0.33


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt.

    ``return_ms`` is when the driver had its status; ``fetched_ms`` when a result too big for the status had
    been fetched, None if there was none. ``lost``: the executor went and never answered.
    """

    task_id: int
    executor: str
    operator: str
    launch_ms: int
    return_ms: int
    fetched_ms: int | None
    lost: bool
    parts: tuple[Part, ...]

    @property
    def work_ns(self) -> int:
        """How long the executor was busy with it."""
        return sum(duration_ns for _, duration_ns in self.parts)


def read_task(event: Event, operator: str, oddities: Oddities, where: str) -> Task | None:
    """Understand a ``SparkListenerTaskEnd``; None, reported, if it cannot be placed in time."""
    info = mapping(event, "Task Info")
    task_id = identifier(info, "Task ID", oddities, where)
    launch_ms = time_ms(info, "Launch Time", oddities, where)
    finish_ms = time_ms(info, "Finish Time", oddities, where)
    if task_id is None or launch_ms is None or finish_ms is None:
        return None
    if finish_ms < launch_ms:
        oddities.add("negative_duration", f"{where}: task {task_id} finished before its launch")
        return None
    getting_ms = whole(info, "Getting Result Time") or 0
    fetched = launch_ms <= getting_ms <= finish_ms
    if getting_ms and not fetched:
        oddities.add("implausible_time", f"{where}: Getting Result Time is {getting_ms}")
    return_ms = getting_ms if fetched else finish_ms
    reason = text(mapping(event, "Task End Reason"), "Reason")
    parts = _parts(mapping(event, "Task Metrics"), oddities, where)
    if sum(duration for _, duration in parts) == 0 and reason != "Success":
        # It held the core, but nobody reported what it did there.
        parts = [(ActivityType.UNKNOWN, (return_ms - launch_ms) * NS_PER_MS)]
    return Task(
        task_id=task_id,
        executor=text(info, "Executor ID"),
        operator=operator,
        launch_ms=launch_ms,
        return_ms=return_ms,
        fetched_ms=finish_ms if fetched else None,
        lost=reason == "ExecutorLostFailure",
        parts=tuple(_shaved(parts, (return_ms - launch_ms) * NS_PER_MS, oddities, where)),
    )


def report_outcome(event: Event, oddities: Oddities, where: str) -> None:
    """Count attempts that were wasted, and speculative ones."""
    info = mapping(event, "Task Info")
    reason = text(mapping(event, "Task End Reason"), "Reason")
    task = f"{where}: task {whole(info, 'Task ID')}"
    if info.get("Speculative") is True:
        oddities.add("speculative_attempt", task)
    if reason == "ExecutorLostFailure":
        oddities.add("executor_lost", task)
    elif reason == "TaskKilled" or info.get("Killed") is True:
        oddities.add("task_killed", task)
    elif reason != "Success":
        oddities.add("task_failed", f"{task}: {reason or 'no reason given'}")


def _parts(metrics: Event, oddities: Oddities, where: str) -> list[Part]:
    """The parts in their order. Run time includes waiting for shuffle blocks and writing them."""
    if not metrics:
        return []
    run_ns = amount(metrics, "Executor Run Time", oddities, where) * NS_PER_MS
    read, write = mapping(metrics, "Shuffle Read Metrics"), mapping(metrics, "Shuffle Write Metrics")
    fetch_ns = amount(read, "Fetch Wait Time", oddities, where) * NS_PER_MS if read else 0
    write_ns = amount(write, "Shuffle Write Time", oddities, where) if write else 0
    if fetch_ns + write_ns > run_ns:
        oddities.add("parts_exceed_run_time", f"{where}: shuffle wait and write exceed the run time")
        fetch_ns = min(fetch_ns, run_ns)
        write_ns = min(write_ns, run_ns - fetch_ns)
    return [
        (
            ActivityType.DESERIALIZATION,
            amount(metrics, "Executor Deserialize Time", oddities, where) * NS_PER_MS,
        ),
        (ActivityType.BUFFER, fetch_ns),
        (ActivityType.PROCESSING, run_ns - fetch_ns - write_ns),
        (ActivityType.BUFFER, write_ns),
        (
            ActivityType.SERIALIZATION,
            amount(metrics, "Result Serialization Time", oddities, where) * NS_PER_MS,
        ),
    ]


def _shaved(parts: list[Part], stay_ns: int, oddities: Oddities, where: str) -> list[Part]:
    """Parts that are longer than the time between launch and return lose the excess, from the back.

    Otherwise the result would reach the driver before it was sent, and one millisecond of rounding would make
    the window's clocks disagree.
    """
    excess_ns = sum(duration for _, duration in parts) - stay_ns
    if excess_ns <= 0:
        return parts
    oddities.add("task_longer_than_its_stay", f"{where}: parts exceed launch to return by {excess_ns} ns")
    shaved: list[Part] = []
    left_ns = stay_ns
    for kind, duration_ns in parts:
        shaved.append((kind, min(duration_ns, left_ns)))
        left_ns -= shaved[-1][1]
    return shaved


def place(task: Task, delay_share: float, earliest_ns: int, latest_ns: int | None) -> int:
    """When the task began on its core, in ns.

    By the rule ``launch + f × scheduler delay``; moved within its stay if the core was still busy until
    ``earliest_ns``, or was already given to another task at ``latest_ns``.
    """
    launch_ns = task.launch_ms * NS_PER_MS
    delay_ns = task.return_ms * NS_PER_MS - launch_ns - task.work_ns
    start_ns = launch_ns + round(delay_share * delay_ns)
    if latest_ns is not None:
        start_ns = min(start_ns, latest_ns - task.work_ns)
    return min(max(start_ns, earliest_ns, launch_ns), launch_ns + delay_ns)
