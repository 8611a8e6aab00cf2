"""WebFetch and WebSearch: a page of the web, answered about by the model, and the search of the model's own server.

Permission is given to a host, so nothing leads from it to another one: a redirect elsewhere is told and not followed,
and a public name that leads to a private address is not asked. A host that is private by its own name or number
(`localhost`, `10.0.0.5`) is asked like any other, once that is permitted; the addresses behind which clouds keep their
secrets never are.
"""

import asyncio
import ipaddress
import re
import socket
import time
from contextlib import aclosing, suppress
from html.parser import HTMLParser
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import msgspec
from msgspec import Struct

from hookline.agent.hook_messages import TEXTS
from hookline.agent.http_client import HttpClient, read_body
from hookline.agent.messages import Raw, Text, User
from hookline.agent.models.base import ModelRequest
from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure
from hookline.errors import HooklineError, ModelError
from hookline.runners.http import address_of

if TYPE_CHECKING:
    import httpx2

MOST_URL = 2000
MOST_BYTES = 10 << 20
MOST_TEXT = 100_000
LONGEST_FETCH, MOST_REDIRECTS = 60.0, 10  # seconds for a page with all its redirects, and how many of those
REDIRECTS = (301, 302, 303, 307, 308)
READABLE = ("text/", "application/json", "application/xml", "application/javascript", "application/x-yaml")
HEADERS = {"accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, */*;q=0.5", "user-agent": "hookline (agent)"}


class WebFetch(Tool):
    """Fetch a page of the web and answer a question about its content.

    http becomes https; a redirect to another host is told to you and not followed.
    """

    concurrency_safe = True

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """The address must be one that everybody reads the same way."""
        url = given["url"]
        return TEXTS["invalid_url"] if len(url) > MOST_URL or address_of(url) is None else None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        url, prompt = given["url"], given["prompt"]
        problem = await self.check(given, env)  # a hook may have changed the input
        if problem:
            return failure(problem)
        started = time.monotonic()
        try:
            async with asyncio.timeout(LONGEST_FETCH):
                page = await fetch(url)
        except TimeoutError:
            return failure(f"{url} did not arrive within {LONGEST_FETCH:g} s")
        except (OSError, ValueError) as error:
            return failure(f"cannot fetch {url}: {error}")
        except HooklineError as problem:
            return failure(str(problem))
        reason = HTTPStatus(page.status).phrase if page.status in list(HTTPStatus) else ""
        answer, size = page.text, page.size
        if page.target:
            answer = TEXTS["elsewhere"].format(
                url=url, target=page.target, status=page.status, reason=reason, prompt=prompt
            )
            size = len(answer)
        else:
            try:
                answer = await _answered(page.text, prompt, env)
            except ModelError as error:
                return failure(f"the page was fetched, and the model could not answer about it: {error}")
        response = {"bytes": size, "code": page.status, "codeText": reason, "result": answer}
        return ToolResult(answer, {**response, "durationMs": round((time.monotonic() - started) * 1000), "url": url})


class WebPage(Struct, frozen=True):
    """A page as text, or where it is now."""

    status: int
    size: int = 0
    text: str = ""
    target: str = ""


async def fetch(url: str) -> WebPage:
    """The page, after redirects within its host; raises `OSError`, `ValueError`, and `HooklineError` for no text."""
    parts, asked = urlsplit(url), url
    # https in place of http, unless the host is private by name: such hosts have no certificate
    if parts.scheme == "http" and parts.port is None and not _private_by_name(parts.hostname or ""):
        asked = urlunsplit(parts._replace(scheme="https"))
    for _ in range(MOST_REDIRECTS + 1):
        client = HttpClient(to_read=LONGEST_FETCH, address=await _looked_up(asked))
        async with aclosing(client), client.exchange("GET", asked, HEADERS) as answer:
            target = answer.headers.get("location") if answer.status_code in REDIRECTS else None
            if target is None:
                return await _page(asked, answer)
            target = urljoin(asked, target)
            if not _same_host(asked, target):
                return WebPage(answer.status_code, target=target)
            asked = target
    raise ValueError(f"more than {MOST_REDIRECTS} redirects")


