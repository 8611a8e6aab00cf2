"""A trusted script is started from the bytes that were hashed, not from its path, which may lead elsewhere by then.

The bytes are put into a sealed memory file, which nothing can change, and the command is given its name in `/proc`: a
shell script as it is, a Python script as an archive together with the modules beside it. That needs Linux, a command
that is just one program with its script, and a script that does not ask where it lies; any other is started where it
is, and an exchange of a folder on its way is found when it has ended.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hookline.core.hooks.actions import Command
from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELLS
from hookline.errors import SealBroken
from hookline.processes.spawn import BY_SHELL
from hookline.settings.files import LARGEST, read_bytes
from hookline.settings.sources import absolute_path
from hookline.settings.trust.code_imports import is_python, is_shell
from hookline.settings.trust.scripts import MARKS

_ASKS_WHERE = re.compile(
    rb"\$\{?[0_]|BASH_SOURCE|FUNCNAME|ZSH_|\bcaller\b|__(?:file|path|spec|loader|main)__|argv(?!\[[1-9])|sys\.path|"
    rb"\binspect\b|importlib|pkgutil|traceback|multiprocessing|/proc/|/dev/fd"
)
_PLAIN_FLAGS = {"shell": re.compile(r"-[eux]+"), "python": re.compile(r"-[uBEIsSPOq]+")}
_MODULES = (".py", ".pyc", ".so", ".pyd")
Files = Mapping[str, str]
"""The trusted files and their hashes."""


def hashed_argv(action: Command, files: Files, project: str, cwd: str) -> tuple[tuple[str, ...], MemoryFile] | None:
    """The command with its script from memory, and what must be kept until it has ended; `None` if that cannot be."""
    words = _words(action.command, action.args, action.plugin_root or project, project)
    if words is None or not hasattr(os, "memfd_create") or action.shell == "powershell":
        return None
    at = _place_of_script(words)
    path = absolute_path(Path(cwd or project, words[at])) if at is not None else None
    if at is None or path is None or str(path) not in files:
        return None
    kept = _memory_file(path, tuple((one, files[one]) for one in _beside(path, files)), os.getpid())
    if kept is None:
        return None
    name = f"/proc/{os.getpid()}/fd/{kept.descriptor}"
    given = (*words[:at], name, *words[at + 1 :])
    return (given if action.args is not None else (*BY_SHELL, *given)), kept


@lru_cache(32)
def _memory_file(path: Path, hashes: tuple[tuple[str, str], ...], owner: int) -> MemoryFile | None:
    """A script in memory, once for the same bytes and process; `None` if it asks where it lies."""
    sources = {one: _hashed(one, sha256) for one, sha256 in hashes}
    if not sources or any(_ASKS_WHERE.search(source) for source in sources.values()):
        return None
    return MemoryFile(sources[str(path)] if is_shell(path) else _archive(path, sources))


@lru_cache(256)
def _words(command: str, args: tuple[str, ...] | None, plugin: str, project: str) -> tuple[str, ...] | None:
    """The words of a command that is one program with plain arguments."""
    if args is not None:
        values = {"CLAUDE_PROJECT_DIR": project, "CLAUDE_PLUGIN_ROOT": plugin}
        words = tuple(fill(word, values.get) for word in (command, *args))
        return words if not any("${" in word for word in words) else None
    line = parse_line(fill(command, MARKS.get, EITHER))
    if len(line.commands) != 1 or line.undecidable:
        return None
    [one] = line.commands
    if one.redirects or one.assignments or one.unknown or one.wraps or one.via or not one.words:
        return None
    found = dict(zip(MARKS.values(), (project, plugin), strict=True))
    return tuple(re.sub(r"/:hookline-\w+:", lambda mark: found[mark[0]], word) for word in one.words)


def _place_of_script(words: Sequence[str]) -> int | None:
    """Where the script stands: after a shell or Python and plain flags, or first of all."""
    name = words[0].rpartition("/")[2]
    kind = "shell" if name in SHELLS else "python" if language_of(name) == "python" else ""
    if not kind:
        return 0 if "/" in words[0] else None
    at = 1
    while at < len(words) and _PLAIN_FLAGS[kind].fullmatch(words[at]):
        at += 1
    return at if at < len(words) and not words[at].startswith("-") else None


def _beside(path: Path, files: Files) -> list[str]:
    """The script, and for Python what it may import from beside itself."""
    if is_shell(path):
        return [str(path)]
    if not is_python(path):
        return []
    own = [one for one in files if Path(one).is_relative_to(path.parent) and one.endswith(_MODULES)]
    return list(dict.fromkeys([str(path), *own]))


def _hashed(path: str, sha256: str) -> bytes:
    """The bytes of a file, which are those that were trusted."""
    found = read_bytes(path, LARGEST)
    if not isinstance(found, bytes) or hashlib.sha256(found).hexdigest() != sha256:
        raise SealBroken(
            f"was not run: `{path}` has changed since it was trusted; run `hookline trust` to look and decide"
        )
    return found


def _archive(path: Path, sources: Mapping[str, bytes]) -> bytes:
    """A Python script and the modules beside it, as an archive that Python runs; its first line stays the first."""
    made = io.BytesIO()
    first = sources[str(path)].partition(b"\n")[0]
    made.write(first + b"\n" if first.startswith(b"#!") else b"")
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("__main__.py", sources[str(path)])
        for one, source in sources.items():
            archive.writestr(Path(one).relative_to(path.parent).as_posix(), source)
    return made.getvalue()


class MemoryFile:
    """A file without a name that nothing can change any more; gone when it is forgotten."""

    def __init__(self, data: bytes) -> None:
        import fcntl

        self.descriptor: int = os.memfd_create("hookline", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        left = memoryview(data)
        while left:
            left = left[os.write(self.descriptor, left) :]
        os.fchmod(self.descriptor, 0o500)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def __del__(self) -> None:
        os.close(self.descriptor)
