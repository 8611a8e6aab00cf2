"""The official Python SDK's own end-to-end tests, with a CLI of your choice and a scripted model in place of the API.

    git clone https://github.com/anthropics/claude-agent-sdk-python
    python -m tools.sdk_e2e claude-agent-sdk-python                 # with `hookline run --trust`
    python -m tools.sdk_e2e claude-agent-sdk-python --cli claude    # with the Claude CLI that is installed
    python -m tools.sdk_e2e claude-agent-sdk-python -- -k resume    # what follows `--` is for pytest

The tests and the SDK are those of the checkout; nothing of them is kept here. They ask a model in plain words for what
they need, so the model here does what such a sentence says: it runs the command, calls the tool, repeats the word.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
HOOKLINE = f"{Path(sys.executable).with_name('hookline')} run --trust"
THOUGHT = "The question is about 2 and 2, and adding 2 to 2 is easy."
KNOWN = {"word_count": 2, "character_count": 11, "words": ["Hello", "world"], "test_framework": "pytest"}
"""What the suite asserts of a structured answer, by the name of the field."""


def main(argv: list[str]) -> int:
    """Run the suite; its exit code is pytest's."""
    flags = argparse.ArgumentParser(prog="tools.sdk_e2e", description=__doc__.partition("\n")[0])
    flags.add_argument("checkout", type=Path, help="a checkout of claude-agent-sdk-python")
    flags.add_argument("--cli", default=HOOKLINE, help="the command to start as the CLI (default: %(default)s)")
    end = argv.index("--") if "--" in argv else len(argv)
    args = flags.parse_args(argv[:end])
    checkout = args.checkout.resolve()
    if not (checkout / "e2e-tests").is_dir():
        flags.error(f"`{args.checkout}` has no folder `e2e-tests`; give a checkout of claude-agent-sdk-python")
    with tempfile.TemporaryDirectory(prefix="sdk-e2e-") as folder:
        return run_suite(checkout, args.cli, Path(folder), argv[end + 1 :])


def run_suite(checkout: Path, cli: str, folder: Path, flags: list[str]) -> int:
    """Start the model, put the CLI on PATH as `claude`, and run pytest in the checkout."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "home").mkdir()
    (folder / "bin").mkdir()
    shim = folder / "bin" / "claude"
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(shlex.split(cli))} "$@"\n', "utf-8")
    shim.chmod(0o755)
    env = {
        "PATH": f"{shim.parent}:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(checkout / "src"),
        "ANTHROPIC_API_KEY": "dummy",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "HOOKLINE_SERVICE": os.environ.get("HOOKLINE_SERVICE", "0"),
    }
    suite = ["e2e-tests", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:hookline", *flags]
    try:
        return subprocess.run([sys.executable, "-m", "pytest", *suite], cwd=checkout, env=env, check=False).returncode
    finally:
        server.shutdown()
        server.server_close()


# -- the model -----------------------------------------------------------------------------------------------------


def answer(request: Json) -> list[Json]:
    """The content blocks that a helpful model would answer with."""
    thought = [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}] if _thinks(request) else []
    made = _calls_made(request)
    for name, given in wanted_calls(request):
        if (name, given.get("query")) in made:
            continue
        return [*thought, {"type": "tool_use", "id": f"toolu_{os.urandom(6).hex()}", "name": name, "input": given}]
    exactly = re.search(r"Reply with exactly: (\w+)|single word (\w+)", _prompt(request))
    return [
        *thought,
        {"type": "text", "text": exactly.group(exactly.lastindex or 0) if exactly else "The answer is 4."},
    ]


def wanted_calls(request: Json) -> Iterator[tuple[str, Json]]:
    """The tool calls that the prompt asks for, in order, of those tools that are offered."""
    prompt, tools = _prompt(request), {tool["name"]: tool for tool in request.get("tools", ())}
    if run := re.search(r"(?:Run|command): (?:the command: )?(\S.*)", prompt):
        yield "Bash", {"command": run[1], "description": "as asked"}
    if write := re.search(r"create the file (\S+) containing exactly the text (\w+)", prompt):
        yield "Write", {"file_path": write[1], "content": write[2]}
    if agent := re.search(r"subagent_type '([\w-]+)', prompt '([^']+)'", prompt):
        about = {"subagent_type": agent[1], "prompt": agent[2], "description": "as asked", "run_in_background": False}
        yield next((name for name in ("Agent", "Task") if name in tools), "Agent"), about
    for name in _mcp_tools(request, prompt):
        if name not in tools and "ToolSearch" in tools:
            yield "ToolSearch", {"query": f"select:{name}"}
        yield (
            name,
            {"text": "as asked", "name": "as asked"} if name not in tools else instance(tools[name]["input_schema"]),
        )
    if "StructuredOutput" in tools:
        yield "StructuredOutput", instance(tools["StructuredOutput"]["input_schema"])


def _mcp_tools(request: Json, prompt: str) -> list[str]:
    """The MCP tools that the prompt names, in full or as `the X tool`, of those that the request mentions."""
    said = json.dumps(request)
    short = [word for words in re.findall(r"(mcp__\w+__\w+)|the (\w+) tool to", prompt) for word in words if word]
    found = [re.search(rf"mcp__\w+?__{word.rpartition('__')[2]}\b", said) for word in short]
    return [one[0] for one in found if one]


def instance(schema: Json, name: str = "") -> Any:
    """A value that fits a JSON Schema."""
    if name in KNOWN:
        return KNOWN[name]
    simple = {"number": 1, "integer": 1, "boolean": True, "array": [], "string": "text"}
    if schema.get("type") == "object":
        return {key: instance(part, key) for key, part in schema.get("properties", {}).items()}
    return simple.get(schema.get("type", "string"))


def _texts(message: Json) -> list[str]:
    """What the user says in a message; nothing in one that brings results of tools."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if any(block["type"] == "tool_result" for block in blocks):
        return []
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return [text for text in texts if not text.lstrip().startswith("<system-reminder>")]


