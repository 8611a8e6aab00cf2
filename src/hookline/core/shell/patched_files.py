"""The files that a shell line changes by way of `apply_patch`, as the tool calls they amount to."""

import re
from collections.abc import Iterator

from hookline.core.patches import PatchedFile, holds_patch, read_patch
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.table import names
from hookline.core.shell.targets import applies_patch, join, names_it, patch_of, placed
from hookline.errors import EventError

_MENTION = re.compile(r"apply[_-]?patch", re.IGNORECASE)
_PLAIN = re.compile(r"[\w./=:,@%+ -]*", re.ASCII)
_ADVICE = "call `apply_patch` alone, with a here-document"
_SIGNS = {ord(char): None for char in "'\"\\"}


def patched_files(text: str) -> Iterator[PatchedFile]:
    """Every file that the patches of a line touch; an `EventError` if it may apply one that cannot be read."""
    mentioned = _MENTION.search(text.replace("\\\n", "").translate(_SIGNS)) is not None
    if not mentioned and _PLAIN.fullmatch(text):
        return
    line, may_hold = parse_line(text), mentioned or holds_patch(text)
    for command, folders in placed(line):
        if applies_patch(command):
            yield from _changes(command, folders)
        elif _may_apply(command, suspect=may_hold):
            raise EventError(f"`{command.text[:60]}` may apply a patch; {_ADVICE}")
    if may_hold and (line.undecidable or line.code or line.evaluates):
        raise EventError(f"the line may apply a patch, and cannot be read; {_ADVICE}")


def _changes(command: SimpleCommand, folders: list[str]) -> Iterator[PatchedFile]:
    changes = read_patch(patch_of(command))
    if not folders:
        raise EventError(f"where `{command.name}` runs depends on an earlier `cd`, so what it touches cannot be told")
    for change in changes:
        for folder in folders:
            yield change._replace(path=join(folder, change.path))
            # Codex runs no shell for it, and takes `~` for a folder's name
            if folder.startswith("~") and not change.path.startswith(("/", "~")):
                yield change._replace(path=join(f"./{folder}", change.path))


def _may_apply(command: SimpleCommand, *, suspect: bool) -> bool:
    """Whether a command may turn out to be `apply_patch`: its name is not known, or it is given that name to run."""
    if 0 in command.globs or (suspect and command.words and not command.name):
        return True
    return not command.wraps and command.name not in names("text") and names_it(command)
