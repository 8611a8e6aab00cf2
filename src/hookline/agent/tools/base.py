"""A tool is something the model can ask for: a name, a schema, and what happens.

The loop's order is `validate` → `check` (both before any hook sees the input) → hooks and permissions → `run`. A tool
raises `ToolInputInvalid` from `validate` and nothing from `run`: what goes wrong while running is a `ToolResult` with
`is_error`, because the model must hear of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, structs

from hookline.agent.messages import Assistant
from hookline.agent.models.base import ModelRequest, ToolSpec
from hookline.agent.tools.shell import Jobs
from hookline.errors import ToolInputInvalid
from hookline.events import CwdChanged, TaskCompleted, TaskCreated, WorktreeRemove
from hookline.sandbox.policy import Policy

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
        self._tasks[task.id] = task
        return task

    def get(self, id: str) -> Task | None:
        return self._tasks.get(id)

    def remove(self, id: str) -> None:
        self._tasks.pop(id, None)
        for task in self.all():
            blocks, blocked_by = (tuple(one for one in ids if one != id) for ids in (task.blocks, task.blocked_by))
            self.put(structs.replace(task, blocks=blocks, blocked_by=blocked_by))

    def link(self, blocker: str, blocked: str) -> None:
        """`blocked` waits for `blocker`; ids that are not listed are left alone."""
        first, second = self.get(blocker), self.get(blocked)
        if first and second and blocker != blocked and blocked not in first.blocks:
            self.put(structs.replace(first, blocks=(*first.blocks, blocked)))
            self.put(structs.replace(second, blocked_by=(*second.blocked_by, blocker)))

    def all(self) -> tuple[Task, ...]:
        return tuple(self._tasks.values())

    def open_blockers(self, task: Task) -> list[str]:
        return [name for name in task.blocked_by if (other := self.get(name)) and other.status != "completed"]

    def claim(self, owner: str) -> Task | None:
        """Give `owner` the first task that is pending, unowned and not blocked; None if there is none."""
        for task in self.all():
            if task.status == "pending" and task.owner is None and not self.open_blockers(task):
                return self.put(structs.replace(task, owner=owner, status="in_progress"))
        return None


JSON_TYPES: dict[type, str] = {
    bool: "boolean", str: "string", int: "number", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip
#: what a word of `inputs.json` stands for
TYPES = {"boolean": bool, "string": str, "integer": int, "number": float, "object": dict[str, Any], "array": list[str]}
LIMITS = {"description": "description", "minimum": "ge", "exclusiveMinimum": "gt", "minLength": "min_length"}


def _parameter(name: str, about: dict[str, Any], number: int, *, required: bool) -> tuple[str, Any, Any]:
    """A field of `Input` as it is described to the model."""
    kind: Any = Literal[tuple(about["enum"])] if "enum" in about else TYPES[about["type"]]
    kind = Annotated[kind, Meta(**{LIMITS[word]: value for word, value in about.items() if word in LIMITS})]
    if required:
        return f"_{number}", kind, msgspec.field(name=name)
    return f"_{number}", kind | UnsetType, msgspec.field(name=name, default=about.get("default", UNSET))


def _read_inputs() -> dict[str, type[Struct]]:
    """What the built-in tools take, from the schemas that the model is given of them."""
    inputs: dict[str, type[Struct]] = {}
    for tool, schema in msgspec.json.decode(Path(__file__).with_name("inputs.json").read_bytes()).items():
        rows = enumerate(schema["properties"].items())
        fields = [_parameter(name, about, at, required=name in schema["required"]) for at, (name, about) in rows]
        inputs[tool] = msgspec.defstruct(tool, fields, frozen=True)
    return inputs


INPUTS = _read_inputs()


@cache
def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, with its references written out."""
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inline(definitions[part["$ref"]])
        return {key: inline(value) for key, value in part.items()}

    return cast("dict[str, Any]", inline(schema))


def check_object(tool: str, given: Any) -> None:
    """Raise `ToolInputInvalid` for arguments that are not an object."""
    if not isinstance(given, dict):
        kind = JSON_TYPES.get(type(given), "unknown")
        raise ToolInputInvalid(tool, [f"The input is expected as `object` but provided as `{kind}`"])


def _issue(field: structs.FieldInfo, value: Any) -> str | None:
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as problem:
        given, wanted = JSON_TYPES.get(type(value), "unknown"), schema_of(field.type).get("type")
        expected = "number" if wanted == "integer" else wanted
        if expected and given != expected:
            return f"The parameter `{field.encode_name}` type is expected as `{expected}` but provided as `{given}`"
        return f"The parameter `{field.encode_name}` is invalid: {problem}"
    return None


class ToolResult(Struct, frozen=True):
    """What a call came to: `content` for the model, `response` for hooks (`tool_response`), `is_error` for both."""

    content: str | list[dict[str, Any]]
    response: Any = None
    is_error: bool = False


def failure(text: str, response: Any = None) -> ToolResult:
    """A call that failed; the model reads `text`."""
    return ToolResult(text, text if response is None else response, is_error=True)


class Worktree(Struct, frozen=True):
    """A worktree the session works in, and where it came from; made by git unless `by_hook`, ours unless `entered`."""

    path: str
    branch: str
    cwd: str
    project_dir: str
    by_hook: bool = False
    entered: bool = False


