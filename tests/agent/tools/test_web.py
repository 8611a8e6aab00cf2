"""Pages and searches, against real sockets; what a host was permitted for stays with that host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.agent.messages import Assistant, User
from hookline.agent.models.base import ModelRequest
from hookline.agent.models.openai import OpenAI
from hookline.agent.models.scripted import Scripted
from hookline.agent.tools import ToolEnv, ToolResult, default_tools
from hookline.agent.tools import web as web_tools
from hookline.agent.tools.web import html_text
from hookline.events import PreToolUse
from hookline.guards.permissions import read_rules
from tests.agent.driving import agent_on, requests_of, results
from tests.agent.tools.hosting import hosted

FETCH, SEARCH = default_tools()["WebFetch"], default_tools()["WebSearch"]
PAGE = "<html><head><title>t</title><script>bad()</script></head><body><h1>Prices</h1><p>It costs <b>5</b>.</p></body>"
Pages = dict[str, tuple[int, dict[str, str], bytes]]


@asynccontextmanager
async def site(pages: Pages) -> AsyncIterator[str]:
    """A web server on the loopback; its address."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        status, headers, body = pages[path]
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def html(text: str = PAGE) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "text/html; charset=utf-8"}, text.encode()


def asking(env: ToolEnv, *turns: Any) -> tuple[ToolEnv, list[ModelRequest]]:
    """A session whose model says `turns` to what tools ask it, and what they asked."""
    model = Scripted.of(*turns)

    async def ask_model(request: ModelRequest, *, small: bool) -> Assistant:
        return await model.respond(request)

    return hosted(env, ask_model=ask_model), model.requests


async def call(tool: Any, env: ToolEnv, **given: Any) -> ToolResult:
    valid = tool.validate(given)
    why_not = await tool.check(valid, env)
    assert why_not is None, why_not
    done: ToolResult = await tool.run(valid, env)
    return done


async def test_a_page_is_read_as_text_and_the_model_answers_about_it(env: ToolEnv) -> None:
    """What it was asked is the page without its scripts, and the prompt."""
    env, asked = asking(env, "five")
    async with site({"/p": html()}) as url:
        done = await call(FETCH, env, url=f"{url}/p", prompt="what does it cost?")

    assert (done.content, done.response["result"], done.response["code"]) == ("five", "five", 200)
    (user,) = asked[0].messages
    assert isinstance(user, User)
    assert "# Prices\n\nIt costs 5." in user.text
    assert "what does it cost?" in user.text
    assert "bad()" not in user.text


async def test_a_redirect_within_the_host_is_followed_and_another_one_told(env: ToolEnv) -> None:
    """Permission was given for a host; the model may ask for the other one."""
    env, _ = asking(env, "answer")
    async with site({"/a": (302, {"location": "/b"}, b""), "/b": html()}) as url:
        assert (await call(FETCH, env, url=f"{url}/a", prompt="x")).content == "answer"
    async with site({"/a": (301, {"location": "https://other.example/c"}, b"")}) as url:
        done = await call(FETCH, env, url=f"{url}/a", prompt="why?")

    assert "REDIRECT DETECTED" in str(done.content)
    assert "https://other.example/c" in str(done.content)
    assert (done.response["code"], done.is_error) == (301, False)


@pytest.mark.parametrize("old, new, same", [
    ("https://a.example/x", "https://www.a.example/y", True), ("https://a.example/", "https://a.example.evil/", False),
    ("https://a.example/", "http://a.example/", False), ("http://a.example/", "https://a.example/", True),
    ("https://a.example/", "https://a.example:8443/", False), ("https://a.example/", "https://u@a.example/", False),
    ("https://a.example/", "file:///etc/passwd", False), ("https://a.example/", "https://b.a.example/", False),
])  # fmt: skip
def test_a_redirect_stays_with_its_host(old: str, new: str, *, same: bool) -> None:
    """`www.` is the same; a name below, another port or less security is not."""
    assert web_tools._same_host(old, new) is same


