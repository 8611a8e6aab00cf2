"""Commands as hooks: the event as JSON on stdin, JSON or text on stdout, exit codes by one table (FACTS.md §2, §6)."""

from __future__ import annotations

import codecs
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hookline.core.engine import Context, RunnerResult
from hookline.core.files import state_folder
from hookline.core.hooks.hook import PLUGIN_FOLDERS, Command, Hook
from hookline.core.placeholders import fill
from hookline.core.wire.dialects import dialect
from hookline.core.wire.json_text import read_as, read_object
from hookline.core.wire.output_types import no, script_missing, text_reply
from hookline.core.wire.strict import check_async, check_json, check_text
from hookline.errors import HookFailed, ReplyError, ReplyMismatch, SealBroken
from hookline.events import Event, SessionEnd, spec_of
from hookline.processes.pipes import OUTPUT_LIMIT, OnOutput, Process, ProcessResult, Stream, start_process
from hookline.processes.spawn import NOT_EXECUTABLE, NOT_FOUND, ProcessSpec, Slot, leave_running, not_started, spawn
from hookline.replies import NOTHING, Decision, Reply, background, deny
from hookline.runners import check_seal
from hookline.runners.persistent import Persistent

if TYPE_CHECKING:
    from hookline.runners.warm import WarmPython

FIRST_LINE = 4096  # how long the line that says `{"async": true}` may be


class CommandRunner:
    """Runs commands, each in its own process group; Python scripts in forks of a warm interpreter.

    `warm=False`, or `HOOKLINE_WARM=0`, starts a new interpreter for every script.
    """

    def __init__(self, *, warm: bool | None = None) -> None:
        #: the interpreters kept warm, or None if that is turned off
        self.warm: WarmPython | None = None
        if warm is not False:
            from hookline.runners.warm import WarmPython, enabled

            self.warm = WarmPython() if enabled(warm) else None
        self._persistent: dict[tuple[object, ...], Persistent] = {}
        self._kept: list[object] = []

    async def run(self, hook: Hook, event: Event, ctx: Context) -> RunnerResult | Reply:
        """Run the command once; cancelling this ends everything it started."""
        action = hook.action
        assert isinstance(action, Command)
        if os.name == "nt":
            raise HookFailed("needs process groups, which Windows does not have; use a function or an HTTP hook")
        try:
            return await self._run(hook, action, event, ctx)
        except SealBroken as problem:
            if not spec_of(event).gate:
                raise
            return RunnerResult(reply=deny(f"hook `{hook.name}` {problem}"))  # whatever it does about other failures

    async def _run(self, hook: Hook, action: Command, event: Event, ctx: Context) -> RunnerResult | Reply:
        for name in PLUGIN_FOLDERS:  # where no plugin brought the folder, a shell would run `/hook.sh`
            named = f"${{{name}}}"
            if named in action.command and name not in action.env and name not in ctx.env:
                raise HookFailed(f"names `{named}`, and no plugin brought this hook; write the path itself")
        if action.persistent:
            return await self._asked(hook, action, event, ctx)
        one = _CommandRun(self, hook, event, ctx)
        if action.asynchronous and isinstance(event, SessionEnd):
            return await one.outlive()
        wakes = action.async_rewake and ctx.can_wake  # there is an agent to be woken
        if (action.asynchronous or wakes) and not hook.background:
            return background(one.whole())
        return await one.first_part()

    async def _asked(self, hook: Hook, action: Command, event: Event, ctx: Context) -> RunnerResult:
        """One line to a process that stays, one line back."""
        check_seal(action, event.cwd)
        key = (hook.name, action.command, action.args, *sorted(action.env.items()))
        process = self._persistent.get(key)
        if process is None:
            env = environment(action, event, ctx, None)
            spec = ProcessSpec(argv=argv_of(action, ctx), cwd=event.cwd or None, env=env)
            spec, kept = _with_hashed_script(spec, action, event)
            process = Persistent(spec)
            self._persistent[key] = process
            self._kept.append(kept)
        line = await process.ask(dialect(action.dialect).encode_event(event))
        text = line.decode("utf-8", "replace")
        return RunnerResult(reply=decoded(text, hook, event, exit_code=None, stderr=""), stdout=text)

    async def aclose(self) -> None:
        for process in self._persistent.values():
            await process.aclose()
        self._persistent.clear()
        self._kept.clear()
        if self.warm is not None:
            await self.warm.aclose()


