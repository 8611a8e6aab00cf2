"""Tools whose work is the loop's: Agent (subagents), Skill, and ToolSearch. Here are only their names and schemas."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from hookline.agent.tools.base import Tool, ToolEnv, ToolResult, failure

__all__ = ["Agent", "Skill", "ToolSearch"]


class AgentInput(Struct, frozen=True):
    description: Annotated[str, Meta(description="the task in three to five words")]
    prompt: Annotated[str, Meta(description="the task, in full")]
    subagent_type: Annotated[str, Meta(description="which agent to use")] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    effort: Literal["low", "medium", "high", "xhigh", "max"] | UnsetType = UNSET
    run_in_background: Annotated[bool, Meta(description="go on at once; its answer is told later")] | UnsetType = UNSET
    isolation: Literal["worktree", "remote"] | UnsetType = UNSET
    name: Annotated[str, Meta(description="a name by which a teammate is known")] | UnsetType = UNSET
    team_name: Annotated[str, Meta(description="without meaning: a session has one team")] | UnsetType = UNSET
    mode: Annotated[str, Meta(description="without meaning: the session's permission mode holds")] | UnsetType = UNSET


class Agent(Tool):
    """Gives a task to a subagent with its own conversation; Claude Code also calls it `Task`."""

    name = "Agent"
    description = "Give a task to a subagent, which works on it with its own context and answers once."
    Input = AgentInput
    within_session = True  # what a subagent does is asked about there
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """The loop runs it."""
        return await env.spawn_agent(given, env) if env.spawn_agent else failure("subagents are not available here")


class SkillInput(Struct, frozen=True):
    skill: Annotated[str, Meta(description="the skill's name")]
    args: Annotated[str, Meta(description="what to hand to it")] | UnsetType = UNSET


class Skill(Tool):
    """Loads a skill's instructions into the conversation."""

    name = "Skill"
    description = "Load a skill: instructions for a particular kind of work."
    Input = SkillInput

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """The loop runs it."""
        return await env.run_skill(given, env) if env.run_skill else failure("skills are not available here")


class ToolSearchInput(Struct, frozen=True):
    query: Annotated[str, Meta(description="`select:Name,Name`, or words to look for")]
    max_results: float = 5


class ToolSearch(Tool):
    """Finds tools by name or by what they do; here every tool is always loaded."""

    name = "ToolSearch"
    description = "Find tools: `select:Name,Name` for those names, or words from their names and descriptions."
    Input = ToolSearchInput
    read_only = True
    concurrency_safe = True

    async def run(self, given: dict[str, Any], env: ToolEnv) -> ToolResult:
        """The tools that fit, best first."""
        known = dict(env.tools()) if env.tools else {}
        query, most = given["query"], int(given["max_results"])
        found = _selected(query, known) if query.startswith("select:") else _ranked(query, known)[:most]
        response = {"matches": found, "query": query, "total_deferred_tools": len(known)}
        lines = [f"{name}: {known[name].description}" for name in found]
        return ToolResult("\n".join(lines) or "No matching tools found", response)


def _selected(query: str, known: dict[str, Tool]) -> list[str]:
    names = (name.strip() for name in query.removeprefix("select:").split(","))
    return [name for name in names if name in known]


def _ranked(query: str, known: dict[str, Tool]) -> list[str]:
    words = [word.lower() for word in re.findall(r"\w+", query)]
    scores = {
        name: sum(2 * (word in name.lower()) + (word in tool.description.lower()) for word in words)
        for name, tool in known.items()
    }
    return [name for name, score in sorted(scores.items(), key=lambda item: -item[1]) if score]
