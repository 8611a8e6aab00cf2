"""Credentials that a line does not have: it sees a random value, and the broker puts the real one into requests.

TLS ends in the broker for hosts that have a token, and for no others. The real one goes into the fields of a request
that carry credentials, and nowhere else; where an answer repeats it, the line sees the placeholder again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import string
import time
from base64 import b64decode, b64encode

from hookline.sandbox.hosts import fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from hookline.sandbox.streams import Stream

    Point = tuple[int, int] | None
    Pair = tuple[bytes, bytes]

_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_INTEGER, _BITS, _OCTETS, _OID, _TEXT, _SEQUENCE, _SET, _TIME = 0x02, 0x03, 0x04, 0x06, 0x0C, 0x30, 0x31, 0x17
_EC_KEY, _P256 = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06082a8648ce3d030107")
_ECDSA = bytes.fromhex("06082a8648ce3d040302")
"""1.2.840.10045: a key on a curve (2.1), the curve (3.1.7), and a signature over SHA-256 (4.3.2)."""
_COMMON_NAME, _SERVER = bytes.fromhex("0603550403"), bytes.fromhex("06082b06010505070301")
"""2.5.4.3, and 1.3.6.1.5.5.7.3.1: a certificate's purpose."""
_KEY_ID, _USAGE, _ALT_NAMES, _CONSTRAINTS, _NAMES, _AUTHORITY, _PURPOSES = (
    bytes((_OID, 3, 0x55, 29, n)) for n in (14, 15, 17, 19, 30, 35, 37)
)
"""Extensions of a certificate: 2.5.29.n."""
_HOUR, _DAY = 3600, 86400
_TRUE = b"\x01\x01\xff"


def _add(first: Point, second: Point) -> Point:
    if first is None or second is None:
        return first or second
    (x, y), (u, v) = first, second
    if x == u and (y + v) % _PRIME == 0:
        return None
    top, bottom = (3 * x * x - 3, 2 * y) if first == second else (v - y, u - x)
    slope = top * pow(bottom, -1, _PRIME) % _PRIME
    new = (slope * slope - x - u) % _PRIME
    return new, (slope * (x - new) - y) % _PRIME


def _times(number: int) -> tuple[int, int]:
    result: Point = None
    power: Point = _BASE
    while number:
        result, power, number = _add(result, power) if number & 1 else result, _add(power, power), number >> 1
    assert result is not None, "numbers are below the order"
    return result


def _der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (size if len(body) < 128 else bytes([0x80 | len(size)]) + size) + body


def _integer(value: int) -> bytes:
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _sequence(*parts: bytes) -> bytes:
    return _der(_SEQUENCE, *parts)


def _extension(number: bytes, *parts: bytes) -> bytes:
    return _sequence(number, *parts[:-1], _der(_OCTETS, parts[-1]))


def _name(text: str) -> bytes:
    return _sequence(_der(_SET, _sequence(_COMMON_NAME, _der(_TEXT, text.encode()))))


def _pem(label: str, data: bytes) -> str:
    text = b64encode(data).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


class _Key:
    def __init__(self) -> None:
        self._secret = secrets.randbelow(_ORDER - 1) + 1
        x, y = _times(self._secret)
        point = b"\4" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
        self._point = _der(_BITS, b"\0", point)
        self.public = _sequence(_sequence(_EC_KEY, _P256), self._point)
        self.ident = hashlib.sha256(point).digest()[:20]

    def sign(self, data: bytes) -> bytes:
        nonce = secrets.randbelow(_ORDER - 1) + 1
        r = _times(nonce)[0] % _ORDER
        digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
        return _sequence(_integer(r), _integer(pow(nonce, -1, _ORDER) * (digest + r * self._secret) % _ORDER))

    def pem(self) -> str:
        secret = _der(_OCTETS, self._secret.to_bytes(32, "big"))
        return _pem("EC PRIVATE KEY", _sequence(_integer(1), secret, _der(0xA0, _P256), _der(0xA1, self._point)))


class Authority:
    """Issues certificates for hosts, and for these only."""

    def __init__(self, hosts: list[str]) -> None:
        self._key, self._subject = _Key(), _name("hookline: this line only")
        self._contexts: dict[str, SSLContext] = {}
        permitted = _sequence(_der(0xA0, *(_sequence(_der(0x82, host.removeprefix("*.").encode())) for host in hosts)))
        self.certificate: str = _pem("CERTIFICATE", self._issue(self._subject, self._key, [
            _extension(_CONSTRAINTS, _TRUE, _sequence(_TRUE, _integer(0))),
            _extension(_USAGE, _TRUE, _der(_BITS, b"\1\6")),
            _extension(_NAMES, _TRUE, permitted),
            _extension(_KEY_ID, _der(_OCTETS, self._key.ident)),
        ]))  # fmt: skip

    def _issue(self, subject: bytes, key: _Key, extensions: list[bytes]) -> bytes:
        times = [time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + ahead)) for ahead in (-_HOUR, _DAY)]
        valid = _sequence(*(_der(_TIME, moment.encode()) for moment in times))
        serial, algorithm = _integer(secrets.randbits(120)), _sequence(_ECDSA)
        body = _sequence(
            _der(0xA0, _integer(2)), serial, algorithm, self._subject, valid, subject, key.public,
            _der(0xA3, _sequence(*extensions)),
        )  # fmt: skip
        return _sequence(body, algorithm, _der(_BITS, b"\0", self._key.sign(body)))

    def context(self, host: str) -> SSLContext:
        if host not in self._contexts:
            import ssl  # only the broker needs it, and not before a first connection

            key = _Key()
            leaf = self._issue(_name(host[:60]), key, [
                _extension(_ALT_NAMES, _sequence(_der(0x82, host.encode()))),
                _extension(_PURPOSES, _sequence(_SERVER)),
                _extension(_AUTHORITY, _sequence(_der(0x80, self._key.ident))),
                _extension(_KEY_ID, _der(_OCTETS, key.ident)),
            ])  # fmt: skip
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            file = os.memfd_create("certificate")
            os.write(file, (_pem("CERTIFICATE", leaf) + key.pem()).encode())
            context.load_cert_chain(f"/proc/self/fd/{file}")
            os.close(file)
            context.set_alpn_protocols(["http/1.1"])
            self._contexts[host] = context
        return self._contexts[host]