async def _page(url: str, answer: "httpx2.Response") -> WebPage:
    kind = answer.headers.get("content-type", "text/html").lower()
    body = await read_body(answer, MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise HooklineError(f"{url} is longer than {MOST_BYTES >> 20} MB")
    if answer.status_code >= 400:
        raise HooklineError(f"{url} answered with status {answer.status_code}")
    if not kind.startswith(READABLE) and "+json" not in kind and "+xml" not in kind:
        raise HooklineError(f"{url} is {kind} of {len(body)} bytes, which is not text")
    stated = kind.partition("charset=")[2].partition(";")[0].strip("\"' ") or "utf-8"
    try:
        content = body.decode(stated, "replace")
    except LookupError:
        content = body.decode("utf-8", "replace")
    if "html" in kind:
        content = await asyncio.to_thread(html_text, content, url)
    return WebPage(answer.status_code, len(body), content)


async def _answered(content: str, prompt: str, env: ToolEnv) -> str:
    if len(content) > MOST_TEXT:
        content = f"{content[:MOST_TEXT]}\n\n[the page goes on; the rest was cut off]"
    request = ModelRequest(messages=(User.of(TEXTS["about_page"].format(content=content, prompt=prompt)),))
    said = await env.host.ask_model(request, small=True)
    return content if said is None else said.text or "(the model said nothing about the page)"


def _same_host(url: str, target: str) -> bool:
    """Whether a redirect stays with the host that was permitted; `www.` makes no difference, less security does."""
    old, new = address_of(url), address_of(target)
    if old is None or new is None or (old.scheme, new.scheme) == ("https", "http"):
        return False
    return old.host.removeprefix("www.") == new.host.removeprefix("www.") and (
        old.port == new.port or (old.scheme, new.scheme, new.port) == ("http", "https", 443)
    )


async def _looked_up(url: str) -> str | None:
    """The machine to ask, looked up once, so that it cannot change in between; None lets a proxy do it."""
    place = address_of(url)
    if place is None:
        raise ValueError(TEXTS["invalid_url"])
    proxies = getproxies_environment()
    proxy = proxies.get(place.scheme) or proxies.get("all")
    if proxy and not proxy_bypass_environment(f"{place.host}:{place.port}", proxies):
        return None
    found = await asyncio.get_running_loop().getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    private = _private_by_name(place.host)
    for *_, (address, *_more) in found:
        problem = _not_to_be_asked(str(address), private=private)
        if problem:
            raise ValueError(f"{place.host} leads to {address}, {problem}")
    return str(found[0][4][0])


def _private_by_name(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return not ipaddress.ip_address(host).is_global
    return False


def _not_to_be_asked(address: str, *, private: bool) -> str | None:
    """Why an address is not asked; `private` if the permitted name itself shows that it is."""
    number = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(number, "ipv4_mapped", None) or number
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        return "an address that is not asked"
    return None if inner.is_global or private else "a private address; permit that one itself to have it asked"


MOST_SEARCHES = 8


class WebSearch(Tool):
    """Search the web; what was found, with links. Name the links you used as sources in your answer."""

    concurrency_safe = True

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """One list of domains at most: the server takes no more."""
        if given.get("allowed_domains") and given.get("blocked_domains"):
            return "Cannot specify both allowed_domains and blocked_domains in the same request"
        return None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        problem = await self.check(given, env)
        if problem:
            return failure(problem)
        query, started = given["query"], time.monotonic()
        limits = {name: given[name] for name in ("allowed_domains", "blocked_domains") if given.get(name)}
        tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": MOST_SEARCHES, **limits}
        prompt = User.of(f"Perform a web search for the query: {query}")
        request = ModelRequest(messages=(prompt,), system=(TEXTS["searching"],), server_tools=(tool,))
        try:
            said = await env.host.ask_model(request, small=False)
        except ModelError as error:
            return failure(f"web search is not available: {error}")
        if said is None:
            return failure("web search is not available here")
        found = [one for block in said.content if (one := _found(block)) is not None]
        if not any(isinstance(one, dict) for one in found):
            return failure("web search is not available: the model's server did not search")
        shown = "\n\n".join(one if isinstance(one, str) else _links(one) for one in found)
        response = {"query": query, "results": found, "durationSeconds": round(time.monotonic() - started, 3)}
        return ToolResult(f'Web search results for query: "{query}"\n\n{shown}', response)


def _found(block: Any) -> str | dict[str, Any] | None:
    """What a block of the answer says: words, or links, or why there are none."""
    if isinstance(block, Text):
        return block.text.strip() or None
    if not isinstance(block, Raw) or block.value.get("type") != "web_search_tool_result":
        return None
    content = block.value.get("content")
    if isinstance(content, list):
        links = [{"title": one.get("title"), "url": one.get("url")} for one in content if isinstance(one, dict)]
        return {"tool_use_id": block.value.get("tool_use_id"), "content": links}
    code = content.get("error_code") if isinstance(content, dict) else None
    return f"Web search error: {code or 'unknown'}"


def _links(found: dict[str, Any]) -> str:
    return f"Links: {msgspec.json.encode(found['content']).decode()}" if found["content"] else "No links found."


# -- HTML as text that a model can read: headings, paragraphs, lists, links and code stay recognisable

UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "head"})
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "dd", "div", "dl", "dt", "fieldset", "figure", "footer",
    "form", "header", "hr", "main", "nav", "ol", "p", "section", "table", "tbody", "thead", "tr", "ul",
})  # fmt: skip
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
#: what stands for the beginning of an element, and for its end
OPENING = {**dict.fromkeys(BLOCKS, "\n\n"), **{tag: f"\n\n{marks}" for tag, marks in HEADINGS.items()},
           "pre": "\n\n```\n", "br": "\n", "li": "\n- ", "td": " | ", "th": " | "}  # fmt: skip
