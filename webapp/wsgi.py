"""The WSGI entry point for gunicorn."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
application = get_wsgi_application()

# A delivery makes thousands of small objects that hold no circles. With Python's own thresholds each has the
# collector walk through all modules several times, which took a third of the time of taking in spans.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 100)
