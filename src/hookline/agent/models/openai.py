"""Any model behind a chat completions endpoint; other servers via `OPENAI_BASE_URL`."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hookline.agent.messages import Message, Reminder, ToolOutput, ToolUse, Usage, User
from hookline.agent.models.base import ModelRequest, api_error
from hookline.agent.models.stream import ServerModel, StreamedAnswer, begin_answer, end_answer
from hookline.errors import ModelError

DEFAULT_URL = "https://api.openai.com/v1"
#: why an answer ended, in the words of the Messages API; others are `end_turn`
STOP_REASONS = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class Completion(StreamedAnswer):
    """One chat completion while it streams in: its text is block 0, its calls are the blocks after that."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._finish: str | None = None
        self._usage = Usage()

    def events(self, sent: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if sent.get("error"):
            raise api_error(500, sent, model=self.model)
        self._usage = _usage(sent["usage"]) if sent.get("usage") else self._usage
        for choice in (sent.get("choices") or [])[:1]:
            self._finish = choice.get("finish_reason") or self._finish
            if not self._message:
                yield begin_answer(sent.get("id") or "", self.model)
            delta = choice.get("delta") or {}
            if delta.get("content"):
                said = {"type": "text_delta", "text": delta["content"]}
                yield from self._piece(0, {"type": "text", "text": ""}, said)
            for piece in delta.get("tool_calls") or ():
                function, last, index = piece.get("function") or {}, max(self.blocks, default=0), piece.get("index")
                if index is None:  # some servers count no calls: what has no id goes on with the last one
                    index = last - 1 if last and not piece.get("id") else last
                at = index + 1
                known = self.blocks.get(at, {"type": "tool_use", "id": f"call_{at - 1}", "name": "", "input": {}})
                name = known["name"] + (function.get("name") or "")
                call = {**known, "id": piece.get("id") or known["id"], "name": name}
                grown = {"type": "input_json_delta", "partial_json": function.get("arguments") or ""}
                yield from self._piece(at, call, grown)

    def last_events(self) -> Iterator[dict[str, Any]]:
        if self._finish is not None:
            finish = "tool_calls" if self._finish == "stop" and any(self.blocks) else self._finish
            yield from end_answer(sorted(self.blocks), STOP_REASONS.get(finish, "end_turn"), self._usage)

    def _piece(self, index: int, block: dict[str, Any], delta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self.blocks.get(index) != block:  # it begins, or more of the call's name has come
            yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}


class OpenAI(ServerModel):
    """One model of a chat completions server."""

    answer = Completion

    def __init__(
        self, name: str, *, api_key: str, base_url: str = "", max_retries: int = 5, headers: Mapping[str, str] = {}
    ) -> None:
        url = f"{(base_url or DEFAULT_URL).rstrip('/')}/chat/completions"
        super().__init__(name, url, {"authorization": f"Bearer {api_key}", **headers}, max_retries)

    def encode_request(self, request: ModelRequest, model: str) -> dict[str, Any]:
        if request.server_tools:
            names = ", ".join(f"`{tool.get('name')}`" for tool in request.server_tools)
            raise ModelError(f"model `{self.name}`: its server has no {names} of its own", "invalid_request")
        body: dict[str, Any] = {
            "model": model,
            "messages": encode_messages(request.system, request.messages),
            "max_completion_tokens": request.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            rows = [(tool.name, tool.description, tool.input_schema) for tool in request.tools]
            functions = [dict(zip(("name", "description", "parameters"), row, strict=True)) for row in rows]
            body["tools"] = [{"type": "function", "function": function} for function in functions]
        if request.output_schema is not None:
            answer = {"name": "answer", "schema": request.output_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": answer}
        if request.effort:
            body["reasoning_effort"] = request.effort
        return body


def encode_messages(system: tuple[str, ...], messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The conversation in chat completions form: tool results are messages of their own."""
    rows: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    for message in messages:
        if isinstance(message, Reminder):
            rows.append({"role": "system", "content": message.text})
        elif isinstance(message, User):  # tool results first, each its own message, then what the user said
            rows += [_output(block) for block in message.content if isinstance(block, ToolOutput)]
            rows += [{"role": "user", "content": message.text}] if message.text else []
        elif message.content:
            calls = [_call(use) for use in message.tool_uses]
            row = {"role": "assistant", "content": message.text or None}
            rows.append({**row, "tool_calls": calls} if calls else row)
    return rows


def _call(use: ToolUse) -> dict[str, Any]:
    """A tool call with its arguments as the JSON text they were."""
    arguments = use.malformed or msgspec.json.encode(use.input).decode()
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _output(result: ToolOutput) -> dict[str, Any]:
    """A tool's result as text, since that is all the format takes."""
    content = result.content
    if not isinstance(content, str):
        content = "\n".join(str(block.get("text") or f"[{block.get('type', 'block')}]") for block in content)
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}


def _usage(wire: dict[str, Any]) -> Usage:
    """Chat completions' token counts in our names; cached tokens are a part of the prompt's there, apart here."""
    cached = (wire.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    prompt = wire.get("prompt_tokens") or 0
    return Usage(
        input_tokens=prompt - cached, output_tokens=wire.get("completion_tokens") or 0, cache_read_input_tokens=cached
    )
