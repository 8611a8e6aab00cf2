"""The other dialects, and how a line tells which one it is written in."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from hookline.core.wire.dialects import DIALECTS, SNAKE_NAMES, detect, dialect
from hookline.core.wire.strict import decode_mapping
from hookline.errors import EventError, HooklineError, ReplyError, ReplyMismatch, UnknownEvent
from hookline.events import (
    CATALOG,
    Event,
    FileChanged,
    PermissionRequest,
    PostToolUse,
    PreToolUse,
    Stop,
    SubagentStart,
    SubagentStop,
)
from hookline.replies import (
    NOTHING,
    Reply,
    allow,
    ask,
    background,
    context,
    defer,
    deny,
    keep_going,
    message,
    replace_output,
    rewrite,
    specific,
    stop,
)
from tests.core.wire.samples import EVENTS, every_input, least

spec, snake, message_dialect = DIALECTS["spec"], DIALECTS["snake"], DIALECTS["message"]
INPUTS = every_input()
BASH = PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", session_id="abc")


def obj(raw: bytes) -> Any:
    return json.loads(raw)


# -- all of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIALECTS)
def test_every_input_of_every_event_survives_every_dialect(name: str) -> None:
    """Whatever one dialect can say of an event, another can pass on."""
    for _, payload in INPUTS:
        event = DIALECTS["claude"].decode_event({**payload, "new_field": [1]})
        again = DIALECTS[name].decode_event(DIALECTS[name].encode_event(event))

        assert again == event
        assert again.extra == {"new_field": [1]}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_recognises_its_own_events(name: str) -> None:
    """`spec` events are claude's, so they are called that."""
    assert detect(obj(DIALECTS[name].encode_event(BASH))) == ("claude" if name == "spec" else name)


def test_a_file_change_is_claude_s_although_it_has_an_event() -> None:
    """The name that only claude has decides."""
    assert detect({"hook_event_name": "FileChanged", "event": "add"}) == "claude"


def test_an_object_of_no_dialect_says_what_to_write() -> None:
    """Somebody who pipes the wrong thing learns what the right thing is."""
    with pytest.raises(EventError) as raised:
        detect({"type": "user"})

    assert str(raised.value) == (
        "event: no dialect has such events; write `hook_event_name` (claude) or `event` (snake)"
    )


def test_a_dialect_is_found_by_its_name() -> None:
    """A typo is answered with what was probably meant."""
    assert dialect("snake") is snake
    with pytest.raises(HooklineError, match="unknown dialect `claud`; did you mean `claude`"):
        dialect("claud")
    with pytest.raises(HooklineError, match="unknown dialect `x`; write one of `claude`, `spec`, `snake`, `message`"):
        dialect("x")


