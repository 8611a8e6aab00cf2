"""Which files a shell line writes, as far as its text tells: by redirection, and by the programs people write with."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from hookline.core.paths import inside
from hookline.core.shell.folders import CHANGES_FOLDER, Folders, join
from hookline.core.shell.programs.patching import applies_patch, patched
from hookline.core.shell.programs.writers import HARMLESS, find_roots, written_by
from hookline.core.shell.shell_line import LATER, ShellLine, SimpleCommand, arguments, value_of

_DIRECTORY_STACK = re.compile(r"~[+-]?\d*(?=/|$)(?<!~)")


class Writes(msgspec.Struct, frozen=True):
    """The files a line writes, creates, changes or removes; relative ones are relative to where the line starts."""

    targets: tuple[str, ...] = ()
    undecidable: tuple[str, ...] = ()
    """Why there may be more targets, one sentence each."""
    notes: tuple[str, ...] = ()
    """Code in other languages and scripts, which may write as well."""


class _Links:
    """The links that a line makes before it writes through them."""

    def __init__(self) -> None:
        self._leads: dict[str, str] = {}

    def make(self, command: SimpleCommand, folders: list[str]) -> None:
        if command.name != "ln":
            return
        words = arguments(command)
        if len(words.given) != 2 or not words.has(r"-[a-zA-Z]*s[a-zA-Z]*|--symbolic"):
            return
        source, name = words.given
        inside = f"{name.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}"
        for link in (join(folder, one) for folder in folders for one in (name, inside)):
            self._leads[_short(link)] = join(link.rpartition("/")[0], source)

    def through(self, target: str) -> list[str]:
        """Where a target leads by way of those links."""
        short = _short(target)
        return [lead + short[len(link) :] for link, lead in self._leads.items() if inside(short, link)]


def _short(path: str) -> str:
    return re.sub(r"(?:^|(?<=/))(?:\./+|/+)", "", path) if not path.startswith("/") else path


def written(line: ShellLine) -> Writes:
    """The files that a parsed line writes."""
    folders, links, roots = Folders(), _Links(), ["."]
    targets: dict[str, None] = {}
    unsure: dict[str, None] = dict.fromkeys((*line.undecidable, *line.code))
    for command in line.commands:
        bases = folders.of(command)
        if command.name == "find":
            roots = find_roots(command)
        for target in _targets(command, roots):
            if target.startswith(LATER):
                unsure[
                    f"`{command.name or 'the line'}` writes to `{target[1:][:60]}`, which is known only when it runs"
                ] = None
            elif _DIRECTORY_STACK.match(target) or (not bases and not target.startswith(("/", "~"))):
                unsure[f"where `{target[:60]}` lies depends on an earlier `cd`"] = None
            else:
                placed = dict.fromkeys(join(base, target) for base in bases or [""])
                targets.update(placed)
                targets.update(dict.fromkeys(lead for each in placed for lead in links.through(each)))
        links.make(command, bases)
        if command.name in CHANGES_FOLDER:
            folders.change(command, bases)
        elif _moves(command):
            unsure[f"`{command.name}` runs its command in another folder"] = None
    kept = tuple(target for target in targets if not HARMLESS.fullmatch(target))
    return Writes(kept, tuple(unsure), line.notes)


def _moves(command: SimpleCommand) -> bool:
    options = ("-C", "-D", "--chdir", "--working-directory")
    return command.name in ("env", "sudo", "systemd-run") and bool(value_of(command, *options))


def _targets(command: SimpleCommand, roots: list[str]) -> Iterable[str]:
    for redirect in command.redirects:
        if redirect.writes:
            yield redirect.target if redirect.known else LATER + redirect.target
    writer = patched if applies_patch(command) else written_by
    for target in writer(command):
        if target.startswith(LATER) and "{}" in target and any(via.startswith("find ") for via in command.via):
            yield from roots
        elif target not in ("", "-"):
            yield target
