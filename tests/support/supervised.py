"""A supervisor with children of the test's choice: ``python -m tests.support.supervised '{"name": [command…]}'``.

PostgreSQL and Valkey are the real ones; ``WEIR_HOME`` and ``WEIR_PORT`` are obeyed as in ``make run``.
"""

from __future__ import annotations

import json
import os
import sys

from webapp.ops.children import ChildSpec
from webapp.ops.console import Console
from webapp.ops.plan import read_settings
from webapp.ops.supervisor import Supervisor, Work

if __name__ == "__main__":
    commands: dict[str, list[str]] = json.loads(sys.argv[1])
    specs = [ChildSpec(name, tuple(command)) for name, command in commands.items()]
    work = Work(preparations=[], children=specs, wait_until_ready=False, java=False)
    settings = read_settings(os.environ)
    sys.exit(Supervisor(settings, work, Console(), stop_with_parent="--stop-with-parent" in sys.argv).run())
