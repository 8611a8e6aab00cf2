"""What a shell line does, as values: its simple commands, and what reading alone cannot tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

MAX_LENGTH = 65_536
MAX_DEPTH = 24
MAX_WORDS = 256

WRITING_REDIRECTS = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
_HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "-"})


class Redirect(msgspec.Struct, frozen=True):
    """One redirection: `2>> log` is `Redirect(">>", "log", "2")`; `known` is False when the target is expanded."""

    op: str
    target: str
    fd: str = ""
    known: bool = True

    @property
    def writes(self) -> bool:
        if self.op not in WRITING_REDIRECTS or self.target in _HARMLESS_TARGETS:
            return False
        return self.op != ">&" or not self.target.isdigit()


class SimpleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One program or builtin the line may run, however it is wrapped, quoted or nested."""

    name: str  # the last part of the path: `/bin/rm` is `rm`; empty when it cannot be told
    words: tuple[str, ...]  # the argument vector, quotes removed; an expansion stays as it was written
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    raw: str = ""
    unknown: tuple[int, ...] = ()  # which words depend on an expansion
    via: tuple[str, ...] = ()  # the wrappers it came through, outermost first: `("sudo", "bash -c")`
    substitution: bool = False  # it runs inside `$(…)`, backticks or `<(…)`
    wraps: bool = False  # it runs another command, which is listed after it
    after: str = ""  # the operator before it: `&&` means that what stands before has succeeded
    scope: tuple[int, ...] = ()  # its subshells and processes, outermost first: a `cd` counts in its own scope only
    loops: bool = False  # it may run several times, or not where it stands: a loop or a function came before
    stdin: str | None = None  # what a here-document or here-string has for it, where the shell changes nothing in it
    globs: tuple[int, ...] = ()  # words with an unquoted `*`, `?` or `[`: the shell replaces them by files' names

    @property
    def dynamic(self) -> bool:
        return bool(self.unknown)

    @property
    def text(self) -> str:
        """The words joined by single spaces, as rules see them."""
        return " ".join(self.words)

    @property
    def marked(self) -> list[str]:
        """The words, `LATER` in front of those that depend on an expansion."""
        unknown = frozenset(self.unknown)
        return [LATER + word if index in unknown else word for index, word in enumerate(self.words)]


class ShellLine(msgspec.Struct, frozen=True):
    """Everything a shell line may run; an empty `undecidable` means that the list is complete."""

    commands: tuple[SimpleCommand, ...] = ()
    undecidable: tuple[str, ...] = ()  # why the list of commands may be incomplete, one sentence each
    notes: tuple[str, ...] = ()  # what runs that is no shell command: other languages, a script, another machine
    code: tuple[str, ...] = ()  # other languages that the line carries or pipes in, which may run any command
    evaluates: tuple[str, ...] = ()
    """Where the shell reads a text as an expression, which may run the commands in a subscript, one sentence each."""

    @property
    def substitutes(self) -> bool:
        """Whether part of the line is produced by running another part."""
        return any(command.substitution for command in self.commands)


class Undecidable(Exception):
    """Reading stops here; never leaves this package."""


def base_name(path: str) -> str:
    """The last part of a path: what `/usr/bin/env` is called."""
    return path.rsplit("/", 1)[-1]


class ParseState(msgspec.Struct):
    """What reading has found so far; shared by a line and everything nested in it."""

    commands: list[SimpleCommand] = []
    undecidable: dict[str, None] = {}
    notes: dict[str, None] = {}
    code: dict[str, None] = {}
    scopes: list[int] = []
    evaluates: dict[str, None] = {}


Words = list[tuple[str, bool]]  # the words of a command, and whether each is known


class NestedCommand(NamedTuple):
    """One command or script that a wrapper runs."""

    via: str
    words: Words
    script: str | None = None
    stdin: str | None = None
    shell: str = "bash"


class Analysis(NamedTuple):
    """What a command runs in turn, and what cannot be told about it."""

    runs: tuple[NestedCommand, ...] = ()
    undecidable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


class Invocation(NamedTuple):
    """What a command is given: its words, the text it reads, and what feeds it: a pipe, a file or nothing."""

    words: Words
    stdin: str | None = None
    fed: str = ""

    @property
    def texts(self) -> list[str]:
        return [word for word, _ in self.words[1:]]


Look = Callable[[str, Invocation], Analysis]  # looks inside one program: its name, and what it is given


def script(via: str, words: Words, shell: str = "bash") -> Analysis:
    """A script handed over as text, several words joined by spaces."""
    if not all(known for _, known in words):
        return Analysis(undecidable=(f"the text that `{via}` runs is known only when it runs",))
    return Analysis((NestedCommand(via, [], " ".join(word for word, _ in words), shell=shell),))


LATER = "\ue002"  # begins a word that is known only when the line runs


class Arguments(NamedTuple):
    """The arguments of a command, options apart; a word that is known only later is `LATER`."""

    given: list[str]
    options: list[str]
    values: list[str]

    def has(self, pattern: str) -> bool:
        return any(re.fullmatch(pattern, option) for option in self.options)


def arguments(command: SimpleCommand) -> Arguments:
    """The words after the program's name, sorted."""
    given: list[str] = []
    options: list[str] = []
    values: list[str] = []
    only_words = False
    for word in command.marked[1:]:
        if only_words or not word.startswith("-") or word == "-":
            given.append(word)
        elif word == "--":
            only_words = True
        else:
            options.append(word)
            if "=" in word:  # `--output=x`
                values.append(word.split("=", 1)[1])
            elif not word.startswith("--") and ("/" in word[2:] or "~" in word[2:]):  # `-C/etc`
                values.append(word[2:])
    return Arguments(given, options, values)


def value_of(command: SimpleCommand, *names: str) -> list[str]:
    """The values of an option that is written as `-o x`, `-ox` or `--output=x`."""
    found, marked = [], command.marked
    for index, word in enumerate(command.words[1:], 1):
        for name in names if word.startswith("-") else ():
            if word == name and index + 1 < len(marked):
                found.append(marked[index + 1])
            elif name.startswith("--") and word.startswith(name + "="):
                found.append(word[len(name) + 1 :])
            elif not name.startswith("--") and word.startswith(name) and len(word) > len(name):
                found.append(word[len(name) :])
    return found