UNKNOWN = {
    "claude": ({"hook_event_name": "PreToolUsed"}, "unknown event `PreToolUsed`; did you mean `PreToolUse`"),
    "spec": ({"hook_event_name": "Stopp"}, "unknown event `Stopp`; did you mean `Stop`"),
    "snake": ({"event": "pre_tool_used"}, "unknown event `pre_tool_used`; did you mean `pre_tool_use`"),
    "message": ({"type": "hook_event", "hook_event_name": "stop"}, "unknown event `stop`; did you mean `Stop`"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_an_unknown_event_suggests_names_in_the_dialect_s_own_spelling(name: str) -> None:
    """What is suggested can be written as it stands."""
    payload, problem = UNKNOWN[name]
    with pytest.raises(UnknownEvent) as raised:
        DIALECTS[name].decode_event(payload)

    assert str(raised.value).startswith(problem)


# -- spec --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Stop", "SubagentStop"])
def test_in_spec_an_explicit_continue_keeps_the_agent_going(name: str) -> None:
    """seeds/003 §8: `continue: true` in a Stop hook restarts the loop."""
    assert spec.decode_reply({"continue": True}, name) == keep_going()
    assert spec.decode_reply({"continue": True, "reason": "tests fail"}, name) == keep_going("tests fail")
    assert spec.decode_reply({"decision": "block", "reason": "R"}, name) == keep_going("R")
    assert spec.decode_reply({"continue": False}, name) == stop()
    assert spec.decode_reply({"systemMessage": "M"}, name) == message("M")
    assert spec.decode_reply({"continue": True, "systemMessage": "M"}, name) == keep_going() | context("M")
    assert spec.decode_reply({"systemMessage": "M"}, "PreToolUse") == context("M")
    assert spec.decode_reply({"suppressOutput": True}, name) == Reply(suppress_output=True)
    assert obj(spec.encode_reply(keep_going("R"), name)) == {"continue": True, "decision": "block", "reason": "R"}
    assert spec.decode_reply(spec.encode_reply(keep_going("R"), name), name) == keep_going("R")


def test_in_spec_stopping_beats_going_on() -> None:
    """Merged answers of several hooks may say both; the strictest wins."""
    both = stop("enough") | keep_going("more")

    assert obj(spec.encode_reply(both, "Stop"))["continue"] is False
    assert spec.decode_reply({"continue": True, "async": True}, "Stop") == background()


def test_elsewhere_spec_is_claude() -> None:
    """`continue: true` says nothing where nobody wanted to stop."""
    assert spec.decode_reply({"continue": True}, "PreToolUse") is NOTHING
    assert spec.encode_reply(deny("no"), BASH) == DIALECTS["claude"].encode_reply(deny("no"), BASH)


# -- snake -------------------------------------------------------------------------------------------------------


def test_every_event_has_a_name_in_snake_case() -> None:
    """The ten of seeds/002, and the others by the same rule."""
    asked_for = {"pre_tool_use", "post_tool_use", "post_tool_use_failure", "user_prompt_submit", "stop",
                 "subagent_start", "subagent_stop", "pre_compact", "session_start", "session_end"}  # fmt: skip

    assert set(SNAKE_NAMES.values()) == set(EVENTS)
    assert asked_for <= set(SNAKE_NAMES)


SNAKES: list[tuple[dict[str, Any], Event]] = [
    ({"event": "pre_tool_use", "session_id": "abc-123", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}},
     PreToolUse(session_id="abc-123", tool_name="Bash", tool_input={"command": "rm -rf /"})),
    ({"event": "post_tool_use", "tool_name": "Bash", "tool_result": {"stdout": "x"}},
     PostToolUse(tool_name="Bash", tool_response={"stdout": "x"})),
    ({"event": "subagent_start", "subagent_id": "a1", "subagent_type": "explore", "description": "look around"},
     SubagentStart(agent_id="a1", agent_type="explore", description="look around")),
    ({"event": "subagent_stop", "subagent_id": "a1", "success": False, "error": "lost"},
     SubagentStop(agent_id="a1", success=False, error="lost")),
    ({"event": "stop", "metadata": {"a": 1}}, Stop(extra={"metadata": {"a": 1}})),
    ({"event": "file_changed", "file_path": "/a", "file_event": "unlink"}, FileChanged(file_path="/a", event="unlink")),
]  # fmt: skip


@pytest.mark.parametrize("payload, event", SNAKES, ids=[payload["event"] for payload, _ in SNAKES])
def test_an_event_in_snake_case_is_read_and_written(payload: dict[str, Any], event: Event) -> None:
    """seeds/002, the names it gives to fields included."""
    assert snake.decode_event(json.dumps(payload)) == event
    assert payload.items() <= obj(snake.encode_event(event)).items()


def test_a_timestamp_in_snake_case_is_the_event_s() -> None:
    """`HookInput.timestamp` of seeds/002."""
    event = snake.decode_event({"event": "stop", "timestamp": "2026-01-31T09:30:00Z"})

    assert event.timestamp == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    assert obj(snake.encode_event(event))["timestamp"] == "2026-01-31T09:30:00Z"


@pytest.mark.parametrize("payload, problem", [
    ({}, "event: `event` is missing; write the event's name, such as `pre_tool_use`"),
    ({"event": "stop", "timestamp": "noon"},
     "stop: `timestamp`: expected a time such as `2026-01-31T09:30:00Z`, got `noon`"),
])  # fmt: skip
def test_a_wrong_event_in_snake_case_says_where(payload: dict[str, Any], problem: str) -> None:
    """The error says what to write."""
    with pytest.raises(EventError) as raised:
        snake.decode_event(payload)

    assert str(raised.value) == problem


SNAKE_REPLIES: list[tuple[str, dict[str, Any], Reply]] = [
    ("PreToolUse", {"continue_execution": True}, NOTHING),
    ("PreToolUse", {"continue_execution": True, "updated_input": None, "stop_reason": None}, NOTHING),
    ("PreToolUse", {"continue_execution": False, "stop_reason": "Dangerous command blocked", "updated_input": None},
     deny("Dangerous command blocked")),
    ("PreToolUse", {"continue_execution": False}, deny()),
    ("SessionStart", {"continue_execution": False, "stop_reason": "no"}, deny("no")),
    ("PostToolUse", {"continue_execution": False, "stop_reason": "no"}, stop("no")),
    ("Stop", {"continue_execution": False}, stop()),
    ("PreToolUse", {"updated_input": {"command": "ls"}}, rewrite({"command": "ls"})),
    ("PreToolUse", {"additional_context": "CTX", "system_message": "hello", "suppress_logging": True},
     context("hello") | context("CTX") | Reply(suppress_output=True)),
    ("SessionEnd", {"system_message": "hello"}, message("hello")),
    ("Stop", {"system_message": "hello"}, message("hello")),
    ("PreToolUse", {"unknown": 1}, NOTHING),
]  # fmt: skip


@pytest.mark.parametrize("name, output, reply", SNAKE_REPLIES)
def test_an_answer_in_snake_case_is_read_and_written(name: str, output: dict[str, Any], reply: Reply) -> None:
    """A block denies where something can be denied, and elsewhere stops the agent."""
    assert snake.decode_reply(output, name) == reply
    again = snake.decode_reply(snake.encode_reply(reply, name), name)
    assert (again.context and "\n".join(again.context)) == (reply.context and "\n".join(reply.context))
    assert msgspec.structs.replace(again, context=()) == msgspec.structs.replace(reply, context=())


@pytest.mark.parametrize("reply, output", [
    (NOTHING, {"continue_execution": True}),
    (allow("fine"), {"continue_execution": True}),
    (deny("no"), {"continue_execution": False, "stop_reason": "no"}),
    (ask(), {"continue_execution": False, "stop_reason": "a person has to be asked, and there is no one to ask here"}),
    (ask("sure?"), {"continue_execution": False, "stop_reason": "sure?"}),
    (defer(), {"continue_execution": False, "stop_reason": "it was left to the run that resumes the session"}),
    (stop("enough"), {"continue_execution": False, "stop_reason": "enough"}),
])  # fmt: skip
def test_what_snake_case_cannot_ask_it_blocks(reply: Reply, output: dict[str, Any]) -> None:
    """Where nobody can be asked, the safe answer is no."""
    assert obj(snake.encode_reply(reply, BASH)) == output


@pytest.mark.parametrize("reply, field", [
    (replace_output(1), "output"), (keep_going(), "keep_going"), (specific(retry=True), "retry"),
    (background(), "background"),
])  # fmt: skip
def test_what_snake_case_has_no_word_for_is_refused(reply: Reply, field: str) -> None:
    """Nothing is left out silently."""
    with pytest.raises(ReplyMismatch) as raised:
        snake.encode_reply(reply, BASH)

    assert str(raised.value) == (
        f"`{field}` cannot be said in the `snake` dialect; it has words for `continue_execution`, `stop_reason`, "
        "`suppress_logging`, `system_message`, `updated_input`, `additional_context`"
    )


def test_a_wrong_answer_in_snake_case_says_where() -> None:
    """The error names the field as it was written."""
    with pytest.raises(ReplyError) as raised:
        snake.decode_reply({"continue_execution": "no"}, "Stop")

    assert str(raised.value) == "reply to Stop: `continue_execution`: expected `true` or `false` or null, got a string"


# -- message -----------------------------------------------------------------------------------------------------


def test_a_hook_event_line_is_read_and_written() -> None:
    """seeds/004, the line from the CLI."""
    line = {"type": "hook_event", "hook_event_name": "PreToolUse", "session_id": "session-123",
            "transcript_path": "/tmp/transcript.json", "cwd": "/home/user/project", "tool_name": "Write",
            "tool_input": {"file_path": "/home/user/project/main.go"}, "tool_use_id": "tool-use-abc123"}  # fmt: skip
    event = message_dialect.decode_event(json.dumps(line))

    assert event == PreToolUse(session_id="session-123", transcript_path="/tmp/transcript.json",
                               cwd="/home/user/project", tool_name="Write", tool_use_id="tool-use-abc123",
                               tool_input={"file_path": "/home/user/project/main.go"})  # fmt: skip
    assert obj(message_dialect.encode_event(event)) == line


def test_a_line_of_another_type_is_no_event() -> None:
    """Other messages travel on the same stream."""
    with pytest.raises(EventError) as raised:
        message_dialect.decode_event({"type": "user", "hook_event_name": "Stop"})

    assert str(raised.value) == "event: `type`: expected `hook_event`, got `user`"


RESPONSES: list[tuple[str, dict[str, Any], Reply]] = [
    ("PreToolUse", {"type": "hook_response", "tool_use_id": "t1", "continue": True, "suppress_output": False,
                    "decision": "approve", "system_message": "", "reason": ""}, allow()),
    ("PreToolUse", {"type": "hook_response", "continue": True, "decision": ""}, NOTHING),
    ("PreToolUse", {"decision": "block", "reason": "R"}, deny("R")),
    ("PreToolUse", {"decision": "block", "stop_reason": "Cannot write outside project directory"},
     deny("Cannot write outside project directory")),
    ("PreToolUse", {"continue": False, "stop_reason": "enough"}, stop("enough")),
    ("PreToolUse", {"continue": False, "decision": "block", "reason": "R"}, deny("R")),
    ("PreToolUse", {"continue": False, "decision": "block", "stop_reason": "S"}, deny("S")),
    ("PreToolUse", {"continue": False, "decision": "block", "reason": "R", "stop_reason": "S"}, deny("R") | stop("S")),
    ("PreToolUse", {"continue": False, "decision": "block", "reason": "sure?", "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "sure?"}},
     ask("sure?")),
    ("PostToolUse", {"decision": "block", "reason": "R"}, deny("R")),
    ("SessionStart", {"continue": False, "decision": "block", "reason": "R"}, deny("R")),
    ("PreToolUse", {"suppress_output": True, "system_message": "hello"},
     message("hello") | Reply(suppress_output=True)),
    ("PermissionRequest", {"decision": "approve"}, allow()),
    ("PermissionRequest", {"decision": "block", "reason": "R"}, deny("R")),
    ("Stop", {"decision": "block", "reason": "R"}, keep_going("R")),
    ("PreToolUse", {"async": True, "async_timeout": 5}, background(timeout=5)),
    ("PreToolUse", {"terminal_sequence": "\x07"}, specific(terminal_sequence="\x07")),
    ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"a": 1}}},
     rewrite({"a": 1})),
]  # fmt: skip


