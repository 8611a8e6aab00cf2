"""Credentials that a line does not have: it sees a random value, and the broker puts the real one into requests.

TLS ends in the broker for hosts that have a token, and for no others. The real one goes into the fields of a request
that carry credentials, and nowhere else; where an answer repeats it, the line sees the placeholder again.
"""

from __future__ import annotations

import os
import secrets
import string
from base64 import b64decode, b64encode

from hookline.sandbox.authority import Authority
from hookline.sandbox.hosts import fits
from hookline.sandbox.streams import RefusedConnection, Stream, checked_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from hookline.sandbox.streams import Steps

    Pair = tuple[bytes, bytes]

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
        """Whether one of these hosts has a token."""
        return any(self._of(name) for name in names)

    def _of(self, name: str) -> list[Pair]:
        return [pair for host, pairs in self._hosts.items() if fits(host, name) for pair in pairs]

    def client(self, inside: Stream, name: str) -> Stream:
        """The line's side of a connection that speaks TLS: it ends here."""
        return TlsStream(inside, self._authority.context(name), server=True)

    def server(self, outside: Stream, name: str) -> Steps[Stream]:
        """The host's side: its certificate is verified as usual."""
        import ssl

        if self._trust is None:
            self._trust = ssl.create_default_context()
            self._trust.set_alpn_protocols(["http/1.1"])
        stream = _ServerStream(outside, self._trust, name, self._of(name))
        try:
            yield from stream.shake_hands()
        except ssl.SSLError as error:
            raise RefusedConnection(f"its certificate cannot be verified: {error.reason}") from None
        return stream

    def edit(self, lines: list[bytes], name: str) -> list[bytes]:
        """A request's head with the real tokens; what is answered is not compressed."""
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


class TlsStream(Stream):
    """TLS on a connection: two generators may read and write it in turn."""

    def __init__(self, under: Stream, context: SSLContext, name: str | None = None, *, server: bool = False) -> None:
        import ssl

        self._under, self._want = under, ssl.SSLWantReadError
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server, server_hostname=name)
        self._sends = False
        super().__init__(under.sock)

    def shake_hands(self) -> Steps[None]:
        """Begin; ssl.SSLError if the peer cannot be trusted."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except self._want:
                yield from self._more()
        yield from self._flush()

    def recv(self, seconds: float = 0) -> Steps[bytes]:
        """The next bytes; none at the end."""
        if self.data:
            data, self.data = self.data, b""
            return data
        while True:
            try:
                return self._tls.read(1 << 16)
            except self._want:
                if not (yield from self._more(seconds)):
                    return b""

    def send(self, data: bytes) -> Steps[None]:
        """Send all of it."""
        if data:
            self._tls.write(data)
        yield from self._flush()

    def _more(self, seconds: float = 0) -> Steps[bool]:
        yield from self._flush()
        data = yield from self._under.recv(seconds)
        self._incoming.write(data)
        if not data:
            self._incoming.write_eof()
        return bool(data)

    def _flush(self) -> Steps[None]:
        """Send what TLS has made, in its order; one that sends already sends this, too."""
        if self._sends:
            return
        self._sends = True
        try:
            while data := self._outgoing.read():
                yield from self._under.send(data)
        finally:
            self._sends = False


class _ServerStream(TlsStream):
    """A host's side: where it repeats a real token, its placeholder is read, also across pieces."""

    def __init__(self, under: Stream, context: SSLContext, name: str, pairs: list[Pair]) -> None:
        super().__init__(under, context, name)
        self._pairs, self._kept = pairs, b""

    def recv(self, seconds: float = 0) -> Steps[bytes]:
        """The next bytes; none at the end."""
        while True:
            piece = yield from super().recv(seconds)
            data, self._kept = self._kept + piece, b""
            for shown, real in self._pairs:
                data = data.replace(real, shown)
            if not piece:
                return data
            ends = [size for _, real in self._pairs for size in range(1, len(real)) if data.endswith(real[:size])]
            if ends:
                data, self._kept = data[: -max(ends)], data[-max(ends) :]
            if data:
                return data
