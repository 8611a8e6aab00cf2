"""HTTP for models and pages of the web, on httpx2, which `hookline[agent]` brings along; imported when first used.

    client = HttpClient()
    async with client.exchange("POST", url, headers, body) as answer:
        answer.status, answer.headers
        async for piece in answer.pieces(): …

Whatever goes wrong on the way is an `OSError`. Redirects are the caller's business. Proxies are those of `HTTPS_PROXY`,
`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; certificates those of the system, of `SSL_CERT_FILE` and of
`NODE_EXTRA_CA_CERTS`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

if TYPE_CHECKING:
    import httpx2

PORTS = {"http": 80, "https": 443}
#: seconds to reach a server, and to hear the next piece from it
TO_CONNECT, TO_READ = 15.0, 600.0


class ServerAnswer:
    """A server's answer: status and headers (names in small letters) at once, the body while it arrives."""

    def __init__(self, response: httpx2.Response, to_read: float) -> None:
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response, self._to_read = response, to_read

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, decompressed; raises `ConnectionError` if it ends too early."""
        with _as_os_errors(self._to_read, "heard nothing more"):
            async for piece in self._response.aiter_bytes():
                yield piece

    async def read(self, most: int) -> bytes:
        """The body, up to so many bytes; what is longer is cut off there."""
        body = bytearray()
        async for piece in self.pieces():
            body += piece
            if len(body) > most:
                return bytes(body[:most])
        return bytes(body)


class HttpClient:
    """Asks servers; connections are kept for the next request, in each event loop its own."""

    def __init__(self, *, to_read: float = TO_READ) -> None:
        self._to_read = to_read
        self._clients: dict[tuple[asyncio.AbstractEventLoop, bool], httpx2.AsyncClient] = {}
        self._lives: list[AsyncGenerator[None, None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        loop = asyncio.get_running_loop()
        for key in [key for key in self._clients if key[0] is loop]:
            await self._clients.pop(key).aclose()

    async def _client(self, *, direct: bool) -> httpx2.AsyncClient:
        import httpx2

        key = (asyncio.get_running_loop(), direct)
        if key not in self._clients:
            self._clients = {one: client for one, client in self._clients.items() if not one[0].is_closed()}
            limits = httpx2.Timeout(self._to_read, connect=TO_CONNECT)
            tls = ssl.create_default_context()
            if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
                tls.load_verify_locations(extra)
            self._clients[key] = httpx2.AsyncClient(timeout=limits, verify=tls, trust_env=not direct)
            self._lives.append(self._live(self._clients[key]))
            await anext(self._lives[-1])
        return self._clients[key]

    async def _live(self, client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
        """A loop ends its generators before it ends itself, so that no connection outlives its loop."""
        try:
            yield
        finally:
            await client.aclose()

    @asynccontextmanager
    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, address: str | None = None
    ) -> AsyncIterator[ServerAnswer]:
        """Ask; with `address`, that machine is asked, whatever the name in `url` leads to by now."""
        parts, place = parse_address(url)
        if any("\r" in text or "\n" in text for pair in headers.items() for text in pair):
            raise ValueError("a line break in a header of an HTTP request")
        if not (parts.path + parts.query).isascii() or " " in parts.path + parts.query:
            raise ValueError(f"`{url}` has a space or a letter that HTTP does not know")
        extensions, named = {}, dict(headers)
        if address is not None:
            host = f"[{place.host}]" if ":" in place.host else place.host
            named["host"] = host if place.port == PORTS[place.scheme] else f"{host}:{place.port}"
            extensions["sni_hostname"] = place.host
            host = f"[{address}]" if ":" in address else address
            url = parts._replace(netloc=f"{host}:{place.port}").geturl()
        client = await self._client(direct=address is not None)
        with _as_os_errors(self._to_read, "got no answer"):
            request = client.build_request(method, url, headers=named, content=body, extensions=extensions)
            response = await client.send(request, stream=True)
        try:
            yield ServerAnswer(response, self._to_read)
        finally:
            await response.aclose()


@contextmanager
def _as_os_errors(to_read: float, silence: str) -> Iterator[None]:
    import httpx2

    try:
        yield
    except httpx2.ReadTimeout:
        raise ConnectionError(f"{silence} within {to_read:g} s") from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as problem:
        raise ConnectionError(str(problem) or type(problem).__name__) from None


# -- who is asked ------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Who is asked."""

    scheme: str
    host: str
    port: int


def parse_address(url: str) -> tuple[SplitResult, Place]:
    """The parts of an address, and whom to ask; raises `ValueError` for one that is not http or https."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"`{url}` is not an http or https address")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
    return parts, Place(parts.scheme, host, parts.port or PORTS[parts.scheme])


def uses_proxy(place: Place) -> bool:
    """Whether the environment names a proxy for this server."""
    proxies = getproxies_environment()
    stated = proxies.get(place.scheme) or proxies.get("all")
    return bool(stated) and not proxy_bypass_environment(f"{place.host}:{place.port}", proxies)
