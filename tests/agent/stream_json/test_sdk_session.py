"""What hosts that drive `hookline run` over the official SDKs rely on, message by message."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.agent.agent import Agent
from hookline.agent.context.definitions import Skill
from hookline.agent.factory import RunOptions, make
from hookline.agent.messages import Assistant, Usage
from hookline.agent.models import choose, resolve
from hookline.agent.models.base import TABLE, cost_of, has_price
from hookline.agent.models.scripted import Scripted
from hookline.agent.session.transcript import read_transcript
from hookline.agent.stream_json.output import refuse
from hookline.agent.tools.delegate import read_schema
from hookline.errors import ConfigError, TranscriptError
from hookline.events import PreToolUse
from hookline.guards.permissions import read_rules
from hookline.hosts.gateway.messages import misfits
from tests.agent.driving import agent_on, bash, heard, reminders, requests_of

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "kind": {"enum": ["a", "b"]}, "words": {"items": {"type": "string"}}},
    "required": ["count"],
    "additionalProperties": False,
}


def answers(value: Any) -> dict[str, Any]:
    return {"tools": [["StructuredOutput", value]]}


# -- an answer with a form ---------------------------------------------------------------------------------------


async def test_an_answer_in_the_form_that_was_asked_for_ends_the_run(tmp_path: Path) -> None:
    """The model gives it by a tool; the result has it as a value and as text."""
    async with agent_on(tmp_path, bash("true"), answers({"count": 2}), "never said", schema=SCHEMA) as agent:
        notes = heard(agent)
        result = await agent.run("count")

    assert (result.structured, result.text, result.subtype) == ({"count": 2}, '{"count":2}', "success")
    assert notes[-1]["structured_output"] == {"count": 2}
    assert notes[-1]["num_turns"] == 3
    assert len(requests_of(agent)) == 2


async def test_an_answer_of_another_form_is_sent_back(tmp_path: Path) -> None:
    """Words alone and values that do not fit are answered with what is missing."""
    turns = ("two", answers({"count": "two"}), answers({"count": 2, "kind": "c"}), answers({"count": 2, "kind": "a"}))
    async with agent_on(tmp_path, *turns, schema=SCHEMA) as agent:
        result = await agent.run("count")

    assert result.structured == {"count": 2, "kind": "a"}
    assert "/count: 'two' is not of type 'integer'" in str(requests_of(agent)[2].messages[-1])
    assert "/kind: 'c' is not one of" in str(requests_of(agent)[3].messages[-1])


async def test_a_model_that_never_gives_the_form_is_an_error(tmp_path: Path) -> None:
    """After so many reminders the run ends with Claude Code's subtype."""
    async with agent_on(tmp_path, "no", schema=SCHEMA) as agent:
        result = await agent.run("count")

    assert (result.subtype, result.is_error) == ("error_max_structured_output_retries", True)


async def test_a_hook_may_refuse_the_answer(tmp_path: Path) -> None:
    """StructuredOutput is a tool call like any other."""
    hooks = Hooks()

    @hooks.on(PreToolUse, match="StructuredOutput")
    async def once(event: PreToolUse) -> Any:
        return deny("count again") if event.tool_input["count"] == 1 else None

    async with agent_on(tmp_path, answers({"count": 1}), answers({"count": 2}), hooks=hooks, schema=SCHEMA) as agent:
        result = await agent.run("count")

    assert result.structured == {"count": 2}


MISFITS: list[tuple[Any, Any, str]] = [
    (True, {"type": "integer"}, "/: "),
    ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "string"}}}}, "/a/0: "),
    ({}, {"required": ["x"]}, "/: 'x' is a required property"),
    (1, {"oneOf": [{"type": "integer"}, {"type": "number"}]}, "/: "),
    ({"n": {"n": 1}}, {"$defs": {"t": {"type": "object", "properties": {"n": {"$ref": "#/$defs/t"}}}},
                       "$ref": "#/$defs/t"}, "/n/n: "),
    (1, {"$ref": "https://elsewhere.example/s.json"}, "/: the schema is not one to judge by"),
    (1, {"$ref": "#"}, "/: the schema is not one to judge by"),
    (1, {"type": "whole"}, "/: the schema is not one to judge by"),
]  # fmt: skip


