"""The tabs of a job's page that answer a question: asked here, answered by a worker, drawn when it is there."""

from dash import ClientsideFunction, Dash, Input

from frontend.pages.questions import asking, compare, together, trust, what_if, why

TABS = (why.TAB, what_if.TAB, compare.TAB, together.TAB, trust.TAB)


def register(app: Dash) -> None:
    """Callbacks of all these tabs."""
    for tab in TABS:
        asking.register(app, tab)
        for part, (_, charted) in tab.panels.items():
            if charted:
                chart = f"chart-{tab.key}-{part}"
                app.clientside_callback(ClientsideFunction("weir", "pick"), Input(chart, "clickData"))
