"""Hooks that are Cedar or Rego policies, judged by the real engines."""

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Cedar, Hooks, Rego
from hookline.events import PostToolUse, PreToolUse, SessionStart
from hookline.replies import Decision
from hookline.settings.load import load
from hookline.testing import bash

CEDAR = """
@id("no-rm") @reason("rm is never allowed")
forbid(principal, action == Action::"PreToolUse", resource == Tool::"Bash")
when { context.tool_input has command && context.tool_input.command like "rm *" };

permit(principal, action, resource);
"""
REGO = """
package shell

import rego.v1

deny contains "rm is never allowed" if startswith(input.tool_input.command, "rm ")

ask contains "pushing is for people" if startswith(input.tool_input.command, "git push")

context contains "mind the gap" if input.tool_input.command == "ls"
"""


def hooks_of(folder: Path, action: Any, text: str, **options: Any) -> Hooks:
    """A set with one policy hook, whose files are in the folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"shell.{type(action).__name__.lower()}").write_text(text)
    hooks = Hooks(project_dir=str(folder))
    hooks.add(PreToolUse, action, name="policy", **options)
    return hooks


CASES = [(Cedar(policies="*.cedar"), CEDAR, "policy `no-rm` forbids it: rm is never allowed"),
         (Rego(policies="*.rego"), REGO, "policy `shell`: rm is never allowed")]  # fmt: skip


@pytest.mark.parametrize("action, text, reason", CASES, ids=["cedar", "rego"])
async def test_a_policy_denies_and_is_named(action: Any, text: str, reason: str, tmp_path: Path) -> None:
    """The verdict says which policy decided."""
    hooks = hooks_of(tmp_path, action, text)
    denied, passed = await hooks.fire(bash("rm -rf /")), await hooks.fire(bash("git status"))

    assert (denied.blocked, denied.reason, denied.decided_by) == (True, reason, "policy")
    assert (passed.blocked, passed.decision) == (False, Decision.PASS)


async def test_rego_may_ask_and_add_context(tmp_path: Path) -> None:
    """`ask` and `context` are sets like `deny`."""
    hooks = hooks_of(tmp_path, Rego(policies="*.rego"), REGO)

    asked = await hooks.fire(bash("git push"))
    assert (asked.decision, asked.reason) == (Decision.ASK, "policy `shell`: pushing is for people")
    assert (await hooks.fire(bash("ls"))).context == ("mind the gap",)


async def test_what_no_cedar_policy_permits_is_denied(tmp_path: Path) -> None:
    """Cedar's own rule: silence is no."""
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), CEDAR.replace("permit(principal, action, resource);", ""))

    assert (await hooks.fire(bash("ls"))).reason == "no policy permits `Bash` on PreToolUse"


@pytest.mark.parametrize(
    "action, text, problem",
    [
        (Cedar(policies="*.cedar"), "forbid(principal", "cannot parse `shell.cedar`"),
        (Cedar(policies="none/*.cedar"), CEDAR, "found no policy file for `none/*.cedar`"),
        (Cedar(policies="*.cedar", entities="none.json"), CEDAR, "cannot read entities `none.json`"),
        (
            Cedar(policies="*.cedar"),
            '@id("typo") forbid(principal, action, resource) when { context.nothing };',
            "could not evaluate its policies: error while evaluating policy `typo`",
        ),
        (Rego(policies="*.rego"), "package x\ndeny contains if {", "cannot parse `shell.rego`"),
        (Rego(policies="*.rego"), "deny := true", "`shell.rego` names no package"),
        (Rego(policies="none/*.rego"), REGO, "found no policy file for `none/*.rego`"),
        (Rego(policies="*.rego"), "package x\n\ndeny := true", "`deny` must be a set of texts"),
    ],
)
async def test_a_policy_that_fails_closes_the_gate(action: Any, text: str, problem: str, tmp_path: Path) -> None:
    """A broken, missing or failing policy denies, and says what is wrong."""
    verdict = await hooks_of(tmp_path, action, text).fire(bash("ls"))

    assert verdict.blocked
    assert problem in verdict.reason


async def test_a_policy_that_cannot_be_parsed_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Stdout belongs to the host's answer: whatever else stands there, the host may take for no answer at all."""
    await hooks_of(tmp_path, Rego(policies="*.rego"), "package x\ndeny contains if {").fire(bash("ls"))

    assert capfd.readouterr().out == ""