def test_a_value_that_does_not_fit_says_where() -> None:
    """With the path of what is wrong; a schema that cannot be judged by fits nothing."""
    for value, schema, says in MISFITS:
        [found] = misfits(value, schema)
        assert found.startswith(says), (value, schema)
    assert misfits({"a": ["x"]}, MISFITS[1][1]) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "array"}', "3"])
def test_a_schema_that_describes_no_object_is_refused(text: str) -> None:
    """With the name of the flag."""
    with pytest.raises(ConfigError, match="--json-schema"):
        read_schema(text)


# -- cost, budgets, turns ----------------------------------------------------------------------------------------


async def test_cost_and_usage_are_told_model_by_model(tmp_path: Path) -> None:
    """The sum of the models' costs is the total; a second prompt adds to both."""
    model = Scripted.of("hi", "there")
    model.name = "claude-sonnet-4-5"
    async with Agent(model=model, cwd=tmp_path, environ={"HOME": str(tmp_path)}) as agent:
        first = await agent.run("go")
        second = await agent.run("go on")

    assert first.cost_usd == pytest.approx(0.000105)  # what the Claude CLI reports for 10 tokens in and 5 out
    assert second.cost_usd == pytest.approx(0.00021)
    row = second.model_usage["claude-sonnet-4-5"]
    assert (row["inputTokens"], row["outputTokens"], row["costUSD"]) == (20, 10, pytest.approx(0.00021))


async def test_a_budget_ends_the_run_between_two_requests(tmp_path: Path) -> None:
    """What is spent is spent; nothing more is asked."""
    model = Scripted.of(bash("true"), bash("true"), "never")
    model.name = "claude-sonnet-4-5"
    rules = read_rules({}, allowed=["Bash"])
    agent = Agent(model=model, cwd=tmp_path, environ={"HOME": str(tmp_path)}, budget=0.0002, rules=rules)
    async with agent:
        result = await agent.run("go")

    assert (result.subtype, result.reason, result.is_error) == ("error_max_budget_usd", "budget_exhausted", True)
    assert len(model.requests) == 2


async def test_a_budget_for_a_model_without_a_price_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A promise nobody could keep is not made."""
    (tmp_path / "turns.json").write_text("[]")
    options = RunOptions(prompt="go", model=f"scripted:{tmp_path}/turns.json", max_budget_usd=1.0, bare=True)

    with pytest.raises(ConfigError, match="the price of model `scripted` is not known"):
        await make(options, str(tmp_path), lambda _: Hooks())


def test_every_family_has_a_price_and_caches_count() -> None:
    """A token written to the cache costs a quarter more, one read from it a tenth."""
    assert all(price.tokens_out > price.tokens_in > 0 for _, price in TABLE.prices)
    assert not has_price("gpt-x")
    used = Usage(cache_creation_input_tokens=1_000_000, cache_read_input_tokens=1_000_000)
    assert cost_of("claude-haiku-4-5", used) == pytest.approx(1.35)


async def test_turns_are_counted_as_the_claude_cli_counts_them(tmp_path: Path) -> None:
    """Each word to the model is one: the prompt, and every tool's result."""
    both = {"tools": [["Bash", {"command": "true"}], ["Bash", {"command": "true"}]]}
    async with agent_on(tmp_path, both, bash("true"), "done") as agent:
        assert (await agent.run("go")).turns == 4


# -- what the stream says ----------------------------------------------------------------------------------------


async def test_pieces_are_whole_events_of_the_messages_api(tmp_path: Path) -> None:
    """From `message_start` to `message_stop`, before the message itself."""
    async with agent_on(tmp_path, "hello") as agent:
        notes = heard(agent)
        agent.output.partial = True
        await agent.run("go")

    kinds = [note["event"]["type"] if note["type"] == "stream_event" else note["type"] for note in notes]
    assert kinds == ["message_start", "content_block_start", "content_block_delta", "content_block_stop",
                     "message_delta", "message_stop", "assistant", "result"]  # fmt: skip


