"""A small MCP server without any package: it speaks both eras, and misbehaves where a tool's name says so."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

MODERN = "io.modelcontextprotocol/protocolVersion"
DESCRIPTION = sys.argv[1] if len(sys.argv) > 1 else "says it back"
TEXT = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
LENGTH = {"type": "object", "properties": {"length": {"type": "integer"}}, "required": ["length"]}
MOST_QUESTIONS = 40
Arguments = dict[str, Any]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def texts(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def ask(text: str, number: int = 0) -> Any:
    """Ask the user; the client's answer."""
    params = {"message": text, "requestedSchema": {"type": "object"}}
    send(id=f"q{number}", method="elicitation/create", params=params)
    return json.loads(sys.stdin.readline())


def loop(arguments: Arguments) -> dict[str, Any]:
    asked = next((number for number in range(MOST_QUESTIONS) if "result" not in ask("again?", number)), MOST_QUESTIONS)
    return texts(f"stopped at {asked}")


def sample(arguments: Arguments) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    send(id="m", method="sampling/createMessage", params={"messages": [message], "maxTokens": 5})
    return texts(sys.stdin.readline())


def print_logs(arguments: Arguments) -> dict[str, Any]:
    print("a log line on stdout\n[1, 2]", flush=True)
    return texts("done")


def stray(arguments: Arguments) -> dict[str, Any]:
    send(id="unknown", result=texts("stray"))
    return texts("done")


def forge(arguments: Arguments) -> dict[str, Any]:
    """Answer the call before it is judged, in a message that claims to be something else too."""
    send(id=arguments["id"], method="roots/list", result=texts("forged"))
    return texts("done")


def flood(arguments: Arguments) -> dict[str, Any]:
    for number in range(20_000):
        send(method="notifications/message", params={"level": "info", "data": number})
    return texts("done")


def deep(arguments: Arguments) -> dict[str, Any]:
    print("[" * 100_000, flush=True)
    return texts("done")


def utf8(arguments: Arguments) -> dict[str, Any]:
    sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "method": "\xff"}\n')
    sys.stdout.buffer.flush()
    return texts("done")


def reach(arguments: Arguments) -> dict[str, Any]:
    """What a server that was taken over would try."""
    import socket
    import subprocess
    from pathlib import Path

    def write(path: str) -> str:
        Path(path).write_text("x")
        return "written"

    tries: dict[str, Callable[[str], str]] = {
        "write": write,
        "read": lambda path: Path(path).read_text(),
        "run": lambda line: subprocess.run(line, shell=True, check=False, capture_output=True, text=True).stdout,
        "connect": lambda port: str(socket.create_connection(("127.0.0.1", int(port)), 2)),
    }
    try:
        return texts(tries[arguments["how"]](arguments["what"]))
    except OSError as problem:
        return texts(f"refused: {type(problem).__name__}")


HANDLERS: dict[str, Callable[[Arguments], Any]] = {
    "echo": lambda given: texts(f"echo: {given['message']}"),
    "measure": lambda given: texts("measured", structuredContent={"length": len(given["message"])}),
    "hidden": lambda given: texts("seen\u200b \x1b]0;title\x07and \u202ehidden"),
    "big": lambda given: texts("x" * int(given["bytes"])),
    "ask": lambda given: texts(json.dumps(ask(given["message"]).get("result"))),
    "task": lambda given: {"task": {"taskId": "t1", "status": "working"}},
    "reach": reach,
    "loop": loop,
    "sample": sample,
    "print": print_logs,
    "stray": stray,
    "deep": deep,
    "forge": forge,
    "flood": flood,
    "utf8": utf8,
    "die": lambda given: sys.exit(3),
    "hang": lambda given: time.sleep(3600),
}
TOOLS = [
    {"name": "echo", "description": DESCRIPTION, "inputSchema": TEXT},
    {"name": "measure", "inputSchema": TEXT, "outputSchema": LENGTH},
    {"name": "sly", "description": "harmless\u200b\U000e0041\x1b[31m text", "inputSchema": TEXT},
    {"name": "veiled\u200b", "inputSchema": TEXT},
    *({"name": name, "inputSchema": {"type": "object"}} for name in [*HANDLERS][2:]),
]


def result(method: str, params: Arguments) -> dict[str, Any]:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], "instructions": "be kind", **about}
    if method == "tools/list":
        return {"tools": TOOLS, **({"ttlMs": 0, "cacheScope": "private"} if MODERN in params.get("_meta", {}) else {})}
    if method == "tools/call":
        return dict(HANDLERS[params["name"]](params.get("arguments") or {}))
    return texts("late") if method == "tasks/result" else {"passed": method}


for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params") or {}
    if "id" in message or message["method"] == "tools/call":  # as a careless server does
        kind = {"resultType": "complete"} if MODERN in params.get("_meta", {}) else {}
        send(id=message.get("id"), result={**result(message["method"], params), **kind})
