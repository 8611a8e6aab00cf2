"""Every exception Hookline raises, in one tree; `docs/reference/errors.md`, written from it, draws it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hookline.display import block


class HooklineError(Exception):
    """The root: catch this to catch everything Hookline raises on purpose.

    Its text quotes what files, hooks and users wrote, so that it is shown with nothing in it that a terminal obeys.
    """

    def __str__(self) -> str:
        return block(super().__str__())


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`; did you mean `PreToolUse`?` for a near miss, else the empty string."""
    from difflib import get_close_matches

    lowered = {name.lower(): name for name in known}
    plain = word.lower().replace("_", "").replace("-", "")
    near = [lowered[name] for name in get_close_matches(plain, lowered, n=3, cutoff=cutoff)]
    return f"; did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""


class EventError(HooklineError):
    """An event that cannot be read; the message says where and what was expected."""


class UnknownEvent(EventError):
    """A name that is not an event."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        hint = did_you_mean(name, known) or f"; write one of {', '.join(known)}"
        super().__init__(f"unknown event `{name}`{hint}")
        self.name = name


class ReplyError(HooklineError):
    """An answer that cannot be read; the message names the field."""


class ReplyMismatch(ReplyError):
    """An answer that does not fit the event it answers."""


class HookError(HooklineError):
    """A hook that cannot be registered as it is written."""


class DuplicateHook(HookError):
    """Two hooks of one set may not share a name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a hook named `{name}` is already registered; pass another name= or remove it first")
        self.name = name


class UnknownHook(HookError):
    """There is no hook of that name in the set."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no hook named `{name}`{did_you_mean(name, known)}")
        self.name = name


class MatcherError(HookError):
    """A matcher that cannot be parsed; `position` counts characters from 0."""

    def __init__(self, matcher: str, problem: str, position: int | None = None) -> None:
        where = "" if position is None else f" at position {position}"
        super().__init__(
            f"matcher `{matcher}`: {problem}{where}; write names joined by `|`, a glob or a regular expression"
        )
        self.matcher = matcher
        self.position = position


class ConditionError(HookError):
    """An `if` that cannot be parsed; `position` counts characters from 0."""

    def __init__(self, condition: str, problem: str, position: int) -> None:
        super().__init__(f"condition `{condition}`: {problem} at position {position}; write `Tool` or `Tool(pattern)`")
        self.condition = condition
        self.position = position


class HookFailed(HooklineError):
    """One run of one hook went wrong; what is known of it rides along for the audit line."""

    def __init__(self, problem: str, *, exit_code: int | None = None, stdout: str = "", stderr: str = "") -> None:
        super().__init__(problem)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class HookTimeout(HookFailed):
    """The hook gave no reply in time."""


class HookExited(HookFailed):
    """The hook tried to end the process (`sys.exit`); exit code 2 says no, with `message` as the reason."""

    def __init__(self, code: object, notes: Sequence[str] = ()) -> None:
        first, *rest = code if isinstance(code, tuple) and code else (code,)
        number = 0 if first is None else first if isinstance(first, int) else 1
        said = [str(part) for part in (*(() if first is None or isinstance(first, int) else (first,)), *rest, *notes)]
        self.message: str = "\n".join(said)
        super().__init__(f"exited with code {number}{f': {self.message}' if said else ''}", exit_code=int(number))


class HookCancelled(HookFailed):
    """The hook was cancelled from outside before it replied."""


class ToolDenied(HooklineError):
    """Hooks did not allow a call of a wrapped tool; `reason` is for the model, `verdict` has everything else."""

    def __init__(self, tool: str, reason: str, verdict: Any = None) -> None:
        super().__init__(reason or f"hooks did not allow `{tool}`")
        self.tool = tool
        self.reason: str = str(self)
        self.verdict = verdict


class SealBroken(HookFailed):
    """The files of a trusted hook are no longer what was trusted."""


class ConfigError(HooklineError):
    """Something in a settings file; `where` is `file: key.path`."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class UntrustedHooks(ConfigError):
    """A project's hooks that are not trusted yet."""


class AuditError(HooklineError):
    """The audit log cannot be written or read; the message names the file."""


class FleetError(HooklineError):
    """A hub, machine, bundle or rollout that cannot do what was asked; the message says what to do."""


