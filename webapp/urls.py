"""Addresses. Pages are mounted by name, so that nothing in webapp imports the frontend."""

from django.contrib import admin
from django.urls import include, path, re_path

from webapp.accounts.views import SignIn, SignOut
from webapp.api import problems
from webapp.audit.views import audit_csv
from webapp.notifications.views import unsubscribe_page
from webapp.ops.health import healthz, readyz
from webapp.ops.help import help_page
from webapp.telemetry.ingest_api import OtlpMetrics, OtlpTraces

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("sign-in", SignIn.as_view(), name="sign-in"),
    path("sign-out", SignOut.as_view(), name="sign-out"),
    path("admin/", admin.site.urls),
    path("help", help_page, name="help"),
    path("help/<path:name>", help_page, name="help-page"),
    path("unsubscribe/<str:key>", unsubscribe_page, name="unsubscribe"),
    path("audit.csv", audit_csv, name="audit-csv"),
    path("api/v1/", include("webapp.api.urls")),
    path("v1/traces", OtlpTraces.as_view()),
    path("v1/metrics", OtlpMetrics.as_view()),
    re_path("^(?:api|v1)/", problems.nothing_here),
    path("", include("frontend.urls")),
]
handler400 = problems.handler400
handler500 = problems.handler500
