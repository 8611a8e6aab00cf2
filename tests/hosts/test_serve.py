"""A payload in, an answer out, with real hooks in between."""

import json
from typing import Any

import pytest

from hookline import Hooks, deny, rewrite
from hookline.events import PreToolUse
from hookline.guards.sandboxing import host_rewrites
from hookline.hosts.answer import serve
from hookline.hosts.encode import refuse
from hookline.hosts.host import Host
from hookline.hosts.table import HOSTS, find
from tests.hosts.battery import recorded

PATCH = "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File: /etc/passwd\n+x\n*** End Patch"


def patch_call() -> bytes:
    return json.dumps({"hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": "apply_patch",
                       "tool_input": {"command": PATCH}}).encode()  # fmt: skip


async def test_one_bad_file_refuses_the_whole_patch() -> None:
    """Every file is judged; the strictest verdict holds for the call."""
    hooks = Hooks()

    @hooks.on(PreToolUse, match="Write|Edit")
    def outside(event: PreToolUse) -> object:
        return (
            deny(f"not {event.tool_input['file_path']}") if event.tool_input["file_path"].startswith("/etc") else None
        )

    response = await serve(hooks, find("codex"), patch_call())

    assert json.loads(response.stdout)["hookSpecificOutput"]["permissionDecisionReason"] == "not /etc/passwd"


async def test_a_part_of_a_call_cannot_be_rewritten() -> None:
    """What would run is not what was judged, so it does not run."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: rewrite({**event.tool_input, "file_path": "elsewhere"}))

    response = await serve(hooks, find("codex"), patch_call())

    assert b"one call for each file" in response.stdout


async def test_guards_know_whether_the_host_can_rewrite() -> None:
    """So that they answer by text where a rewritten line would become a deny."""
    seen = []
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: seen.append(host_rewrites.get()))
    for host, event in (("qwen", "PreToolUse"), ("codex", "PreToolUse")):
        sample = next(s for s in recorded(host) if s["event"] == event)
        host_rewrites.set(True)
        await serve(hooks, find(host), json.dumps(sample["payload"]).encode(), event=event)

    assert seen == [False, True]


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
@pytest.mark.parametrize("name", [{"a": 1}, ["PreToolUse"], 5, True], ids=str)
async def test_an_event_whose_name_is_no_text_is_denied(host: Host, name: Any) -> None:
    """A refusal that fails would end the program with a code that most hosts take for a yes."""
    asked = {"agent_action_name": name, "hookName": name, host.event_field: name, "tool_name": "Bash"}
    event = next(theirs for theirs, ours in host.events.items() if ours == "PreToolUse")

    response = await serve(Hooks(), host, json.dumps(asked).encode(), event=event)

    assert response.exit_code == refuse(host, "no").exit_code
    assert b"could not be asked" in response.stdout + response.stderr
