"""Model families: what an agent offers a model depends on the model's name, so the battery runs once for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from hookline.hosts.host import ProofRecipe

Call = tuple[str, Any]
replace = msgspec.structs.replace
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


def with_family(name: str, agent: ProofRecipe, family: Family) -> ProofRecipe:
    """An agent that is told to use a model of that family."""
    before = MODELS.get(name, "fake-model")

    def replaced(text: str) -> str:
        return text.replace(before, family.model)

    edits = [replace(edit, values=_mapped(edit.values, replaced), rows=_mapped(edit.rows, replaced))
             for edit in agent.edits]  # fmt: skip
    env = {**_mapped(agent.env, replaced), **family.env}
    return replace(agent, edits=edits, env=env, setup=[*map(replaced, agent.setup)], argv=[*map(replaced, agent.argv)])


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A value with every text in it changed; keys, too."""
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: _mapped(inner, change) for key, inner in value.items()}
    return change(value) if isinstance(value, str) else value
