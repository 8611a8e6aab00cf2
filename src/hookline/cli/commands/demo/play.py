"""The demo from its folder to its exit code: set the stage, let the agent work, look at what really happened."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from hookline.agent import Agent
from hookline.cli.commands import audit as audit_command
from hookline.cli.commands.demo.hooks import hooks
from hookline.cli.commands.demo.story import (
    OUTSIDE,
    PROMPT,
    Played,
    missing,
    model,
    run_tests,
    summary,
    write_project,
)
from hookline.cli.commands.demo.timeline import Show, attempt
from hookline.guards.permissions import read_rules
from hookline.records.audit.log import AuditLog
from hookline.testing import Recorder

RULES: dict[str, list[str]] = {
    "allow": ["Agent"],
    "ask": ["Bash"],
    # A second lock on what the story lets the model try: should the hooks ever fail to deny it, it still does not run.
    "deny": ["Bash(rm *)", "Bash(sudo *)", f"Write(/{OUTSIDE})"],
}
"""Every command needs a permission; there is no one at this keyboard, so a hook gives it."""


def play(show: Show, *, pause: float, keep: bool) -> int:
    """Play the story in a folder of its own; 0 only if it went as told."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="hookline-demo-")))
    project, log = folder / "shop", folder / "audit.jsonl"
    write_project(project)
    show.begin(project, hooks.hooks)
    try:
        played = asyncio.run(_work(project, log, show, pause))
        problems = missing(played)
        tried = attempt(project)
        if tried.escaped or not (tried.refused or tried.skipped):
            problems.append("a script that writes outside is stopped by the kernel")
        show.escape(tried)
    finally:
        if not keep:
            shutil.rmtree(project)
    show.end(summary(played), problems, log, project if keep else None)
    whole, said = _verified(log)
    show.verified(said)
    return 0 if whole and not problems else 1


async def _work(project: Path, log: Path, show: Show, pause: float) -> Played:
    """Let the agent work; every verdict is recorded, logged and shown when it is made."""
    recorder, audit, scripted = Recorder(), AuditLog(log, sync="line"), model(project, pause)
    for observer in (recorder, audit, show):
        hooks.observe(observer, inline=True)
    began = time.perf_counter()
    agent = Agent(
        model=scripted,
        hooks=hooks,
        cwd=project,
        permission_mode="acceptEdits",
        rules=read_rules(RULES),
        environ=_environ(project.parent),
        instructions=frozenset(),
        persist=False,
    )
    async with agent:
        result = await agent.run(PROMPT)
    seconds = time.perf_counter() - began
    audit.close()
    tests = await run_tests(project)
    return Played(verdicts=recorder.verdicts, model=scripted, result=result, tests=tests, log=log, seconds=seconds)


def _environ(folder: Path) -> dict[str, str]:
    """Our own interpreter first on PATH, and nothing of the user's own settings."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return {**os.environ, "PATH": path, "CLAUDE_CONFIG_DIR": str(folder)}


def _verified(log: Path) -> tuple[bool, str]:
    """What `hookline audit verify` says, and whether the log is whole."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = audit_command.main(["verify", str(log)])
    return code == 0, printed.getvalue().strip()
