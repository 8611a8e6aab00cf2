"""`hookline completion`: commands and flags for bash, zsh and fish, read from the parsers themselves."""

from __future__ import annotations

import argparse
import re
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO

from hookline.cli.main import COMMANDS
from hookline.cli.options import TEXTS, parser_for


def main(argv: list[str]) -> int:
    """Print the script of one shell."""
    args = parser_for("completion", shells=tuple(SCRIPTS)).parse_args(argv)
    print(SCRIPTS[args.shell]({name: _words_of(name) for name in COMMANDS if name != "completion"}), end="")
    return 0


def _words_of(name: str) -> list[str]:
    """Ask the command for its help, and look at the parser that would print it."""
    found: list[argparse.ArgumentParser] = []

    def caught(self: argparse.ArgumentParser, *_: object, **__: object) -> None:
        found.append(self)
        raise _Caught

    before = argparse.ArgumentParser.parse_known_args
    argparse.ArgumentParser.parse_known_args = caught  # type: ignore[assignment,method-assign]
    try:
        with suppress(_Caught, SystemExit), redirect_stdout(StringIO()) as printed:
            import_module(f"hookline.cli.commands.{COMMANDS[name][0]}").main(["--help"])
    finally:
        argparse.ArgumentParser.parse_known_args = before  # type: ignore[method-assign]
    words = _words(found[0]) if found else set(re.findall(r"--[a-zA-Z][\w-]*", printed.getvalue()))
    return sorted(words)


class _Caught(BaseException):
    """The parser was seen."""


def _words(seen: argparse.ArgumentParser) -> set[str]:
    words = {word for word in seen._option_string_actions if word.startswith("--")}  # noqa: SLF001 - no public way
    for action in seen._actions:  # noqa: SLF001
        if isinstance(action.choices, dict):
            words |= set(action.choices)
            for inner in action.choices.values():
                words |= _words(inner)
    return words


def _bash(flags: dict[str, list[str]]) -> str:
    cases = [
        f'        {name}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word")) ;;' for name, words in flags.items()
    ]
    return _template("bash", " ".join([*COMMANDS, "help"]), "\n".join(cases))


def _zsh(flags: dict[str, list[str]]) -> str:
    commands = "\n".join(f"    '{name}:{about.replace(chr(39), '’')}'" for name, (_, about) in COMMANDS.items())
    cases = "\n".join(f"    {name}) compadd -- {' '.join(words)}; _files ;;" for name, words in flags.items())
    return _template("zsh", commands, cases)


def _template(shell: str, commands: str, cases: str) -> str:
    text = TEXTS.joinpath(f"completion.{shell}").read_text(encoding="utf-8")
    return text.replace("@COMMANDS@", commands).replace("@CASES@", cases)


def _fish(flags: dict[str, list[str]]) -> str:
    lines = ["# fish completion for hookline"]
    for name, (_, about) in COMMANDS.items():
        lines.append(f'complete -c hookline -n __fish_use_subcommand -f -a {name} -d "{about}"')
    for name, words in flags.items():
        seen = f'"__fish_seen_subcommand_from {name}"'
        lines += [
            f"complete -c hookline -n {seen} {'-l ' + word[2:] if word.startswith('--') else '-a ' + word}"
            for word in words
        ]
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
