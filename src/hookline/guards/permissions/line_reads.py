"""Which files a shell line may read, as far as its text tells.

A program that is called in a way that its row knows reads the files that the row says. Of any other call every word
that may be a path counts, since a program that is not known may read whatever it is given.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.languages import LANGUAGES
from hookline.core.shell.programs.table import lists, names, values
from hookline.core.shell.targets import CHANGES_FOLDER, HARMLESS, join, placed
from hookline.guards.permissions.readonly_commands import find_files, match_options, row_of

_OPENS_NONE = frozenset({"printf", "export", "sleep", "exit", "return", "kill", "set", "unset", "wait"})
_TEXT_ONLY = names("harmless") | CHANGES_FOLDER | _OPENS_NONE
"""Programs that open none of their words; a wildcard among them still shows which files there are."""
_OPENS, _DEEP = names("opens") | {"git"}, lists("deep")
_FOLLOWED_BY_TEXT = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"), ("-e", "--regexp")),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), ("-e", "--expression")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), ("-F", "-v", "--field-separator", "--assign")),
    **dict.fromkeys(("jq", "yq"), ("--arg", "--argjson")),
}
"""Options that are followed by a text, of programs that take a pattern or a script."""
_SCRIPT_OPTIONS = frozenset({"-e", "-f", "--regexp", "--file", "--files", "--expression", "--from-file"})
_SCRIPTED = frozenset(name for name, look in values("look").items() if look == "sed" or look in LANGUAGES)
"""Programs with a language of their own, in which a script can name a file: `r /etc/passwd`, `getline < "x"`."""
_MENTION = re.compile(r"(?:/|~/|\.\./)[^\s\"'();,<>]+")
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][\w+.-]*://")
_OPTION_WITH_VALUE = re.compile(r"-[^-](?:(/.|~|\.\./)|.)", re.DOTALL)
_EXCLUDES = ("--exclude=", "--exclude-dir=")
_LOOKS_AT_HIDDEN = re.compile(r"--hid|--unr|-[^-]*[.u]")
"""Options with which ripgrep looks at files whose name begins with a dot."""


class FileRead(NamedTuple):
    """A file that a line may read, seen from where the line starts."""

    path: str
    certain: bool = True  # whether the word can be nothing but a path
    by: str = ""  # the program it is given to, if that shows, copies or hands on what it is given; `<`: a redirection
    deep: bool = False  # whether what lies below it is read as well, or may be: by a program that is not known
    without: tuple[str, ...] = ()  # names that are passed over on the way


class LineReads(NamedTuple):
    """What a line reads, the paths that its scripts mention (which may be anything else), and why there may be more."""

    files: tuple[FileRead, ...]
    mentioned: tuple[str, ...]
    undecidable: tuple[str, ...]


@lru_cache(maxsize=2048)
def reads_of(text: str) -> LineReads:
    """The files that a shell line may read; an earlier `cd` in the line is already applied."""
    line = parse_line(text)
    found: dict[FileRead, None] = {}
    mentioned: dict[str, None] = {}
    unsure: dict[str, None] = dict.fromkeys((*line.undecidable, *line.code))
    for part, bases in placed(line):
        if part.name in _SCRIPTED:
            paths = (path for word in part.words[1:] for path in _MENTION.findall(word))
            mentioned.update((join(base, path), None) for path in paths for base in bases or [""])
        for file in _files(part):
            word = file.path if file else ""
            if file is None:
                unsure[f"`{part.text[:60]}` may read a file that is known only when it runs"] = None
            elif not bases and not word.startswith(("/", "~")):
                unsure[f"where `{word[:60]}` lies depends on an earlier `cd`"] = None
            elif not HARMLESS.fullmatch(word):
                found.update((file._replace(path=join(base, word)) if base else file, None) for base in bases or [""])
    return LineReads(tuple(found), tuple(mentioned), tuple(unsure))


def _files(part: SimpleCommand) -> Iterator[FileRead | None]:
    """The words of a command that may be files; None for one that is known only when the line runs."""
    for redirect in part.redirects:
        if redirect.op in ("<", "<>"):
            yield FileRead(redirect.target, by="<") if redirect.known else None
    if not part.words:
        return
    if part.name in _TEXT_ONLY:
        yield from (FileRead(part.words[index]) for index in part.globs if part.name not in CHANGES_FOLDER)
        return
    filled = any(via.startswith("find ") for via in part.via)
    if any(not (filled and "{}" in part.words[index]) for index in part.unknown if index):
        yield None
    words = [word for index, word in enumerate(part.words) if index and index not in part.unknown]
    understood = _understood(part.name, words)
    operands, files = understood or _suspected(part.name, words)
    kind = part.name if part.name in _OPENS else "", *_depth(part.name, words)
    if understood is None and (part.name == "find" or part.name not in _OPENS):
        kind = kind[0], True, ()
    if part.name in names("searches") and not operands:
        files.append(FileRead("."))
    files = [file for file in files if file.path]  # behind the colon of `host:` stands no file
    yield FileRead(".")
    yield from (FileRead(file.path, file.certain, *kind) for file in files) if any(kind) else files


_Found = tuple[list[str], list[FileRead]]
"""The words of a call that are operands and name files, and all of its words that do."""


def _understood(name: str, words: list[str]) -> _Found | None:
    """The files of a call that is understood as a whole."""
    operands = files = find_files(words) if name == "find" else None
    row, rest = row_of(name, words)
    if row is not None and (taken := match_options(name, rest, row)) is not None:
        operands = [word for word in taken.files if word in taken.operands]
        # `HEAD:x`, and `-L 1,9:x`, which shows these lines; some programs take the words in `@x` for their own
        places = words if any(word.startswith("-L") for word in words) else taken.files
        files = [*taken.files, *(word[1:] for word in taken.files if word.startswith("@"))]
        files += [word.rpartition(":")[2] for word in places if name == "git" and ":" in word]
    if operands is None or files is None:
        return None
    return operands, [FileRead(word) for word in files if word not in ("", "-")]


def _suspected(name: str, words: list[str]) -> _Found:
    """Every word, and every part of a word, that may be a path."""
    operands, files = list[str](), list[FileRead]()
    scripted = name in names("script-first") and not any({word, word[:2]} & _SCRIPT_OPTIONS for word in words)
    before = ""
    for word in words:
        if word.startswith("-") and word != "-":
            files += _attached(word, name)
        elif before in _FOLLOWED_BY_TEXT.get(name, ()):
            files += _attached(word, name) if before in ("-v", "--assign") else ()
        elif scripted:
            scripted = False
        elif not _ADDRESS.match(word):
            operands.append(word)
            certain = word.startswith(("/", "~", "./", "../")) and not re.search(r"\s", word)
            files += [FileRead(word.removeprefix("file://"), certain), *_attached(word, name)]
        before = word
    return operands, files


def _attached(word: str, name: str) -> Iterator[FileRead]:
    """What may be a path inside a word: `--file=x`, `if=x`, `data=@x`, `f=<x`, `-fx`, `HEAD:x`, `host:x`."""
    if word.startswith(_EXCLUDES):
        return
    for sign in "=@":
        if sign in word:
            yield FileRead(word.partition(sign)[2].lstrip("@<").partition(";")[0])  # `-F f=@x;type=text/plain`
            yield FileRead(word.rpartition(sign)[2], certain=False)
    if ":" in word and "://" not in word:
        for index, piece in enumerate(word.split(":")):
            if piece.startswith(("/", "~", "..")) or (index and name in _OPENS):
                yield FileRead(piece, certain=False)
    if found := _OPTION_WITH_VALUE.match(word):
        if found[1]:
            yield FileRead(word[2:])
        elif name in _OPENS and word[2] != "/":
            yield FileRead(word[2:], certain=False)


def _depth(name: str, words: list[str]) -> tuple[bool, tuple[str, ...]]:
    """Whether a call reads what lies below a folder, too, and the names that it passes over there."""
    if (needed := _DEEP.get(name)) is None:
        return False, ()
    options = [word for word in words if word.startswith("-")]
    short = {option[1] for option in needed if not option.startswith("--")}
    bundled = any(short & set(word[1:]) for word in options if not word.startswith("--"))
    whole = [word for word in options if word.startswith("--") and word != "--"]  # or the beginning of one
    deep = not needed or bundled or any(option.startswith(word) for word in whole for option in needed)
    without = tuple(word.partition("=")[2] for word in options if word.startswith(_EXCLUDES))
    hidden = name == "rg" and not any(_LOOKS_AT_HIDDEN.match(word) for word in options)
    return deep, (*without, ".*") if hidden else without