async def test_a_message_has_one_uuid_in_stream_and_transcript(tmp_path: Path) -> None:
    """So a host can name the message at which to go on."""
    async with agent_on(tmp_path, {"text": "first", "tools": [["Bash", {"command": "true"}]]}, "done") as agent:
        notes = heard(agent)
        await agent.run("go")
        assert agent.conversation.transcript is not None
        lines = [json.loads(line) for line in agent.conversation.transcript.path.read_text().splitlines()]

    said = [note["uuid"] for note in notes if note["type"] == "assistant"]
    assert said == [line["uuid"] for line in lines if line["type"] == "assistant"]
    assert len(said) == 3


async def test_a_session_goes_on_after_the_message_that_was_named(tmp_path: Path) -> None:
    """What came later does not count, now and for whoever resumes next; a message nobody knows is an error."""
    async with agent_on(tmp_path, "one", "two") as agent:
        notes = heard(agent)
        await agent.run("first")
        await agent.run("second")
        assert agent.conversation.transcript is not None
        path = agent.conversation.transcript.path
    first = next(note["uuid"] for note in notes if note["type"] == "assistant")

    async with agent_on(tmp_path, "three", resume=path, upto=first) as again:
        await again.run("third")
    async with agent_on(tmp_path, "four", resume=path) as later:
        await later.run("fourth")
    words = [message.text for message in later.messages if isinstance(message, Assistant)]

    assert words == ["one", "three", "four"]
    async with agent_on(tmp_path, "x", resume=path, upto="nobody") as lost:
        with pytest.raises(TranscriptError, match="no message `nobody`"):
            await lost.start()


async def test_clearing_the_conversation_is_told(tmp_path: Path) -> None:
    """`conversation_reset` under the old session's id; what follows is another session, in a file of its own."""
    async with agent_on(tmp_path, "hi", "again") as agent:
        notes = heard(agent)
        for prompt in ("go", "/clear", "on"):
            await agent.run(prompt)
        transcript = agent.conversation.transcript
    assert transcript is not None

    (reset,) = [note for note in notes if note["type"] == "conversation_reset"]
    before, cleared, after = [note["session_id"] for note in notes if note["type"] == "result"]
    assert (reset["trigger"], reset["session_id"], bool(reset["new_conversation_id"])) == ("clear", before, True)
    assert before != cleared == after == transcript.path.stem
    assert [message.text for message in read_transcript(transcript.path.with_name(f"{before}.jsonl"))[0]] == [
        "go",
        "hi",
    ]


async def test_a_turn_is_left_out_only_if_it_is_the_one_that_was_meant(tmp_path: Path) -> None:
    """`drops` names the prompt; with another, or with several turns, nothing is touched."""
    async with agent_on(tmp_path, "one", "two", "three") as agent:
        notes = heard(agent)
        for prompt in ("first", "second"):
            await agent.run(prompt)
        assert agent.conversation.transcript is not None
        path = agent.conversation.transcript.path
    kept = next(note["uuid"] for note in notes if note["type"] == "assistant")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    (second,) = [entry["uuid"] for entry in entries if entry["type"] == "user" and "second" in str(entry)]
    before = path.read_bytes()

    for wrong in ("nobody", kept):
        async with agent_on(tmp_path, "x", resume=path, fork=True, upto=kept, drops=wrong) as refused:
            with pytest.raises(TranscriptError, match="Resume rejected by --resume-drops-turn"):
                await refused.start()
    assert (path.read_bytes(), sorted(path.parent.glob("*.jsonl"))) == (before, [path])

    async with agent_on(tmp_path, "four", resume=path, fork=True, upto=kept, drops=second) as forked:
        await forked.run("third")
    assert [message.text for message in forked.messages] == ["first", "one", "third", "four"]


