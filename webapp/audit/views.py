"""The audit record as a file, for people who are signed in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_GET

from webapp.audit.selectors import Search, export_csv


@require_GET
@login_required
def audit_csv(request: HttpRequest) -> StreamingHttpResponse:
    """What the reader may see of the record and looks for (the fields of ``wanted``), a line an event."""
    wanted = wanted_of({key: str(value) for key, value in request.GET.items()})
    answer = StreamingHttpResponse(export_csv(request.user, wanted), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="weir-audit.csv"'
    return answer


def wanted_of(fields: dict[str, str]) -> Search:
    """A search from the fields of an address; what makes no sense restricts to nothing that exists."""
    job = fields.get("job", "")
    return Search(
        text=fields.get("search", "")[:200].replace("\0", ""),
        actor_name=fields.get("who", "")[:200].replace("\0", ""),
        action=fields.get("action", "")[:60].replace("\0", ""),
        outcome=fields.get("outcome", "")[:10].replace("\0", ""),
        job_id=(int(job) if len(job) <= 18 else 0) if job.isascii() and job.isdigit() else None,
        loud=fields.get("loud") == "1",
    )
