"""`hookline run`: the agent on the command line.

The flags are the Claude CLI's own, so that whatever drives that can drive this, and a few of ours. An unknown flag is
an error that suggests the near ones, unless a host drives us over stream-json: it may be newer than we are, so it is
told and goes on. A flag that is known and has no effect is told, too; one whose promise would be broken is not among
them.
"""

import argparse
import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from hookline.agent.factory import CLAUDE_CODE_VERSION, AgentBundle, RunOptions, keep_up, make, settings_hooks
from hookline.agent.session.transcript import transcript_path
from hookline.agent.stream_json.output import refuse
from hookline.agent.tools.bash import EnterWorktree
from hookline.api import Hooks
from hookline.cli.options import FlagParser, flag_tables, numeric, parser_for, policy_for, warn, with_fleet_policy
from hookline.cli.repl import converse, permit, shown_on
from hookline.cli.style import has_terminal
from hookline.core.interpreter import hookline_argv
from hookline.display import one_line
from hookline.errors import AgentError, HooklineError, did_you_mean
from hookline.guards.permissions import Mode
from hookline.guards.sandboxing import launcher, unavailable
from hookline.hook_file import load_hooks
from hookline.processes.stdout import claim_stdout
from hookline.sandbox.policy import Policy

Write = Callable[[bytes], None]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        modes = [str(mode) for mode in Mode]
        hint = did_you_mean(text, modes) or f"; write one of {', '.join(modes)}"
        raise argparse.ArgumentTypeError(f"unknown mode `{text}`{hint}") from None


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is not a folder; name one that exists")
    return text


def _contents(text: str) -> str:
    try:
        return Path(text).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise argparse.ArgumentTypeError(f"`{text}` cannot be read: {reason}") from None


def _log_file(text: str) -> str:
    fresh = not Path(text).exists()
    try:
        Path(text).open("ab").close()
    except OSError as problem:
        raise argparse.ArgumentTypeError(f"`{text}` cannot be written: {problem.strerror}") from None
    if fresh:
        Path(text).unlink()
    return text


_TYPES: dict[str, Callable[[str], Any]] = {
    "mode": _mode,
    "folder": _folder,
    "contents": _contents,
    "log": _log_file,
    "turns": numeric("a number of turns", above=0, example="`10`"),
    "thinking": numeric("a number of tokens", example="`8000`, or `0` for none"),
    "size": numeric(
        "a number of tokens", r"[0-9]+(?:\.[0-9]+)?[kK]?",
        lambda text: int(float(text.rstrip("kK")) * (1000 if text[-1] in "kK" else 1)), example="`100k` or `100000`",
    ),
    "dollars": numeric(
        "an amount in US dollars", r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?", float, above=0, example="`0.50`"
    ),
}  # fmt: skip


def parser() -> FlagParser:
    """All flags with a line of help each; those that the Claude CLI has and that change nothing here are hidden."""
    made = parser_for("run", **_TYPES)
    made.usage = "hookline run -p PROMPT [flags]"
    made.allow_abbrev = False
    return made


class RunFlags(NamedTuple):
    """The options, and the flags that were passed over, each with why."""

    options: RunOptions
    passed_over: tuple[str, ...]
    version: bool


def parse(argv: Sequence[str]) -> RunFlags:
    """Read a command line; one that cannot be understood ends the program with exit code 64 and what to write."""
    made = parser()
    cut = list(argv).index("--") if "--" in argv else len(argv)
    given, rest = made.parse_known_args(_joined(argv[:cut], made.flags))
    said = {name: value for name, value in vars(given).items() if value is not None and value is not False}
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    driven = said.get("input_format") == "stream-json"
    if unknown and not driven:
        known = [name for name in made.flags if name.startswith("--")]
        made.error(f"unknown flag `{unknown[0]}`{did_you_mean(unknown[0], known)}")
    prompts = [word for word in rest if not word.startswith("-") or word == "-"] + list(argv[cut + 1 :])
    if not driven and prompts and "prompt" not in said:
        said["prompt"] = prompts[0]
    idle = [re.findall(r"--\S+", row[0])[0] for row in flag_tables()["without effect"][1:]]
    passed_over = [f"flag `{name}` is unknown here and passed over" for name in unknown]
    passed_over += [f"flag `{name}` has no effect here" for name in idle if made.flags[name].dest in said]
    chosen = {field.name: said[field.name] for field in fields(RunOptions) if field.name in said}
    options: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    return RunFlags(RunOptions(**options), tuple(passed_over), "version" in said)


def _joined(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> list[str]:
    """Flags and their values as one word each, so that a value may begin with a dash."""
    joined: list[str] = []
    left = iter(words)
    for word in left:
        takes_one = word in flags and flags[word].nargs is None
        value = next(left, None) if takes_one else None
        joined.append(word if value is None else f"{flags[word].option_strings[-1]}={value}")
    return joined


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
    """Run the agent itself confined, and never come back; a line in it cannot be confined again, and needs not be."""
    from hookline.guards.network import hosts_in_use

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
    caught = _Caught()
    cwd = str(Path.cwd())
    try:
        made = await make(options, cwd, lambda env: make_hooks(options, cwd, env))
    except HooklineError as problem:
        if options.driven:
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