@pytest.mark.parametrize("name, line, reply", RESPONSES)
def test_a_hook_response_line_is_read_and_written(name: str, line: dict[str, Any], reply: Reply) -> None:
    """seeds/004, the line to the CLI; on PermissionRequest `approve` counts, as its fourth story asks."""
    assert message_dialect.decode_reply(json.dumps(line), name) == reply
    assert message_dialect.decode_reply(message_dialect.encode_reply(reply, name), name) == reply


SAMPLE = {"type": "hook_response", "tool_use_id": "t1", "continue": True, "suppress_output": False, "decision": "",
          "system_message": "", "reason": ""}  # fmt: skip


@pytest.mark.parametrize("reply, said", [
    (NOTHING, {}),
    (allow("fine"), {"decision": "approve", "reason": "fine"}),
    (deny("no"), {"continue": False, "decision": "block", "reason": "no"}),
    (deny(), {"continue": False, "decision": "block"}),
    (ask("sure?"), {"continue": False, "decision": "block", "reason": "sure?"}),
    (defer("later"), {"continue": False, "decision": "block", "reason": "later"}),
    (stop("enough"), {"continue": False, "stop_reason": "enough"}),
    (stop() | deny("no"), {"continue": False, "decision": "block", "reason": "no", "stop_reason": ""}),
    (stop("enough") | deny(),
     {"continue": False, "decision": "block", "reason": "enough", "stop_reason": "enough"}),
    (message("hello") | Reply(suppress_output=True), {"suppress_output": True, "system_message": "hello"}),
])  # fmt: skip
def test_a_response_has_every_field_of_the_seed_and_says_no_in_its_words(reply: Reply, said: dict[str, Any]) -> None:
    """A host that knows only seeds/004 must not run what was not let through; it learns which call is meant."""
    line = obj(message_dialect.encode_reply(reply, BASH))
    line.pop("hookSpecificOutput", None)

    assert line == {**SAMPLE, **said}
    assert list(line)[:7] == list(SAMPLE)


