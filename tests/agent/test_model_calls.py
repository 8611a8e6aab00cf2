"""Hookline's own events around a call of the model: PreModelCall, PostModelCall, PreOutput."""

from pathlib import Path
from typing import Any

import pytest

from hookline import Command, Hooks, context, deny, replace_output
from hookline.events import CATALOG, OWN_EVENTS, HookEvent, PostModelCall, PreModelCall, PreOutput, spec_of
from tests.agent.driving import agent_on, bash, recorded, reminders, requests_of


def test_they_are_not_among_the_events_of_the_wire() -> None:
    """The contract's 33 events stay 33; ours are found by name all the same."""
    assert set(OWN_EVENTS) == {"PreModelCall", "PostModelCall", "PreOutput"}
    assert not set(OWN_EVENTS) & {*CATALOG, *HookEvent}
    assert [spec_of(name).gate for name in OWN_EVENTS] == [True] * 3


async def test_a_hook_sees_what_the_model_is_asked_and_answers(tmp_path: Path) -> None:
    """Each request and each answer passes the hooks that listen, in order."""
    hooks, seen = Hooks(), []

    @hooks.on(PreModelCall, PostModelCall, PreOutput)
    async def watch(event: Any) -> None:
        seen.append(event)

    async with agent_on(tmp_path, bash("echo one"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert [event.event_name for event in seen] == [
        "PreModelCall", "PostModelCall", "PreModelCall", "PostModelCall", "PreOutput",
    ]  # fmt: skip
    assert seen[0].messages[0] == {"role": "user", "content": "go"}
    assert "Bash" in seen[0].tools
    assert seen[1].tool_calls[0]["args"] == {"command": "echo one"}
    assert seen[2].messages[-1]["role"] == "tool"
    assert (seen[3].text, seen[4].text) == ("done", "done")


async def test_a_denied_request_never_reaches_the_model(tmp_path: Path) -> None:
    """The turn ends with the reason, and the model is not asked."""
    hooks = Hooks()
    hooks.add(PreModelCall, lambda event: deny("not now"))

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        result = await agent.run("go")
        asked = len(requests_of(agent))

    assert (asked, result.is_error, result.text) == (0, True, "not now")


async def test_a_denied_answer_is_not_acted_on(tmp_path: Path) -> None:
    """No tool of it runs, and it is not part of the conversation."""
    hooks = Hooks()
    hooks.add(PostModelCall, lambda event: deny("no such thing"))
    events = recorded(hooks)

    async with agent_on(tmp_path, bash("touch made"), "done", hooks=hooks) as agent:
        result = await agent.run("go")

    assert (result.is_error, result.text, (tmp_path / "made").exists()) == (True, "no such thing", False)
    assert "PreToolUse" not in events


async def test_a_denied_output_is_not_returned(tmp_path: Path) -> None:
    """Whoever gave the prompt reads the reason instead of the answer."""
    hooks = Hooks()
    hooks.add(PreOutput, lambda event: deny("not for you"))

    async with agent_on(tmp_path, "the secret", hooks=hooks) as agent:
        result = await agent.run("go")

    assert (result.is_error, result.text) == (True, "not for you")


@pytest.mark.parametrize("event", [PostModelCall, PreOutput])
async def test_an_answer_may_be_replaced(event: Any, tmp_path: Path) -> None:
    """Replaced text is what is returned."""
    hooks = Hooks()
    hooks.add(event, lambda event: replace_output("something else"))

    async with agent_on(tmp_path, "the secret", hooks=hooks) as agent:
        result = await agent.run("go")

    assert result.text == "something else"


async def test_context_goes_into_the_request(tmp_path: Path) -> None:
    """What a PreModelCall hook adds, this very request carries."""
    hooks = Hooks()
    hooks.add(PreModelCall, lambda event: context("mind the gap"))

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        await agent.run("go")
        [request] = requests_of(agent)

    assert any("mind the gap" in text for text in reminders(request))


async def test_a_failing_hook_closes_the_gate(tmp_path: Path) -> None:
    """A PreModelCall hook that raises keeps the model from being asked."""
    hooks = Hooks()

    @hooks.on(PreModelCall)
    async def broken(event: PreModelCall) -> None:
        raise RuntimeError("boom")

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        result = await agent.run("go")

    assert result.is_error
    assert "boom" in result.text


async def test_a_command_may_listen_too(tmp_path: Path) -> None:
    """Exit code 2 of a command is a deny here as on any gate."""
    hooks = Hooks()
    hooks.add(PreModelCall, Command(command="echo not today >&2; exit 2"))

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        result = await agent.run("go")
    await hooks.aclose()

    assert result.is_error
    assert "not today" in result.text
