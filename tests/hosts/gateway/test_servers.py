"""Real servers from PyPI and npm behind the gateway, driven by the official client in both protocol eras.

`python -m tools.frameworks mcp-servers` and `make node` install them; one that is missing is skipped by name.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.gateway.pins import signs
from tests.hosts.gateway.driver import Person, bare, gateway, text
from tests.hosts.gateway.test_listen import listening
from tools.frameworks import ROOT, python_of

pytest.importorskip("mcp_types", reason="needs version 2 of the official MCP SDK")
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

NODE = ROOT / ".cache" / "node" / "node_modules" / "@modelcontextprotocol"
ERAS = ("legacy", "auto")
MARKED = {"time": "timezone", "git": "repo_path", "fetch": "url", "filesystem": "path", "everything": "message"}
"""The argument of the call into which a word for the hooks is put."""


def python(module: str, *more: str) -> list[str]:
    return [str(python_of("mcp-servers")), "-m", module, *more]


def node(package: str, *more: str) -> list[str]:
    return [shutil.which("node") or "node", str(NODE / package / "dist" / "index.js"), *more]


def servers(folder: Path) -> dict[str, tuple[list[str], str, dict[str, Any]]]:
    """Each server's command, and a tool with arguments that it can be called with."""
    return {
        "time": (python("mcp_server_time"), "get_current_time", {"timezone": "Europe/Paris"}),
        "git": (python("mcp_server_git"), "git_status", {"repo_path": str(folder)}),
        "fetch": (python("mcp_server_fetch", "--ignore-robots-txt"), "fetch", {"url": "http://127.0.0.1:9/"}),
        "filesystem": (node("server-filesystem", str(folder)), "list_directory", {"path": str(folder)}),
        "everything": (node("server-everything"), "echo", {"message": "hello"}),
    }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@asynccontextmanager
async def behind(way: str, home: Path, command: list[str], era: Any, **more: Any) -> AsyncIterator[Client]:
    """The official client in front of the gateway, on stdio or at the gateway's address, in front of the server."""
    if way == "stdio":
        async with Client(gateway(home, command), mode=era, **more) as client:
            yield client
        return
    with listening(home, "--", *command) as (address, headers):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http), mode=era, **more) as client,
        ):
            yield client


async def cells(name: str, era: Any, way: str, home: Path, folder: Path) -> AsyncIterator[tuple[str, bool]]:
    """Each thing that holds for a server behind the gateway, and whether it does."""
    command, tool, arguments = servers(folder)[name]

    def with_word(word: str) -> dict[str, Any]:
        return {**arguments, MARKED[name]: word}

    async with Client(bare(command), mode=era) as client:
        offered = (await client.list_tools()).tools
        plain = [client.protocol_version, sorted(one.name for one in offered)]
        direct = await client.call_tool(tool, arguments)
    yield "no description is warned about", not [one.name for one in offered if signs(one.model_dump())]
    person = Person()
    async with behind(way, home, command, era, elicitation_callback=person) as client:
        listed = sorted(one.name for one in (await client.list_tools()).tools)
        yield "the same version", client.protocol_version == plain[0]
        yield "the same tools", set(plain[1]) <= set(listed)
        allowed = await client.call_tool(tool, arguments)
        yield "allow", allowed.is_error == direct.is_error and text(allowed)[:20] == text(direct)[:20]
        denied = await client.call_tool(tool, with_word("DENY"))
        yield "deny", denied.is_error and "not this one" in text(denied)
        failed = await client.call_tool(tool, with_word("RAISE"))
        yield "a hook that raises", failed.is_error and "broken hook" in text(failed)
        noted = await client.call_tool(tool, with_word("NOTE"))
        yield "context", "a note of the house" in text(noted)
        await client.call_tool(tool, with_word("ASK"))
        yield "ask, yes", len(person.asked) == 1
        person.approves = False
        refused = await client.call_tool(tool, with_word("ASK"))
        yield "ask, no", refused.is_error and "was not approved" in text(refused) and len(person.asked) == 2
        words = ("DENY", "a", "DENY", "b")
        many = await asyncio.gather(*(client.call_tool(tool, with_word(word)) for word in words))
        yield "at once", ["not this one" in text(one) for one in many] == [True, False, True, False]
    async with behind(way, home, command, era) as client:
        refused = await client.call_tool(tool, with_word("ASK"))
        yield "ask without elicitation", refused.is_error and "no way to ask" in text(refused)
        again = await client.call_tool(tool, arguments)
        yield "pinned, a call without a list", again.is_error == direct.is_error
    alter(home / "state" / "hookline" / "mcp" / "s.json", tool)
    async with behind(way, home, command, era) as client:
        yield "a changed tool is hidden", tool not in [one.name for one in (await client.list_tools()).tools]
        refused = await client.call_tool(tool, arguments)
        yield "a changed tool is refused", refused.is_error and "changed since it was pinned" in text(refused)


def alter(pins: Path, tool: str) -> None:
    """Pin another definition of a tool: what the server offers is a change now."""
    from hookline.hosts.gateway.pins import PinFile

    file = PinFile("s", pins.parent, list)
    definitions = file.read()
    assert definitions is not None
    definitions.pinned[tool] = {**definitions.pinned[tool], "description": "something else"}
    file.write(definitions, "ToolsPinned", [tool])


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", MARKED)
def test_what_holds_for_our_hooks_holds_for_real_servers(
    name: str, era: str, way: str, tmp_path: Path, repository: Path
) -> None:
    """The table of cells: every server, both eras, stdio and HTTP, every kind of reply, pins and a changed tool."""
    program = servers(repository)[name][0]
    if not all(Path(word).exists() for word in program[:2] if "/" in word):
        pytest.skip(f"{name} is not installed; run `make frameworks node`")

    async def play() -> list[str]:
        return [what async for what, holds in cells(name, era, way, tmp_path, repository) if not holds]

    assert asyncio.run(asyncio.wait_for(play(), 120)) == []
