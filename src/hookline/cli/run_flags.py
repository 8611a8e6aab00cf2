"""The flags of `hookline run`: the Claude CLI's own, so that whatever drives that can drive this, and a few of ours.

One table. An unknown flag is an error that suggests the near ones, unless a host drives us over stream-json:
it may be newer than we are, so it is told and goes on. A flag that is known and has no effect is told, too; one whose
promise would be broken is not among them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hookline.agent.run_options import RunOptions
from hookline.cli.options import parser as make_parser
from hookline.display import one_line
from hookline.errors import did_you_mean
from hookline.guards.permissions import Mode

Kind = Literal["switch", "value", "maybe", "repeat", "list"]


class Flag(NamedTuple):
    """One flag: the option it sets (none: it has no effect), what it takes, and what it is for."""

    field: str
    kind: Kind
    about: str
    short: str = ""


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        modes = [str(mode) for mode in Mode]
        hint = did_you_mean(text, modes) or f"; write one of {', '.join(modes)}"
        raise argparse.ArgumentTypeError(f"unknown mode `{text}`{hint}") from None


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of turns, got `{text}`; write `10`")
    return int(text)


def _tokens(text: str) -> int:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kK]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number of tokens, got `{text}`; write `100k` or `100000`")
    return int(float(found[1]) * (1000 if found[2] else 1))


def _thinking(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"expected a number of tokens, got `{text}`; write `8000`, or `0` for none")
    return int(text)


def _dollars(text: str) -> float:
    if not re.fullmatch(r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?", text) or float(text) <= 0:
        raise argparse.ArgumentTypeError(f"expected an amount in US dollars, got `{text}`; write `0.50`")
    return float(text)


def _folder(text: str) -> str:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is not a folder; name one that exists")
    return text


def _contents(text: str) -> str:
    try:
        return Path(text).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise argparse.ArgumentTypeError(f"`{text}` cannot be read: {reason}") from None


def _log_file(text: str) -> str:
    path = Path(text)
    fresh = not path.exists()
    try:
        path.open("ab").close()
    except OSError as problem:
        raise argparse.ArgumentTypeError(f"`{text}` cannot be written: {problem.strerror}") from None
    if fresh:
        path.unlink()
    return text


FLAGS: dict[str, Flag] = {
    "--print": Flag("print", "switch", "print the answer and end, as with a prompt on the command line", "-p"),
    "--prompt": Flag("prompt", "value", "the prompt, as a flag"),
    "--output-format": Flag("output_format", "value", "`text`, `json` or `stream-json`"),
    "--input-format": Flag(
        "input_format", "value", "`text`, or `stream-json`: a host drives the agent over the control protocol"
    ),
    "--verbose": Flag("verbose", "switch", "in text, also explain every verdict", "-v"),
    "--include-hook-events": Flag("include_hook_events", "switch", "also print when hooks start, print and respond"),
    "--include-partial-messages": Flag(
        "include_partial_messages", "switch", "also print pieces of messages as they arrive"
    ),
    "--replay-user-messages": Flag("replay_user_messages", "switch", "print the user's messages back"),
    "--settings": Flag("settings", "value", "one more settings file, or JSON"),
    "--setting-sources": Flag("setting_sources", "value", "of `user,project,local`"),
    "--hooks": Flag("hooks", "value", "a Python file that defines `hooks`"),
    "--trust": Flag("trust", "switch", "run the project's own hooks without asking"),
    "--bare": Flag("bare", "switch", "no settings but the administrator's"),
    "--safe-mode": Flag("bare", "switch", "the same as `--bare`"),
    "--permission-mode": Flag("permission_mode", "value", ", ".join(f"`{mode}`" for mode in Mode)),
    "--permission-prompt-tool": Flag("permission_prompt_tool", "value", "`stdio`: the host is asked for permission"),
    "--permission-prompts": Flag("permission_prompts", "value", "`none`: what would be asked is denied at once"),
    "--dangerously-skip-permissions": Flag(
        "skip_permissions", "switch", "ask for no permission; hooks and deny rules still hold"
    ),
    "--allowedTools": Flag("allowed_tools", "list", "rules that allow, such as `Bash(git *)`"),
    "--allowed-tools": Flag("allowed_tools", "list", "the same"),
    "--disallowedTools": Flag("disallowed_tools", "list", "rules that deny"),
    "--disallowed-tools": Flag("disallowed_tools", "list", "the same"),
    "--tools": Flag("tools", "list", "the only tools the model gets"),
    "--model": Flag(
        "model", "value", "`anthropic:NAME`, `openai:NAME`, `scripted:FILE`, or the name of a Claude model"
    ),
    "--effort": Flag("effort", "value", "how hard the model should think"),
    "--max-turns": Flag("max_turns", "value", "end after so many turns"),
    "--max-budget-usd": Flag("max_budget_usd", "value", "end once the run has cost so many US dollars, at list price"),
    "--json-schema": Flag("json_schema", "value", "the JSON Schema of the answer, which is then `structured_output`"),
    "--max-thinking-tokens": Flag("max_thinking_tokens", "value", "how many tokens the model may think"),
    "--autocompact": Flag("autocompact", "value", "summarise the conversation beyond so many tokens, such as `100k`"),
    "--system-prompt": Flag("system_prompt", "value", "the system prompt"),
    "--system-prompt-file": Flag("system_prompt", "value", "the file that holds it"),
    "--append-system-prompt": Flag("append_system_prompt", "value", "more system prompt"),
    "--append-system-prompt-file": Flag("append_system_prompt", "value", "the file that holds it"),
    "--mcp-config": Flag("mcp_config", "list", "files or JSON that name MCP servers"),
    "--strict-mcp-config": Flag("strict_mcp_config", "switch", "no MCP servers but those"),
    "--plugin-dir": Flag("plugin_dir", "repeat", "a plugin's folder"),
    "--plugin-dir-no-mcp": Flag("plugin_dir_no_mcp", "repeat", "the same, without its MCP servers"),
    "--add-dir": Flag("add_dir", "list", "more folders to work in"),
    "--agents": Flag("agents", "value", "definitions of subagents, as JSON"),
    "--agent": Flag("agent", "value", "the agent that the session itself is"),
    "--resume": Flag("resume", "maybe", "go on with an earlier session", "-r"),
    "--continue": Flag("continue_last", "switch", "go on with the latest session of this folder", "-c"),
    "--fork-session": Flag("fork_session", "switch", "go on in a copy"),
    "--session-id": Flag("session_id", "value", "the id of the new session"),
    "--no-session-persistence": Flag("no_session_persistence", "switch", "write no transcript"),
    "--resume-session-at": Flag("resume_session_at", "value", "of the session to go on with, only up to this message"),
    "--resume-drops-turn": Flag(
        "resume_drops_turn", "value", "with it: only if that leaves out this prompt's turn alone"
    ),
    "--session-mirror": Flag("session_mirror", "switch", "also print what is written to transcripts"),
    "--init": Flag("init", "switch", "fire Setup first"),
    "--init-only": Flag("init_only", "switch", "fire Setup and SessionStart, then end"),
    "--maintenance": Flag("maintenance", "switch", "fire Setup with `maintenance` first"),
    "--worktree": Flag("worktree", "maybe", "work in a git worktree made for the session", "-w"),
    "--audit": Flag("audit", "value", "write an audit log to this file"),
    "--confine": Flag("confine", "switch", "run every Bash line confined to the folder and the temporary one"),
    "--no-confine": Flag("no_confine", "switch", "run no Bash line confined, not even where a guard is set"),
    "--cwd": Flag("cwd", "value", "the folder to work in"),
}
"""The flags that do something."""

_WITHOUT: dict[Kind, str] = {
    "switch": "--allow-dangerously-skip-permissions --await-initialize --debug-to-stderr --mcp-debug "
    "--managed-settings-in-initialize",
    "value": "--fallback-model --thinking --thinking-display --name --debug-file "
    "--managed-settings --project-config-root --sdk-url "
    "--task-budget",
    "maybe": "--debug",
    "list": "--betas --channels",
}
WITHOUT_EFFECT: dict[str, Kind] = {name: kind for kind, names in _WITHOUT.items() for name in names.split()}
"""Flags of the Claude CLI that change nothing here: who gives one is told."""
QUIET = frozenset({"--allow-dangerously-skip-permissions", "--await-initialize", "--debug-to-stderr", "--debug",
                   "--mcp-debug"})  # fmt: skip
"""Those that promise nothing, so that no note is needed."""

_TYPES: dict[str, Any] = {
    "--permission-mode": _mode, "--max-turns": _count, "--autocompact": _tokens, "--cwd": _folder, "--audit": _log_file,
    "--max-budget-usd": _dollars, "--max-thinking-tokens": _thinking,
    "--system-prompt-file": _contents, "--append-system-prompt-file": _contents,
}  # fmt: skip
_CHOICES = {
    "--permission-prompts": ("host", "none"),
    "--output-format": ("text", "json", "stream-json"),
    "--input-format": ("text", "stream-json"),
}
_ALIASES = {"-d": "--debug", "-n": "--name"}
_METAVARS = {"prompt": "TEXT", "settings": "FILE|JSON", "hooks": "FILE.py", "cwd": "DIR", "plugin_dir": "DIR",
             "audit": "FILE", "max_turns": "N", "autocompact": "TOKENS"}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """All flags with a line of help each."""
    made = make_parser(
        "run",
        "Run the agent, with hooks on every step. The flags are the Claude CLI's; --trust, --hooks, --audit and --cwd "
        "are Hookline's own.",
    )
    made.usage = "hookline run -p PROMPT [flags]"
    made.allow_abbrev = False
    made.add_argument("--version", action="store_true", help="print the version")
    for name, flag in FLAGS.items():
        _add(made, [*([flag.short] if flag.short else []), name], flag.kind, flag.field, flag.about)
    for name, kind in WITHOUT_EFFECT.items():
        short = [word for word, long in _ALIASES.items() if long == name]
        _add(made, [*short, name], kind, f"_{name}", argparse.SUPPRESS)
    return made


def _add(made: argparse.ArgumentParser, names: list[str], kind: Kind, field: str, about: str) -> None:
    name = names[-1]
    about = about.replace("%", "%%")
    if kind == "switch":
        made.add_argument(*names, action="store_true", dest=field, help=about, default=argparse.SUPPRESS)
        return
    more: dict[str, Any] = {"value": {}, "maybe": {"nargs": "?", "const": ""}, "repeat": {"action": "append"},
                            "list": {"nargs": "*", "action": "extend"}}[kind]  # fmt: skip
    metavar = _METAVARS.get(field, field.upper().strip("_-"))
    if name in _CHOICES:
        more, metavar = {**more, "choices": _CHOICES[name]}, "|".join(_CHOICES[name])
    made.add_argument(
        *names, dest=field, help=about, default=argparse.SUPPRESS, type=_TYPES.get(name, str), metavar=metavar, **more
    )


class RunFlags(NamedTuple):
    """The options, and the flags that were passed over, each with why."""

    options: RunOptions
    passed_over: tuple[str, ...]
    version: bool


def parse(argv: Sequence[str]) -> RunFlags:
    """Read a command line; one that cannot be understood ends the program with exit code 64 and what to write."""
    made = parser()
    words, after = _split(argv)
    given, rest = made.parse_known_args(_joined(words))
    said = {name: value for name, value in vars(given).items() if not name.startswith("_")}
    version = said.pop("version")
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    driven = said.get("input_format") == "stream-json"
    for name in unknown:
        if not driven:
            made.error(f"unknown flag `{name}`{did_you_mean(name, [*FLAGS, *WITHOUT_EFFECT])}")
    prompts = [word for word in rest if not word.startswith("-") or word == "-"] + after
    if not driven and prompts and "prompt" not in said:
        said["prompt"] = prompts[0]
    idle = [name for name in WITHOUT_EFFECT if f"_{name}" in vars(given) and name not in QUIET]
    passed_over = [f"flag `{name}` is unknown here and passed over" for name in unknown]
    passed_over += [f"flag `{name}` has no effect here" for name in idle]
    return RunFlags(_options(said), tuple(passed_over), version)


def _options(said: dict[str, Any]) -> RunOptions:
    several = {field.name for field in fields(RunOptions) if str(field.type).startswith("tuple")}
    known: Any = {name: tuple(value) if name in several else value for name, value in said.items()}
    return RunOptions(**known)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before and after `--`."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _joined(words: list[str]) -> list[str]:
    """Flags and their values as one word each, so that a value may begin with a dash."""
    kinds: dict[str, Kind] = {**{name: flag.kind for name, flag in FLAGS.items()}, **WITHOUT_EFFECT}
    joined: list[str] = []
    left = iter(words)
    for word in left:
        takes = kinds.get(_ALIASES.get(word, word)) in ("value", "repeat")
        value = next(left, None) if takes else None
        joined.append(word if value is None else f"{word if word.startswith('--') else _ALIASES[word]}={value}")
    return joined


def tell(parsed: RunFlags) -> None:
    """Say which flags were passed over."""
    for line in parsed.passed_over:
        print(f"hookline run: {one_line(line)}", file=sys.stderr)
