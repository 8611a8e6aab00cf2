"""HTTP endpoints as hooks: the event is POSTed, the JSON that comes back is the answer (FACTS.md §8)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from hookline.core.engine import Context, RunnerResult
from hookline.core.globs import name_expression
from hookline.core.hooks.hook import Hook, Http
from hookline.core.placeholders import EITHER, fill
from hookline.core.wire import claude
from hookline.core.wire.strict import check_json
from hookline.errors import HookFailed, ReplyError, extra
from hookline.events import Event
from hookline.processes.loop import PerLoop
from hookline.replies import Reply
from hookline.runners.prompt import filled as filled_in

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 10 * 1024 * 1024
MOST_TOLD = 2000  # characters of an unreadable answer that are told with the failure
Headers = dict[str, str]
_HEADERS: Headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain, */*"}


class HttpRunner:
    """POSTs events over connections that are kept; redirects are never followed."""

    def __init__(self) -> None:
        self._sessions: PerLoop[aiohttp.ClientSession] = PerLoop(_session)

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult:
        """Ask the endpoint once; anything but a 2xx with a JSON object, or nothing, is a failure."""
        action = hook.action
        assert isinstance(action, Http)
        check_url(action)
        if action.body is None:
            sent = claude.encode_event(event)
        else:  # the hook's own, with the event's fields filled in
            sent = claude.encoded(filled_in(action.body, claude.event_object(event))).encode()
        status, body = await self._posted(action, sent, ctx.env)
        text = body.decode("utf-8", "replace")
        if not 200 <= status < 300:
            hint = "; redirects are not followed, give the final address" if 300 <= status < 400 else ""
            raise HookFailed(f"got {status} from {action.url}{hint}", exit_code=status, stdout=text)
        reply = _reply(text, hook, event, status) if action.body is None else None
        return RunnerResult(reply=reply, exit_code=status, stdout=text)

    async def _posted(self, action: Http, body: bytes, env: Mapping[str, str]) -> tuple[int, bytes]:
        session, url, allowed = await self._sessions.get(), action.url, action.allowed_env
        import aiohttp  # as the session did

        headers = {name: filled(value, allowed, env) for name, value in action.headers.items()} or None
        try:
            try:
                return await _answer(session, url, body, headers)
            except aiohttp.ClientConnectorError as problem:
                raise HookFailed(f"cannot reach {url}: {problem.strerror or problem.os_error}") from None
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):  # it hung up as we used it
                return await _answer(session, url, body, headers)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise HookFailed(f"got no answer from {url}: {str(problem) or type(problem).__name__}") from None

    async def aclose(self) -> None:
        await self._sessions.aclose()


async def _session() -> AsyncGenerator[aiohttp.ClientSession, None]:
    with extra("an HTTP hook", "http"):
        import aiohttp
    no_limit = aiohttp.ClientTimeout(total=None)  # the engine's own timer is the limit
    no_cookies = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(headers=_HEADERS, timeout=no_limit, cookie_jar=no_cookies) as session:
        yield session


async def _answer(session: aiohttp.ClientSession, url: str, body: bytes, headers: Headers | None) -> tuple[int, bytes]:
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
    try:
        parts = urlsplit(action.url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not parts.netloc:
        raise HookFailed(f"cannot ask `{action.url}`: it is not an http or https address")
    if action.allowed_urls is not None and not admits(action.allowed_urls, action.url):
        raise HookFailed(f"may not ask `{action.url}`: add it to allowedHttpHookUrls to use it")


def filled(text: str, allowed: tuple[str, ...], env: Mapping[str, str]) -> str:
    """A header with `$NAME` and `${NAME}` replaced; names that are not allowed become nothing."""
    return fill(text, lambda name: env.get(name, "") if name in allowed else "", EITHER)


def _reply(text: str, hook: Hook, event: Event, status: int) -> Reply | None:
    if not text.strip():
        return None
    try:
        if hook.fails_closed(event):
            check_json(text, event.event_name)
        return claude.decode_reply(text, event)
    except ReplyError as problem:
        raise HookFailed(f"{problem}; it answered: {text[:MOST_TOLD]}", exit_code=status, stdout=text) from None


# -- which addresses a list such as `allowedHttpHookUrls` admits ------------------------------------------------------
# Hosts are compared as hosts, not as text. In `https://*.corp.example/*` the first star stands for names of machines,
# the second for a path; neither reaches across the slash between them. Whatever two readers could take for different
# hosts is not admitted at all.

_PORTS = {"http": 80, "https": 443}
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f-\xa0\\]|\s")
_PATTERN = re.compile(r"(?:(\*|https?)://)?(\[[^]/]*\]|[^/:?#]*)(?::(\*|\d+))?([/?].*)?", re.IGNORECASE | re.DOTALL)


class Address(NamedTuple):
    """An address taken apart."""

    scheme: str
    host: str
    port: int
    path: str


def admits(patterns: Iterable[str], url: str) -> bool:
    """Whether one of the patterns admits the address."""
    address = address_of(url)
    return address is not None and any(_pattern(text)(address) for text in patterns)


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
def _pattern(text: str) -> Callable[[Address], bool]:
    """Whether an entry of the list admits an address; one whose host cannot be told admits none."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None or "@" in found[2]:
        return lambda _: False
    scheme, host, port, path = found.groups()
    open_end = path is None and text.strip().endswith("*")
    if open_end and port is None:
        host, port = host.rstrip("*") or "*", "*"
    try:
        name = _host(host.strip("[]"))
    except ValueError:
        return lambda _: False
    way = name_expression("*" if open_end else path or "/")

    def fits(address: Address) -> bool:
        wanted = _PORTS[address.scheme] if port is None else address.port if port == "*" else int(port)
        return (
            (scheme in (None, "*") or scheme.lower() == address.scheme)
            and address.port == wanted
            and (host == "*" or _host_fits(name, address.host))
            and way.fullmatch(address.path) is not None
        )

    return fits


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
