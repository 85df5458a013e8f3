"""The guides of ``webapp/docs``, readable in the app."""

import re
from pathlib import Path

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe
from markdown_it import MarkdownIt

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {"guide": "User guide", "approvals": "Approvals", "operations": "Operations"}


@login_required
def help_page(request: HttpRequest, name: str = "guide") -> HttpResponse:
    """One guide, or one decision (``adr/0001-embedded-servers``)."""
    path = DOCS / f"{name}.md"
    if not re.fullmatch(r"(adr/)?[a-z0-9-]+", name) or not path.is_file():
        raise Http404(f"there is no page {name}")
    # Raw HTML in the text stays text: these are our own files, and it costs nothing to be sure.
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(path.read_text())
    decisions = sorted(item.stem for item in (DOCS / "adr").glob("*.md"))
    shown = {"name": name, "pages": PAGES, "decisions": decisions, "body": mark_safe(body)}  # noqa: S308
    return render(request, "ops/help.html", shown)
