"""Which core ran which task: the log only names the executor.

A launched task goes to the most recently used free core of its executor. If the log shows none free, the task
waits in line: Spark launches on a core as soon as the executor says it is done, before the log has the old
task's end. It then gets the first core that becomes free, and the old task is placed so that it had ended by
the new one's launch. A task may even end while it is in line (the old one's big result is still being
fetched); its end is kept for later. If that lasts longer than :data:`PATIENCE_MS`, some task's end was lost
from the log: the core of the task launched longest ago is taken to be free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from analytics.decode.batch import Oddities
from analytics.decode.spark_tasks import Task
from analytics.model.trace import Worker

PATIENCE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Slot:
    """A finished task on its core. ``latest_ms``: when the core was launched on again, if that is known."""

    task: Task
    core: int
    latest_ms: int | None


@dataclass
class Executor:
    """One executor's cores; one that was never announced has as many as its tasks needed at once.

    ``free`` is a stack: the last core in it was used last. ``running`` has each task's core and launch (ms),
    ``queue`` the tasks in line with their launch, ``ended`` those in line that have already ended.
    """

    label: str
    host: str = ""
    announced: bool = False
    cores: int = 0
    added_ns: int | None = None
    removed_ns: int | None = None
    free: list[int] = field(default_factory=list)
    busy_until_ns: list[int] = field(default_factory=list)
    running: dict[int, tuple[int, int]] = field(default_factory=dict)
    queue: list[tuple[int, int]] = field(default_factory=list)
    ended: dict[int, Task] = field(default_factory=dict)

    def announce(self, cores: int, host: str, added_ns: int | None) -> None:
        """The executor was added, with this many cores."""
        self.announced, self.host, self.added_ns = True, host, added_ns
        # Cores a task used before the announcement (which can only be out of order) stay.
        self.free = [*range(cores - 1, self.cores - 1, -1), *self.free]
        self._grow_to(max(cores, self.cores))

    def knows(self, task_id: int) -> bool:
        """Whether this task was launched here and has not been placed yet."""
        return task_id in self.running or any(queued == task_id for queued, _ in self.queue)

    def launch(self, task_id: int, launch_ms: int) -> None:
        """Give the task a core, or put it in line."""
        if not self.free and not self.announced:
            self._grow_to(self.cores + 1)
            self.free.append(self.cores - 1)
        if self.free:
            self.running[task_id] = self.free.pop(), launch_ms
        else:
            self.queue.append((task_id, launch_ms))

    def end(self, task: Task, oddities: Oddities) -> Iterator[Slot]:
        """Take a task's end; give every task that now has a core and an end."""
        if task.task_id in self.running:
            yield from self._release(task)
            return
        self.ended[task.task_id] = task
        for earlier in list(self.ended.values()):
            if task.return_ms - earlier.return_ms > PATIENCE_MS and earlier.task_id in self.ended:
                yield from self._presume_lost(oddities)

    def abandon(self, task_id: int) -> Iterator[Slot]:
        """The task's end cannot be used, but its core is free; give the tasks in line that now have one."""
        if task_id in self.running:
            core, _ = self.running.pop(task_id)
            yield from self._give(core)
        else:
            self.queue = [queued for queued in self.queue if queued[0] != task_id]

    def unfinished(self, oddities: Oddities) -> None:
        """At the end of the log: report what never got an end or a core."""
        for task_id in self.running:
            oddities.add("task_end_missing", f"task {task_id} has no end in the log")
        for task_id, _ in self.queue:
            what = "more_tasks_than_cores" if task_id in self.ended else "task_end_missing"
            oddities.add(what, f"task {task_id} never had a core of {self.label}")

    @property
    def idle(self) -> bool:
        """Whether no task is known to be here."""
        return not self.running and not self.queue

    def worker(self, core: int) -> Worker:
        """The timeline of one core."""
        return Worker(f"{self.label}/core-{core}", self.host, self.added_ns, self.removed_ns)

    def state(self) -> dict[str, Any]:
        """As JSON values."""
        values = asdict(self)
        values["running"] = [[task_id, *where] for task_id, where in self.running.items()]
        values["ended"] = [asdict(task) for task in self.ended.values()]
        return values

    @classmethod
    def restore(cls, values: dict[str, Any]) -> Executor:
        """From what :meth:`state` gave; takes over its lists."""
        ended = [_task(item) for item in values["ended"]]
        return cls(
            **{
                **values,
                "running": {task_id: (core, launch_ms) for task_id, core, launch_ms in values["running"]},
                "queue": [(task_id, launch_ms) for task_id, launch_ms in values["queue"]],
                "ended": {task.task_id: task for task in ended},
            }
        )

    def _release(self, task: Task) -> Iterator[Slot]:
        core, _ = self.running.pop(task.task_id)
        next_launch_ms = self.queue[0][1] if self.queue else None
        yield Slot(task, core, next_launch_ms)
        yield from self._give(core)

    def _give(self, core: int) -> Iterator[Slot]:
        """A core is free: the first in line gets it; if that has already ended, so does the next."""
        while self.queue:
            task_id, launch_ms = self.queue.pop(0)
            task = self.ended.pop(task_id, None)
            if task is None:
                self.running[task_id] = core, launch_ms
                return
            yield Slot(task, core, self.queue[0][1] if self.queue else None)
        self.free.append(core)

    def _presume_lost(self, oddities: Oddities) -> Iterator[Slot]:
        if not self.running:
            return
        task_id = min(self.running, key=lambda running: (self.running[running][1], running))
        oddities.add("task_end_missing", f"task {task_id} on {self.label} gave up its core without an end")
        yield from self.abandon(task_id)

    def _grow_to(self, cores: int) -> None:
        self.busy_until_ns += [0] * (cores - self.cores)
        self.cores = cores


def _task(values: dict[str, Any]) -> Task:
    return Task(**{**values, "parts": tuple((kind, duration) for kind, duration in values["parts"])})
