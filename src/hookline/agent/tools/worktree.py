"""Working in a git worktree: EnterWorktree moves the session into a copy of its own, ExitWorktree back out.

A WorktreeCreate hook may make the copy instead of git (it answers with the path), and a WorktreeRemove hook may take it
away; without hooks, git does both, under `.claude/worktrees/NAME` on a branch `worktree-NAME`.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, Worktree, failure
from hookline.agent.tools.shell import find_helper, git_environ
from hookline.errors import HooklineError

NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


class EnterWorktree(Tool):
    """Create a git worktree and go on working in it, or go to an existing one."""

    class Input(Struct, frozen=True):
        name: Annotated[str, Meta(description="a name for the new worktree; made up if left out")] | UnsetType = UNSET
        path: Annotated[str, Meta(description="an existing worktree to go to instead")] | UnsetType = UNSET

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """One worktree at a time, with a name that can be a folder."""
        if env.state.worktree:
            return f"Already in a worktree session: {env.state.worktree.path}"
        name = given.get("name", "x")
        bad = len(name) > 64 or not NAME.fullmatch(name) or ".." in name.split("/")
        return f"Invalid worktree name: {name}" if bad else None

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        try:
            worktree = await _entered(given, env) if "path" in given else await _created(given, env)
        except HooklineError as problem:
            return failure(str(problem))
        env.state.worktree, env.state.project_dir, env.state.cwd = worktree, worktree.path, worktree.path
        branch = f" on branch “{worktree.branch}”" if worktree.branch else ""
        verb = "Entered" if "path" in given else "Created"
        said = f"{verb} worktree at “{worktree.path}”{branch}. The session is now working in the worktree."
        return ToolResult(said, {"worktreePath": worktree.path, "worktreeBranch": worktree.branch, "message": said})


class ExitWorktree(Tool):
    """Leave the worktree and go back; `remove` deletes it, unless it holds work that would be lost."""

    class Input(Struct, frozen=True):
        action: Annotated[Literal["keep", "remove"], Meta(description="whether the worktree stays on disk")]
        discard_changes: Annotated[bool, Meta(description="remove it even with unsaved work")] | UnsetType = UNSET

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        return None if env.state.worktree else "No active worktree session to exit"

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Go back; a removal that would lose work is refused."""
        worktree = env.state.worktree
        if worktree is None:
            return failure("No active worktree session to exit")
        if given["action"] == "remove":
            problem = await _removed(worktree, env, discard=given.get("discard_changes", False))
            if problem:
                return failure(problem)
        env.state.worktree, env.state.project_dir, env.state.cwd = None, worktree.project_dir, worktree.cwd
        verb = "Exited and removed" if given["action"] == "remove" else "Exited, and kept, the"
        said = f"{verb} worktree at “{worktree.path}”. Session is now back in “{worktree.cwd}”."
        response = {"action": given["action"], "originalCwd": worktree.cwd, "worktreePath": worktree.path}
        return ToolResult(said, {**response, "worktreeBranch": worktree.branch, "message": said})


async def _created(given: dict[str, Any], env: ToolEnv) -> Worktree:
    name = given.get("name") or f"w-{token_hex(3)}"
    made = await env.host.worktree_create(name)
    if made is not None:
        return Worktree(made, "", env.cwd, env.state.project_dir, by_hook=True)
    path = Path(env.state.project_dir, ".claude", "worktrees", name.replace("/", "+"))
    branch = f"worktree-{name.replace('/', '+')}"
    await _git(env.state.project_dir, "worktree", "add", "-B", branch, str(path), "HEAD")
    return Worktree(str(path), branch, env.cwd, env.state.project_dir)


async def _entered(given: dict[str, Any], env: ToolEnv) -> Worktree:
    wanted = env.path(given["path"]).resolve()
    listed = await _git(env.state.project_dir, "worktree", "list", "--porcelain")
    known = {Path(line.removeprefix("worktree ")) for line in listed.splitlines() if line.startswith("worktree ")}
    if wanted not in known:
        raise HooklineError(f"`{wanted}` is not a worktree of this repository; `git worktree list` shows them")
    branch = await _git(str(wanted), "branch", "--show-current")
    return Worktree(str(wanted), branch, env.cwd, env.state.project_dir, entered=True)


async def _removed(worktree: Worktree, env: ToolEnv, *, discard: bool) -> str | None:
    """Take the worktree away; why not, if it is not ours to remove or holds work."""
    if worktree.entered:
        return "The worktree was there before this session; use action `keep`"
    try:
        if worktree.by_hook:
            await env.host.worktree_remove(worktree.path)
            return None
        unsaved = await _git(worktree.path, "status", "--porcelain")
        ahead = await _git(worktree.path, "rev-list", "HEAD", "--not", "--exclude", worktree.branch, "--branches")
        if (unsaved or ahead) and not discard:
            work = f"{len(unsaved.splitlines())} changed files, {len(ahead.splitlines())} commits"
            return f"The worktree has work that would be lost ({work}); pass discard_changes: true to remove it anyway"
        await _git(worktree.project_dir, "worktree", "remove", "--force", worktree.path)
        await _git(worktree.project_dir, "branch", "-D", worktree.branch)
    except HooklineError as problem:
        return str(problem)
    return None


async def _git(cwd: str, *args: str) -> str:
    """What git prints; raises with git's own words. No hook runs, and nothing that the repository's settings name."""
    pipe = asyncio.subprocess.PIPE
    git = find_helper("git", cwd)
    if git is None:
        raise HooklineError("cannot run git: there is none outside of what the agent may write to")
    try:
        process = await asyncio.create_subprocess_exec(
            git, *args, cwd=cwd, env=git_environ(cwd), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as problem:
        raise HooklineError(f"cannot run git: {problem.strerror}") from problem
    out, err = await process.communicate()
    if process.returncode != 0:
        raise HooklineError(f"git {args[0]} failed: {err.decode('utf-8', 'replace').strip()}")
    return out.decode("utf-8", "replace").strip()
