"""Who says whether a call may run: every PermissionRequest hook is heard before anybody else is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.agent import Ask
from hookline.events import PermissionRequest, PreToolUse
from hookline.guards import commands
from hookline.guards.confining import unavailable
from hookline.permissions import read_rules
from hookline.replies import Reply, allow, deny, rewrite, stop
from tests.agent.driving import agent_on, bash, requests_of, results

ONCE = bash("echo ran > out.txt")


def hooks_that(*answers: tuple[float, Reply | None]) -> Hooks:
    """Hooks at once, each with its answer after so many turns of the loop."""
    hooks = Hooks(order="parallel")
    for number, (turns, answer) in enumerate(answers):

        async def hook(event: PermissionRequest, turns: float = turns, answer: Reply | None = answer) -> Reply | None:
            for _ in range(int(turns)):
                await asyncio.sleep(0)
            return answer

        hooks.add(PermissionRequest, hook, name=f"hook {number}")
    return hooks


@pytest.mark.parametrize(
    "answers, runs, asks_host",
    [
        ([(0, None)], True, True),
        ([(50, deny("no"))], False, False),
        ([(0, allow()), (50, deny("no"))], False, False),
        ([(50, deny("no")), (0, allow())], False, False),
        ([(50, stop("enough"))], False, False),
        ([(0, allow()), (50, stop("enough"))], False, False),
        ([(50, allow())], True, False),
        ([(0, None), (50, allow()), (10, None)], True, False),
    ],
)
async def test_a_quick_host_outruns_no_hook(
    answers: list[tuple[float, Reply | None]], runs: bool, asks_host: bool, tmp_path: Path
) -> None:
    """The strictest hook decides, however late it answers; where hooks decide, nobody else is asked."""
    asked: list[Ask] = []

    async def can_use_tool(ask: Ask) -> bool:
        asked.append(ask)
        return True

    options: dict[str, Any] = {"hooks": hooks_that(*answers), "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        await agent.run("go")

    assert ((tmp_path / "out.txt").exists(), bool(asked)) == (runs, asks_host)


@pytest.mark.parametrize(
    "hook, host, runs",
    [
        ((500, allow()), (0, False), False),
        ((5, allow()), (500, False), True),
        ((5, deny("no")), (500, True), False),
        ((5, deny("no")), (0, True), False),
        ((5, None), (0, True), True),
        ((0, None), (5, False), False),
        ((0, stop("enough")), (5, True), False),
    ],
)
async def test_a_host_that_takes_questions_back_is_asked_beside_the_hooks(
    hook: tuple[int, Reply | None], host: tuple[int, bool], runs: bool, tmp_path: Path
) -> None:
    """Its no counts at once, and its yes once no hook says no; whoever was not needed is not waited for."""

    async def can_use_tool(ask: Ask) -> bool:
        for _ in range(host[0]):
            await asyncio.sleep(0)
        return host[1]

    options: dict[str, Any] = {"hooks": hooks_that(hook), "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        agent.session.policy.withdraws = True
        await agent.run("go")

    assert (tmp_path / "out.txt").exists() is runs


@pytest.mark.parametrize("ends", [True, False], ids=["in time", "never"])
async def test_a_hook_that_the_host_outran_runs_to_its_end_or_to_the_sessions(ends: bool, tmp_path: Path) -> None:
    """Nothing is killed because somebody else answered first; nothing is left when the session ends."""
    began, refused, seen = asyncio.Event(), asyncio.Event(), []
    hooks = Hooks()

    async def slow(event: PermissionRequest) -> None:
        began.set()
        try:
            await (refused.wait() if ends else asyncio.Event().wait())
            seen.append("ended")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    hooks.add(PermissionRequest, slow, name="slow")

    async def can_use_tool(ask: Ask) -> bool:
        await began.wait()
        return False

    options: dict[str, Any] = {"hooks": hooks, "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        agent.session.policy.withdraws = True
        await agent.run("go")
        before = list(seen)
        refused.set()
        if ends:
            await asyncio.gather(*agent.session.outrun)

    assert (before, seen) == ([], ["ended" if ends else "cancelled"])
    assert not agent.session.outrun


@pytest.mark.parametrize("host", [True, False])
async def test_a_hook_that_fails_closed_is_a_no_whatever_the_host_says(host: bool, tmp_path: Path) -> None:
    """PermissionRequest is a gate: a crash there is a deny, and the host does not get to overrule it."""
    hooks = Hooks()

    async def broken(event: PermissionRequest) -> None:
        raise RuntimeError("lost")

    hooks.add(PermissionRequest, broken, name="broken")

    async def can_use_tool(ask: Ask) -> bool:
        return host

    options: dict[str, Any] = {"hooks": hooks, "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        await agent.run("go")
        answer = results(requests_of(agent)[-1])[0]

    assert not (tmp_path / "out.txt").exists()
    assert answer.is_error
    assert "broken" in str(answer.content)


async def test_a_host_that_says_no_is_heard_where_hooks_say_nothing(tmp_path: Path) -> None:
    """Nobody decided before it."""

    async def can_use_tool(ask: Ask) -> Reply:
        return deny("not today")

    options: dict[str, Any] = {"hooks": hooks_that((5, None)), "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        await agent.run("go")
        answer = results(requests_of(agent)[-1])[0]

    assert "not today" in str(answer.content)


async def test_a_refusal_by_a_rule_names_the_line_that_was_judged(tmp_path: Path) -> None:
    """A hook may have put it in place of the one the model wrote, which would look for the fault there."""
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: rewrite({"command": "touch other"}), name="swap")
    options: dict[str, Any] = {"hooks": hooks, "rules": read_rules({"deny": ["Bash(touch *)"]}, allowed=["Bash"])}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        await agent.run("go")
        answer = results(requests_of(agent)[-1])[0]

    assert "touch other" in str(answer.content)


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")
@pytest.mark.parametrize(
    "rules, line, runs, asks",
    [
        ({"deny": ["Bash(touch:*)"], "allow": ["Bash"]}, "touch made", False, False),
        ({"deny": ["Bash(touch:*)"], "allow": ["Bash"]}, "true; touch made", False, False),
        ({"ask": ["Bash(touch:*)"], "allow": ["Bash"]}, "touch made", True, True),
        ({"allow": ["Bash(touch:*)"]}, "touch made", True, False),
        ({"allow": ["Bash(ls:*)"]}, "touch made", True, True),
    ],
)
async def test_rules_speak_of_the_line_that_a_guard_confines(
    rules: dict[str, Any], line: str, runs: bool, asks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a guard puts around a line hides it from no rule, and what is suggested is a rule for the line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked: list[Ask] = []

    async def can_use_tool(ask: Ask) -> bool:
        asked.append(ask)
        return True

    hooks = Hooks()
    hooks.add(commands.block(["sudo *"], confine="auto"))
    options: dict[str, Any] = {"hooks": hooks, "rules": read_rules(rules), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, bash(line), "done", **options) as agent:
        await agent.run("go")

    assert ((tmp_path / "made").exists(), bool(asked)) == (runs, asks)
    assert [ask.suggestions[0]["rules"] for ask in asked] == [[{"toolName": "Bash", "ruleContent": "touch *"}]] * asks
