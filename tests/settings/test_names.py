"""What hooks are called, and which of them are one and the same."""

from typing import Any

import pytest

from hookline.core.hooks import Command, Hook, Http, McpTool, Prompt
from hookline.core.hooks.hook import Action
from hookline.settings.hook_names import short_name, with_free_names, without_duplicates
from hookline.settings.parse import parse_hooks
from hookline.settings.sources import SettingsSource


@pytest.mark.parametrize(
    "action, name",
    [
        (Command(command='python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.py --strict'), "guard.py"),
        (Command(command="FOO=1 bash -x ./scripts/check.sh"), "check.sh"),
        (Command(command="uv run hooks/a.py"), "a.py"),
        (Command(command="timeout 5 jq -r .x"), "jq"),
        (Command(command="python3"), "python3"),
        (Command(command="/usr/bin/python3", args=("/p/x.py", "1")), "x.py"),
        (Command(command="/p/check", args=("1",)), "check"),
        (Command(command=";;"), "command"),
        (Command(command='PATH="$HOME/bin:$PATH" ./x.sh'), "x.sh"),
        (Command(command='cd "$(git rev-parse --show-toplevel)" && ./scripts/lint.sh'), "lint.sh"),
        (Command(command="$(git rev-parse --show-toplevel)/.claude/a.sh"), "a.sh"),
        (Command(command='cd "$CLAUDE_PROJECT_DIR" && npm run -s test'), "npm run"),
        (Command(command="command -v ruff >/dev/null && ruff check ."), "ruff"),
        (Command(command='f=$(jq -r .x); [ -f "$f" ] && prettier --write "$f"'), "prettier"),
        (Command(command="export A=1; cat | python3 b.py"), "b.py"),
        (Command(command="bash -c 'read x; notify-send \"$x\"'"), "notify-send"),
        (Command(command="echo no >&2; exit 2"), "echo"),
        (Http(url="https://user:secret@host/hook/x?token=1"), "host/hook/x"),
        (McpTool(server="db", tool="check"), "db.check"),
        (Prompt(prompt="Is  this\nsafe?"), "Is this safe?"),
    ],
)
def test_a_hook_without_a_name_is_called_after_what_it_runs(action: Action, name: str) -> None:
    """Interpreters, options and assignments are skipped; no secret of a URL is shown."""
    assert short_name(action) == name


def hooks(*groups: dict[str, Any], event: str = "PreToolUse", plugin: str | None = None) -> list[Hook]:
    source = SettingsSource(kind="plugin" if plugin else "project", label=plugin or "f", root="/r", plugin=plugin)
    return list(parse_hooks({event: list(groups)}, source).hooks)


def group(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**more, "hooks": [{"type": "command", "command": "x", **entry} for entry in entries]}


def test_names_are_made_unique_in_order() -> None:
    """The first keeps its name."""
    named = with_free_names([*hooks(group({"command": "a"}, {"command": "b"}, {"command": "a"}))], taken=["b"])

    assert [hook.name for hook in named] == ["a", "b#2", "a#2"]


HTTP = {"type": "http", "url": "http://h"}
PROMPT = {"type": "prompt", "prompt": "J"}
ONCE = [
    ("within a group", hooks(group({}, {}))),
    ("across groups", hooks(group({}), group({}))),
    ("timeout differs", hooks(group({"timeout": 5}, {"timeout": 6}))),
    ("shell differs", hooks(group({"shell": "bash"}, {}))),
    ("one in the background", hooks(group({"async": True}, {}))),
    ("across files", [*hooks(group({})), *hooks(group({}))]),
    ("prompts", hooks(group({"type": "prompt", "prompt": "J"}, {"type": "prompt", "prompt": "J"}))),
    ("http", hooks(group({"type": "http", "url": "http://h"}, {"type": "http", "url": "http://h"}))),
    ("headers differ", hooks(group(HTTP, {**HTTP, "headers": {"X": "1"}, "allowedEnvVars": ["A"]}))),
    ("model differs", hooks(group(PROMPT, {**PROMPT, "model": "m", "continueOnBlock": True}))),
]
TWICE = [
    ("urls differ", hooks(group(HTTP, {**HTTP, "url": "http://i"}))),
    ("prompts differ", hooks(group(PROMPT, {**PROMPT, "prompt": "K"}))),
    ("args differ", hooks(group({"args": ["1"]}, {"args": ["2"]}))),
    ("if differs", hooks(group({"if": "Bash(echo *)"}, {"if": "Bash"}))),
    ("from a plugin", [*hooks(group({})), *hooks(group({}), plugin="p@inline")]),
    ("another event", [*hooks(group({})), *hooks(group({}), event="Stop")]),
]


@pytest.mark.parametrize("about, given", ONCE)
def test_identical_hooks_run_once(about: str, given: list[Hook]) -> None:
    """FACTS §4: within a group, across groups and files, also when timeout or shell differ; and somebody is told."""
    kept, notes = without_duplicates(given)

    assert (len(kept), [note.severity for note in notes]) == (1, ["note"])


@pytest.mark.parametrize("about, given", TWICE)
def test_hooks_that_differ_run_twice(about: str, given: list[Hook]) -> None:
    """FACTS §4: when `if` or `args` differ, or one is a plugin's."""
    kept, notes = without_duplicates(given)

    assert (len(kept), notes) == (2, [])


def test_duplicates_under_different_matchers_apply_where_either_did() -> None:
    """One hook in two groups still covers the tools of both."""
    kept, _ = without_duplicates(hooks(group({}, matcher="Bash"), group({}, matcher="^Wri"), group({}, matcher="[")))

    [hook] = kept
    assert [hook.matcher.matches(tool) for tool in ("Bash", "Write", "Read")] == [True, True, False]


def test_of_duplicates_the_strictest_failure_policy_stands() -> None:
    """A gate that fails closed in one file does not open because of another."""
    [hook] = without_duplicates(hooks(group({}, {"onFailure": "block"})))[0]

    assert hook.on_failure == "block"


@pytest.mark.parametrize("other", ["async", "asyncRewake"])
def test_a_gate_never_yields_to_its_twin_in_the_background(other: str) -> None:
    """Whichever stands first, the one that is left is waited for; two in the background stay there."""
    for entries in ([{other: True}, {}], [{}, {other: True}]):
        [hook] = without_duplicates(hooks(group(*entries)))[0]
        assert isinstance(hook.action, Command)
        assert (hook.background, hook.action.asynchronous, hook.action.async_rewake) == (False, False, False)

    [hook] = without_duplicates(hooks(group({other: True}, {other: True})))[0]
    assert isinstance(hook.action, Command)
    assert hook.action.asynchronous or hook.action.async_rewake


def test_of_duplicates_the_last_timeout_stands() -> None:
    """As in Claude Code, where the later of two identical entries takes the place of the earlier."""
    [hook] = without_duplicates(hooks(group({"timeout": 1}, {"timeout": 6})))[0]

    assert hook.timeout == 6
