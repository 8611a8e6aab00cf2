"""Answers over the wire, against the recorded contract: every output field of every event, both ways."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.core.wire import claude
from hookline.core.wire.output_types import fields_of, only_decision
from hookline.core.wire.strict import decode_mapping
from hookline.errors import ReplyError, ReplyMismatch
from hookline.events import CATALOG, PreToolUse
from hookline.replies import (
    NOTHING,
    Decision,
    Reply,
    allow,
    ask,
    background,
    check_fits,
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
from tests.core.wire.samples import CONTRACT, EVENTS, every_output

OUTPUTS = every_output()


def answer(name: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": name, **fields}}


@pytest.mark.parametrize("name", EVENTS)
def test_the_table_of_specific_fields_is_the_contract_s(name: str) -> None:
    """No field is missing and none is made up."""
    assert set(fields_of(name)) == set(EVENTS[name]["specific_output"] or {})
    assert bool(fields_of(name)) == (EVENTS[name]["specific_output"] is not None)


@pytest.mark.parametrize("name, output", OUTPUTS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(OUTPUTS)])
def test_every_specific_output_can_be_said_and_comes_back(name: str, output: dict[str, Any]) -> None:
    """What a hook may print becomes a reply that fits the event, and is written as it was read."""
    reply = claude.decode_reply(json.dumps(output), name)
    spec = CATALOG[name]
    check_fits(reply, name, spec.decisions, spec.fields)
    unsaid_alone = "permissionDecisionReason" in output["hookSpecificOutput"]

    assert (reply is NOTHING) == unsaid_alone
    assert claude.reply_object(reply, name) == ({} if unsaid_alone else output)
    assert claude.decode_reply(claude.encode_reply(reply, name), name) == reply


PLAIN: dict[str, list[tuple[Any, Reply]]] = {
    "continue": [(True, NOTHING), (False, stop())],
    "suppressOutput": [(True, Reply(suppress_output=True)), (False, NOTHING)],
    "stopReason": [("why", NOTHING)],
    "systemMessage": [("hello", message("hello")), ("", NOTHING)],
    "terminalSequence": [("\x07", specific(terminal_sequence="\x07")), ("", NOTHING)],
    "reason": [("why", NOTHING)],
    "decision": [("approve", allow()), ("block", deny())],
    "async": [(True, background()), (False, NOTHING)],
    "asyncTimeout": [(2.5, NOTHING)],
}


def test_the_table_of_plain_fields_is_the_contract_s() -> None:
    """Every field of the synchronous and the asynchronous output is tested below."""
    assert set(PLAIN) == {*CONTRACT["sync_output"], *CONTRACT["async_output"]}


@pytest.mark.parametrize("field, value, reply", [(f, *row) for f, rows in PLAIN.items() for row in rows])
def test_a_plain_field_means_the_same_on_every_event(field: str, value: Any, reply: Reply) -> None:
    """Except for `decision`, which some events understand in their own way."""
    for name in CATALOG if field != "decision" else ("PreToolUse", "UserPromptSubmit", "TaskCreated"):
        assert claude.decode_reply({field: value}, name) == reply
        assert claude.decode_reply(claude.encode_reply(reply, name), name) == reply


MEANINGS: list[tuple[str, dict[str, Any], Reply]] = [
    ("PreToolUse", {"continue": False, "stopReason": "enough"}, stop("enough")),
    ("PreToolUse", {"decision": "block", "reason": "R"}, deny("R")),
    ("PreToolUse", {"decision": "approve", "reason": "R"}, allow("R")),
    ("PreToolUse", answer("PreToolUse", permissionDecision="deny", permissionDecisionReason="WHY"), deny("WHY")),
    ("PreToolUse", {"reason": "TOP", **answer("PreToolUse", permissionDecision="deny")}, deny("TOP")),
    ("PreToolUse", {"decision": "block", "reason": "R", **answer("PreToolUse", permissionDecision="allow")}, deny("R")),
    ("PreToolUse", {"decision": "block", "reason": "R", **answer("PreToolUse", permissionDecision="deny")}, deny("R")),
    ("PreToolUse",
     {"decision": "approve", "reason": "R",
      **answer("PreToolUse", permissionDecision="deny", permissionDecisionReason="S")}, deny("S")),
    ("PreToolUse",
     {"decision": "block", "reason": "R",
      **answer("PreToolUse", permissionDecision="deny", permissionDecisionReason="S")}, deny("R") | deny("S")),
    ("PreToolUse", answer("PreToolUse", permissionDecision="ask"), ask()),
    ("PreToolUse", answer("PreToolUse", permissionDecision="defer"), defer()),
    ("PreToolUse", answer("PreToolUse", additionalContext=""), NOTHING),
    ("PreToolUse", {"foo": 1, **answer("PreToolUse", bar=2, permissionDecision="deny")}, deny()),
    ("PreToolUse", answer("PreToolUse", sessionTitle=5, permissionDecision="deny"), deny()),
    ("PreToolUse", {"async": True, "asyncTimeout": 3, "decision": "block"}, background(timeout=3)),
    ("PostToolUse", answer("PostToolUse", updatedToolOutput=None), replace_output(None)),
    ("Stop", {"decision": "block", "reason": "more to do"}, keep_going("more to do")),
    ("SubagentStop", {"decision": "block"}, keep_going()),
    ("TeammateIdle", {"decision": "block", "reason": "R"}, keep_going("R")),
    ("Stop", {"decision": "approve"}, allow()),
    ("Stop", {"continue": True}, NOTHING),
    ("PermissionRequest", {"decision": "block", "reason": "R"}, deny("R")),
    ("PermissionRequest", {"decision": "approve"}, NOTHING),
    ("PermissionRequest", answer("PermissionRequest", decision={"behavior": "allow"}), allow()),
    ("PermissionRequest", answer("PermissionRequest", decision={"behavior": "deny"}), deny()),
    ("PermissionRequest",
     answer("PermissionRequest", decision={"behavior": "deny", "message": "no", "interrupt": True}),
     deny("no") | specific(interrupt=True)),
    ("PermissionRequest",
     {"terminalSequence": "\x07",
      **answer("PermissionRequest", decision={"behavior": "allow", "updatedPermissions": [{"type": "setMode"}]})},
     allow() | specific(terminal_sequence="\x07", updated_permissions=({"type": "setMode"},))),
]  # fmt: skip


@pytest.mark.parametrize("name, output, reply", MEANINGS, ids=[f"{n} {json.dumps(o)[:60]}" for n, o, _ in MEANINGS])
def test_an_output_means_what_the_cli_takes_it_to_mean(name: str, output: dict[str, Any], reply: Reply) -> None:
    """FACTS §3, field by field."""
    assert claude.decode_reply(output, name) == reply


WRITTEN: list[tuple[str, Reply, dict[str, Any]]] = [
    ("PreToolUse", NOTHING, {}),
    ("PreToolUse", Reply(), {}),
    ("PreToolUse", deny("a") | deny("b"),
     answer("PreToolUse", permissionDecision="deny", permissionDecisionReason="a\nb")),
    ("PreToolUse", context("a") | context("b"), answer("PreToolUse", additionalContext="a\nb")),
    ("PreToolUse", message("a") | message("b"), {"systemMessage": "a\nb"}),
    ("PreToolUse", stop("x") | allow(),
     {"continue": False, "stopReason": "x", **answer("PreToolUse", permissionDecision="allow")}),
    ("PreToolUse", background(timeout=2), {"async": True, "asyncTimeout": 2}),
    ("UserPromptSubmit", deny(), {"decision": "block"}),
    ("UserPromptSubmit", allow("fine"), {"decision": "approve", "reason": "fine"}),
    ("Stop", keep_going("a") | keep_going("b"), {"decision": "block", "reason": "a\nb"}),
    ("Stop", allow() | keep_going("a"), {"decision": "block", "reason": "a"}),
    ("PermissionRequest", allow("fine") | rewrite({"a": 1}) | deny("no"),
     answer("PermissionRequest", decision={"behavior": "deny", "message": "no"})),
    ("PermissionRequest", deny() | specific(interrupt=True),
     answer("PermissionRequest", decision={"behavior": "deny", "interrupt": True})),
]  # fmt: skip


@pytest.mark.parametrize("name, reply, output", WRITTEN)
def test_a_reply_is_written_as_a_hook_would_have_printed_it(name: str, reply: Reply, output: dict[str, Any]) -> None:
    """Several texts become lines of one; what is not said is not written."""
    assert claude.reply_object(reply, name) == output


def test_the_event_may_be_given_as_itself() -> None:
    """Its name is all that counts."""
    event = PreToolUse(tool_name="Bash")

    assert claude.decode_reply(claude.encode_reply(deny("no"), event), event) == deny("no")


WRONG: list[tuple[str, dict[str, Any], type[ReplyError], str]] = [
    ("PreToolUse", {"continue": "no"}, ReplyError, "`continue`: expected `true` or `false`, got a string"),
    ("PreToolUse", {"decision": "deny"}, ReplyError, "`decision`: expected one of `approve`, `block`, got `deny`"),
    ("PreToolUse", {"decision": None}, ReplyError,
     "`decision`: expected a string, got null; leave it out to say nothing"),
    ("PreToolUse", {"hookSpecificOutput": None}, ReplyError,
     "`hookSpecificOutput`: expected an object, got null; leave it out to say nothing"),
    ("PreToolUse", {"async": True, "asyncTimeout": -1}, ReplyError, "`asyncTimeout`: expected seconds, more than 0"),
    ("PreToolUse", answer("PreToolUse", updatedInput="string"), ReplyError,
     "`hookSpecificOutput.updatedInput`: expected an object, got a string"),
    ("PreToolUse", answer("PreToolUse", permissionDecision="yes"), ReplyError,
     "`hookSpecificOutput.permissionDecision`: expected one of `allow`, `deny`, `ask`, `defer`, got `yes`"),
    ("PreModelSwitch", answer("PreModelSwitch", permissionDecision="defer"), ReplyError,
     "`hookSpecificOutput.permissionDecision`: expected one of `allow`, `deny`, `ask`, got `defer`"),
    ("PermissionRequest", answer("PermissionRequest", decision={"behavior": "maybe"}), ReplyError,
     "`hookSpecificOutput.decision.behavior`: expected one of `allow`, `deny`, got `maybe`"),
    ("PermissionRequest", answer("PermissionRequest"), ReplyError,
     "`hookSpecificOutput`: object missing required field `decision`"),
    ("WorktreeCreate", answer("WorktreeCreate"), ReplyError,
     "`hookSpecificOutput`: object missing required field `worktreePath`"),
    ("SessionStart", answer("SessionStart", watchPaths=["a", 1]), ReplyError,
     "`hookSpecificOutput.watchPaths[1]`: expected a string, got a number"),
    ("PreToolUse", {"hookSpecificOutput": {"permissionDecision": "deny"}}, ReplyError,
     "`hookSpecificOutput.hookEventName`: it is missing; write `PreToolUse`"),
    ("PreToolUse", answer("Nope", permissionDecision="deny"), ReplyError,
     "`hookSpecificOutput.hookEventName`: expected `PreToolUse`, got `Nope`"),
    ("PreToolUse", answer("PostToolUse", additionalContext="CTX"), ReplyMismatch,
     "`hookSpecificOutput.hookEventName`: this is an answer to `PostToolUse`; write `PreToolUse`"),
    ("PostToolUse", answer("PreToolUse", permissionDecision="deny"), ReplyMismatch,
     "`hookSpecificOutput.hookEventName`: this is an answer to `PreToolUse`; write `PostToolUse`"),
    ("SessionEnd", answer("SessionEnd"), ReplyError, "`hookSpecificOutput`: SessionEnd has none; leave it out"),
    ("SessionEnd", answer("Stop", additionalContext="CTX"), ReplyMismatch,
     "`hookSpecificOutput.hookEventName`: this is an answer to `Stop`; write `SessionEnd`"),
    ("PreToolUse", {1: 2}, ReplyError, "a key: expected a string"),  # type: ignore[dict-item]
]  # fmt: skip


@pytest.mark.parametrize("name, output, error, problem", WRONG, ids=[problem for *_, problem in WRONG])
def test_a_wrong_output_is_refused_whole(
    name: str, output: dict[str, Any], error: type[ReplyError], problem: str
) -> None:
    """FACTS §3, validation: the error names the field and says what to write."""
    with pytest.raises(ReplyError) as raised:
        claude.decode_reply(output, name)

    assert type(raised.value) is error
    assert str(raised.value) == f"reply to {name}: {problem}"


UNSAYABLE: list[tuple[str, Reply, str]] = [
    ("Stop", deny("no"), "`deny` does not fit Stop: it knows `allow`, `pass`; to send the agent back"),
    ("PreToolUse", keep_going(), "`keep_going` does not fit PreToolUse"),
    ("UserPromptSubmit", rewrite({}), "`input` does not fit UserPromptSubmit"),
    ("PreToolUse", replace_output(1), "`output` does not fit PreToolUse"),
    ("SessionEnd", context("x"), "`context` does not fit SessionEnd"),
    ("PreToolUse", specific(retry=True), "`retry` does not fit PreToolUse"),
    ("PreToolUse", specific(interrupt=True), "`interrupt` does not fit PreToolUse"),
    ("PermissionRequest", specific(retry=True) | allow(), "`retry` does not fit PermissionRequest"),
    ("PermissionRequest", rewrite({"a": 1}),
     "`input` goes with a decision on PermissionRequest; add `allow()` or `deny()` with `|`"),
    ("PreCompact", context("keep names"),
     "`context` cannot be said to PreCompact in JSON; a command hook prints it as plain text"),
]  # fmt: skip


@pytest.mark.parametrize("name, reply, problem", UNSAYABLE, ids=[problem for *_, problem in UNSAYABLE])
def test_a_reply_that_the_event_has_no_words_for_is_refused(name: str, reply: Reply, problem: str) -> None:
    """Nothing is left out silently: a deny on Stop, written as `block`, would mean the opposite."""
    with pytest.raises(ReplyMismatch) as raised:
        claude.encode_reply(reply, name)

    assert str(raised.value).startswith(problem)


def test_a_reply_that_json_cannot_say_is_refused() -> None:
    """A rewritten input must be sendable."""
    with pytest.raises(ReplyError) as raised:
        claude.encode_reply(rewrite({"a": object()}), "PreToolUse")

    assert str(raised.value) == (
        "reply to PreToolUse: cannot be written as JSON: "
        "encoding objects of type object is unsupported; use strings, numbers, lists and dicts"
    )


texts = st.text(min_size=1, max_size=5)
some = st.one_of(st.just(()), st.tuples(texts))
replies = st.builds(
    lambda decision, why, **rest: Reply(decision=decision, reasons=why if decision else (), **rest),
    st.sampled_from(Decision), some,
    input=st.none() | st.dictionaries(texts, st.integers(), max_size=2), context=some, messages=some,
    stop=st.booleans(), suppress_output=st.booleans(),
)  # fmt: skip


@given(replies)
def test_any_answer_to_a_tool_call_survives_the_wire(reply: Reply) -> None:
    """Encoding and decoding is the identity where every text is said once."""
    assert claude.decode_reply(claude.encode_reply(reply, "PreToolUse"), "PreToolUse") == reply


_words = st.sampled_from(["allow", "deny", "ask", "defer", "approve", "", 1, None, ["deny"]])
_bodies = st.fixed_dictionaries(
    {},
    optional={
        "hookEventName": st.sampled_from(["PreToolUse", "PreModelSwitch", "Stop", None]),
        "permissionDecision": _words,
        "permissionDecisionReason": st.text(max_size=3) | st.none() | st.integers(),
        "additionalContext": st.text(max_size=3),
    },
)
_outputs = st.fixed_dictionaries(
    {"hookSpecificOutput": _bodies | st.none()},
    optional={"continue": st.booleans(), "systemMessage": st.text(max_size=3)},
)


@given(_outputs, st.sampled_from(["PreToolUse", "PreModelSwitch", "PostToolUse", "Stop"]))
def test_the_short_way_to_a_decision_says_what_the_long_one_says(output: dict[str, Any], name: str) -> None:
    """What it understands at all, `decode_reply` understands the same."""
    quick = only_decision(output, name)
    try:
        reply = claude.decode_reply(output, name)
    except ReplyError:
        reply = None

    assert quick is None or quick == reply


@pytest.mark.parametrize("word", ["allow", "deny", "ask", "defer"])
def test_the_short_way_is_taken_by_the_answer_most_gates_give(word: str) -> None:
    """A decision with its reason, and nothing else."""
    output = answer("PreToolUse", permissionDecision=word, permissionDecisionReason="because")

    assert only_decision(output, "PreToolUse") == Reply(decision=Decision[word.upper()], reasons=("because",))


@given(_outputs, st.sampled_from(["PreToolUse", "PreModelSwitch", "PostToolUse", "Stop"]))
def test_an_output_heard_before_means_the_same_again(output: dict[str, Any], name: str) -> None:
    """Short texts are remembered, also what is wrong with them; bytes never are."""
    text = json.dumps(output)
    first, second, unremembered = (_told(data, name) for data in (text, text, text.encode()))

    assert first == second == unremembered


def _told(data: str | bytes, name: str) -> Reply | str:
    try:
        return claude.decode_reply(data, name)
    except ReplyError as problem:
        return str(problem)


def test_what_could_be_changed_in_place_is_not_shared() -> None:
    """A host that writes into a rewritten input does not write into the next event's."""
    text = json.dumps(answer("PreToolUse", updatedInput={"command": "ls"}))
    first, second = (claude.decode_reply(text, "PreToolUse") for _ in range(2))
    assert first.input is not None
    first.input["command"] = "rm"

    assert second.input == {"command": "ls"}
    assert claude.decode_reply(text, "PreToolUse").input == {"command": "ls"}