async def test_a_subagent_that_is_waited_for_speaks_to_its_parent(tmp_path: Path) -> None:
    """Its tool calls are told, its words only where the host wants them; its file says which call it belongs to."""
    spawn = {"tools": [["Agent", {"description": "d", "prompt": "sub", "run_in_background": False}]]}
    for wanted in (False, True):
        lanes = {"sub": {"first": "^sub$", "turns": [{"text": "hm", **bash("true")}, {"text": "from below"}]}}
        async with agent_on(tmp_path, spawn, "done", lanes=lanes) as agent:
            agent.output.subagent_text = wanted
            notes = heard(agent)
            await agent.run("go")
        said = [note for note in notes if note["type"] == "assistant"]
        call = said[0]["message"]["content"][0]["id"]
        below = [note["message"]["content"][0]["type"] for note in said if note["parent_tool_use_id"] == call]

        assert below == (["text", "tool_use", "text"] if wanted else ["tool_use"])
        assert agent.conversation.transcript is not None
        folder = agent.conversation.transcript.path.with_suffix("") / "subagents"
        (about,) = [json.loads(path.read_bytes()) for path in folder.glob("*.meta.json")]
        assert about == {"agentType": "general-purpose", "description": "d", "toolUseId": call, "spawnDepth": 1}


async def test_a_result_says_where_its_prompt_came_from(tmp_path: Path) -> None:
    """The host's stamp comes back with the answer to that prompt, and with no other."""
    async with agent_on(tmp_path, "one", "two") as agent:
        notes = heard(agent)
        await agent.run("first", origin={"kind": "human"})
        await agent.run("second")

    assert [note.get("origin") for note in notes if note["type"] == "result"] == [{"kind": "human"}, None]


async def test_a_turn_that_nobody_typed_says_what_woke_it(tmp_path: Path) -> None:
    """A background agent's end is a prompt; its result has an origin, and its messages their parent's call."""
    spawn = {"tools": [["Agent", {"description": "d", "prompt": "sub", "run_in_background": True}]]}
    lanes = {"sub": {"first": "^sub$", "turns": [{"text": "from below"}]}}
    async with agent_on(tmp_path, spawn, "launched", "heard", lanes=lanes) as agent:
        notes = heard(agent)
        await agent.run("go")
        await agent.background()

    results = [note for note in notes if note["type"] == "result"]
    assert [note.get("origin") for note in results] == [None, {"kind": "task-notification"}]
    call = next(note["message"]["content"][0]["id"] for note in notes if note["type"] == "assistant")
    (below,) = [note for note in notes if "from below" in str(note.get("message")) and note["type"] == "assistant"]
    assert below["parent_tool_use_id"] == call
    about = [note["tool_use_id"] for note in notes if note.get("subtype") in ("task_started", "task_notification")]
    assert about == [call, call]


async def test_transcripts_are_mirrored_with_those_of_subagents(tmp_path: Path) -> None:
    """Every line that is written is told, with its file, and before a subagent's whose it is."""
    told: list[tuple[str, dict[str, Any]]] = []
    spawn = {"tools": [["Agent", {"description": "d", "prompt": "sub", "run_in_background": False}]]}
    lanes = {"sub": {"first": "^sub$", "turns": [{"text": "from below"}]}}
    agent = agent_on(tmp_path, spawn, "done", lanes=lanes)
    agent.mirror = lambda path, entry: told.append((path, entry))
    async with agent:
        await agent.run("go")

    for path in {path for path, _ in told}:
        written = [json.loads(line) for line in Path(path).read_text().splitlines()]
        assert [entry for where, entry in told if where == path and entry["type"] != "agent_metadata"] == written
    assert [entry["agentType"] for _, entry in told if entry["type"] == "agent_metadata"] == ["general-purpose"]
    assert len({path for path, _ in told}) == 2


# -- files that a prompt mentions ----------------------------------------------------------------------------------


