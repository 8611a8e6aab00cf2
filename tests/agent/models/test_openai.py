"""Chat completions, against real sockets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline.agent.messages import Assistant, Reminder, Text, ToolOutput, ToolUse, Usage, User
from hookline.agent.models import choose
from hookline.agent.models.base import ModelRequest, ToolSpec
from hookline.agent.models.openai import OpenAI, encode_messages
from hookline.agent.models.stream import StreamedAnswer as Told
from hookline.errors import ModelError
from tests.agent.loopback import Answer, Loopback, serving, sse

ASK = ModelRequest(
    messages=(User.of("hi"),), system=("be kind",), tools=(ToolSpec("Bash", "runs", {"type": "object"}),)
)


def model(server: Loopback, retries: int = 0) -> OpenAI:
    return OpenAI("gpt-x", api_key="key", base_url=f"{server.url}/v1", max_retries=retries)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x", "choices": [choice]}


def call(index: int | None, arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"index": index, "function": {"arguments": arguments, **name}, **more}


async def test_a_streamed_completion_arrives_whole() -> None:
    """Text and two interleaved tool calls are put together, with the tokens they cost."""
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 4,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    chunks = [
        chunk(role="assistant", content="Hel"),
        chunk(content="lo"),
        chunk(
            tool_calls=[
                call(0, '{"a"', id="x", type="function", name="Bash"),
                call(1, "", id="y", type="function", name="Read"),
            ]
        ),
        chunk(tool_calls=[call(1, '{"b": 2}')]),
        chunk(tool_calls=[call(0, ": 1}")]),
        chunk("tool_calls"),
        {**chunk(), "choices": [], "usage": usage},
    ]
    heard: list[dict[str, Any]] = []
    async with serving(Answer(sse(*chunks, done=True))) as server:
        gpt = model(server)
        said = await gpt.respond(ASK, heard.append)
        await gpt.aclose()

    assert said == Assistant(
        (Text("Hello"), ToolUse("x", "Bash", {"a": 1}), ToolUse("y", "Read", {"b": 2})),
        id="c1",
        model="gpt-x",
        stop_reason="tool_use",
        usage=Usage(input_tokens=10, output_tokens=4, cache_read_input_tokens=2),
    )
    told = Told("gpt")
    for event in heard:
        told.feed(event)
    assert told.done().content == said.content
    assert [event["delta"]["text"] for event in heard if "text" in event.get("delta", {})] == ["Hel", "lo"]
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests[0]["tools"][0]["function"]["name"] == "Bash"


def test_tool_results_become_messages_of_their_own() -> None:
    """The format has a role for them; reminders are system messages."""
    conversation = (
        User.of("go"),
        Assistant((Text("ok"), ToolUse("x", "Bash", {"a": 1}))),
        User.of(ToolOutput("x", [{"type": "text", "text": "out"}]), "and now"),
        Reminder("careful"),
    )

    assert encode_messages(("sys",), conversation) == [
        {"role": "system", "content": "sys"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "ok",
            "tool_calls": [{"id": "x", "type": "function", "function": {"name": "Bash", "arguments": '{"a":1}'}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "out"},
        {"role": "user", "content": "and now"},
        {"role": "system", "content": "careful"},
    ]


@pytest.mark.parametrize(
    "answer,kind",
    [
        (
            Answer(b'{"error": {"message": "no", "code": "insufficient_quota"}}', 429, "application/json"),
            "billing_error",
        ),
        (Answer(b'{"error": {"message": "slow down"}}', 429, "application/json"), "rate_limit"),
        (Answer(b'{"error": {"message": "bad key"}}', 401, "application/json"), "authentication_failed"),
        (Answer(b"<html>oops</html>", 502, "text/html"), "server_error"),
        (Answer(sse(chunk(content="I will now del"))), "server_error"),
        (Answer(sse(chunk(content="I will now del")), cut=True), "server_error"),
        (Answer(sse("{not json")), "server_error"),
        (Answer(b""), "server_error"),
    ],
)
async def test_what_goes_wrong_is_a_model_error(answer: Answer, kind: str) -> None:
    """Refusals, broken streams and garbage all say which model failed and why."""
    async with serving(answer) as server:
        gpt = model(server)
        with pytest.raises(ModelError, match="gpt-x") as caught:
            await gpt.respond(ASK)
        await gpt.aclose()

    assert caught.value.kind == kind


async def test_it_is_tried_again_when_the_server_is_busy() -> None:
    """A 503 with a time to wait is followed by the answer."""
    busy = Answer(b"{}", 503, "application/json", {"retry-after-ms": "1"})
    async with serving(busy, Answer(sse(chunk("stop", content="ok"), done=True))) as server:
        gpt = model(server, retries=1)
        said = await gpt.respond(ASK)
        await gpt.aclose()

    assert (said.text, said.stop_reason, len(server.requests)) == ("ok", "end_turn", 2)


async def test_a_wanted_schema_is_asked_for() -> None:
    """Prompt hooks get one JSON value."""
    schema = {"type": "object"}
    async with serving(Answer(sse(chunk("stop", content=json.dumps({"ok": True})), done=True))) as server:
        gpt = model(server)
        await gpt.respond(ModelRequest(messages=(User.of("hi"),), output_schema=schema))
        await gpt.aclose()

    assert server.requests[0]["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize("index", [{}, {"index": None}], ids=["missing", "null"])
async def test_calls_that_are_not_counted_are_told_apart_by_their_ids(index: dict[str, None]) -> None:
    """Some servers leave the index out, or send null: a piece without an id goes on with the call before it."""
    pieces: list[dict[str, Any]] = [
        {"id": "x", "function": {"name": "Bash", "arguments": '{"a"'}},
        {"function": {"arguments": ": 1}"}},
        {"id": "y", "function": {"name": "Read", "arguments": '{"b": 2}'}},
    ]
    chunks = [chunk(content="Hello"), *(chunk(tool_calls=[{**piece, **index}]) for piece in pieces), chunk("stop")]
    async with serving(Answer(sse(*chunks, done=True))) as server:
        gpt = model(server)
        said = await gpt.respond(ASK)
        await gpt.aclose()

    assert said.content == (Text("Hello"), ToolUse("x", "Bash", {"a": 1}), ToolUse("y", "Read", {"b": 2}))
    assert said.stop_reason == "tool_use"


async def test_organization_project_and_headers_of_the_environment_are_sent() -> None:
    """As the official SDK sends them; an empty variable says nothing."""
    environ = {"OPENAI_API_KEY": "key", "OPENAI_ORG_ID": "org", "OPENAI_CUSTOM_HEADERS": "X-Team: a: b\n\nX-None:"}
    async with serving(Answer(sse(chunk("stop", content="ok"), done=True))) as server:
        for more in ({"OPENAI_PROJECT_ID": "shop"}, {"OPENAI_PROJECT_ID": "", "OPENAI_ORG_ID": ""}):
            gpt = choose("openai:gpt-x", {**environ, "OPENAI_BASE_URL": f"{server.url}/v1", **more})
            await gpt.respond(ASK)
            await gpt.aclose()  # type: ignore[attr-defined]

    names = ("authorization", "openai-organization", "openai-project", "x-team", "x-none")
    assert [[sent.get(name) for name in names] for sent in server.headers] == [
        ["Bearer key", "org", "shop", "a: b", None], ["Bearer key", None, None, "a: b", None]
    ]  # fmt: skip
