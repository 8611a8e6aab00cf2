"""The flags of `hookline run`: the Claude CLI's own, so that whatever drives that can drive this, and a few of ours.

An unknown flag is an error that suggests the near ones, unless a host drives us over stream-json:
it may be newer than we are, so it is told and goes on. A flag that is known and has no effect is told, too; one whose
promise would be broken is not among them.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from hookline.agent.factory import RunOptions
from hookline.cli.options import FlagParser, flag_tables, parser_for
from hookline.errors import did_you_mean
from hookline.guards.permissions import Mode


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        modes = [str(mode) for mode in Mode]
        hint = did_you_mean(text, modes) or f"; write one of {', '.join(modes)}"
        raise argparse.ArgumentTypeError(f"unknown mode `{text}`{hint}") from None


def _number(form: str, what: str, example: str, make: Callable[[str], float], least: float = 0) -> Callable[[str], Any]:
    """What reads a number that has a form (a pattern) and is larger than `least`."""

    def read(text: str) -> Any:
        number = make(text) if re.fullmatch(form, text) else least
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


_TYPES: dict[str, Callable[[str], Any]] = {
    "mode": _mode,
    "folder": _folder,
    "contents": _contents,
    "log": _log_file,
    "turns": _number("[0-9]{1,9}", "a number of turns", "`10`", int),
    "thinking": _number("[0-9]{1,9}", "a number of tokens", "`8000`, or `0` for none", int, least=-1),
    "size": _number(
        r"[0-9]+(?:\.[0-9]+)?[kK]?", "a number of tokens", "`100k` or `100000`",
        lambda text: int(float(text.rstrip("kK")) * (1000 if text[-1] in "kK" else 1)), least=-1,
    ),
    "dollars": _number(r"[0-9]*\.?[0-9]+(?:[eE]-?[0-9]{1,3})?", "an amount in US dollars", "`0.50`", float),
}  # fmt: skip


def parser() -> FlagParser:
    """All flags with a line of help each; those that the Claude CLI has and that change nothing here are hidden."""
    made = parser_for("run", **_TYPES)
    made.usage = "hookline run -p PROMPT [flags]"
    made.allow_abbrev = False
    return made


class RunFlags(NamedTuple):
    """The options, and the flags that were passed over, each with why."""

    options: RunOptions
    passed_over: tuple[str, ...]
    version: bool


def parse(argv: Sequence[str]) -> RunFlags:
    """Read a command line; one that cannot be understood ends the program with exit code 64 and what to write."""
    made = parser()
    cut = list(argv).index("--") if "--" in argv else len(argv)
    given, rest = made.parse_known_args(_joined(argv[:cut], made.flags))
    said = {name: value for name, value in vars(given).items() if value is not None and value is not False}
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    driven = said.get("input_format") == "stream-json"
    if unknown and not driven:
        known = [name for name in made.flags if name.startswith("--")]
        made.error(f"unknown flag `{unknown[0]}`{did_you_mean(unknown[0], known)}")
    prompts = [word for word in rest if not word.startswith("-") or word == "-"] + list(argv[cut + 1 :])
    if not driven and prompts and "prompt" not in said:
        said["prompt"] = prompts[0]
    idle = [re.findall(r"--\S+", row[0])[0] for row in flag_tables()["without effect"][1:]]
    passed_over = [f"flag `{name}` is unknown here and passed over" for name in unknown]
    passed_over += [f"flag `{name}` has no effect here" for name in idle if made.flags[name].dest in said]
    chosen = {field.name: said[field.name] for field in fields(RunOptions) if field.name in said}
    options: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    return RunFlags(RunOptions(**options), tuple(passed_over), "version" in said)


def _joined(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> list[str]:
    """Flags and their values as one word each, so that a value may begin with a dash."""
    joined: list[str] = []
    left = iter(words)
    for word in left:
        takes_one = word in flags and flags[word].nargs is None
        value = next(left, None) if takes_one else None
        joined.append(word if value is None else f"{flags[word].option_strings[-1]}={value}")
    return joined
