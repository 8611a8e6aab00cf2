"""Which shell lines only read, and only inside the working folders.

The rule is an allow-list: a program that is known to read, called with options that are known to do nothing else. All
that is not known is asked about.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookline.core.git_settings import is_harmless_setting, read_settings
from hookline.core.hooks.condition import Rule, RuleMatch, part_caught
from hookline.core.paths import absolute, from_root, inside_any
from hookline.core.shell import ShellLine, SimpleCommand, parse_line
from hookline.core.shell.programs.table import ParsedOptions, Program, known, names, program, values
from hookline.core.shell.targets import join, placed
from hookline.guards.permissions import path_on_disk

_BEFORE_GIT = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--icase-pathspecs"})
"""Options of git itself that change nothing about what it runs; `-C`, `-c` and `--git-dir` do."""
_TABLE = Path(__file__).with_name("forms.txt").read_text("utf-8").splitlines()
FORMS = dict(line.split(" => ") for line in _TABLE if " => " in line and not line.startswith("#"))
_FIND_FLAGS, _FIND_TEXTS = (frozenset(FORMS.pop(f"find {name}").split()) for name in ("flags", "texts"))
"""Programs that read when they are called like this, by what follows their name."""
_WRAPPERS = {"builtin": 1, "command": 1, "xargs": 1, "timeout": 2}
"""Programs that run another one, and how many words it takes to get there; what they run is looked at by itself."""
_HARMLESS_VARIABLES = re.compile(r"LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|CLICOLOR(?:_FORCE)?|FORCE_COLOR|COLUMNS")
_NO_FILES = frozenset({"", "-", "/dev/null"})
_COUNTS_INTO = re.compile(r"%[-+ #0-9.*$'hlLjzt]*n")
_FETCHES = re.compile(r"\b(?:import|include|env)\b|\$ENV")


class WorkingFolders(NamedTuple):
    """Where a line starts, and the folders in which an agent may look around."""

    cwd: str
    dirs: Sequence[str]
    home: str

    def path(self, word: str, base: str = "") -> str:
        """The absolute path that a word names, links and `..` as they stand."""
        return from_root(join(base, word), self.cwd, self.home)

    def hold(self, word: str, base: str = "") -> bool:
        """Whether what a word names lies inside, both as it is written and where its links lead."""
        word = join(base, word)
        if word.startswith("~") and word != "~" and not word.startswith("~/"):
            return False
        here = inside_any(absolute(word, self.cwd, self.home), self.dirs)
        return here and inside_any(path_on_disk.real(self.path(word)), [*self.dirs, *map(path_on_disk.real, self.dirs)])


def reads_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a shell line does nothing but read, and only inside the working folders."""
    line, folders = parse_line(command), WorkingFolders(cwd, dirs, home)
    return plain(line) and all(reads(part, bases, folders) for part, bases in placed(line))


def plain(line: ShellLine) -> bool:
    """Whether all that a line runs is known."""
    return bool(line.commands) and not (line.undecidable or line.notes or line.code or line.evaluates)


def reads(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders, *, writing: bool = False) -> bool:
    """Whether a command does nothing but read, and only inside the working folders; `writing` lets it redirect."""
    if not part.words or part.words[0] != part.name:
        return False
    if not all(_HARMLESS_VARIABLES.fullmatch(name) for name, _ in part.assignments):
        return False
    if any(redirect.writes for redirect in part.redirects) and not writing:
        return False
    inputs = [redirect for redirect in part.redirects if redirect.op == "<"]
    targets = [each.target for each in inputs]
    known = bool(bases) and all(each.known for each in inputs)
    if inputs and not (known and all(_files_inside(targets, base, folders) for base in bases)):
        return False
    if part.name in names("harmless") or (part.name == "printf" and _prints(part)) or (not writing and _wraps(part)):
        return True
    if part.unknown or not bases:
        return False
    return all(_reads_from(part, base, folders) for base in bases)


def _prints(part: SimpleCommand) -> bool:
    """Whether `printf` is given a format that sets no variable; `-v` and `%n` do, and run what is in a subscript."""
    form = part.words[1] if len(part.words) > 1 else "-"
    return not (1 in (*part.unknown, *part.globs) or form.startswith("-") or _COUNTS_INTO.search(form))


def _wraps(part: SimpleCommand) -> bool:
    steps = _WRAPPERS.get(part.name)
    return part.wraps and steps is not None and not any(word.startswith("-") for word in part.words[1 : steps + 1])


