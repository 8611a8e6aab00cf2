"""A scripted model on loopback that every agent CLI can talk to: no key, no network.

It plays its turns in order, one for each request that offers tools; other requests (titles, routing) get a word. Four
wire protocols are spoken: OpenAI chat completions and responses, Anthropic messages, Gemini generateContent.
"""

import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from hookline.hosts.host import NAMESPACE

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


HttpBody = tuple[bytes, str]
"""Bytes and their content type."""


def _whole(body: Any) -> HttpBody:
    return json.dumps(body).encode(), "application/json"


def _events(events: list[Any], *, named: bool = False, done: bool = False) -> HttpBody:
    lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode(), "text/event-stream"


def anthropic(body: Body, turn: ModelTurn, number: int, stream: bool) -> HttpBody:  # noqa: FBT001 - a table of functions
    """Messages."""
    content: list[Body] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [{"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": given}
                for index, (name, given) in enumerate(turn.tools)]  # fmt: skip
    stop = "tool_use" if turn.tools else "end_turn"
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"),
               "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip
    if not stream:
        return _whole({**message, "content": content, "stop_reason": stop})
    events: list[Body] = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(content):
        text = block["type"] == "text"
        empty: Body = {**block, "text": ""} if text else {**block, "input": {}}
        delta = ({"type": "text_delta", "text": block["text"]} if text
                 else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])})  # fmt: skip
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return _events(events, named=True)


def chat(body: Body, turn: ModelTurn, number: int, stream: bool) -> HttpBody:  # noqa: FBT001
    """Chat completions."""
    calls = [{"index": index, "id": f"call_{number}_{index}", "type": "function",
              "function": {"name": name, "arguments": json.dumps(given)}}
             for index, (name, given) in enumerate(turn.tools)]  # fmt: skip
    finish = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": f"chatcmpl-{number}", "created": 1, "model": body.get("model")}
    if not stream:
        message: Body = {"role": "assistant", "content": turn.text or None}
        if calls:
            message["tool_calls"] = [{key: call[key] for key in call if key != "index"} for call in calls]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _whole({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunk = {**base, "object": "chat.completion.chunk"}
    deltas: list[tuple[Body, str | None]] = [({"role": "assistant", "content": turn.text}, None)]
    deltas += [({"tool_calls": calls}, None)] if calls else []
    deltas += [({}, finish)]
    events = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    return _events([*events, {**chunk, "choices": [], "usage": usage}], done=True)


def responses(body: Body, turn: ModelTurn, number: int, stream: bool) -> HttpBody:  # noqa: FBT001
    """Responses."""
    items = list(_items(turn, number))
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}  # fmt: skip
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed",
             "model": body.get("model"), "output": items, "usage": usage}  # fmt: skip
    if not stream:
        return _whole(whole)
    events: list[Body] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": whole})
    return _events([{**event, "sequence_number": place} for place, event in enumerate(events)], named=True)


def _items(turn: ModelTurn, number: int) -> Iterator[Body]:
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    for index, (name, given) in enumerate(turn.tools):
        call = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}", "status": "completed"}
        space, _, short = name.rpartition(NAMESPACE)
        call |= {"name": short, **({"namespace": space} if space else {})}
        if isinstance(given, str):
            yield {"type": "custom_tool_call", "input": given, **call}
        else:
            yield {"type": "function_call", "arguments": json.dumps(given), **call}


def _item_events(index: int, item: Body) -> Iterator[Body]:
    where = {"output_index": index}
    field = {"message": "content", "custom_tool_call": "input"}.get(item["type"], "arguments")
    begun = {**item, "status": "in_progress", field: item[field][:0]}
    yield {"type": "response.output_item.added", **where, "item": begun}
    place = {**where, "item_id": item["id"]}
    if field == "content":
        text, place = item["content"][0]["text"], {**place, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **place, "part": empty}
        yield {"type": "response.output_text.delta", **place, "delta": text}
        yield {"type": "response.output_text.done", **place, "text": text}
    elif field == "arguments":
        said = item["arguments"]
        yield {"type": "response.function_call_arguments.delta", **place, "delta": said}
        yield {"type": "response.function_call_arguments.done", **place, "arguments": said, "name": item["name"]}
    yield {"type": "response.output_item.done", **where, "item": item}


_ROUTED = {"reasoning": "x", "model_choice": "flash", "complexity_reasoning": "x", "complexity_score": 1,
           "next_speaker": "user"}  # fmt: skip


def gemini(body: Body, turn: ModelTurn, number: int, stream: bool) -> HttpBody:  # noqa: FBT001
    """GenerateContent; a request for JSON without tools is Gemini CLI asking which model to use."""
    parts: list[Body] = [{"text": turn.text}] if turn.text else []
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in turn.tools]
    wants_json = (body.get("generationConfig") or {}).get("responseMimeType") == "application/json"
    if wants_json and not body.get("tools"):
        parts = [{"text": json.dumps(_ROUTED)}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": f"r{number}"}
    return _events([whole]) if stream else _whole(whole)


SUBTASK = "hookline-subtask"
"""What an agent that the first one starts is told to do."""


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
        """Where it listens."""
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

    def note(self, body: Body) -> None:
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
            return sum(1 for body in self.requests if any(offered_tools(body)))

    @property
    def tools(self) -> frozenset[str]:
        """The names of all tools that were offered."""
        with self._lock:
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


_ROUTES: dict[str, Callable[[Body, ModelTurn, int, bool], HttpBody]] = {
    "/messages": anthropic, "/chat/completions": chat, "/responses": responses, "enerateContent": gemini,
}  # fmt: skip


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
        self.model.note(body)
        path = self.path.partition("?")[0]
        if "count_tokens" in path or "countTokens" in path:
            return self._send(b'{"input_tokens": 10, "totalTokens": 10}')
        speak = next((speak for route, speak in _ROUTES.items() if route in path), None)
        if speak is None:
            return self._send(b'{"error": {"message": "no such route"}}', code=404)
        return self._send(*speak(body, *self.model.next(body), bool(body.get("stream")) or "stream" in path))

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
