"""What the pages of uploads are made of: the sentence, the progress, what was understood, the list."""

from __future__ import annotations

import json
from typing import Any

import dash_mantine_components as dmc
from dash import html
from django.utils import timezone

from analytics.model.activity import BY_LABEL
from frontend import words
from frontend.components import states
from frontend.state import View, iso
from webapp.jobs.models import Job
from webapp.telemetry.uploads.models import UNDER_WAY, Upload, UploadState
from webapp.telemetry.uploads.selectors import Result, formats

SIGNS = {
    UploadState.UNDERSTOOD: "○", UploadState.STORED: "✓", UploadState.REFUSED: "✕", UploadState.FAILED: "✕",
    UploadState.EXPIRED: "–",
}  # fmt: skip
COLOURS = {
    UploadState.STORED: "live", UploadState.REFUSED: "error", UploadState.FAILED: "error",
    UploadState.UNDERSTOOD: "quiet",
}  # fmt: skip


def size(count: int) -> str:
    """Bytes with a fitting unit: 1.2 MB."""
    return f"{words.number(count)}B" if count >= 1000 else words.count(count, "byte")


def sentence(row: Upload, result: Result | None) -> list[Any]:
    """How far the upload is, and what comes next."""
    label = dict(formats()).get(row.format, row.format)
    match row.state:
        case UploadState.RECEIVED:
            return [f"Received {size(row.size_bytes)}; it waits for a worker to read it."]
        case UploadState.READING:
            return [f"Being read as {label} …"]
        case UploadState.UNDERSTOOD:
            return _understood(row)
        case UploadState.STORING:
            return [f"Being stored as {row.job_name} …"]
        case UploadState.STORED:
            return _stored(row, result)
        case UploadState.EXPIRED:
            return ["Nobody stored it in time, so its file was removed. Upload it again to use it."]
        case UploadState.REFUSED:
            return [html.Strong("It cannot be used"), f" as {label}: {row.error}"]
        case _:
            return [html.Strong("Something went wrong here"), f": {row.error}"]


def _understood(row: Upload) -> list[Any]:
    found = row.preview or {}
    if found.get("epochs"):
        parts, times = [words.count(found["epochs"], "epoch") + " of rates"], found["epochs_ns"]
    else:
        parts = [words.count(found["records"], "record"), words.count(found["workers"], "worker")]
        times = [found["from_ns"], found["to_ns"]]
    parts.append(words.count(found["operators"], "operator"))
    length = "" if times[0] is None else f" over {words.duration(times[1] - times[0])}"
    odd = sum(item["count"] for item in row.diagnostics)
    doubt = (
        "" if not odd else " One oddity is told below." if odd == 1 else f" {odd:,} oddities are told below."
    )
    return [html.Strong(words.series(parts)), f"{length}. Nothing is stored yet.{doubt}"]


def _stored(row: Upload, result: Result | None) -> list[Any]:
    if row.job is None:
        return ["It was stored; its job has been removed since."]
    if (row.preview or {}).get("epochs"):
        return _stored_rates(row, row.preview or {}, row.job)
    new = row.stored_count - row.repeated_count
    if row.stored_count and not new:
        said = (
            f"Nothing was added: {row.job.name} had all {row.stored_count:,} records of this file already. "
        )
    else:
        before = f", {row.repeated_count:,} of them there before" if row.repeated_count else ""
        said = f"Stored {words.count(row.stored_count, 'record')}{before} as {row.job.name}. "
    if result is None:
        return [said, html.A(f"Open {row.job.name}", href=f"/jobs/{row.job.pk}", id="upload-job-link")]
    if not result.is_analysed:
        return [said, "Its windows are being analysed …"]
    return [
        said,
        html.A(
            f"See what limits {row.job.name}", href=link(result), className="primary", id="upload-job-link"
        ),
    ]


