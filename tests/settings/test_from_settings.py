"""`Hooks.from_settings`: files in, verdicts out, with real commands."""

import logging
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.errors import UntrustedHooks
from hookline.events import PreToolUse, Stop, SubagentStop
from hookline.settings import Problem
from tests.environ import clean_environ
from tests.settings.world import World, run

BASH = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})
DENY = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", """
DENY += """"permissionDecisionReason": "%s"}}'"""


def hooks(world: World, **options: Any) -> Hooks:
    options = {"home": world.home, "managed": world.managed, **options}
    return Hooks.from_settings(world.project, **options)


async def test_hooks_of_files_judge_events(world: World) -> None:
    """A command in the user's settings denies; the verdict says which file it stands in."""
    world.write("home/.claude/settings.json", run(DENY % "no"))

    async with hooks(world) as made:
        verdict = await made.fire(BASH)

    assert (made.engine.order, verdict.blocked, verdict.reason) == ("parallel", True, "no")
    assert [o.source for o in verdict.outcomes] == ["~/.claude/settings.json: hooks.PreToolUse[0].hooks[0]"]


async def test_an_edit_takes_effect_with_the_next_event(world: World) -> None:
    """Also a broken one: it keeps the last good set and says so."""
    problems: list[Problem] = []
    world.write("home/.claude/settings.json", run(DENY % "one"))

    async with hooks(world, on_problem=problems.append) as made:
        reasons = [(await made.fire(BASH)).reason]
        world.write("home/.claude/settings.json", run(DENY % "two"))
        reasons.append((await made.fire(BASH)).reason)
        world.write("home/.claude/settings.json", "{")
        reasons.append((await made.fire(BASH)).reason)

    assert reasons == ["one", "two", "two"]
    assert [problem.message.endswith("the previous hooks stay in place") for problem in problems] == [True]


async def test_without_watch_an_edit_waits_for_refresh(world: World) -> None:
    """Who wants to decide when, does."""
    world.write("home/.claude/settings.json", run(DENY % "one"))

    async with hooks(world, watch=False) as made:
        world.write("home/.claude/settings.json", run(DENY % "two"))
        before = (await made.fire(BASH)).reason
        assert made.settings is not None
        made.settings.refresh()
        after = (await made.fire(BASH)).reason

    assert (before, after) == ("one", "two")


async def test_hooks_added_by_hand_survive_an_edit(world: World) -> None:
    """And keep their names; a file's hook of the same name gives way."""
    world.write("home/.claude/settings.json", run("true"))

    async with hooks(world) as made:
        made.add(PreToolUse, lambda event: deny("by hand"), name="guard")
        world.write("home/.claude/settings.json", run("true", name="guard"))
        verdict = await made.fire(BASH)

    assert [outcome.hook for outcome in verdict.outcomes] == ["guard#2", "guard"]
    assert verdict.reason == "by hand"


async def test_env_of_settings_reaches_hooks(world: World) -> None:
    """Over the environment they would have had."""
    world.write("home/.claude/settings.json", {**run(f"test $A = file && {DENY % 'seen'}"), "env": {"A": "file"}})

    async with hooks(world, env=clean_environ(world.home, A="outer")) as made:
        assert (await made.fire(BASH)).reason == "seen"


async def test_a_projects_hooks_need_trust(world: World) -> None:
    """Without it nothing is made; with it, or with `trust="all"`, they run."""
    world.write("proj/.claude/settings.json", run(DENY % "project"))
    with pytest.raises(UntrustedHooks, match="run `hookline trust`"):
        hooks(world)

    async with hooks(world, trust="all") as made:
        assert (await made.fire(BASH)).reason == "project"
    async with hooks(world, trust=lambda status: True) as made:
        assert (await made.fire(BASH)).reason == "project"
    async with hooks(world) as made:
        assert (await made.fire(BASH)).reason == "project"


