"""The hosts of `--host`: names and patterns of names, with the ports that may be reached."""

from __future__ import annotations

import _socket
from _collections_abc import Iterable, Mapping

Rule = tuple[str, frozenset[int]]

INTERNET, INTERNET_6 = 2, 10
_DATAGRAM = 2
_USUAL = frozenset({80, 443})
_TABLE = "/etc/hosts"
FAKE, FAKE_6 = b"\xc6\x12", b"\xfd\x68\x6f\x6f\x6b" + bytes(9)
"""How the addresses begin that the broker gives names: 198.18.0.0/16 and fd68:6f6f:6b::/112."""
_MOST_LABEL, _MOST_PORT = 63, 65535


def read_host(text: str) -> Rule:
    """A name, `*.name` or an address, and its ports: `name`, `name:22`, `name:22,443`, `[::1]:80`; ValueError."""
    name, colon, ports = text.strip().rpartition(":")
    if not colon or (text.count(":") > 1 and not name.endswith("]")):
        name, ports = text.strip(), ""
    name = name.strip("[]").rstrip(".").lower()
    if not name.isascii():
        name = name.encode("idna").decode()
    numbers = frozenset(int(port) if port.isdigit() else 0 for port in ports.split(",")) if ports else _USUAL
    labels = name.removeprefix("*.").split(".")
    known = ":" in name or all(0 < len(label) <= _MOST_LABEL and set(label) <= _LETTERS for label in labels)
    if not known or not all(0 < number <= _MOST_PORT for number in numbers):
        raise ValueError(f"`{text}` is not a host; write `pypi.org`, `*.example.com:443` or `git.example.com:22,443`")
    return name, numbers


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def fits(rule: str, name: str) -> bool:
    """Whether a name is the one of a rule, or lies below it."""
    return name == rule or (rule.startswith("*.") and name.endswith(rule[1:]) and len(name) >= len(rule))


def shared_hosts(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """What two lists both allow."""
    found: dict[str, None] = {}
    for name, ports in map(read_host, first):
        for other, others in map(read_host, second):
            if ports & others and (fits(name, other) or fits(other, name)):
                narrow = other if fits(name, other) else name
                numbers = ",".join(map(str, sorted(ports & others)))
                found[f"[{narrow}]:{numbers}" if ":" in narrow else f"{narrow}:{numbers}"] = None
    return tuple(found)


class Hosts:
    """Which names may be reached, and where the machine's own table of hosts has them."""

    def __init__(self, patterns: Iterable[str], table: str = _TABLE) -> None:
        self._rules = [read_host(pattern) for pattern in patterns]
        self.addresses: dict[str, list[str]] = {}
        try:
            with open(table, encoding="utf-8", errors="replace") as file:
                rows = [line.partition("#")[0].split() for line in file]
        except OSError:
            rows = []
        for address, *names in filter(None, rows):
            for name in names:
                self.addresses.setdefault(name.lower().rstrip("."), []).append(address)

    def ports(self, name: str) -> frozenset[int]:
        return frozenset().union(*(ports for rule, ports in self._rules if fits(rule, name)))

    def names_at(self, address: str, port: int) -> list[str]:
        """The names that may be reached at an address, as far as the list and the machine's table tell."""
        found = [name for name, places in self.addresses.items() if address in places and port in self.ports(name)]
        return [*found, *([address] if port in self.ports(address) else [])]


def synthetic(address: str) -> int:
    """The number in an address that the broker gave a name; 0 for any other."""
    packed = _socket.inet_pton(INTERNET_6 if ":" in address else INTERNET, address)
    return int.from_bytes(packed[-2:], "big") if packed[:-2] in (FAKE, FAKE_6) else 0


def upstream_proxy(variables: Mapping[str, str], name: str, port: int) -> tuple[str, int, bytes] | None:
    """The user's own way out to a name, if there is one: a proxy's host, port and credentials.

    ValueError for one that is not understood.
    """
    known = {name.lower(): value for name, value in variables.items() if name.lower().endswith("_proxy") and value}
    url = known.get("http_proxy" if port == 80 else "https_proxy") or known.get("all_proxy")
    direct = [own.strip().lstrip("*.") for own in known.get("no_proxy", "").lower().split(",") if own.strip()]
    if url is None or any(not own or name == own or name.endswith("." + own) for own in direct):
        return None
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"the proxy `{parts.scheme}://{parts.hostname}` is not of a kind that is known: http://")
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return parts.hostname, parts.port or 80, b64encode(user.encode()) if parts.username else b""


def reaches(host: str, *, own: bool = False) -> bool:
    """Whether there is a way to an address; with `own`, whether it is this machine's, which sends from it to itself."""
    probe = None
    try:
        probe = _socket.socket(INTERNET_6 if ":" in host else INTERNET, _DATAGRAM)
        probe.connect((host, 9))
        return not own or bool(probe.getsockname()[0] == host)
    except OSError:
        return False
    finally:
        if probe is not None:
            probe.close()
