"""A hook: when it applies, what it runs, and its limits."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from hookline.core.globs import name_expression
from hookline.core.hooks.condition import OTHER_NAMES, Condition
from hookline.errors import HookError, MatcherError
from hookline.events import Event, spec_of


class Function(msgspec.Struct, frozen=True):
    """A Python function; whether it is `async` and whether it wants a context is settled once, at registration."""

    call: Callable[..., Any]
    is_async: bool = False
    takes_context: bool = False


class SealedFiles(Protocol):
    """The files that a trusted hook may run, compared at every run; see `hookline.settings.trust.seal`."""

    @property
    def python(self) -> bool:
        """Whether Python code is among them."""

    def check(self, action: Command | Cedar | Rego, cwd: str) -> Callable[[], None]:
        """Raise `HookFailed` unless all is as it was trusted; what is returned does so again after the run."""

    def hashed_argv(self, action: Command, cwd: str) -> tuple[tuple[str, ...], object] | None:
        """The command with its script from the bytes that were compared, and what to keep until it has ended."""


PLUGIN_FOLDERS = ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")
"""Names of folders that a plugin's command may write as `${NAME}`; elsewhere they are nothing."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A shell command, or with `args` a program started without a shell; the event is its stdin."""

    command: str
    args: tuple[str, ...] | None = None
    shell: str | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    asynchronous: bool = False
    async_rewake: bool = False
    rewake_message: str = ""
    rewake_summary: str = ""
    persistent: bool = False
    dialect: str = "claude"
    plugin_root: str | None = None
    plugin_data: str | None = None
    plugin: str | None = None
    seal: SealedFiles | None = None


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """A POST of the event to a URL; only `allowed_env` may appear in its headers.

    With a `body`, that is sent instead, `${tool_input.command}` and the like filled in from the event; its
    receiver knows nothing of hooks, so nothing but its status is read.
    """

    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    allowed_env: tuple[str, ...] = ()
    allowed_urls: tuple[str, ...] | None = None
    body: Mapping[str, Any] | None = None


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, which answers ok or not ok."""

    prompt: str
    model: str | None = None
    continue_on_block: bool = False


class AgentCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A small agent with tools that looks for itself before it answers ok or not ok."""

    prompt: str
    model: str | None = None


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of an MCP server; `${tool_input.file_path}` in its input is filled in from the event."""

    server: str
    tool: str
    input: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Cedar(msgspec.Struct, frozen=True, kw_only=True):
    """Cedar policies in the files that a pattern matches; `entities` is a JSON file of the groups that they name."""

    policies: str
    entities: str | None = None
    seal: SealedFiles | None = None


class Rego(msgspec.Struct, frozen=True, kw_only=True):
    """Rego policies in the files that a pattern matches."""

    policies: str
    seal: SealedFiles | None = None


Action = Function | Command | Http | Prompt | AgentCheck | McpTool | Cedar | Rego

DEFAULT_TIMEOUTS: Mapping[type[Any], float] = MappingProxyType({
    Function: 30.0, Command: 60.0, Http: 60.0, Prompt: 30.0, AgentCheck: 60.0, McpTool: 60.0, Cedar: 10.0, Rego: 10.0,
})  # fmt: skip
"""Seconds a kind of hook may take when neither the hook nor its set says."""


_NAMES = re.compile(r"[\w\-,| ]*", re.ASCII)
_GLOBS = re.compile(r"[\w\-,| *?]*", re.ASCII)
_PYTHON_ONLY = re.compile(r"\(\?(?:[aiLmsux]+(?:-[imsx]+)?[:)]|P[<=>])")

Test = Callable[[str], bool]


class Matcher(msgspec.Struct, frozen=True):
    """Says whether a subject is meant; `pattern` is what the user wrote."""

    pattern: str
    test: Test | None = None

    @property
    def matches_all(self) -> bool:
        """Whether no subject is left out."""
        return self.test is None

    def matches(self, subject: str | None) -> bool:
        """Whether `subject` is meant; an event without a subject is always meant (FACTS.md §5: matcher ignored)."""
        if self.test is None or subject is None:
            return True
        return bool(self.test(subject) or (subject in OTHER_NAMES and self.test(OTHER_NAMES[subject])))


EVERYTHING = Matcher("")


def parse_matcher(matcher: str | re.Pattern[str] | Test | None) -> Matcher:
    """The matcher that a user wrote; one that cannot be understood is refused here, with its position."""
    if matcher is None:
        return EVERYTHING
    if isinstance(matcher, re.Pattern) and isinstance(matcher.pattern, str):
        return Matcher(matcher.pattern, _search(matcher))
    if callable(matcher):
        return Matcher(getattr(matcher, "__name__", "predicate"), matcher)
    if not isinstance(matcher, str):
        raise MatcherError(str(matcher), f"expected text, got {type(matcher).__name__}")
    return _parse(matcher)


@lru_cache(maxsize=4096)
def _parse(pattern: str) -> Matcher:
    if pattern.strip() in ("", "*"):
        return Matcher(pattern) if pattern else EVERYTHING
    if _NAMES.fullmatch(pattern):
        return Matcher(pattern, frozenset(_parts(pattern)).__contains__)
    if _GLOBS.fullmatch(pattern):
        expressions = [name_expression(part) for part in _parts(pattern)]
        return Matcher(pattern, lambda subject: any(expression.fullmatch(subject) for expression in expressions))
    return Matcher(pattern, _search(_regex(pattern)))


_LONGEST = 1000  # letters of a subject that an expression, which may backtrack, is tried on; names are shorter


def _search(expression: re.Pattern[str]) -> Test:
    return lambda subject: len(subject) > _LONGEST or expression.search(subject) is not None


def _parts(pattern: str) -> list[str]:
    return [part.strip() for part in re.split(r"[|,]", pattern) if part.strip()]


def _regex(pattern: str) -> re.Pattern[str]:
    alien = _PYTHON_ONLY.search(pattern)
    if alien:
        problem = f"`{alien.group()}` is not understood where hook files are shared; spell it out, as in `[Bb]ash`"
        raise MatcherError(pattern, problem, alien.start())
    try:
        return re.compile(pattern)
    except re.error as error:
        raise MatcherError(pattern, f"not a regular expression: {error.msg}", error.pos) from None
    except (RecursionError, OverflowError):
        raise MatcherError(pattern, "too complex to compile") from None


OnFailure = Literal["block", "continue"]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One registered hook.

    `on_failure=None` takes the event's default: a gate is closed, an observer's failure is only recorded. `source`
    says where the hook was declared. `rejudge=False` is for hooks that only watch (law 4). `confines` marks a guard
    that has shell lines run confined where the kernel can. With `mode="evaluate_only"` it is asked, and what it says
    is recorded and does not count.
    """

    name: str
    events: tuple[type[Event], ...]
    action: Action
    matcher: Matcher = EVERYTHING
    condition: Condition | None = None
    when: Callable[[Any], bool] | None = None
    priority: int = 0
    timeout: float | None = None
    on_failure: OnFailure | None = None
    background: bool = False
    once: bool = False
    rejudge: bool = True
    inline: bool = False
    source: str = "code"
    status_message: str | None = None
    confines: bool = False
    mode: Literal["enforce", "evaluate_only"] = "enforce"

    def __post_init__(self) -> None:
        if self.timeout is not None:
            check_seconds(self.timeout, f"hook `{self.name}`: timeout")
        for name, fits, expected in _EXPECTED:
            if not fits(getattr(self, name)):
                raise HookError(f"hook `{self.name}`: {name} must be {expected}, got `{getattr(self, name)!r}`")
        if not self.events:
            raise HookError(f"hook `{self.name}` names no event; write `@hooks.on(PreToolUse)`")

    @property
    def plain(self) -> bool:
        """Whether it is an async function that may take the engine's fast path."""
        enforced = self.mode == "enforce" and not (self.background or self.once)
        return enforced and type(self.action) is Function and self.action.is_async

    def fails_closed(self, event: Event | type[Event]) -> bool:
        """Whether a failure on this event counts as a deny (law 3)."""
        return self.on_failure == "block" or (self.on_failure is None and spec_of(event).gate)

    def limit(self, default: float | None) -> float:
        """Seconds one run may take: the hook's own, else the set's, else the kind's."""
        return self.timeout or default or DEFAULT_TIMEOUTS[type(self.action)]


def check_seconds(value: Any, what: str) -> None:
    """Raise `HookError` unless `value` is a time a hook could be given."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise HookError(f"{what} must be a number of seconds, got `{value!r}`; write `5` or `0.5`")
    if not value > 0:
        raise HookError(f"{what} must be more than 0 seconds, got `{value}`")
    if value > sys.float_info.max and value != math.inf:
        raise HookError(f"{what} must be a number of seconds, got one of {len(str(value))} digits; write `5` or `0.5`")


_EXPECTED: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("priority", lambda value: value.__class__ is int, "a whole number such as `10`"),
    ("on_failure", lambda value: value in (None, "block", "continue"), "`block` or `continue`"),
    ("name", lambda value: value.__class__ is str, "a text"),
    ("mode", lambda value: value in ("enforce", "evaluate_only"), "`enforce` or `evaluate_only`"),
    *(
        (flag, lambda value: value.__class__ is bool, "True or False")
        for flag in ("background", "once", "rejudge", "inline")
    ),
)
