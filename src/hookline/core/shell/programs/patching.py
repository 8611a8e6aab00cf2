"""`apply_patch`, which Codex puts on its shell's PATH: the files of the patch that a command is given."""

from __future__ import annotations

import re

from hookline.core.patches import read_patch
from hookline.core.shell.shell_line import LATER, SimpleCommand, base_name
from hookline.errors import EventError

NAMES = frozenset({"apply_patch", "applypatch"})
_OPTION = "--codex-run-as-apply-patch"
_OTHER_NAME = re.compile(r"-[a-z]*a|--argv0(?:=.*)?")


def patch_of(command: SimpleCommand) -> str:
    """The patch that `apply_patch` is given: its one argument, or a here-document."""
    inputs = [redirect for redirect in command.redirects if redirect.op.startswith("<")]
    given = command.words[1:]
    if command.name in NAMES and not command.dynamic and not command.globs:
        if len(given) == 1 and not inputs:
            return given[0]
        if not given and len(inputs) == 1 and inputs[0].fd in ("", "0") and command.stdin is not None:
            return command.stdin
    raise EventError(f"what `{command.text[:60]}` is given cannot be read; give the patch in a here-document")


def applies_patch(command: SimpleCommand) -> bool:
    """Whether a command is `apply_patch`, or starts it under another name."""
    if not command.assignments and not any("patch" in word for word in command.words):
        return False
    if command.name in NAMES or _OPTION in command.words:
        return True
    renames = any(_OTHER_NAME.fullmatch(word) for word in command.words[1:])
    return (renames and names_it(command)) or any(base_name(value) in NAMES for name, value in command.assignments
                                                  if name == "ARGV0")  # fmt: skip


def names_it(command: SimpleCommand) -> bool:
    """Whether `apply_patch` is among the words that a command is given."""
    return any(base_name(word.rpartition("=")[2]) in NAMES for word in command.words[1:])


def patched(command: SimpleCommand) -> list[str]:
    """The files that `apply_patch` writes."""
    try:
        return [change.path for change in read_patch(patch_of(command))]
    except EventError:
        return [LATER + "the files of a patch"]
