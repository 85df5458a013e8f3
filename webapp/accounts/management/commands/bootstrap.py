"""Create the first person, so that a fresh Weir can be signed in to."""

import os
import secrets

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.accounts.models import User

NAME = "admin"


class Command(BaseCommand):
    """``manage.py bootstrap``: makes ``admin`` with a random password if nobody exists yet."""

    help = "Create the first administrator; the password goes to admin-password in the state directory."

    def handle(self, **options: object) -> None:
        """Do nothing at all once there is a person."""
        if User.objects.exists():
            return
        password = secrets.token_urlsafe(12)
        path = settings.WEIR_HOME / "admin-password"
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(password + "\n")
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from error
        User.objects.create_superuser(NAME, password=password)
