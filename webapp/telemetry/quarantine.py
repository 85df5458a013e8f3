"""What was sent and could not be stored: its first bytes and the reason, for whoever sent it."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import Token, User
from webapp.api import rates
from webapp.telemetry.models import Refused

FIRST_BYTES = 2048
EVERY_S = 10
"""Of refusals of one token for one reason, one in so many seconds is kept: they are alike, and a flood is cheap."""

MOST = 1_000
"""Kept for one person; the oldest go."""


def refuse(token: Token, kind: str, code: str, reason: str, body: bytes, job_name: str = "") -> None:
    """Keep that a delivery, or a part of one, was refused. Call it outside the transaction that failed."""
    if not rates.first_in(f"refused:{token.pk}:{kind}:{code}", EVERY_S):
        return
    Refused.objects.create(
        owner=token.owner, token=token, token_name=str(token), job_name=_printable(job_name)[:200], kind=kind,
        code=code, reason=_printable(reason)[:1000], first_bytes=body[:FIRST_BYTES], size_bytes=len(body),
    )  # fmt: skip
    oldest = Refused.objects.filter(owner=token.owner).order_by("-id").values_list("id", flat=True)
    if (last := oldest[MOST - 1 : MOST].first()) is not None:
        Refused.objects.filter(owner=token.owner, id__lt=last).delete()


def refused_to(actor: User) -> QuerySet[Refused]:
    """What was refused to this person's tokens; to everyone's if they are an administrator of all."""
    rows = Refused.objects.all()
    return rows if actor.is_superuser else rows.filter(owner=actor)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "?")
