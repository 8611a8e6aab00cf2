"""A scripted model on loopback that every agent CLI can talk to: no key, no network.

It plays its turns in order, one for each request that offers tools; other requests (titles, routing) get a word. Four
wire protocols are spoken: OpenAI chat completions and responses, Anthropic messages, Gemini generateContent.
"""

import gzip
import http.server
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hookline.hosts.host import NAMESPACE, fill

Body = dict[str, Any]


class ModelTurn(NamedTuple):
    """What the model does when it is asked: call tools, or say something."""

    text: str = ""
    tools: tuple[tuple[str, Any], ...] = ()


def offered_tools(body: Body) -> Iterator[str]:
    """The names of the tools that a request offers the model, in whichever protocol."""
    groups = [body.get("tools"), *(item.get("tools") for item in body.get("input") or () if isinstance(item, dict))]
    for group in groups:
        yield from _tool_names(group if isinstance(group, list) else ())


def _tool_names(tools: Iterable[Body], space: str = "") -> Iterator[str]:
    for tool in tools:
        inner = tool.get("functionDeclarations") or (tool.get("tools") if tool.get("type") == "namespace" else None)
        if inner:
            yield from _tool_names(inner, f"{space}{tool['name']}{NAMESPACE}" if tool.get("name") else space)
        else:
            yield space + str((tool.get("function") or tool.get("custom") or tool).get("name") or tool.get("type"))


class Protocol(msgspec.Struct, forbid_unknown_fields=True):
    """The forms of a protocol's answers: a text and a call as `items` of a `whole`, and as `events` of a stream.

    A call whose input is a text is `custom`, where that has a form of its own. `stops` says how a turn ends without
    calls and with some; `named` events have their type before them, `numbered` ones a number in them.
    """

    items: dict[str, Body]
    whole: Body
    end: list[Any]
    begin: list[Any] = []
    events: dict[str, list[Body]] = {}
    stops: tuple[str, str] = ("", "")
    named: bool = False
    numbered: bool = False
    last: str = ""

    def answer(self, turn: ModelTurn, stream: bool, **here: Any) -> tuple[bytes, str]:  # noqa: FBT001 - as asked
        """A turn in the protocol's words: the bytes, and their content type."""
        here |= {"text": turn.text or None, "stop": self.stops[bool(turn.tools)]}
        said: list[tuple[str, Body]] = [("text", {})] if turn.text and "text" in self.items else []
        for call, (name, given) in enumerate(turn.tools):
            space, _, short = name.rpartition(NAMESPACE)
            kind = "custom" if isinstance(given, str) and "custom" in self.items else "call"
            said.append((kind, {"call": call, "name": name, "short": short, "space": space or None, "given": given,
                                "json": json.dumps(given)}))  # fmt: skip
        items: list[Body] = []
        events = fill(self.begin, **here)
        for index, (kind, values) in enumerate(said):
            items.append(fill(self.items[kind], **here, **values))
            events += fill(self.events.get(kind, []), item=items[-1], index=index, **here, **values)
        whole = fill(self.whole, items=items, calls=items or None, **here)
        if not stream:
            return json.dumps(whole).encode(), "application/json"
        events += fill(self.end, whole=whole, **here)
        if self.numbered:
            events = [{**event, "sequence_number": place} for place, event in enumerate(events)]
        lines = [
            (f"event: {event['type']}\n" if self.named else "") + f"data: {json.dumps(event)}\n\n" for event in events
        ]
        lines += [f"data: {self.last}\n\n"] if self.last else []
        return "".join(lines).encode(), "text/event-stream"


_PROTOCOLS = msgspec.json.decode(Path(__file__).with_name("protocols.json").read_bytes(), type=dict[str, Protocol])
"""By a part of the path under which each is spoken."""

_ROUTED = {"reasoning": "x", "model_choice": "flash", "complexity_reasoning": "x", "complexity_score": 1,
           "next_speaker": "user"}  # fmt: skip


SUBTASK = "hookline-subtask"  # what an agent that the first one starts is told to do


class ScriptedModel:
    """The script, and every request that came."""

    def __init__(self, turns: Sequence[ModelTurn], inner: Sequence[ModelTurn] = (), prompt: str = "") -> None:
        self.requests: list[Body] = []
        self.port = 0
        self._turns = list(turns)
        self._inner = list(inner)
        self._prompt = prompt
        self._asked = 0
        self._last: Body | None = None
        self._turn = ModelTurn()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next(self, body: Body) -> tuple[ModelTurn, int]:
        """The turn that answers a request, and a number for its ids."""
        with self._lock:
            self._asked += 1
            offered = len(list(offered_tools(body)))
            if not offered or (offered == 1 and self._is_subagent(body)):  # Grok names its subagents with one tool
                return ModelTurn("ok"), self._asked
            if body != self._last:  # a request that is sent again gets the same turn again
                turns = self._inner if self._is_subagent(body) else self._turns
                self._last, self._turn = body, turns.pop(0) if turns else ModelTurn("all done")
            return self._turn, self._asked

    def _is_subagent(self, body: Body) -> bool:
        """Whether a request comes from an agent that the first one has started: it knows its task, not the prompt."""
        text = json.dumps(body, ensure_ascii=False)
        return bool(self._prompt) and self._prompt not in text and SUBTASK in text

    def read(self, text: str) -> bool:
        return any(text in json.dumps(body, ensure_ascii=False) for body in self.requests)

    @property
    def turns_asked(self) -> int:
        return sum(1 for body in self.requests if any(offered_tools(body)))

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(name for body in self.requests for name in offered_tools(body))


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


def _listing() -> Body:
    limits = {"max_context_window_tokens": 128000, "max_prompt_tokens": 100000, "max_output_tokens": 8000}
    able = {"type": "chat", "object": "model_capabilities", "tokenizer": "o200k_base", "limits": limits,
            "supports": {"tool_calls": True, "streaming": True}}  # fmt: skip
    rows = [{"id": name, "name": name, "object": "model", "created": 1, "owned_by": "x", "vendor": "x", "version": name,
             "preview": False, "model_picker_enabled": True, "capabilities": {**able, "family": name}}
            for name in _MODELS]  # fmt: skip
    return {"object": "list", "data": rows, "models": []}


class _Handler(http.server.BaseHTTPRequestHandler):
    model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing on stderr."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self._send(json.dumps(_listing() if "models" in self.path else {}).encode())

    def do_POST(self) -> None:
        try:
            body = json.loads(self._body() or b"{}")
        except (ValueError, OSError):
            return self._send(b'{"error": "bad request"}', code=400)
        self.model.requests.append(body)
        path = self.path.partition("?")[0]
        if "count_tokens" in path or "countTokens" in path:
            return self._send(b'{"input_tokens": 10, "totalTokens": 10}')
        spoken = next((protocol for route, protocol in _PROTOCOLS.items() if route in path), None)
        if spoken is None:
            return self._send(b'{"error": {"message": "no such route"}}', code=404)
        turn, number = self.model.next(body)
        wants_json = (body.get("generationConfig") or {}).get("responseMimeType") == "application/json"
        if wants_json and not body.get("tools"):  # Gemini CLI asks which model to use
            turn = ModelTurn(json.dumps(_ROUTED))
        streams = bool(body.get("stream")) or "stream" in path
        return self._send(*spoken.answer(turn, streams, number=number, model=body.get("model")))

    def _body(self) -> bytes:
        if length := self.headers.get("content-length"):
            data = self.rfile.read(int(length))
        else:
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _send(self, data: bytes, kind: str = "application/json", code: int = 200) -> None:
        try:
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the agent was ended meanwhile
