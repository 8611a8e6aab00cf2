"""Any model behind a chat completions endpoint, through the official SDK; other servers via `OPENAI_BASE_URL`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from hookline.agent.messages import (
    Assistant,
    Block,
    Message,
    Reminder,
    Text,
    ToolOutput,
    ToolUse,
    Usage,
    User,
)
from hookline.agent.models.base import ModelRequest, ModelResponse, OnEvent, model_errors
from hookline.agent.models.stream import AnswerStream, parse_arguments
from hookline.errors import ModelError, extra

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: why an answer ended, in the words of the Messages API; others are `end_turn`
STOP_REASONS = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class OpenAI:
    """One model of a chat completions server."""

    def __init__(self, name: str, *, api_key: str, base_url: str | None = None, max_retries: int = 5) -> None:
        self.name = name
        self._options: dict[str, Any] = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries}
        self._client: AsyncOpenAI | None = None

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> ModelResponse:
        if request.server_tools:
            names = ", ".join(f"`{tool.get('name')}`" for tool in request.server_tools)
            raise ModelError(f"model `{self.name}`: its server has no {names} of its own", "invalid_request")
        with extra("the OpenAI models", "agent"):
            import openai as sdk
        if self._client is None:
            self._client = sdk.AsyncOpenAI(**self._options)
        answer = Completion(request.model or self.name, on_event)
        with model_errors(sdk, answer.model):
            chunks = await self._client.chat.completions.create(**encode_request(request, answer.model), stream=True)
            async with chunks:
                async for chunk in chunks:
                    answer.feed(chunk.to_dict(mode="json", warnings=False))
            return ModelResponse(message=answer.done())

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None


class Completion:
    """One chat completion while it streams in (no I/O)."""

    def __init__(self, model: str, on_event: OnEvent | None = None) -> None:
        self.model = model
        self._telling = AnswerStream(on_event) if on_event else None
        self._id = ""
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._usage = Usage()

    def feed(self, chunk: dict[str, Any]) -> None:
        self._id = chunk.get("id") or self._id
        if chunk.get("usage"):
            self._usage = decode_usage(chunk["usage"])
        for choice in (chunk.get("choices") or [])[:1]:
            self._finish = choice.get("finish_reason") or self._finish
            self._grow(choice.get("delta") or {})

    def done(self) -> Assistant:
        """The whole answer; raises `ModelError` when the stream ended before it did."""
        if self._finish is None:
            raise ModelError(f"model `{self.model}`: the answer broke off before it was complete", "server_error")
        blocks: list[Block] = [Text("".join(self._text))] if self._text else []
        blocks += [
            parse_arguments(call["id"] or f"call_{at}", call["name"], call["arguments"])
            for at, call in sorted(self._calls.items())
        ]
        finish = "tool_calls" if self._calls and self._finish == "stop" else self._finish
        stop = STOP_REASONS.get(finish, "end_turn")
        message = Assistant(tuple(blocks), self._id, self.model, stop, self._usage)
        if self._telling is not None:
            self._telling.end(message)
        return message

    def _grow(self, delta: dict[str, Any]) -> None:
        if delta.get("content"):
            self._text.append(delta["content"])
            self._say("text_delta", delta["content"], 0, {"type": "text", "text": ""})
        for piece in delta.get("tool_calls") or ():
            call = self._calls.setdefault(piece.get("index", len(self._calls)), {"id": "", "name": "", "arguments": ""})
            function = piece.get("function") or {}
            call["id"] = piece.get("id") or call["id"]
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""
            block = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}
            self._say("input_json_delta", function.get("arguments") or "", piece.get("index", 0) + 1, block)

    def _say(self, kind: str, text: str, index: int, block: dict[str, Any]) -> None:
        if self._telling is not None:
            self._telling.piece(kind, text, index, block, self.model)


def encode_request(request: ModelRequest, model: str) -> dict[str, Any]:
    """The request as a chat completions server takes it."""
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
            outputs = (block for block in message.content if isinstance(block, ToolOutput))
            rows += [
                {"role": "tool", "tool_call_id": one.tool_use_id, "content": plain(one.content)} for one in outputs
            ]
            rows += [{"role": "user", "content": message.text}] if message.text else []
        elif message.content:
            calls = [encode_call(use) for use in message.tool_uses]
            row = {"role": "assistant", "content": message.text or None}
            rows.append({**row, "tool_calls": calls} if calls else row)
    return rows


def encode_call(use: ToolUse) -> dict[str, Any]:
    """A tool call with its arguments as the JSON text they were."""
    arguments = use.malformed or msgspec.json.encode(use.input).decode()
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def plain(content: str | list[dict[str, Any]]) -> str:
    """A tool's result as text, since that is all the format takes."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or f"[{block.get('type', 'block')}]") for block in content)


def decode_usage(wire: dict[str, Any]) -> Usage:
    """Chat completions' token counts in our names; cached tokens are a part of the prompt's there, apart here."""
    cached = (wire.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    prompt = wire.get("prompt_tokens") or 0
    return Usage(
        input_tokens=prompt - cached, output_tokens=wire.get("completion_tokens") or 0, cache_read_input_tokens=cached
    )