def _reads_from(part: SimpleCommand, base: str, folders: WorkingFolders) -> bool:
    """Whether a command that runs in this folder only reads."""
    words = spelled_out(part, base, folders)
    files = None if words is None else _files(part.name, words, base, folders)
    return files is not None and _files_inside(files, base, folders)


def spelled_out(part: SimpleCommand, base: str, folders: WorkingFolders) -> list[str] | None:
    """The words after the program's name as it receives them, globs replaced; None when there are too many."""
    here, words = folders.path(".", base), list[str]()
    with suppress(path_on_disk.TooMany):
        for index, word in enumerate(part.words[1:], 1):
            words += path_on_disk.expand(word, here) if index in part.globs else [word]
        return words
    return None


def _files_inside(files: Iterable[str], base: str, folders: WorkingFolders) -> bool:
    return all(word in _NO_FILES or folders.hold(word, base) for word in files)


def _files(name: str, words: list[str], base: str, folders: WorkingFolders) -> Iterable[str] | None:
    """The files that a program reads with these words; None when it may do more than read."""
    if name == "git" and (_in_another_repository(base, folders) or runs_something(folders.path(".", base))):
        return None
    if name == "find":
        return find_files(words)
    if name == "cd":
        return words if len(words) == 1 and not words[0].startswith("-") else None
    if name in ("test", "["):
        return None if {"-v", "-R"} & set(words) else ()  # a subscript in a variable's name may run a command
    row, words = row_of(name, words)
    if row is None:
        return _form_files(name, words)
    taken = match_options(name, words, row)
    return None if taken is None else taken.files


def row_of(name: str, words: list[str]) -> tuple[Program | None, list[str]]:
    """The row of a program that reads (for git, of its subcommand), and the words that the row is about."""
    if name == "git":
        while words and words[0] in _BEFORE_GIT:
            words = words[1:]
        name = f"git:{words[0]}" if words else ""
    if name not in names("reads"):
        return None, words
    return program(name), words[name.startswith("git:") :]


def match_options(name: str, words: list[str], row: Program) -> ParsedOptions | None:
    """The words, sorted, if the program does nothing but read when it is called with them."""
    taken = known(words, row)
    return taken if taken is not None and (name not in _FURTHER or _FURTHER[name](taken)) else None


_FURTHER: dict[str, Callable[[ParsedOptions], bool]] = {
    "date": lambda taken: all(word.startswith("+") for word in taken.operands),
    "jq": lambda taken: not (taken.operands and _FETCHES.search(taken.operands[0])),
    "git": lambda taken: not any(name in ("--format", "--pretty") and "%G" in value for name, value in taken.options),
}
"""What has to hold besides the options.

A bare number sets the clock; a jq filter may read further files, or the environment; a format that shows signatures
(`%G?`) runs the program that the configuration names for it.
"""


def _in_another_repository(base: str, folders: WorkingFolders) -> bool:
    """Whether a line has entered a repository, whose configuration could have git run anything."""
    place = path_on_disk.real(folders.path(".", base))
    return place != path_on_disk.real(folders.cwd) or path_on_disk.in_bare_repository(place)


def _form_files(name: str, words: list[str]) -> list[str] | None:
    """Every word that may be a path, of a program that is called in one of the few ways it is known by."""
    form = FORMS.get(name)
    if form is None or " " in "".join(words) or re.fullmatch(form, " ".join(words)) is None:
        return None
    return [word.partition("=")[2] if word.startswith("-") else word for word in words]


_FIND_FILES = re.compile(r"-(?:newer|anewer|cnewer|samefile|newer[aBcm][aBcm])")


def find_files(words: Iterable[str], *, runs: bool = False) -> list[str] | None:
    """The folders that `find` goes through and the files it compares with; None when it may do more than look.

    With `runs` it may run commands: they are looked at by themselves.
    """
    files: list[str] = []
    left, started = iter(_without_commands(words) if runs else words), False
    for word in left:
        if word in _FIND_FLAGS:
            started = started or word not in ("-H", "-L", "-P")
        elif word in _FIND_TEXTS or _FIND_FILES.fullmatch(word):
            value, started = next(left, None), True
            if value is None:
                return None
            files += [value] if word not in _FIND_TEXTS else []
        elif word.startswith("-") or started:
            return None
        else:
            files.append(word)
    return files


_AWK_RUNS = re.compile(r"system|getline|[|>@]")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")


