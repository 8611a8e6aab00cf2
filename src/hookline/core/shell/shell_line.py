"""What a shell line does, as values: its simple commands, and what reading alone cannot tell."""

from __future__ import annotations

import msgspec

MAX_LENGTH = 65_536
MAX_DEPTH = 24
MAX_COMMANDS = 1_000
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
        """Whether it may write to a file."""
        if self.op not in WRITING_REDIRECTS or self.target in _HARMLESS_TARGETS:
            return False
        return self.op != ">&" or not self.target.isdigit()


class SimpleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One program or builtin the line may run, however it is wrapped, quoted or nested."""

    name: str
    """The last part of the path: `/bin/rm` is `rm`; empty when it cannot be told."""
    words: tuple[str, ...]
    """The argument vector, quotes removed; an expansion stays as it was written."""
    assignments: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    raw: str = ""
    unknown: tuple[int, ...] = ()
    """Which words depend on an expansion."""
    via: tuple[str, ...] = ()
    """The wrappers it came through, outermost first: `("sudo", "bash -c")`."""
    substitution: bool = False
    """It runs inside `$(…)`, backticks or `<(…)`."""
    wraps: bool = False
    """It runs another command, which is listed after it."""
    after: str = ""
    """The operator before it: `&&` means that what stands before has succeeded."""
    scope: tuple[int, ...] = ()
    """The subshells and processes it runs in, outermost first: a `cd` counts in its own scope only."""
    loops: bool = False
    """It may run several times, or not where it stands: a loop or a function came before."""
    stdin: str | None = None
    """What it reads from a here-document or a here-string, where the shell changes nothing in it."""
    globs: tuple[int, ...] = ()
    """Which words hold an unquoted `*`, `?` or `[`: the shell replaces them by the files there are."""

    @property
    def dynamic(self) -> bool:
        """Whether some word depends on an expansion."""
        return bool(self.unknown)

    @property
    def text(self) -> str:
        """The words joined by single spaces, as rules see them."""
        return " ".join(self.words)


class ShellLine(msgspec.Struct, frozen=True):
    """Everything a shell line may run; an empty `undecidable` means that the list is complete."""

    commands: tuple[SimpleCommand, ...] = ()
    undecidable: tuple[str, ...] = ()
    """Why the list of commands may be incomplete, one sentence each."""
    notes: tuple[str, ...] = ()
    """What runs that is not a shell command: code in another language, a script file, another machine."""
    code: tuple[str, ...] = ()
    """Code in another language that the line carries or pipes in, and that may run any command."""
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
