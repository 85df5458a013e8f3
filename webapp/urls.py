"""Addresses. Pages are mounted by name, so that nothing in webapp imports the frontend."""

from django.contrib import admin
from django.urls import include, path

from webapp.accounts.views import SignIn, SignOut
from webapp.ops.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("sign-in", SignIn.as_view(), name="sign-in"),
    path("sign-out", SignOut.as_view(), name="sign-out"),
    path("admin/", admin.site.urls),
    path("", include("frontend.urls")),
]
