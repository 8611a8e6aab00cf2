"""The demo's hooks, as anybody would write them: three guards, and four functions of our own."""

from __future__ import annotations

from hookline import Context, Hooks, Reply, context, keep_going, message, rewrite
from hookline.cli.commands.demo.story import PYTHON, run_tests
from hookline.events import PreToolUse, Stop, SubagentStart, UserPromptSubmit
from hookline.guards import approvals, commands, paths

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
    """The agent may not stop while the tests fail."""
    tests = await run_tests(ctx.cwd)
    return message(str(tests)) if tests.passed else keep_going(str(tests))