def find_unknown_options(line: ShellLine, rules: Sequence[Rule]) -> Iterator[str]:
    """What in a line may do more than its program is known for, unless a rule spells that option out."""
    spelt_out = [rule.pattern for rule in rules if rule.pattern and " -" in rule.pattern]
    for part in line.commands:
        if any(_NETWORK.match(each.target) for each in part.redirects):
            yield f"`{part.text[:200]}` reads from the network"
        elif not _is_understood(part) and not any(part_caught(pattern, part) is RuleMatch.YES for pattern in spelt_out):
            yield f"`{part.text[:200]}` may do more than read; list it with its options to allow it"


def _is_understood(part: SimpleCommand) -> bool:
    """Whether a reading program is called in a known way; other programs are not judged here."""
    words = list(part.words[1:])
    if part.name == "find":
        return find_files(words, runs=part.wraps) is not None
    if values("writes").get(part.name) == "awk":
        return "-f" not in words and not any(_AWK_RUNS.search(word) for word in words)
    row, words = row_of(part.name, words)
    return row is None or match_options(part.name, words, row) is not None


def _without_commands(words: Iterable[str]) -> Iterator[str]:
    inside = False
    for word in words:
        inside = inside or word in ("-exec", "-execdir", "-ok", "-okdir")
        if not inside:
            yield word
        inside = inside and word not in (";", "+")


# Git's own files are read, never run: `git config` would run what a hostile repository has put there.

_LARGEST = 1 << 20
_MOST_INCLUDES = 8


class GitConfig:
    """The settings of git's files, one after the other, names in small letters; a later value counts more."""

    def __init__(self, *files: Path, head: str | None = None) -> None:
        self.values: list[tuple[str, str]] = []
        self.complete = True  # whether all files could be read
        self.branch = head[4:].strip().removeprefix("refs/heads/") if head and head.startswith("ref:") else None
        """What is checked out; None when it cannot be told."""
        self._included = 0
        for file in files:
            self._read(file)

    def get(self, name: str) -> str | None:
        return next(reversed(self.all(name)), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.values if key == name]

    def _read(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                text = opened.read(_LARGEST + 1)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            self.complete = False
            return
        self.complete = self.complete and len(text) <= _LARGEST
        for name, value in read_settings(text.decode("utf-8", "replace")):
            self.complete = self.complete and bool(name)
            self.values += [(name, value)] if name else []
            if name == "include.path" or (name.startswith("includeif.") and name.endswith(".path")):
                self._included += 1  # a condition is taken to hold, since it may
                self.complete = self.complete and self._included <= _MOST_INCLUDES
                if self._included <= _MOST_INCLUDES:
                    self._read(file.parent / Path(value).expanduser())


def read_git_config(folder: str) -> GitConfig:
    """The settings that hold for git in a folder: the machine's, the user's, the repository's."""
    head, own = _repository(folder)
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return GitConfig(Path("/etc/gitconfig"), config / "git" / "config", home / ".gitconfig", *own, head=head)


def runs_something(folder: str) -> str:
    """Why git may run a program in a folder although it is only asked to look; empty where it does not.

    Judged by the repository's own files, which its users can write. What is not known to be harmless is not.
    """
    head, own = _repository(folder)
    settings = running_settings(folder)
    if head is None or settings is None:
        return "" if head is None else "its configuration cannot be read whole"
    if settings:
        return f"`{settings[0]}` is set in its configuration"
    hook = "post-index-change"  # the one that runs although git was only asked to look
    return f"it has the hook `{hook}`" if any((file.parent / "hooks" / hook).exists() for file in own) else ""


def main_worktree(folder: str) -> str | None:
    """The folder that holds the repository which a folder belongs to, also from one of its other work trees."""
    _, own = _repository(folder)
    return str(own[0].parent.parent) if own else None


def running_settings(folder: str) -> list[str] | None:
    """The settings of the repository's own files that are not known to be harmless; None if not all could be read."""
    config = GitConfig(*_repository(folder)[1])
    found = dict.fromkeys(name for name, value in config.values if not is_harmless_setting(name, value))
    return list(found) if config.complete else None


def _repository(folder: str) -> tuple[str | None, list[Path]]:
    """The HEAD of the repository that a folder is in, and its settings: those that work trees share, and its own."""
    here = Path(path_on_disk.real(folder))  # a folder above `x/..` is not one above `x`
    for place in (here, *here.parents):
        git = place / ".git"
        try:
            if git.is_file():
                git = place / git.read_text().removeprefix("gitdir:").strip()
            head = (git / "HEAD").read_text().strip()
        except (OSError, ValueError):
            continue
        shared = git
        with suppress(OSError, ValueError):
            shared = git / (git / "commondir").read_text().strip()
        return head, [shared / "config", git / "config.worktree"]
    return None, []
