"""Reading every place hooks can come from."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.settings import LoadedSettings, Problem
from hookline.settings.files import MOST_BYTES, read_bytes
from hookline.settings.policy import Permissions
from tests.settings.world import World, run


def commands(loaded: LoadedSettings) -> list[str]:
    return [hook.action.command for hook in loaded.hooks]  # type: ignore[union-attr]


def everywhere(world: World) -> None:
    world.write("etc/managed-settings.json", run("m"))
    world.write("home/.claude/settings.json", run("u"))
    world.write("proj/.claude/settings.json", run("p"))
    world.write("proj/.claude/settings.local.json", run("l"))


def test_all_sources_run_in_configured_order(world: World) -> None:
    """FACTS §9: user, project, local and `--settings` all run; managed stands first, plugins last."""
    everywhere(world)
    world.write("plug/hooks/hooks.json", {"description": "x", **run("g")})

    loaded = world.load(settings='{"hooks": {"PreToolUse": ["f"]}}', plugin_dirs=[world.base / "plug"])

    assert (commands(loaded), loaded.problems) == (["m", "u", "p", "l", "f", "g"], ())
    assert [hook.source for hook in loaded.hooks][1:3] == [
        "~/.claude/settings.json: hooks.PreToolUse[0].hooks[0]",
        ".claude/settings.json: hooks.PreToolUse[0].hooks[0]",
    ]


@pytest.mark.parametrize(
    "options, want",
    [
        ({"setting_sources": "user"}, ["m", "u", "f"]),
        ({"setting_sources": ["project", "local"]}, ["m", "p", "l", "f"]),
        ({"setting_sources": ""}, ["m", "f"]),
        ({"bare": True}, ["m"]),
    ],
)
def test_setting_sources_choose(world: World, options: dict[str, Any], want: list[str]) -> None:
    """FACTS §9: `user` is user and `--settings`, `""` is `--settings` alone; `--bare` leaves the administrator's."""
    everywhere(world)

    assert commands(world.load(settings=run("f"), **options)) == want


def test_an_unknown_setting_source_is_a_problem() -> None:
    """A near miss is suggested."""
    from hookline.settings import load

    [problem] = load("/nonexistent", setting_sources="usr", home="/nonexistent", managed="/nonexistent").problems

    assert str(problem) == (
        "--setting-sources: unknown source `usr`; did you mean `user`?; write any of `user,project,local`"
    )


def test_settings_may_be_a_file_text_or_an_object(world: World) -> None:
    """`--settings` takes a file or JSON; the Python call also takes an object, or several of these."""
    file = world.write("flag.json", run("a"))

    given = [file, str(file), '{"hooks": {"Stop": "b"}}', run("c")]
    assert commands(world.load(settings=given)) == ["a", "b", "c"]


def test_a_missing_settings_file_is_a_problem_only_if_asked_for(world: World) -> None:
    """No settings at all is nothing wrong; a file named by hand that is not there is."""
    assert world.load().problems == ()
    [problem] = world.load(settings="nowhere.json").problems
    assert problem.message == "no such file; name a settings file or write JSON"


def test_the_users_folder_may_be_moved(world: World) -> None:
    """`CLAUDE_CONFIG_DIR` moves it, `HOOKLINE_MANAGED_SETTINGS` the administrator's file."""
    from hookline.settings import load

    world.write("own/settings.json", run("u"))
    managed = world.write("m.json", run("m"))
    env = {"HOME": str(world.home), "CLAUDE_CONFIG_DIR": str(world.base / "own"),
           "HOOKLINE_MANAGED_SETTINGS": str(managed)}  # fmt: skip

    assert commands(load(world.project, env=env)) == ["m", "u"]


def test_a_project_that_is_the_home_folder_is_read_once_and_is_the_users_own(world: World) -> None:
    """Then `.claude/settings.json` is the user's own file, and no trust is asked for."""
    from hookline.settings import load
    from hookline.settings.trust.store import items_of

    world.write("home/.claude/settings.json", run("u"))
    loaded = load(world.home, home=world.home, managed=world.managed)

    assert (commands(loaded), items_of(loaded)) == (["u"], ())


# -- files that are none --------------------------------------------------------------------------------------------


