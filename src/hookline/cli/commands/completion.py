"""`hookline completion`: commands and flags for bash, zsh and fish, from the tables that the parsers are made from."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO

from hookline.cli.main import COMMANDS, command_of
from hookline.cli.options import TEXTS, flag_tables, parser_for

Words = dict[str, str]


def main(argv: list[str]) -> int:
    """Print the script of one shell."""
    args = parser_for("completion", shells=tuple(SCRIPTS)).parse_args(argv)
    words = {name: " ".join(sorted({"--help", *_words_of(name)})) for name in COMMANDS if name != "completion"}
    print(SCRIPTS[args.shell](words), end="")
    return 0


def _words_of(name: str) -> Iterator[str]:
    """A command's flags, its commands, and their flags; of one with flags of its own making, those in its help."""
    if name not in flag_tables():
        with suppress(SystemExit), redirect_stdout(StringIO()) as printed:
            command_of(name)(["--help"])
        yield from re.findall(r"--[a-zA-Z][\w-]*", printed.getvalue())
        return
    for row in flag_tables()[name][1:]:
        if isinstance(row, str):
            yield from _words_of(row)
        elif row[1] != "@hidden":
            yield from re.findall(r"--\S+", row[0])
    for table in (table for table in flag_tables() if table.startswith(f"{name} ")):
        yield table.removeprefix(f"{name} ")
        yield from _words_of(table)


def _bash(flags: Words) -> str:
    cases = [f'        {name}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;' for name, words in flags.items()]
    return _template("bash", " ".join([*COMMANDS, "help"]), cases)


def _zsh(flags: Words) -> str:
    commands = "\n".join(f"    '{name}:{about.replace(chr(39), '’')}'" for name, (_, about) in COMMANDS.items())
    return _template("zsh", commands, [f"    {name}) compadd -- {words}; _files ;;" for name, words in flags.items()])


def _template(shell: str, commands: str, cases: list[str]) -> str:
    text = TEXTS.joinpath(f"completion.{shell}").read_text(encoding="utf-8")
    return text.replace("@COMMANDS@", commands).replace("@CASES@", "\n".join(cases))


def _fish(flags: Words) -> str:
    lines = ["# fish completion for hookline"]
    for name, (_, about) in COMMANDS.items():
        lines.append(f'complete -c hookline -n __fish_use_subcommand -f -a {name} -d "{about}"')
    for name, word in ((name, word) for name, words in flags.items() for word in words.split()):
        offer = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
        lines.append(f'complete -c hookline -n "__fish_seen_subcommand_from {name}" {offer}')
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
