"""Edits take effect with the next event."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.core.hooks import Function
from hookline.errors import UntrustedHooks
from hookline.settings import LoadedSettings, Reloader, watcher
from hookline.settings.watcher import signature
from tests.settings.world import World, run


def reloader(world: World, **options: Any) -> Reloader:
    policy = options.pop("policy", "error")
    return Reloader(lambda: world.load(**options), policy=policy, trust=world.trust)


def trust(world: World) -> None:
    world.trust.record(world.trust.status(world.load()).items)


def names(change: watcher.SettingsChange | None) -> list[str]:
    assert change is not None
    return [hook.name for hook in change.hooks]


def test_nothing_changed_is_none(world: World) -> None:
    """The usual answer."""
    world.write("home/.claude/settings.json", run("a"))
    watch = reloader(world)

    assert (watch.refresh(), watch.refresh()) == (None, None)


def edit(world: World) -> None:
    world.write("home/.claude/settings.json", run("b"))


def replace(world: World) -> None:
    world.write("home/.claude/next", run("b")).replace(world.home / ".claude" / "settings.json")


def touch_back(world: World) -> None:
    file = world.home / ".claude" / "settings.json"
    before = file.stat()
    edit(world)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [edit, replace, touch_back])
def test_an_edited_file_is_noticed(world: World, change: Callable[[World], None]) -> None:
    """Written in place, replaced, or changed so quickly that its time stamp and size are as before."""
    world.write("home/.claude/settings.json", run("a"))
    watch = reloader(world)
    change(world)

    found = watch.refresh()
    assert (names(found), found and found.problems) == (["b"], ())
    assert [hook.name for hook in watch.loaded.hooks] == ["b"]
    assert watch.refresh() is None


def test_files_that_come_and_go_are_noticed(world: World) -> None:
    """A first settings file, a new agent, a removed one."""
    watch = reloader(world)

    file = world.write("home/.claude/settings.json", run("a"))
    assert names(watch.refresh()) == ["a"]
    agent = world.write(
        "home/.claude/agents/x.md", "---\nname: x\nhooks: {Stop: [{hooks: [{type: command, command: b}]}]}\n---\n"
    )
    assert names(watch.refresh()) == ["a", "b"]
    agent.unlink()
    file.unlink()
    assert names(watch.refresh()) == []


def test_a_broken_edit_keeps_the_last_good_set_and_says_so(world: World) -> None:
    """Other files' edits still count, and mending the file takes effect."""
    world.write("home/.claude/settings.json", run("a"))
    watch = reloader(world)
    world.write("home/.claude/settings.json", '{"hooks": {')

    found = watch.refresh()
    assert found is not None
    assert names(found) == ["a"]
    [problem] = found.problems
    assert str(problem) == (
        "~/.claude/settings.json: is not JSON: line 1 column 12: expecting property name enclosed in double quotes; "
        "the previous hooks stay in place"
    )
    assert watch.refresh() is None

    managed = world.write("etc/managed-settings.json", run("m"))
    assert names(watch.refresh()) == ["m", "a"]
    managed.unlink()
    world.write("home/.claude/settings.json", run("b"))
    assert names(watch.refresh()) == ["b"]


def test_a_new_file_that_is_broken_changes_nothing_and_may_be_mended(world: World) -> None:
    """What never was good has no say, and is looked at again."""
    world.write("home/.claude/settings.json", run("a"))
    watch = reloader(world)
    agent = world.write("home/.claude/agents/x.md", "---\nhooks: [\n---\n")
    assert names(watch.refresh()) == ["a"]

    agent.write_text("---\nname: x\nhooks: {Stop: [{hooks: [{type: command, command: b}]}]}\n---\n")
    assert names(watch.refresh()) == ["a", "b"]


def test_a_bad_entry_is_no_broken_file(world: World) -> None:
    """The others of the edit count, and the problem is told."""
    world.write("home/.claude/settings.json", run("a"))
    watch = reloader(world)
    table = run("b")
    table["hooks"]["Stop"] = 5
    world.write("home/.claude/settings.json", table)

    found = watch.refresh()
    assert (names(found), found and len(found.problems)) == (["b"], 1)


def test_an_untrusted_edit_keeps_what_was_trusted_until_it_is(world: World) -> None:
    """Trusting it, from anywhere, takes effect with the next event."""
    world.write("proj/.claude/settings.json", run("a"))
    with pytest.raises(UntrustedHooks):
        reloader(world)
    trust(world)
    watch = reloader(world)
    world.write("proj/.claude/settings.json", run("b"))

    found = watch.refresh()
    assert names(found) == ["a"]
    assert "changed after being trusted (.claude/settings.json)" in str(found.problems[0])  # type: ignore[union-attr]
    assert watch.refresh() is None
    trust(world)
    assert names(watch.refresh()) == ["b"]


def test_with_trust_all_an_edit_counts_at_once(world: World) -> None:
    """`--trust` goes on trusting."""
    world.write("proj/.claude/settings.json", run("a"))
    watch = reloader(world, policy="all")
    world.write("proj/.claude/settings.json", run("b"))

    assert names(watch.refresh()) == ["b"]


@pytest.mark.parametrize("change", ["edited", "gone", "appeared"])
def test_a_hook_whose_script_changed_fails_closed_until_it_is_trusted(world: World, change: str) -> None:
    """It cannot go on as it was; the others do."""
    table: dict[str, Any] = {"hooks": {"PreToolUse": ["./a.sh", "./b.sh"]}}
    world.write("proj/.claude/settings.json", table)
    world.write("proj/b.sh", "true\n")
    script = world.project / "a.sh"
    if change != "appeared":
        script.write_text("true\n")
    trust(world)
    watch = reloader(world)
    before = watch.loaded

    script.unlink() if change == "gone" else script.write_text("curl evil\n")
    found = watch.refresh()
    assert found is not None
    assert [(type(h.action) is Function, h.on_failure) for h in found.hooks] == [(True, "block"), (False, "continue")]
    assert watch.refresh() is None

    trust(world)
    again = watch.refresh()
    assert again is not None
    assert [hook.name for hook in again.hooks] == [hook.name for hook in before.hooks]


def test_a_script_put_back_is_trusted_again(world: World) -> None:
    """What counts is what it says, not when it was written."""
    world.write("proj/.claude/settings.json", run("./a.sh"))
    script = world.write("proj/a.sh", "true\n")
    trust(world)
    watch = reloader(world)
    script.write_text("false\n")
    watch.refresh()
    script.write_text("true\n")

    assert names(watch.refresh()) == ["a.sh"]


def test_a_quiet_look_reads_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only time stamps are compared once they are old enough."""
    world.write("home/.claude/settings.json", run("a"))
    reads: list[LoadedSettings] = []
    monkeypatch.setattr(watcher, "_FRESH", 0.0)

    def read() -> LoadedSettings:
        reads.append(world.load())
        return reads[-1]

    watch = Reloader(read, trust=world.trust)
    for _ in range(10):
        watch.refresh()
    assert len(reads) == 1


def test_a_signature_of_what_is_not_there_is_none(tmp_path: Path) -> None:
    """No path is a crash."""
    assert signature([str(tmp_path / "x"), "\0", "y" * 9999]) == (None, None, None)
