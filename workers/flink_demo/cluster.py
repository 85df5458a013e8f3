"""A Flink cluster on loopback: a JobManager with the adaptive scheduler and a TaskManager, each our own process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx

from webapp.ops.embedded import StartError, Watchdog
from webapp.ops.embedded.errors import explained, last_words
from webapp.ops.embedded.processes import end_session
from webapp.ops.embedded.state import StateLock, fresh_log, remembered_port

SLOTS = 10
READY_WITHIN_S = 120.0
GRACE_S = 5.0
POLL_S = 0.2

_SETTINGS = {
    "jobmanager.rpc.address": "127.0.0.1",
    "jobmanager.bind-host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "taskmanager.host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "1s",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1s",
    "web.adaptive-scheduler.rescale-history.size": "20",
    # A rescale waits for a checkpoint, and under back-pressure aligned ones take a minute.
    "execution.checkpointing.unaligned.enabled": "true",
    "taskmanager.memory.segment-size": "4kb",
    "taskmanager.numberOfTaskSlots": str(SLOTS),
    # Flink's scripts would compute these.
    "taskmanager.cpu.cores": "2.0",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.task.heap.size": "128m",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
    "taskmanager.memory.managed.size": "16m",
    "taskmanager.memory.jvm-metaspace.size": "192m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.jvm-overhead.max": "64m",
}
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxMetaspaceSize=192m",
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
      for package in ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent",
                      "util.concurrent.atomic", "util.concurrent.locks")),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)  # fmt: skip
_LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %c{1} - %m%n
"""
_ROLES = (
    ("jobmanager", "-Xmx320m", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"),
    ("taskmanager", "-Xmx256m", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"),
)


class DemoCluster:
    """One cluster with its ports, logs and files under ``home``. ``start``, then ``stop``."""

    def __init__(self, home: Path, jars: Path, jdk: Path, watchdog: Watchdog) -> None:
        self.home, self.jars, self.jdk = home, jars, jdk
        self.port = 0
        self._watchdog = watchdog
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = StateLock(home / "flink.lock", home)

    @property
    def address(self) -> str:
        """Of its REST API and its pages."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, check_stop: Callable[[], None]) -> None:
        """Start both processes and wait until the slots are there.

        Raises
        ------
        StartError
            If one of them dies, or they are not ready in time.
        """
        self._lock.acquire()
        with explained("starting Flink", self.home):
            self._configure()
            for role in _ROLES:
                self._launch(*role)
        deadline = time.monotonic() + READY_WITHIN_S
        while self._free_slots() < SLOTS:
            check_stop()
            self.check()
            if time.monotonic() > deadline:
                raise StartError(
                    f"Flink is not ready after {READY_WITHIN_S:.0f} s: read {self.home / 'logs'}"
                )
            time.sleep(POLL_S)

    def check(self) -> None:
        """Raise ``StartError`` if one of the processes has died."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self.home / "logs" / f"{name}.log"
                raise StartError(
                    f"Flink's {name} died (status {process.returncode}): {last_words(log)} ({log})"
                )

    def stop(self) -> None:
        """Stop both, by force after some seconds."""
        for process in reversed(self._processes.values()):
            end_session(process.pid, signal.SIGTERM, GRACE_S)
            process.wait()
            self._watchdog.forget(process.pid)
        self._processes.clear()
        self._lock.release()

    def _configure(self) -> None:
        conf, scratch = self.home / "conf", self.home / "tmp"
        conf.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)  # uploaded jars and checkpoints of the run before
        scratch.mkdir()
        self.port = remembered_port(self.home / "rest.port")
        settings = _SETTINGS | {
            "rest.port": str(self.port),
            "jobmanager.rpc.port": str(remembered_port(self.home / "rpc.port")),
            "io.tmp.dirs": str(scratch),
            "execution.checkpointing.dir": f"file://{scratch / 'checkpoints'}",
        }
        (conf / "config.yaml").write_text("".join(f'{key}: "{value}"\n' for key, value in settings.items()))
        (conf / "log4j.properties").write_text(_LOGGING)

    def _launch(self, name: str, heap: str, main_class: str) -> None:
        conf = self.home / "conf"
        command = [
            str(self.jdk / "bin" / "java"), heap, *_JAVA_OPTIONS,
            f"-Dlog4j.configurationFile={conf / 'log4j.properties'}", f"-Djava.io.tmpdir={self.home / 'tmp'}",
            "-cp", f"{self.jars}/*", main_class, "--configDir", str(conf),
        ]  # fmt: skip
        log = fresh_log(self.home / "logs" / f"{name}.log")
        try:
            process = subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._processes[name] = process
        self._watchdog.guard(process.pid, signal.SIGTERM)

    def _free_slots(self) -> int:
        with suppress(httpx.HTTPError, ValueError):
            return int(httpx.get(f"{self.address}/overview", timeout=5).json().get("slots-available", 0))
        return 0
