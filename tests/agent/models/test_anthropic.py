"""Claude over the Messages API, against real sockets."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.agent.messages import Assistant, Raw, Reminder, Text, ToolOutput, ToolUse, Usage, User
from hookline.agent.models.anthropic import DEFAULT_RETRIES, Anthropic, encode_messages
from hookline.agent.models.base import ModelRequest, ToolSpec
from hookline.agent.models.stream import _pause
from hookline.errors import ModelError
from tests.agent.loopback import Answer, Loopback, message, refused, serving, sse, text_block, tool_block

ASK = ModelRequest(messages=(User.of("hi"),), system=("be kind",))


def model(server: Loopback, retries: int = 0) -> Anthropic:
    return Anthropic("claude-opus-5-5", api_key="key", base_url=server.url, max_retries=retries)


async def failing(*answers: Answer, retries: int = 0) -> tuple[ModelError, int]:
    """The error a server's answers lead to, and how often it was asked."""
    async with serving(*answers) as server:
        claude = model(server, retries)
        with pytest.raises(ModelError) as caught:
            await claude.respond(ASK)
        await claude.aclose()
        return caught.value, len(server.requests)


async def test_a_streamed_answer_arrives_whole_and_piece_by_piece() -> None:
    """Text, thinking and tool calls are put together; every piece is told while it arrives."""
    thinking = (
        {"type": "thinking", "thinking": "", "signature": ""},
        [
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "s"},
        ],
    )
    answer = message(thinking, text_block("Hel", "lo"), tool_block("Bash", '{"comm', 'and": "ls"}'), stop="tool_use")
    heard: list[dict[str, Any]] = []
    async with serving(Answer(sse(*answer))) as server:
        claude = model(server)
        said = await claude.respond(ASK, heard.append)
        await claude.aclose()

    assert said == Assistant(
        (
            Raw({"type": "thinking", "thinking": "hm", "signature": "s"}),
            Text("Hello"),
            ToolUse("t1", "Bash", {"command": "ls"}),
        ),
        id="msg_1",
        model="m",
        stop_reason="tool_use",
        usage=Usage(input_tokens=10, output_tokens=7, cache_read_input_tokens=3),
    )
    deltas = [event["delta"] for event in heard if event["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "text_delta",
        "input_json_delta",
        "input_json_delta",
    ]
    assert [heard[0]["type"], heard[-1]["type"]] == ["message_start", "message_stop"]


async def test_the_request_says_everything_it_was_given() -> None:
    """System text, tools, the wanted schema, effort and the model of this one request reach the server."""
    tool = ToolSpec("Bash", "runs", {"type": "object"})
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    request = ModelRequest(
        messages=(User.of("hi"),),
        system=("a", "b"),
        tools=(tool,),
        model="claude-fable-5",
        output_schema=schema,
        effort="low",
    )
    async with serving(Answer(sse(*message(text_block("x"))))) as server:
        claude = model(server)
        await claude.respond(request)
        await claude.aclose()

    sent = server.requests[0]
    assert server.paths == ["/v1/messages"]
    assert [block["text"] for block in sent["system"]] == ["a", "b"]
    assert sent["tools"] == [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}]
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": schema}, "effort": "low"}
    assert (sent["model"], sent["stream"]) == ("claude-fable-5", True)


@pytest.mark.parametrize(
    "status,kind,expected",
    [
        (400, "invalid_request_error", "invalid_request"),
        (401, "authentication_error", "authentication_failed"),
        (402, "billing_error", "billing_error"),
        (404, "not_found_error", "model_not_found"),
        (429, "rate_limit_error", "rate_limit"),
        (500, "api_error", "server_error"),
        (529, "overloaded_error", "overloaded"),
        (418, "teapot_error", "unknown"),
    ],
)
async def test_a_refusal_has_the_kind_a_stop_failure_event_carries(status: int, kind: str, expected: str) -> None:
    """Status and the server's own word become one of the known kinds, with the server's reason."""
    problem, asked = await failing(refused(status, kind, "no way"))

    assert (problem.kind, problem.status, asked) == (expected, status, 1)
    assert "no way" in str(problem)


async def test_it_is_tried_again_when_the_server_is_overloaded() -> None:
    """A 529 and a 429 that say when to come back are followed by the answer."""
    soon = {"retry_after_ms": "1"}
    answers = [
        refused(529, "overloaded_error", **soon),
        refused(429, "rate_limit_error", **soon),
        Answer(sse(*message(text_block("at last")))),
    ]
    async with serving(*answers) as server:
        claude = model(server, retries=2)
        said = await claude.respond(ASK)
        await claude.aclose()

    assert (said.text, len(server.requests)) == ("at last", 3)