def test_a_response_to_an_event_without_a_call_names_none() -> None:
    """All fields are there, whatever the event."""
    assert obj(message_dialect.encode_reply(NOTHING, PermissionRequest())) == {**SAMPLE, "tool_use_id": ""}
    assert obj(message_dialect.encode_reply(keep_going("R"), Stop())) == {
        **SAMPLE, "tool_use_id": "", "decision": "block", "reason": "R",
    }  # fmt: skip


@pytest.mark.parametrize("line, problem", [
    ({"system_message": 1}, "`system_message`: expected a string, got a number"),
    ({"decision": "deny"}, "`decision`: expected one of `approve`, `block`, got `deny`"),
    ({"type": "hook_event"}, "`type`: expected one of `hook_response`, got `hook_event`"),
])  # fmt: skip
def test_a_wrong_response_names_the_field_as_it_was_written(line: dict[str, Any], problem: str) -> None:
    """The error says where and what to write."""
    with pytest.raises(ReplyError) as raised:
        message_dialect.decode_reply(line, "PreToolUse")

    assert str(raised.value) == f"reply to PreToolUse: {problem}"


def test_the_catalogue_is_the_same_in_every_dialect() -> None:
    """An event of one dialect exists in all."""
    for name in CATALOG:
        event = CATALOG[name].cls(**least(name))

        assert {type(d.decode_event(d.encode_event(event))) for d in DIALECTS.values()} == {CATALOG[name].cls}


def test_a_mapping_may_spell_a_nested_decision_in_either_way() -> None:
    """What a Python hook returns is read under snake_case names, too, also two levels down."""
    choice = {"behavior": "allow", "updated_input": {"command": "ls"}}
    given = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": choice}}

    assert decode_mapping(given, "PermissionRequest") == allow() | rewrite({"command": "ls"})


def test_a_response_to_a_permission_request_names_the_call_of_its_event() -> None:
    """As every other `hook_response` does (seeds/004)."""
    event = message_dialect.decode_event(
        {"type": "hook_event", "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_use_id": "t1"}
    )

    assert obj(message_dialect.encode_reply(allow(), event))["tool_use_id"] == "t1"
    assert obj(message_dialect.encode_reply(NOTHING, "Stop"))["tool_use_id"] == ""