class _CommandRun:
    def __init__(self, runner: CommandRunner, hook: Hook, event: Event, ctx: Context) -> None:
        assert isinstance(hook.action, Command)
        self.runner, self.hook, self.action, self.event, self.ctx = runner, hook, hook.action, event, ctx
        self.process: Process | None = None
        self.check_again: Callable[[], None] = lambda: None
        self.kept: object = None
        self.first_line = bytearray()
        self.decided = False
        self.skip = 0
        self.tell = teller(ctx) if ctx.on_progress else None

    async def first_part(self) -> RunnerResult | Reply:
        """The answer, or, if the first line printed is `{"async": true}`, the promise of one."""
        with ExitStack() as cleanup:
            env_file = None
            if spec_of(self.event).env_file and "CLAUDE_ENV_FILE" not in self.ctx.env:
                env_file = new_env_file()  # what is exported is not read: a hook must not fail for want of a file
                cleanup.callback(env_file.unlink, missing_ok=True)
            process = await self._start(env_file)
            finished = await process.finish()
            if finished is None:
                late = self._second_part(process, cleanup.pop_all())
                return background(late, async_timeout(bytes(self.first_line)))
        if self.skip and finished.exit_code == 0:  # it was waited for because it fails closed, and it did not fail
            return background(_done(self._answer(finished)))
        return self._answer(finished)

    async def outlive(self) -> RunnerResult:
        """Start it and leave it: the session is over, and nothing waits for its end."""
        spec = self._spec(None)
        check_seal(self.action, self.event.cwd)
        try:
            await leave_running(spec)
        except (OSError, ValueError) as error:
            raise not_started(spec, error) from None
        return RunnerResult()

    async def whole(self) -> RunnerResult:
        answer = await self.first_part()
        if isinstance(answer, Reply):
            assert answer.later is not None
            late: RunnerResult = await answer.later
            return late
        return answer

    async def _second_part(self, process: Process, cleanup: ExitStack) -> RunnerResult:
        with cleanup:
            finished = await process.finish()
        assert finished is not None
        return self._answer(finished)

    async def _start(self, env_file: Path | None) -> Process:
        async with Slot() as slot:  # first of all: a hundred that get ready at once would hold the loop up
            spec = self._spec(env_file)
            self.check_again = check_seal(self.action, self.event.cwd)
            spec, self.kept = _with_hashed_script(spec, self.action, self.event)
            try:
                launch = spawn if self.runner.warm is None else self.runner.warm.launch
                self.process = await start_process(spec, on_output=self._printed, launch=launch, slot=slot)
            except (OSError, ValueError) as error:
                raise not_started(spec, error) from None
            return self.process

    def _spec(self, env_file: Path | None) -> ProcessSpec:
        return ProcessSpec(
            argv=argv_of(self.action, self.ctx),
            cwd=self.event.cwd or None,
            env=environment(self.action, self.event, self.ctx, env_file),
            stdin=dialect(self.action.dialect).encode_event(self.event) + b"\n",
        )

    def _printed(self, stream: Stream, data: bytes) -> None:
        if self.tell is not None:
            self.tell(stream, data)
        if stream == "stdout" and not self.decided:
            self._look_for_async(data)

    def _look_for_async(self, data: bytes) -> None:
        self.first_line += data[:FIRST_LINE]
        line, newline, _ = self.first_line.partition(b"\n")
        plain = not self.first_line.lstrip().startswith(b"{") or len(self.first_line) > FIRST_LINE
        if not newline and not plain and not line.rstrip().endswith(b"}"):
            return
        strict = self.hook.fails_closed(self.event)
        named = b"async" in line or b"\\" in line
        later = not plain and named and says_async(bytes(line), self.event, strict=strict)
        self.decided = later or plain or bool(newline)
        if later and self.process is not None:
            self.skip = len(line) + len(newline)
            if self.hook.on_failure != "block":  # one that fails closed must be seen to the end
                self.process.detach()

    def _answer(self, finished: ProcessResult) -> RunnerResult:
        """What the output and the end mean together; a failure is raised as `HookFailed`.

        A late answer may stand among other lines: in the background, the first line that is a JSON object is it, and
        plain text is none.
        """
        self.check_again()
        hook, action, event = self.hook, self.action, self.event
        late = bool(self.skip) or hook.background or action.asynchronous
        printed = finished.stdout[self.skip :].decode("utf-8", "replace").removeprefix("\ufeff")  # which is not text
        stdout = printed
        if late and read_object(printed) is None:
            stdout = next((line for line in printed.splitlines() if read_object(line) is not None), printed)
        stderr = finished.stderr.decode("utf-8", "replace")
        code = finished.exit_code if finished.signal is None else 128 + finished.signal  # as a shell counts it
        reply: Reply | None = None
        if code == 0 and not finished.truncated:
            silent = late and not looks_like_json(stdout)
            reply = NOTHING if silent else decoded(stdout, hook, event, exit_code=code, stderr=stderr)
        elif code == 2 and not finished.truncated:
            missing = script_missing(event.event_name, str(action.command), stdout, stderr)
            reply = None if missing else _refusal(action, event, stdout, stderr)
        elif not finished.truncated:
            reply = _despite(hook, action, event, stdout)
        if reply is None:
            raise HookFailed(_failed(finished), exit_code=code, stdout=printed, stderr=stderr)
        return RunnerResult(reply=reply, exit_code=code, stdout=printed, stderr=stderr)


