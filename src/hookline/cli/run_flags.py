"""The flags of `hookline run`: the Claude CLI's own, so that whatever drives that can drive this, and a few of ours.

One table. An unknown flag is an error that suggests the near ones, unless a host drives us over stream-json:
it may be newer than we are, so it is told and goes on. A flag that is known and has no effect is told, too; one whose
promise would be broken is not among them.
"""

import argparse
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hookline.agent.run_options import RunOptions
from hookline.cli.options import TEXTS
from hookline.cli.options import parser as make_parser
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


def _number(
    pattern: str, what: str, example: str, make: Callable[[str], float], least: float = 0
) -> Callable[[str], Any]:
    """What reads a number that matches a pattern and is larger than `least`."""

    def read(text: str) -> Any:
        number = make(text) if re.fullmatch(pattern, text) else least
        if number <= least:
            raise argparse.ArgumentTypeError(f"expected {what}, got `{text}`; write {example}")
        return number

    return read


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
    fresh = not Path(text).exists()
    try:
        Path(text).open("ab").close()
    except OSError as problem:
        raise argparse.ArgumentTypeError(f"`{text}` cannot be written: {problem.strerror}") from None
    if fresh:
        Path(text).unlink()
    return text


_SAID = tomllib.loads((TEXTS / "run_flags.toml").read_text(encoding="utf-8"))
WITHOUT_EFFECT: dict[str, Kind] = {name: kind for kind, names in _SAID.pop("without_effect").items() for name in names}
"""Flags of the Claude CLI that change nothing here: who gives one is told, unless it promises nothing."""
_QUIET, _CHOICES, _ALIASES, _METAVARS = (_SAID.pop(name) for name in ("quiet", "choices", "aliases", "metavars"))
FLAGS: dict[str, Flag] = {name: Flag(*row) for name, row in _SAID.items()}  # the flags that do something

_TYPES: dict[str, Any] = {
    "--permission-mode": _mode,
    "--max-turns": _number("[0-9]{1,9}", "a number of turns", "`10`", int),
    "--autocompact": _number(
        r"[0-9]+(?:\.[0-9]+)?[kK]?", "a number of tokens", "`100k` or `100000`",
        lambda text: int(float(text.rstrip("kK")) * (1000 if text[-1] in "kK" else 1)), least=-1,
    ),
    "--cwd": _folder,
    "--audit": _log_file,
    "--max-budget-usd": _number(
        r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?", "an amount in US dollars", "`0.50`", float
    ),
    "--max-thinking-tokens": _number("[0-9]{1,9}", "a number of tokens", "`8000`, or `0` for none", int, least=-1),
    "--system-prompt-file": _contents,
    "--append-system-prompt-file": _contents,
}  # fmt: skip


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
    choices = _CHOICES.get(names[-1])
    how: dict[str, Any] = {"switch": {"action": "store_true"}, "value": {}, "maybe": {"nargs": "?", "const": ""},
        "repeat": {"action": "append"}, "list": {"nargs": "*", "action": "extend"}}[kind]  # fmt: skip
    if kind != "switch":
        metavar = "|".join(choices) if choices else _METAVARS.get(field, field.upper().strip("_-"))
        how |= {"type": _TYPES.get(names[-1], str), "metavar": metavar, "choices": choices}
    made.add_argument(*names, dest=field, help=about.replace("%", "%%"), default=argparse.SUPPRESS, **how)


class RunFlags(NamedTuple):
    """The options, and the flags that were passed over, each with why."""

    options: RunOptions
    passed_over: tuple[str, ...]
    version: bool


def parse(argv: Sequence[str]) -> RunFlags:
    """Read a command line; one that cannot be understood ends the program with exit code 64 and what to write."""
    made = parser()
    cut = list(argv).index("--") if "--" in argv else len(argv)
    given, rest = made.parse_known_args(_joined(argv[:cut]))
    said = {name: value for name, value in vars(given).items() if not name.startswith("_")}
    version = said.pop("version")
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    driven = said.get("input_format") == "stream-json"
    if unknown and not driven:
        made.error(f"unknown flag `{unknown[0]}`{did_you_mean(unknown[0], [*FLAGS, *WITHOUT_EFFECT])}")
    prompts = [word for word in rest if not word.startswith("-") or word == "-"] + list(argv[cut + 1 :])
    if not driven and prompts and "prompt" not in said:
        said["prompt"] = prompts[0]
    idle = [name for name in WITHOUT_EFFECT if f"_{name}" in vars(given) and name not in _QUIET]
    passed_over = [f"flag `{name}` is unknown here and passed over" for name in unknown]
    passed_over += [f"flag `{name}` has no effect here" for name in idle]
    several = {field.name for field in fields(RunOptions) if str(field.type).startswith("tuple")}
    known: Any = {name: tuple(value) if name in several else value for name, value in said.items()}
    return RunFlags(RunOptions(**known), tuple(passed_over), version)


def _joined(words: Sequence[str]) -> list[str]:
    """Flags and their values as one word each, so that a value may begin with a dash."""
    kinds: dict[str, Kind] = {**{name: flag.kind for name, flag in FLAGS.items()}, **WITHOUT_EFFECT}
    joined: list[str] = []
    left = iter(words)
    for word in left:
        name = _ALIASES.get(word, word)
        value = next(left, None) if kinds.get(name) in ("value", "repeat") else None
        joined.append(word if value is None else f"{name}={value}")
    return joined