@dataclass
class SessionState:
    """What tool calls leave behind for the next ones: where the shell is, which files were read, tasks, jobs."""

    cwd: str
    project_dir: str = ""
    env_files: list[Path] = field(default_factory=list)  # scripts with exports of hooks; Bash reads them each time
    files_read: dict[str, float] = field(default_factory=dict)
    worktree: Worktree | None = None
    tasks: TaskList = field(default_factory=TaskList)
    jobs: Jobs = field(default_factory=Jobs)

    def __post_init__(self) -> None:
        self.project_dir = self.project_dir or self.cwd

    def fork(self) -> "SessionState":
        """A subagent's view: its own directory and reads, the same tasks and background jobs."""
        return replace(self, files_read=dict(self.files_read))


class ToolHost:
    """What a tool may ask of the agent that runs it; this one stands where no agent does, and can do nothing."""

    async def tell(self, kind: type[CwdChanged | WorktreeRemove], **about: Any) -> None:
        """Tell the session's hooks that something has happened."""

    async def task_block_reason(self, kind: type[TaskCreated | TaskCompleted], task: Task) -> str | None:
        """Why hooks refuse that a task is created, or completed."""

    async def spawn_agent(self, given: dict[str, Any], tool_use_id: str) -> ToolResult:
        return failure("subagents are not available here")

    async def run_skill(self, name: str, arguments: str) -> ToolResult:
        return failure("skills are not available here")

    async def elicit(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """An MCP server asks the user; answers such as `{"action": "accept", "content": {…}}`."""
        return {"action": "cancel"}

    async def worktree_create(self, name: str) -> str | None:
        """The path of a worktree that a hook has made; None lets git make one."""

    async def ask_model(self, request: ModelRequest, *, small: bool) -> Assistant | None:
        """An answer outside the conversation, of a small model if there is one; None without a model."""

    def tools(self) -> "Mapping[str, Tool]":
        """The tools that ToolSearch looks through."""
        return {}


@dataclass(frozen=True)
class ToolEnv:
    """Everything a call may need, handed in; the mutable part is `state`, and it is shared."""

    state: SessionState
    session_id: str = ""
    tool_use_id: str = ""
    agent_id: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    confine: bool = False  # whether shell lines are held to the project and the temporary folder by the kernel
    held: Policy | None = None  # what guards hold this call's shell line to, besides
    #: sends an event through the engine: `await env.fire(event) -> Verdict`; None outside of a session
    fire: Callable[..., Awaitable[Any]] | None = None
    host: ToolHost = field(default_factory=ToolHost)

    @property
    def cwd(self) -> str:
        return self.state.cwd

    def path(self, given: str) -> Path:
        """A path the model wrote, from the session's directory, `~` expanded."""
        return Path(self.cwd, Path(given).expanduser())


class Tool(ABC):
    """Subclasses say what they take in `Input`, a frozen Struct whose defaults are filled in before hooks look.

    What the built-in ones take is in `inputs.json`, as the model is told it.

    A tool has its class's name, and its docstring tells the model what it is for, unless it has a `name` and a
    `description` of its own. `read_only` tools change nothing (they need no permission, and run at once with others);
    `within_session` ones change nothing but the session itself (no permission either); calls of `concurrency_safe`
    ones in one turn may run at once.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    Input: ClassVar[type[Struct]]
    read_only: ClassVar[bool] = False
    within_session: ClassVar[bool] = False
    concurrency_safe: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = getattr(cls, "name", cls.__name__)
        if cls.name in INPUTS and not hasattr(cls, "Input"):
            cls.Input = INPUTS[cls.name]
        cls.description = getattr(cls, "description", " ".join((cls.__doc__ or "").split()))

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema the model is given: closed against unknown names."""
        schema = {**schema_of(self.Input), "additionalProperties": False}
        schema.pop("title", None)
        return schema

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.input_schema)

    def validate(self, given: Any) -> dict[str, Any]:
        """The input with defaults filled in; raises `ToolInputInvalid` saying every problem the model can fix."""
        check_object(self.name, given)
        known = {field.encode_name: field for field in structs.fields(self.Input)}
        missing = [name for name, field in known.items() if field.required and name not in given]
        issues = [f"The required parameter `{name}` is missing" for name in missing]
        issues += [issue for name, field in known.items() if name in given and (issue := _issue(field, given[name]))]
        issues += [f"An unexpected parameter `{name}` was provided" for name in given if name not in known]
        if issues:
            raise ToolInputInvalid(self.name, issues)
        defaults = {name: field.default for name, field in known.items() if field.default not in (NODEFAULT, UNSET)}
        return {**given, **{name: value for name, value in defaults.items() if name not in given}}

    def rewritten(self, given: dict[str, Any]) -> dict[str, Any]:
        """An input that a hook or the host has written, validated; what the tool does not know of it is left out."""
        known = {field.encode_name for field in structs.fields(self.Input)}
        return self.validate({name: value for name, value in given.items() if name in known})

    async def check(self, given: dict[str, Any], env: ToolEnv) -> str | None:
        """Why this call cannot work as things stand, or None; asked after `validate` and before any hook."""
        return None

    @abstractmethod
    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """Do it; `given` is what `validate` returned (or a hook's rewrite of it, validated again)."""
