"""A stubborn child: it and its own child, in another process group, ignore SIGTERM. Writes both pids to a file."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    grandchild = os.fork()
    if grandchild == 0:
        os.setpgid(0, 0)
        time.sleep(600)
        os._exit(0)
    path = Path(sys.argv[1])
    path.with_suffix(".new").write_text(f"{os.getpid()} {grandchild}")
    path.with_suffix(".new").replace(path)
    time.sleep(600)
