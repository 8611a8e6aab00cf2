"""Worktrees, with real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.agent.subagents import AgentToolHost
from hookline.agent.tools import ToolEnv, ToolResult, default_tools
from hookline.errors import HooklineError
from hookline.events import WorktreeCreate, WorktreeRemove
from hookline.replies import specific
from tests.agent.driving import agent_on
from tests.agent.tools.hosting import hosted


@pytest.fixture
def repo(env: ToolEnv) -> ToolEnv:
    """A repository with one commit."""
    Path(env.cwd, "a.txt").write_text("x")
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for args in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *args], cwd=env.cwd, check=True, capture_output=True)
    return env


async def call(env: ToolEnv, which: str, /, **given: Any) -> ToolResult | str:
    tool = default_tools()[which]
    valid = tool.validate(given)
    return await tool.check(valid, env) or await tool.run(valid, env)


async def test_a_session_works_in_a_worktree_and_comes_back(repo: ToolEnv) -> None:
    """Bash runs there; after `remove` neither folder nor branch is left."""
    root = repo.cwd
    entered = await call(repo, "EnterWorktree", name="w1")
    inside = await call(repo, "Bash", command="pwd; cat a.txt")
    left = await call(repo, "ExitWorktree", action="remove")

    assert isinstance(entered, ToolResult)
    assert isinstance(inside, ToolResult)
    assert isinstance(left, ToolResult)
    assert entered.response["worktreePath"] == f"{root}/.claude/worktrees/w1"
    assert inside.content == f"{root}/.claude/worktrees/w1\nx"
    assert (repo.cwd, left.is_error) == (root, False)
    assert not Path(root, ".claude/worktrees/w1").exists()


async def test_work_is_not_thrown_away_unasked(repo: ToolEnv) -> None:
    """Changes and commits need `discard_changes`; `keep` keeps them."""
    await call(repo, "EnterWorktree", name="w1")
    Path(repo.cwd, "new.txt").write_text("y")
    path = Path(repo.cwd)

    refused = await call(repo, "ExitWorktree", action="remove")
    kept = await call(repo, "ExitWorktree", action="keep")
    again = await call(repo, "EnterWorktree", path=str(path))
    not_ours = await call(repo, "ExitWorktree", action="remove", discard_changes=True)

    assert isinstance(refused, ToolResult)
    assert "1 changed files, 0 commits" in str(refused.content)
    assert [isinstance(result, ToolResult) and result.is_error for result in (kept, again, not_ours)] == [
        False,
        False,
        True,
    ]
    assert (path / "new.txt").read_text() == "y"


async def test_a_hook_can_make_and_remove_the_worktree(env: ToolEnv) -> None:
    """Without git; what the hook answers is where the session goes."""
    Path(env.cwd, "made").mkdir()
    removed: list[str] = []

    async def create(name: str) -> str:
        return f"{env.cwd}/made" if name == "w1" else ""

    async def remove(kind: type[WorktreeRemove], *, worktree_path: str) -> None:
        removed.append(worktree_path)

    hooked = hosted(env, worktree_create=create, tell=remove)
    await call(hooked, "EnterWorktree", name="w1")
    inside = env.cwd
    await call(hooked, "ExitWorktree", action="remove")

    assert removed == [inside]
    assert inside == f"{env.cwd}/made"


async def test_what_cannot_be_done_says_why(env: ToolEnv) -> None:
    """Not a repository, a bad name, a hook that fails, no worktree to leave, two at once."""

    async def fail(name: str) -> str:
        raise HooklineError(f"no room for {name}")

    outside = await call(env, "EnterWorktree", name="w1")
    broken = await call(hosted(env, worktree_create=fail), "EnterWorktree", name="w1")

    assert isinstance(outside, ToolResult)
    assert isinstance(broken, ToolResult)
    assert "git worktree failed" in str(outside.content)
    assert "no room for w1" in str(broken.content)
    assert await call(env, "EnterWorktree", name="../up") == "Invalid worktree name: ../up"
    assert await call(env, "ExitWorktree", action="keep") == "No active worktree session to exit"


async def test_a_hook_that_names_a_folder_which_is_not_there_has_made_none(tmp_path: Path) -> None:
    """The run does not go on somewhere else instead."""
    hooks = Hooks()
    hooks.add(WorktreeCreate, lambda event: specific(worktree_path=str(tmp_path / "nowhere")), name="make")
    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        with pytest.raises(HooklineError, match=r"`.*/nowhere`, which is not a folder"):
            await AgentToolHost(agent.conversation).worktree_create("w1")


PLANTED = """\
[core]
\tfsmonitor = {program}
\thooksPath = {hooks}
\tpager = {program}
[filter "x"]
\tsmudge = {program}
\tclean = {program}
\trequired = true
"""


async def test_git_runs_nothing_that_the_repository_names(
    repo: ToolEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may have written hooks, a monitor, filters, or a `git` on PATH; none of them runs outside of it."""
    root, trace = Path(repo.cwd), tmp_path / "trace"
    planted = root / ".venv/bin"
    planted.mkdir(parents=True)
    hooks = root / ".git/hooks"
    for program in (planted / "git", planted / "rg", hooks / "post-checkout", hooks / "post-index-change"):
        program.write_text(f"#!/bin/sh\necho $0 >> {trace}\n")
        program.chmod(0o755)
    (root / ".gitattributes").write_text("* filter=x\n")
    with (root / ".git/config").open("a") as config:
        config.write(PLANTED.format(program=planted / "git", hooks=hooks))
    monkeypatch.setenv("PATH", f"{planted}:{os.environ['PATH']}")

    entered = await call(repo, "EnterWorktree", name="w1")
    await call(repo, "Grep", pattern="x")
    left = await call(repo, "ExitWorktree", action="remove")

    assert isinstance(entered, ToolResult)
    assert isinstance(left, ToolResult)
    assert (entered.is_error, left.is_error) == (False, False)
    assert not trace.exists(), trace.read_text()