def a_folder(path: Path) -> None:
    path.mkdir()


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def text(content: str | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


BROKEN: list[tuple[Callable[[Path], None], str]] = [
    (a_folder, "is a folder; a file was expected"),
    (a_loop, "is a link that leads back to itself; remove it"),
    (a_pipe, "is a pipe, a socket or a device; a file was expected"),
    (text(""), "is empty; write `{}`"),
    (text('{\n  "hooks": {,}\n}'), "is not JSON: line 2 column 13: expecting property name enclosed in double quotes"),
    (text('{"a": NaN}'), "is not JSON: json is malformed: invalid character (byte 6)"),
    (text("[" * 100_000), "is nested too deeply"),
    (text("[1]"), 'expected an object, got `[1]`; write `{"hooks": {}}`'),
    (text(b'{"a": "\xff"}'), "is not UTF-8 (byte 7); save it as UTF-8"),
    (text(" " * (MOST_BYTES + 1)), "is larger than 4,096 KiB; nothing of it is read"),
]


@pytest.mark.parametrize("make, message", BROKEN)
def test_a_file_that_cannot_be_read_is_a_problem_and_the_others_stand(
    world: World, make: Callable[[Path], None], message: str
) -> None:
    """Not JSON (with line and column), huge, empty, a folder, a pipe, a link loop: one problem, nothing hangs."""
    world.write("home/.claude/settings.json", run("u"))
    make(world.project / ".claude" / "settings.json")

    loaded = world.load()

    assert loaded.problems == (Problem(".claude/settings.json", message),)
    assert (commands(loaded), [file.source.kind for file in loaded.broken]) == (["u"], ["project"])


def test_an_unreadable_file_is_a_problem(tmp_path: Path) -> None:
    """Permission denied says what to do."""
    file = tmp_path / "settings.json"
    file.write_text("{}")
    file.chmod(0)
    root = os.geteuid() == 0

    try:
        if root:
            os.seteuid(65534)
        found = read_bytes(str(file))
    finally:
        if root:
            os.seteuid(0)
    assert found == "may not be read; run `chmod u+r` on it"


@pytest.mark.parametrize("make", [a_loop, a_pipe, text("{}")])
@pytest.mark.parametrize("where", [".claude", ".claude/agents", ".claude/skills", ".claude/agents/x.md"])
def test_a_folder_that_is_none_is_no_crash(world: World, make: Callable[[Path], None], where: str) -> None:
    """Wherever a folder or header is expected, anything may stand; nothing hangs and the others are read."""
    world.write("home/.claude/settings.json", run("u"))
    path = world.project / where
    if where == ".claude":
        path.rmdir()
    path.parent.mkdir(exist_ok=True)
    make(path)

    assert commands(world.load()) == ["u"]


def test_headers_are_looked_for_in_bounds(world: World) -> None:
    """A link to a whole disk is no reason to read it."""
    (world.project / ".claude" / "agents").symlink_to("/")
    world.write("home/.claude/agents/deep/er/x.md", HEADER.format(name="x", command="x"))

    assert [hook.name for hook in world.load().hooks] == ["x", "end-x"]


def test_a_byte_order_mark_is_skipped(world: World) -> None:
    """Some editors write one."""
    world.write("proj/.claude/settings.json", '\ufeff{"hooks": {"Stop": "x"}}')

    assert commands(world.load()) == ["x"]


def test_a_key_said_twice_is_a_problem(world: World) -> None:
    """JSON keeps the last and says nothing, so hooks would be lost in silence."""
    text = '{"hooks": {"Stop": ["a"], "Stop": ["b"], "x\\": {": 1}}'
    world.write("proj/.claude/settings.json", text)

    loaded = world.load()
    assert commands(loaded) == ["b"]
    assert [str(p) for p in loaded.problems if "twice" in p.message] == [
        ".claude/settings.json: `Stop` stands there twice, and only the last one counts; join them"
    ]


# -- switches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["home/.claude/settings.json", "proj/.claude/settings.json",
                                   "proj/.claude/settings.local.json"])  # fmt: skip
def test_one_file_disables_all_hooks_but_the_administrators(world: World, where: str) -> None:
    """FACTS §9: disableAllHooks in any one file disables all of them and plugins; managed hooks are above that."""
    everywhere(world)
    world.write("plug/hooks/hooks.json", run("g"))
    world.write(where, {**run("x"), "disableAllHooks": True})

    loaded = world.load(plugin_dirs=[world.base / "plug"])

    assert (commands(loaded), loaded.switches.others) == (["m"], False)


def test_the_strongest_file_decides_on_disable_all_hooks(world: World) -> None:
    """FACTS §9: local false overrides user true."""
    everywhere(world)
    world.write("home/.claude/settings.json", {**run("u"), "disableAllHooks": True})
    world.write("proj/.claude/settings.local.json", {**run("l"), "disableAllHooks": False})

    assert commands(world.load()) == ["m", "u", "p", "l"]


