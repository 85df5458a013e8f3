"""What is asked about people and their tokens."""

from django.db.models import QuerySet

from webapp.accounts.models import Token, User


def tokens_of(actor: User) -> QuerySet[Token]:
    """The tokens of this person, revoked and expired ones too."""
    return Token.objects.filter(owner=actor)
