"""Which addresses a list such as `allowedHttpHookUrls` admits: hosts are compared as hosts, not as text.

In `https://*.corp.example/*` the first star stands for names of machines and the second for a path; neither reaches
across the slash between them. Whatever two readers could take for different hosts is not admitted at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from hookline.core.globs import name_expression

_PORTS = {"http": 80, "https": 443}
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f-\xa0\\]|\s")
_PATTERN = re.compile(r"(?:(\*|https?)://)?(\[[^]/]*\]|[^/:?#]*)(?::(\*|\d+))?([/?].*)?", re.IGNORECASE | re.DOTALL)


class Address(NamedTuple):
    """An address taken apart."""

    scheme: str
    host: str
    port: int
    path: str


class AddressPattern(NamedTuple):
    """An entry of the list taken apart; None stands for anything."""

    scheme: str | None
    host: str | None
    port: int | None
    path: str | None


def admits(patterns: Iterable[str], url: str) -> bool:
    """Whether one of the patterns admits the address."""
    address = address_of(url)
    return address is not None and any(_fits(_pattern(text), address) for text in patterns)


@lru_cache(maxsize=256)
def address_of(url: str) -> Address | None:
    """The parts of an address; None when it carries a user's name, or could be read in two ways."""
    if _AMBIGUOUS.search(url):
        return None
    try:
        parts = urlsplit(url)
        port, host = parts.port, _host(parts.hostname or "")
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host or "@" in parts.netloc or "%" in parts.netloc:
        return None
    if ".." in unquote(unquote(parts.path)).split("/"):
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path)


@lru_cache(maxsize=256)
def _pattern(text: str) -> AddressPattern | None:
    """The parts of an entry; None for one that admits nothing because its host cannot be told."""
    if text.strip() == "*":
        return AddressPattern(None, None, None, None)
    found = _PATTERN.fullmatch(text.strip())
    if found is None or "@" in found[2]:
        return None
    scheme, host, port, path = found.groups()
    scheme = None if scheme in (None, "*") else scheme.lower()
    open_end = path is None and text.strip().endswith("*")
    if open_end and port is None:
        host, port = host.rstrip("*") or "*", "*"
    try:
        name = None if host == "*" else _host(host.strip("[]"))
    except ValueError:
        return None
    return AddressPattern(scheme, name, _port(port, scheme), None if open_end else path or "/") if name != "" else None


def _port(port: str | None, scheme: str | None) -> int | None:
    """The port of an entry: without one it is the usual one, which is -1 as long as the scheme is open."""
    if port is None:
        return _PORTS[scheme] if scheme else -1
    return None if port == "*" else int(port)


def _host(name: str) -> str:
    """A host's name as the network knows it: small letters, no closing dot, other scripts in ASCII."""
    name = name.lower().removesuffix(".")
    if name.isascii():
        return name
    try:
        import idna
    except ImportError:  # without the extra nothing is asked anyway; the standard library's older table will do
        return name.encode("idna").decode("ascii")
    return idna.encode(name, uts46=True).decode("ascii")


def _fits(pattern: AddressPattern | None, address: Address) -> bool:
    if pattern is None or pattern.scheme not in (None, address.scheme):
        return False
    usual = pattern.port == -1 and address.port == _PORTS[address.scheme]
    if not usual and pattern.port not in (None, address.port):
        return False
    if pattern.host is not None and not _host_fits(pattern.host, address.host):
        return False
    return pattern.path is None or name_expression(pattern.path).fullmatch(address.path) is not None


def _host_fits(pattern: str, host: str) -> bool:
    """`*.x` is every name below x; a star elsewhere stays within its label."""
    if "*" not in pattern:
        return pattern == host
    wanted, given = pattern.split("."), host.split(".")
    if wanted[0] == "*" and len(wanted) > 1 and len(given) > len(wanted):
        given = ["x", *given[1 - len(wanted) :]]
    return len(wanted) == len(given) and all(
        label != "" and name_expression(part).fullmatch(label) for part, label in zip(wanted, given, strict=True)
    )
