"""The Model Context Protocol's messages as plain objects: read, answered, and made safe to show. Pure.

Two eras are spoken: with `initialize` (to 2025-11-25), and stateless since 2026-07-28, where every request says its
version and each result has a `resultType`. What is not known here passes as it is.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.core.wire.json_text import write
from hookline.display import strip_unseen
from hookline.errors import EventError, extra

Message = dict[str, Any]
Id = str | int

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
HEADER_MISMATCH = -32020
MOST_BYTES = 128 * 1024 * 1024  # the longest message; a server that sends a longer one is ended
REFUSED = -1  # the code with which a client refuses what a server asks of it


def read_messages(line: bytes) -> list[Message]:
    """The messages of a line, which may be a batch; anything else is an `EventError`."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise EventError(f"a line is not JSON: {problem}") from None
    read: list[Message] = []
    for message in value if isinstance(value, list) else [value]:
        if not isinstance(message, dict):
            raise EventError("a line is not a message: expected a JSON object")
        # A request or an answer: its reader could take a message that claims to be both for either.
        others = ("result", "error") if isinstance(message.get("method"), str) else ("method", "params")
        read.append({key: item for key, item in message.items() if key not in others})
    return read


def encode_message(message: Message) -> bytes:
    """The message as one line."""
    return write(message, "a message", EventError) + b"\n"


def id_of(message: Mapping[str, Any], field: str = "id") -> Id | None:
    """A message's id; `None` if there is none, or nothing that can be one."""
    value = message.get(field)
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def params_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message's parameters; none at all count as an empty object."""
    value = message.get("params")
    return value if isinstance(value, dict) else {}


def meta_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says about itself."""
    value = params.get("_meta")
    return value if isinstance(value, dict) else {}


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether a request is of the stateless era, since 2026-07-28."""
    return VERSION in meta_of(params)


def request(id: Id, method: str, params: Mapping[str, Any]) -> Message:
    """A request of our own."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params)}


def result(id: Id, value: Mapping[str, Any]) -> Message:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": id, "result": dict(value)}


def error(id: Id | None, code: int, text: str) -> Message:
    """The answer to a request that failed."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}


def refused(id: Id, params: Mapping[str, Any], why: str, *, is_call: bool, code: int = INTERNAL_ERROR) -> Message:
    """Why a request was refused: for a call a tool's result, which the model reads, else an error."""
    if not is_call:
        return error(id, code, why)
    kind = {"resultType": "complete"} if is_stateless(params) else {}
    return result(id, {**kind, "content": [text_block(why)], "isError": True})


def text_block(text: str) -> dict[str, Any]:
    """A text as a part of a result."""
    return {"type": "text", "text": text}


def as_header(value: Any) -> str:
    """A value as a header; what a header cannot hold is encoded."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def headers_for(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """What HTTP says of a request in its headers, too, since the stateless era."""
    made = {"mcp-protocol-version": str(meta_of(params)[VERSION]), "mcp-method": method}
    if method in ("tools/call", "prompts/get", "resources/read"):
        made["mcp-name"] = as_header(params.get("name", params.get("uri", "")))
    return made


def replace_result(value: Mapping[str, Any], output: Any, schema: Any) -> dict[str, Any]:
    """A result with a hook's output in its place; one that does not fit the tool's `outputSchema` becomes an error.

    A client raises if the tool promises a structure and the result has none, unless the result is an error.
    """
    kept = {key: item for key, item in value.items() if key not in ("content", "structuredContent", "isError")}
    if isinstance(output, dict) and isinstance(output.get("content"), list):
        made = dict(output)
    else:
        made = {"content": [text_block(output if isinstance(output, str) else msgspec.json.encode(output).decode())]}
        made |= {"structuredContent": output} if isinstance(output, dict) else {}
    if schema is not None and not made.get("isError") and misfits(made.get("structuredContent"), schema):
        made = {"content": made["content"], "isError": True}
    return {**kept, **made}


def add_notes(value: Mapping[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    """A result with more for the model to read."""
    if not notes:
        return dict(value)
    return {**value, "content": [*(value.get("content") or ()), *map(text_block, notes)]}


def misfits(value: Any, schema: Any) -> list[str]:
    """Why a value does not fit a JSON Schema, each with where: `/words/0: 1 is not of type 'string'`.

    Nothing is fetched: a schema that refers to another address is not one to judge by.
    """
    with extra("a JSON Schema", "agent"):
        from jsonschema import Draft202012Validator as Validator  # type: ignore[import-untyped]
        from jsonschema.exceptions import SchemaError, _WrappedReferencingError  # type: ignore[import-untyped]
        from referencing import Registry
    try:
        Validator.check_schema(schema)
        judge = Validator(schema, registry=Registry())
        found = sorted(judge.iter_errors(value), key=lambda one: list(map(str, one.absolute_path)))
    except (SchemaError, _WrappedReferencingError, RecursionError) as problem:
        return [f"/: the schema is not one to judge by: {str(problem).partition(chr(10))[0] or 'it has no end'}"]
    return [f"/{'/'.join(map(str, one.absolute_path))}: {one.message}" for one in found]


# -- what does not show ----------------------------------------------------------------------------------------------

_FOR_READERS = ("description", "title")


def strip_result(value: dict[str, Any]) -> dict[str, Any]:
    """A tool's result without what does not show, and with a note if something was removed."""
    clean, removed = _strip(value)
    return add_notes(clean, [_note(removed)]) if removed else value


def strip_tool(tool: dict[str, Any]) -> dict[str, Any] | None:
    """A tool as it is offered; `None` if what does not show is in its name or in values that a call has to repeat."""
    clean: dict[str, Any]
    clean, removed = _strip(tool, only=_FOR_READERS)
    if _strip(clean)[1] or any(strip_unseen(key)[1] for key in _keys(clean)):
        return None
    if removed:
        clean["description"] = f"{clean.get('description', '')}\n\n{_note(removed)}"
    return clean


def strip_text(text: str) -> str:
    """A text without what does not show, and with a note if something was removed."""
    clean, removed = strip_unseen(text)
    return f"{clean}\n\n{_note(removed)}" if removed else text


def _strip(value: Any, only: Sequence[str] | None = None, key: str = "") -> tuple[Any, int]:
    """The value with its texts stripped (of the fields in `only`, if given), and how much was removed."""
    if isinstance(value, str):
        return strip_unseen(value) if only is None or key in only else (value, 0)
    if isinstance(value, dict):
        parts = {name: _strip(item, only, name) for name, item in value.items()}
        return {name: part for name, (part, _) in parts.items()}, sum(count for _, count in parts.values())
    if isinstance(value, list):
        items = [_strip(item, only, key) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    return value, 0


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for item in value.values() for name in _keys(item))]
    return [name for item in value for name in _keys(item)] if isinstance(value, list) else []


def _note(removed: int) -> str:
    return f"[hookline removed {removed} escape sequence(s) or invisible character(s) here]"
