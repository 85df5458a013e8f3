"""Addresses of the pages: whatever Django's own addresses leave over belongs to Dash."""

from django.urls import re_path

from frontend.view import pages

urlpatterns = [re_path(r"^(?P<path>.*)$", pages, name="pages")]
