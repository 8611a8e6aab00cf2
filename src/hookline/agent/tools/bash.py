"""Bash: one command at a time in the session's directory, which a `cd` moves, within the project; and worktrees.

Output of both streams is joined as the command printed it and bounded; a command that runs too long, or whose call is
cancelled, is killed with everything it started. `run_in_background` returns an id at once.

EnterWorktree moves the session into a copy of its own, ExitWorktree back out. A WorktreeCreate hook may make the copy
(it answers with the path), and a WorktreeRemove hook may take it away; without hooks, git does both, under
`.claude/worktrees/NAME` on a branch `worktree-NAME`.
"""

import asyncio
import os
import re
from functools import reduce
from pathlib import Path
from secrets import token_hex
from typing import Any

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, Worktree, failure
from hookline.agent.tools.shell import BoundedOutput, Shell, find_helper, git_environ, run_helper
from hookline.core.interpreter import temporary_folder
from hookline.errors import HooklineError
from hookline.events import CwdChanged, WorktreeRemove
from hookline.guards.sandboxing import unavailable, unwrapped
from hookline.sandbox.policy import Policy

OUTPUT_LIMIT = 30_000
DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")  # what a worktree may be called
#: commands that print nothing when all is well; hooks are told so (`noOutputExpected`)
SILENT = {"cd", "mkdir", "mv", "cp", "rm", "touch", "chmod", "chown", "ln", "export", "unset", "kill"}


class Bash(Tool):
    """Run a command in bash.

    The working directory is kept between calls; shell variables are not. Standard output and standard error come back
    joined; long output is cut in the middle.
    """

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        reason = unavailable() if env.confine else ""
        if reason:
            return failure(f"this session runs commands confined, and here that is not possible: {reason}")
        line, policy = line_to_run(given["command"], env)
        held = None if policy is None else (policy, env.state.jobs.starter)
        folder = env.cwd if Path(env.cwd).is_dir() else env.state.project_dir  # noqa: ASYNC240 - one look at the disk
        variables = {**(env.environ or os.environ), "CLAUDECODE": "1", "PWD": env.cwd}
        shell = Shell(line, folder, variables, env.state.env_files, held)
        try:
            if given.get("run_in_background"):
                job = env.state.jobs.start(shell, given.get("description") or given["command"])
                told = f"Command running in background with ID: {job.id}. Output is being written to: {job.output}"
                return ToolResult(told, {**response(given["command"]), "backgroundTaskId": job.id})
            shell.start()
        except OSError as problem:
            return failure(f"cannot start the shell: {problem}")
        sink = BoundedOutput(OUTPUT_LIMIT)
        seconds = min(given.get("timeout") or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS) / 1000
        try:
            async with asyncio.timeout(seconds):
                code = await shell.read(sink)
        except TimeoutError:
            output = sink.text().rstrip("\n")
            told = f"Command timed out after {seconds:g} s\n{output}".rstrip("\n")
            return failure(told, {**response("", output), "interrupted": True})
        else:
            note = await follow(shell.final_cwd(), env)
            output = sink.text().rstrip("\n")
            told = "\n".join(part for part in (output, note.strip()) if part)
            if code != 0:
                return failure(f"Exit code {code}\n{told}".rstrip("\n"), response(given["command"], output, note))
            return ToolResult(told or "(Bash completed with no output)", response(given["command"], output, note))
        finally:  # end what did not end by itself, remember what was left running on purpose
            try:
                if not shell.exit.done():
                    await shell.end()
                elif shell.left_something():
                    env.state.jobs.strays.append(shell)
            finally:
                shell.close()


class TaskStop(Tool):
    """End a command that was started with run_in_background."""

    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        job = await env.state.jobs.stop(given["task_id"])
        if job is None:
            return failure(f"no background command has the id `{given['task_id']}`")
        return ToolResult(f"Stopped {job.id}: {job.command}", {"task_id": job.id, "command": job.command})


def line_to_run(line: str, env: ToolEnv) -> tuple[str, Policy | None]:
    """The line and what it is held to: what guards say and, in a confined session, project and temporary folder."""
    policies = [env.held] if env.held is not None else []
    found = unwrapped(line)  # another hook may have put a confinement around it
    if found is not None:
        policies, line = [*policies, found[0]], found[1]
    if env.confine:
        root = os.path.realpath(env.state.project_dir)
        policies.insert(0, Policy((root, os.path.realpath(temporary_folder())), write_guard="--confine"))
    return line, reduce(Policy.intersected, policies) if policies else None


async def follow(cwd: str | None, env: ToolEnv) -> str:
    """Move the session to where the command ended; from outside the project it goes back, and the model is told."""
    old, root = env.cwd, env.state.project_dir
    if cwd is None or cwd == os.path.realpath(old):  # noqa: ASYNC240 - one look at the disk
        return ""
    if env.agent_id is not None:  # every command of a subagent begins in the same place, as in Claude Code
        return f"\nShell cwd was reset to {old}"
    env.state.cwd = cwd  # hooks are told of the move with the session already there
    await env.host.tell(CwdChanged, cwd=old, old_cwd=old, new_cwd=cwd)
    if Path(cwd).is_relative_to(os.path.realpath(root)):  # noqa: ASYNC240 - and another
        return ""
    env.state.cwd = root
    return f"\nShell cwd was reset to {root}"


def response(command: str, stdout: str = "", stderr: str = "") -> dict[str, Any]:
    """The result as hooks see it (`tool_response`)."""
    first = re.match(r"\s*([\w./-]+)", command)
    silent = first is not None and first[1] in SILENT
    return {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False, "noOutputExpected": silent}


class EnterWorktree(Tool):
    """Create a git worktree and go on working in it, or go to an existing one."""

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
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

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        return None if env.state.worktree else "No active worktree session to exit"

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
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
            await env.host.tell(WorktreeRemove, worktree_path=worktree.path)  # the hook that made it takes it away
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
    git = find_helper("git", cwd)
    if git is None:
        raise HooklineError("cannot run git: there is none outside of what the agent may write to")
    try:
        code, out, problem = await run_helper([git, *args], cwd, git_environ(cwd))
    except OSError as error:
        raise HooklineError(f"cannot run git: {error.strerror}") from error
    if code != 0:
        raise HooklineError(f"git {args[0]} failed: {problem}")
    return out.strip()
