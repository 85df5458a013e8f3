"""The Dash application. ``frontend.view`` serves it; it never listens by itself."""

from pathlib import Path

import flask
from dash import Dash
from django.conf import settings
from django.core.exceptions import PermissionDenied

from frontend import palette, shell
from frontend.components import alarm
from frontend.components.proposals import deciding
from frontend.pages import (
    audit,
    bursts,
    calibration,
    changes,
    connections,
    inbox,
    limits,
    notifications,
    overview,
    policy_lab,
    proposal,
    questions,
    routing,
    rules,
    scaling,
    timeline,
    upload,
)

INDEX = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}<style>COLOURS</style>{%css%}</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>""".replace("COLOURS", palette.stylesheet())

FOR_GOOD_S = 365 * 86400
"""Browsers keep scripts and styles: their addresses name the time they were changed."""


def make_app() -> Dash:
    """The app with all pages, ready to serve."""
    made = Dash(
        "weir",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        suppress_callback_exceptions=True,
        title="Weir",
        update_title="",
        index_string=INDEX,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        use_async=False,  # asgiref comes with Django; Dash would turn async on and the ORM refuses that
        csrf_token_name=settings.CSRF_COOKIE_NAME,
        csrf_header_name="X-CSRFToken",
    )
    made.server.secret_key = settings.SECRET_KEY
    made.server.config["SEND_FILE_MAX_AGE_DEFAULT"] = FOR_GOOD_S
    made.server.register_error_handler(PermissionDenied, _forbidden)
    made.layout = shell.layout
    for part in (
        shell,
        deciding,
        alarm,
        routing,
        overview,
        limits,
        timeline,
        questions,
        scaling,
        policy_lab,
        bursts,
        upload,
        connections,
        notifications,
        proposal,
        inbox,
        changes,
        rules,
        calibration,
        audit,
    ):
        part.register(made)
    made._setup_server()  # without it, each worker's first callback would meet an empty callback map
    return made


def _forbidden(error: PermissionDenied) -> flask.Response:
    return flask.Response(str(error) or "forbidden", status=403, mimetype="text/plain")


app = make_app()
