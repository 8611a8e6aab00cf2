"""Our client with the real Claude CLI, beyond what every pair must do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.api import Hooks
from hookline.errors import CliDied, RequestRefused
from hookline.events import PermissionRequest, PreToolUse, SessionEnd, SessionStart, Stop
from hookline.hosts.claude_code import AssistantMessage, CanUseTool, ClaudeClient, ResultMessage, query
from hookline.hosts.claude_code.process import bundled_cli
from hookline.replies import Reply, context, deny
from tests.hosts.claude_code.hosts import Stage, stage_for
from tests.hosts.claude_code.scenarios import BASH


@pytest.fixture
def stage(tmp_path: Path, api: Any) -> Stage:
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    return stage_for(str(cli), tmp_path, api)


def where(stage: Stage) -> dict[str, Any]:
    return {"cli": stage.cli, "cwd": stage.cwd, "env": stage.env}


async def test_one_question_is_one_call(stage: Stage, api: Any) -> None:
    """`query` starts the CLI, asks, reads to the end and leaves nothing running."""
    api.main["turns"] = [{"text": "final"}]

    said = [one async for one in query("go", **where(stage))]

    assert [one.text for one in said if isinstance(one, AssistantMessage)] == ["final"]
    assert [one.result for one in said if isinstance(one, ResultMessage)] == ["final"]


async def test_hooks_and_modes_change_between_turns(stage: Stage, api: Any) -> None:
    """A hook added after the first turn is registered anew; mode and model are switched; a refusal has its code."""
    api.main["turns"] = [{"tools": [BASH]}, {"text": "one"}, {"tools": [BASH]}, {"text": "two"}]
    hooks = Hooks()

    @hooks.on(Stop)
    async def quiet(event: Stop) -> None:
        return None

    async with ClaudeClient(hooks=hooks, allowed_tools=["Bash"], **where(stage)) as claude:
        await claude.send("first")
        async for _ in claude.receive():
            pass

        @hooks.on(PreToolUse)
        async def no_more(event: PreToolUse) -> Reply:
            return deny("NOMORE")

        await claude.set_permission_mode("acceptEdits")
        await claude.set_model("claude-sonnet-4-5")
        await claude.send("second")
        async for _ in claude.receive():
            pass
        with pytest.raises(RequestRefused) as refused:
            await claude.request("no_such_thing")

    assert (Path(stage.cwd) / "out.txt").read_text() == "ran\n"
    requests = [one["request"] for one in api.requests if one["lane"] == "main"]
    assert "NOMORE" in str(requests[-1]["messages"])
    assert [one["model"] for one in requests[-2:]] == ["claude-sonnet-4-5"] * 2
    assert refused.value.code == "unsupported_request"


async def test_a_flag_the_cli_does_not_know_is_one_clear_error(stage: Stage) -> None:
    """The CLI's own words come with its exit code."""
    with pytest.raises(CliDied, match=r"(?s)exit code 1.*--no-such-flag"):
        await ClaudeClient(extra_args=["--no-such-flag"], **where(stage)).connect()


async def test_a_host_that_agrees_does_not_outrun_a_permission_hook_that_denies(stage: Stage, api: Any) -> None:
    """The CLI asks both at once and acts on the first answer: `rm -rf keep` does not run, and the host is not asked."""
    api.main["turns"] = [{"tools": [["Bash", {"command": "rm -rf keep", "description": "d"}]]}, {"text": "final"}]
    (Path(stage.cwd) / "keep").mkdir()
    hooks, asked = Hooks(), list[str]()

    @hooks.on(PermissionRequest)
    async def never(event: PermissionRequest) -> Reply:
        return deny("KEEPIT")

    async def agree(request: CanUseTool) -> bool:
        asked.append(request.tool_name)
        return True

    said = [one async for one in query("go", hooks=hooks, can_use_tool=agree, **where(stage))]

    assert (Path(stage.cwd) / "keep").is_dir()
    assert asked == []
    assert "KEEPIT" in str(api.requests[-1]["request"]["messages"])
    assert isinstance(said[-1], ResultMessage)


async def test_session_hooks_run_with_the_cli_that_never_calls_them(stage: Stage, api: Any) -> None:
    """They are fired on connect and close, with the id that the CLI's session has; their context reaches the model."""
    api.main["turns"] = [{"text": "final"}]
    hooks, heard = Hooks(), list[Any]()

    @hooks.on(SessionStart, SessionEnd)
    async def note(event: SessionStart | SessionEnd) -> Reply | None:
        heard.append(event)
        return context("BEGINCTX") if isinstance(event, SessionStart) else None

    said = [one async for one in query("go", hooks=hooks, **where(stage))]

    assert [type(one) for one in heard] == [SessionStart, SessionEnd]
    assert {one.session_id for one in heard} == {said[-1].session_id}
    assert "BEGINCTX" in str(api.requests[0]["request"]["messages"])
