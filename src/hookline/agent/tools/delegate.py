"""Tools whose work is the loop's (Agent, Skill, ToolSearch), and StructuredOutput, by which the model answers.

StructuredOutput is there when a schema was asked for (`--json-schema`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult
from hookline.errors import ConfigError, ToolInputInvalid
from hookline.hosts.gateway.messages import misfits


class Agent(Tool):
    """Give a task to a subagent, which works on it with its own context and answers once."""

    class Input(Struct, frozen=True):
        description: Annotated[str, Meta(description="the task in three to five words")]
        prompt: Annotated[str, Meta(description="the task, in full")]
        subagent_type: Annotated[str, Meta(description="which agent to use")] | UnsetType = UNSET
        model: str | UnsetType = UNSET
        effort: Literal["low", "medium", "high", "xhigh", "max"] | UnsetType = UNSET
        run_in_background: Annotated[bool, Meta(description="go on at once; its answer is told later")] | UnsetType = (
            UNSET
        )
        isolation: Literal["worktree", "remote"] | UnsetType = UNSET
        name: Annotated[str, Meta(description="a name by which a teammate is known")] | UnsetType = UNSET
        team_name: Annotated[str, Meta(description="without meaning: a session has one team")] | UnsetType = UNSET
        mode: Annotated[str, Meta(description="without meaning: the session's permission mode holds")] | UnsetType = (
            UNSET
        )

    within_session = True  # what a subagent does is asked about there
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        return await env.host.spawn_agent(given, env.tool_use_id)


class Skill(Tool):
    """Load a skill: instructions for a particular kind of work."""

    class Input(Struct, frozen=True):
        skill: Annotated[str, Meta(description="the skill's name")]
        args: Annotated[str, Meta(description="what to hand to it")] | UnsetType = UNSET

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        return await env.host.run_skill(given["skill"], given.get("args") or "")


class ToolSearch(Tool):
    """Find tools: `select:Name,Name` for those names, or words from their names and descriptions."""

    class Input(Struct, frozen=True):
        query: Annotated[str, Meta(description="`select:Name,Name`, or words to look for")]
        max_results: float = 5

    read_only = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """The tools that fit, best first; here every tool is always loaded."""
        known, query = env.host.tools(), given["query"]
        if query.startswith("select:"):
            names = (name.strip() for name in query.removeprefix("select:").split(","))
            found = [name for name in names if name in known]
        else:
            words = [word.lower() for word in re.findall(r"\w+", query)]
            scores = {
                name: sum(2 * (word in name.lower()) + (word in tool.description.lower()) for word in words)
                for name, tool in known.items()
            }
            ranked = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
            found = ranked[: int(given["max_results"])]
        lines = [f"{name}: {known[name].description}" for name in found]
        response = {"matches": found, "query": query, "total_deferred_tools": len(known)}
        return ToolResult("\n".join(lines) or "No matching tools found", response)


class StructuredOutput(Tool):
    """Gives your final answer in the form that was asked for. Call it exactly once, when everything else is done."""

    Input = Struct
    within_session = True

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        #: the answer, once it has been given
        self.answer: Any = UNSET

    @property
    def input_schema(self) -> dict[str, Any]:
        return self._schema

    def validate(self, given: Any) -> dict[str, Any]:
        """The answer, if it fits; raises `ToolInputInvalid` with every misfit."""
        problems = misfits(given, self._schema)
        if problems or not isinstance(given, dict):
            raise ToolInputInvalid(self.name, problems or ["/: expected an object"])
        return given

    rewritten = validate

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        self.answer = given
        return ToolResult("Structured output provided successfully", "Structured output provided successfully")


def read_schema(text: str) -> dict[str, Any]:
    """The schema of `--json-schema`, which describes an object; raises `ConfigError`."""
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise ConfigError("--json-schema", f'expected JSON such as {{"type": "object", …}}: {problem}') from None
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError("--json-schema", 'expected the schema of an object, such as `{"type": "object", …}`')
    return {"type": "object", **schema}
