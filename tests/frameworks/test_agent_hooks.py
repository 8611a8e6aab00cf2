"""AGENT-HOOKS-0.1: our agent as a host passes the conformance kit; our hooks work in other hosts."""

import re
from typing import Any

import pytest

from tests.frameworks.plays import played
from tools.frameworks import ROOT, is_ready, run_in

DOCS = ROOT / "docs" / "how-to" / "agent-hooks.md"
OPTIONS = ("-q", "-c", "/dev/null", "--noconftest", "--rootdir", ".", "-p", "no:cacheprovider")
KIT = ("-m", "pytest", *OPTIONS, "tests/frameworks/vectors.py")
MISSING = "the environment `agent-hooks` is not there; run `make frameworks`"
HARNESS = "--agent-hooks-harness=tests.frameworks.conformance:HooklineHarness"


def run(*arguments: str) -> str:
    if not is_ready("agent-hooks"):
        pytest.skip(MISSING)
    done = run_in("agent-hooks", *arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_agent_passes_the_conformance_kit() -> None:
    """All vectors pass but those for streaming released in pieces, which the agent does not claim to do."""
    printed = run(*KIT, HARNESS, "-rs")
    skipped = re.findall(r"^SKIPPED \[(\d+)\] .*?: (.*)$", printed, re.MULTILINE)

    assert "71 passed, 4 skipped" in printed
    assert skipped == [("4", 'missing capabilities: ["incremental_output"]')]


def test_the_documented_closing_line_is_the_kits_own() -> None:
    """The page shows the command and what it prints at the end."""
    assert "71 passed, 4 skipped" in DOCS.read_text()


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    if not is_ready("agent-hooks"):
        pytest.skip(MISSING)
    facts: dict[str, Any] = played("agent-hooks", "agent_hooks_host")
    return facts


@pytest.mark.parametrize(
    "name, outcome, calls, denied",
    [
        ("nothing", "completed", ["ls"], []),
        ("deny", "completed", [], ["NO_X"]),
        ("rewrite", "completed", ["ls -la"], []),
        ("prompt", "blocked", [], ["NO_X"]),
        ("ask_nobody", "completed", [], ["WHY_X"]),
        ("ask_resolver", "completed", ["ls"], []),
        ("deny_resolver", "completed", [], ["NO_X"]),
        ("evaluate_only", "completed", ["ls"], ["NO_X"]),
    ],
)
def test_hooks_decide_in_another_host(
    name: str, outcome: str, calls: list[str], denied: list[str], seen: dict[str, Any]
) -> None:
    """A deny is final, an ask can be lifted by the host's resolver, and `evaluate_only` only records."""
    facts = seen[name]

    assert (facts["outcome"], facts["calls"], facts["denied"]) == (outcome, calls, denied)


def test_a_hook_that_raises_denies_in_another_host(seen: dict[str, Any]) -> None:
    """The gate stays closed, and the record says why."""
    assert seen["raises"]["calls"] == []
    assert "RuntimeError: boom" in seen["raises"]["denied"][0]


def test_context_is_a_warning_and_an_output_is_replaced(seen: dict[str, Any]) -> None:
    """What hooks add is on the record; what they replace is what the host goes on with."""
    assert seen["context"]["warned"] == ["CTX_X"]
    assert seen["output"]["final"] == "FINAL_X"
    assert seen["replace"]["outcome"] == "completed"
