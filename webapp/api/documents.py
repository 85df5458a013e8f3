"""The API's description, as it is checked in."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse

OPENAPI = Path(__file__).resolve().parents[1] / "docs" / "openapi.yaml"


def openapi(request: HttpRequest) -> HttpResponse:
    """The file itself: a test keeps it equal to what the code does."""
    return HttpResponse(OPENAPI.read_bytes(), content_type="application/yaml")
