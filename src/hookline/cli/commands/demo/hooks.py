"""The demo's hooks, as anybody would write them: three guards, and four functions of our own."""

import asyncio
import re
import sys
from pathlib import Path

from hookline import Context, Hooks, Reply, context, keep_going, message, rewrite
from hookline.events import PreToolUse, Stop, SubagentStart, UserPromptSubmit
from hookline.guards import approvals, commands, paths

PYTHON = Path(sys.executable).name  # what this interpreter is called in its folder, which the demo puts first on PATH
hooks: Hooks = Hooks()

hooks.add(commands.block(["rm -rf *", "sudo *"]))
hooks.add(paths.stay_inside())
hooks.add(approvals.auto(["ls *", f"{PYTHON} -B -m unittest *"]))


@hooks.on(UserPromptSubmit)
async def house_rules(event: UserPromptSubmit) -> Reply:
    """Tell the model what it should know."""
    return context("prices are whole cents")


@hooks.on(PreToolUse, when="Bash(python -m unittest *)")
async def fresh_tests(event: PreToolUse) -> Reply:
    """Run tests without the byte code of an earlier second."""
    command = event.tool_input["command"].replace("python", f"{PYTHON} -B", 1)
    return rewrite({**event.tool_input, "command": command})


@hooks.on(SubagentStart)
async def only_look(event: SubagentStart) -> Reply:
    """Tell every subagent its place."""
    return context("look, and change nothing")


@hooks.on(Stop)
async def tests_must_pass(event: Stop, ctx: Context) -> Reply:
    """The agent may not stop while the tests fail; they are really run."""
    tests = (sys.executable, "-B", "-m", "unittest")
    process = await asyncio.create_subprocess_exec(*tests, cwd=ctx.cwd, stderr=asyncio.subprocess.PIPE)
    printed = (await process.communicate())[1].decode("utf-8", "replace")
    ran = re.search(r"^Ran (\d+) test", printed, re.MULTILINE)
    count = ran[1] if ran else "0"
    if process.returncode == 0:
        return message(f"{count} of {count} tests pass")
    failed = re.findall(r"^(?:FAIL|ERROR): (?:test_)?(\w+)", printed, re.MULTILINE)
    failing = [name.replace("_", " ") for name in failed]
    return keep_going(f"{len(failing)} of {count} tests fail: {', '.join(failing)}")
