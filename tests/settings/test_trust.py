"""Somebody else's hooks run only when they have been looked at."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import ConfigError, UntrustedHooks
from hookline.settings import LoadedSettings, Status, Trust
from hookline.settings.trust.store import ensure, items_of, trust_file
from tests.settings.world import World, run


def trusted(world: World, **options: Any) -> LoadedSettings:
    """Load, and trust everything there is."""
    loaded = world.load(**options)
    world.trust.record(world.trust.status(loaded).items)
    return loaded


def status(world: World, **options: Any) -> Status:
    return world.trust.status(world.load(**options))


def project(world: World, **more: Any) -> None:
    world.write("proj/.claude/settings.json", {**run("python hooks/guard.py"), **more})
    world.write("proj/hooks/guard.py", "print(1)\n")


def test_what_was_trusted_stays_trusted(world: World) -> None:
    """Until something changes, nobody asks again."""
    project(world)
    assert not status(world).trusted

    trusted(world)
    assert status(world).trusted
    ensured = ensure(world.load(), "error", world.trust)
    assert [hook.name for hook in ensured.hooks] == [hook.name for hook in world.load().hooks]


@pytest.mark.parametrize("where", ["home/.claude/settings.json", "etc/managed-settings.json", "flag.json"])
def test_ones_own_settings_need_no_trust(world: World, where: str) -> None:
    """User, managed and `--settings` files could run anything anyway."""
    file = world.write(where, run("x"))
    loaded = world.load(settings=file if where == "flag.json" else None)

    assert (items_of(loaded), [h.name for h in ensure(loaded, "error", world.trust).hooks]) == ((), ["x"])


def foreign(world: World) -> dict[str, Any]:
    header = "---\nname: a\nhooks: {Stop: [{hooks: [{type: command, command: x}]}]}\n---\n"
    return {
        "proj/.claude/settings.json": run("x"),
        "proj/.claude/settings.local.json": run("x"),
        "proj/.claude/agents/a.md": header,
        "proj/.claude/skills/a/SKILL.md": header,
        "plug/hooks/hooks.json": run("x"),
        "plug/.claude-plugin/plugin.json": {"name": "p", "hooks": run("x")["hooks"]},
    }


@pytest.mark.parametrize("where", list(foreign(World(Path()))))
def test_hooks_of_projects_and_plugins_need_trust(world: World, where: str) -> None:
    """Settings, local settings, agents' and skills' headers, plugins: an error that names the file and the command."""
    world.write(where, foreign(world)[where])
    loaded = world.load(plugin_dirs=[world.base / "plug"] if where.startswith("plug") else [])

    with pytest.raises(UntrustedHooks) as caught:
        ensure(loaded, "error", world.trust)
    assert caught.value.where == loaded.places.label(world.base / where)
    assert str(caught.value).endswith(
        "1 hook that is not trusted yet, so nothing was run; run `hookline trust` to look and decide, "
        "or pass `--trust` if you know what they do"
    )


def test_a_header_in_the_users_own_folder_needs_none(world: World) -> None:
    """It is the user's own."""
    world.write(
        "home/.claude/agents/a.md", "---\nname: a\nhooks: {Stop: [{hooks: [{type: command, command: x}]}]}\n---\n"
    )

    assert [hook.name for hook in ensure(world.load(), "error", world.trust).hooks] == ["x"]


def test_an_edited_definition_asks_again_and_shows_the_difference(world: World) -> None:
    """The trusted text is kept, so the change can be read."""
    project(world)
    trusted(world)
    world.write("proj/.claude/settings.json", run("python hooks/guard.py; curl evil"))

    [change] = status(world).changes
    assert (change.kind, change.path) == ("changed", str(world.project / ".claude" / "settings.json"))
    assert '-            "command": "python hooks/guard.py"' in change.diff.splitlines()
    assert '+            "command": "python hooks/guard.py; curl evil"' in change.diff.splitlines()
    with pytest.raises(UntrustedHooks, match=r"changed after being trusted \(\.claude/settings\.json\)"):
        ensure(world.load(), "error", world.trust)


