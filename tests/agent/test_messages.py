"""Messages as values, and as the Messages API writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.agent.messages import (
    Assistant,
    Message,
    Raw,
    Reminder,
    Text,
    ToolOutput,
    ToolUse,
    Usage,
    User,
    decode_entry,
    encode_entry,
)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=3)
raw = st.builds(lambda more: Raw({**more, "type": "thinking"}), objects)
said = st.builds(Text, st.text(min_size=1))
uses = st.builds(ToolUse, st.text(), st.text(), objects)
outputs = st.builds(ToolOutput, st.text(), st.text(), st.booleans())
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(User, st.lists(said | outputs | raw, max_size=4).map(tuple)),
    st.builds(Assistant, st.lists(said | uses | raw, max_size=4).map(tuple)),
    st.builds(Reminder, st.text(min_size=1)),
)


@given(messages)
def test_a_message_survives_the_transcript(message: Message) -> None:
    """What is written is read back, block by block."""
    assert decode_entry(encode_entry(message)) == message


@pytest.mark.parametrize(
    "wire,message",
    [
        ({}, User(())),
        ({"role": "user", "content": "hi"}, User.of("hi")),
        ({"role": "user", "content": None}, User(())),
        ({"role": "assistant", "content": ["odd"]}, Assistant((Text("odd"),))),
        ({"role": "assistant", "content": [{"type": "new", "x": 1}]}, Assistant((Raw({"type": "new", "x": 1}),))),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, Assistant((ToolUse("", "", {}),))),
        (
            {"role": "assistant", "content": [], "usage": {"input_tokens": "x", "output_tokens": 2}},
            Assistant((), usage=Usage(output_tokens=2)),
        ),
    ],
)
def test_odd_messages_are_read_as_far_as_they_go(wire: dict[str, Any], message: Message) -> None:
    """Whatever another program wrote into a transcript, reading it does not fail."""
    assert decode_entry({"type": wire.get("role", "user"), "message": wire}) == message


def test_usages_add_up() -> None:
    """Field by field; together they say how full the context is."""
    total = Usage(input_tokens=1, cache_read_input_tokens=5) + Usage(input_tokens=2, output_tokens=3)

    assert total == Usage(input_tokens=3, output_tokens=3, cache_read_input_tokens=5)
    assert total.context_tokens == 11


def test_a_user_message_is_made_of_strings_and_blocks() -> None:
    """And its words can be asked for."""
    message = User.of("a", ToolOutput("t", "out"), "b")

    assert (message.content, message.text) == ((Text("a"), ToolOutput("t", "out"), Text("b")), "ab")
