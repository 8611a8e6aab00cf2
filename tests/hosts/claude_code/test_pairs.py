"""Every host with every CLI: the same scenarios, the same outcome, on a scripted API."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.claude_code.find import bundled_cli
from tests.hosts.claude_code.hosts import HOSTS, Seen, Stage, missing, stage_for
from tests.hosts.claude_code.scenarios import SCENARIOS, Scenario


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


@pytest.fixture
def stage(tmp_path: Path, api: Any, request: pytest.FixtureRequest) -> Stage:
    cli = CLIS[request.param](tmp_path)
    return stage_for(cli, tmp_path, api)


def said_to_model(api: Any) -> list[list[Any]]:
    """The messages of each request of the main conversation, without what the model said itself."""
    requests = [one["request"] for one in api.requests if one["lane"] == "main"]
    return [[message for message in one["messages"] if message["role"] != "assistant"] for one in requests]


def tool_errors(api: Any) -> list[bool]:
    last = said_to_model(api)[-1:] or [[]]
    blocks = [block for message in last[0] if isinstance(message["content"], list) for block in message["content"]]
    return [bool(block.get("is_error")) for block in blocks if block.get("type") == "tool_result"]


def observed(scenario: Scenario, seen: Seen, stage: Stage, api: Any) -> dict[str, Any]:
    """What happened, in the words of `Expect`."""
    requests = said_to_model(api)
    files = {path.name: path.read_text() for path in Path(stage.cwd).iterdir() if path.is_file()}
    return {
        "files": files,
        "results": seen.results,
        "hooks": seen.hooks,
        "reached_model": [word for word in scenario.expect.reached_model if re.search(word, str(requests))],
        "tool_errors": tool_errors(api) if scenario.expect.tool_errors else [],
        "model_requests": len(requests) if scenario.expect.model_requests is not None else None,
        "asked": seen.asked,
        "mcp_calls": seen.mcp_calls,
        "cancelled": seen.cancelled,
    }


@pytest.mark.parametrize("stage", CLIS, indirect=True)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_every_pair_does_what_the_scenario_says(scenario: Scenario, host: str, stage: Stage, api: Any) -> None:
    """Whoever hosts and whatever CLI answers, hooks, permissions and tools have the same effect."""
    reason = missing(host)
    if reason:
        pytest.skip(reason)
    api.main["turns"] = scenario.model

    seen = await HOSTS[host](scenario, stage)

    expected = {name: getattr(scenario.expect, name) for name in scenario.expect.__struct_fields__}
    assert observed(scenario, seen, stage, api) == expected
