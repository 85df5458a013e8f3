"""Which addresses messages may be sent to: those outside, and those inside that the configuration allows (SSRF).

The address that is checked is the one that is connected to, so a name that resolves differently a moment later
changes nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class InsideError(Exception):
    """The address points inside the network; the message is one line for people."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, all of which may be connected to.

    Raises
    ------
    InsideError
        If any of them may not: one bad answer among good ones is an attack or a mistake.
    OSError
        If the name has no address.
    """
    found = {info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    addresses = sorted(str(address).partition("%")[0] for address in found)
    for address in addresses:
        if not may_reach(address):
            raise InsideError(
                f"{host} is inside the network ({address}): only WEIR_ALLOWED_INSIDE lets messages go there"
            )
    return addresses


def may_reach(text: str) -> bool:
    """Whether an address is outside, or inside and allowed."""
    address = _innermost(ipaddress.ip_address(text))
    if any(address in network for network in _allowed()):
        return True
    return address.is_global and not address.is_multicast and not address.is_reserved


def _innermost(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address.teredo is not None:
            return address.teredo[1]
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _allowed() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    listed = (part.strip() for part in settings.WEIR_ALLOWED_INSIDE.split(","))
    try:
        return [ipaddress.ip_network(part) for part in listed if part]
    except ValueError as error:
        raise ImproperlyConfigured(f"WEIR_ALLOWED_INSIDE: {error}") from None