async def test_a_script_edited_while_hooks_run_is_denied_not_run(world: World) -> None:
    """The gate closes, says why, and the new script has not been started."""
    script = world.write("proj/guard.sh", "#!/bin/sh\n")
    script.chmod(0o755)
    world.write("proj/.claude/settings.json", run("./guard.sh"))
    event = PreToolUse(tool_name="Bash", tool_input={}, cwd=str(world.project))

    async with hooks(world, trust=lambda status: True, on_problem=lambda _: None) as made:
        before = await made.fire(event)
        script.write_text("#!/bin/sh\ntouch started\n")
        verdict = await made.fire(event)

    assert (before.blocked, verdict.blocked) == (False, True)
    assert verdict.outcomes[0].error == (
        "was not run: `guard.sh` has changed since it was trusted; run `hookline trust` to look and decide"
    )
    assert not (world.project / "started").exists()


async def test_a_skills_hooks_may_be_added_and_are_refused_alike(world: World) -> None:
    """A host adds them when the skill is used; if their script changes they fail closed, and come back when trusted."""
    header = "---\nname: s\nhooks: {PreToolUse: [{hooks: [{type: command, command: ./s.sh}]}]}\n---\n"
    world.write("proj/.claude/skills/s/SKILL.md", header)
    script = world.write("proj/s.sh", "#!/bin/sh\n")
    script.chmod(0o755)
    event = PreToolUse(tool_name="Bash", tool_input={}, cwd=str(world.project))

    async with hooks(world, trust=lambda status: True, on_problem=lambda _: None) as made:
        assert made.settings is not None
        made.add(*made.settings.loaded.skills[0].hooks)
        blocked = [(await made.fire(event)).blocked]
        script.write_text("#!/bin/sh\ntrue\n")
        blocked.append((await made.fire(event)).blocked)
        world.trust.record(world.trust.status(world.load()).items)
        blocked.append((await made.fire(event)).blocked)

    assert blocked == [False, True, False]
    assert [hook.action for hook in made.hooks] == [hook.action for hook in made.settings.loaded.skills[0].hooks]


async def test_a_host_may_look_for_edits_itself(world: World) -> None:
    """Without `watch` an edit takes effect with `refresh`."""
    world.write("home/.claude/settings.json", run(DENY % "one"))

    async with hooks(world, watch=False) as made:
        world.write("home/.claude/settings.json", run(DENY % "two"))
        assert made.settings is not None
        before = (await made.fire(BASH)).reason
        made.settings.refresh()
        after = (await made.fire(BASH)).reason

    assert (before, after) == ("one", "two")


def test_a_set_without_files_has_nothing_to_refresh() -> None:
    """Sets made in code stay as they are."""
    assert Hooks().settings is None


async def test_a_relative_project_stays_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may change its folder afterwards."""
    world.write("flag.json", run(DENY % "flag"))
    monkeypatch.chdir(world.base)
    made = Hooks.from_settings("proj", home="home", managed=world.managed, settings="flag.json")
    monkeypatch.chdir(Path("/"))

    world.write("flag.json", run(DENY % "new"))
    async with made:
        assert (await made.fire(BASH)).reason == "new"


async def test_an_agents_hooks_run_while_it_runs(world: World) -> None:
    """Its Stop is the SubagentStop of that agent alone, and the Stop of a session that is that agent."""
    header = "---\nname: rev\nhooks: {Stop: [{hooks: [{type: command, command: 'true'}]}]}\n---\n"
    world.write("home/.claude/agents/rev.md", header)

    async with hooks(world) as made:
        ran = [len((await made.fire(SubagentStop(agent_id="1", agent_type=a))).outcomes) for a in ("rev", "other")]
        ran += [len((await made.fire(Stop(agent_type=a))).outcomes) for a in ("rev", None)]

    assert ran == [1, 0, 1, 0]


def test_problems_are_logged_unless_somebody_wants_them(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Errors as warnings of `hookline.settings`."""
    world.write("home/.claude/settings.json", run("x", timeout="30s"))

    with caplog.at_level(logging.WARNING, logger="hookline.settings"):
        made = hooks(world)

    assert [record.getMessage() for record in caplog.records] == [str(p) for p in made.settings.loaded.problems]  # type: ignore[union-attr]