def _stored_rates(row: Upload, preview: dict[str, Any], job: Job) -> list[Any]:
    from_ns, to_ns = preview["epochs_ns"]
    address = f"/policy-lab?job={job.pk}&from={iso(from_ns)}&to={iso(to_ns + 999_999)}"
    return [
        f"Stored {words.count(preview['epochs'], 'epoch')} of rates as {job.name}. ",
        html.A("See what every policy would do", href=address, className="primary", id="upload-job-link"),
    ]


def link(result: Result) -> str:
    """The job's page over the time of the trace."""
    return f"/jobs/{result.job.pk}?from={iso(result.from_ns)}&to={iso(result.to_ns + 999_999)}"


def progress(row: Upload, result: Result | None) -> Any:
    """A bar while something is under way."""
    if row.state == UploadState.STORING and row.record_count:
        text = f"{row.stored_count:,} of {words.count(row.record_count, 'record')} stored"
        share = row.stored_count / row.record_count
    elif result is not None and not result.is_analysed:
        total = (result.to_ns - result.from_ns) // result.job.window_ns
        text = f"{result.windows_done:,} of {words.count(total, 'window')} analysed"
        share = result.windows_done / total
    elif row.state in UNDER_WAY:
        return dmc.Progress(value=100, animated=True, size="sm", **{"aria-label": "working"})
    else:
        return None
    bar = dmc.Progress(value=100 * min(share, 1), size="sm", **{"aria-label": text})
    return html.Div([html.Span(text), bar], className="upload-progress")


def found(row: Upload, view: View) -> Any:
    """What was understood, and what was odd."""
    preview = row.preview
    return html.Div(
        className="found",
        children=[
            *([_facts(row, preview, view)] if preview else []),
            *([_types(preview), _rows(preview, view)] if preview and not preview.get("epochs") else []),
            *([_oddities(row)] if row.diagnostics else []),
        ],
    )


def _facts(row: Upload, preview: dict[str, Any], view: View) -> Any:
    facts = [("Format", dict(formats()).get(row.format, row.format)), ("Size", size(row.size_bytes))]
    if preview["from_ns"] is not None:
        facts += [
            ("From", f"{view.time(preview['from_ns']):%Y-%m-%d %H:%M:%S.%f} {view.zone_label}"),
            ("To", f"{view.time(preview['to_ns']):%Y-%m-%d %H:%M:%S.%f} {view.zone_label}"),
            ("Windows", f"{words.duration(preview['window_ns'])} each, if the job is new"),
        ]
    operators = ("Operators", _named(preview["operators"], preview["operator_names"]))
    if preview.get("epochs"):
        from_ns, to_ns = preview["epochs_ns"]
        facts += [
            ("Epochs", f"{preview['epochs']:,}"),
            ("From", f"{view.time(from_ns):%Y-%m-%d %H:%M:%S} {view.zone_label}"),
            ("To", f"{view.time(to_ns):%Y-%m-%d %H:%M:%S} {view.zone_label}"),
            operators,
        ]
    else:
        facts += [
            ("Workers", _named(preview["workers"], preview["worker_names"])),
            operators,
            ("Metrics", words.count(preview["metrics"], "sample")),
        ]
    terms = [part for term, text in facts for part in (html.Dt(term), html.Dd(text))]
    return _card("What was understood", html.Dl(terms, className="facts"))


def _named(count: int, names: list[str]) -> str:
    if not count:
        return "none"
    shown = ", ".join(names[:8])
    return f"{count:,}: {shown}" + (f" and {count - 8:,} more" if count > 8 else "")


def _types(preview: dict[str, Any]) -> Any:
    rows = [
        html.Tr(
            [
                html.Th(
                    [html.I(className=f"swatch {item['type']}"), words.activity(BY_LABEL[item["type"]])],
                    scope="row",
                ),
                html.Td(f"{item['count']:,}", className="number"),
                html.Td(words.duration(item["time_ns"]), className="number"),
            ]
        )
        for item in preview["types"]
    ]
    return _card("Which activities", _grid(("Type", "Records", "Time in all"), rows, numbers=(1, 2)))


