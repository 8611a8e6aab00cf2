"""The same script, the same settings, the same prompt: our agent acts as the real Claude CLI did.

All 398 recorded cases take minutes (`python tests/contract/compare.py "hookline run --trust"`), as do those that we
added (`compare_more.py`); here is one of each kind. Those where we differ on purpose are in
`tests/contract/deliberate.json`, with why.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CASES = [
    "pre_deny_reason",
    "exit_PreToolUse_exit2",
    "ups_block_next_turn",
    "permreq_setmode",
    "substop_context",
    "sdk_session",
    "events_compact",
    "defer_resume",
    "more/both_Stop_block_exit2",
    "more/both_TaskCreated_block_exit2",
    "more/skilltools_next_turn",
    "more/stop_always_block_tools",
]
FOLDER = Path(__file__).parents[1] / "contract"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The recorded contract's own harness, set to start our command."""
    command = tmp_path_factory.mktemp("cli") / "cli"
    python = shlex.quote(sys.executable)
    command.write_text(f'#!/bin/sh\nexec {python} -m hookline.cli.main run --trust "$@"\n')
    command.chmod(0o755)
    sys.path.insert(0, str(FOLDER))
    try:
        run_case, project = _module("run_case"), _module("project")
        run_case.CLI = str(command)  # type: ignore[attr-defined]
        yield run_case, project
    finally:
        sys.path.remove(str(FOLDER))


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unhurried(case: dict[str, Any]) -> dict[str, Any]:
    """With ten times the second that a host has to answer for a hook: on a busy machine it may not run for so long."""
    for step in case.get("sdk", {}).get("script", ()):
        for groups in step.get("control", {}).get("hooks", {}).values():
            for group in groups:
                if "timeout" in group:
                    group["timeout"] *= 10
    return {"limit": 200, **case}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the harness leaves its pipes to the collector
@pytest.mark.parametrize("name", CASES)
def test_the_agent_acts_as_the_real_cli_did(name: str, harness: tuple[Any, Any]) -> None:
    """The same hooks ran, the tools did the same, the same words reached the model in the same request."""
    run_case, project = harness
    folder, _, file = name.rpartition("/")
    case = unhurried(json.loads((FOLDER / folder / "cases" / f"{file}.json").read_text()))
    expected = json.loads((FOLDER / folder / "expected" / f"{file}.json").read_text())

    observed = project.project(run_case.run_case(case), case)

    assert project.differences(expected, observed) == {}
