"""The recorded cases about settings: which hooks run, as far as files decide it."""

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.core.hooks import Command
from hookline.core.hooks.condition import PathContext
from hookline.events import PreToolUse
from hookline.settings import LoadedSettings, load

CONTRACT = Path(__file__).parents[1] / "contract"
BASH = PreToolUse(tool_name="Bash", tool_input={"command": "echo ran >> out.txt; echo hello"})
DELIBERATE = {
    name
    for reason, names in json.loads((CONTRACT / "deliberate.json").read_text()).items()
    if reason == "one bad entry never disables the others"
    for name in names
}


def cases() -> list[str]:
    """The others are played in `tests/contract_hooks`."""
    return sorted(name for name in DELIBERATE if "rec" in json.loads((CONTRACT / "cases" / f"{name}.json").read_text()))


def filled(value: Any, project: Path) -> Any:
    """The case's own short forms, as its runner fills them in."""
    if isinstance(value, dict):
        table = {key: filled(one, project) for key, one in value.items()}
        if "rec" in table:
            table = {"type": "command", "command": f"rec.py rec/{table.pop('rec')}.json", **table}
        return table
    if isinstance(value, list):
        return [filled(one, project) for one in value]
    return value.replace("@WORK@/", "").replace("@PROJ@", str(project)) if isinstance(value, str) else value


def loaded(case: dict[str, Any], base: Path) -> LoadedSettings:
    project, home = base / "proj", base / "home"
    files = {
        project / ".claude/settings.json": case.get("settings"),
        project / ".claude/settings.local.json": case.get("local_settings"),
        home / ".claude/settings.json": case.get("user_settings"),
        **{project / name: value for name, value in case.get("files", {}).items()},
    }
    for path, value in files.items():
        if value is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            said = filled(value, project)
            path.write_text(said if isinstance(said, str) else json.dumps(said))
    args = filled(case.get("cli_args", []), project)
    options = dict(zip(args[::2], args[1::2], strict=True))
    return load(
        project, home=home, managed=base / "none", settings=filled(case.get("flag_settings"), project),
        setting_sources=options.get("--setting-sources"),
        plugin_dirs=[options["--plugin-dir"]] if "--plugin-dir" in options else [],
    )  # fmt: skip


def would_run(found: LoadedSettings) -> list[str]:
    """The recorders that a Bash call would start."""
    names = []
    for hook in found.hooks:
        holds = hook.condition is None or hook.condition.matches("Bash", BASH.tool_input, PathContext())
        if PreToolUse in hook.events and hook.matcher.matches("Bash") and holds:
            assert isinstance(hook.action, Command)
            words = " ".join([hook.action.command, *(hook.action.args or ())])
            names.append(words.partition("rec/")[2].partition(".json")[0])
    return sorted(names)


@pytest.mark.parametrize("name", cases())
def test_the_good_entries_of_a_file_with_a_bad_one_run(name: str, tmp_path: Path) -> None:
    """There the whole file was lost; here the rest of it counts, on purpose."""
    case = json.loads((CONTRACT / "cases" / f"{name}.json").read_text())
    expected = json.loads((CONTRACT / "expected" / f"{name}.json").read_text())
    assert [hook for hook, event, _ in expected["hooks"] if event == "PreToolUse"] == []

    found = loaded(case, tmp_path)

    assert "h" in would_run(found)
    assert found.errors


def test_env_of_a_file_with_a_bad_entry_counts(tmp_path: Path) -> None:
    """`bad_type_env`: there the file's `env` was lost with it; here it stands, on purpose."""
    case = json.loads((CONTRACT / "cases" / "bad_type_env.json").read_text())

    assert loaded(case, tmp_path).env == {"FOO": "fromsettings"}


@pytest.mark.parametrize("name", ["skill_frontmatter_once", "skill_frontmatter_trusted", "agent_frontmatter_trusted"])
def test_headers_of_the_cases_are_read(name: str, tmp_path: Path) -> None:
    """A skill's hooks wait for the skill, an agent's Stop is its SubagentStop."""
    found = loaded(json.loads((CONTRACT / "cases" / f"{name}.json").read_text()), tmp_path)

    assert found.problems == ()
    if name.startswith("skill"):
        assert [[h.events[0].event_name for h in skill.hooks] for skill in found.skills] == [["PreToolUse", "Stop"]]
        assert found.skills[0].hooks[0].once is (name == "skill_frontmatter_once")
    else:
        assert [h.events[0].event_name for h in found.hooks] == ["PreToolUse", "SubagentStop"]


def test_hooks_of_an_agents_flag_are_parsed_alike() -> None:
    """`agents_flag_frontmatter`: the JSON of `--agents` has the same `hooks` as a header."""
    from hookline.settings import parse_hooks
    from hookline.settings.sources import SettingsSource

    case = json.loads((CONTRACT / "cases" / "agents_flag_frontmatter.json").read_text())
    table = json.loads(case["cli_args"][1])["rev"]["hooks"]

    parsed = parse_hooks(table, SettingsSource(kind="agent", label="--agents rev", owner="rev"))
    assert [h.events[0].event_name for h in parsed.hooks] == ["PreToolUse", "SubagentStop"]
