"""What ``make run`` runs: its settings, the commands that prepare, and the children that stay."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webapp.ops.children import ChildSpec
from webapp.ops.embedded.errors import StartError
from webapp.ops.embedded.watchdog import CHECKOUT

PYTHON = sys.executable
DEFAULT_PORT = 8000
DEFAULT_OTLP_PORT = 4317
"""Where OpenTelemetry's exporters send to unless told otherwise."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of ``make run``, read from the environment. An empty URL means: bring an embedded server."""

    home: Path
    port: int
    demo: bool
    database_url: str
    redis_url: str
    spark_remote: str
    otlp_port: int = DEFAULT_OTLP_PORT

    @property
    def address(self) -> str:
        """Where the web app answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_dir(self) -> Path:
        """Where every child's output goes."""
        return self.home / "logs"

    @property
    def demo_log_dir(self) -> Path:
        """Where the demo stream writes its event log."""
        return self.home / "demo" / "event-logs"


def read_settings(environment: Mapping[str, str]) -> RunSettings:
    """The settings, or a ``StartError`` that names the wrong variable."""
    return RunSettings(
        home=Path(os.path.realpath(environment.get("WEIR_HOME") or CHECKOUT / ".weir")),
        port=_port(environment, "WEIR_PORT", DEFAULT_PORT),
        demo=environment.get("WEIR_DEMO", "1").lower() not in ("0", "false", "no", "off"),
        database_url=environment.get("DATABASE_URL", ""),
        redis_url=environment.get("REDIS_URL", ""),
        spark_remote=environment.get("SPARK_REMOTE", ""),
        otlp_port=_port(environment, "WEIR_OTLP_PORT", DEFAULT_OTLP_PORT),
    )


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    port = environment.get(name) or str(default)
    if not port.isdigit() or not 1 <= int(port) <= 65535:
        raise StartError(f"{name} is {port!r}, expected a port number such as {default}.")
    return int(port)


def needs_java(settings: RunSettings) -> bool:
    """Whether anything we start runs Spark on this machine."""
    return settings.demo or not settings.spark_remote


def preparations(settings: RunSettings) -> list[tuple[str, ChildSpec]]:
    """Commands to run one after the other before the children start, each with what it does."""
    steps = [
        ("bringing the database up to date", _manage("migrate", "--no-input", "--verbosity", "1")),
        ("creating the first administrator", _manage("bootstrap")),
    ]
    compile_kernels = ChildSpec("setup", (PYTHON, "-m", "analytics.critical_path.kernels"))
    steps.append(("compiling the analyses (a minute the first time)", compile_kernels))
    if settings.demo:
        follow = _manage("add_source", "spark-event-log-directory", str(settings.demo_log_dir))
        steps.append(("following the demo stream's event log", follow))
        steps.append(("planning a first digest of the demo", _manage("first_digest")))
    return steps


def children(settings: RunSettings) -> list[ChildSpec]:
    """The children, in the order they are started."""
    specs = [
        ChildSpec("web", web(settings)),
        ChildSpec("otlp", _manage("otlp_grpc", "--port", str(settings.otlp_port)).command),
        ChildSpec(
            "worker",
            # Threads: one process keeps the open logs and the compiled kernel for all its tasks.
            _celery("worker", "-n", "worker@%h", "-Q", "default,interactive", "--pool", "threads", "-c", "4"),
        ),
        ChildSpec(
            "spark",
            _celery("worker", "-n", "spark@%h", "-Q", "spark", "--pool", "solo", "--concurrency", "1"),
        ),
        ChildSpec(
            "beat", _celery("beat", "--schedule", str(settings.home / "celerybeat-schedule"), "--pidfile=")
        ),
    ]
    if settings.demo:
        module = "analytics.spark.demo_stream"
        specs.append(ChildSpec("demo", (PYTHON, "-m", module, "--event-log-dir", str(settings.demo_log_dir))))
    return specs


def _manage(*arguments: str) -> ChildSpec:
    return ChildSpec("setup", (PYTHON, str(CHECKOUT / "manage.py"), *arguments))


def web(settings: RunSettings) -> tuple[str, ...]:
    """The command of the web server."""
    return (
        PYTHON, "-m", "gunicorn", "webapp.wsgi", "--bind", f"127.0.0.1:{settings.port}",
        "--workers", "2", "--threads", "8", "--timeout", "120", "--graceful-timeout", "5",
        "--no-control-socket", "--access-logfile", "-",
    )  # fmt: skip


def _celery(*arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "celery", "-A", "workers.celery", *arguments, "--loglevel", "INFO")
