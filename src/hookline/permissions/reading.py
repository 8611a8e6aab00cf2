"""Which shell lines only read, and what they read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hookline.globs import absolute, inside
from hookline.shell import ShellLine, SimpleCommand, parse_line

_TEXT = frozenset(
    [
        "echo",
        "pwd",
        "whoami",
        "true",
        "false",
        "uname",
        "id",
        "which",
        "type",
        "seq",
        "expr",
        "test",
        "[",
        ":",
        "basename",
        "dirname",
        "arch",
        "nproc",
        "groups",
        "tty",
        "logname",
        "users",
        "uptime",
        "date",
        "printf",
    ]
)
"""Programs that look at no file, whatever they are told."""

_FILES = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "stat",
        "du",
        "df",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "diff",
        "cmp",
        "comm",
        "cut",
        "tr",
        "nl",
        "realpath",
        "readlink",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "strings",
        "od",
        "hexdump",
        "column",
        "jq",
        "tac",
        "rev",
        "fold",
        "paste",
        "join",
        "cd",
        "find",
        "fd",
        "tree",
        "file",
        "sort",
        "base64",
        "tsort",
        "expand",
        "unexpand",
        "fmt",
        "pr",
    ]
)
"""Programs that read the files among their words."""

_GIT = frozenset(
    [
        "status",
        "log",
        "diff",
        "show",
        "blame",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "describe",
        "shortlog",
        "grep",
        "cat-file",
        "rev-list",
        "merge-base",
        "name-rev",
        "diff-tree",
        "count-objects",
    ]
)
"""Parts of git that read, whatever they are told."""

_FORMS: dict[str, str] = {
    "cal": r"[\d ]*",
    "docker": r"(ps|images)( -[aq]+| --all)*|inspect( \w[\w.-]*)+|logs( \w[\w.-]*)",
    "free": r"(-[bkmght]+( -[bkmght]+)*)?",
    "git": r"branch( -[arv]+| --(all|remotes|list|show-current|sort=\S+)| --(no-)?(merged|contains)( \w\S*)?)*"
    r"|tag( (-l|--list|--sort=\S+|--contains \w\S*))*|remote( (-v|--verbose))?|stash list|stash show( -p| --stat)*"
    r"|config --get [\w.-]+|reflog( show)?( -n \d+)?|for-each-ref( refs/\S*)*|worktree list( --porcelain)?",
    "help": r"\w*",
    "history": r"\d*",
    "hostname": r"(-[fisdAI]+)?",
    "ifconfig": r"\w*",
    "ip": r"addr",
    "locale": r"(-[am])?",
    "lsof": r"(-[inPt]+( :\d+)?)?",
    "netstat": r"(-[anltursi]+( -[anltursi]+)*)?",
    "node": r"-v|--version",
    "numfmt": r"(--(to|from)=\w+ )*[\d.]+\w?",
    "pgrep": r"(-[lafx]+ )*[\w.]+",
    "ps": r"((-[a-zA-Z]+|[axu]+|\d+)( (-[a-zA-Z]+|[axu]+|\d+))*)?",
    "python": r"--version",
    "python3": r"--version",
    "sed": r"-n \d+(,\d+)?p( \w\S*)+",
    "sleep": r"[\d.]+[smh]?",
    "ss": r"(-[tulpnar46]+( -[tulpnar46]+)*)?",
    "tput": r"cols|lines|colors|bold|sgr0",
    "uniq": r"(-[cdui]+)?",
}
"""Programs that read when they are called like this, by what follows their name."""

_WRAPPERS = {"builtin": 1, "command": 1, "xargs": 1, "timeout": 2}
"""Programs that run another one, and how many words it takes to get there; what they run is looked at by itself."""


_WRITING_OPTIONS: dict[str, tuple[str, ...]] = {
    "date": ("-s", "--set"),
    "printf": ("-v",),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
    "fd": ("-x", "-X", "--exec"),
    "tree": ("-o",),
    "file": ("-C", "--compile"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "rg": ("--pre",),
    "git": (
        "--output",
        "-O",
        "--open-files-in-pager",
        "--ext-diff",
        "--textconv",
        "-c",
        "-C",
        "--git-dir",
        "--work-tree",
        "--exec-path",
        "--config-env",
    ),
    "jq": ("--rawfile", "--slurpfile", "-f", "--from-file", "-L"),
}
_ALSO_READING = frozenset({"cp", "mv", "sed", "awk", "less", "more", "uniq", "base64", "xxd", "source", "."})
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "sed", "awk", "jq"})


def reads_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a shell line does nothing but read, and only inside the working folders."""
    line = parse_line(command)
    return plain(line) and all(reads(part, line, cwd, dirs, home) for part in line.commands)


def files_read(command: str) -> list[str]:
    """The files that a shell line plainly reads: operands of the programs people read with, and what is after `<`."""
    paths: list[str] = []
    for part in parse_line(command).commands:
        paths += [redirect.target for redirect in part.redirects if redirect.op == "<" and redirect.known]
        if part.name in _FILES or part.name in _ALSO_READING:
            given = [word for at, word in enumerate(part.words) if at and at not in part.unknown and word[:1] != "-"]
            paths += given[1:] if part.name in _PATTERN_FIRST else given
    return paths


def plain(line: ShellLine) -> bool:
    """Whether all that a line runs is known."""
    return bool(line.commands) and not line.undecidable and not line.notes


def reads(
    part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str, *, writing: bool = False
) -> bool:
    """Whether a command does nothing but read, and only inside the working folders; `writing` lets it redirect."""
    if part.assignments or not part.words or part.words[0] != part.name:
        return False
    if any(redirect.writes for redirect in part.redirects) and not writing:
        return False
    if any(_is_option(word, _WRITING_OPTIONS.get(part.name, ())) for word in part.words[1:]):
        return False
    if part.name in _TEXT or (not writing and _wraps(part)):
        return True
    known = part.name in _FILES or (part.name == "git" and part.words[1:2] != () and part.words[1] in _GIT)
    return (known or _has_form(part)) and all_inside(part, line, cwd, dirs, home)


def _has_form(part: SimpleCommand) -> bool:
    form, words = _FORMS.get(part.name), part.words[1:]
    return form is not None and " " not in "".join(words) and re.fullmatch(form, " ".join(words)) is not None


def _wraps(part: SimpleCommand) -> bool:
    steps = _WRAPPERS.get(part.name)
    return steps is not None and not any(word.startswith("-") for word in part.words[1 : steps + 1])


def _is_option(word: str, options: Sequence[str]) -> bool:
    for option in options:
        if word == option or word.startswith(option + "="):
            return True
        if len(option) == 2 and word[:1] == "-" and word[:2] != "--" and option[1] in word:
            return True
    return False


def all_inside(part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether every word that may be a path lies in a working folder; what is only known later does not."""
    if part.unknown or (part.name == "cd" and (len(part.words) != 2 or part.words[1].startswith("-"))):
        return False
    moved = any(other.name == "cd" for other in line.commands)
    for word in (*part.words[1:], *(redirect.target for redirect in part.redirects if redirect.op == "<")):
        option = word.startswith("-")
        value = word.partition("=")[2] if option else word
        if (option and "/" in word.partition("=")[0]) or (moved and ".." in value):
            return False
        if value not in ("", "/dev/null") and not within(absolute(value, cwd, home), dirs):
            return False
    return True


def within(path: str, dirs: Sequence[str]) -> bool:
    """Whether an absolute path lies in one of the folders."""
    return any(inside(path, folder) for folder in dirs)