async def test_it_is_not_tried_again_when_the_server_says_so() -> None:
    """`x-should-retry: false` ends it at once, retries or not."""
    problem, asked = await failing(refused(529, "overloaded_error", x_should_retry="false"), retries=5)

    assert (problem.kind, asked) == ("overloaded", 1)


async def test_a_stream_that_breaks_off_in_the_middle_is_an_error() -> None:
    """Half an answer is never taken for a whole one, whether the connection breaks or just ends."""
    half = message(text_block("I will now del"))[:3]
    for cut in (True, False):
        problem, asked = await failing(Answer(sse(*half), cut=cut), retries=3)

        assert (problem.kind, asked) == ("server_error", 1)


async def test_a_stream_that_breaks_off_before_its_first_word_is_tried_again() -> None:
    """Nothing was said yet, so asking again is safe."""
    async with serving(Answer(sse(*message()[:1])), Answer(sse(*message(text_block("whole"))))) as server:
        claude = model(server, retries=1)
        said = await claude.respond(ASK)
        await claude.aclose()

    assert (said.text, len(server.requests)) == ("whole", 2)


async def test_an_error_inside_the_stream_is_told() -> None:
    """A server that gives up half way says why, and so do we."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}}
    problem, _ = await failing(Answer(sse(*message(text_block("x"))[:3], error)))

    assert problem.kind == "overloaded"
    assert "too much" in str(problem)


@pytest.mark.parametrize(
    "body",
    [
        b"event: message_start\ndata: {not json\n\n",
        b"<html>a proxy's error page</html>",
        b"",
        b"\x00\xff\xfe",
        sse({"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "x"}}),
        sse({"type": "content_block_start"}),
        sse({"type": "message_stop"}),
        sse({"type": "message_start", "message": []}, {"type": "message_stop"}),
    ],
)
async def test_garbage_is_a_clear_error(body: bytes) -> None:
    """Whatever a broken server sends, the run hears of it as a model error."""
    problem, _ = await failing(Answer(body))

    assert problem.kind in {"server_error", "unknown"}
    assert "claude-opus-5-5" in str(problem)


async def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    """A refused connection is a model error too."""
    async with serving(Answer()) as server:
        pass
    claude = model(server)
    with pytest.raises(ModelError, match=r"claude-opus-5-5.*cannot be reached"):
        await claude.respond(ASK)
    await claude.aclose()


def test_a_server_that_is_not_there_is_given_up_within_a_minute() -> None:
    """All pauses of all attempts; the Claude CLI takes three."""
    assert sum(_pause(attempt, None) for attempt in range(DEFAULT_RETRIES)) < 60
    assert [_pause(0, asked) for asked in (0.0, 2.0, 60.0)] == [0.0, 2.0, 60.0]
    assert _pause(0, 3600.0) < 1


async def test_arguments_that_are_no_json_are_kept_for_the_model_to_mend() -> None:
    """The call is well-formed, its input empty, and the broken text is at hand."""
    async with serving(Answer(sse(*message(tool_block("Bash", '{"command": "ls'), stop="max_tokens")))) as server:
        claude = model(server)
        said = await claude.respond(ASK)
        await claude.aclose()

    assert said.tool_uses == (ToolUse("t1", "Bash", {}, malformed='{"command": "ls'),)


async def test_an_answer_may_be_empty_or_very_long() -> None:
    """No content at all, and ten thousand tool calls, are both answers."""
    many = message(*(tool_block("Read", "{}", id=f"t{n}") for n in range(10_000)), stop="tool_use")
    async with serving(Answer(sse(*message())), Answer(sse(*many))) as server:
        claude = model(server)
        empty, full = await claude.respond(ASK), await claude.respond(ASK)
        await claude.aclose()

    assert (empty.content, empty.stop_reason) == ((), "end_turn")
    assert [use.id for use in full.tool_uses] == [f"t{n}" for n in range(10_000)]


def test_newer_models_get_reminders_as_system_messages_and_older_ones_in_the_users_text() -> None:
    """FACTS §1: role `system` after the user message, or wrapped text in it."""
    conversation = (User.of(ToolOutput("t1", "out")), Reminder("mind the gap"))

    assert encode_messages(conversation, "claude-opus-5-5")[1] == {"role": "system", "content": "mind the gap"}
    (old,) = encode_messages(conversation, "claude-sonnet-4-5")
    assert [block.get("text") for block in old["content"]] == [
        None,
        "<system-reminder>\nmind the gap\n</system-reminder>",
    ]


def test_neighbours_of_one_side_are_one_message() -> None:
    """The API wants turns to alternate; what the user side says in several steps is joined, nothing empty is sent."""
    conversation = (User.of("a"), User.of("b"), Assistant(()), User.of("c"))

    (row,) = encode_messages(conversation, "claude-opus-5-5")
    assert [block["text"] for block in row["content"]] == ["a", "b", "c"]