async def test_a_file_that_a_prompt_mentions_comes_with_it(tmp_path: Path) -> None:
    """In the request and in the transcript; a prompt that is verbatim, or that nobody typed, stays as it is."""
    (tmp_path / "notes.txt").write_text("the marker")
    for mentions in (True, False):
        async with agent_on(tmp_path, "ok") as agent:
            await agent.run("what does @notes.txt say?", mentions=mentions)
            assert agent.conversation.transcript is not None
            written = agent.conversation.transcript.path.read_text()

        assert ("the marker" in str(reminders(requests_of(agent)[0]))) is mentions
        assert ('"attachment"' in written) is mentions


@pytest.mark.parametrize("by", ["hook", "rule"])
async def test_a_mention_passes_the_gates_of_reading(tmp_path: Path, by: str) -> None:
    """A hook or a rule that denies reading the file keeps it out."""
    (tmp_path / ".env").write_text("SECRET=1")
    hooks = Hooks()
    if by == "hook":

        @hooks.on(PreToolUse, match="Read")
        async def no(event: PreToolUse) -> Any:
            return deny("secrets stay here")

    rules = read_rules({"deny": ["Read(./.env)"]} if by == "rule" else {})
    async with agent_on(tmp_path, "ok", hooks=hooks, rules=rules) as agent:
        await agent.run("look at @.env, please", mentions=True)

    told = str(requests_of(agent)[0].messages)
    assert "SECRET" not in told
    assert "was not attached" in told


# -- a run that cannot begin -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked, answered", [
    ({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}}, "control_response"),
    ({"type": "user", "message": {"role": "user", "content": "go"}}, "result"),
])  # fmt: skip
def test_a_host_hears_why_a_run_cannot_begin(asked: dict[str, Any], answered: str) -> None:
    """As the answer to what it asks first, whatever that is."""
    told: list[bytes] = []
    refuse("trust it first", io.BytesIO(b"noise\n" + json.dumps(asked).encode() + b"\n"), told.append)

    (line,) = told
    assert json.loads(line)["type"] == answered
    assert b"trust it first" in line


# -- names of models -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word, name", [
    ("opusplan", "claude-sonnet-5-5"), ("sonnet[1m]", "claude-sonnet-5-5"), ("opus[1m]", "claude-opus-5-5"),
    ("default", "claude-opus-5-5"), ("best", "claude-opus-5-5"), ("haiku", "claude-haiku-5-5"), ("", "claude-opus-5-5"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"), ("anthropic:sonnet", "claude-sonnet-5-5"),
    ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5", None),
])  # fmt: skip
def test_words_for_models_start(word: str, name: str | None) -> None:
    """Those of the Claude CLI, with both kinds of credentials set."""
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}
    assert choose(word, environ).name == (name or word)


def test_a_variable_says_what_a_word_means() -> None:
    """As in the Claude CLI."""
    assert resolve("sonnet", {"ANTHROPIC_DEFAULT_SONNET_MODEL": "mine"}) == "mine"
    assert resolve("", {"ANTHROPIC_DEFAULT_MODEL": "claude-opus-5"}) == "claude-opus-5"


async def test_a_subagents_word_for_a_model_is_resolved(tmp_path: Path) -> None:
    """No API knows a model called `haiku`."""
    spawn = {"tools": [["Agent", {"description": "d", "prompt": "sub", "model": "haiku", "run_in_background": False}]]}
    lanes = {"sub": {"first": "^sub$", "turns": [{"text": "hi"}]}}
    async with agent_on(tmp_path, spawn, "done", lanes=lanes) as agent:
        await agent.run("go")

    assert requests_of(agent)[1].model == "claude-haiku-5-5"


async def test_what_a_commands_header_disallows_is_denied(tmp_path: Path) -> None:
    """From the moment that it is used."""
    skill = Skill(name="careful", body="be careful", kind="command", disallowed=("Bash(touch *)",))
    turns = (bash("touch made"), "done")
    async with agent_on(tmp_path, *turns, skills={"careful": skill}) as agent:
        await agent.run("/careful")

    assert not (tmp_path / "made").exists()
    assert "denies it" in str(requests_of(agent)[1].messages[-1])