async def test_a_policy_after_a_template_keeps_its_name(tmp_path: Path) -> None:
    """Cedar counts templates, too; so it does over several files."""
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), CEDAR)
    (tmp_path / "a.cedar").write_text('@id("t") permit(principal == ?principal, action, resource);\n')
    denied = await hooks.fire(bash("rm -rf /"))

    assert denied.reason == "policy `no-rm` forbids it: rm is never allowed"


async def test_rego_may_be_written_in_the_old_style(tmp_path: Path) -> None:
    """`deny[text] { … }`, as policies of before 2024 have it."""
    text = 'package old\ndeny[text] { startswith(input.tool_input.command, "rm"); text := "no rm" }'
    hooks = hooks_of(tmp_path, Rego(policies="*.rego"), text)

    assert (await hooks.fire(bash("rm x"))).reason == "policy `old`: no rm"
    assert not (await hooks.fire(bash("ls"))).blocked


@pytest.mark.parametrize("action, text, reason", CASES, ids=["cedar", "rego"])
async def test_an_edited_policy_takes_effect(action: Any, text: str, reason: str, tmp_path: Path) -> None:
    """Files are read again when they change."""
    hooks = hooks_of(tmp_path, action, text)
    assert (await hooks.fire(bash("rm x"))).blocked
    (tmp_path / f"shell.{type(action).__name__.lower()}").write_text(text.replace("rm ", "mv -- "))

    assert not (await hooks.fire(bash("rm x"))).blocked


async def test_cedar_entities_are_groups(tmp_path: Path) -> None:
    """Entities say which tools belong together."""
    tmp_path.joinpath("entities.json").write_text(
        json.dumps(
            [{"uid": {"type": "Tool", "id": "Bash"}, "attrs": {}, "parents": [{"type": "Group", "id": "risky"}]}]
        )
    )
    text = 'forbid(principal, action, resource in Group::"risky"); permit(principal, action, resource);'
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar", entities="entities.json"), text)

    assert (await hooks.fire(bash("ls"))).reason == "policy `shell.cedar#1` forbids it"


async def test_values_that_cedar_does_not_have_are_no_failure(tmp_path: Path) -> None:
    """Null, fractions and huge numbers in an event do not close the gate by themselves."""
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), CEDAR)
    event = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "x": None, "y": 1.5, "z": 2**70, "l": [None, 1]})

    assert not (await hooks.fire(event)).blocked


async def test_policies_judge_events_without_a_tool(tmp_path: Path) -> None:
    """The resource is then the event."""
    hooks = Hooks(project_dir=str(tmp_path))
    (tmp_path / "s.cedar").write_text('forbid(principal, action, resource == Event::"SessionStart");')
    hooks.add(SessionStart, Cedar(policies="s.cedar"))

    assert (await hooks.fire(SessionStart())).reason == "policy `s.cedar#1` forbids it"


@pytest.mark.parametrize("kind, text", [("cedar", CEDAR), ("rego", REGO)])
async def test_settings_files_declare_policies(kind: str, text: str, tmp_path: Path) -> None:
    """`"type": "cedar"` beside command, http and prompt; a policy that fails blocks unless the entry says otherwise."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / f"shell.{kind}").write_text(text)
    entry = {"type": kind, "policies": f"policies/*.{kind}"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}], "PostToolUse": [{"hooks": [entry]}]}}
    loaded = load(tmp_path, settings=settings, setting_sources="", home=tmp_path, env={})
    hooks = Hooks.from_settings(tmp_path, settings=settings, setting_sources="", home=tmp_path, env={}, trust="all")

    assert [problem for problem in loaded.problems if problem.severity != "note"] == []
    assert (await hooks.fire(bash("rm -rf /"))).blocked
    (tmp_path / "policies" / f"shell.{kind}").unlink()
    assert (await hooks.fire(bash("ls"))).blocked
    assert not (await hooks.fire(PostToolUse(tool_name="Bash", tool_input={"command": "ls"}))).blocked


def test_a_missing_pattern_is_a_problem_of_the_file(tmp_path: Path) -> None:
    """The message says where, what, and what to write."""
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "cedar"}]}]}}
    loaded = load(tmp_path, settings=settings, setting_sources="", home=tmp_path, env={})

    assert any("`policies` is missing" in str(problem) for problem in loaded.problems)


async def test_two_files_of_one_name_both_count(tmp_path: Path) -> None:
    """A folder of teams, each with its `shell.cedar`."""
    for folder, text in (("a", CEDAR), ("b", "permit(principal, action, resource);")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shell.cedar").write_text(text)
    hooks = Hooks(project_dir=str(tmp_path))
    hooks.add(PreToolUse, Cedar(policies="**/*.cedar"))

    assert (await hooks.fire(bash("rm -rf /"))).blocked
