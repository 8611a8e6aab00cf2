"""`hookline run`: the agent on the command line, with the Claude CLI's flags."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from hookline.agent.factory import CLAUDE_CODE_VERSION, AgentBundle, RunOptions, keep_up, make, settings_hooks
from hookline.api import Hooks
from hookline.cli.options import TERMINATED, policy_for, warn, with_fleet_policy
from hookline.cli.run_flags import parse
from hookline.cli.style import has_terminal
from hookline.core.interpreter import hookline_argv
from hookline.display import one_line
from hookline.errors import AgentError, HooklineError
from hookline.hook_file import load_hooks
from hookline.processes.stdout import claim_stdout

Write = Callable[[bytes], None]
CODES = {signal.SIGINT: 130, signal.SIGTERM: TERMINATED}


def main(argv: list[str]) -> int:
    """Run the agent once; exit code 0, 1 if it ended in an error, 130 after Ctrl-C."""
    parsed = parse(argv)
    options = parsed.options
    if parsed.version or set(argv) - {"--trust"} == {"-v"}:  # drivers ask with either, and with nothing else
        from hookline import __version__

        print(f"{CLAUDE_CODE_VERSION} (Hookline {__version__})")  # whose flags and messages we speak, then who we are
        return 0
    for line in parsed.passed_over:
        print(f"hookline run: {one_line(line)}", file=sys.stderr)
    if options.cwd:
        os.chdir(options.cwd)
    if options.sandbox:
        _start_sandboxed([word for word in argv if word != "--sandbox"], options)
    return asyncio.run(_run(options, _answers(options)))


def _start_sandboxed(argv: list[str], options: RunOptions) -> NoReturn:
    """Run the agent itself confined: it writes in its folders, and reaches its model and the hosts in use.

    A line in it cannot be confined once more, and needs not be. Never comes back.
    """
    from urllib.parse import urlsplit

    from hookline.agent.session.transcript import transcript_path
    from hookline.guards.network import hosts_in_use
    from hookline.guards.sandboxing import launcher, unavailable
    from hookline.sandbox.policy import Policy

    if problem := unavailable():
        raise HooklineError(f"--sandbox: {problem}")
    here = str(Path.cwd())
    transcripts = transcript_path(here, "-").parent
    transcripts.mkdir(parents=True, exist_ok=True)
    usual = {"ANTHROPIC_BASE_URL": "https://api.anthropic.com", "OPENAI_BASE_URL": "https://api.openai.com"}
    models = [urlsplit(os.environ.get(name) or url) for name, url in usual.items()]  # where models are
    reached = [f"{one.hostname}:{one.port or (80 if one.scheme == 'http' else 443)}" for one in models if one.hostname]
    hosts = dict.fromkeys([*reached, *hosts_in_use(here, os.environ)])
    policy = Policy((here, *options.add_dir, str(transcripts)), hosts=tuple(hosts))
    words = [*launcher(warm=False), *policy.arguments(), "--", *hookline_argv("run"), *argv, "--no-confine"]
    os.execv(words[0], words)  # noqa: S606 - whole paths, no shell


def _answers(options: RunOptions) -> Write:
    """Where programs read; what hooks print must not get in between."""
    stdout = sys.stdout.buffer if options.output_format == "text" and not options.driven else claim_stdout()

    def write(data: bytes) -> None:
        stdout.write(data)
        stdout.flush()

    return write


async def _run(options: RunOptions, write: Write) -> int:
    from hookline.cli.repl import shown_on

    caught = _Caught()
    cwd = str(Path.cwd())
    try:
        made = await make(options, cwd, lambda env: make_hooks(options, cwd, env))
    except HooklineError as problem:
        if options.driven:
            from hookline.agent.stream_json.output import refuse

            refuse(str(problem), sys.stdin.buffer, write)
        raise
    keeping = asyncio.create_task(keep_up(made, options))
    try:
        shown_on(made, options, write)
        code = caught.code or await caught.watch(_session(made, options, write))
    finally:
        keeping.cancel()
        await caught.watch(made.aclose())
    return caught.code or code


async def _session(made: AgentBundle, options: RunOptions, write: Write) -> int:
    if options.worktree is not None:
        await _enter_worktree(made, options.worktree)
    if options.driven:
        from hookline.agent.stream_json.host_session import serve

        return await serve(made, options, write)
    from hookline.cli.repl import converse, permit

    if has_terminal() and not options.print:
        made.agent.session.policy.can_use_tool = permit
    prompt = options.prompt
    if prompt is None and has_terminal() and not options.init_only:
        return await converse(made)
    await made.agent.start()
    if options.init_only:
        return 0
    if prompt is None:
        prompt = sys.stdin.read().strip()
    if not prompt.strip():
        print("hookline run: there is no prompt; write one after `-p`, or send it on stdin", file=sys.stderr)
        return 1
    result = await made.agent.run(prompt, mentions=True)
    while (later := await made.agent.background()) is not None:
        result = later
    return int(result.is_error)


def make_hooks(options: RunOptions, cwd: str, env: Mapping[str, str]) -> Hooks:
    """The hooks of a Python file, or of the settings files once they are trusted."""
    if options.hooks:
        return with_fleet_policy(load_hooks(options.hooks))
    trust = policy_for(trusted=options.trust)
    return with_fleet_policy(settings_hooks(options, cwd, env, trust=trust, on_problem=warn))


async def _enter_worktree(made: AgentBundle, name: str) -> None:
    from hookline.agent.tools.bash import EnterWorktree

    conversation = made.agent.conversation
    result = await EnterWorktree().run({"name": name} if name else {}, conversation.hosted_env(""))
    if result.is_error:
        raise AgentError(str(result.content))
    made.agent.session.project_dir = conversation.state.project_dir


class _Caught:
    """Ctrl-C and SIGTERM end the work but not the ending: SessionEnd hooks still run."""

    def __init__(self) -> None:
        self.code = 0
        self._task: asyncio.Future[Any] | None = None
        for number, code in CODES.items():
            asyncio.get_running_loop().add_signal_handler(number, self._caught, code)

    def _caught(self, code: int) -> None:
        again, self.code = bool(self.code), code
        if self._task is not None and not (again and self._task.done()):
            self._task.cancel()

    async def watch(self, work: Awaitable[Any]) -> Any:
        self._task = asyncio.ensure_future(work)
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self.code:
                raise
            return self.code
