"""Every host with every CLI: the same scenarios, the same outcome, on a scripted API."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.claude_code.process import bundled_cli
from tests.hosts.claude_code.hosts import HOSTS, Seen, Stage, missing, stage_for
from tests.hosts.claude_code.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked for. mcp__srv__shout")
"""The Python SDK's advice, where one tool of a session is allowed and the others are asked for."""


def real_cli(tmp_path: Path) -> str:
    found = bundled_cli()
    if found is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    return str(found)


def our_cli(tmp_path: Path) -> str:
    script = tmp_path / "hookline-as-claude"
    script.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent}/hookline" run --trust "$@"\n')
    script.chmod(0o755)
    return str(script)


CLIS = {"claude": real_cli, "hookline": our_cli}


def said_to_model(requests: list[Any]) -> list[list[Any]]:
    """The messages of each request of the main conversation, without what the model said itself."""
    main = [one["request"] for one in requests if one["lane"] == "main"]
    return [[message for message in one["messages"] if message["role"] != "assistant"] for one in main]


def tool_errors(said: list[list[Any]]) -> list[bool]:
    last = said[-1:] or [[]]
    blocks = [block for message in last[0] if isinstance(message["content"], list) for block in message["content"]]
    return [bool(block.get("is_error")) for block in blocks if block.get("type") == "tool_result"]


def observed(scenario: Scenario, seen: Seen, stage: Stage, before: list[Any], after: list[Any]) -> dict[str, Any]:
    """What happened, in the words of `Expect`: after the requests that were made before."""
    said, earlier = said_to_model(after[len(before) :]), said_to_model(before)
    files = [path for path in Path(stage.cwd).iterdir() if path.is_file()]
    return {
        "files": {path.name: path.read_text() for path in files},
        "results": seen.results,
        "hooks": seen.hooks,
        "reached_model": [word for word in scenario.expect.reached_model
                          if re.search(word, str(said)) and not re.search(word, str(earlier))],
        "tool_errors": tool_errors(said)[len(tool_errors(earlier)) :] if scenario.expect.tool_errors else [],
        "model_requests": len(said) if scenario.expect.model_requests is not None else None,
        "asked": seen.asked,
        "mcp_calls": seen.mcp_calls,
        "cancelled": seen.cancelled,
    }  # fmt: skip


async def play(host: str, cli: str, session: str, folder: Path) -> dict[str, Any]:
    """What was observed in each scenario of a session, or the error that ended it."""
    scenarios = [scenario for scenario in SCENARIOS if scenario.session == session]
    outcome: dict[str, Any] = {}
    with closing(importlib.import_module("tests.contract.api").Api([])) as api:
        stage = stage_for(CLIS[cli](folder), folder, api)
        try:
            async with HOSTS[host](scenarios, stage) as playing:
                for scenario in scenarios:
                    before = list(api.requests)
                    api.main |= {"turns": scenario.model, "at": 0}
                    seen = await playing(scenario)
                    outcome[scenario.name] = observed(scenario, seen, stage, before, list(api.requests))
                    (Path(stage.cwd) / "out.txt").unlink(missing_ok=True)
        except Exception as error:  # told by the scenarios that were not played to their end
            outcome[""] = error
    return outcome


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, str], dict[str, Any]]:
    """Each session is played once, when the first of its scenarios is asked for; without its host that is skipped."""

    @cache
    def once(host: str, cli: str, session: str) -> dict[str, Any]:
        reason = missing(host)
        if reason:
            pytest.skip(reason)
        return asyncio.run(play(host, cli, session, tmp_path_factory.mktemp("stage")))

    return once


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_every_pair_does_what_the_scenario_says(
    scenario: Scenario, host: str, cli: str, played: Callable[[str, str, str], dict[str, Any]]
) -> None:
    """Whoever hosts and whatever CLI answers, hooks, permissions and tools have the same effect."""
    outcome = played(host, cli, scenario.session)

    expected = {name: getattr(scenario.expect, name) for name in scenario.expect.__struct_fields__}
    assert outcome.get(scenario.name, outcome.get("")) == expected


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("session", sorted({scenario.session for scenario in SCENARIOS}))
def test_every_session_ends_well(
    session: str, host: str, cli: str, played: Callable[[str, str, str], dict[str, Any]]
) -> None:
    """Nothing went wrong between the scenarios or after the last one."""
    assert played(host, cli, session).get("") is None
