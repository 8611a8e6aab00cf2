"""Every recorded case that asks about hooks, played through `Hooks.from_settings`, ends as it did in the real CLI.

A case agrees when the same hooks ran (and the same were stopped), were given at least the same fields, the same calls
were refused, the same words of hooks reached the model, and the model was asked as often. Cases whose question is about
an agent's own loop are named below, with the reason; they are compared with `hookline run`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hookline.runners.command import CommandRunner
from tests.contract_hooks.play import CONTRACT, Play, differences

AT_ONCE = 4

LEFT_TO_THE_AGENT = {
    "agent_frontmatter": "hooks that count while an agent of that name runs",
    "agent_stop_notok": "there a check goes on for one request after its answer; that request takes the next check's",
    "agents_flag_frontmatter": "hooks that count while an agent of that name runs",
    "async_": "when a late answer reaches the model is a matter of its requests",
    "defer_resume": "a conversation that is resumed",
    "display_content": "what a stream shows",
    "elicitation_": "an MCP server that asks its host",
    "events_": "which events an agent announces, and when",
    "expansion_": "a slash command that is expanded",
    "filechanged_": "which files are watched",
    "hookevents_off": "what a stream shows",
    "matcher_cwd": "an agent that changes its folder",
    "matcher_filechanged": "which files are watched",
    "matcher_instructions": "which instructions are loaded",
    "matcher_model": "a host that switches models",
    "matcher_notification": "an MCP server that asks its host",
    "matcher_stopfailure": "an API that fails",
    "matcher_taskcreated": "the agent's own list of tasks",
    "mcp_": "the output of an MCP tool",
    "permdenied_": "the real CLI's classifier",
    "permreq_setmode": "a permission mode that changes on the way",
    "pre_allow_vs_": "permission rules, which the agent holds against a hook's answer",
    "read_": "the output of a tool",
    "sdk_": "the control protocol",
    "skill_": "hooks that count once a skill is used",
    "slow_": "minutes of waiting for default timeouts, which are values here: see tests/settings",
    "ss_initial": "a prompt that a hook puts before the user's",
    "task": "the agent's own list of tasks",
    "ups_stop_next_turn": "what stays in a conversation",
    "worktree_": "a worktree that the agent makes",
}
"""Beginnings of names, and why their cases are not played here."""

OTHERWISE: dict[str, str] = {}
"""Cases that ask about hooks and end otherwise here, and why."""


def names() -> list[str]:
    return sorted(path.stem for path in (CONTRACT / "cases").glob("*.json"))


def left() -> set[str]:
    return {name for name in names() if name.startswith(tuple(LEFT_TO_THE_AGENT))}


def deliberate() -> set[str]:
    said = json.loads((CONTRACT / "deliberate.json").read_text())
    return {name for cases in said.values() for name in cases}


def unstable() -> set[str]:
    return set((CONTRACT / "unstable.txt").read_text().split())


def played() -> list[str]:
    others = left() | deliberate() | unstable()
    return [name for name in names() if name not in others]


@pytest.fixture(scope="module")
def observations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All cases, played side by side in one event loop, so that their timeouts pass at the same time."""
    return asyncio.run(_all(played(), tmp_path_factory.mktemp("cases")))


async def _all(cases: Iterable[str], folder: Path) -> dict[str, Any]:
    commands, turns = CommandRunner(), asyncio.Semaphore(AT_ONCE)

    async def one(name: str, attempt: str = "") -> Any:
        case = unhurried(case_of(name)) if attempt else case_of(name)
        async with turns, asyncio.timeout(120):
            return await Play(case, folder / f"{name}{attempt}", commands).run()

    first, *rest = cases
    seen = {first: await one(first)}
    if commands.warm is not None:
        await commands.warm.warmed()
    seen |= dict(zip(rest, await asyncio.gather(*map(one, rest), return_exceptions=True), strict=True))
    for name in rest:  # where others keep the machine busy, a hook may not even start within its second
        if isinstance(seen[name], Exception) or differences(expected_of(name), seen[name]):
            seen[name] = (await asyncio.gather(one(name, "-again"), return_exceptions=True))[0]
    await commands.aclose()
    return seen


def case_of(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((CONTRACT / "cases" / f"{name}.json").read_text())
    return case


def unhurried(case: dict[str, Any]) -> dict[str, Any]:
    """The same case with five times the time, for its limit and for what the limit cuts off, if it sets one."""

    def stretched(part: Any) -> Any:
        if isinstance(part, list):
            return [stretched(one) for one in part]
        if not isinstance(part, dict):
            return part
        times = {name: 5 * part[name] for name in ("timeout", "sleep", "delay") if name in part}
        return {name: stretched(one) for name, one in part.items()} | times

    limited = re.search(r'"timeout": 1\b', json.dumps(case.get("settings")))
    return {name: stretched(part) for name, part in case.items()} if limited else case


def expected_of(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((CONTRACT / "expected" / f"{name}.json").read_text())
    return expected


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", played())
def test_a_case_ends_as_recorded(name: str, observations: dict[str, Any]) -> None:
    """See above for what counts."""
    observed = observations[name]
    if isinstance(observed, Exception):
        raise observed
    found = differences(expected_of(name), observed)

    assert bool(found) is (name in OTHERWISE), found


def test_every_exception_is_a_case() -> None:
    """The tables name nothing that is not there, and most cases about hooks are played."""
    assert [start for start in LEFT_TO_THE_AGENT if not any(name.startswith(start) for name in names())] == []
    assert set(OTHERWISE) <= set(played())
    assert len(played()) >= 250