def _prompted(request: Json) -> int:
    """Where the last prompt is among the messages."""
    prompts = [i for i, one in enumerate(request["messages"]) if one["role"] == "user" and _texts(one)]
    return prompts[-1] if prompts else 0


def _prompt(request: Json) -> str:
    return "\n".join(_texts(request["messages"][_prompted(request)]))


def _calls_made(request: Json) -> set[tuple[str, Any]]:
    """The calls since the prompt, by name; searches by what was searched for, too."""
    later = request["messages"][_prompted(request) :]
    blocks = [block for one in later if one["role"] == "assistant" for block in one["content"]]
    calls = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    return {(call["name"], call["input"].get("query")) for call in calls}


def _thinks(request: Json) -> bool:
    return (request.get("thinking") or {}).get("type") == "enabled"


# -- the Messages API ----------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """Just enough of the Messages API: whole answers, and the same as a stream."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Whether the API is there."""
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        """Nothing else is."""
        self._send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        """One request to the model; a model whose name says so does not exist."""
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            self._send(200, b'{"input_tokens": 10}', "application/json")
        elif not self.path.startswith("/v1/messages"):
            self._send(404, b"{}", "application/json")
        elif "nonexistent" in request["model"]:
            error = {"type": "not_found_error", "message": f"model: {request['model']}"}
            self._send(404, json.dumps({"type": "error", "error": error}).encode(), "application/json")
        else:
            self._respond(request)

    def _respond(self, request: Json) -> None:
        content = answer(request)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        message = {
            "id": f"msg_{os.urandom(6).hex()}", "type": "message", "role": "assistant", "model": request["model"],
            "content": content, "stop_reason": stop, "stop_sequence": None, "usage": USAGE,
        }  # fmt: skip
        if request.get("stream"):
            lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(message))
            self._send(200, lines.encode(), "text/event-stream")
        else:
            self._send(200, json.dumps(message).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": len(body), "x-should-retry": "false"}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)


def events(message: Json) -> Iterator[Json]:
    """A message as the API streams it."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        empty, deltas = _streamed(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": USAGE["output_tokens"]}}
    yield {"type": "message_stop"}


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if block["type"] == "thinking":
        said, signed = block["thinking"], {"type": "signature_delta", "signature": block["signature"]}
        halves = [{"type": "thinking_delta", "thinking": part} for part in (said[:20], said[20:])]
        return {"type": "thinking", "thinking": "", "signature": ""}, [*halves, signed]
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
