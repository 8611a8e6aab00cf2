"""Which folders the commands of a line run in, as far as its `cd`s tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hookline.core.shell.shell_line import ShellLine, SimpleCommand

CHANGES_FOLDER = frozenset({"cd", "pushd", "popd", "chdir"})


class Folders:
    """Where the line may be: every folder it may have changed to, and the one it surely has after `cd x &&`."""

    def __init__(self) -> None:
        self.possible: dict[tuple[int, ...], list[str]] = {(): [""]}
        self.sure: dict[tuple[int, ...], list[str]] = {(): [""]}

    def of(self, command: SimpleCommand) -> list[str]:
        """The folders that the command may run in; an empty list means that it cannot be told."""
        scope = command.scope
        if scope not in self.possible:
            outer = next(scope[:end] for end in range(len(scope), -1, -1) if scope[:end] in self.possible)
            self.possible[scope], self.sure[scope] = self.possible[outer], self.sure[outer]
        elif command.after != "&&":
            self.sure[scope] = self.possible[scope]
        return self.sure[scope]

    def change(self, command: SimpleCommand, folders: list[str]) -> None:
        """Follow a `cd`."""
        words = [word for word in command.words[1:] if not re.fullmatch(r"-[LPe@n]+|--", word)]
        target = words[0] if words else "~"
        lost = command.dynamic or command.loops or command.name == "popd" or target[:1] in ("-", "+") or not folders
        after = [] if lost or len(folders) > 16 else [join(folder, target) for folder in folders]
        known = self.possible[command.scope]
        self.sure[command.scope] = after
        self.possible[command.scope] = list(dict.fromkeys([*known, *after])) if after and known else []


def join(folder: str, path: str) -> str:
    """A path seen from a folder."""
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def placed(line: ShellLine) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """Every command of a line with the folders it may run in, relative to where the line starts; none: unknown."""
    folders = Folders()
    for command in line.commands:
        bases = folders.of(command)
        yield command, bases
        if command.name in CHANGES_FOLDER:
            folders.change(command, bases)
