"""The gateway at an address: the official client over HTTP, in both protocol eras, in front of a program and a URL."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.hosts.gateway.driver import HOOKS, SERVER, Person, text

pytest.importorskip("mcp_types", reason="needs version 2 of the official MCP SDK")
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@contextmanager
def listening(home: Path, *words: str, hooks: Path = HOOKS) -> Iterator[tuple[str, dict[str, str]]]:
    """`hookline mcp serve …`: its address, and the headers that it wants."""
    env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "A_TOKEN": "t0ken"}
    command = [sys.executable, "-m", "hookline.cli.main", "mcp", "serve", "--name", "s", "--hooks", str(hooks), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd=home, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line.strip() for line in lines if line.startswith("http://"))
        wants_token = not {"--token", "--login"} & {*words}
        name, _, value = next(lines).strip().partition(": ") if wants_token else ("Authorization", "", "Bearer t0ken")
        try:
            yield address, {} if "--login" in words else {name: value}
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def program(*arguments: str) -> list[str]:
    return ["--", sys.executable, str(SERVER), *arguments]


@contextmanager
def posting(address: str, headers: Mapping[str, str], message: object) -> Iterator[HTTPResponse]:
    """One POST, as any client could make it."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    wanted = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    connection.request("POST", parts.path, body, {**wanted, **headers})
    with connection.getresponse() as response:
        yield response
    connection.close()


def post(address: str, headers: Mapping[str, str], message: object) -> tuple[int, Any, Mapping[str, str]]:
    with posting(address, headers, message) as response:
        data = response.read()
        said = {name.lower(): value for name, value in response.headers.items()}
        return response.status, json.loads(data) if data.startswith(b"{") else data, said


def initialize(address: str, headers: Mapping[str, str], **capabilities: Any) -> dict[str, str]:
    """The headers of a new session."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    status, _, said = post(address, headers, message)
    assert status == 200
    return {**headers, "mcp-session-id": said["mcp-session-id"]}


def modern(method: str, **params: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """A request of the stateless era, and its headers."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN}}
    named = {"mcp-name": params["name"]} if "name" in params else {}
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": method, **named}, message


async def play(address: str, headers: dict[str, str], era: Any) -> dict[str, Any]:
    person = Person()

    def client(http: Any) -> Any:
        return Client(streamable_http_client(address, http_client=http), mode=era, elicitation_callback=person)

    async with httpx2.AsyncClient(headers=headers) as http, client(http) as first, client(http) as second:
        words = ("plain", "DENY", "REWRITE", "NOTE", "ASK", "REDACT")
        both = [one.call_tool("echo", {"message": f"m{at}"}) for at, one in enumerate([first, second] * 4)]
        return {
            "tools": "echo" in [tool.name for tool in (await first.list_tools()).tools],
            **{word: text(await first.call_tool("echo", {"message": word})) for word in words},
            "asked": len(person.asked),
            "at once": [text(one) for one in await asyncio.gather(*both)],
        }


EXPECTED = {
    "tools": True,
    "plain": "echo: plain",
    "DENY": "`echo` was denied: not this one",
    "REWRITE": "echo: rewritten",
    "NOTE": "echo: NOTE\na note of the house",
    "ASK": "echo: ASK",
    "REDACT": "[redacted]",
    "asked": 1,
    "at once": [f"echo: m{at}" for at in range(8)],
}


@pytest.mark.parametrize("era", ["legacy", "auto", "2026-07-28"])
def test_clients_at_an_address_are_judged_alike(era: str, tmp_path: Path) -> None:
    """Two clients at once, whose ids are the same; also in front of a gateway that is itself behind a gateway."""
    with listening(tmp_path, *program()) as (address, headers):
        assert asyncio.run(asyncio.wait_for(play(address, headers, era), 60)) == EXPECTED
        os.environ["A_LOGIN"] = headers["Authorization"]
        (tmp_path / "outer").mkdir()
        empty = tmp_path / "empty.py"
        empty.write_text("from hookline import Hooks\n\nhooks = Hooks()\n")
        flags = ("--header", "Authorization=A_LOGIN", "--token", "A_TOKEN", "--", address)
        with listening(tmp_path / "outer", *flags, hooks=empty) as (outer, token):
            assert asyncio.run(asyncio.wait_for(play(outer, token, era), 60)) == EXPECTED


def test_only_this_machine_with_the_token_is_served(tmp_path: Path) -> None:
    """Another Host, another origin, no token, a wrong one: refused before anything is read."""
    headers, message = modern("tools/list")
    with listening(tmp_path, *program()) as (address, login):
        seen = {
            "fine": post(address, {**headers, **login}, message)[0],
            "no token": post(address, headers, message)[0],
            "a wrong one": post(address, {**headers, "Authorization": "Bearer x"}, message)[0],
            "another host": post(address, {**headers, **login, "Host": "evil.example:80"}, message)[0],
            "another origin": post(address, {**headers, **login, "Origin": "https://evil.example"}, message)[0],
            "a page nearby": post(address, {**headers, **login, "Sec-Fetch-Site": "same-site"}, message)[0],
        }

    assert seen == {
        "fine": 200, "no token": 401, "a wrong one": 401, "another host": 403, "another origin": 403,
        "a page nearby": 403,
    }  # fmt: skip


