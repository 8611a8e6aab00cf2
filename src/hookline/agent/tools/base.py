"""A tool is something the model can ask for: a name, a schema, and what happens.

The loop's order is `validate` → `check` (both before any hook sees the input) → hooks and permissions → `run`. A tool
raises `ToolInputInvalid` from `validate` and nothing from `run`: what goes wrong while running is a `ToolResult` with
`is_error`, because the model must hear of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, structs
from msgspec.structs import FieldInfo, fields

from hookline.agent.models.base import ModelResponse, ToolSpec
from hookline.agent.tools.jobs import Jobs
from hookline.errors import ToolInputInvalid
from hookline.sandbox.policy import Policy

__all__ = ["Task", "TaskList"]

Status = Literal["pending", "in_progress", "completed"]


class Task(Struct, frozen=True):
    """One piece of work."""

    id: str
    subject: str
    description: str = ""
    status: Status = "pending"
    owner: str | None = None
    active_form: str | None = None
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class TaskList:
    """Tasks by id, numbered from 1 in the order they were created."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._last = 0

    def draft(self, subject: str, description: str, **more: Any) -> Task:
        """The next task, numbered but not yet listed; a refused draft's number is not used again."""
        self._last += 1
        return Task(str(self._last), subject, description, **more)

    def put(self, task: Task) -> Task:
        """List a task, or replace the one of its id."""
        self._tasks[task.id] = task
        return task

    def get(self, id: str) -> Task | None:
        """The task of that number, if it is listed."""
        return self._tasks.get(id)

    def remove(self, id: str) -> None:
        """Forget a task and every link to it."""
        self._tasks.pop(id, None)
        for task in self.all():
            self.put(structs.replace(task, blocks=_without(task.blocks, id), blocked_by=_without(task.blocked_by, id)))

    def link(self, blocker: str, blocked: str) -> None:
        """`blocked` waits for `blocker`; ids that are not listed are left alone."""
        first, second = self.get(blocker), self.get(blocked)
        if first and second and blocker != blocked:
            self.put(structs.replace(first, blocks=_with(first.blocks, blocked)))
            self.put(structs.replace(second, blocked_by=_with(second.blocked_by, blocker)))

    def all(self) -> tuple[Task, ...]:
        """Every task, oldest first."""
        return tuple(self._tasks.values())

    def open_blockers(self, task: Task) -> list[str]:
        """The unfinished tasks this one waits for."""
        return [name for name in task.blocked_by if (other := self.get(name)) and other.status != "completed"]

    def claim(self, owner: str) -> Task | None:
        """Give `owner` the first task that is pending, unowned and not blocked; None if there is none."""
        for task in self.all():
            if task.status == "pending" and task.owner is None and not self.open_blockers(task):
                return self.put(structs.replace(task, owner=owner, status="in_progress"))
        return None


def _with(ids: tuple[str, ...], id: str) -> tuple[str, ...]:
    return ids if id in ids else (*ids, id)


def _without(ids: tuple[str, ...], id: str) -> tuple[str, ...]:
    return tuple(other for other in ids if other != id)


JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "number"),
    (float, "number"),
    (dict, "object"),
    (list, "array"),
    (type(None), "null"),
)


@cache
def schema_of(struct: type[Struct]) -> dict[str, Any]:
    """The struct's JSON Schema with its references written out, closed against unknown names."""
    (schema,), definitions = msgspec.json.schema_components([struct], ref_template="{name}")
    whole = _inline(schema, definitions)
    whole.pop("title", None)
    return {**whole, "additionalProperties": False}


def validate(tool: str, struct: type[Struct], given: Any) -> dict[str, Any]:
    """The arguments with the struct's defaults filled in; raises `ToolInputInvalid` with every issue."""
    if not isinstance(given, dict):
        raise ToolInputInvalid(tool, [f"The input is expected as `object` but provided as `{json_type(given)}`"])
    known = {field.encode_name: field for field in fields(struct)}
    issues = [
        f"The required parameter `{name}` is missing"
        for name, field in known.items()
        if field.required and name not in given
    ]
    issues += [issue for name, field in known.items() if name in given and (issue := _issue(field, given[name]))]
    issues += [f"An unexpected parameter `{name}` was provided" for name in given if name not in known]
    if issues:
        raise ToolInputInvalid(tool, issues)
    defaults = {name: field.default for name, field in known.items() if _has_default(field)}
    return {**given, **{name: value for name, value in defaults.items() if name not in given}}


def json_type(value: Any) -> str:
    """What JSON calls the value's type."""
    return next((word for kind, word in JSON_TYPES if isinstance(value, kind)), "unknown")


def _has_default(field: FieldInfo) -> bool:
    return field.default not in (msgspec.NODEFAULT, msgspec.UNSET)


def _issue(field: FieldInfo, value: Any) -> str | None:
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as problem:
        expected = _expected(field)
        if expected and json_type(value) != expected:
            kinds = f"`{expected}` but provided as `{json_type(value)}`"
            return f"The parameter `{field.encode_name}` type is expected as {kinds}"
        return f"The parameter `{field.encode_name}` is invalid: {problem}"
    return None


def _expected(field: FieldInfo) -> str | None:
    (schema,), definitions = msgspec.json.schema_components([field.type], ref_template="{name}")
    kind = _inline(schema, definitions).get("type")
    return "number" if kind == "integer" else kind


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(definitions[schema["$ref"]], definitions)
    return {key: _inline(value, definitions) for key, value in schema.items()}