_CREDENTIALS = frozenset({
    b"authorization", b"x-api-key", b"api-key", b"private-token", b"job-token", b"x-auth-token", b"x-access-token",
    b"x-goog-api-key",
})  # fmt: skip
_TRUST = (
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "DENO_CERT", "npm_config_cafile",
)  # fmt: skip
"""Variables that lead programs to the authorities they trust."""
_SYSTEM = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_PREFIX = 12
"""How much of a token may say what kind it is, as in `ghp_…`: programs look at that."""
_KINDS = (string.digits, string.ascii_lowercase, string.ascii_uppercase)


def placeholder(real: str) -> str:
    """A value of the same length and look."""
    kept = max(real[:_PREFIX].rfind("_"), real[:_PREFIX].rfind("-")) + 1
    kinds = [next((kind for kind in _KINDS if letter in kind), letter) for letter in real[kept:]]
    return real[:kept] + "".join(secrets.choice(kind) for kind in kinds)


class Placeholders:
    """The tokens of one line."""

    def __init__(self, tokens: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self._pairs: dict[str, tuple[str, str]] = {}
        self._hosts: dict[str, list[Pair]] = {}
        for name, _, host in (token.partition("=") for token in tokens):
            real = variables[name]
            shown, _ = self._pairs.setdefault(name, (placeholder(real), real))
            self._hosts.setdefault(host.lower(), []).append((shown.encode(), real.encode()))
        self._authority = Authority(list(self._hosts))
        self._trust: SSLContext | None = None

    def variables(self, given: Mapping[str, str], folder: str) -> dict[str, str]:
        """A line's variables: no real token in any of them, and its authority among those that programs trust."""
        files = dict.fromkeys(given[name] for name in _TRUST if name in given)
        files = files or dict.fromkeys(path for path in _SYSTEM if os.path.exists(path))
        bundle = f"{folder}/authorities-{secrets.token_hex(4)}.pem"
        with open(bundle, "w", encoding="utf-8") as out:
            for path in files:
                if os.path.isfile(path):
                    with open(path, encoding="utf-8", errors="replace") as file:
                        out.write(file.read() + "\n")
            out.write(self._authority.certificate)
        shown = dict(given)
        for placeholder, real in self._pairs.values():
            shown = {name: value.replace(real, placeholder) for name, value in shown.items()}
        return {**shown, **dict.fromkeys(_TRUST, bundle)}

    def knows(self, names: list[str]) -> bool:
        return any(self._of(name) for name in names)

    def _of(self, name: str) -> list[Pair]:
        return [pair for host, pairs in self._hosts.items() if fits(host, name) for pair in pairs]

    def client(self, inside: Stream, name: str) -> Stream:
        """The line's side of a connection that speaks TLS: it ends here."""
        from hookline.sandbox.streams import TlsStream

        return TlsStream(inside, self._authority.context(name), server=True)

    async def server(self, outside: Stream, name: str) -> Stream:
        """The host's side: its certificate is verified as usual."""
        import ssl

        from hookline.sandbox.streams import HostStream, RefusedConnection

        if self._trust is None:
            self._trust = ssl.create_default_context()
            self._trust.set_alpn_protocols(["http/1.1"])
        stream = HostStream(outside, self._trust, name, self._of(name))
        try:
            await stream.shake_hands()
        except ssl.SSLError as error:
            raise RefusedConnection(f"its certificate cannot be verified: {error.reason}") from None
        return stream

    def edit(self, lines: list[bytes], name: str) -> list[bytes]:
        """A request's head with the real tokens; what is answered is not compressed."""
        from hookline.sandbox.streams import checked_head

        kept = [line for line in checked_head(lines, [name]) if not line.lower().startswith(b"accept-encoding:")]
        return [kept[0], *(self._swap(line, self._of(name)) for line in kept[1:]), b"Accept-Encoding: identity"]

    @staticmethod
    def _swap(line: bytes, pairs: list[Pair]) -> bytes:
        field, _, value = line.partition(b":")
        if field.lower() not in _CREDENTIALS:
            return line
        scheme, _, rest = value.strip().partition(b" ")
        for shown, real in pairs:
            if scheme.lower() == b"basic":
                rest = b64encode(b64decode(rest).replace(shown, real))
            else:
                scheme, rest = scheme.replace(shown, real), rest.replace(shown, real)
        return field + b": " + b" ".join(filter(None, (scheme, rest)))
