"""The Django project: models, services, selectors and the HTTP surface."""
