"""A trusted hook runs what was looked at, or it does not run: verified at every run, by real processes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.events import PreToolUse, Stop
from hookline.processes import pipes
from hookline.runners.command import CommandRunner
from tests.settings.world import World, run

SCRIPT = "#!/bin/sh\necho ran >> ran.txt\n"
EVIL = "#!/bin/sh\ntouch evil\n"


def hooks(world: World, *plugins: Path) -> Hooks:
    """As `hookline run` has them: the files are not watched."""
    return Hooks.from_settings(
        world.project, home=world.home, managed=world.managed, trust=lambda status: True, trusted=world.trust,
        watch=False, plugin_dirs=plugins, env={**os.environ, "XDG_STATE_HOME": str(world.base / "state")},
    )  # fmt: skip


def event(world: World, cwd: str = "") -> PreToolUse:
    return PreToolUse(tool_name="Bash", tool_input={}, cwd=str(world.project / cwd))


def replace(path: Path, text: str) -> None:
    other = path.with_name("other")
    other.write_text(text)
    other.chmod(0o755)
    other.replace(path)


def same_stamp(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text.ljust(before.st_size, "#")[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


EDITS = {
    "written": lambda path: path.write_text(EVIL),
    "replaced": lambda path: replace(path, EVIL),
    "same size and time": lambda path: same_stamp(path, "#!/bin/sh\ntouch evil\n"),
    "removed": lambda path: path.unlink(),
    "a link": lambda path: (path.unlink(), path.symlink_to(path.parent / "evil.sh")),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("command", ["./guard.sh", "sh guard.sh", '"$CLAUDE_PROJECT_DIR"/guard.sh'])
async def test_a_script_that_changes_in_mid_session_does_not_run(world: World, edit: object, command: str) -> None:
    """It is refused, closed, however the edit was made, and although nobody watches the files."""
    script = world.write("proj/guard.sh", SCRIPT)
    script.chmod(0o755)
    world.write("proj/evil.sh", EVIL).chmod(0o755)
    world.write("proj/.claude/settings.json", run(command))
    async with hooks(world) as made:
        first = await made.fire(event(world))
        edit(script)  # type: ignore[operator]
        second = await made.fire(event(world))

    assert (first.blocked, second.blocked) == (False, True)
    assert "`guard.sh` has changed since it was trusted; run `hookline trust`" in second.reason
    assert not (world.project / "evil").exists()


@pytest.mark.parametrize("edited", ["one", "two"])
async def test_hooks_at_one_place_of_two_tables_keep_both_their_scripts(world: World, edited: str) -> None:
    """A plugin.json may hold several tables: an edit of any script is refused."""
    for name in ("one", "two"):
        world.write(f"plug/{name}.sh", SCRIPT)
    tables = [run(f'sh "${{CLAUDE_PLUGIN_ROOT}}/{name}.sh"')["hooks"] for name in ("one", "two")]
    world.write("plug/.claude-plugin/plugin.json", {"name": "p", "hooks": tables})

    async with hooks(world, world.base / "plug") as made:
        before = (await made.fire(event(world))).blocked
        world.write(f"plug/{edited}.sh", EVIL)
        verdict = await made.fire(event(world))

    assert len(made.hooks) == 2
    assert (before, (world.project / "evil").exists()) == (False, False)
    assert f"{edited}.sh` has changed since it was trusted" in str(verdict.outcomes)


async def test_an_observer_that_changed_fails_without_blocking(world: World) -> None:
    """There is nothing to block."""
    script = world.write("proj/guard.sh", SCRIPT)
    world.write("proj/.claude/settings.json", run("sh guard.sh", "Stop"))
    async with hooks(world) as made:
        script.write_text(EVIL)
        verdict = await made.fire(Stop(cwd=str(world.project)))

    assert not (world.project / "evil").exists()
    assert "has changed since it was trusted" in (verdict.outcomes[0].error or verdict.reason)


async def test_an_answer_does_not_count_if_the_script_changed_while_it_ran(world: World) -> None:
    """What ran may have been the edit: its approval opens nothing."""
    text = '#!/bin/sh\necho \'# more\' >> guard.sh\necho \'{"hookSpecificOutput": {"hookEventName": "PreToolUse", '
    text += '"permissionDecision": "allow"}}\'\n'
    world.write("proj/guard.sh", text)
    world.write("proj/.claude/settings.json", run("sh guard.sh"))
    async with hooks(world) as made:
        verdict = await made.fire(event(world))

    assert verdict.blocked
    assert "was changed while it ran" in verdict.reason


async def test_a_relative_name_means_the_trusted_file_or_nothing(world: World) -> None:
    """The agent may go into a folder where a script of the same name lies, which it wrote itself."""
    world.write("proj/guard.sh", SCRIPT)
    world.write("proj/sub/guard.sh", EVIL)
    world.write("proj/.claude/settings.json", run("sh ./guard.sh"))
    async with hooks(world) as made:
        verdict = await made.fire(event(world, "sub"))

    assert verdict.blocked
    assert not (world.project / "sub" / "evil").exists()


PLANTED = {
    "a shadow of the standard library": ("hooks/json.py", "open('evil', 'w')\n"),
    "a package": ("hooks/helper/__init__.py", "open('evil', 'w')\n"),
    "a start-up module": ("hooks/sitecustomize.py", "open('evil', 'w')\n"),
}


@pytest.mark.parametrize("path, text", PLANTED.values(), ids=PLANTED)
async def test_a_planted_module_is_refused(world: World, path: str, text: str) -> None:
    """A new file that an import would find is code that nobody looked at."""
    world.write("proj/hooks/a.py", "import json, helper\n")
    world.write("proj/hooks/helper.py", "")
    world.write("proj/.claude/settings.json", run("python3 hooks/a.py"))
    async with hooks(world) as made:
        first = await made.fire(event(world))
        world.write(f"proj/{path}", text)
        second = await made.fire(event(world))

    assert (first.blocked, second.blocked) == (False, True)
    assert not (world.project / "evil").exists()


@pytest.mark.parametrize("warm", ["0", "1"])
async def test_planted_byte_code_is_not_run(world: World, warm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte code beside a module that claims to be compiled from it: Python would believe it."""
    import importlib.util
    import marshal
    import sys

    monkeypatch.setenv("HOOKLINE_WARM", warm)
    world.write("proj/hooks/a.py", "import helper\nprint(helper.x)\n")
    helper = world.write("proj/hooks/helper.py", "x = 1\n")
    world.write("proj/.claude/settings.json", run(f"{sys.executable} hooks/a.py"))
    cached = Path(importlib.util.cache_from_source(str(helper)))
    stat = helper.stat()
    header = importlib.util.MAGIC_NUMBER + b"\0" * 4 + int(stat.st_mtime).to_bytes(4, "little")
    body = marshal.dumps(compile("open('evil', 'w'); x = 2\n", str(helper), "exec"))
    cached.parent.mkdir()
    cached.write_bytes(header + stat.st_size.to_bytes(4, "little") + body)
    async with hooks(world) as made:
        verdict = await made.fire(event(world))

    assert not verdict.blocked
    assert not (world.project / "evil").exists()


