"""Answers of hooks that fail closed: what may have been meant as an answer and cannot be read is a failure."""

import json
import sys
from typing import Any

import pytest

from hookline import Command, Hooks
from hookline.core.engine import Status
from hookline.core.wire.strict import check_object, check_text
from hookline.errors import ReplyError
from hookline.events import PreToolUse, UserPromptSubmit

LS = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
TEXT = json.dumps(DENY)
BLOCK = json.dumps({"decision": "block", "reason": "no"})
UNREADABLE = {
    "a deny after a log line": f"INFO checked 3 files\n{TEXT}",
    "a deny before a log line": f"{TEXT}\nINFO done",
    "a deny at the end of a log line": f"verdict: {TEXT}",
    "two answers": f"{{}}\n{TEXT}",
    "in colour": f"\x1b[32m{TEXT}\x1b[0m",
    "each part in colour": '\x1b[1m{\x1b[0m\x1b[34m"decision"\x1b[0m: \x1b[31m"block"\x1b[0m\x1b[1m}\x1b[0m',
    "behind a terminal title": f"\x1b]0;hook\x07{BLOCK}",
    "behind a null byte": f"\0{BLOCK}",
    "as a fenced block": f"```json\n{TEXT}\n```",
    "a list": f"[{TEXT}]",
    "a list of words": '["block", "no"]',
    "a text with JSON in it": json.dumps(BLOCK),
    "a text that says no": '"block"',
    "null": "null",
    "false": "false",
    "a Python dict": str(json.loads(BLOCK)),
    "YAML": "decision: block\nreason: no",
    "YAML in a list": "- decision: block",
    "an assignment": "decision=block",
    "a word": "deny",
    "a word in the past": "Denied.",
    "YAML with another key": "action: block",
    "a stop in YAML": "continue: false",
    "a word and a reason": "BLOCK: rm is never allowed",
    "not UTF-8": TEXT.encode("utf-16").decode("utf-8", "replace"),
    "a misspelt key": '{"decison": "block", "reason": "no"}',
    "a key in other letters": '{"Decision": "block"}',
    "a misspelt key inside": TEXT.replace("permissionDecision", "permisionDecision"),
    "a decision in the wrong place": '{"permissionDecision": "deny"}',
    "a body in the wrong place": '{"output": {"decision": "block"}}',
    "an answer of another dialect": '{"continue_execution": false, "stop_reason": "no"}',
    "async with a decision": '{"async": true, "decision": "block", "reason": "no"}',
    "async with a body": json.dumps({"async": True, **DENY}),
    "async with a stop": '{"async": true, "continue": false}',
}
READABLE = {
    "nothing": "",
    "an empty line": "\n",
    "an empty object": "{}",
    "prose": "PLAIN STDOUT",
    "prose in colour": "\x1b[32mall fine\x1b[0m",
    "a log line": "[INFO] 10:30 checked 3 files, 0 findings",
    "no objection": '{"continue": true, "suppressOutput": true}',
    "async alone": '{"async": true, "asyncTimeout": 5}',
}


def printing(text: str, **options: Any) -> Command:
    return Command(command=sys.executable, args=("-c", f"import sys; sys.stdout.write({text!r})"), **options)


async def judged(text: str, on_failure: Any) -> Any:
    async with Hooks() as hooks:
        hooks.add(PreToolUse, printing(text), name="it", on_failure=on_failure)
        return await hooks.fire(LS)


async def test_an_answer_that_cannot_be_read_is_a_failure_of_a_hook_that_fails_closed() -> None:
    """Whatever the command meant, it was not "no objection"."""
    for name, text in UNREADABLE.items():
        verdict = await judged(text, "block")
        assert verdict.blocked, name
        if name != "a deny before a log line":  # as everywhere: what begins like JSON and is not
            assert verdict.outcomes[0].status is Status.FAILED, name


async def test_what_says_nothing_is_no_failure() -> None:
    """Prose and log lines are what commands print beside an answer; FACTS.md §2 has them as success."""
    for name, text in READABLE.items():
        verdict = await judged(text, "block")
        assert not verdict.blocked, (name, verdict.reason)


async def test_a_command_that_may_fail_is_read_as_claude_code_reads_it() -> None:
    """With `onFailure: continue`, text beside JSON stays text, and keys that are not known are passed over."""
    for name in ("a deny after a log line", "a list", "a misspelt key", "async with a decision"):
        verdict = await judged(UNREADABLE[name], "continue")
        assert not verdict.blocked, name


@pytest.mark.parametrize("answer", [{"async": True, "decision": "block"}, {"async_": True, **DENY}])
async def test_a_python_hook_cannot_decide_and_leave(answer: dict[str, Any]) -> None:
    """`async` lets the call go on, so whatever else the answer says would not count."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: answer, name="it")
    verdict = await hooks.fire(LS)

    assert verdict.blocked
    assert "`async`" in verdict.reason


def test_text_that_is_context_may_hold_anything_but_an_answer() -> None:
    """Where text is told to the model, "Ask before you push" is a sentence, not a decision."""
    for text in ("Ask before you push", "Block quotes are fine", "[1]", "int main() {}"):
        check_text(text, UserPromptSubmit.event_name)
    for text in (f"note\n{BLOCK}", f"\x1b[1m{BLOCK}\x1b[0m", "decision: block"):
        with pytest.raises(ReplyError):
            check_text(text, UserPromptSubmit.event_name)


def test_every_dialect_has_its_own_words() -> None:
    """An answer in a dialect's words is read; one key of another's is refused, with the word that was meant."""
    after = {"hookEventName": "PostToolUse", "additionalContext": "c"}
    check_object({"continue_execution": True}, "PreToolUse", "snake")
    check_object({"type": "hook_response", "tool_use_id": "t", "stop_reason": ""}, "PreToolUse", "message")
    check_object({"hookSpecificOutput": after}, "PostToolUse", "spec")

    with pytest.raises(ReplyError, match="did you mean `stop_reason`"):
        check_object({"continue_execution": False, "stop_reson": "x"}, "PreToolUse", "snake")
    with pytest.raises(ReplyError, match="`permissionDecision`"):
        check_object({"hookSpecificOutput": {**after, "permissionDecision": "deny"}}, "PostToolUse")
    with pytest.raises(ReplyError, match=r"`ok` is not known; to block, write `[^`]*`$"):  # a command returns no `deny`
        check_object({"ok": False}, "PreToolUse")