CLOSING = {**dict.fromkeys((*BLOCKS, *HEADINGS), "\n\n"), "pre": "\n```\n\n"}
PIECE, LONGEST_READING = 1 << 14, 5.0  # characters that the parser is given at a time, and seconds for a whole page
SPACES = re.compile(r"[ \t\r\n\f\v]+")
GAPS = re.compile(r"\n[ \n]*\n\s*")


def html_text(page: str, base: str = "") -> str:
    """What a reader of the page sees, in Markdown's spelling; links are absolute with `base`.

    A page made to keep a parser busy is read as far as it goes in a few seconds: tags that never end are looked through
    again with every piece.
    """
    reader = _PageReader(base)
    deadline = time.monotonic() + LONGEST_READING
    for at in range(0, len(page), PIECE):
        reader.feed(page[at : at + PIECE])
        if time.monotonic() > deadline:
            break
    if len(reader.rawdata) <= PIECE:
        reader.close()
    return reader.text()


class _PageReader(HTMLParser):
    """Collects what is shown, piece by piece."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._pieces: list[str] = []
        self._unseen: list[str] = []
        self._pre = 0
        self._links: list[tuple[str, int]] = []

    def text(self) -> str:
        return GAPS.sub("\n\n", "".join(self._pieces)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen.append(tag)
        if self._unseen:
            return
        self._pre += tag == "pre"
        self._pieces.append("`" if tag == "code" and not self._pre else OPENING.get(tag, ""))
        given = dict(attrs)
        if tag == "img" and given.get("alt"):
            self._pieces.append(f"[image: {given['alt']}]")
        elif tag == "a":
            self._links = [(given.get("href") or "", len(self._pieces))]  # one within another is none

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            while self._unseen.pop() != tag:
                pass
        elif not self._unseen and (tag != "pre" or self._pre):
            self._pieces.append("`" if tag == "code" and not self._pre else CLOSING.get(tag, ""))
            self._pre -= tag == "pre"
            if tag == "a" and self._links:
                self._end_link(*self._links.pop())

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._pieces.append(data if self._pre else SPACES.sub(" ", data))

    def _end_link(self, href: str, since: int) -> None:
        words = "".join(self._pieces[since:]).strip()
        if not href or href.startswith(("#", "javascript:", "data:")) or not words or "\n" in words:
            return
        with suppress(ValueError):
            self._pieces[since:] = [f"[{words}]({urljoin(self._base, href)})"]
