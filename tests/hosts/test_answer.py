"""One way to answer a host: what cannot be judged is refused, and a stop on a gate is also a deny."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hookline.api import Hooks
from hookline.core.wire import claude
from hookline.events import CATALOG, Event, PostToolUse, PreToolUse, spec_of
from hookline.hosts.answer import LineCodec, answer
from hookline.replies import NOTHING, Reply, allow, deny, rewrite, stop
from tests.core.wire.samples import least
from tests.hosts.claude_code.quirks import QUIRKS

FACTS = Path(__file__).parents[1] / "contract" / "FACTS.md"


class Plain:
    """A host whose words are our own."""

    def decode(self, payload: dict[str, Any]) -> Event:
        return claude.decode_event(payload)

    def encode(self, reply: Reply, event: Event) -> Reply:
        if reply.context:
            raise ValueError("no words for that")
        return reply

    def refuse(self, problem: BaseException, payload: dict[str, Any], event: Event | None) -> Reply:
        return deny(f"refused: {type(problem).__name__}, {event.event_name if event else 'no event'}")


def hooks_that(reply: Any, name: str) -> Hooks:
    hooks = Hooks()

    async def hook(event: Event) -> Any:
        return reply

    hooks.add(spec_of(name).cls, hook)
    return hooks


@pytest.mark.parametrize("name", CATALOG)
async def test_a_stop_is_a_deny_wherever_something_can_be_prevented(name: str) -> None:
    """A host that stops after the tool has run has not been stopped."""
    said = await answer(hooks_that(stop("enough"), name), {"hook_event_name": name, **least(name)}, Plain())

    assert said == (stop("enough") | deny("enough") if spec_of(name).gate else stop("enough"))


@pytest.mark.parametrize("reply", [NOTHING, allow("fine"), deny("no")])
async def test_what_hooks_say_is_passed_on(reply: Reply) -> None:
    """Nothing is added to an answer that is clear."""
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}

    assert await answer(hooks_that(reply, "PreToolUse"), event, Plain()) == reply


class Broken:
    """Hooks that cannot be asked."""

    def __init__(self, problem: BaseException) -> None:
        self._problem = problem

    async def fire(self, event: Event) -> Any:
        raise self._problem


@pytest.mark.parametrize("problem", [RuntimeError("x"), SystemExit(0), SystemExit(2), SystemExit("bye"), OSError()])
async def test_hooks_that_cannot_be_asked_are_refused(problem: BaseException) -> None:
    """An exit is no answer, whatever its code."""
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}

    assert await answer(Broken(problem), event, Plain()) == deny(f"refused: {type(problem).__name__}, PreToolUse")


async def test_an_interrupt_is_not_an_answer() -> None:
    """Ctrl-C and cancellation are the host's, and pass."""
    with pytest.raises(KeyboardInterrupt):
        await answer(Broken(KeyboardInterrupt()), {"hook_event_name": "PreToolUse", "tool_name": "Bash"}, Plain())


@pytest.mark.parametrize("payload", [{}, {"hook_event_name": "Zebra"}, {"hook_event_name": "PreToolUse"}])
async def test_an_event_that_cannot_be_read_is_refused(payload: dict[str, Any]) -> None:
    """What nobody can judge is not let through."""
    said = await answer(Hooks(), payload, Plain())

    assert said.reasons[0].endswith("no event")


async def test_an_answer_that_cannot_be_written_is_refused() -> None:
    """Whatever the host has no words for must not become silence."""
    said = await answer(
        hooks_that(allow() | Reply(context=("c",)), "PreToolUse"),
        {"hook_event_name": "PreToolUse", "tool_name": "Bash"},
        Plain(),
    )

    assert said == deny("refused: ValueError, PreToolUse")


@pytest.mark.parametrize("line, dialect", [
    (b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t"}', {"decision": "block"}),
    (b'{"event":"pre_tool_use","tool_name":"Bash"}', {"continue_execution": False}),
    (b'{"type":"hook_event","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t"}',
     {"type": "hook_response", "tool_use_id": "t", "continue": False, "decision": "block", "system_message": "",
      "suppress_output": False}),
    (b"\xff{", {"decision": "block", "continue_execution": False}),
])  # fmt: skip
async def test_a_refusal_blocks_in_the_words_of_its_line(line: bytes, dialect: dict[str, Any]) -> None:
    """Each dialect's host reads a block, and the reason."""
    import json

    codec = LineCodec()
    said = json.loads(await answer(Broken(RuntimeError("lost")), line, codec))

    assert dialect.items() <= said.items()
    assert said["error"] == said["reason"]
    assert codec.unreadable == 1


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.cases[0])
def test_every_peculiarity_was_recorded(quirk: Any) -> None:
    """The cases behind it are rows of the facts."""
    known = set(re.findall(r"[\w*|<>]+", FACTS.read_text())) | {
        path.stem for path in (FACTS.parent / "cases").iterdir()
    }

    assert quirk.cases
    assert [case for case in quirk.cases if case not in known] == []
    assert all(name in CATALOG for name in quirk.events)


def test_gates_and_observers_are_told_apart() -> None:
    """The rule the refusals of all hosts rest on."""
    from hookline.hosts.answer import fails_closed

    assert [fails_closed(event) for event in (None, PreToolUse, PostToolUse)] == [True, True, False]


@pytest.mark.parametrize(
    "value", [b"rm", {1}, float("nan"), float("inf"), {1: 2}, [{"a": int}], {"a": {"b": b""}}, 1j], ids=repr
)
async def test_an_input_that_json_would_change_does_not_run(value: Any) -> None:
    """What was judged is what runs (law 4): bytes would arrive as base64, NaN as null, a key 1 as "1"."""
    hooks = hooks_that(rewrite({"command": value}), "PreToolUse")
    payload = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}

    assert await answer(hooks, payload, Plain()) == deny("refused: ReplyError, PreToolUse")