def _rows(preview: dict[str, Any], view: View) -> Any:
    rows = [
        html.Tr(
            [
                html.Td(f"{view.time(item['start_ns']):%H:%M:%S.%f}", className="number"),
                html.Td(words.duration(max(0, item["end_ns"] - item["start_ns"])), className="number"),
                html.Td(words.activity(BY_LABEL[item["type"]])),
                html.Td(item["worker"] + (f" → {item['peer']}" if item["peer"] else "")),
                html.Td(item["operator"] or "–"),
            ]
        )
        for item in preview["rows"]
    ]
    heads = (f"Start, {view.zone_label}", "Duration", "Type", "Worker", "Operator")
    return _card(f"Its first {words.count(len(rows), 'record')}", _grid(heads, rows, numbers=(0, 1)))


def _oddities(row: Upload) -> Any:
    rows = [
        html.Tr(
            [
                html.Th(item["code"].replace("_", " "), scope="row"),
                html.Td(f"{item['count']:,}", className="number"),
                html.Td(item["example"]),
            ]
        )
        for item in row.diagnostics
    ]
    return _card("What was odd", _grid(("What", "Times", "First example"), rows, numbers=(1,)))


def _grid(heads: tuple[str, ...], rows: list[Any], numbers: tuple[int, ...]) -> Any:
    cells = [
        html.Th(head, scope="col", className="number" if i in numbers else "") for i, head in enumerate(heads)
    ]
    return html.Div(
        html.Table([html.Thead(html.Tr(cells)), html.Tbody(rows)], className="grid"),
        className="scrolling",
        tabIndex="0",
        role="region",
        **{"aria-label": ", ".join(heads)},
    )


def _card(title: str, body: Any) -> Any:
    return html.Section([html.H2(title), body], className="card")


def whose(everybody: bool) -> Any:
    """The choice an administrator has."""
    pairs = (("Mine", None, not everybody), ("Everybody's", "all", everybody))
    return html.Div(
        [
            html.Button(
                label,
                className="tool",
                **{"data-set": json.dumps({"show": show}), "aria-pressed": str(on).lower()},
            )
            for label, show, on in pairs
        ],
        className="choice",
        role="group",
        **{"aria-label": "Whose uploads"},
    )


def table(rows: list[Upload], view: View, everybody: bool) -> Any:
    """The recent uploads, newest first."""
    if not rows:
        return html.P(
            "Nothing has been uploaded yet. What you upload appears here with its state.", className="muted"
        )
    labels, now = dict(formats()), timezone.now()
    lines = []
    for row in rows:
        state = UploadState(row.state)
        job = html.A(row.job.name, href=f"/jobs/{row.job.pk}") if row.job else row.job_name or "–"
        cells = [
            html.Th(html.A(row.name, href=f"/upload/{row.pk}", title=row.name), scope="row"),
            html.Td(
                f"{SIGNS.get(state, '…')} {state.label}", className=f"state-word {COLOURS.get(state, '')}",
                title=row.error,
            ),
            html.Td(f"{words.age(row.created_at, now)} ago", className="number", title=_when(row, view)),
            html.Td(size(row.size_bytes), className="number"),
            html.Td(labels.get(row.format, row.format)),
            html.Td(job),
        ]  # fmt: skip
        lines.append(html.Tr([*cells, *([html.Td(row.owner.get_username())] if everybody else [])]))
    heads = ("File", "State", "When", "Size", "Format", "Job", *(("Who",) if everybody else ()))
    return _grid(heads, lines, numbers=(2, 3))


def _when(row: Upload, view: View) -> str:
    at_ns = int(row.created_at.timestamp() * 1e9)
    return f"{view.time(at_ns):%Y-%m-%d %H:%M:%S} {view.zone_label}"


def gone(upload_id: int) -> Any:
    """An upload that does not exist, or that this person may not see."""
    return states.not_found(f"There is no upload {upload_id}, or you may not see it.")
