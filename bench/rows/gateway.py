"""`hookline mcp` in front of a server, beside the server alone: what a call costs more, and what a start does."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Measured, Row, at_most, interleave
from hookline.core.interpreter import hookline_argv

SERVER = """
import json, sys
TOOLS = [{"name": f"echo{n}", "description": "says it back", "inputSchema": {"type": "object"}} for n in range(20)]
for line in sys.stdin:
    asked = json.loads(line)
    method = asked["method"]
    if "id" not in asked:
        continue
    found = {"content": [{"type": "text", "text": "said"}]}
    if method == "initialize":
        found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                 "serverInfo": {"name": "b", "version": "1"}}
    if method == "tools/list":
        found = {"tools": TOOLS}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""
HOOKS = """
from hookline import Hooks, deny
from hookline.events import PostToolUse, PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="mcp__.*")
def before(event):
    return deny("no") if "secret" in event.tool_input.get("text", "") else None

@hooks.on(PostToolUse, match="mcp__.*")
def after(event):
    return None
"""
STARTS = 9


def rows() -> Iterator[Row]:
    yield Row("gateway.call", "an MCP call behind the gateway, with two hooks and pins", at_most(1, "ms more"), call)
    yield Row("gateway.start", "a server's start and first call behind it", at_most(0.25, "s more"), start)


class Client:
    """Speaks to a server, or to the gateway before it, over pipes."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
        self._last = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        self.ask("initialize", **about)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self.call()["result"]["content"][0]["text"] == "said"

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self) -> Any:
        return self.ask("tools/call", name="echo7", arguments={"text": "hello"})

    def close(self) -> None:
        self.process.communicate(timeout=30)


@contextmanager
def commands() -> Iterator[tuple[dict[str, list[str]], dict[str, str]]]:
    """How each is started, and with which environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server.py").write_text(SERVER)
        (folder / "hooks.py").write_text(HOOKS)
        direct = [sys.executable, str(folder / "server.py")]
        behind = hookline_argv("mcp", "--name", "b", "--hooks", str(folder / "hooks.py"), "--", *direct)
        yield {"direct": direct, "behind": behind}, {**os.environ, "HOME": name, "XDG_STATE_HOME": f"{name}/state"}


async def call() -> Measured:
    with commands() as (how, env):
        clients = {name: Client(command, env) for name, command in how.items()}
        times = await interleave({name: client.call for name, client in clients.items()}, rounds=41, batch_seconds=0.05)
        for client in clients.values():
            client.close()
    more = times.seconds("behind") - times.seconds("direct")
    return Measured(
        more * 1e3, note=f"{times.seconds('behind') * 1e3:.2f} ms, direct {times.seconds('direct') * 1e3:.2f}"
    )


async def start() -> Measured:
    taken: dict[str, list[float]] = {"direct": [], "behind": []}
    with commands() as (how, env):
        for _ in range(STARTS):
            for name, command in how.items():
                began = time.perf_counter()
                client = Client(command, env)
                taken[name].append(time.perf_counter() - began)
                client.close()
    direct, behind = (median(taken[name]) for name in ("direct", "behind"))
    return Measured(behind - direct, note=f"{behind:.3f} s, direct {direct:.3f}; median of {STARTS}")
