"""The flags of `hookline run`: the Claude CLI's own, so that whatever drives that can drive this.

A flag takes no value (`switch`), one (`value`), one if it is there (`maybe`), one each time (`repeat`) or all words up
to the next flag (`list`). Flags that mean nothing here (those without a field, and those nobody knows) are told on
stderr and passed over: a driver newer than we are still works.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

Kind = Literal["switch", "value", "maybe", "repeat", "list"]

#: the Claude Code whose flags, messages and hooks are spoken here; drivers look at it before they go on
CLAUDE_CODE_VERSION = "2.1.325"

FLAGS: dict[str, tuple[str, Kind]] = {
    "--print": ("print", "switch"),
    "--prompt": ("prompt", "value"),
    "--output-format": ("output_format", "value"),
    "--input-format": ("input_format", "value"),
    "--verbose": ("verbose", "switch"),
    "--include-hook-events": ("include_hook_events", "switch"),
    "--include-partial-messages": ("include_partial_messages", "switch"),
    "--replay-user-messages": ("replay_user_messages", "switch"),
    "--settings": ("settings", "value"),
    "--setting-sources": ("setting_sources", "value"),
    "--hooks": ("hooks", "value"),
    "--trust": ("trust", "switch"),
    "--bare": ("bare", "switch"),
    "--safe-mode": ("bare", "switch"),
    "--permission-mode": ("permission_mode", "value"),
    "--permission-prompt-tool": ("permission_prompt_tool", "value"),
    "--dangerously-skip-permissions": ("skip_permissions", "switch"),
    "--allow-dangerously-skip-permissions": ("may_skip_permissions", "switch"),
    "--allowedTools": ("allowed_tools", "list"),
    "--allowed-tools": ("allowed_tools", "list"),
    "--disallowedTools": ("disallowed_tools", "list"),
    "--disallowed-tools": ("disallowed_tools", "list"),
    "--tools": ("tools", "list"),
    "--model": ("model", "value"),
    "--fallback-model": ("fallback_model", "value"),
    "--effort": ("effort", "value"),
    "--max-turns": ("max_turns", "value"),
    "--max-budget-usd": ("max_budget_usd", "value"),
    "--max-thinking-tokens": ("max_thinking_tokens", "value"),
    "--thinking": ("thinking", "value"),
    "--autocompact": ("autocompact", "value"),
    "--system-prompt": ("system_prompt", "value"),
    "--system-prompt-file": ("system_prompt_file", "value"),
    "--append-system-prompt": ("append_system_prompt", "value"),
    "--append-system-prompt-file": ("append_system_prompt_file", "value"),
    "--mcp-config": ("mcp_config", "list"),
    "--strict-mcp-config": ("strict_mcp_config", "switch"),
    "--plugin-dir": ("plugin_dir", "repeat"),
    "--add-dir": ("add_dir", "list"),
    "--agents": ("agents", "value"),
    "--agent": ("agent", "value"),
    "--resume": ("resume", "maybe"),
    "--continue": ("continue_last", "switch"),
    "--fork-session": ("fork_session", "switch"),
    "--session-id": ("session_id", "value"),
    "--no-session-persistence": ("no_session_persistence", "switch"),
    "--name": ("name", "value"),
    "--init": ("init", "switch"),
    "--init-only": ("init_only", "switch"),
    "--maintenance": ("maintenance", "switch"),
    "--worktree": ("worktree", "maybe"),
    "--audit": ("audit", "value"),
    "--cwd": ("cwd", "value"),
    "--json-schema": ("json_schema", "value"),
    "--betas": ("betas", "list"),
    "--debug": ("debug", "maybe"),
    "--debug-to-stderr": ("debug", "switch"),
    "--mcp-debug": ("debug", "switch"),
    "--help": ("help", "switch"),
    "--version": ("version", "switch"),
    "--await-initialize": ("await_initialize", "switch"),
    "--channels": ("", "list"),
    "--debug-file": ("", "value"),
    "--managed-settings": ("", "value"),
    "--managed-settings-in-initialize": ("", "switch"),
    "--permission-prompts": ("", "value"),
    "--plugin-dir-no-mcp": ("plugin_dir", "repeat"),
    "--project-config-root": ("", "value"),
    "--resume-drops-turn": ("", "value"),
    "--resume-session-at": ("", "value"),
    "--sdk-url": ("", "value"),
    "--session-mirror": ("", "switch"),
    "--task-budget": ("", "value"),
    "--thinking-display": ("", "value"),
}
SHORT = {"-p": "--print", "-v": "--verbose", "-c": "--continue", "-r": "--resume", "-w": "--worktree",
         "-n": "--name", "-h": "--help", "-d": "--debug"}  # fmt: skip


class Flags:
    """What was asked for; a flag that was not given reads as None (a list as empty)."""

    def __init__(self, given: dict[str, Any], words: Sequence[str], unknown: Sequence[str]) -> None:
        self._given = given
        self.words = tuple(words)
        self.unknown = tuple(unknown)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._given.get(name)

    def listed(self, name: str) -> list[str]:
        """A flag that may be given several times."""
        return list(self._given.get(name) or ())

    @property
    def prompt_text(self) -> str | None:
        """The prompt, if it was given as a word."""
        return self._given.get("prompt") or (self.words[0] if self.words else None)


def parse(argv: Sequence[str]) -> Flags:
    """Read the words of a command line."""
    given: dict[str, Any] = {}
    words: list[str] = []
    unknown: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, equals, value = word.partition("=")
        flag = FLAGS.get(SHORT.get(name, name))
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif flag is None:
            unknown.append(name)
        else:
            _take(given, flag, rest, value if equals else None)
            unknown += [] if flag[0] else [name]
    return Flags(given, words, unknown)


def _take(given: dict[str, Any], flag: tuple[str, Kind], rest: list[str], value: str | None) -> None:
    field, kind = flag
    follows = bool(rest) and not rest[0].startswith("-")
    if kind == "switch":
        given[field] = value != "false"
    elif kind == "value":
        given[field] = value if value is not None else rest.pop(0) if rest else ""
    elif kind == "maybe":
        given[field] = value if value is not None else rest.pop(0) if follows else ""
    elif kind == "repeat":
        given.setdefault(field, []).append(value if value is not None else rest.pop(0) if rest else "")
    elif value is not None:
        given.setdefault(field, []).append(value)
    else:
        found = given.setdefault(field, [])
        while rest and not rest[0].startswith("-"):
            found.append(rest.pop(0))


def tell_unknown(flags: Flags) -> None:
    """Say which flags were passed over."""
    for name in flags.unknown:
        print(f"hookline run: flag `{name}` means nothing here and is passed over", file=sys.stderr)
