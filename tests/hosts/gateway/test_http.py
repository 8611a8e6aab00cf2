"""A server at an address behind the gateway: the official server and client, in both protocol eras."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.hosts.gateway.driver import Person, gateway, text
from tests.hosts.gateway.session import Session

pytest.importorskip("mcp_types", reason="needs version 2 of the official MCP SDK")
import uvicorn
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer


def server() -> Any:
    made = MCPServer("web")

    @made.tool()
    def echo(message: str) -> str:
        return f"echo: {message}"

    @made.tool()
    async def count(context: Context) -> str:
        for step in range(3):
            await context.report_progress(step + 1, 3)
        return "counted"

    return made.streamable_http_app()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A real server on a port of its own; it can be connected to before it is up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(uvicorn.Config(server(), log_level="error"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        running.should_exit = True
        thread.join()


async def play(home: Path, address: str, era: Any) -> dict[str, Any]:
    person, steps = Person(), []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with Client(gateway(home, [address]), mode=era, elicitation_callback=person) as client:
        words = ("plain", "DENY", "REWRITE", "NOTE", "ASK", "REDACT")
        many = await asyncio.gather(*(client.call_tool("echo", {"message": f"m{number}"}) for number in range(8)))
        return {
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            **{word: text(await client.call_tool("echo", {"message": word})) for word in words},
            "asked": len(person.asked),
            "counted": text(await client.call_tool("count", {}, progress_callback=progress)),
            "steps": steps,
            "at once": [text(one) for one in many],
        }


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_server_at_an_address_is_judged_alike(era: str, tmp_path: Path, address: str) -> None:
    """Deny, rewrite, context, ask and replaced output; progress and calls at once pass."""
    assert asyncio.run(asyncio.wait_for(play(tmp_path, address, era), 60)) == {
        "tools": ["echo", "count"],
        "plain": "echo: plain",
        "DENY": "`echo` was denied: not this one",
        "REWRITE": "echo: rewritten",
        "NOTE": "echo: NOTE\na note of the house",
        "ASK": "echo: ASK",
        "REDACT": "[redacted]",
        "asked": 1,
        "counted": "counted",
        "steps": [1, 2, 3],
        "at once": [f"echo: m{number}" for number in range(8)],
    }


def test_an_address_without_a_server_is_an_error_of_the_request(tmp_path: Path) -> None:
    """The client reads why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Session(tmp_path, command=[f"http://127.0.0.1:{port}/mcp"]) as session:
        failed = session.ask("initialize", protocolVersion="2025-06-18", capabilities={})

    assert "the server cannot be reached" in failed["error"]["message"]


def test_headers_come_from_the_environment_and_are_not_sent_in_the_clear(tmp_path: Path) -> None:
    """A variable that is not set, and an address without TLS, are refused before anything is sent."""
    from tests.hosts.gateway.test_pins import hookline

    unset = hookline(tmp_path, "--name", "s", "--header", "Authorization=NOT_SET_ANYWHERE", "--", "https://h/mcp")
    clear = hookline(tmp_path, "--name", "s", "--header", "Authorization=HOME", "--", "http://example.invalid/mcp")

    assert (unset[0], "a variable that is set" in unset[1]) == (1, True)
    assert (clear[0], "not sent in the clear" in clear[1]) == (1, True)


class Recording(BaseHTTPRequestHandler):
    """A server that notes each request and does not answer one that it is told to keep waiting."""

    seen: SimpleQueue[str]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        params, method = asked.get("params") or {}, asked["method"]
        self.seen.put(method)
        if params.get("name") == "wait":
            self.rfile.read(1)  # until the client hangs up
            self.seen.put("hung up")
            return
        found = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}], "resultType": "complete"}
        answer = {"jsonrpc": "2.0", "id": asked.get("id"), "result": found}
        self.send_response(200 if "id" in asked else 202)
        self.send_header("Content-Type", "application/json")
        if method == "initialize":
            answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}}
            self.send_header("Mcp-Session-Id", "the-session")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode() if "id" in asked else b"")

    def do_DELETE(self) -> None:
        self.seen.put(f"DELETE {self.headers['mcp-session-id']}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_cancelled_request_hangs_up_and_a_session_is_deleted(tmp_path: Path) -> None:
    """In the stateless era a closed connection is the cancellation; a session ends by `DELETE`."""
    seen = Recording.seen = SimpleQueue[str]()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    with ThreadingHTTPServer(("127.0.0.1", 0), Recording) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Session(tmp_path, command=[f"http://127.0.0.1:{server.server_port}/mcp"]) as session:
            session.send(id="x", method="tools/call", params={"name": "wait", "_meta": meta})
            before = [seen.get(), seen.get()]
            session.send(method="notifications/cancelled", params={"requestId": "x"})
            cancelled = seen.get()
        with Session(tmp_path, command=[f"http://127.0.0.1:{server.server_port}/mcp"]) as session:
            session.initialize()
            session.close()
        after = [seen.get() for _ in range(3)]
        server.shutdown()

    assert (before, cancelled) == (["tools/list", "tools/call"], "hung up")
    assert after == ["initialize", "notifications/initialized", "DELETE the-session"]
