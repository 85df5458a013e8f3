"""The Django view that hosts Dash, so that sessions, CSRF, permissions and headers are Django's for pages and
callbacks alike. It hands the request to Dash's WSGI application with the person in the environment.
"""

from __future__ import annotations

import gzip
import importlib
import io
import json
from functools import cache, lru_cache
from typing import Any, cast

from csp.constants import SELF
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.middleware.csrf import get_token
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_protect
from werkzeug.test import run_wsgi_app

from frontend.app import app
from frontend.request import ACTOR, CSRF_TOKEN

importlib.import_module("pandas")
"""Else PyArrow imports it in the first callback, and Plotly, in another's thread, trips over the half of it."""

PARTS = ("_dash-", "assets/", "_favicon", "_reload-hash")
"""Beginnings of addresses that scripts ask for: a redirect to a sign-in page would only confuse them."""

CALLBACK = "_dash-update-component"
COMPRESSIBLE = ("text/", "application/javascript", "application/json")
COMPRESS_FROM_BYTES = 2_000


@csrf_protect
def pages(request: HttpRequest, path: str) -> HttpResponse:
    """A page, a callback or a script of the app, for people who are signed in."""
    if not request.user.is_authenticated:
        if path.startswith(PARTS):
            return HttpResponse("sign in first", status=401, content_type="text/plain")
        return redirect_to_login(request.get_full_path())
    if path == CALLBACK and not _is_callback(request.body):
        return HttpResponseBadRequest("not a callback request", content_type="text/plain")
    environ = dict(cast(WSGIRequest, request).environ)
    environ["wsgi.input"] = io.BytesIO(request.body)
    environ[ACTOR] = request.user
    environ[CSRF_TOKEN] = get_token(request)
    return _with_policy(_compressed(request, _run(environ)))


def _run(environ: dict[str, Any]) -> HttpResponse:
    body, status, headers = run_wsgi_app(app.server.wsgi_app, environ, buffered=True)
    response = HttpResponse(b"".join(body), status=int(status.split(" ", 1)[0]))
    for name, value in headers.items():
        if name.lower() not in ("content-length", "connection"):
            response[name] = value
    return response


def _with_policy(response: HttpResponse) -> HttpResponse:
    """Allow Dash's own inline scripts, by hash."""
    if response["Content-Type"].startswith("text/html"):
        response._csp_update = {"script-src": [SELF, *_script_hashes()]}  # type: ignore[attr-defined]
    return response


@cache
def _script_hashes() -> tuple[str, ...]:
    return tuple(app.csp_hashes())


def _compressed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Scripts and answers to callbacks, compressed: Plotly alone is 5 MB.

    Pages themselves carry the CSRF token, and stay as they are (BREACH).
    """
    kind = response.get("Content-Type", "")
    page = kind.startswith("text/html") or request.path.endswith("_dash-layout")
    if page or not kind.startswith(COMPRESSIBLE) or len(response.content) < COMPRESS_FROM_BYTES:
        return response
    patch_vary_headers(response, ["Accept-Encoding"])
    if "gzip" in request.headers.get("Accept-Encoding", "") and not response.has_header("Content-Encoding"):
        static = request.method == "GET" and response.status_code == 200
        response.content = _gzip_kept(response.content) if static else gzip.compress(response.content, 1)
        response["Content-Encoding"] = "gzip"
    return response


@lru_cache(maxsize=64)
def _gzip_kept(content: bytes) -> bytes:
    return gzip.compress(content, 6)


def _is_callback(body: bytes) -> bool:
    """Whether this is a request for a callback that exists, in the shape Dash expects."""
    try:
        asked = json.loads(body)
    except ValueError:
        return False
    if not isinstance(asked, dict) or not isinstance(asked.get("output"), str):
        return False
    if asked["output"] not in app.callback_map:
        return False
    known = app.callback_map[asked["output"]]
    given = (asked.get("inputs"), asked.get("state", []))
    wanted = (known["inputs"], known["state"])
    if not all(
        isinstance(g, list) and len(g) == len(w) and all(map(_is_dependency, g))
        for g, w in zip(given, wanted, strict=True)
    ):
        return False
    outputs = asked.get("outputs")
    changed = asked.get("changedPropIds", [])
    named = outputs if isinstance(outputs, list) else [outputs]
    return (
        all(map(_is_dependency, named))
        and isinstance(changed, list)
        and all(isinstance(item, str) and "." in item for item in changed)
    )


def _is_dependency(item: object) -> bool:
    if isinstance(item, list):  # a pattern-matching id stands for several components
        return all(map(_is_dependency, item))
    return isinstance(item, dict) and "id" in item and isinstance(item.get("property"), str)
