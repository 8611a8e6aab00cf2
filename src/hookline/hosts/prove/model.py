"""A scripted model on loopback that every agent CLI can talk to: no key, no network.

It plays its turns in order, one for each request that offers tools; other requests (titles, routing) get a word. Four
wire protocols are spoken: OpenAI chat completions and responses, Anthropic messages, Gemini generateContent.
"""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hookline.hosts.prove import protocols
from hookline.hosts.prove.protocols import ModelTurn

SUBTASK = "hookline-subtask"
"""What an agent that the first one starts is told to do."""


class ScriptedModel:
    """The script, and every request that came."""

    def __init__(self, turns: Sequence[ModelTurn], inner: Sequence[ModelTurn] = (), prompt: str = "") -> None:
        self.requests: list[dict[str, Any]] = []
        self.port = 0
        self._turns = list(turns)
        self._inner = list(inner)
        self._prompt = prompt
        self._asked = 0
        self._last: dict[str, Any] | None = None
        self._turn = ModelTurn()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def next(self, body: dict[str, Any]) -> tuple[ModelTurn, int]:
        """The turn that answers a request, and a number for its ids."""
        with self._lock:
            self._asked += 1
            offered = len(list(protocols.offered_tools(body)))
            if not offered or (offered == 1 and self._is_subagent(body)):  # Grok names its subagents with one tool
                return ModelTurn("ok"), self._asked
            if body != self._last:  # a request that is sent again gets the same turn again
                turns = self._inner if self._is_subagent(body) else self._turns
                self._last, self._turn = body, turns.pop(0) if turns else ModelTurn("all done")
            return self._turn, self._asked

    def _is_subagent(self, body: dict[str, Any]) -> bool:
        """Whether a request comes from an agent that the first one has started: it knows its task, not the prompt."""
        text = json.dumps(body, ensure_ascii=False)
        return bool(self._prompt) and self._prompt not in text and SUBTASK in text

    def note(self, body: dict[str, Any]) -> None:
        """Keep a request."""
        with self._lock:
            self.requests.append(body)

    def read(self, text: str) -> bool:
        """Whether some text reached the model."""
        with self._lock:
            return any(text in json.dumps(body, ensure_ascii=False) for body in self.requests)

    @property
    def turns_asked(self) -> int:
        """How many requests offered tools."""
        with self._lock:
            return sum(1 for body in self.requests if any(protocols.offered_tools(body)))

    @property
    def tools(self) -> frozenset[str]:
        """The names of all tools that were offered."""
        with self._lock:
            return frozenset(name for body in self.requests for name in protocols.offered_tools(body))


@contextmanager
def serving(turns: Sequence[ModelTurn], inner: Sequence[ModelTurn] = (), prompt: str = "") -> Iterator[ScriptedModel]:
    """A scripted model, for as long as this lasts; `inner` is what it does in agents that have not seen the prompt."""
    model = ScriptedModel(turns, inner, prompt)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model}))
    server.daemon_threads = True
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_MODELS = ("fake-model", "gpt-5", "gpt-4.1", "claude-sonnet-4.5")


def _listing() -> dict[str, Any]:
    limits = {"max_context_window_tokens": 128000, "max_prompt_tokens": 100000, "max_output_tokens": 8000}
    able = {"type": "chat", "object": "model_capabilities", "tokenizer": "o200k_base", "limits": limits,
            "supports": {"tool_calls": True, "streaming": True}}  # fmt: skip
    rows = [{"id": name, "name": name, "object": "model", "created": 1, "owned_by": "x", "vendor": "x", "version": name,
             "preview": False, "model_picker_enabled": True, "capabilities": {**able, "family": name}}
            for name in _MODELS]  # fmt: skip
    return {"object": "list", "data": rows, "models": []}


_ROUTES: tuple[tuple[str, Callable[[dict[str, Any], ModelTurn, int, bool], protocols.HttpBody]], ...] = (
    ("/messages", protocols.anthropic),
    ("/chat/completions", protocols.chat),
    ("/responses", protocols.responses),
    ("enerateContent", protocols.gemini),
)


class _Handler(http.server.BaseHTTPRequestHandler):
    model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing on stderr."""

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_GET(self) -> None:
        body = _listing() if "models" in self.path else {}
        self._send(json.dumps(body).encode(), "application/json")

    def do_POST(self) -> None:
        try:
            body = json.loads(self._body() or b"{}")
        except (ValueError, OSError):
            return self._send(b'{"error": "bad request"}', "application/json", 400)
        self.model.note(body)
        path = self.path.partition("?")[0]
        if "count_tokens" in path or "countTokens" in path:
            return self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
        for route, speak in _ROUTES:
            if route in path:
                turn, number = self.model.next(body)
                answer = speak(body, turn, number, bool(body.get("stream")) or "stream" in path)
                return self._send(answer.data, answer.kind)
        return self._send(b'{"error": {"message": "no such route"}}', "application/json", 404)

    def _body(self) -> bytes:
        length = self.headers.get("content-length")
        data = self.rfile.read(int(length)) if length else self._chunks()
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        return data

    def _send(self, data: bytes, kind: str, code: int = 200) -> None:
        try:
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the agent was ended meanwhile
