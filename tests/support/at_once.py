"""Several workers or people at the same moment, each on a connection of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from django.db import connection

from webapp.reconfigurations.errors import RefusedError


def at_once(acts: list[Callable[[], object]]) -> Counter[str]:
    """Run all at the same moment; how often each came out how."""
    gate, found, lock = threading.Barrier(len(acts)), Counter[str](), threading.Lock()

    def run(act: Callable[[], object]) -> None:
        gate.wait()
        try:
            act()
            outcome = "done"
        except RefusedError as error:
            outcome = error.code
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            outcome = repr(error)
        finally:
            connection.close()
        with lock:
            found[outcome] += 1

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