def test_administrators_may_disable_everything_or_everybody_else(world: World) -> None:
    """`disableAllHooks` in managed settings switches theirs off, too; `allowManagedHooksOnly` all others."""
    everywhere(world)
    world.write("etc/managed-settings.json", {**run("m"), "disableAllHooks": True})
    assert commands(world.load()) == []

    world.write("etc/managed-settings.json", {**run("m"), "allowManagedHooksOnly": True})
    assert commands(world.load()) == ["m"]


def test_allow_managed_hooks_only_counts_nowhere_else(world: World) -> None:
    """A project cannot switch the user's hooks off with it; the user is told."""
    everywhere(world)
    world.write("proj/.claude/settings.json", {**run("p"), "allowManagedHooksOnly": True})

    loaded = world.load()
    assert commands(loaded) == ["m", "u", "p", "l"]
    assert [p.severity for p in loaded.problems] == ["warning"]


def test_http_lists_add_up_and_a_wrong_one_allows_nothing(world: World) -> None:
    """A list that restricts is never lost because it is misspelt."""
    hook = {"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://h", "allowedEnvVars": ["A"]}]}]}}
    world.write("home/.claude/settings.json", {**hook, "allowedHttpHookUrls": ["https://a/*"]})
    world.write("proj/.claude/settings.json", {"allowedHttpHookUrls": ["https://b/*"], "httpHookAllowedEnvVars": 5})

    loaded = world.load()
    [action] = [hook.action for hook in loaded.hooks]
    assert (action.allowed_urls, action.allowed_env) == (("https://a/*", "https://b/*"), ())  # type: ignore[union-attr]
    assert [p.where for p in loaded.errors] == [".claude/settings.json: httpHookAllowedEnvVars"]


def test_other_settings_are_merged_by_strength(world: World) -> None:
    """Objects merge, lists add up, of single values the strongest stands; permission rules keep their file."""
    world.write(
        "home/.claude/settings.json",
        {"model": "a", "env": {"A": "1", "B": 2}, "permissions": {"allow": ["Read"], "defaultMode": "plan"}},
    )
    world.write(
        "proj/.claude/settings.json", {"env": {"A": "p", "C": True, "D": []}, "permissions": {"deny": ["Bash", 5]}}
    )
    world.write("proj/.claude/settings.local.json", {"model": "l", "permissions": {"allow": ["Write"]}})  # fmt: skip

    loaded = world.load(settings={"model": "f"})

    assert (loaded.model, loaded.env) == ("f", {"A": "p", "B": "2", "C": "true"})
    assert loaded.raw["permissions"] == {"allow": ["Read", "Write"], "defaultMode": "plan", "deny": ["Bash", 5]}
    sources = {file.source.kind: file.source for file in loaded.files}
    assert loaded.permissions == (
        Permissions(source=sources["user"], allow=("Read",), default_mode="plan"),
        Permissions(source=sources["project"], deny=("Bash",)),
        Permissions(source=sources["local"], allow=("Write",)),
    )
    assert [p.where for p in loaded.problems] == [
        ".claude/settings.json: env.D",
        ".claude/settings.json: permissions.deny[1]",
    ]


@pytest.mark.parametrize("key", ["disableAllHooks", "env", "permissions", "allowedHttpHookUrls"])
def test_a_setting_of_the_wrong_kind_is_a_problem(world: World, key: str) -> None:
    """It is named, and the hooks of the file run."""
    world.write("proj/.claude/settings.json", {**run("x"), key: "yes"})

    loaded = world.load()
    assert commands(loaded) == ["x"]
    assert [p.where for p in loaded.errors] == [f".claude/settings.json: {key}"]


def test_a_default_mode_that_is_no_text_is_a_problem(world: World) -> None:
    """The rest of the permissions stands."""
    world.write("proj/.claude/settings.json", {"permissions": {"defaultMode": 5, "deny": ["Bash"]}})

    loaded = world.load()
    assert [(p.deny, p.default_mode) for p in loaded.permissions] == [(("Bash",), None)]
    assert [p.where for p in loaded.errors] == [".claude/settings.json: permissions.defaultMode"]


def test_a_misspelt_hooks_key_is_a_warning(world: World) -> None:
    """`hook` for `hooks` would be a silence."""
    world.write("proj/.claude/settings.json", {"hook": {}, "theme": "dark"})

    [problem] = world.load().problems
    assert str(problem) == ".claude/settings.json: hook: unknown key `hook`; did you mean `hooks`?"


