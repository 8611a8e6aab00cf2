"""One turn of the scripted model in each of the four protocols that agent CLIs speak. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
    for tool in (tool for group in groups if isinstance(group, list) for tool in group):
        yield from _tool_names(tool)


def _tool_names(tool: Body, space: str = "") -> Iterator[str]:
    inner = tool.get("functionDeclarations") or (tool.get("tools") if tool.get("type") == "namespace" else None)
    if inner:
        name = str(tool.get("name", ""))
        prefix = f"{space}{name}{NAMESPACE}" if name else space
        for each in inner:
            yield from _tool_names(each, prefix)
    else:
        yield space + str((tool.get("function") or tool.get("custom") or tool).get("name") or tool.get("type"))


class HttpBody(NamedTuple):
    """Bytes and their content type."""

    data: bytes
    kind: str


def _whole(body: Any) -> HttpBody:
    return HttpBody(json.dumps(body).encode(), "application/json")


def _events(events: list[Any], *, named: bool = False, done: bool = False) -> HttpBody:
    lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return HttpBody("".join([*lines, "data: [DONE]\n\n" if done else ""]).encode(), "text/event-stream")


# -- Anthropic ------------------------------------------------------------------------------------------------------


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
        events += _anthropic_block(index, block)
    end = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return _events(events, named=True)


def _anthropic_block(index: int, block: Body) -> Iterator[Body]:
    text = block["type"] == "text"
    empty: Body = {**block, "text": ""} if text else {**block, "input": {}}
    delta = ({"type": "text_delta", "text": block["text"]} if text
             else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])})  # fmt: skip
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


# -- OpenAI ---------------------------------------------------------------------------------------------------------


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
    yield {
        "type": "response.output_item.added",
        **where,
        "item": {**item, "status": "in_progress", field: item[field][:0]},
    }
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


# -- Gemini ---------------------------------------------------------------------------------------------------------

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