def test_a_block_without_a_reason_takes_its_stop_reason() -> None:
    """As in the headline sample of seeds/004."""
    block = {"decision": "block", "stopReason": "Cannot write outside project directory"}

    assert claude.decode_reply(block, "PreToolUse") == deny("Cannot write outside project directory")
    assert claude.decode_reply({**block, "reason": "R"}, "PreToolUse") == deny("R")
    assert claude.decode_reply(block, "Stop") == keep_going("Cannot write outside project directory")


def test_a_python_hook_approves_a_permission_in_the_words_of_the_seeds() -> None:
    """A command's top-level `approve` is not heard, as in Claude Code; a Python hook's is."""
    approve = {"decision": "approve", "systemMessage": "hi"}

    assert decode_mapping(approve, "PermissionRequest") == allow() | message("hi")
    assert claude.decode_reply(approve, "PermissionRequest") == message("hi")


def test_what_a_reader_changes_is_not_in_the_next_reply() -> None:
    text = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "ls"}}}'
    first = claude.decode_reply(text, "PreToolUse")
    assert first.input is not None
    first.input["command"] = "rm"
    assert claude.decode_reply(text, "PreToolUse").input == {"command": "ls"}
    for _ in range(2):
        with pytest.raises(ReplyError):
            claude.decode_reply('{"decision": 1}', "PreToolUse")
