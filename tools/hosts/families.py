"""Model families: what an agent offers a model depends on the model's name, so the battery runs once for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hookline.hosts.prove.agents import Agent, World

Call = tuple[str, Any]
NO_ENV: Mapping[str, str] = MappingProxyType({})
MODELS = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash", "openhands": "gpt-4.1"}
"""The model that an agent is run with, where it is not `fake-model`."""


class Family(NamedTuple):
    """A model whose tools differ, and how it applies a patch."""

    model: str
    patch: Callable[[str], Call]
    env: Mapping[str, str] = NO_ENV


def _script(patch: str) -> Call:
    return "functions::exec", f"text(await tools.apply_patch({json.dumps(patch)}))"


FAMILIES: Mapping[str, tuple[Family, ...]] = MappingProxyType({
    "codex": (Family("gpt-5.5", lambda patch: ("apply_patch", patch)), Family("gpt-6-sol", _script)),
    "copilot": (Family("gpt-5.3-codex", lambda patch: ("apply_patch", patch),
                       {"COPILOT_PROVIDER_WIRE_API": "responses"}),),
    "cline": (Family("gpt-5", lambda patch: ("apply_patch", {"input": patch})),),
    "opencode": (Family("gpt-5", lambda patch: ("apply_patch", {"patchText": patch})),),
})  # fmt: skip
"""The families that edit files by patches; with any other model name these agents offer other tools."""


def family_of(name: str) -> Family:
    """The first family of an agent."""
    return FAMILIES[name][0]


def with_family(name: str, agent: Agent, family: Family) -> Agent:
    """An agent that is told to use a model of that family."""
    before = MODELS.get(name, "fake-model")

    def prepare(world: World) -> None:
        agent.prepare(world)
        for path in _settings(world.home):
            path.write_text(path.read_text().replace(before, family.model))

    def argv(world: World, prompt: str) -> list[str]:
        return [word.replace(before, family.model) for word in agent.argv(world, prompt)]

    def env(world: World) -> dict[str, str]:
        return {key: value.replace(before, family.model) for key, value in agent.env(world).items()} | dict(family.env)

    return agent._replace(prepare=prepare, argv=argv, env=env)


def _settings(home: Path) -> list[Path]:
    found = [path for ending in ("toml", "json") for path in home.rglob(f"*.{ending}") if path.is_file()]
    return [path for path in found if "fake-model" in path.read_text(errors="replace")]
