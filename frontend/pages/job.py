"""One job: its head, the sentence, and the tabs."""

from __future__ import annotations

import json
from typing import Any

import dash_mantine_components as dmc
from dash import html, set_props
from django.utils import timezone

from frontend import freshness, words
from frontend.asked import about_range
from frontend.components import sentence
from frontend.pages import changes, limits, questions, rules, scaling, timeline
from frontend.pages.questions import asking
from frontend.state import View
from webapp.analysis import selectors
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import known
from webapp.analysis.selectors import Limits
from webapp.jobs.models import Job

TABS = (
    ("limits", "Limits"),
    ("timeline", "Timeline"),
    *((tab.key, tab.label) for tab in questions.TABS),
    (scaling.KEY, scaling.LABEL),
    (changes.KEY, changes.LABEL),
    (rules.KEY, rules.LABEL),
)
LONG_RUN_S = 2.0
SIGNS = {"live": "●", "finished": "✓", "quiet": "▲", "error": "✕"}


def layout(job: Job, tab: str) -> Any:
    """The page before its values come."""
    asked = {question.key: question for question in questions.TABS}
    if tab in asked:
        body = asking.layout(asked[tab])
    elif tab == scaling.KEY:
        body = scaling.layout(job)
    elif tab == changes.KEY:
        body = changes.layout(job)
    elif tab == rules.KEY:
        body = rules.layout(job)
    else:
        body = timeline.layout() if tab == "timeline" else limits.layout()
    return html.Div(
        className="job",
        children=[
            html.Div(
                className="page-head",
                children=[
                    html.H1(job.name, id="job-name", title=job.name),
                    html.Span(job.get_engine_display(), className="muted"),
                    html.Span("", id="job-state", className="state-word"),
                ],
            ),
            html.P("…", id="sentence", className="sentence"),
            html.Div(
                className="completeness-row",
                children=[
                    html.Div("…", id="completeness", className="completeness"),
                    html.Div(id="run-progress", className="run-progress"),
                ],
            ),
            html.Nav(
                [_tab(key, word, key == tab) for key, word in TABS],
                className="view-tabs",
                **{"aria-label": "Views of this job"},
            ),
            body,
        ],
    )


def _tab(key: str, word: str, current: bool) -> Any:
    changes = {"tab": None if key == "limits" else key, "segment": None, "worker": None, "at": None}
    mark = {"aria-current": "page"} if current else {}
    return html.Button(
        word, id=f"tab-{key}", className="view-tab", **{"data-set": json.dumps(changes)}, **mark
    )


def draw_head(found: Limits, view: View) -> None:
    """From a callback: fill the head of the page and the stamp."""
    job = found.job
    error = selectors.source_error(job)
    state = freshness.of(job, error)
    set_props(
        "job-state",
        {
            "children": f"{SIGNS[state.code]} {state.words}",
            "title": error,
            "className": f"state-word {state.code}",
        },
    )
    said = sentence.sentence(found, view, selectors.newest_window_ns(job))
    ranking = known(job, about_range(QuestionKind.RANKING, view, freshness.now_ns()))
    set_props("sentence", {"children": [*said, *sentence.more(found, ranking)]})
    since = selectors.waiting_since(job)
    waiting_s = (timezone.now() - since).total_seconds() if since else 0.0
    complete = sentence.completeness(found, view, selectors.ranges_waiting(job), waiting_s)
    set_props("completeness", {"children": complete})
    set_props("run-progress", {"children": _progress()})
    silent = state.code in ("quiet", "error") and not view.is_absolute and job.last_received_at is not None
    freshness.stamp(f"{job.name}: {state.words}" if silent else "")


def _progress() -> Any:
    """A bar while a long run is under way (a short one would only flicker)."""
    now = selectors.progress()
    if now is None or freshness.now_ns() / 1e9 - now.started_at.timestamp() < LONG_RUN_S:
        return None
    done = 100 * now.windows_done / max(1, now.windows_total)
    text = f"analysing {now.windows_done:,} of {words.count(now.windows_total, 'window')}"
    return [html.Span(text), dmc.Progress(value=done, size="sm", **{"aria-label": text})]