def _sources(name: str, *, asks: bool) -> dict[str, str]:
    """The files of a hook that leaves its mark as `name`; one that asks where it lies cannot be run from memory."""
    more = "d=$(dirname $0)\n" if asks else ""
    where = "import os\nos.path.dirname(__file__)\n" if asks else ""
    return {
        "a.sh": f"#!/bin/sh\n{more}touch {name}\nexit 0\n",
        "a.py": f"#!/usr/bin/env python3\n{where}import helper\nopen(helper.name, 'a').close()\n",
        "helper.py": f"name = '{name}'\n",
    }


def _rename(world: World, hooks: Path, evil: Path) -> None:
    hooks.rename(world.project / "kept")
    evil.rename(hooks)


def _rename_back(world: World, hooks: Path, evil: Path) -> None:
    hooks.rename(evil)
    (world.project / "kept").rename(hooks)
    (hooks / "more.log").touch()  # to make it look as if a name had been added


def _link(world: World, hooks: Path, evil: Path) -> None:
    new = world.project / "new"
    new.symlink_to(evil)
    new.replace(hooks)


def _link_back(world: World, hooks: Path, evil: Path) -> None:
    new = world.project / "new"
    new.symlink_to(world.project / "real")
    new.replace(hooks)


EXCHANGES = {"a folder": (_rename, _rename_back), "a link": (_link, _link_back)}
STARTED = ["sh hooks/a.sh", "./hooks/a.sh", "python3 hooks/a.py", "hooks/a.py", '"$CLAUDE_PROJECT_DIR"/hooks/a.sh']


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("asks", [False, True], ids=["from memory", "from its place"])
async def test_an_exchange_on_the_way_opens_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, exchange: str, *, asks: bool
) -> None:
    """Good when compared, evil when started, good again when looked at once more: a folder or a link on the path.

    A script that does not ask where it lies is started from the bytes that were compared: the evil one never runs.
    """
    there, back = EXCHANGES[exchange]
    original = pipes.start_process
    for number, line in enumerate(STARTED):
        here = World(world.base / str(number))
        for name, text in _sources("good", asks=asks).items():
            here.write(f"proj/{'real' if exchange == 'a link' else 'hooks'}/{name}", text).chmod(0o755)
        for name, text in _sources("evil", asks=asks).items():
            here.write(f"proj/evil-hooks/{name}", text).chmod(0o755)
        folder, evil = here.project / "hooks", here.project / "evil-hooks"
        if exchange == "a link":
            folder.symlink_to(here.project / "real")
        here.write("proj/.claude/settings.json", run(line))

        async def exchanged(
            *args: Any, here: World = here, folder: Path = folder, evil: Path = evil, **options: Any
        ) -> Any:
            there(here, folder, evil)
            process = await original(*args, **options)
            finish = process.finish

            async def finished() -> Any:
                result = await finish()
                back(here, folder, evil)
                return result

            monkeypatch.setattr(process, "finish", finished)
            return process

        async with hooks(here) as made:
            first = await made.fire(event(here))
            assert not first.blocked, (line, first.reason)
            assert (here.project / "good").exists(), line
            (here.project / "good").unlink()
            monkeypatch.setattr("hookline.runners.command.start_process", exchanged)
            second = await made.fire(event(here))
            monkeypatch.setattr("hookline.runners.command.start_process", original)

        assert second.blocked, line
        assert asks or not (here.project / "evil").exists(), line
        assert asks or (here.project / "good").exists(), line


