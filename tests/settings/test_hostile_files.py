"""Files that a project made to bring the reader down: they are read like others, and checked within bounds."""

import json
import tracemalloc
from typing import Any

import pytest

from hookline.settings.check import check
from hookline.settings.trust.store import items_of
from tests.settings.world import World

NAMES = ["~no-such-user/x.sh", "./" + "x" * 300, "/" + "x" * 5_000]


@pytest.mark.parametrize("name", NAMES, ids=["unknown-user", "long", "longer-than-a-path"])
@pytest.mark.parametrize(
    "entry",
    [
        {"type": "command", "command": "{}"},
        {"type": "command", "command": "python3 {}"},
        {"type": "cedar", "policies": "{}"},
        {"type": "cedar", "policies": "*.cedar", "entities": "{}"},
        {"type": "rego", "policies": "{}"},
    ],
    ids=" ".join,
)
def test_a_name_that_no_file_can_have_is_a_name_like_others(world: World, name: str, entry: dict[str, str]) -> None:
    """What an entry names is looked for, and is not there; loading, checking and trust go on."""
    entry = {key: value.replace("{}", name) for key, value in entry.items()}
    world.write("proj/.claude/settings.json", {"hooks": {"PreToolUse": [{"hooks": [entry]}]}})

    loaded = world.load()
    missing = [problem.message for problem in check(loaded) if "does not exist" in problem.message]

    assert len(loaded.hooks) == 1
    assert [item.label for item in items_of(loaded)] == [".claude/settings.json"]
    assert missing == ([f"command: `{name}` does not exist"] if "command" in entry else [])


@pytest.mark.parametrize("text", ["@a\0b", "@~\0x", "@~no-such-user/x", "@" + "x" * 5_000])
def test_instructions_that_name_no_file_take_in_nothing(world: World, text: str) -> None:
    """A project's CLAUDE.md cannot keep its settings from being read."""
    world.write("proj/CLAUDE.md", text)
    world.write("proj/.claude/settings.json", {"hooks": {"Stop": ["./x.sh"]}})

    loaded = world.load()

    assert len(loaded.hooks) == 1
    assert [file.raw for file in loaded.files if file.source.kind == "memory"] == [{}]


def plugin(**manifest: Any) -> str:
    return json.dumps({"name": "p", **manifest})


@pytest.mark.parametrize("name", ["~\0x", "x" * 300])
def test_a_plugin_that_names_no_file_is_read(world: World, name: str) -> None:
    """The names in its manifest are as hostile as any."""
    world.write("plug/.claude-plugin/plugin.json", plugin(hooks=name, mcpServers=name))

    loaded = world.load(plugin_dirs=[world.base / "plug"])

    assert loaded.hooks == ()


def test_brackets_without_end_are_checked_within_bounds(world: World) -> None:
    """To say where a problem is takes no more memory for a file that is deep."""
    world.write("proj/.claude/settings.json", "[" * 5_000)
    loaded = world.load()

    tracemalloc.start()
    problems = check(loaded)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert [problem.message for problem in problems] == ["is nested too deeply"]
    assert most < 8 << 20
