"""Spark's event log: the driver and every executor core become workers, tasks become activities.

The mapping is SnailTrail's (Hoffmann et al., NSDI'18, section 4.2 and its Spark parser); see
:mod:`~analytics.decode.spark_tasks` (one task), :mod:`~analytics.decode.spark_cores` (which core),
:mod:`~analytics.decode.spark_driver` (the driver), :mod:`~analytics.decode.spark_stages` (operators) and
:mod:`~analytics.decode.spark_progress` (metrics). Decoding is incremental: feeding a log in any pieces, and
saving and restoring the state between them, gives the same records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from analytics.decode.batch import BatchBuilder
from analytics.decode.json_fields import NS_PER_MS, Event, identifier, mapping, text, time_ms, whole
from analytics.decode.spark_cores import Executor, Slot
from analytics.decode.spark_driver import DriverTimeline, Stamp
from analytics.decode.spark_progress import add_progress
from analytics.decode.spark_stages import StageNames
from analytics.decode.spark_tasks import DELAY_SHARE_BEFORE_START, Task, place, read_task, report_outcome
from analytics.model.activity import ActivityType
from analytics.model.trace import TraceBatch, Worker

STATE_VERSION = 1
REMEMBERED_TASKS = 256
MAX_CORES = 4_096

_EVENT_NAME = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([^"\\]+)"')
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


@dataclass(frozen=True, slots=True)
class Application:
    """What the log says about its application. ``ended_ns`` is None while it runs (or if it died)."""

    name: str = ""
    app_id: str = ""
    spark_version: str = ""
    started_ns: int | None = None
    ended_ns: int | None = None

    @property
    def finished(self) -> bool:
        """Whether the log has the application's end."""
        return self.ended_ns is not None


