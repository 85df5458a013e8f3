"""One job."""
from typing import Any
from dash import Dash, html
from webapp.jobs.models import Job
def layout(job: Job, tab: str) -> Any:
    return html.Div(html.H1(job.name))
def register(app: Dash) -> None:
    """todo"""
