"""Make a token from the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token


class Command(BaseCommand):
    """``manage.py create_token --name collector --scope ingest --job ad-events``."""

    help = "Make a token and print its secret, this once. Standard output is the secret alone."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose it is and what it may do."""
        parser.add_argument("--user", default="admin", help="the person it acts for (admin)")
        parser.add_argument("--name", required=True, help="what it is for, to know it again")
        parser.add_argument("--scope", action="append", required=True, choices=Scope.values, dest="scopes")
        parser.add_argument("--job", action="append", default=[], dest="jobs", help="only for this job")
        parser.add_argument("--days", type=int, help="how long it is good; for ever if not given")

    def handle(self, **options: Any) -> None:
        """Print the secret."""
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"there is no user {options['user']}")
        days = options["days"]
        try:
            expires_at = None if days is None else timezone.now() + timedelta(days=days)
            token, secret = create_token(
                owner, options["name"], options["scopes"], jobs=options["jobs"], expires_at=expires_at
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        except OverflowError as error:
            raise CommandError(f"--days {days} is too long") from error
        self.stderr.write(f"token {token.pk} {token}: keep this secret, it is shown only now")
        self.stdout.write(secret)
