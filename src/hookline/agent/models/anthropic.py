"""Claude, over the Messages API; other servers via `ANTHROPIC_BASE_URL`.

`CLAUDE_CODE_MAX_RETRIES` sets how often a request that failed is made again.
"""

import os
import re
from typing import Any

import msgspec

from hookline.agent.hook_messages import wrapped
from hookline.agent.messages import Message, Reminder, User, encode_message
from hookline.agent.models.base import ModelRequest
from hookline.agent.models.stream import ServerModel

DEFAULT_RETRIES = 10
DEFAULT_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
#: models that take reminders as messages of role `system`; others get them wrapped in the user's text (FACTS.md §1)
SYSTEM_ROLE = re.compile(r"claude-[a-z]+-([5-9]|\d\d)\b")
CACHED = {"cache_control": {"type": "ephemeral"}}


class Anthropic(ServerModel):
    """One Claude model."""

    def __init__(
        self, name: str, *, api_key: str = "", auth_token: str = "", base_url: str = "", max_retries: int | None = None
    ) -> None:
        headers = {"anthropic-version": VERSION}
        if auth_token:
            headers["authorization"] = f"Bearer {auth_token}"
        elif api_key:
            headers["x-api-key"] = api_key
        if max_retries is None:
            max_retries = int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", DEFAULT_RETRIES))
        super().__init__(name, f"{(base_url or DEFAULT_URL).rstrip('/')}/v1/messages", headers, max_retries)

    def encode_request(self, request: ModelRequest, model: str) -> dict[str, Any]:
        system: list[dict[str, Any]] = [{"type": "text", "text": text} for text in request.system]
        if system:
            system[-1] |= CACHED
        form = request.output_schema and {"type": "json_schema", "schema": request.output_schema}
        output = {"format": form, "effort": request.effort if SYSTEM_ROLE.match(model) else None}
        optional = {
            "system": system,
            "tools": [*map(msgspec.structs.asdict, request.tools), *request.server_tools],
            "output_config": {name: value for name, value in output.items() if value},
            "thinking": request.thinking,
        }
        messages = encode_messages(request.messages, model)
        stated = {name: value for name, value in optional.items() if value}
        return {"model": model, "max_tokens": request.max_tokens, "messages": messages, **stated}


def encode_messages(messages: tuple[Message, ...], model: str) -> list[dict[str, Any]]:
    """The conversation, reminders worded as this model expects them, neighbours of one side joined."""
    native = bool(SYSTEM_ROLE.match(model))
    rows: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, Reminder) and not native:  # as older models expect it
            message = User.of(wrapped(message.text), synthetic=True)  # noqa: PLW2901 - from here on it is that
        row = encode_message(message)
        if rows and row["role"] == rows[-1]["role"] == "user":
            rows[-1]["content"] = [*rows[-1]["content"], *row["content"]]
        elif row["content"]:  # the API refuses a message without content
            rows.append(row)
    # the conversation so far is to be cached, which its last user block says
    last = next((row for row in reversed(rows) if row["role"] == "user"), None)
    if last and isinstance(last["content"], list):
        last["content"] = [*last["content"][:-1], {**last["content"][-1], **CACHED}]
    return rows
