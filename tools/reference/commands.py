"""The page of commands: every command's flags, taken from the parsers themselves."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from hookline.cli.commands.run import parser as run_parser
from hookline.cli.main import COMMANDS, command_of
from hookline.cli.options import examples
from hookline.sandbox import main as confine
from tools.reference.markdown import block, code, codes, table

BY_HAND = {"answer": examples("hookline answer"), "confine": confine.help_text()}
"""Commands that read their flags themselves, for the sake of their start-up."""

INTRO = """# Commands

`hookline COMMAND --help` says the same on the terminal. A command that goes wrong on purpose prints one line that says
where, what and what to do, and ends with exit code 1; a command line that cannot be read is exit code 2 or 64; Ctrl-C
is 130.

"""
SHARED = "where hooks come from"
_TAKES = {
    0: "",
    None: "one value",
    "?": "a value, if one follows",
    "*": "all words up to the next flag",
}


class _Parsed(Exception):
    """A command has built its parser and wants to read its arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def page() -> str:
    """All commands, in the order of `hookline --help`."""
    rows = [(f"[{name}](#hookline-{name})", about) for name, (_, about) in COMMANDS.items()]
    overview = table(("command", "does"), rows)
    common = _rows(shared(parser_of("fire")))
    sources = f"## {SHARED.capitalize()}\n\nThese flags are shared by several commands:\n\n{common}"
    return INTRO + overview + f"\n{sources}\n" + "\n".join(_section(name) for name in COMMANDS)


def _section(name: str) -> str:
    if name == "run":
        return f"## `hookline run`\n\n{_run()}"
    if name in BY_HAND:
        return f"## `hookline {name}`\n\n{block(BY_HAND[name], 'text')}"
    parser = parser_of(name)
    told = parser.epilog or examples(parser.prog)
    shown = f"\n{block(told, 'text')}" if told else ""
    return f"## `hookline {name}`\n\n{parser.description}\n\n{_usage(parser)}\n{_flags(parser)}{shown}"


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser that a command builds; nothing is parsed and nothing runs."""
    real = argparse.ArgumentParser.parse_args

    def caught(self: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        raise _Parsed(self)

    argparse.ArgumentParser.parse_args = caught  # type: ignore[method-assign]
    try:
        command_of(name)([])
    except _Parsed as parsed:
        return parsed.parser
    finally:
        argparse.ArgumentParser.parse_args = real  # type: ignore[method-assign]
    raise AssertionError(f"`hookline {name}` parses nothing")


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [parser.prog, "[FLAGS]", *(_shown(action) for action in _actions(parser) if not action.option_strings)]
    return block(" ".join(words), "text")


def _shown(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    many = {"?": f"[{name}]", "+": f"{name} …", "*": f"[{name} …]"}
    return many.get(str(action.nargs), name)


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [one for one in parser._actions if not isinstance(one, argparse._HelpAction)]  # noqa: SLF001 - no other way


def _rows(actions: list[argparse.Action]) -> str:
    return table(("", "means"), [(_written(one), _help(one)) for one in actions]) if actions else ""


def shared(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The flags that say where hooks come from."""
    groups = [group for group in parser._action_groups if group.title == SHARED]  # noqa: SLF001
    return groups[0]._group_actions if groups else []  # noqa: SLF001


def _flags(parser: argparse.ArgumentParser) -> str:
    common = shared(parser)
    plain = [
        one for one in _actions(parser)
        if not isinstance(one, argparse._SubParsersAction) and one not in common  # noqa: SLF001
    ]  # fmt: skip
    text = _rows(plain)
    text += f"\nIt also takes the flags of [where hooks come from](#{SHARED.replace(' ', '-')}).\n" if common else ""
    for one in _actions(parser):
        if isinstance(one, argparse._SubParsersAction):  # noqa: SLF001
            text += "".join(_sub(parser, one, name) for name in one.choices)
    return text


def _sub(parser: argparse.ArgumentParser, kinds: Any, name: str) -> str:
    about = next(one.help for one in kinds._choices_actions if one.dest == name)  # noqa: SLF001
    return f"\n### `{parser.prog} {name}`\n\n{str(about).capitalize()}.\n\n{_flags(kinds.choices[name])}"


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_shown(action))
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(code(f"{word}{value}") for word in action.option_strings)


def _value(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices)) if action.choices else str(action.metavar or action.dest.upper())


def _help(action: argparse.Action) -> str:
    return f"{action.help or ''}{_again(action)}"


def _again(action: argparse.Action) -> str:
    plain = isinstance(action, argparse._AppendAction) and not isinstance(action, argparse._ExtendAction)  # noqa: SLF001
    return "; may be given again" if plain else ""


def _run() -> str:
    flags = {one.option_strings[-1]: one for one in _actions(run_parser())}
    hidden = [name for name, one in flags.items() if one.help == argparse.SUPPRESS]
    rows = [
        (codes(reversed(one.option_strings)), _TAKES[one.nargs] + _again(one), str(one.help))
        for name, one in flags.items()
        if name not in (*hidden, "--version")
    ]
    return (
        "Run the agent. The flags are the Claude CLI's, so that whatever drives that can drive this; an unknown flag "
        "is an error, unless a host drives the run over stream-json: then it is told on standard error and passed "
        "over. `--trust`, `--hooks FILE.py`, `--audit FILE` and `--cwd DIR` are Hookline's own. See [Run the "
        "agent](../how-to/run-the-agent.md).\n\n"
        + block("hookline run -p PROMPT [FLAGS]", "text")
        + "\n"
        + table(("flag", "takes", "means"), rows)
        + f"\nKnown and without effect, so that who gives one is told: {codes(hidden)}.\n"
    )
