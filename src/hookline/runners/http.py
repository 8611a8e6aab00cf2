"""HTTP endpoints as hooks: the event is POSTed, the JSON that comes back is the answer (FACTS §8)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hookline.engine import Context, Ran
from hookline.errors import HookFailed, MissingExtra, ReplyError
from hookline.events import Event
from hookline.hooks.actions import Http
from hookline.hooks.hook import Hook
from hookline.replies import Reply
from hookline.wire import claude

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 10 * 1024 * 1024
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class HttpRunner:
    """POSTs events over connections that are kept; redirects are never followed."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, hook: Hook, event: Event, ctx: Context) -> Ran:
        """Ask the endpoint once; anything but a 2xx with a JSON object, or nothing, is a failure."""
        action = hook.action
        assert isinstance(action, Http)
        check_url(action)
        status, body = await self._posted(action, claude.encode_event(event), ctx.env)
        text = body.decode("utf-8", "replace")
        if not 200 <= status < 300:
            raise HookFailed(f"{action.url} answered {status}{_hint(status)}", exit_code=status, stdout=text)
        return Ran(reply=_reply(text, event, status), exit_code=status, stdout=text)

    async def _posted(self, action: Http, body: bytes, env: Mapping[str, str]) -> tuple[int, bytes]:
        import aiohttp

        headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain, */*"}
        headers |= {name: filled(value, action.allowed_env, env) for name, value in action.headers.items()}
        session = self._session_of_this_loop()
        try:
            async with session.post(action.url, data=body, headers=headers, allow_redirects=False) as response:
                return response.status, await _bounded(response)
        except aiohttp.ClientError as problem:
            raise HookFailed(f"{action.url} cannot be reached: {problem}") from None
        except (OSError, ValueError) as problem:
            raise HookFailed(f"{action.url}: {problem}") from None

    def _session_of_this_loop(self) -> aiohttp.ClientSession:
        try:
            import aiohttp
        except ImportError:
            raise MissingExtra("an HTTP hook", "http") from None
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            no_limit = aiohttp.ClientTimeout(total=None)  # the engine's own timer is the limit
            self._session = aiohttp.ClientSession(timeout=no_limit, cookie_jar=aiohttp.DummyCookieJar())
            self._loop = loop
        return self._session

    async def aclose(self) -> None:
        """Close the kept connections."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, unless it is larger than any answer has a reason to be."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            response.close()
            raise HookFailed(f"{response.url} sent more than {MOST_BYTES:,} bytes", exit_code=response.status)
    return bytes(body)


def check_url(action: Http) -> None:
    """Refuse what is not http(s), and what the settings' allow-list does not name."""
    parts = urlsplit(action.url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise HookFailed(f"`{action.url}` is not an http or https address")
    if action.allowed_urls is not None and not any(fnmatchcase(action.url, allowed) for allowed in action.allowed_urls):
        raise HookFailed(f"`{action.url}` is not among allowedHttpHookUrls; add it there to use it")


def filled(text: str, allowed: tuple[str, ...], env: Mapping[str, str]) -> str:
    """A header with `$NAME` and `${NAME}` replaced; names that are not allowed become nothing."""

    def value(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        return env.get(name, "") if name in allowed else ""

    return _VARIABLE.sub(value, text)


def _reply(text: str, event: Event, status: int) -> Reply | None:
    if not text.strip():
        return None
    try:
        return claude.decode_reply(text, event)
    except ReplyError as problem:
        raise HookFailed(str(problem), exit_code=status, stdout=text) from None


def _hint(status: int) -> str:
    return "; redirects are not followed, give the final address" if 300 <= status < 400 else ""