def test_a_client_at_an_address_that_misbehaves_gets_errors(tmp_path: Path) -> None:
    """Not JSON, several messages, no session, another's, headers that do not fit, and one id twice."""
    call = {"name": "echo", "arguments": {"message": "a"}}
    headers, message = modern("tools/call", **call)
    with listening(tmp_path, *program()) as (address, login):
        session = initialize(address, login)
        params = {"name": "echo", "arguments": {"message": "HANG"}}
        slow = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        statuses: SimpleQueue[int] = SimpleQueue()
        for _ in range(2):
            threading.Thread(target=lambda: statuses.put(post(address, session, slow)[0])).start()
        twice = statuses.get()
        post(address, session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        cancelled = statuses.get()
        seen = [
            post(address, login, b"\xff")[0],
            post(address, login, b"[" * 100_000)[0],
            post(address, login, [message, message])[0],
            post(address, login, {**slow, "id": 8})[0],
            post(address, {**login, "mcp-session-id": "x"}, {**slow, "id": 8})[0],
            post(address, {**headers, **login, "mcp-name": "other"}, message)[1]["error"]["code"],
            post(address, {**headers, **login, "mcp-method": "tools/list"}, message)[1]["error"]["code"],
        ]
        after = post(address, session, {**slow, "id": 9, "params": call})[1]["result"]["content"][0]["text"]

    assert (twice, cancelled) == (400, 202)
    assert seen == [400, 400, 400, 400, 404, -32020, -32020]
    assert after == "echo: a"


def test_a_client_that_leaves_has_cancelled_and_a_session_can_be_ended(tmp_path: Path) -> None:
    """In the stateless era by closing the connection: the call is not passed on. `DELETE` ends a session."""
    with listening(tmp_path, *program()) as (address, login):
        headers, message = modern("tools/call", name="echo", arguments={"message": "HANG"})
        parts = urlsplit(address)
        leaving = HTTPConnection(parts.hostname or "", parts.port)
        leaving.request("POST", parts.path, json.dumps(message), {**headers, **login})
        leaving.close()
        session = initialize(address, login)
        ending = HTTPConnection(parts.hostname or "", parts.port)
        ending.request("DELETE", parts.path, headers=session)
        ended = ending.getresponse().status
        ending.close()
        listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        headers, message = modern("tools/call", name="echo", arguments={"message": "on"})

        assert (ended, post(address, session, listed)[0]) == (204, 404)
        assert post(address, {**headers, **login}, message)[1]["result"]["content"][0]["text"] == "echo: on"


def test_a_server_that_hangs_is_ended_with_the_gateway(tmp_path: Path) -> None:
    """Whatever it was doing for whichever client."""
    with listening(tmp_path, *program()) as (address, login):
        session = initialize(address, login)

        def call(name: str, **arguments: str) -> Any:
            params = {"name": name, "arguments": arguments}
            return post(address, session, {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params})

        server = int(call("reach", how="run", what="echo $PPID")[1]["result"]["content"][0]["text"])

        def hang() -> None:
            with suppress(OSError):  # the gateway may be gone before this thread gets to it
                call("hang")

        hanging = threading.Thread(target=hang)
        hanging.start()
    hanging.join(30)

    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_server_that_dies_is_started_again_for_the_next_client(tmp_path: Path) -> None:
    """What was under way is answered with an error."""
    with listening(tmp_path, *program()) as (address, login):
        headers, message = modern("tools/call", name="die", arguments={})
        failed = post(address, {**headers, **login}, message)[1]["error"]["message"]
        headers, message = modern("tools/call", name="echo", arguments={"message": "on"})
        after = post(address, {**headers, **login}, message)[1]

    assert failed == "the server has ended (exit code 3)"
    assert after["result"]["content"][0]["text"] == "echo: on"


class WantsLogin(BaseHTTPRequestHandler):
    """A server that wants a login by OAuth: it says where, and lists no tools without."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_in = self.headers.get("authorization") == "Bearer of-the-user"
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete", "tools": []}}
        self.send_response(200 if is_in else 401)
        if not is_in:
            self.send_header("WWW-Authenticate", 'Bearer resource_metadata="https://login.example/x"')
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode() if is_in else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_login_passes_through(tmp_path: Path) -> None:
    """With `--login` the client gets the server's 401 and its way to log in, and the server gets the client's token."""
    with ThreadingHTTPServer(("127.0.0.1", 0), WantsLogin) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{upstream.server_port}/mcp"
        headers, message = modern("tools/list")
        with listening(tmp_path, "--login", "--", url) as (address, _):
            refused = post(address, headers, message)
            let_in = post(address, {**headers, "Authorization": "Bearer of-the-user"}, message)
        upstream.shutdown()

    assert (refused[0], refused[2]["www-authenticate"]) == (401, 'Bearer resource_metadata="https://login.example/x"')
    assert (let_in[0], let_in[1]["result"]["tools"]) == (200, [])


def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    """`--bind` elsewhere, or `--login` for a program, are refused before anything listens."""
    from tests.hosts.gateway.test_pins import hookline

    bound = hookline(tmp_path, "serve", "--name", "s", "--hooks", str(HOOKS), "--bind", "0.0.0.0", *program())
    login = hookline(tmp_path, "serve", "--name", "s", "--hooks", str(HOOKS), "--login", *program())

    assert (bound[0], "--token VARIABLE" in bound[1]) == (1, True)
    assert (login[0], "is for a URL" in login[1]) == (1, True)