async def test_a_trusted_python_script_runs_warm(world: World) -> None:
    """From the second run on, as any other Python script; what it imports is what was trusted with it."""
    text = f"#!{sys.executable}\nimport os, json, string, helper\n"
    text += "open('said', 'w').write(json.dumps([os.getppid(), helper.x, string.x]))\n"
    for name, source in {"a.py": text, "helper.py": "x = 1\n", "string.py": "x = 2\n"}.items():
        world.write(f"proj/hooks/{name}", source).chmod(0o755)
    for line in (f"{sys.executable} hooks/a.py", f"{sys.executable} -u hooks/a.py 1", "hooks/a.py"):
        world.write("proj/.claude/settings.json", run(line))
        async with hooks(world) as made:
            runner = made.engine.runners.of(made.hooks[0])
            assert isinstance(runner, CommandRunner)
            await made.fire(event(world))
            assert runner.warm is not None
            await runner.warm.warmed()
            verdict = await made.fire(event(world))
            parents = [parent.process.pid for parent in runner.warm.parents]

        assert not verdict.blocked, line
        assert json.loads((world.project / "said").read_text()) == [*parents, 1, 2], line


async def test_a_hook_that_writes_beside_itself_is_not_an_exchange(world: World) -> None:
    """A log in its own folder, or at the project's root, at every run."""
    texts = {"hooks/a.sh": "#!/bin/sh\ndate >> $(dirname $0)/$$.log\n", "b.sh": "#!/bin/sh\ndate > $$.log\n"}
    for path, text in texts.items():
        world.write(f"proj/{path}", text)
    for line in ("sh hooks/a.sh", "sh b.sh"):
        world.write("proj/.claude/settings.json", run(line))
        async with hooks(world) as made:
            for _ in range(2):
                verdict = await made.fire(event(world))
                assert not verdict.blocked, (line, verdict.reason)


POLICIES = {
    "cedar": ("policies/**/*.cedar", "permit(principal, action, resource);\n",
              "permit(principal, action, resource) when { true };\n"),
    "rego": ("policies/**/*.rego", 'package a\n\nimport rego.v1\n\ndeny contains "no" if input.tool_name == "X"\n',
             'package a\n\nimport rego.v1\n\ndeny contains "no" if input.tool_name == "Y"\n'),
}  # fmt: skip


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("edit", ["nothing", "written", "same stamp", "one more", "removed"])
async def test_policies_of_a_project_are_trusted_by_content(kind: str, edit: str, world: World) -> None:
    """An edited, added or removed policy file closes the gate until somebody has looked."""
    pattern, text, other = POLICIES[kind]
    entry = {"type": kind, "policies": pattern}
    world.write("proj/.claude/settings.json", {"hooks": {"PreToolUse": [{"hooks": [entry]}]}})
    file = world.write(f"proj/policies/deep/a.{kind}", text)
    world.write(f"proj/policies/b.{kind}", text.replace("package a", "package b"))
    made = hooks(world)
    if edit == "written":
        file.write_text(other)
    elif edit == "same stamp":
        same_stamp(file, other)
    elif edit == "one more":
        world.write(f"proj/policies/c.{kind}", text.replace("package a", "package c"))
    elif edit == "removed":
        file.unlink()
    verdict = await made.fire(event(world))

    assert verdict.blocked is (edit != "nothing")
    if edit != "nothing":
        assert "run `hookline trust` to look and decide" in verdict.reason
