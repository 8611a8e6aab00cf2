"""Hooks that are Cedar or Rego policies, judged by the real engines."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Cedar, Hooks, Rego
from hookline.core.engine import Status
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
    """Null and fractions in an event do not close the gate by themselves."""
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), CEDAR)
    event = PreToolUse(tool_name="Bash", tool_input={"command": "ls", "x": None, "y": 1.5, "z": 2**62, "l": [None, 1]})

    assert not (await hooks.fire(event)).blocked


PORT = """
forbid(principal, action, resource)
when { context.tool_input has port && context.tool_input.port == 22 };
forbid(principal, action, resource)
when { context.tool_input has user && context.tool_input.user == User::"root" };
forbid(principal, action, resource)
when { context.tool_input has ratio && context.tool_input.ratio.greaterThan(decimal("0.5")) };
permit(principal, action, resource);
"""


async def test_cedar_compares_the_numbers_that_the_tool_gets(tmp_path: Path) -> None:
    """`22.0` is the number 22, a fraction is a decimal, and what Cedar cannot hold is denied rather than a text."""
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), PORT)
    blocked: list[dict[str, Any]] = [
        {"port": 22}, {"port": 22.0}, {"port": 2.2e1}, {"ratio": 0.75}, {"ratio": 0.50001}, {"port": 2**64},
        {"port": -(2**63) - 1}, {"port": 1e300}, {"port": 10**400}, {"deep": [{"n": float("inf")}]},
    ]  # fmt: skip
    passed: list[dict[str, Any]] = [
        {"port": 23}, {"port": 23.0}, {"ratio": 0.25}, {"ratio": -0.0001}, {"port": -(2**63)}, {"on": True},
    ]  # fmt: skip
    for given in blocked:
        verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input=given))
        assert verdict.blocked, given
    for given in passed:
        verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input=given))
        assert not verdict.blocked, (given, verdict.reason)


async def test_an_argument_of_a_tool_is_never_an_entity(tmp_path: Path) -> None:
    """A model that writes Cedar's own JSON cannot make an entity or a decimal of it."""
    text = 'permit(principal, action, resource) when { context.tool_input.owner == User::"alice" };'
    hooks = hooks_of(tmp_path, Cedar(policies="*.cedar"), text)
    alice = {"type": "User", "id": "alice"}
    forged = ({"__entity": alice}, {"__extn": {"fn": "decimal", "arg": "1.0"}}, {"__expr": 'User::"alice"'})
    for owner in (*forged, [forged[0]], {"a": forged[0]}, alice):
        verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"owner": owner}))
        assert verdict.blocked, owner


async def test_an_event_in_fractions_of_milliseconds_is_judged(tmp_path: Path) -> None:
    """Only what the model wrote has to be exact."""
    hooks = Hooks(project_dir=str(tmp_path))
    (tmp_path / "s.cedar").write_text("permit(principal, action, resource);")
    hooks.add(PostToolUse, Cedar(policies="s.cedar"), on_failure="block")
    response = {"score": 0.123456789, "big": 2**70}
    event = PostToolUse(tool_name="x", tool_input={}, tool_response=response, duration_ms=1.23456789)

    assert [outcome.error for outcome in (await hooks.fire(event)).outcomes] == [None]


REFUSED = {
    "default allow := false": "has none of the rules that are read",
    "allow if input.tool_input.command": "has none of the rules that are read",
    'violation contains {"msg": m} if { m := "no" }': "has none of the rules that are read",
    'dny contains "no" if true': "has none of the rules that are read",
    '# deny contains "no" if true': "has none of the rules that are read",
    'note := `\ndeny contains "no"\n`': "has none of the rules that are read",
    'deny contains "no" if input.x\n\ndefault allow := false': "nothing reads the rule `allow`",
    'ask contains "no" if input.x\n\ndney contains "no" if true': "nothing reads the rule `dney`; did you mean `deny`",
    'deny_rm contains "no" if true\n\ndeny contains "a" if input.x': "nothing reads the rule `deny_rm`",
    'deny contains m if { r := http.send({"url": "http://x"}); m := r.body }': "calls `http.send`",
    'deny contains "a" if net.lookup_ip_addr("x")': "calls `net.lookup_ip_addr`",
    'deny contains "a" if to_number(input.tool_name) > 1': "a built-in function failed",
    'deny contains "a" if 1 / 0 > 1': "could not evaluate package `x`",
    'deny contains "a" if nosuch(1)': "could not evaluate package `x`",
    'deny := {"msg": "no"}': "`deny` must be a set of texts",
    "deny contains 1 if true": "`deny` must be a set of texts",
    "deny := false": "`deny` must be a set of texts",
}
ACCEPTED = (
    'is_rm if startswith(input.tool_input.command, "rm")\n\ndeny contains "no" if is_rm',
    'deny contains msg if {\n    input.tool_input.command == "rm"\n    msg := sprintf("no %s", ["rm"])\n}',
    'names := {"rm"}\n\ndeny contains "no" if input.tool_input.command in names',
    'verb(line) := split(line, " ")[0]\n\ndeny contains "no" if verb(input.tool_input.command) == "rm"',
    'deny contains "no" if\n    input.tool_input.command == "rm"',
    'deny contains "no" if input.x\n\ntest_nothing if count(deny) == 0',
    'import data.names.verbs as all\n\ndeny contains "no" if input.tool_input.command in all',
)


async def test_a_rego_package_whose_answer_is_never_read_closes_the_gate(tmp_path: Path) -> None:
    """`allow`, `violation`, a misspelt `deny` and functions that are not there would let everything through."""
    for number, (rules, problem) in enumerate(REFUSED.items()):
        hooks = hooks_of(tmp_path / str(number), Rego(policies="*.rego"), f"package x\n\nimport rego.v1\n\n{rules}\n")
        verdict = await hooks.fire(bash("ls"))
        assert verdict.blocked, rules
        assert problem in verdict.reason, rules


async def test_helpers_of_a_rego_package_are_fine(tmp_path: Path) -> None:
    """Rules, sets and functions that answers use, tests, and packages that others import."""
    for number, rules in enumerate(ACCEPTED):
        folder = tmp_path / str(number)
        hooks = hooks_of(folder, Rego(policies="*.rego"), f"package x\n\nimport rego.v1\n\n{rules}\n")
        if "data.names" in rules:
            (folder / "names.rego").write_text('package names\n\nverbs := {"rm"}\n')
        verdict = await hooks.fire(bash("ls"))
        assert not verdict.blocked, (rules, verdict.reason)


async def test_a_rego_policy_past_its_timeout_does_not_hold_the_loop(tmp_path: Path) -> None:
    """It is given up on, everything else goes on, and the next event gets an interpreter that is free."""
    slow = (
        'package x\nimport rego.v1\ndeny contains "no" if { input.tool_input.command == "slow"; '
        "count([1 | some i in numbers.range(1, 1000); some j in numbers.range(1, 1000); i * j == 7]) == 9 }"
    )
    hooks = hooks_of(tmp_path, Rego(policies="*.rego"), slow, timeout=0.3)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    verdict = await hooks.fire(bash("slow"))
    counting.cancel()

    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert verdict.blocked
    assert turns > 10
    assert not (await hooks.fire(bash("ls"))).blocked


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