# -- plugins --------------------------------------------------------------------------------------------------------


def test_a_plugins_hooks_come_with_its_name_and_folder(world: World) -> None:
    """FACTS §9: hooks/hooks.json with `${CLAUDE_PLUGIN_ROOT}`; plugin.json names it, and may name more hooks."""
    world.write("plug/.claude-plugin/plugin.json", {"name": "tidy", "hooks": ["./more.json", {"Stop": ["b"]}, 5]})
    world.write("plug/hooks/hooks.json", run("${CLAUDE_PLUGIN_ROOT}/a.sh"))
    world.write("plug/more.json", run("c"))

    loaded = world.load(plugin_dirs=[world.base / "plug"])

    assert commands(loaded) == [f"{world.base}/plug/a.sh", "c", "b"]
    assert [hook.name for hook in loaded.hooks] == ["tidy:a.sh", "tidy:c", "tidy:b"]
    assert {hook.action.plugin for hook in loaded.hooks} == {"tidy@inline"}  # type: ignore[union-attr]
    assert [p.where.rpartition("/")[2] for p in loaded.problems] == ["plugin.json: hooks"]


def test_a_plugin_folder_that_is_not_there_is_a_problem(world: World) -> None:
    """Nothing is silently missing."""
    [problem] = world.load(plugin_dirs=[world.base / "none"]).problems

    assert problem.message == "no such plugin folder; name one with `.claude-plugin/plugin.json`"


def test_enabled_plugins_are_found_where_they_are_installed(world: World) -> None:
    """`enabledPlugins` of any settings file, through the list of installed plugins."""
    world.write("home/.claude/settings.json", {"enabledPlugins": {"a@m": True, "b@m": False, "c@m": True}})
    world.write("home/.claude/plugins/installed_plugins.json",
                {"version": 2, "plugins": {"a@m": [{"installPath": str(world.base / "plug")}]}})  # fmt: skip
    world.write("plug/hooks/hooks.json", run("x"))

    loaded = world.load()
    assert [(hook.action.plugin, hook.name) for hook in loaded.hooks] == [("a@m", "a:x")]  # type: ignore[union-attr]
    assert [str(p) for p in loaded.problems] == ["enabledPlugins.c@m: is not installed, so its hooks do not run"]


# -- headers --------------------------------------------------------------------------------------------------------

HEADER = """---
name: {name}
description: d
hooks:
  PreToolUse:
    - matcher: "Bash"
      hooks:
        - type: command
          command: "{command}"
          once: true
  Stop:
    - hooks:
        - type: command
          command: "end-{command}"
---
Text.
"""


def test_an_agents_hooks_apply_while_it_runs_and_a_skills_once_it_is_used(world: World) -> None:
    """FACTS §9: agent hooks are among the hooks, with their scope; skill hooks wait for the skill."""
    world.write("proj/.claude/agents/rev.md", HEADER.format(name="rev", command="a"))
    world.write("proj/.claude/skills/greet/SKILL.md", HEADER.format(name="greet", command="s"))
    world.write("home/.claude/agents/plain.md", "---\nname: plain\n---\nNo hooks\n")

    loaded = world.load()

    assert loaded.problems == ()
    assert [(h.name, h.events[0].event_name, h.when.agent, h.once) for h in loaded.hooks] == [  # type: ignore[union-attr]
        ("a", "PreToolUse", "rev", True),
        ("end-a", "SubagentStop", "rev", False),
    ]
    [skill] = loaded.skills
    assert (skill.name, [(h.name, h.events[0].event_name, h.once) for h in skill.hooks]) == (
        "greet", [("s", "PreToolUse", True), ("end-s", "Stop", False)],
    )  # fmt: skip


def test_headers_may_be_left_out(world: World) -> None:
    """Who only wants settings files says so."""
    world.write("proj/.claude/agents/rev.md", HEADER.format(name="rev", command="a"))

    assert world.load(headers=False).hooks == ()


def test_disable_all_hooks_covers_headers(world: World) -> None:
    """A switch is a switch."""
    world.write("proj/.claude/agents/rev.md", HEADER.format(name="rev", command="a"))
    world.write("proj/.claude/skills/greet/SKILL.md", HEADER.format(name="greet", command="s"))

    loaded = world.load(settings={"disableAllHooks": True})
    assert (loaded.hooks, loaded.skills) == ((), ())
