"""HTTP endpoints as hooks: the event is POSTed, the JSON that comes back is the answer (FACTS.md §8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from hookline.core.engine import Context, RunnerResult
from hookline.core.hooks.actions import Http
from hookline.core.hooks.hook import Hook
from hookline.core.placeholders import EITHER, fill
from hookline.core.wire import claude
from hookline.core.wire.json_text import read_object
from hookline.core.wire.strict import check_object
from hookline.errors import HookFailed, ReplyError, extra
from hookline.events import Event
from hookline.replies import Reply
from hookline.runners.addresses import admits
from hookline.runners.mcp import filled as filled_in

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 10 * 1024 * 1024
#: characters of an unreadable answer that are told with the failure
MOST_TOLD = 2000
Headers = dict[str, str]
_HEADERS: Headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain, */*"}


class HttpRunner:
    """POSTs events over connections that are kept; redirects are never followed."""

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop, Kept] = {}

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Ask the endpoint once; anything but a 2xx with a JSON object, or nothing, is a failure."""
        action = hook.action
        assert isinstance(action, Http)
        check_url(action)
        status, body = await self._posted(action, _body(action, event), ctx.env)
        text = body.decode("utf-8", "replace")
        if not 200 <= status < 300:
            hint = "; redirects are not followed, give the final address" if 300 <= status < 400 else ""
            raise HookFailed(f"got {status} from {action.url}{hint}", exit_code=status, stdout=text)
        reply = _reply(text, hook, event, status) if action.body is None else None
        return RunnerResult(reply=reply, exit_code=status, stdout=text)

    async def _posted(self, action: Http, body: bytes, env: Mapping[str, str]) -> tuple[int, bytes]:
        kept = self._kept.get(asyncio.get_running_loop())
        if kept is None or kept.session.closed:
            kept = await self._opened()
        session, lib, url, headers = kept.session, kept.lib, action.url, _headers(action, env)
        try:
            address = _address(url)
            try:
                return await _answer(session, address, body, headers)
            except lib.ClientConnectorError as problem:
                raise HookFailed(f"cannot reach {url}: {problem.strerror or problem.os_error}") from None
            except (lib.ServerDisconnectedError, lib.ClientOSError):  # it hung up as we used it
                return await _answer(session, address, body, headers)
        except (lib.ClientError, OSError, ValueError) as problem:
            raise HookFailed(f"got no answer from {url}: {str(problem) or type(problem).__name__}") from None

    async def _opened(self) -> Kept:
        """A session for this event loop."""
        self._kept = {loop: kept for loop, kept in self._kept.items() if not kept.session.closed}
        life = _sessions()
        kept = self._kept[asyncio.get_running_loop()] = Kept(*await anext(life), life)
        return kept

    async def aclose(self) -> None:
        """Close the kept connections, each in the loop it belongs to; a loop that stands still does so as it ends."""
        here = asyncio.get_running_loop()
        kept, self._kept = self._kept, {}
        for loop, one in kept.items():
            if loop is here:
                await one.life.aclose()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(one.life.aclose(), loop))


class Kept(NamedTuple):
    """The connections of one event loop, the library that made them, and what closes them."""

    session: aiohttp.ClientSession
    lib: Any
    life: AsyncGenerator[tuple[aiohttp.ClientSession, Any], None]


async def _sessions() -> AsyncGenerator[tuple[aiohttp.ClientSession, Any], None]:
    """One session. A loop ends its generators before it ends itself, so that no connection outlives its loop."""
    with extra("an HTTP hook", "http"):
        import aiohttp
    no_limit = aiohttp.ClientTimeout(total=None)  # the engine's own timer is the limit
    async with aiohttp.ClientSession(timeout=no_limit, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session, aiohttp


async def _answer(session: aiohttp.ClientSession, url: Any, body: bytes, headers: Headers) -> tuple[int, bytes]:
    response = await session.post(url, data=body, headers=headers, allow_redirects=False)
    try:
        return response.status, await _bounded(response)
    except BaseException:  # the connection still has the rest to bring: it cannot be used again
        response.close()
        raise


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, unless it is larger than any answer has a reason to be."""
    plain = "Content-Encoding" not in response.headers
    if plain and response.content_length is not None and response.content_length <= MOST_BYTES:
        return await response.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HookFailed(f"got more than {MOST_BYTES:,} bytes from {response.url}", exit_code=response.status)
    return bytes(body)


def check_url(action: Http) -> None:
    """Refuse what is not http(s), and what the settings' allow-list does not name."""
    if not _is_http(action.url):
        raise HookFailed(f"cannot ask `{action.url}`: it is not an http or https address")
    if action.allowed_urls is not None and not admits(action.allowed_urls, action.url):
        raise HookFailed(f"may not ask `{action.url}`: add it to allowedHttpHookUrls to use it")


@lru_cache
def _address(url: str) -> Any:
    """The address, taken apart as aiohttp wants it."""
    from yarl import URL

    return URL(url)


@lru_cache
def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _body(action: Http, event: Event) -> bytes:
    """What is sent: the event, or the hook's own body with the event's fields filled in."""
    if action.body is None:
        return claude.encode_event(event)
    return claude.encoded(filled_in(action.body, claude.event_object(event))).encode()


def _headers(action: Http, env: Mapping[str, str]) -> Headers:
    if not action.headers:
        return _HEADERS
    return _HEADERS | {name: filled(value, action.allowed_env, env) for name, value in action.headers.items()}


def filled(text: str, allowed: tuple[str, ...], env: Mapping[str, str]) -> str:
    """A header with `$NAME` and `${NAME}` replaced; names that are not allowed become nothing."""
    return fill(text, lambda name: env.get(name, "") if name in allowed else "", EITHER)


def _reply(text: str, hook: Hook, event: Event, status: int) -> Reply | None:
    if not text.strip():
        return None
    try:
        if hook.fails_closed(event):
            check_object(read_object(text) or {}, event.event_name)
        return claude.decode_reply(text, event)
    except ReplyError as problem:
        raise HookFailed(f"{problem}; it answered: {text[:MOST_TOLD]}", exit_code=status, stdout=text) from None
