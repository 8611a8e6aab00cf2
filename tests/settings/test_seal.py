"""A trusted hook runs what was looked at, or it does not run: verified at every run, by real processes."""

import os
from pathlib import Path

import pytest

from hookline import Hooks
from hookline.events import PreToolUse, Stop
from tests.settings.world import World, run

SCRIPT = "#!/bin/sh\necho ran >> ran.txt\n"
EVIL = "#!/bin/sh\ntouch evil\n"


def hooks(world: World) -> Hooks:
    """As `hookline run` has them: the files are not watched."""
    return Hooks.from_settings(
        world.project, home=world.home, managed=world.managed, trust=lambda status: True, trusted=world.trust,
        watch=False, env={**os.environ, "XDG_STATE_HOME": str(world.base / "state")},
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
