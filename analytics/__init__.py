"""Pure analyses of streaming-job telemetry.

Nothing here knows Django, Celery or Dash; only ``analytics.spark`` knows Spark. Functions take arrays and
frozen dataclasses and return ``(value, diagnostics)``. Ids are integers; names are looked up at the edge.
"""
