"""Goes through all the motions and sends nothing: what would have been sent is on record."""

from __future__ import annotations

from typing import Any

from analytics.model.reconfigurations import Observed
from workers.engines.base import Change, Request


class DryRunEngine:
    """The engine of every job until an admin names another."""

    def observe(self, engine_job_id: str) -> None:
        """See ``base.Engine``."""

    def progress(self, engine_job_id: str) -> None:
        """See ``base.Engine``."""

    def preview(self, change: Change, seen: Observed | None) -> Request:
        """See ``base.Engine``."""
        return {"method": "", "url": "", "body": {"parallelism": dict(change.parallelism), **change.told}}

    def revert(self, change: Change, before: Observed | None, seen: Observed | None) -> Request:
        """See ``base.Engine``."""
        return self.preview(change, seen)

    def apply(self, request: Request) -> None:
        """See ``base.Engine``."""

    def arrived(self, request: Request, seen: Observed | None) -> bool:
        """See ``base.Engine``."""
        return True

    def record(self, engine_job_id: str, since_ms: int) -> Any:
        """See ``base.Engine``."""
        return None
