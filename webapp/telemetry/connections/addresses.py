"""Where a source is, as a person writes it: tidied, or refused with one line that says what to change."""

from __future__ import annotations

import ipaddress
import re
from pathlib import PurePosixPath
from urllib.parse import SplitResult, urlsplit

MAX_CHARS = 900
"""Of an address: the addresses of its jobs are longer."""

DEFAULT_PORTS = {"http": 80, "https": 443}
POSTGRESQL_PORT = 5432
HOST = re.compile(r"[A-Za-z0-9._:-]+")
"""No comma, no percent sign: libpq would take several hosts, or a socket on disk."""

DATABASE_NAME = re.compile(r"/[A-Za-z0-9_.%-]{1,100}")


class AddressError(Exception):
    """The address cannot be used; the message is one line for people."""


def http_address(text: str) -> str:
    """An address of HTTP, so that two ways to write the same are one.

    Raises
    ------
    AddressError
        If it is none, or has parts that it must not have.
    """
    address = _tidy(text, "an address such as http://jobmanager:8081")
    if "://" not in address:
        raise AddressError("begin the address with http:// or https://")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise AddressError("this is not an address: check its host and port") from None
    _check(parts)
    host = (parts.hostname or "").lower()
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        place = f"{place}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def database_address(text: str) -> str:
    """An address of a database in PostgreSQL, with a user and without a password.

    Raises
    ------
    AddressError
        If it is none, or has parts that it must not have.
    """
    address = _tidy(text, "an address such as postgresql://reader@database:5432/autoscaler").removeprefix(
        "jdbc:"
    )
    if not address.startswith(("postgresql://", "postgres://")):
        raise AddressError("begin the address with postgresql://; tables in other databases cannot be read")
    try:
        parts = urlsplit(address)
        port = parts.port or POSTGRESQL_PORT
    except ValueError:
        raise AddressError("this is not an address: check its host and port") from None
    if parts.password is not None:
        raise AddressError(
            "leave out the password, everybody here would see it: put it into the workers' PGPASSFILE"
        )
    if not HOST.fullmatch(parts.hostname or "") or not parts.username or not parts.hostname:
        raise AddressError("name the user and the host: postgresql://reader@database:5432/autoscaler")
    if not DATABASE_NAME.fullmatch(parts.path) or parts.query or parts.fragment:
        raise AddressError("name the database behind the host, such as /autoscaler, and nothing after it")
    if _is_nowhere(parts.hostname):
        raise AddressError(f"{parts.hostname} is not the address of a server that may be asked")
    host = parts.hostname.lower()
    return f"postgresql://{parts.username}@{f'[{host}]' if ':' in host else host}:{port}{parts.path}"


def _check(parts: SplitResult) -> None:
    if parts.scheme not in DEFAULT_PORTS:
        raise AddressError(f"only http:// and https:// addresses can be asked, not {parts.scheme}://")
    if parts.username is not None or parts.password is not None:
        raise AddressError("leave out the name and password before the @: everybody here would see them")
    if not parts.hostname:
        raise AddressError("the address names no host")
    if parts.query or parts.fragment or parts.path.endswith(("?", "#")):
        raise AddressError("leave out what follows the ? or #: only the address of the server is needed")
    if _is_nowhere(parts.hostname):
        raise AddressError(f"{parts.hostname} is not the address of a server that may be asked")


def _is_nowhere(host: str) -> bool:
    """Whether a numeric host is one that no server of ours has, such as a cloud's metadata service."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None) or found
    return bool(inner.is_link_local or inner.is_multicast or inner.is_unspecified)


def path_on_disk(text: str) -> str:
    """The path of a log or a directory of logs, as the workers see it.

    Raises
    ------
    AddressError
        If it is none.
    """
    path = _tidy(text, "a directory such as /var/log/spark-events")
    if "://" in path:
        raise AddressError("give a path on the disk of the workers, not an address")
    if not path.startswith("/"):
        raise AddressError("begin the path with /: workers may run in any directory")
    if ".." in PurePosixPath(path).parts:
        raise AddressError("leave out the .. and write the path in full")
    return "/" + str(PurePosixPath(path)).lstrip("/")


def _tidy(text: str, expected: str) -> str:
    tidied = text.strip()
    if not tidied:
        raise AddressError(f"write {expected}")
    if len(tidied) > MAX_CHARS:
        raise AddressError(f"this is longer than {MAX_CHARS} characters")
    if any(char.isspace() or not char.isprintable() for char in tidied):
        raise AddressError("leave out the spaces and invisible characters within it")
    return tidied