class SparkEventLogDecoder:
    """Turns lines of one event log into trace batches.

    Parameters
    ----------
    delay_share
        Share of a task's scheduler delay that is taken to lie before it started (0 to 1).
    """

    def __init__(self, delay_share: float = DELAY_SHARE_BEFORE_START) -> None:
        self.application = Application()
        self._delay_share = delay_share
        self._line = 0
        self._executors: dict[str, Executor] = {}
        self._ended: list[int] = []
        self._fetching: list[int] = []
        self._driver = DriverTimeline()
        self._stages = StageNames()
        self._batch = BatchBuilder()
        self._handlers: dict[str, Callable[[Event], None]] = {
            "SparkListenerLogStart": self._log_start,
            "SparkListenerApplicationStart": self._application_start,
            "SparkListenerApplicationEnd": self._application_end,
            "SparkListenerExecutorAdded": self._executor_added,
            "SparkListenerExecutorRemoved": self._executor_removed,
            "SparkListenerStageSubmitted": lambda event: self._stages.submitted(event),
            "SparkListenerTaskStart": self._task_start,
            "SparkListenerTaskGettingResult": self._task_getting_result,
            "SparkListenerTaskEnd": self._task_end,
            f"{_STREAMING}QueryStartedEvent": lambda event: self._stages.query_started(event),
            f"{_STREAMING}QueryProgressEvent": self._progress,
        }

    def feed(self, lines: Iterable[bytes]) -> TraceBatch:
        """Decode further complete lines of the log.

        Returns
        -------
        TraceBatch
            What became certain. Every worker in it comes with all that is known about its host and life.
            Operators are stages. Diagnostics count what was odd; their examples name the line.
        """
        for line in lines:
            self._line += 1
            if line.strip():
                self._read(line)
        batch, self._batch = self._batch, BatchBuilder()
        return batch.build()

    def finish(self) -> TraceBatch:
        """The log is over: give what waited for order, and report tasks that never ended."""
        self._driver.flush(self._batch)
        for executor in self._executors.values():
            executor.unfinished(self._batch.oddities)
        return self.feed(())

    def state(self) -> dict[str, Any]:
        """All the decoder must remember, as JSON values; for :meth:`restore`. Take it after ``feed``."""
        state = {
            "version": STATE_VERSION,
            "line": self._line,
            "delay_share": self._delay_share,
            "application": asdict(self.application),
            "executors": {name: executor.state() for name, executor in self._executors.items()},
            "ended": list(self._ended),
            "fetching": list(self._fetching),
            "driver": self._driver.state(),
            "stages": asdict(self._stages),
        }
        # Lists where we use tuples, and nothing shared with us: equal to what comes back from a database.
        return dict(orjson.loads(orjson.dumps(state)))

    @classmethod
    def restore(cls, state: dict[str, Any]) -> SparkEventLogDecoder:
        """Go on where the decoder that gave this state was.

        Raises
        ------
        ValueError
            If the state is of another version.
        """
        if state.get("version") != STATE_VERSION:
            raise ValueError(f"decoder state of version {state.get('version')}, expected {STATE_VERSION}")
        state = orjson.loads(orjson.dumps(state))  # a copy: the decoder changes it
        decoder = cls(state["delay_share"])
        decoder._line = state["line"]
        decoder.application = Application(**state["application"])
        decoder._executors = {name: Executor.restore(item) for name, item in state["executors"].items()}
        decoder._ended, decoder._fetching = state["ended"], state["fetching"]
        decoder._driver = DriverTimeline.restore(state["driver"])
        decoder._stages = StageNames(**state["stages"])
        return decoder

    @property
    def _at(self) -> str:
        return f"line {self._line}"

    def _read(self, line: bytes) -> None:
        # Most bytes of a log are events that are not used (SQL plans, properties): do not parse them.
        name = _EVENT_NAME.match(line)
        if name and name[1].decode(errors="replace") not in self._handlers:
            return
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            self._batch.oddities.add("not_json", f"{self._at}: {error}")
            return
        if not isinstance(event, dict):
            self._batch.oddities.add("not_an_object", f"{self._at}: {type(event).__name__}")
            return
        self._handlers.get(text(event, "Event"), self._ignore)(event)

    def _ignore(self, event: Event) -> None:
        """Nothing to learn from this one."""

    def _log_start(self, event: Event) -> None:
        self.application = replace(self.application, spark_version=text(event, "Spark Version"))

    def _application_start(self, event: Event) -> None:
        app_id = text(event, "App ID")
        if self.application.app_id and app_id != self.application.app_id:
            example = f"{self._at}: {app_id} after {self.application.app_id}"
            self._batch.oddities.add("several_applications", example)
        started_ms = time_ms(event, "Timestamp", self._batch.oddities, self._at)
        started_ns = None if started_ms is None else started_ms * NS_PER_MS
        self.application = replace(
            self.application,
            name=text(event, "App Name"),
            app_id=app_id,
            started_ns=started_ns,
            ended_ns=None,
        )
        self._batch.worker(self._driver_worker())

    def _application_end(self, event: Event) -> None:
        self._driver.flush(self._batch)
        ended_ms = time_ms(event, "Timestamp", self._batch.oddities, self._at)
        if ended_ms is None:
            return
        self.application = replace(self.application, ended_ns=ended_ms * NS_PER_MS)
        self._batch.worker(self._driver_worker())
        for executor in self._executors.values():
            if executor.removed_ns is None:
                self._end_life(executor, ended_ms * NS_PER_MS)

    def _driver_worker(self) -> Worker:
        app = self.application
        # Ends of tasks killed at the end come after the application's.
        until_ns = max(app.ended_ns, self._driver.newest_ms * NS_PER_MS) if app.ended_ns is not None else None
        return Worker("driver", "", app.started_ns, until_ns)

    def _executor_added(self, event: Event) -> None:
        info, name = mapping(event, "Executor Info"), text(event, "Executor ID")
        cores = identifier(info, "Total Cores", self._batch.oddities, self._at)
        added_ms = time_ms(event, "Timestamp", self._batch.oddities, self._at)
        if not name or cores is None or not 0 < cores <= MAX_CORES:
            self._batch.oddities.add("unreadable_executor", f"{self._at}: executor {name!r}, {cores} cores")
            return
        executor = self._executors.setdefault(name, Executor(_label(name)))
        executor.announce(cores, text(info, "Host"), None if added_ms is None else added_ms * NS_PER_MS)
        for core in range(executor.cores):
            self._batch.worker(executor.worker(core))

    def _executor_removed(self, event: Event) -> None:
        removed_ms = time_ms(event, "Timestamp", self._batch.oddities, self._at)
        executor = self._executors.get(text(event, "Executor ID"))
        if executor is None or removed_ms is None:
            return
        example = f"{self._at}: {executor.label}: {text(event, 'Removed Reason')[:100]}"
        self._batch.oddities.add("executor_removed", example)
        self._end_life(executor, removed_ms * NS_PER_MS)
        self._drop_if_gone(text(event, "Executor ID"))

    def _end_life(self, executor: Executor, removed_ns: int) -> None:
        executor.removed_ns = max([removed_ns, *executor.busy_until_ns])
        for core in range(executor.cores):
            self._batch.worker(executor.worker(core))

    def _drop_if_gone(self, name: str) -> None:
        """Forget an executor that is removed and whose tasks have all ended; there may be thousands."""
        if self._executors[name].removed_ns is not None and self._executors[name].idle:
            del self._executors[name]

    def _progress(self, event: Event) -> None:
        add_progress(event, self._batch, self._at)

    def _task_start(self, event: Event) -> None:
        info = mapping(event, "Task Info")
        task_id = identifier(info, "Task ID", self._batch.oddities, self._at)
        launch_ms = time_ms(info, "Launch Time", self._batch.oddities, self._at)
        if task_id is None or launch_ms is None:
            return
        name = text(info, "Executor ID")
        executor = self._executor(name)
        if executor.knows(task_id) or task_id in self._ended:
            self._batch.oddities.add("duplicate_task_start", f"{self._at}: task {task_id}")
            return
        executor.launch(task_id, launch_ms)
        self._stages.task_started(task_id, whole(event, "Stage ID"))
        self._driver.add(Stamp.LAUNCHED, launch_ms, task_id, self._stages.of_task(task_id), self._batch)

    def _executor(self, name: str) -> Executor:
        if name not in self._executors:
            self._batch.oddities.add("executor_not_announced", f"{self._at}: executor {name!r}")
            self._executors[name] = Executor(_label(name))
        return self._executors[name]

    def _task_getting_result(self, event: Event) -> None:
        """The status has come back, the result itself is too big for it and is fetched now."""
        info = mapping(event, "Task Info")
        task_id = identifier(info, "Task ID", self._batch.oddities, self._at)
        at_ms = time_ms(info, "Getting Result Time", self._batch.oddities, self._at)
        if task_id is None or at_ms is None or task_id in self._fetching or task_id in self._ended:
            return
        self._fetching = _remember(self._fetching, task_id)
        self._driver.add(Stamp.RETURNED, at_ms, task_id, self._stages.of_task(task_id), self._batch)

    def _task_end(self, event: Event) -> None:
        oddities, at = self._batch.oddities, self._at
        if text(mapping(event, "Task End Reason"), "Reason") == "Resubmitted":
            # The output of an attempt that ended long ago was lost; its end is already known.
            oddities.add("task_resubmitted", at)
            return
        operator = self._stages.of(whole(event, "Stage ID"))
        task = read_task(event, operator, oddities, at)
        if task is None:
            self._give_up(mapping(event, "Task Info"))
            return
        if task.task_id in self._ended:
            oddities.add("duplicate_task_end", f"{at}: task {task.task_id}")
            return
        report_outcome(event, oddities, at)
        executor = self._executor(task.executor)
        if not executor.knows(task.task_id):
            oddities.add("task_start_missing", f"{at}: task {task.task_id}")
            executor.launch(task.task_id, task.launch_ms)
            self._driver.add(Stamp.LAUNCHED, task.launch_ms, task.task_id, operator, self._batch)
        self._stamp_return(task)
        self._stages.task_ended(task.task_id)
        self._ended = _remember(self._ended, task.task_id)
        for slot in executor.end(task, oddities):
            self._emit(executor, slot)
        self._drop_if_gone(task.executor)

    def _stamp_return(self, task: Task) -> None:
        if task.task_id in self._fetching:
            self._fetching.remove(task.task_id)
        elif not task.lost:
            self._driver.add(Stamp.RETURNED, task.return_ms, task.task_id, task.operator, self._batch)
        if task.fetched_ms is not None:
            self._driver.add(Stamp.FETCHED, task.fetched_ms, task.task_id, task.operator, self._batch)
        if self.application.finished:
            self._driver.flush(self._batch)

    def _emit(self, executor: Executor, slot: Slot) -> None:
        """Put one task on its core's timeline, with the messages that started it and told its end."""
        task, batch = slot.task, self._batch
        busy_until_ns = executor.busy_until_ns[slot.core]
        latest_ns = None if slot.latest_ms is None else slot.latest_ms * NS_PER_MS
        start_ns = place(task, self._delay_share, busy_until_ns, latest_ns)
        end_ns = start_ns + task.work_ns
        # Stamps are whole milliseconds. A launch and a return in one instant would be a circle of messages
        # there, and a window with a circle has no result: so each takes a nanosecond, of the task's work.
        launch_ns, return_ns = task.launch_ms * NS_PER_MS, task.return_ms * NS_PER_MS
        if return_ns == launch_ns:
            batch.oddities.add(
                "instant_task", f"task {task.task_id} came back in the millisecond of its launch"
            )
            return
        start_ns = max(start_ns, launch_ns + 1)
        end_ns = max(start_ns, min(end_ns, return_ns - 1)) if not task.lost else max(start_ns, end_ns)
        if task.lost and executor.removed_ns is not None:
            end_ns = max(min(end_ns, executor.removed_ns), start_ns)
        if start_ns < busy_until_ns:
            oddity = "overlapping_tasks" if busy_until_ns < end_ns else "more_tasks_than_cores"
            batch.oddities.add(oddity, f"task {task.task_id} on {executor.label}/core-{slot.core}")
            if end_ns <= busy_until_ns:
                return
        executor.busy_until_ns[slot.core] = end_ns
        if executor.removed_ns is not None:
            executor.removed_ns = max(executor.removed_ns, end_ns if task.lost else return_ns)
        driver, core = batch.worker(self._driver_worker()), batch.worker(executor.worker(slot.core))
        operator = batch.operator(task.operator)
        began_ns = max(start_ns, busy_until_ns)
        batch.message(ActivityType.CONTROL_MESSAGE, driver, core, operator, launch_ns, began_ns)
        for kind, duration_ns in task.parts:
            from_ns, start_ns = max(start_ns, began_ns), min(start_ns + duration_ns, end_ns)
            if from_ns < start_ns:
                batch.activity(kind, core, operator, from_ns, start_ns)
        if not task.lost:
            batch.message(ActivityType.CONTROL_MESSAGE, core, driver, operator, end_ns, return_ns)

    def _give_up(self, info: Event) -> None:
        """A task's end that cannot be placed in time still frees its core."""
        name, task_id = text(info, "Executor ID"), whole(info, "Task ID")
        if name not in self._executors or task_id is None:
            return
        for slot in self._executors[name].abandon(task_id):
            self._emit(self._executors[name], slot)
        self._drop_if_gone(name)


def _remember(numbers: list[int], new: int) -> list[int]:
    """The newest ones; enough to recognise a repetition, which comes soon if at all."""
    return [*numbers[1 - REMEMBERED_TASKS :], new]


def _label(executor: str) -> str:
    """Local mode calls its executor ``driver``; its cores are not the driver's timeline."""
    return "local" if executor == "driver" else f"exec-{executor[:100]}"
