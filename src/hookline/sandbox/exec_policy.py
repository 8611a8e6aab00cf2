"""Judging a program as it starts, on its real words: the patterns, and every name that the program goes by."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hookline.sandbox import kernel, programs
from hookline.sandbox.confined_line import PathRights
from hookline.sandbox.path_access import WritablePlaces, real, resolve_in_process
from hookline.sandbox.patterns import STAR, CommandPattern, shortest
from hookline.sandbox.syscalls import AT_FDCWD

Reading = tuple[str, list[str]]
"""A command that a start may be: a name, and the words behind it."""

_MOST_INTERPRETERS = 5
_PUSHES = ("send-pack", "http-push")
_SHOWN = 200
_MOST_NOTED = 10_000
_MOST_SCRIPTS = 64
_CODE = ("LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "LD_LIBRARY_PATH")
"""Variables by which the loader or the C library puts code of others into a program."""


class Start:
    """A program about to start: the path it was called by, where that leads, its words, its folder and its thread.

    `opened` is a path by which the file can be opened from here, also where it has no name of its own any more.
    `variables` are read only where they matter; `environ` are those that have been.
    """

    def __init__(
        self, given: str, path: str, argv: list[str], cwd: str, thread: int, *,
        opened: str = "", variables: Callable[[], list[str]] | None = None,
    ) -> None:  # fmt: skip
        self.given: str = given
        self.path: str = path
        self.argv: list[str] = argv
        self.cwd: str = cwd
        self.thread: int = thread
        self.opened: str = opened or path
        self.environ: list[str] | None = None
        self._read = variables

    def variables(self) -> list[str]:
        if self.environ is None:
            self.environ = self._read() if self._read is not None else []
        return self.environ

    def as_program(self, given: str, path: str, argv: list[str]) -> Start:
        return Start(given, path, argv, self.cwd, self.thread, variables=self.variables)

    @property
    def line(self) -> str:
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

    def __init__(self, patterns: list[str], library: programs.Library, places: WritablePlaces | None) -> None:
        self._patterns = [CommandPattern(text) for text in patterns]
        self._library, self._places = library, places
        names = [pattern.name for pattern in self._patterns if STAR not in pattern.name and "/" not in pattern.name]
        self._originals = programs.Originals(list(dict.fromkeys(names)), library, self._writable) if names else None

    def look_around(self) -> None:
        if self._originals is not None:
            self._originals.look()

    def blocks(self, start: Start, depth: int = 0) -> str | None:
        file = self._library.look(start.opened)
        readings = self._readings(start, file)
        for name, words in readings:
            for pattern in self._patterns:
                if _taken(pattern, name, words, start.cwd):
                    return f"the pattern `{pattern.text}`"
        if reason := self._tampered(start, file, readings) or self._forced_push(start, readings):
            return reason
        if file is not None and file.interpreter and depth < _MOST_INTERPRETERS:
            return self.blocks(_interpreted(start, file), depth + 1)
        return None

    def names(self, path: str, opened: str) -> str | None:
        """The pattern that names the program of a file, whatever its words are; None if there is none."""
        file = self._library.look(opened)
        return self._named(self._readings(Start(path, path, [], "/", 0, opened=opened), file))

    def _named(self, readings: list[Reading]) -> str | None:
        names = {name for name, _ in readings}
        for pattern in self._patterns:
            if pattern.name.strip(STAR) and any(pattern.names(name) for name in names):
                return pattern.text
        return None

    def _tampered(self, start: Start, file: programs.ProgramFile | None, readings: list[Reading]) -> str | None:
        """Why a program that a pattern names may not be what it seems: its words say nothing about other code in it."""
        pattern = self._named(readings)
        if pattern is None:
            return None
        _, added = programs.loaded(start.argv) if any(programs.is_loader(name) for name, _ in readings) else ([], [])
        for variable in (*start.variables(), *added):
            name, _, value = variable.partition("=")
            if name in _CODE and value and self._foreign(name, value):
                return f"{name} puts other code into a program that the pattern `{pattern}` names"
        if file is not None and file.loader and not self._is_system_loader(start, file.loader):
            return f"its loader `{file.loader}` is not the system's, and the pattern `{pattern}` names it"
        if start.thread and _is_traced(start.thread):
            return f"it is traced, and the pattern `{pattern}` names it"
        return None

    def _foreign(self, name: str, value: str) -> bool:
        """Whether a variable brings code that the caller had not asked for, or that a line can have written."""
        if value == os.environ.get(name) and self._places is None:
            return False  # what the line could not write to cannot be told there
        if name in _CODE[:2] and value != os.environ.get(name):
            return True
        parts = value.replace(";", ":").replace(" ", ":").split(":")
        return any(not part.startswith("/") or self._writable(os.path.realpath(part)) for part in parts)

    def _writable(self, path: str) -> bool:
        return (self._places is None or self._places.grant(path)) and os.access(path, os.W_OK)

    def _is_system_loader(self, start: Start, loader: str) -> bool:
        path = _leads(start.thread, loader) if start.thread else os.path.realpath(loader)
        known = path in map(os.path.realpath, programs.LOADERS)
        return known or (programs.is_loader(_base(path)) and not self._writable(path.rpartition("/")[0]))

    def _forced_push(self, start: Start, readings: list[Reading]) -> str | None:
        """The pattern that blocks a push which only the repository's configuration makes a forced one."""
        for name, words in readings:
            if name != "git" or "push" not in words:
                continue
            pattern = next((one for one in self._patterns if one.takes("git", [*words, "--force"])), None)
            if pattern is None:
                continue
            if _forces(start.cwd, words, start.variables()):
                return f"the pattern `{pattern.text}`"
        return None

    def _readings(self, start: Start, file: programs.ProgramFile | None) -> list[Reading]:
        """Every command that a start may be: by each of the program's names, and as what it runs in its turn."""
        names = dict.fromkeys([_base(start.path), _base(start.given), start.given, *map(_base, start.argv[:1])])
        if file is not None and self._originals is not None:
            names |= dict.fromkeys(self._originals.names_of(start.path, start.opened, file))
        if file is not None and file.loader and not programs.is_loader(_base(file.loader)):
            names[_base(_leads(start.thread, file.loader))] = None  # which the kernel starts instead of this file
        found = [(name, start.argv[1:]) for name in names if name]
        for name in names:
            if name.startswith(programs.MANY_IN_ONE) and len(start.argv) > 1:
                words = [start.argv[1].removeprefix("--coreutils-prog="), *start.argv[2:]]
                found += self._readings(start.as_program(words[0], words[0], words), None)
            elif programs.is_loader(name):
                found += self._loaded(start)
            elif name.startswith("git-"):
                found.append(("git", [name[4:], *start.argv[1:]]))
            elif (interpreter := name.rstrip("0123456789.-")) in programs.INTERPRETERS:  # whatever its version
                found += self._scripts(interpreter, start)
        return [*found, *(("git", self._as_push(start, words)) for name, words in found if name == "git")]

    def _as_push(self, start: Start, words: list[str]) -> list[str]:
        """A command of git's as the push that it does the work of; forced, where that would stand on its input."""
        pushed = ["push" if word in _PUSHES else word for word in words]
        if pushed != words and any(word.startswith("--std") for word in words) and "--stateless-rpc" not in words:
            return [*pushed, "--force"]
        if words and words[0].startswith("remote-http") and start.thread and not start.opened.endswith("/exe"):
            folder, _, caller = os.readlink(f"/proc/{start.thread}/exe").rpartition("/")
            if caller not in ("git", words[0]) or (self._places is not None and self._places.grant(folder)):
                return ["push", "--force", *words[1:]]  # no push or fetch has started it
        return pushed

    def _loaded(self, start: Start) -> list[Reading]:
        words, _ = programs.loaded(start.argv)
        if not words:
            return []
        path = _leads(start.thread, words[0])
        return self._readings(start.as_program(words[0], path, words), self._library.look(path))

    def _scripts(self, interpreter: str, start: Start) -> list[Reading]:
        """What an interpreter runs: by the name of the script, and by the files among its words and on its input."""
        words = start.argv[1:]
        found = programs.script_words(interpreter, words)
        if self._originals is None or not self._originals.has_scripts or not start.thread:
            return found
        for at, word in enumerate(words[:_MOST_SCRIPTS]):
            with suppress(OSError), resolve_in_process(start.thread, AT_FDCWD, word) as place:  # if it is a file
                found += [(name, words[at + 1 :]) for name in self._script_names(place.opened)]
        return [*found, *((name, words) for name in self._script_names(f"/proc/{start.thread}/fd/0"))]

    def _script_names(self, opened: str) -> list[str]:
        file = self._library.look(opened)
        if file is None or self._originals is None:
            return []
        return self._originals.same_as(opened, file, scripts=True)


