"""Which commands are plainly a Python script, and which Python would run them.

Only what can be read with certainty counts: one simple command, plain words, variables whose value cannot be split or
globbed. Everything else is None, that is: run it the ordinary way.
"""

# ruff: noqa: PTH109, PTH112, PTH113, PTH116, PTH117, PTH118, PTH119, PTH123, SIM905 - plain paths cost a tenth
from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from hookline.processes.fork_server import STARTUP_NAMES, STARTUP_PREFIXES, read_at_startup
from hookline.processes.spawn import BY_SHELL, ProcessSpec

SHELLS = ("/bin/sh", "sh")
STARTUP = (*STARTUP_NAMES, *STARTUP_PREFIXES)
PYTHON_VARIABLES = frozenset(
    "PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONHASHSEED "
    "PYTHONNOUSERSITE PYTHONWARNINGS PYTHONOPTIMIZE PYTHONPYCACHEPREFIX PYTHONUSERBASE PYTHON".split()
)
"""Those that a warm interpreter honours; with any other of Python's own set the script runs the ordinary way.

`PYTHON` is not its own: `make PYTHON=python3.12` sets it for all that it runs.
"""
FLAGS = re.compile(r"-[BOsu]+")
INTERPRETER = re.compile(r"python(?:3(?:\.\d+)?)?")
BINARIES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How a real interpreter begins; a wrapper script might choose another one next time."""
SAFE_VALUE = re.compile(r"[\w@%+:,./-]+")


class Interpreter(msgspec.Struct, frozen=True):
    """One way to start Python: the file, the name it is called by, its flags, and the environment it starts up in."""

    file: str
    name: str
    flags: tuple[str, ...]
    startup: tuple[tuple[str, str], ...]
    identity: tuple[int, ...]


class WarmPlan(msgspec.Struct, frozen=True):
    """A Python script as a warm interpreter runs it: the command's words, `before` of which come before the script."""

    interpreter: Interpreter
    words: tuple[str, ...]
    before: int
    shell: bool
    """Whether a shell was to start it, and is skipped."""


def plan(spec: ProcessSpec) -> WarmPlan | None:
    """How a warm interpreter would run this program; None if it is not plainly a Python script."""
    env = spec.env if spec.env is not None else os.environ
    argv = spec.argv
    line = len(argv) == 3 and argv[0] in SHELLS and argv[1] == "-c"
    shell = line or argv[:3] == BY_SHELL
    words = shell_words(argv[2], env) if line else argv[3:] if shell else argv
    cwd = spec.cwd or os.getcwd()
    if not words or not os.path.isdir(cwd):
        return None
    called = _called(words, cwd)
    startup = None if called is None else _startup(env)
    if called is None or startup is None:
        return None
    python, flags, script, arguments = called
    found = _interpreter(python, flags, cwd, env, startup)
    if found is None or not os.path.isfile(os.path.join(cwd, script)):
        return None
    return WarmPlan(found, (python, *flags, script, *arguments), 1 + len(flags), shell)


Startup = tuple[tuple[str, str], ...]


def _startup(env: Mapping[str, str]) -> Startup | None:
    """What of an environment an interpreter reads while it starts up; None if a warm one could not honour it."""
    counting = tuple(sorted((name, value) for name, value in env.items() if name.startswith(STARTUP)))
    if any(name.startswith("PYTHON") and name not in PYTHON_VARIABLES for name, _ in counting):
        return None
    path = env.get("PYTHONPATH", "")
    if path and not all(os.path.isabs(entry) for entry in path.split(os.pathsep)):
        return None
    return tuple(pair for pair in counting if read_at_startup(pair[0]))


def _called(words: tuple[str, ...], cwd: str) -> tuple[str, tuple[str, ...], str, tuple[str, ...]] | None:
    """The interpreter as named, its flags, the script and its arguments."""
    first, rest = words[0], words[1:]
    if INTERPRETER.fullmatch(os.path.basename(first)):
        flags = 0
        while flags < len(rest) and FLAGS.fullmatch(rest[flags]):
            flags += 1
        if flags == len(rest) or rest[flags].startswith("-"):
            return None
        return first, rest[:flags], rest[flags], rest[flags + 1 :]
    if "/" not in first:
        return None
    line = _shebang(os.path.join(cwd, first))
    return None if line is None else (line[0], line[1:], first, rest)


