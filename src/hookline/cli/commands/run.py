"""`hookline run`: the agent on the command line, with the Claude CLI's flags."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.cli.flags import CLAUDE_CODE_VERSION, FLAGS, Flags, parse, tell_unknown

if TYPE_CHECKING:
    from hookline.agent.session.results import Result
    from hookline.cli.factory import Made

FAILED, INTERRUPTED, TERMINATED = 1, 130, 143


def main(argv: list[str]) -> int:
    """Run the agent once; exit code 0, 1 if it ended in an error, 130 after Ctrl-C."""
    flags = parse(argv)
    if flags.help:
        print(usage())
        return 0
    if flags.version or set(argv) - {"--trust"} == {"-v"}:  # drivers ask with either, and with nothing else
        print(version())
        return 0
    tell_unknown(flags)
    _warm_up(flags)
    if flags.cwd:
        os.chdir(flags.cwd)
    return asyncio.run(_run(flags))


def _warm_up(flags: Flags) -> None:
    """Begin with what takes longest: the model's SDK is imported in a thread while all else is read."""
    if (flags.model or "").partition(":")[0] not in ("scripted", "openai"):
        import threading

        from hookline.agent.models.anthropic import import_sdk

        threading.Thread(target=import_sdk, name="import anthropic", daemon=True).start()


def version() -> str:
    """What drivers of the Claude CLI look at: whose flags and messages we speak, then who we are."""
    from importlib.metadata import version as installed

    return f"{CLAUDE_CODE_VERSION} (Hookline {installed('hookline')})"


def usage() -> str:
    """The help text."""
    return (
        "usage: hookline run -p PROMPT [flags]\n\nThe agent, with hooks on every step. Flags are the Claude CLI's:\n\n"
        + "\n".join(f"  {name}" for name in FLAGS)
        + "\n\n--trust runs the project's own hooks without asking; --hooks FILE.py takes hooks from Python."
    )


async def _run(flags: Flags) -> int:
    from hookline.cli.factory import make
    from hookline.cli.output import shown_on
    from hookline.cli.settings_watcher import keep_up

    caught = _Caught()
    made = await make(flags, str(Path.cwd()))
    keeping = asyncio.create_task(keep_up(made, flags))
    try:
        shown_on(made, flags)
        code = caught.code or await caught.watch(_session(made, flags))
    finally:
        keeping.cancel()
        await caught.watch(made.aclose())
    return caught.code or code


async def _session(made: Made, flags: Flags) -> int:
    if flags.worktree is not None:
        await _enter_worktree(made, flags.worktree)
    if flags.input_format == "stream-json":
        from hookline.cli.stream_json import serve

        return await serve(made, flags)
    from hookline.cli.repl import converse, is_terminal, permit

    if is_terminal() and not flags.print:
        made.agent.session.policy.can_use_tool = permit
    prompt = flags.prompt_text
    if prompt is None and is_terminal() and not flags.init_only:
        return await converse(made)
    await made.agent.start()
    if flags.init_only:
        return 0
    if prompt is None:
        prompt = sys.stdin.read().strip()
    if not prompt.strip():
        print("hookline run: there is no prompt; write one after `-p`, or send it on stdin", file=sys.stderr)
        return 1
    result = await made.agent.run(prompt)
    while (later := await made.agent.background()) is not None:
        result = later
    return code_of(result)


async def _enter_worktree(made: Made, name: str) -> None:
    """Work in a worktree of the project, made for this session."""
    from hookline.agent.tool_host import surroundings
    from hookline.agent.tools.worktree import EnterWorktree
    from hookline.errors import AgentError

    talk = made.agent.talk
    result = await EnterWorktree().run({"name": name} if name else {}, surroundings(talk, ""))
    if result.is_error:
        raise AgentError(str(result.content))
    made.agent.session.project_dir = talk.state.project_dir


def code_of(result: Result) -> int:
    """The exit code of a run that came to its end."""
    return FAILED if result.is_error else 0


class _Caught:
    """Ctrl-C and SIGTERM end the work but not the ending: SessionEnd hooks still run."""

    SIGNALS: ClassVar = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}

    def __init__(self) -> None:
        self.code = 0
        self._task: asyncio.Future[Any] | None = None
        self._loop = asyncio.get_running_loop()
        for number, code in self.SIGNALS.items():
            self._loop.add_signal_handler(number, self._caught, code)

    def _caught(self, code: int) -> None:
        again, self.code = bool(self.code), code
        if self._task is not None and not (again and self._task.done()):
            self._task.cancel()

    async def watch(self, work: Awaitable[Any]) -> Any:
        """Do some work that a signal may cut short."""
        self._task = asyncio.ensure_future(work)
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self.code:
                raise
            return self.code
