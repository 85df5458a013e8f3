"""Ending a subscription from a mail: a page that asks on GET, and the one-click POST of mail clients (RFC 8058)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from webapp.notifications.services import subscription_of, unsubscribe


@csrf_exempt  # mail clients have no cookie; the key in the address is the proof
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe_page(request: HttpRequest, key: str) -> HttpResponse:
    """Only a POST ends anything: link checkers open every address of a mail."""
    found = subscription_of(key)
    done = request.method == "POST" and found is not None
    if found is not None and request.method == "POST":
        unsubscribe(found)
    shown = {"found": found, "done": done or (found is not None and not found.active)}
    return render(request, "notifications/unsubscribe.html", shown, status=200 if found else 404)
