"""What a command said: its output and the way it ended, read together."""

from __future__ import annotations

import signal

import msgspec

from hookline.core.engine import RunnerResult
from hookline.core.hooks.hook import Command, Hook
from hookline.core.wire.dialects import dialect
from hookline.core.wire.json_text import read_object
from hookline.core.wire.output_types import no, script_missing, text_reply
from hookline.core.wire.strict import check_async, check_object, check_text
from hookline.errors import HookFailed, ReplyError, ReplyMismatch
from hookline.events import Event
from hookline.processes.pipes import ProcessResult
from hookline.processes.spawn import NOT_EXECUTABLE, NOT_FOUND
from hookline.replies import NOTHING, Decision, Reply


def answer(
    hook: Hook, action: Command, event: Event, finished: ProcessResult, *, skip: int, limit: int, late: bool = False
) -> RunnerResult:
    """What a command's output and its end mean together; a failure is raised as `HookFailed`.

    A `late` answer may stand among other lines: in the background, the first line that is a JSON object is it, and
    plain text is none.
    """
    printed = finished.stdout[skip:].decode("utf-8-sig", "replace")  # a byte order mark is not part of the text
    stdout = printed
    if late and not _is_json(printed, dict):
        stdout = next((line for line in printed.splitlines() if _is_json(line, dict)), printed)
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
        raise HookFailed(_failed(finished, limit), exit_code=code, stdout=printed, stderr=stderr)
    return RunnerResult(reply=reply, exit_code=code, stdout=printed, stderr=stderr)


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
            check_object(read_object(text) or {}, event.event_name, action.dialect)
        return dialect(action.dialect).decode_reply(text, event)
    except ReplyError as problem:
        readable = isinstance(problem, ReplyMismatch) or _is_json(text)
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
    if not looks_like_json(stdout):
        return NOTHING
    try:
        return dialect(action.dialect).decode_reply(stdout, event)
    except ReplyError:
        return NOTHING


def looks_like_json(text: str) -> bool:
    """Whether output is taken for JSON: it begins with a brace."""
    return text.lstrip().startswith("{")


def _is_json(text: str, kind: type = object) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _failed(finished: ProcessResult, limit: int) -> str:
    if finished.truncated:
        return f"printed more than {limit:,} bytes, so it was ended"
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
    try:
        if strict:
            check_async(said, event.event_name)
    except ReplyError:
        return False
    return said.get("async") is True


def async_timeout(first: bytes) -> float | None:
    """How long a command that has gone to the background may take, as its first line says."""
    seconds = msgspec.json.decode(first.partition(b"\n")[0]).get("asyncTimeout")
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None
