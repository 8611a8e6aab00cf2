"""No file can make loading fail."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.display import one_line
from hookline.events.catalog import CATALOG
from hookline.settings import Problem, load, parse_hooks
from hookline.settings.files import parse_json, parse_markdown
from hookline.settings.sources import SettingsSource

words = st.one_of(
    st.sampled_from([*list(CATALOG)[:6], "preToolUse", "pre_tool_use", "hooks", "matcher", "type", "command", "args"]),
    st.sampled_from(
        ["timeout", "if", "url", "prompt", "server", "tool", "env", "onFailure", "async", "headers", "name"]
    ),
    st.text(max_size=6),
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["command", "http", "prompt", "agent", "mcp_tool", "block"]),
    st.sampled_from(["[", "(?i)x", "Bash(", "*", "\0", "~x/y"]),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=25,
)
entries = st.dictionaries(words, st.one_of(leaves, values), max_size=6)
groups = st.fixed_dictionaries(
    {"hooks": st.lists(st.one_of(entries, leaves), max_size=3)}, optional={"matcher": values}
)
tables = st.dictionaries(words, st.one_of(values, st.lists(groups, max_size=3)), max_size=4)


def checked(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        assert problem.severity in ("error", "warning", "note")
        assert str(problem).startswith(one_line(problem.where))
        assert problem.message
        assert not problem.message.endswith(".")


@given(st.one_of(values, tables))
@settings(max_examples=100, deadline=None)
def test_any_value_as_hooks_is_read(table: Any) -> None:
    """Whatever stands under `hooks`: hooks and problems come out, never an exception."""
    parsed = parse_hooks(table, SettingsSource(kind="project", label="f", root="/r"))

    checked(parsed.problems)
    assert all(hook.events and hook.source.startswith("f: hooks.") for hook in parsed.hooks)


switches = st.fixed_dictionaries({}, optional={
    "hooks": st.one_of(values, tables), "env": values, "permissions": values, "disableAllHooks": values,
    "allowManagedHooksOnly": values, "allowedHttpHookUrls": values, "httpHookAllowedEnvVars": values,
    "enabledPlugins": values, "model": values,
})  # fmt: skip


@given(st.one_of(values, switches), st.one_of(values, switches))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_as_settings_is_read(tmp_path: Path, one: Any, other: Any) -> None:
    """Real files with arbitrary JSON in them, as a project's settings and as a plugin's."""
    for path, value in ((".claude/settings.json", one), ("plug/hooks/hooks.json", other),
                        ("plug/.claude-plugin/plugin.json", other)):  # fmt: skip
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_encoded(value))

    loaded = load(tmp_path, home=tmp_path / "h", managed=tmp_path / "m", plugin_dirs=[tmp_path / "plug"])
    checked(loaded.problems)
    names = [hook.name for hook in loaded.hooks]
    assert len(names) == len(set(names))


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (OverflowError, ValueError, UnicodeEncodeError):
        return repr(value).encode("utf-8", "replace")


@given(st.one_of(st.text(), st.binary().map(lambda data: data.decode("latin-1"))))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    """As JSON, as a markdown header and as inline settings."""
    checked(parse_json(text, "f")[1])
    checked(parse_markdown(f"---\n{text}\n---\nrest", "f.md").problems)
    checked(load("/nonexistent", home="/nonexistent", managed="/nonexistent", settings="{" + text).problems)


@pytest.mark.parametrize("value", [10**400, -(10**30), float("nan"), {1: {2: object}}, {"hooks": {b"x": ()}}, [[]] * 3])
def test_values_that_json_does_not_know_are_read(value: Any) -> None:
    """Settings may also be handed over as a Python object."""
    options = {"home": "/nonexistent", "managed": "/nonexistent"}
    checked(load("/nonexistent", settings={"hooks": value, "env": value, "permissions": value}, **options).problems)  # type: ignore[arg-type]
