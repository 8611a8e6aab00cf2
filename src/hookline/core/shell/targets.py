"""Which files a shell line writes, as far as its text tells: by redirection, and by the programs people write with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from hookline.core.patches import read_patch
from hookline.core.paths import inside
from hookline.core.shell.programs.writers import HARMLESS, find_roots, written_by
from hookline.core.shell.shell_line import LATER, ShellLine, SimpleCommand, arguments, base_name, value_of
from hookline.errors import EventError

CHANGES_FOLDER = frozenset({"cd", "pushd", "popd", "chdir"})


def join(folder: str, path: str) -> str:
    """A path seen from a folder."""
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def placed(line: ShellLine) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """Every command of a line with the folders it may run in, relative to where the line starts; none: unknown.

    Those are all that the line may have changed to, or the one that it surely has after `cd x &&`.
    """
    possible: dict[tuple[int, ...], list[str]] = {(): [""]}
    sure = possible.copy()
    for command in line.commands:
        scope = command.scope
        if scope not in possible:
            outer = next(scope[:end] for end in range(len(scope), -1, -1) if scope[:end] in possible)
            possible[scope], sure[scope] = possible[outer], sure[outer]
        elif command.after != "&&":
            sure[scope] = possible[scope]
        folders = sure[scope]
        yield command, folders
        if command.name in CHANGES_FOLDER:
            known, after = possible[scope], _entered(command, folders)
            sure[scope] = after
            possible[scope] = list(dict.fromkeys([*known, *after])) if after and known else []


def _entered(command: SimpleCommand, folders: list[str]) -> list[str]:
    """Where a `cd` leads from these folders; nowhere that is known, perhaps."""
    words = [word for word in command.words[1:] if not re.fullmatch(r"-[LPe@n]+|--", word)]
    target = words[0] if words else "~"
    lost = command.dynamic or command.loops or command.name == "popd" or target[:1] in ("-", "+")
    return [] if lost or len(folders) > 16 else [join(folder, target) for folder in folders]


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


_ELSEWHERE = ("-C", "-D", "--chdir", "--working-directory")
_DIRECTORY_STACK = re.compile(r"~[+-]?\d*(?=/|$)(?<!~)")


class Writes(msgspec.Struct, frozen=True):
    """The files a line writes, creates, changes or removes; relative ones are relative to where the line starts."""

    targets: tuple[str, ...] = ()
    undecidable: tuple[str, ...] = ()  # why there may be more targets, one sentence each
    notes: tuple[str, ...] = ()  # code in other languages and scripts, which may write as well


def _links(command: SimpleCommand, folders: list[str]) -> dict[str, str]:
    """The symbolic links that a command makes, and where each leads."""
    words = arguments(command) if command.name == "ln" else None
    if words is None or len(words.given) != 2 or not words.has(r"-[a-zA-Z]*s[a-zA-Z]*|--symbolic"):
        return {}
    source, name = words.given
    inside = f"{name.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}"
    links = [join(folder, one) for folder in folders for one in (name, inside)]
    return {_short(link): join(link.rpartition("/")[0], source) for link in links}


def _short(path: str) -> str:
    return re.sub(r"(?:^|(?<=/))(?:\./+|/+)", "", path) if not path.startswith("/") else path


def written(line: ShellLine) -> Writes:
    """The files that a parsed line writes."""
    links: dict[str, str] = {}  # that the line makes before it writes through them
    roots = ["."]
    targets: dict[str, None] = {}
    unsure: dict[str, None] = dict.fromkeys((*line.undecidable, *line.code))
    for command, bases in placed(line):
        if command.name == "find":
            roots = find_roots(command)
        for target in _targets(command, roots):
            if target.startswith(LATER):
                where = f"`{command.name or 'the line'}` writes to `{target[1:][:60]}`"
                unsure[f"{where}, which is known only when it runs"] = None
            elif _DIRECTORY_STACK.match(target) or (not bases and not target.startswith(("/", "~"))):
                unsure[f"where `{target[:60]}` lies depends on an earlier `cd`"] = None
            else:
                paths = dict.fromkeys(join(base, target) for base in bases or [""])
                targets.update(paths)
                for short in map(_short, paths):
                    through = (lead + short[len(link) :] for link, lead in links.items() if inside(short, link))
                    targets.update(dict.fromkeys(through))
        links |= _links(command, bases)
        if command.name in ("env", "sudo", "systemd-run") and value_of(command, *_ELSEWHERE):
            unsure[f"`{command.name}` runs its command in another folder"] = None
    kept = tuple(target for target in targets if not HARMLESS.fullmatch(target))
    return Writes(kept, tuple(unsure), line.notes)


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