class ToolResult(Struct, frozen=True):
    """What a call came to: `content` for the model, `response` for hooks (`tool_response`), `is_error` for both."""

    content: str | list[dict[str, Any]]
    response: Any = None
    is_error: bool = False


class Worktree(Struct, frozen=True):
    """A worktree the session works in, and where it came from; made by git unless `by_hook`, ours unless `entered`."""

    path: str
    branch: str
    cwd: str
    project_dir: str
    by_hook: bool = False
    entered: bool = False


def failure(text: str, response: Any = None) -> ToolResult:
    """A call that failed; the model reads `text`."""
    return ToolResult(text, text if response is None else response, is_error=True)


@dataclass
class SessionState:
    """What tool calls leave behind for the next ones: where the shell is, which files were read, tasks, jobs.

    `env_files` are the CLAUDE_ENV_FILE scripts hooks wrote exports into; Bash reads them before every command.
    """

    cwd: str
    project_dir: str = ""
    env_files: list[Path] = field(default_factory=list)
    files_read: dict[str, float] = field(default_factory=dict)
    worktree: Worktree | None = None
    tasks: TaskList = field(default_factory=TaskList)
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.project_dir = self.project_dir or self.cwd

    def fork(self) -> SessionState:
        """A subagent's view: its own directory and reads, the same tasks and background jobs."""
        return replace(self, files_read=dict(self.files_read))


@dataclass(frozen=True)
class ToolEnv:
    """Everything a call may need, handed in; the callables are the loop's, and missing ones mean "not possible here".

    Use `dataclasses.replace(env, tool_use_id=…)` per call: the mutable part is `state`, and it is shared.
    """

    state: SessionState
    session_id: str = ""
    tool_use_id: str = ""
    agent_id: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    #: whether shell lines are held to the project and the temporary folder by the kernel
    confine: bool = False
    #: what guards hold this call's shell line to, besides
    held: Policy | None = None
    #: sends an event through the engine: `await env.fire(event) -> Verdict`
    fire: Callable[..., Awaitable[Any]] | None = None
    #: told of output while a tool runs: `env.progress("stdout", "…")`
    progress: Callable[[str, str], None] | None = None
    #: `await env.cwd_changed(old, new)` after a `cd` moved the session
    cwd_changed: Callable[[str, str], Awaitable[None]] | None = None
    #: `await env.task_created(task)` / `task_completed(task)`: feedback that refuses the step, or None
    task_created: Callable[[Task], Awaitable[str | None]] | None = None
    task_completed: Callable[[Task], Awaitable[str | None]] | None = None
    #: `await env.spawn_agent(input: dict, env) -> ToolResult`; `await env.run_skill(input: dict, env) -> ToolResult`
    spawn_agent: Callable[[dict[str, Any], ToolEnv], Awaitable[ToolResult]] | None = None
    run_skill: Callable[[dict[str, Any], ToolEnv], Awaitable[ToolResult]] | None = None
    #: `await env.elicit(server, request)`: an MCP server asks the user; answers `{"action": "accept", "content": {…}}`
    elicit: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
    #: `await env.worktree_create(name)`: the path a WorktreeCreate hook made, or None for git to make one
    worktree_create: Callable[[str], Awaitable[str | None]] | None = None
    #: `await env.worktree_remove(path)`: lets the hooks take it away; why not, or None
    worktree_remove: Callable[[str], Awaitable[str | None]] | None = None
    #: `await env.ask_model(request, small=True)`: an answer outside the conversation, of a small model if there is one
    ask_model: Callable[..., Awaitable[ModelResponse]] | None = None
    #: the tools ToolSearch may look through
    tools: Callable[[], Mapping[str, Tool]] | None = None

    @property
    def cwd(self) -> str:
        """Where the session's shell is now."""
        return self.state.cwd

    def path(self, given: str) -> Path:
        """A path the model wrote, from the session's directory, `~` expanded."""
        return Path(self.cwd, Path(given).expanduser())


class Tool(ABC):
    """Subclasses say what they take in `Input`, a frozen Struct whose defaults are filled in before hooks look.

    `read_only` tools change nothing (they need no permission); `within_session` ones change nothing but the session
    itself (nor do they); `concurrency_safe` calls of one turn may run at once.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Input: ClassVar[type[Struct]]
    read_only: ClassVar[bool] = False
    within_session: ClassVar[bool] = False
    concurrency_safe: ClassVar[bool] = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema the model is given."""
        return schema_of(self.Input)

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a request lists it."""
        return ToolSpec(self.name, self.description, self.input_schema)

    def validate(self, given: Any) -> dict[str, Any]:
        """The input with defaults filled in; raises `ToolInputInvalid` saying every problem the model can fix."""
        return validate(self.name, self.Input, given)

    def rewritten(self, given: dict[str, Any]) -> dict[str, Any]:
        """An input that a hook or the host has written, validated; what the tool does not know of it is left out."""
        known = {field.encode_name for field in msgspec.structs.fields(self.Input)}
        return self.validate({name: value for name, value in given.items() if name in known})

    def parse(self, valid: Mapping[str, Any]) -> Any:
        """The validated input as the tool's own `Input`."""
        return msgspec.convert(valid, self.Input)

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """Why this call cannot work as things stand, or None; asked after `validate` and before any hook."""
        return None

    def is_read_only(self, valid: Mapping[str, Any]) -> bool:
        """Whether this very call changes nothing."""
        return self.read_only

    @abstractmethod
    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Do it; `given` is what `validate` returned (or a hook's rewrite of it, validated again)."""