def _shebang(path: str) -> tuple[str, ...] | None:
    """The interpreter, and its one flag, that the first line of an executable names."""
    try:
        if not os.access(path, os.X_OK):
            return None
        with open(path, "rb") as script:
            line = script.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!") or not line.endswith(b"\n") or b"\r" in line:
        return None
    words = os.fsdecode(line[2:]).split()
    if len(words) == 2 and words[0] in ("/usr/bin/env", "/bin/env"):
        words = words[1:]
    elif not words or not os.path.isabs(words[0]):
        return None
    if not INTERPRETER.fullmatch(os.path.basename(words[0])) or len(words) > 2:
        return None
    return tuple(words) if len(words) == 1 or FLAGS.fullmatch(words[1]) else None


def _interpreter(
    name: str, flags: tuple[str, ...], cwd: str, env: Mapping[str, str], startup: Startup
) -> Interpreter | None:
    file = os.path.join(cwd, name) if "/" in name else shutil.which(name, path=env.get("PATH", os.defpath))
    if file is None or not os.path.isabs(file) or ("/" in name and not os.path.isabs(name)):
        return None
    try:
        stat = os.stat(file)
        identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        real = _is_binary(file, identity)
    except OSError:
        return None
    return Interpreter(file, name, flags, startup, identity) if real else None


@lru_cache(16)
def _is_binary(file: str, identity: tuple[int, ...]) -> bool:
    """Whether a file is a real interpreter, looked at again when it is another file."""
    with open(file, "rb") as binary:
        return binary.read(4) in BINARIES


# ---- the words of a simple command

PIECE = re.compile(
    r"""(?P<space>[ \t]+)"""
    r"""|'(?P<single>[^']*)'"""
    r"""|"(?P<double>[^"`\\]*)\""""
    r"""|\$(?:\{(?P<braced>\w+)\}|(?P<bare>\w+))"""
    r"""|(?P<plain>[\w@%+:,./=-]+)"""
)
VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*)|())")
RESERVED = frozenset(
    "if then else elif fi do done case esac while until for in exec eval command exit set cd . :".split()
)


class _NotPlain(Exception):
    """The command needs a shell to be understood."""


def shell_words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    """The words a shell would make of a simple command, or None if it takes a shell to know."""
    return _words(command, env) if "$" in command else _words_without_variables(command)


def _words(command: str, env: Mapping[str, str]) -> tuple[str, ...] | None:
    try:
        words = tuple(_split(command.strip(" \t\n"), env))
    except _NotPlain:
        return None
    if not words or "=" in words[0] or words[0] in RESERVED:
        return None
    return words


_words_without_variables = lru_cache(256)(lambda command: _words(command, {}))


def _split(command: str, env: Mapping[str, str]) -> Iterator[str]:
    word: str | None = None
    at = 0
    while at < len(command):
        piece = PIECE.match(command, at)
        if piece is None:
            raise _NotPlain
        at = piece.end()
        if piece["space"] is not None:
            if word is not None:
                yield word
            word = None
        else:
            word = (word or "") + _text(piece, env)
    if word is not None:
        yield word


def _text(piece: re.Match[str], env: Mapping[str, str]) -> str:
    for group in ("single", "plain"):
        if piece[group] is not None:
            return piece[group]
    if piece["double"] is not None:
        return VARIABLE.sub(lambda found: _value(found[1] or found[2] or "", env), piece["double"])
    value = _value(piece["braced"] or piece["bare"], env)
    if not SAFE_VALUE.fullmatch(value):  # unquoted, it would be split or globbed
        raise _NotPlain
    return value


def _value(name: str, env: Mapping[str, str]) -> str:
    """A variable from the environment; the shell's own (`$1`, `$PWD`, one not set) are its business."""
    if name not in env or name in ("PWD", "OLDPWD", "IFS", "PPID", "PS1", "PS2", "PS4", "OPTIND", "_"):
        raise _NotPlain
    return env[name]
