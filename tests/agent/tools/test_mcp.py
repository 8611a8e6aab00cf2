"""MCP tools, with real servers over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.tools import ToolEnv, ToolResult
from hookline.agent.tools.mcp import McpServer, McpServers, McpTool, ServerConfig, read_config
from hookline.errors import McpError, ToolInputInvalid
from tests.agent.processes import children
from tests.agent.tools.hosting import hosted


@asynccontextmanager
async def connected(**configs: ServerConfig) -> AsyncIterator[tuple[McpServers, dict[str, McpTool]]]:
    servers = McpServers(configs)
    try:
        yield servers, await servers.connect()
    finally:
        await servers.aclose()


def stdio(contract: Path, *args: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=[str(contract / "mcp_server.py"), *args])


def script(*lines: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=["-c", "\n".join(lines)])


async def test_a_servers_tools_are_offered_and_called(contract: Path, env: ToolEnv) -> None:
    """Under `mcp__SERVER__TOOL`, with the server's schema; text and errors come back."""
    async with connected(srv=stdio(contract)) as (servers, tools):
        said = await tools["mcp__srv__echo"].run({"text": "T"}, env)
        failed = await tools["mcp__srv__fail"].run({"text": "BAD"}, env)
        assert servers.statuses() == [{"name": "srv", "status": "connected"}]

    assert sorted(tools) == ["mcp__srv__ask", "mcp__srv__echo", "mcp__srv__fail"]
    assert tools["mcp__srv__echo"].input_schema["properties"] == {"text": {"type": "string"}}
    assert said == ToolResult([{"type": "text", "text": "T"}], [{"type": "text", "text": "T"}])
    assert (failed.is_error, failed.content) == (True, "BAD")


async def test_a_server_can_ask_the_user(contract: Path, env: ToolEnv) -> None:
    """Whoever runs the call answers; with nobody there the question is cancelled."""
    asked: list[tuple[str, dict[str, Any]]] = []

    async def elicit(server: str, request: dict[str, Any]) -> dict[str, Any]:
        asked.append((server, request))
        return {"action": "accept", "content": {"name": "Ada"}}

    async with connected(srv=stdio(contract)) as (_, tools):
        ask = tools["mcp__srv__ask"]
        answered = await ask.run({"text": "x"}, hosted(env, elicit=elicit))
        alone = await ask.run({"text": "x"}, env)

    assert asked[0][0] == "srv"
    assert (asked[0][1]["message"], asked[0][1]["mode"]) == ("Your name?", "form")
    assert '"content": {"name": "Ada"}' in answered.response[0]["text"]
    assert '"action": "cancel"' in alone.response[0]["text"]


async def test_a_server_that_cannot_be_reached_stops_no_other(contract: Path, env: ToolEnv) -> None:
    """Why is kept: no such program, a program that dies (with its last words), nothing to start."""
    configs = {
        "srv": stdio(contract),
        "gone": ServerConfig(command="/no/such/program"),
        "dying": script("import sys", "sys.exit('no licence')"),
        "empty": ServerConfig(),
        "refused": ServerConfig(url="http://127.0.0.1:9/mcp"),
    }
    async with connected(**configs) as (servers, tools):
        said = await tools["mcp__srv__echo"].run({"text": "T"}, env)

    assert not said.is_error
    assert sorted(servers.failures) == ["dying", "empty", "gone", "refused"]
    assert "no licence" in str(servers.failures["dying"])
    assert "No such file" in str(servers.failures["gone"])
    assert "expected a `command` or a `url`" in str(servers.failures["empty"])


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """`MCP_TIMEOUT` (ms) says when; its process is ended."""
    monkeypatch.setenv("MCP_TIMEOUT", "300")
    servers = McpServers({"mute": script("import time", "time.sleep(60)")})
    before = children()

    assert await servers.connect() == {}
    assert "gave no answer within 0.3 s" in str(servers.failures["mute"])
    assert children() <= before


