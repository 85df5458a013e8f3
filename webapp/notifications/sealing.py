"""Secrets at rest: encrypted by a key made of ``WEIR_SECRET_KEY``, so a copy of the database opens nothing."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


class BrokenSealError(Exception):
    """The secret was sealed with another key; it must be given again."""


def seal(secret: str) -> bytes:
    """Encrypt and sign a secret."""
    return _fernet().encrypt(secret.encode())


def opened(sealed: bytes | memoryview) -> str:
    """What was sealed.

    Raises
    ------
    BrokenSealError
        If the key is another one now, or the bytes were changed.
    """
    try:
        return _fernet().decrypt(bytes(sealed)).decode()
    except InvalidToken:
        raise BrokenSealError(
            "the secret was stored under another WEIR_SECRET_KEY: make the channel again"
        ) from None


def _fernet() -> Fernet:
    digest = hashlib.sha256(b"weir.notifications.channels\0" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