def _with_hashed_script(spec: ProcessSpec, action: Command, event: Event) -> tuple[ProcessSpec, object]:
    """Start the bytes that were compared, where that can be done, and what to keep until the command has ended."""
    found = None if action.seal is None else action.seal.hashed_argv(action, event.cwd)
    return (spec, None) if found is None else (msgspec.structs.replace(spec, argv=found[0]), found[1])


def argv_of(action: Command, ctx: Context) -> tuple[str, ...]:
    """The program and its arguments: the shell's, or with `args` the command's own, filled in element by element."""
    if action.args is not None:
        values = {**given(action), "CLAUDE_PROJECT_DIR": project_dir(ctx)}
        return tuple(fill(word, values.get) for word in (action.command, *action.args))
    if action.shell == "powershell":
        import shutil

        program = shutil.which("pwsh") or shutil.which("powershell")
        if program is None:
            raise HookFailed("asks for PowerShell, and there is no `pwsh` on PATH; install it, or drop `shell`")
        return (program, "-NoProfile", "-NonInteractive", "-Command", action.command)
    return ("/bin/sh", "-c", action.command)


async def _done(ran: RunnerResult) -> RunnerResult:
    return ran


def teller(ctx: Context) -> OnOutput:
    """Passes on what is printed while it is printed, whole characters only."""
    made = codecs.getincrementaldecoder("utf-8")
    decoders = {"stdout": made("replace"), "stderr": made("replace")}

    def tell(stream: Stream, data: bytes) -> None:
        if text := decoders[stream].decode(data):
            ctx.progress(stream, text)

    return tell


def given(action: Command) -> dict[str, str]:
    """What a plugin's command is told of its plugin."""
    pairs = (("CLAUDE_PLUGIN_ROOT", action.plugin_root), ("CLAUDE_PLUGIN_DATA", action.plugin_data))
    return {name: value for name, value in pairs if value is not None}


def project_dir(ctx: Context) -> str:
    """The project's root, which stays when the agent changes directory."""
    return ctx.project_dir or ctx.event.cwd or str(Path.cwd())


