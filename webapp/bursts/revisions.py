"""Which state of a cluster somebody saw before they change it: a tag for each part that is changed by itself.

Rates are pushed by programs, models are derived every hour and settings are changed by people. One tag for all of
them would refuse changes that do not touch one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from django.db import transaction

from webapp.api.etags import etag_of
from webapp.bursts.models import Cluster, Origin
from webapp.reconfigurations.errors import StaleViewError


class Part(StrEnum):
    """What is changed by itself: the model, the rates given by hand, or the group and the two bounds."""

    MODEL = "model"
    RATES = "rates"
    SETTINGS = "settings"


def tag(cluster: Cluster, part: Part) -> str:
    """The entity tag of a part as it is in ``cluster``, which is as new as the row it was read from."""
    return etag_of({"id": cluster.pk, "part": part.value, **_content(cluster, part)})


def _content(cluster: Cluster, part: Part) -> dict[str, Any]:
    match part:
        case Part.MODEL:
            # A derived one is made anew every hour by Weir, which replaces nobody's words.
            # And a move makes the same one a new version: what counts is what the model says.
            uploaded = cluster.versions.filter(superseded_at=None, origin=Origin.UPLOADED)
            return {"version": uploaded.values_list("version", flat=True).first(), "setup": cluster.setup}
        case Part.RATES:
            return {"rates": cluster.rates}
        case Part.SETTINGS:
            return {"group": cluster.group_id, "bounds": [cluster.burst_ratio, cluster.alert_ratio]}


def tags(cluster: Cluster) -> dict[str, str]:
    """Those of all parts, by name."""
    return {part.value: tag(cluster, part) for part in Part}


@contextmanager
def unchanged(cluster: Cluster, part: Part, seen: str) -> Iterator[Cluster]:
    """The cluster as it is now, locked until the end of the block, in which it is changed.

    Raises
    ------
    StaleViewError
        If the part is not as it was when somebody saw it with the tag ``seen``.
    """
    with transaction.atomic():
        row = locked(cluster.pk)
        if tag(row, part) != seen:
            raise StaleViewError(f"somebody else changed the {part.value} of {row.name} meanwhile")
        yield row


def locked(cluster_id: int) -> Cluster:
    """The cluster, locked until the end of the transaction."""
    rows = Cluster.objects.select_for_update(of=("self",)).select_related("group")
    return rows.get(pk=cluster_id)