class MissingExtra(HooklineError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra; run `pip install 'hookline[{extra}]'`")
        self.extra = extra


@contextmanager
def extra(what: str, name: str) -> Iterator[None]:
    """Imports in the `with` block belong to an optional dependency: without it, `MissingExtra` says what to install."""
    try:
        yield
    except ImportError:
        raise MissingExtra(what, name) from None


class UnknownVersion(HooklineError):
    """An agent framework is installed in a version that its adapter was never tested with."""

    def __init__(self, package: str, found: str, known: str, extra: str) -> None:
        super().__init__(
            f"found `{package}` {found}, and its adapter knows {known}; run `pip install 'hookline[{extra}]'`"
        )
        self.package = package
        self.found = found
        self.known = known


class RunRefused(HooklineError):
    """A hook refused a session, a prompt or a subagent; the message is its reason."""


class RunStopped(HooklineError):
    """A hook stopped the agent; the message is its reason."""


class Closed(HooklineError):
    """The set of hooks was closed; make a new one."""


class AgentError(HooklineError):
    """The agent's run cannot go on as asked."""


class ModelError(AgentError):
    """The model gave no usable answer; `kind` is one of a StopFailure event's reasons, `status` the HTTP status.

    `retry` is whether the server thinks that it may go better another time, if it was asked.
    """

    def __init__(
        self, problem: str, kind: str = "unknown", *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(problem)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.retry: bool | None = None


class ToolInputInvalid(AgentError):
    """Arguments that do not fit the tool's schema; `issues` has one line each."""

    def __init__(self, tool: str, issues: Sequence[str]) -> None:
        noun = "issue" if len(issues) == 1 else "issues"
        super().__init__(f"{tool} failed due to the following {noun}:\n" + "\n".join(issues))
        self.tool = tool
        self.issues: tuple[str, ...] = tuple(issues)


class McpError(AgentError):
    """An MCP server that cannot be started, reached or understood."""

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(f"mcp server `{server}`: {problem}")
        self.server = server


class TranscriptError(AgentError):
    """A transcript that cannot be found, read or written; what was written before is still there."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class ClaudeError(HooklineError):
    """A conversation with a Claude CLI cannot go on as asked."""


class ProtocolError(ClaudeError):
    """A line or a step that the control protocol does not allow."""


class BadLine(ProtocolError):
    """A line that is not a message; `kind` is `not_json`, `not_utf8`, `not_a_message`, `cut_off` or `too_long`."""

    def __init__(self, kind: str, problem: str, line: bytes = b"") -> None:
        shown = line[:200].decode("utf-8", "backslashreplace")
        super().__init__(f"{problem}: `{shown}{'…' if len(line) > 200 else ''}`" if line else problem)
        self.kind = kind
        self.line = line


class StrayResponse(ProtocolError):
    """A response, or a cancellation, for a request that was never made."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"there is no request `{request_id}`; its response is ignored")
        self.request_id = request_id


class RequestClosed(ProtocolError):
    """A request takes one answer; this one was `answered` or `cancelled` before (`state`)."""

    def __init__(self, request_id: str, state: str) -> None:
        super().__init__(f"request `{request_id}` was {state} before; the later answer is dropped")
        self.request_id = request_id
        self.state = state


class RequestIdReused(ProtocolError):
    """Every request of a conversation needs an id of its own."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id `{request_id}` is taken; give every request an id of its own")
        self.request_id = request_id


class UnknownCallback(ProtocolError):
    """A hook callback that the last `initialize` did not register."""

    def __init__(self, callback_id: str, known: Iterable[str]) -> None:
        listed = ", ".join(f"`{one}`" for one in known)
        super().__init__(f"no hook callback `{callback_id}`; registered are {listed or 'none'}")
        self.callback_id = callback_id


class NotInitialized(ProtocolError):
    """The conversation must be opened with `initialize` first."""

    def __init__(self) -> None:
        super().__init__("the conversation is not open yet; send `initialize` before the first prompt")


class CliNotFound(ClaudeError):
    """No Claude CLI here, or none that can be started; the message says what to do."""


class CliDied(ClaudeError):
    """The CLI ended before the conversation did."""

    def __init__(self, problem: str, exit_code: int | None = None, stderr: str = "") -> None:
        ended = "" if exit_code is None else f" (exit code {exit_code})"
        said = f"; its last words:\n{stderr.rstrip()}" if stderr.strip() else ""
        super().__init__(f"{problem}{ended}{said}")
        self.problem = problem
        self.exit_code = exit_code
        self.stderr = stderr


class CliProtocolError(CliDied):
    """The CLI printed something that is not a message of the protocol."""


class CliSilent(CliDied):
    """The CLI gave no answer in time."""


class RequestRefused(ClaudeError):
    """The CLI answered a control request with an error."""

    def __init__(self, subtype: str, error: str, code: str | None = None) -> None:
        super().__init__(f"the CLI refused `{subtype}`: {error}{f' ({code})' if code else ''}")
        self.subtype = subtype
        self.error = error
        self.code = code


class HostGone(ClaudeError):
    """The host closed its end before it answered."""

    def __init__(self) -> None:
        super().__init__("the host closed its end of the conversation before it answered")


class HooksNotHonoured(ClaudeError):
    """The CLI would not keep a promise that a hook asks for, so the conversation was not started."""


class HooksIgnored(UserWarning):
    """Hooks that the CLI will never call: a warning, because the rest of the conversation works."""