class Approvals:
    """What was let go, until it has started: the file, the words and the folder that the kernel should make of it."""

    def __init__(self, library: programs.Library) -> None:
        self._library = library
        self.noted: dict[int, tuple[tuple[int, int], list[str], str, list[str] | None]] = {}
        """Each thread whose start was let go and has not been seen yet."""

    def note(self, start: Start) -> None:
        if len(self.noted) >= _MOST_NOTED:
            self.noted.clear()  # programs that never told of their start; the others are judged once more
        file, environ = self._library.look(start.opened), start.environ
        for _ in range(_MOST_INTERPRETERS):
            if file is None or not file.interpreter:
                break
            start = _interpreted(start, file)
            file = self._library.look(start.path)
        if file is not None:
            self.noted[start.thread] = (file.identity, start.argv, start.cwd, environ)

    def surprises(self, thread: int) -> list[Start]:
        """What runs in a thread where it is not what was noted: as a program, and as a script that it may have been.

        Where variables mattered, a debugger does, too: it may have come since.
        """
        noted = self.noted.pop(thread, None)
        status = os.stat(f"/proc/{thread}/exe")
        words = _texts(f"/proc/{thread}/cmdline")
        cwd = real(thread, AT_FDCWD, "")
        if noted is not None and noted[:3] == ((status.st_dev, status.st_ino), words, cwd):
            environ = noted[3]
            if environ is None or (environ == _texts(f"/proc/{thread}/environ") and not _is_traced(thread)):
                return []
        path = os.readlink(f"/proc/{thread}/exe")
        environ_of = partial(_texts, f"/proc/{thread}/environ")
        found = [Start(path, path, words, cwd, thread, opened=f"/proc/{thread}/exe", variables=environ_of)]
        scripts = [words[at:] for at in (1, 2) if words[at:]]
        return [*found, *(found[0].as_program(each[0], _leads(thread, each[0]), each) for each in scripts)]