async def test_a_server_that_dies_in_a_call_is_a_result_the_model_reads(env: ToolEnv) -> None:
    """The run goes on; the server's later calls fail too, at once."""
    source = Path(env.cwd, "server.py")
    source.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    msg = json.loads(line)\n"
        "    if msg.get('method') == 'tools/call': os._exit(1)\n"
        "    tools = [{'name': 'die', 'inputSchema': {'type': 'object'}}]\n"
        "    info = {'name': 's', 'version': '1'}\n"
        "    first = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': info}\n"
        "    result = first if msg.get('method') == 'initialize' else {'tools': tools}\n"
        "    if 'id' in msg: print(json.dumps({'jsonrpc': '2.0', 'id': msg['id'], 'result': result}), flush=True)\n"
    )
    async with connected(s=ServerConfig(command=sys.executable, args=[str(source)])) as (_, tools):
        first = await tools["mcp__s__die"].run({}, env)
        second = await tools["mcp__s__die"].run({}, env)

    assert (first.is_error, second.is_error) == (True, True)
    assert "MCP tool die failed" in str(first.content)


async def test_no_process_is_left(contract: Path) -> None:
    """A server we started ends with the session."""
    before = children()
    async with connected(a=stdio(contract), b=stdio(contract)):
        assert len(children() - before) == 2

    assert children() <= before


HTTP_SERVER = """
import socket, sys
import uvicorn
from mcp.server.mcpserver import MCPServer
server = MCPServer("web")
@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> str:
    return str(a + b)
uvicorn.Server(uvicorn.Config(server.streamable_http_app())).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    """A port that nobody else can get before the server listens on it, which takes seconds."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


async def test_a_server_is_reached_over_http(env: ToolEnv, bound: socket.socket) -> None:
    """The official SDK's own server, in another process; what it says of a tool counts."""
    port, fd = bound.getsockname()[1], bound.fileno()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HTTP_SERVER, str(fd), pass_fds=[fd], stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await listening(port, process)
        async with connected(web=ServerConfig(type="http", url=f"http://127.0.0.1:{port}/mcp")) as (servers, tools):
            assert servers.failures == {}
            said = await tools["mcp__web__add"].run({"a": 2, "b": 3}, env)
        assert said.response == [{"type": "text", "text": "5"}]
        assert (tools["mcp__web__add"].read_only, tools["mcp__web__add"].concurrency_safe) == (True, True)
    finally:
        process.kill()
        await process.wait()


async def listening(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until the port answers."""
    async with asyncio.timeout(60):
        while True:
            assert process.returncode is None, "the server died"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def test_a_config_is_json_or_a_file_with_variables_filled_in(tmp_path: Path) -> None:
    """`${VAR}` and `${VAR:-else}`, everywhere."""
    config = {"mcpServers": {"a": {"command": "${BIN:-python}", "args": ["${X}"], "env": {"K": "${X}-${Y:-2}"}}}}
    expected = {"a": ServerConfig(command="python", args=["1"], env={"K": "1-2"})}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(config))

    assert read_config(json.dumps(config), {"X": "1"}) == expected
    assert read_config(str(path), {"X": "1"}) == expected


@pytest.mark.parametrize(
    "source,says",
    [
        ("{", "mcpServers"),
        ("{}x", "mcpServers"),
        ("/no/such/file", "cannot read the file"),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": {"a": {"command": 3}}}', "mcp server `a`: Expected `str`, got `int`"),
        ('{"mcpServers": {"a": 3}}', "mcp server `a`: Expected `object`, got `int`"),
    ],
)
def test_a_broken_config_says_what_is_wrong(source: str, says: str) -> None:
    """The server and the key are named."""
    with pytest.raises(McpError) as caught:
        read_config(source, {})
    assert says in str(caught.value)


def test_names_are_made_of_letters_the_api_takes() -> None:
    """Everything else becomes an underscore."""
    server = McpServer("my server", ServerConfig(command="true"))

    assert McpTool(server, {"name": "a.b/c"}).name == "mcp__my_server__a_b_c"


async def test_input_must_be_an_object(contract: Path) -> None:
    """The rest is for the server to judge."""
    async with connected(srv=stdio(contract)) as (_, tools):
        with pytest.raises(ToolInputInvalid):
            tools["mcp__srv__echo"].validate("x")