def environment(action: Command, event: Event, ctx: Context, env_file: Path | None) -> dict[str, str]:
    """The environment of a command (FACTS.md §6)."""
    env = inherited(ctx.env).copy()
    if not spec_of(event).env_file:
        env.pop("CLAUDE_ENV_FILE", None)
    elif env_file is not None:
        env["CLAUDE_ENV_FILE"] = str(env_file)
    level = event.effort.get("level") if isinstance(event.effort, Mapping) else None
    env.setdefault("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    env.setdefault("AI_AGENT", "hookline")
    env |= {
        "CLAUDE_PROJECT_DIR": project_dir(ctx),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": event.session_id,
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ATTENDED": "0",
        "CLAUDE_PID": str(os.getpid()),
        **({"CLAUDE_EFFORT": str(level)} if level else {}),
        **given(action),
        **action.env,
    }
    if action.seal is not None and action.seal.python:
        env["PYTHONPYCACHEPREFIX"] = str(state_folder() / "pycache")  # byte code beside a script may be anybody's
    return env


_INHERITED: list[tuple[object, dict[str, str]]] = []


def inherited(env: Mapping[str, str]) -> dict[str, str]:
    """An environment as a plain dict; our own, slow to decode, is decoded again only when it has changed."""
    raw = getattr(env, "_data", None) if env is os.environ else None
    if raw is None:
        return dict(env)
    if not _INHERITED or _INHERITED[0][0] != raw:
        _INHERITED[:] = [(dict(raw), dict(env))]
    return _INHERITED[0][1]


def new_env_file() -> Path:
    """An empty file that hooks may export variables to."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix="hookline-env-", suffix=".sh")
    os.close(handle)
    return Path(name)


# -- what a command said: its output and the way it ended, read together ----------------------------------------------


def decoded(text: str, hook: Hook, event: Event, *, exit_code: int | None, stderr: str) -> Reply:
    """JSON if it begins like JSON, else text; what begins like JSON and is not is a failure (DESIGN)."""
    action, strict = hook.action, hook.fails_closed(event)
    assert isinstance(action, Command)
    try:
        if text.strip() and not looks_like_json(text):
            if strict:
                check_text(text, event.event_name)
            return text_reply(event.event_name, text)
        if strict:
            check_json(text, event.event_name, action.dialect)
        return dialect(action.dialect).decode_reply(text, event)
    except ReplyError as problem:
        readable = isinstance(problem, ReplyMismatch) or read_as(text, object) is not None
        printed = f"; it printed `{text.strip()}`" if readable else ""
        raise HookFailed(f"{problem}{printed}", exit_code=exit_code, stdout=text, stderr=stderr) from None


def _refusal(action: Command, event: Event, stdout: str, stderr: str) -> Reply | None:
    """Exit code 2: no, because of what is on stderr; JSON may add to it, and JSON that says no gives its own reason.

    On an event that nothing can be said no to it is a failure.
    """
    origin = f"\nThis hook comes from the {action.plugin} plugin." if action.plugin else ""
    label = " ".join((action.command, *(action.args or ())))
    reply = no(event.event_name, f"[{label}]: {stderr.rstrip() or 'No stderr output'}{origin}")  # Claude Code's words
    said = _json_or_nothing(stdout, action, event)
    refuses = said.decision is Decision.DENY or said.keep_going
    if reply is None:
        return None
    own_reason = refuses and (said.reason or said.keep_going_reasons or not stderr.strip())
    return said if own_reason else said | reply


def _despite(hook: Hook, action: Command, event: Event, stdout: str) -> Reply | None:
    """JSON counts however a command ended, unless the hook fails closed and the JSON does not say no anyway."""
    said = _json_or_nothing(stdout, action, event)
    refuses = said.decision is Decision.DENY or said.keep_going or said.stop
    lenient = hook.on_failure == "continue"
    return said if said is not NOTHING and (refuses or lenient) else None


def _json_or_nothing(stdout: str, action: Command, event: Event) -> Reply:
    with suppress(ReplyError):
        if looks_like_json(stdout):
            return dialect(action.dialect).decode_reply(stdout, event)
    return NOTHING


def looks_like_json(text: str) -> bool:
    """Whether output is taken for JSON: it begins with a brace."""
    return text.lstrip().startswith("{")


def _failed(finished: ProcessResult) -> str:
    if finished.truncated:
        return f"printed more than {OUTPUT_LIMIT:,} bytes, so it was ended"
    if finished.signal is not None:
        known = finished.signal in set(signal.Signals)
        return f"was ended by {signal.Signals(finished.signal).name if known else f'signal {finished.signal}'}"
    if finished.exit_code is None:
        return "ended, and how is not known: its interpreter was gone"
    return f"exited with code {finished.exit_code}{_HINTS.get(finished.exit_code, '')}"


_HINTS = {NOT_FOUND: " (command not found)", NOT_EXECUTABLE: " (not executable)"}


def says_async(line: bytes, event: Event, *, strict: bool) -> bool:
    """Whether a line is `{"async": true, …}`; `strict`: and says nothing else, which would be lost."""
    said = read_object(line) or {}
    with suppress(ReplyError):
        if strict:
            check_async(said, event.event_name)
        return said.get("async") is True
    return False


def async_timeout(first: bytes) -> float | None:
    """How long a command that has gone to the background may take, as its first line says."""
    seconds = msgspec.json.decode(first.partition(b"\n")[0]).get("asyncTimeout")
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None