def test_an_edited_script_asks_again_and_shows_the_difference(world: World) -> None:
    """What is trusted is what runs."""
    project(world)
    trusted(world)
    script = world.write("proj/hooks/guard.py", "print(2)\n")

    [change] = status(world).changes
    assert (change.kind, change.path) == ("changed", str(script))
    assert change.diff.splitlines()[2:] == ["@@ -1 +1 @@", "-print(1)", "+print(2)"]


def test_a_script_that_appears_or_goes_asks_again(world: World) -> None:
    """A module beside a script is imported by it: a new one is new code."""
    project(world)
    trusted(world)
    world.write("proj/hooks/guard.py", "import helper\n")
    trusted(world)
    assert status(world).trusted

    helper = world.write("proj/hooks/helper.py", "x = 1\n")
    listed = f"{helper.parent}/"
    assert [(c.kind, c.path) for c in status(world).changes] == [("changed", listed), ("new", str(helper))]
    trusted(world)
    helper.unlink()
    assert [(c.kind, c.path) for c in status(world).changes] == [("changed", listed), ("gone", str(helper))]


def test_other_settings_of_a_project_may_change(world: World) -> None:
    """Only what hooks are made of counts: not the theme, not how the file is laid out."""
    project(world)
    trusted(world)
    world.write(
        "proj/.claude/settings.json", '{"theme": "dark",\n\n' + str(run("python hooks/guard.py"))[1:].replace("'", '"')
    )

    assert status(world).trusted


def test_env_and_switches_of_strangers_take_no_effect_until_trusted(world: World) -> None:
    """A folder cannot switch the user's own hooks off, nor change what they see; that alone is a warning, no error."""
    world.write("home/.claude/settings.json", run("mine"))
    world.write("proj/.claude/settings.json", {"env": {"PATH": "/evil"}, "disableAllHooks": True, "model": "m"})
    loaded = world.load()
    assert (loaded.hooks, loaded.env) == ((), {"PATH": "/evil"})

    ensured = ensure(loaded, "error", world.trust)
    assert ([h.name for h in ensured.hooks], ensured.env, ensured.model) == (["mine"], {}, None)
    assert [str(p) for p in ensured.problems] == [
        ".claude/settings.json: `env`, `disableAllHooks`, `model` take no effect until you run `hookline trust`"
    ]

    trusted(world)
    assert ensure(world.load(), "error", world.trust).hooks == ()


@pytest.mark.parametrize("where", ["home/.claude/settings.json", "proj/.claude/settings.local.json"])
def test_hooks_that_are_switched_off_are_no_error(world: World, where: str) -> None:
    """Nobody has to trust what does not run; a stranger's switch still does not reach the user's own hooks."""
    project(world)
    world.write("home/.claude/settings.json", run("mine"))
    world.write(where, {**run("mine"), "disableAllHooks": True})

    ensured = ensure(world.load(), "error", world.trust)
    assert [hook.name for hook in ensured.hooks] == ([] if where.startswith("home") else ["mine"])


def test_trust_all_runs_everything_and_records_nothing(world: World) -> None:
    """`--trust` is for those who know."""
    project(world)

    assert ensure(world.load(), "all", world.trust).hooks
    assert not trust_file(home=world.home).exists()


def test_whoever_is_asked_decides(world: World) -> None:
    """A yes is recorded, a no is an error; what is shown has each command and script."""
    project(world)
    asked: list[Status] = []

    def no(status: Status) -> bool:
        asked.append(status)
        return False

    with pytest.raises(UntrustedHooks):
        ensure(world.load(), no, world.trust)
    ensure(world.load(), lambda status: True, world.trust)

    [item] = asked[0].items
    assert (item.runs, [script.text for script in item.scripts]) == (
        ("PreToolUse: python hooks/guard.py",), ["print(1)\n", ""],
    )  # fmt: skip
    assert status(world).trusted


