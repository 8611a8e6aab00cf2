"""HTTP for models and pages of the web, on httpx2, which `hookline[agent]` brings along; imported when first used.

    async with aclosing(HttpClient()) as client, client.exchange("POST", url, headers, body) as answer:
        answer.status_code, answer.headers
        async for piece in answer.aiter_bytes(): …

Whatever goes wrong on the way is an `OSError`. Redirects are the caller's business. Proxies are those of `HTTPS_PROXY`,
`HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; certificates those of the system, of `SSL_CERT_FILE` and of
`NODE_EXTRA_CA_CERTS`.
"""

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hookline.processes.loop import PerLoop

if TYPE_CHECKING:
    import httpx2

TO_CONNECT, TO_READ = 15.0, 600.0  # seconds to reach a server, and to hear the next piece from it


async def read_body(answer: "httpx2.Response", most: int) -> bytes:
    """The body, decompressed, up to so many bytes; what is longer is cut off there."""
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > most:
            break
    return bytes(body[:most])


class HttpClient:
    """Asks servers; connections are kept for the next request, in each event loop its own.

    With `address`, that machine is asked, whatever the names in URLs lead to by now, and no proxy.
    """

    def __init__(self, *, to_read: float = TO_READ, address: str | None = None) -> None:
        self._to_read, self._address = to_read, address
        self._clients: PerLoop[httpx2.AsyncClient] = PerLoop(self._client)

    async def aclose(self) -> None:
        await self._clients.aclose()

    async def _client(self) -> "AsyncGenerator[httpx2.AsyncClient, None]":
        import httpx2

        limits = httpx2.Timeout(self._to_read, connect=TO_CONNECT)
        tls = ssl.create_default_context()
        if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
            tls.load_verify_locations(extra)
        async with httpx2.AsyncClient(timeout=limits, verify=tls, trust_env=self._address is None) as client:
            yield client

    @asynccontextmanager
    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> "AsyncIterator[httpx2.Response]":
        """Ask; the body of the answer is read while it arrives, and an `OSError` if it ends too early."""
        import httpx2

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{url}` is not an http or https address")
        if any("\r" in text or "\n" in text for pair in headers.items() for text in pair):
            raise ValueError("a line break in a header of an HTTP request")
        if not (parts.path + parts.query).isascii() or " " in parts.path + parts.query:
            raise ValueError(f"`{url}` has a space or a letter that HTTP does not know")
        more: dict[str, Any] = {"headers": headers}
        silence = "got no answer"
        try:
            asked = httpx2.URL(url)
            if self._address is not None:
                more["headers"] = {**headers, "host": asked.netloc.decode()}
                more["extensions"] = {"sni_hostname": asked.raw_host.decode()}
                asked = asked.copy_with(host=self._address)
            async with (await self._clients.get()).stream(method, asked, content=body, **more) as answer:
                silence = "heard nothing more"
                yield answer
        except httpx2.ReadTimeout:
            raise ConnectionError(f"{silence} within {self._to_read:g} s") from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as problem:
            raise ConnectionError(str(problem) or type(problem).__name__) from None
