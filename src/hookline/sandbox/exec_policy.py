"""Judging a program as it starts, on its real words: the patterns, and every name that the program goes by."""

from __future__ import annotations

import os

from hookline.sandbox.kernel import content
from hookline.sandbox.path_access import real
from hookline.sandbox.patterns import STAR, CommandPattern, shortest
from hookline.sandbox.programs import MANY_IN_ONE, Library, Originals, ProgramFile, is_loader, loaded
from hookline.sandbox.syscalls import AT_FDCWD

_MOST_INTERPRETERS = 5
_PUSHES = ("send-pack", "http-push")
_SHOWN = 200
_MOST_NOTED = 10_000


class Start:
    """A program about to start: the path it was called by, where that leads, its words, its folder and its thread.

    `opened` is a path by which the file can be opened from here, also where it has no name of its own any more.
    """

    __slots__ = ("argv", "cwd", "given", "opened", "path", "thread", "variables")

    argv: list[str]
    cwd: str
    given: str
    path: str
    thread: int
    opened: str
    variables: list[str]

    def __init__(
        self, given: str, path: str, argv: list[str], cwd: str, thread: int, *,
        opened: str = "", variables: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.given, self.path, self.argv, self.cwd, self.thread = given, path, argv, cwd, thread
        self.opened, self.variables = opened or path, list(variables)

    @property
    def line(self) -> str:
        """The command as a person would write it."""
        words = [self.argv[0] if self.argv else self.given, *self.argv[1:]]
        text = " ".join(quoted(word) for word in words)
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def quoted(word: str) -> str:
    """A word as a shell would take it back."""
    if word and all(char.isalnum() or char in "_@%+=:,./-*" for char in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


class StartJudge:
    """Holds starting programs against patterns."""

    def __init__(self, patterns: list[str], library: Library) -> None:
        self._patterns = [CommandPattern(text) for text in patterns]
        self._library = library
        names = [pattern.name for pattern in self._patterns if STAR not in pattern.name and "/" not in pattern.name]
        self._originals = Originals(list(dict.fromkeys(names)), library) if names else None

    def look_around(self) -> None:
        """Find the programs that patterns name."""
        if self._originals is not None:
            self._originals.look()

    def blocks(self, start: Start, depth: int = 0) -> str | None:
        """The pattern that blocks a start, or None."""
        file = self._library.look(start.opened)
        for name, words in self._readings(start, file):
            for pattern in self._patterns:
                if _taken(pattern, name, words, start.cwd):
                    return pattern.text
        if file is not None and file.interpreter and depth < _MOST_INTERPRETERS:
            return self.blocks(_interpreted(start, file), depth + 1)
        return self._forced_push(start)

    def _forced_push(self, start: Start) -> str | None:
        """The pattern that blocks a push which only the repository's configuration makes a forced one."""
        if not pushes(start.given, start.argv):
            return None
        from hookline.sandbox import git_config

        words = [*start.argv[1:], "--force"]
        pattern = next((one for one in self._patterns if one.takes("git", words)), None)
        return pattern.text if pattern and git_config.forces(start.cwd, words, start.variables) else None

    def _readings(self, start: Start, file: ProgramFile | None) -> list[tuple[str, list[str]]]:
        """Every command that a start may be: by each of the program's names, and as what a multi-call program runs."""
        names = dict.fromkeys([_base(start.path), _base(start.given), start.given, *map(_base, start.argv[:1])])
        if file is not None and self._originals is not None:
            names |= dict.fromkeys(self._originals.names_of(start.path, start.opened, file))
        found = [(name, start.argv[1:]) for name in names if name]
        for name in names:
            if name.startswith(MANY_IN_ONE) and len(start.argv) > 1:
                found.append((_base(start.argv[1]), start.argv[2:]))
            elif is_loader(name) and (words := loaded(start.argv)):
                found += self._loaded(words, start)
            elif name.startswith("git-"):
                found.append(("git", [name[4:], *start.argv[1:]]))
        return [*found, *(_as_push(words) for name, words in found if name == "git")]

    def _loaded(self, words: list[str], start: Start) -> list[tuple[str, list[str]]]:
        path = _leads(start.thread, words[0])
        return self._readings(Start(words[0], path, words, start.cwd, start.thread), self._library.look(path))


class Approvals:
    """What was let go, until it has started: the file and the words that the kernel should make of it."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._noted: dict[int, tuple[tuple[int, int], list[str]]] = {}

    def note(self, start: Start) -> None:
        """Remember a start that was let go."""
        if len(self._noted) >= _MOST_NOTED:
            self._noted.clear()  # programs that never told of their start; the others are judged once more
        file = self._library.look(start.opened)
        for _ in range(_MOST_INTERPRETERS):
            if file is None or not file.interpreter:
                break
            start = _interpreted(start, file)
            file = self._library.look(start.path)
        if file is not None:
            self._noted[start.thread] = (file.identity, start.argv)

    def surprises(self, thread: int) -> list[Start]:
        """What runs in a thread where it is not what was noted: as a program, and as a script that it may have been."""
        noted = self._noted.pop(thread, None)
        status = os.stat(f"/proc/{thread}/exe")
        words = [os.fsdecode(word) for word in content(f"/proc/{thread}/cmdline").split(b"\0")[:-1]]
        if noted == ((status.st_dev, status.st_ino), words):
            return []
        path, cwd = os.readlink(f"/proc/{thread}/exe"), real(thread, AT_FDCWD, "")
        found = [Start(path, path, words, cwd, thread, opened=f"/proc/{thread}/exe")]
        scripts = [words[at:] for at in (1, 2) if words[at:]]
        return [*found, *(Start(each[0], _leads(thread, each[0]), each, cwd, thread) for each in scripts)]


def pushes(given: str, argv: list[str]) -> bool:
    """Whether a start is one of `git push`, by its words."""
    return _base(given) == "git" and "push" in argv


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _interpreted(start: Start, file: ProgramFile) -> Start:
    """The interpreter as the kernel starts it: with the argument of the first line, then the script and its words."""
    program = file.interpreter[0]
    words = [*file.interpreter, start.given, *start.argv[1:]]
    return Start(program, _leads(start.thread, program), words, start.cwd, start.thread)


def _leads(thread: int, path: str) -> str:
    """Where a path leads in the thread that starts a program, or the path itself: the kernel will not find it."""
    try:
        return real(thread, AT_FDCWD, path)
    except OSError:
        return path


def _as_push(words: list[str]) -> tuple[str, list[str]]:
    """`git push` under the names of the programs that do its work."""
    return "git", ["push" if word in _PUSHES else word for word in words]


def _taken(pattern: CommandPattern, name: str, words: list[str], cwd: str) -> bool:
    if pattern.takes(name, words):
        return True
    if not any(operand.startswith(("/", "~")) for operand in pattern.operands) or not pattern.names(name):
        return False
    places = [word if word.startswith("-") else shortest(os.path.normpath(os.path.join(cwd, word))) for word in words]
    home = os.environ.get("HOME", "")
    wanted = CommandPattern(pattern.text.replace(" ~", f" {home}")) if home else pattern
    return wanted.takes(name, places)