def test_every_kind_of_hook_is_shown_to_whoever_decides(world: World) -> None:
    """Commands with their arguments, URLs, questions and tools; two tables of one plugin.json are one item."""
    kinds = [
        {"type": "command", "command": "x", "args": ["a b"]},
        {"type": "http", "url": "http://h"},
        {"type": "prompt", "prompt": "ok?"},
        {"type": "agent", "prompt": "look"},
        {"type": "mcp_tool", "server": "db", "tool": "check"},
    ]
    tables = [{"Stop": [{"hooks": kinds[:2]}]}, {"Stop": [{"hooks": kinds[2:]}]}]
    world.write("plug/.claude-plugin/plugin.json", {"name": "p", "hooks": tables})

    [item] = items_of(world.load(plugin_dirs=[world.base / "plug"]))
    assert item.runs == (
        "Stop: x 'a b'", "Stop: POST http://h", "Stop: prompt 'ok?'", "Stop: agent 'look'", "Stop: mcp db.check",
    )  # fmt: skip
    assert item.definitions.count('"Stop"') == 2


def test_a_large_script_is_known_by_its_hash_alone(world: World) -> None:
    """That it changed is known; what changed is not."""
    project(world)
    world.write("proj/hooks/guard.py", "#" * 100_000)
    trusted(world)
    world.write("proj/hooks/guard.py", "#" * 100_001)

    [change] = status(world).changes
    assert change.diff.endswith("too large or no text; only its hash is known to differ")


def test_a_record_that_cannot_be_written_leaves_the_old_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no half-written file."""
    project(world)
    trusted(world)
    before = trust_file(home=world.home).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"trust\.json: trust cannot be recorded: no space left on device"):
        trusted(world)
    assert trust_file(home=world.home).read_bytes() == before
    assert sorted(p.name for p in trust_file(home=world.home).parent.iterdir()) == ["trust.json", "trust.lock"]


def test_trust_is_bound_to_the_place(world: World) -> None:
    """The same project elsewhere is another project."""
    project(world)
    trusted(world)
    world.project.rename(world.base / "moved")

    from hookline.settings import load

    assert not world.trust.status(load(world.base / "moved", home=world.home, managed=world.managed)).trusted


def test_forget_takes_trust_back(world: World) -> None:
    """Everything under the folder, and nothing else."""
    project(world)
    trusted(world)

    assert (world.trust.forget(world.home), world.trust.forget(world.project)) == (0, 1)
    assert not status(world).trusted


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"version": 1, "trusted": 5}', '{"trusted": {"a": {"scripts": 5}}}', "\0"]
)
def test_a_damaged_record_trusts_nothing_and_says_so(world: World, damage: str) -> None:
    """It is put aside, not overwritten in place, when something is trusted again."""
    project(world)
    trusted(world)
    trust_file(home=world.home).write_text(damage)

    with pytest.raises(UntrustedHooks, match="is damaged, so nothing is trusted until you run `hookline trust`"):
        ensure(world.load(), "error", world.trust)
    trusted(world)
    assert status(world).trusted
    assert trust_file(home=world.home).with_suffix(".damaged").read_text() == damage


def test_the_record_is_the_users_alone(world: World) -> None:
    """It lies in the configuration folder, readable by nobody else."""
    project(world)
    trusted(world)
    file = trust_file(home=world.home)

    assert file == world.home / ".config" / "hookline" / "trust.json"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert trust_file({"XDG_CONFIG_HOME": "/cfg", "HOME": "/h"}) == Path("/cfg/hookline/trust.json")


RECORD = """
import sys
from hookline.settings import Trust
from hookline.settings.trust.store import Item
trust = Trust.load(sys.argv[1])
for n in range(20):
    trust.record([Item(path=f"/{sys.argv[2]}/{n}", label="x", root="/", definitions="{}")])
"""


def test_two_who_record_at_once_lose_nothing(tmp_path: Path) -> None:
    """The record is locked while it is changed, and replaced in one step."""
    file = tmp_path / "c" / "trust.json"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    started = [subprocess.Popen([sys.executable, "-c", RECORD, str(file), name], env=env) for name in "abc"]

    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert sum(Trust.load(file).forget(f"/{name}") for name in "abc") == 60
    assert sorted(path.name for path in file.parent.iterdir()) == ["trust.json", "trust.lock"]
