"""What is said in the conversation, read when asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from hookline.errors import BadLine
from hookline.hosts.claude_code.messages import (
    AssistantMessage,
    Message,
    OtherMessage,
    ResultMessage,
    StreamEvent,
    Success,
    SystemMessage,
    UserMessage,
)
from tests.hosts.claude_code.fakes import message

SPOKEN = [
    {"type": "text", "text": "a"},
    {"type": "tool_use", "id": "t"},
    {"type": "tool_result"},
    {"type": "text", "text": "b"},
    5,
]


@pytest.mark.parametrize(
    "fields, kind",
    [
        ({"type": "assistant"}, AssistantMessage),
        ({"type": "user"}, UserMessage),
        ({"type": "system"}, SystemMessage),
        ({"type": "stream_event"}, StreamEvent),
        ({"type": "result"}, ResultMessage),
        ({"type": "new_thing"}, OtherMessage),
        ({}, OtherMessage),
    ],
)
def test_each_type_has_its_class(fields: dict[str, Any], kind: type[Message]) -> None:
    """A type without one is passed on whole."""
    made = message(fields)

    assert type(made) is kind
    assert made.data == fields


def test_content_is_read_in_either_form() -> None:
    """A string is one text block; what is no block is left out."""
    said = message({"type": "assistant", "message": {"content": SPOKEN}})
    asked = UserMessage.of("hi", session_id="s", uuid="u")
    results = message({"type": "user", "message": {"content": SPOKEN}})

    assert isinstance(said, AssistantMessage)
    assert isinstance(results, UserMessage)
    assert (said.text, said.tool_uses) == ("ab", [{"type": "tool_use", "id": "t"}])
    assert results.tool_results == [{"type": "tool_result"}]
    assert (asked.content, asked.session_id, asked.data["uuid"]) == ([{"type": "text", "text": "hi"}], "s", "u")
    assert AssistantMessage("assistant", b'{"type":"assistant"}').content == []


def test_a_result_says_how_the_turn_ended() -> None:
    """Fields of another kind than expected read as absent."""
    fields = {"subtype": "success", "is_error": False, "result": "r", "num_turns": 2, "terminal_reason": "completed"}
    told = message({"type": "result", "permission_denials": [{"tool_name": "Bash"}], "errors": "none", **fields})

    assert isinstance(told, ResultMessage)
    assert {name: getattr(told, name) for name in fields} == fields
    assert (told.permission_denials, told.errors, told.parent_tool_use_id) == ([{"tool_name": "Bash"}], [], None)


def test_a_piece_of_an_answer_has_its_event() -> None:
    """And knows the tool call it belongs to."""
    piece = message({"type": "stream_event", "event": {"type": "ping"}, "parent_tool_use_id": "t"})

    assert isinstance(piece, StreamEvent)
    assert (piece.event, piece.parent_tool_use_id) == ({"type": "ping"}, "t")


def test_what_cannot_be_read_is_a_bad_line() -> None:
    """Reading is late, so its error is too; it is still one of ours."""
    with pytest.raises(BadLine):
        _ = Message("x", b"{").data
    with pytest.raises(BadLine):
        Success("1", Raw(b"{")).data()
    assert Success("1", Raw(b"[1]")).data() == {}
    assert Message("x", b"[1]").data == {}