async def test_pages_that_cannot_be_read_say_why(env: ToolEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors, pictures, pages without an end, redirects in a circle, nobody there."""
    env, asked = asking(env, "never")
    monkeypatch.setattr(web_tools, "MOST_BYTES", 1000)
    pages: Pages = {
        "/gone": (404, {}, b"no"), "/picture": (200, {"content-type": "image/png"}, b"\x89PNG"),
        "/long": html("x" * 2000), "/circle": (302, {"location": "/circle"}, b""),
    }  # fmt: skip
    async with site(pages) as url:
        told = [str((await call(FETCH, env, url=url + path, prompt="x")).content) for path in pages]
    done = await call(FETCH, env, url=url + "/gone", prompt="x")

    words = ["status 404", "is image/png of 4 bytes", "is longer than", "more than 10 redirects"]
    assert [word in text for word, text in zip(words, told, strict=True)] == [True] * 4
    assert (done.is_error, asked) == (True, [])


@pytest.mark.parametrize("url", [
    "ftp://a.example/", "a.example", "https://user:pass@a.example/", "https://a.example\\@b.example/", "https:///x",
    "https://a.example/" + "x" * 2000, "https://a.example/a b", "file:///etc/passwd",
])  # fmt: skip
async def test_an_address_that_could_be_read_in_two_ways_is_refused(env: ToolEnv, url: str) -> None:
    """Before any hook or rule has to guess its host."""
    assert "Invalid URL" in str(await FETCH.check({"url": url, "prompt": "x"}, env))


@pytest.mark.parametrize("address, by_name, by_number", [
    ("93.184.216.34", True, True), ("127.0.0.1", False, True), ("10.1.2.3", False, True), ("::1", False, True),
    ("fd00::1", False, True), ("::ffff:10.0.0.1", False, True), ("100.64.0.1", False, True),
    ("169.254.169.254", False, False), ("fe80::1%eth0", False, False), ("0.0.0.0", False, False),
    ("224.0.0.1", False, False),
])  # fmt: skip
def test_a_public_name_does_not_lead_to_a_private_address(address: str, *, by_name: bool, by_number: bool) -> None:
    """One that was permitted as such is asked; those of a cloud's own services never are."""
    assert (web_tools._not_to_be_asked(address, private=False) is None) is by_name
    assert (web_tools._not_to_be_asked(address, private=True) is None) is by_number


async def test_a_name_is_looked_up_once_and_all_its_addresses_count(
    env: ToolEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with one private address among public ones is not asked."""

    async def answers(*_: Any, **__: Any) -> Any:
        return [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", ("127.0.0.1", 443))]

    for variable in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answers)
    done = await call(FETCH, env, url="https://rebind.example/", prompt="x")

    assert done.is_error
    assert "rebind.example leads to 127.0.0.1, a private address" in str(done.content)


async def test_web_fetch_passes_hooks_and_rules_like_every_tool(tmp_path: Path) -> None:
    """Nobody to ask means no; a rule for the domain allows; a hook that denies wins."""
    hooks = Hooks()

    @hooks.on(PreToolUse, match="WebFetch")
    async def gate(event: PreToolUse) -> Any:
        return deny("not there") if event.tool_input["url"].endswith("/secret") else None

    async with site({"/p": html(), "/secret": html()}) as url:
        turn = [{"tools": [["WebFetch", {"url": url + path, "prompt": "price?"}]]} for path in ("/p", "/secret")]
        seen = []
        for allowed in ([], ["WebFetch(domain:127.0.0.1)"]):
            rules = read_rules({}, allowed=allowed)
            lanes = {"page": {"first": "^Web page content", "turns": [{"text": "five"}]}}
            async with agent_on(tmp_path, *turn, "done", hooks=hooks, rules=rules, lanes=lanes) as agent:
                await agent.run("go")
                seen.append([str(one.content) for one in results(requests_of(agent)[-1])])

    asked, permitted = seen
    assert "permission" in asked[0].lower()
    assert permitted[0] == "five"
    assert all("not there" in told for told in (asked[1], permitted[1]))


# -- searching -----------------------------------------------------------------------------------------------------

FOUND: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1",
     "content": [{"type": "web_search_result", "title": "T", "url": "https://t.example/", "encrypted_content": "…"}]},
    {"type": "text", "text": "It is so."},
]  # fmt: skip


async def test_a_search_is_the_servers_own(env: ToolEnv) -> None:
    """The request names the server's tool with the domains; links and words come back."""
    env, asked = asking(env, {"blocks": FOUND})
    done = await call(SEARCH, env, query="is it so?", allowed_domains=["t.example"])

    (tool,) = asked[0].server_tools
    assert (tool["name"], tool["allowed_domains"], "blocked_domains" in tool) == ("web_search", ["t.example"], False)
    links = {"tool_use_id": "s1", "content": [{"title": "T", "url": "https://t.example/"}]}
    assert done.response["results"] == [links, "It is so."]
    assert json.dumps(links["content"], separators=(",", ":")) in str(done.content)


async def test_a_server_that_does_not_search_is_told(env: ToolEnv) -> None:
    """A model that answers from memory has not searched; one whose server has no such tool says so."""
    remembering, _ = asking(env, "I think so")
    done = await call(SEARCH, remembering, query="is it so?")
    model = OpenAI("gpt-x", api_key="k", base_url="http://127.0.0.1:1")

    async def ask_model(request: ModelRequest, *, small: bool) -> Assistant:
        return await model.respond(request)

    other = await call(SEARCH, hosted(env, ask_model=ask_model), query="is it so?")

    assert (done.is_error, other.is_error) == (True, True)
    assert "did not search" in str(done.content)
    assert "gpt-x`: its server has no `web_search` of its own" in str(other.content)


async def test_a_search_has_one_list_of_domains(env: ToolEnv) -> None:
    """As the server wants it."""
    given = SEARCH.validate({"query": "xy", "allowed_domains": ["a"], "blocked_domains": ["b"]})

    assert "Cannot specify both" in str(await SEARCH.check(given, env))


# -- text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page, text", [
    ("<p>a</p><p>b</p>", "a\n\nb"), ("<h2>t</h2>x", "## t\n\nx"), ("<ul><li>a<li>b</ul>", "- a\n- b"),
    ("<pre>a\n  b</pre>", "```\na\n  b\n```"), ("<p>use <code>x</code></p>", "use `x`"),
    ('<a href="/p">more</a>', "[more](https://h.example/p)"), ('<a href="javascript:x">no</a>', "no"),
    ("<style>p{}</style>a<script>b</script>c", "ac"), ("a &amp; b &#8364;", "a & b €"), ("<b>open", "open"),
    ("<table><tr><td>1<td>2</table>", "| 1 | 2"), ('<img alt="a cat">', "[image: a cat]"), ("", ""),
    ("<template><p>no</p></template>yes", "yes"), ("</p></div>x", "x"), ("<svg><title>no</title></svg>x", "x"),
])  # fmt: skip
def test_html_is_read_as_text(page: str, text: str) -> None:
    """What a reader sees, however careless the page."""
    assert html_text(page, "https://h.example/") == text


HOSTILE = [
    "<!" * 400_000, "<a href=x>a" * 200_000 + "</a>" * 200_000, "<!--" * 300_000, "<p " * 400_000, "&" * 1_000_000,
    "<div>" * 200_000, "</" * 400_000, "<![CDATA[" * 100_000, "\n " * 500_000 + "x", "<script>" * 200_000,
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", HOSTILE, ids=range(len(HOSTILE)))
def test_a_page_made_to_keep_a_parser_busy_comes_to_an_end(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left of it."""
    monkeypatch.setattr(web_tools, "LONGEST_READING", 0.2)
    assert isinstance(html_text(page, "https://h.example/"), str)


def test_a_long_page_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are not seen in the text."""
    monkeypatch.setattr(web_tools, "LONGEST_READING", 300.0)
    words = [f"word{number}" for number in range(20_000)]

    assert html_text(f"<p>{' '.join(words)}</p>").split() == words
