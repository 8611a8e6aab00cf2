"""Credentials stopped or taken out: in inputs, prompts and outputs, at any depth."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse, UserPromptSubmit
from hookline.guards import secrets
from hookline.replies import Decision, Reply

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6" * 3  # put together here, so that none stands in a file
GONE = "[redacted: GitHub Token]"


def guarded(*hooks: Any) -> Hooks:
    """Hooks with these guards on."""
    made = Hooks()
    made.add(*hooks)
    return made


NESTED = [
    {"command": f"curl -H 'X: {TOKEN}' h"},
    {"file_path": "x", "content": f"a\nb = '{TOKEN}'\n"},
    {"edits": [{"old_string": "a", "new_string": TOKEN}]},
    {"a": {"b": [{"c": TOKEN}]}},
    {TOKEN: 1},
    {"a": ["x", [TOKEN]]},
]


@pytest.mark.parametrize("given", NESTED)
async def test_a_call_that_carries_a_credential_is_denied(given: dict[str, Any]) -> None:
    """Wherever in the input it stands; the reason names its kind and never the thing itself."""
    verdict = await guarded(*secrets.block()).fire(PreToolUse(tool_name="X", tool_input=given))

    assert (verdict.decision, "GitHub Token" in verdict.reason, TOKEN in verdict.reason) == (Decision.DENY, True, False)


@pytest.mark.parametrize("given", NESTED)
async def test_a_call_goes_on_without_its_credentials_when_redacting(given: dict[str, Any]) -> None:
    """What the tool gets no longer holds it, and the rest is as it was."""
    verdict = await guarded(*secrets.redact()).fire(PreToolUse(tool_name="X", tool_input=given))

    assert TOKEN not in str(verdict.input)
    assert str(verdict.input) == str(given).replace(TOKEN, GONE)


async def test_a_prompt_that_carries_a_credential_is_stopped() -> None:
    """And one that does not is not."""
    hooks = guarded(*secrets.block())

    carrying = await hooks.fire(UserPromptSubmit(prompt=f"use {TOKEN}"))
    plain = await hooks.fire(UserPromptSubmit(prompt="use the token in the vault"))

    assert (carrying.blocked, plain.blocked) == (True, False)


@pytest.mark.parametrize("make", [secrets.block, secrets.redact])
@pytest.mark.parametrize("response", [f"x {TOKEN} y", {"stdout": f"x {TOKEN} y", "code": 0}, [{"text": TOKEN}]])
async def test_what_a_tool_returns_is_shown_without_credentials(make: Any, response: Any) -> None:
    """The model never sees it."""
    event = PostToolUse(tool_name="Bash", tool_input={"command": "env"}, tool_response=response)

    verdict = await guarded(*make()).fire(event)

    assert str(verdict.output) == str(response).replace(TOKEN, GONE)


async def test_what_carries_none_is_left_as_it_is() -> None:
    """No rewriting, no replacing, nothing to say."""
    hooks = guarded(*secrets.block(), *secrets.redact(outputs=False))

    call = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": "ls", "timeout": 5, "x": None}))
    output = await hooks.fire(PostToolUse(tool_name="Bash", tool_input={}, tool_response={"stdout": "a"}))

    assert (call.reply, output.reply) == (Reply(), Reply())


@pytest.mark.parametrize("make,count", [(secrets.block, 3), (secrets.redact, 2)])
def test_each_part_can_be_left_out(make: Any, count: int) -> None:
    """Inputs, prompts and outputs are hooks of their own."""
    assert len(make()) == count
    assert len(make(inputs=False)) == count - 1
    assert len(make(outputs=False)) == count - 1