def _texts(path: str) -> list[str]:
    return [os.fsdecode(text) for text in kernel.content(path).split(b"\0")[:-1]]


def _is_traced(thread: int) -> bool:
    return kernel.facts(f"/proc/{thread}/status")[b"TracerPid"] != b"0"


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _interpreted(start: Start, file: programs.ProgramFile) -> Start:
    """The interpreter as the kernel starts it: with the argument of the first line, then the script and its words."""
    program = file.interpreter[0]
    return start.as_program(program, _leads(start.thread, program), [*file.interpreter, start.given, *start.argv[1:]])


def _leads(thread: int, path: str) -> str:
    """Where a path leads in the thread that starts a program, or the path itself: the kernel will not find it."""
    with suppress(OSError):
        return real(thread, AT_FDCWD, path)
    return path


def _taken(pattern: CommandPattern, name: str, words: list[str], cwd: str) -> bool:
    if pattern.takes(name, words):
        return True
    if not any(operand.startswith(("/", "~")) for operand in pattern.operands) or not pattern.names(name):
        return False
    places = [word if word.startswith("-") else shortest(os.path.normpath(os.path.join(cwd, word))) for word in words]
    home = os.environ.get("HOME", "")
    wanted = CommandPattern(pattern.text.replace(" ~", f" {home}")) if home else pattern
    return wanted.takes(name, places)


