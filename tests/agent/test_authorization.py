"""Who says whether a call may run: every PermissionRequest hook is heard before anybody else is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.agent import PermissionQuestion
from hookline.events import PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse
from hookline.guards import commands, paths
from hookline.guards.permissions import read_rules
from hookline.guards.sandboxing import unavailable
from hookline.replies import Reply, allow, ask, deny, rewrite, stop
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
    asked: list[PermissionQuestion] = []

    async def can_use_tool(ask: PermissionQuestion) -> bool:
        asked.append(ask)
        return True

    options: dict[str, Any] = {"hooks": hooks_that(*answers), "rules": read_rules({}), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, ONCE, "done", **options) as agent:
        await agent.run("go")

    assert ((tmp_path / "out.txt").exists(), bool(asked)) == (runs, asks_host)


async def test_permission_hooks_are_heard_when_another_hook_asks_and_a_host_is_there(tmp_path: Path) -> None:
    """As in Claude Code, where both are asked; without a host the answer is no (`ask_then_permreq`)."""
    for host, answer, runs in ((True, deny("no"), False), (True, None, True), (False, allow(), False)):
        hooks = hooks_that((0, answer))
        hooks.add(PreToolUse, lambda event: ask("sure?"), name="asks")
        folder = tmp_path / f"{host}-{answer is None}"
        folder.mkdir()

        async def agree(question: PermissionQuestion) -> bool:
            return True

        async with agent_on(folder, ONCE, "done", hooks=hooks, can_use_tool=agree if host else None) as agent:
            await agent.run("go")

        assert (folder / "out.txt").exists() is runs, (host, answer)


@pytest.mark.parametrize("host", [True, False])
async def test_a_hook_that_fails_closed_is_a_no_whatever_the_host_says(host: bool, tmp_path: Path) -> None:
    """PermissionRequest is a gate: a crash there is a deny, and the host does not get to overrule it."""
    hooks = Hooks()

    async def broken(event: PermissionRequest) -> None:
        raise RuntimeError("lost")

    hooks.add(PermissionRequest, broken, name="broken")

    async def can_use_tool(ask: PermissionQuestion) -> bool:
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

    async def can_use_tool(ask: PermissionQuestion) -> Reply:
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
    asked: list[PermissionQuestion] = []

    async def can_use_tool(ask: PermissionQuestion) -> bool:
        asked.append(ask)
        return True

    hooks = Hooks()
    hooks.add(commands.block(["sudo *"], confine="auto"))
    options: dict[str, Any] = {"hooks": hooks, "rules": read_rules(rules), "can_use_tool": can_use_tool}
    async with agent_on(tmp_path, bash(line), "done", **options) as agent:
        await agent.run("go")

    assert ((tmp_path / "made").exists(), bool(asked)) == (runs, asks)
    assert [ask.suggestions[0]["rules"] for ask in asked] == [[{"toolName": "Bash", "ruleContent": "touch *"}]] * asks


OUTSIDE = bash('python3 -c \'open("../outside", "w")\'; touch made')
MORE = "; $(printf %s chmod) 777 made; true"
CHMOD = bash("touch made; $(printf %s chmod) 777 made; true")


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")
@pytest.mark.parametrize(
    "guard, call, said",
    [
        (paths.stay_inside(), OUTSIDE, "(paths.stay_inside)"),
        (commands.block(["chmod 777 *"]), CHMOD, "the pattern `chmod 777 *` (commands.block)"),
    ],
    ids=["paths", "commands"],
)
async def test_with_a_guard_lines_run_confined_by_default(
    guard: Any, call: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is asked about what the text does not tell; the kernel holds it, and the model reads why."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    hooks = Hooks(project_dir=str(project))
    hooks.add(guard)
    after: list[str] = []
    hooks.add(PostToolUse, lambda event: after.append(str(event.tool_response)))
    async with agent_on(project, call, "done", hooks=hooks, permission_mode="bypassPermissions") as agent:
        await agent.run("go")

    assert ((project / "made").exists(), (tmp_path / "outside").exists()) == (True, False)
    assert said in after[0]


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")
async def test_a_confined_line_can_still_be_rewritten_and_shows_as_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two guards hold it and another hook rewrites it: all three count, and every hook sees the plain line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    hooks = Hooks(project_dir=str(project))
    hooks.add(paths.stay_inside())
    hooks.add(commands.block(["chmod 777 *"]))

    def more(event: PreToolUse) -> Reply | None:
        line = event.tool_input["command"]
        return None if line.endswith(MORE) else rewrite({"command": line + MORE})

    hooks.add(PreToolUse, more)
    ran: list[str] = []
    hooks.add(PostToolUse, lambda event: ran.append(f"{event.tool_input['command']}\n{event.tool_response}"))
    hooks.add(PostToolUseFailure, lambda event: ran.append(f"{event.tool_input['command']}\n{event.error}"))
    async with agent_on(project, OUTSIDE, "done", hooks=hooks, permission_mode="bypassPermissions") as agent:
        await agent.run("go")

    assert ran[0].startswith("python3 -c")
    assert f"{MORE}\n" in ran[0]
    assert "(paths.stay_inside)" in ran[0]
    assert "(commands.block)" in ran[0]
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("options", [{"confine": False}, {"guard": "off"}], ids=["agent", "guard"])
async def test_confinement_can_be_turned_off(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then what the text does not tell is asked about."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked: list[str] = []

    async def can_use_tool(ask: PermissionQuestion) -> bool:
        asked.append(ask.input["command"])
        return False

    hooks = Hooks(project_dir=str(tmp_path))
    hooks.add(paths.stay_inside(confine=options.pop("guard", None)))
    async with agent_on(tmp_path, OUTSIDE, "done", hooks=hooks, can_use_tool=can_use_tool, **options) as agent:
        await agent.run("go")

    assert len(asked) == 1
    assert asked[0].startswith("python3 -c")
