"""A real PostgreSQL and a real Valkey, started from wheels. Free of Django, so that it can run before Django.

``EmbeddedPostgres`` and ``EmbeddedValkey`` start a server that keeps its data under a state directory, and
return the URL to reach it. They never run as root, listen on loopback only and always ask for a password.
``Watchdog`` makes sure that nothing is left behind if the process that started them is killed.
"""

from webapp.ops.embedded.errors import StartError
from webapp.ops.embedded.postgres import EmbeddedPostgres
from webapp.ops.embedded.valkey import EmbeddedValkey
from webapp.ops.embedded.watchdog import Watchdog

__all__ = ["EmbeddedPostgres", "EmbeddedValkey", "StartError", "Watchdog"]