# -- what git's own configuration adds to a push: a remote may be set up so that every push to it is forced ------------

_GIT = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git")
_GIT_PLACES = ("-c", "-C", "--git-dir", "--work-tree")
_GIT_KEPT = ("HOME", "XDG_CONFIG_HOME", "GIT_DIR", "GIT_COMMON_DIR")
_FALSE = ("false", "no", "off", "0", "")
_SILENT = {"GIT_TRACE2": "0", "GIT_TRACE2_EVENT": "0", "GIT_TRACE2_PERF": "0"}
"""Logs that a configuration could ask for, in any file."""
_GIT_SECONDS = 5


def _forces(cwd: str, words: list[str], variables: list[str]) -> bool:
    """Whether a `git … push …` is forced by the configuration that it will read; also where that cannot be told."""
    if not any(os.path.exists(path) for path in _GIT):
        return False
    options = _git_places(words[: words.index("push")], dict(pair.split("=", 1) for pair in variables if "=" in pair))
    found = _git_says([*options, "config", "-z", "--get-regexp", r"^remote\..*\.(push|mirror)$"], cwd, variables)
    if found is None or any(_forced(entry) for entry in found.split("\0")):
        return True
    folder = _git_says([*options, "rev-parse", "--path-format=absolute", "--git-path", "remotes"], cwd, variables)
    return folder is None or _forced_by_file(folder.rstrip("\n"))


def _forced(entry: str) -> bool:
    """Whether one entry of the configuration makes pushes forced ones; a name without a value means yes."""
    key, given, value = entry.partition("\n")
    if key.endswith(".mirror"):
        return not given or value.lower() not in _FALSE
    return value.startswith("+")


def _forced_by_file(folder: str) -> bool:
    """Whether a remote of the old kind, which is a file, does: `Push: +main`."""
    try:
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", errors="replace") as file:
                if any(line.startswith("Push:") and line[5:].lstrip().startswith("+") for line in file):
                    return True
    except OSError:
        return os.path.isdir(folder)
    return False


def _git_places(words: list[str], variables: dict[str, str]) -> list[str]:
    """The options that say where the configuration is and what it says; no other one is handed on."""
    kept: list[str] = []
    for index, word in enumerate(words):
        if word in _GIT_PLACES:
            kept += words[index : index + 2]
        elif word.startswith("--config-env"):  # `--config-env=NAME=VARIABLE`, or the second part by itself
            given = word[13:] if "=" in word else "".join(words[index + 1 : index + 2])
            name, _, variable = given.rpartition("=")
            kept += ["-c", f"{name}={variables.get(variable, '')}"]
        elif word.partition("=")[0] in _GIT_PLACES and "=" in word:
            kept.append(word)
    return kept


def _git_says(words: list[str], cwd: str, variables: list[str]) -> str | None:
    """What git prints, or None if it takes too long; it has few of the caller's variables, and may write nothing."""
    import subprocess  # only where a push is judged

    program = next(path for path in _GIT if os.path.exists(path))
    pairs = [pair.partition("=") for pair in variables]
    environment = {name: value for name, _, value in pairs if name in _GIT_KEPT or name.startswith("GIT_CONFIG_")}
    try:
        done = subprocess.run(
            [program, "-C", cwd, *words], env={**environment, **_SILENT}, stdin=subprocess.DEVNULL, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=_confine_git, timeout=_GIT_SECONDS,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _confine_git() -> None:
    """Git reads files that the line has written."""
    kernel.no_new_privileges()
    if version := kernel.landlock_version():
        PathRights(version, reading=False).enforce()
