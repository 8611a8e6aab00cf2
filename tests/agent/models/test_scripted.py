"""The model that says what it was told to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.messages import ToolUse, User
from hookline.agent.models.base import Model, ModelRequest
from hookline.agent.models.scripted import Scripted
from hookline.agent.models.stream import StreamedAnswer
from hookline.errors import ModelError


def ask(text: str = "go", **more: object) -> ModelRequest:
    return ModelRequest(messages=(User.of(text),), **more)  # type: ignore[arg-type]


async def test_turns_come_in_order_and_the_last_one_stays() -> None:
    """A Stop hook may ask for more turns than were written."""
    model = Scripted.of({"text": "a", "tools": [["Bash", {"command": "ls"}]]}, "b")

    first, second, third = [await model.respond(ask()) for _ in range(3)]

    assert first.tool_uses == (ToolUse("toolu_1_0", "Bash", {"command": "ls"}),)
    assert (first.stop_reason, second.text, third.text) == ("tool_use", "b", "b")
    assert isinstance(model, Model)


async def test_a_script_that_ends_with_a_tool_call_does_not_loop() -> None:
    """The error says what is missing."""
    model = Scripted.of({"tools": [["Bash", {}]]})
    await model.respond(ask())

    with pytest.raises(ModelError, match="ends after 1 turns with a tool call; add a turn"):
        await model.respond(ask())


async def test_lanes_answer_the_requests_they_claim() -> None:
    """A subagent's prompt, or a prompt hook's, has turns of its own and uses up no others."""
    model = Scripted.of("main", lanes={"sub": {"first": "SUBTASK", "turns": [{"text": "sub"}]}})

    said = [(await model.respond(ask(text))).text for text in ("a SUBTASK b", "go")]

    assert said == ["sub", "main"]


async def test_a_side_question_uses_up_no_turn() -> None:
    """A request for a schema that no lane claims is answered with an empty object."""
    model = Scripted.of("main")

    assert (await model.respond(ask(output_schema={"type": "object"}))).text == "{}"
    assert (await model.respond(ask())).text == "main"


async def test_a_scripted_failure_is_a_model_error() -> None:
    """Status and error are worded as the API words them."""
    model = Scripted.of({"status": 529, "error": {"error": {"type": "overloaded_error", "message": "busy"}}})

    with pytest.raises(ModelError, match="HTTP 529: busy") as caught:
        await model.respond(ask())
    assert caught.value.kind == "overloaded"


async def test_input_that_is_no_object_is_marked_malformed() -> None:
    """As a real model's broken arguments are."""
    (use,) = (await Scripted.of({"tools": [["Bash", "ls"]]}).respond(ask())).tool_uses

    assert use == ToolUse("toolu_1_0", "Bash", {}, malformed="ls")


async def test_words_are_told_as_they_stream() -> None:
    """`on_event` hears a scripted answer too."""
    heard: list[dict[str, Any]] = []
    await Scripted.of({"text": "hello", "tools": [["Bash", {"command": "ls"}]]}).respond(ask(), heard.append)

    assert [event["type"] for event in heard] == [
        "message_start",
        *("content_block_start", "content_block_delta") * 2,
        *("content_block_stop",) * 2,
        "message_delta",
        "message_stop",
    ]
    answer = StreamedAnswer("scripted")
    for event in heard:
        answer.feed(event)
    assert answer.done().text == "hello"
    assert answer.done().tool_uses == (ToolUse("toolu_1_0", "Bash", {"command": "ls"}),)


@pytest.mark.parametrize(
    "text,says",
    [
        ("[{]", "is not valid"),
        ('[{"txet": "x"}]', "unknown field `txet`"),
        ('{"lanes": {"a": {"first": "x"}}}', "missing required field `turns`"),
        ("3", "Expected `object`"),
    ],
)
def test_a_broken_script_says_where(tmp_path: Path, text: str, says: str) -> None:
    """The file and the key are named."""
    path = tmp_path / "s.json"
    path.write_text(text)

    with pytest.raises(ModelError) as caught:
        Scripted.load(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_every_script_of_the_contract_can_be_read(contract: Path) -> None:
    """The recorded cases' turns and lanes are our format."""
    count = 0
    for path in sorted((contract / "cases").glob("*.json")):
        case = json.loads(path.read_text())
        Scripted.of(*case["model"], lanes=case.get("lanes"))
        count += 1

    assert count > 300
