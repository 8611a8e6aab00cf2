"""What a hook was trusted with, compared at every run: it runs the files that were looked at, or it does not run.

The files are opened, hashed and compared right before the command is started, from those bytes where that is possible
(see `Seal.hashed_argv`). They, and the folders on the way to them, are looked at once more when it has ended: if any
was changed or exchanged in between, the answer does not count. An edit inside that moment may still run once where the
script is run from its path; what it answers opens no gate.
"""

import hashlib
import io
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from hookline.core.hooks.hook import Cedar, Command, Rego
from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELLS
from hookline.errors import SealBroken
from hookline.settings.files import LARGEST, file_state, read_bytes, read_script
from hookline.settings.sources import absolute_path
from hookline.settings.trust.code_imports import Listing, is_python, is_shell
from hookline.settings.trust.scripts import MARKS, files_run_by

_known: dict[str, tuple[tuple[int, ...] | None, str | None]] = {}
_LOOK = "run `hookline trust` to look and decide"
_SETTLED_NS = 2_000_000_000  # a file that was changed less than this ago is hashed again: the clock may not have ticked


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The files, with their hashes, that one hook may run; those that must not be there; what imports may find."""

    files: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    listings: tuple[tuple[Listing, str], ...] = ()
    roots: tuple[str, ...] = ()
    project: str = ""

    @property
    def python(self) -> bool:
        return bool(self.listings)

    def check(self, action: Command | Cedar | Rego, cwd: str) -> Callable[[], None]:
        """Raise `SealBroken` unless everything is as it was trusted; what is returned does so again after the run."""
        before = {path: file_state(path) for path, _ in self.files}
        starts = {os.path.dirname(path) for path in before}  # noqa: PTH120 - at every run
        starts |= set(map(os.path.realpath, starts))  # every folder and link on the way, as written and as resolved
        folders = {str(step) for start in starts for step in (Path(start), *Path(start).parents)}
        trails = {folder: file_state(folder, of_link=True) for folder in folders}
        for path, sha256 in self.files:
            if _hash(path, before[path]) != sha256:
                raise self._changed(path, "has changed since it was trusted")
        for path in self.absent:
            if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112 - at every run
                raise self._changed(path, "was not there when the hook was trusted")
        for listing, sha256 in self.listings:
            if listing.read().sha256 != sha256:
                raise self._changed(listing.folder, "has files that were not there when the hook was trusted")
        self._elsewhere(action, cwd)

        def check_again() -> None:
            for path, identity in before.items():
                if file_state(path) != identity:
                    raise self._changed(path, "was changed while it ran, so that its answer does not count")
            self._compare_trails(trails)

        return check_again

    def hashed_argv(self, action: Command, cwd: str) -> tuple[tuple[str, ...], object] | None:
        """The command with its script from the bytes that were hashed, and what to keep until it has ended.

        The bytes are put into a sealed memory file, which nothing can change, and the command is given its name in
        `/proc`: a shell script as it is, a Python script as an archive together with the modules beside it. That needs
        Linux, a command that is just one program with its script, and a script that does not ask where it lies; any
        other (`None`) is started where it is, and an exchange of a folder on its way is found when it has ended.
        """
        from hookline.processes.spawn import BY_SHELL

        words = _words(action.command, action.args, action.plugin_root or self.project, self.project)
        if words is None or not hasattr(os, "memfd_create") or action.shell == "powershell":
            return None
        at, files = _place_of_script(words), dict(self.files)
        if at is None or str(path := absolute_path(Path(cwd or self.project, words[at]))) not in files:
            return None
        parts = [str(path)] if is_shell(path) or is_python(path) else []
        if parts and not is_shell(path):  # what it may import from beside itself
            parts += [one for one in files if Path(one).is_relative_to(path.parent) and one.endswith(_MODULES)]
        kept = _memory_file(path, tuple((one, files[one]) for one in dict.fromkeys(parts)), os.getpid())
        if kept is None:
            return None
        given = (*words[:at], f"/proc/{os.getpid()}/fd/{kept.descriptor}", *words[at + 1 :])
        return (given if action.args is not None else (*BY_SHELL, *given)), kept

    def _compare_trails(self, before: dict[str, tuple[int, ...] | None]) -> None:
        """A folder that was exchanged and put back: it was renamed, which its own times and its parent's tell.

        A name that is added to a folder changes the times of that folder alone. Above the project only what a rename
        alone does is looked at: folders there change for many reasons.
        """
        now = {folder: file_state(folder, of_link=True) for folder in before}
        for folder in (folder for folder in before if before[folder] != now[folder]):
            was, at_last, parent = before[folder], now[folder], os.path.dirname(folder)  # noqa: PTH120 - at every run
            inside = any(folder != root and Path(folder).is_relative_to(root) for root in self.roots if root)
            added = was is not None and at_last is not None and was[:3] == at_last[:3] and was[3] != at_last[3]
            if not added or (inside and before.get(parent) != now.get(parent)):
                raise self._changed(folder, "was exchanged while the hook ran, so that its answer does not count")

    def _elsewhere(self, action: Command | Cedar | Rego, cwd: str) -> None:
        """In another folder than the project's, a relative name is another file; a pattern may match more by now."""
        if not isinstance(action, Command):
            cwd = self.project
        elif not cwd or os.path.realpath(cwd) == os.path.realpath(self.project):
            return
        found = files_run_by(action, (*self.roots, cwd), cwd)
        trusted = dict(self.files)
        for path in found.files:
            if path not in trusted:
                raise self._changed(path, "was never trusted, and the command means it in this folder")

    def _changed(self, path: str, why: str) -> SealBroken:
        shown = os.path.relpath(path, self.project) if Path(path).is_relative_to(self.project) else path
        return SealBroken(f"was not run: `{shown}` {why}; {_LOOK}")


def _hash(path: str, identity: tuple[int, ...] | None) -> str | None:
    """The file's hash; one that was computed for the very same file is taken, unless that was edited a moment ago."""
    known = _known.get(path)
    if known is not None and known[0] == identity:
        return known[1]
    sha256 = script.sha256 if (script := read_script(path)) else None
    settled = identity is not None and time.time_ns() - max(identity[3:5]) > _SETTLED_NS
    if settled and file_state(path) == identity:
        _known[path] = (identity, sha256)
    return sha256


_ASKS_WHERE = re.compile(
    rb"\$\{?[0_]|BASH_SOURCE|FUNCNAME|ZSH_|\bcaller\b|__(?:file|path|spec|loader|main)__|argv(?!\[[1-9])|sys\.path|"
    rb"\binspect\b|importlib|pkgutil|traceback|multiprocessing|/proc/|/dev/fd"
)
_PLAIN_FLAGS = {"shell": re.compile(r"-[eux]+"), "python": re.compile(r"-[uBEIsSPOq]+")}
_MODULES = (".py", ".pyc", ".so", ".pyd")


@lru_cache(32)
def _memory_file(path: Path, hashes: tuple[tuple[str, str], ...], owner: int) -> "MemoryFile | None":
    """A script in memory, once for the same bytes and process; `None` if it asks where it lies."""
    sources = {one: _hashed(one, sha256) for one, sha256 in hashes}
    if not sources or any(_ASKS_WHERE.search(source) for source in sources.values()):
        return None
    return MemoryFile(sources[str(path)] if is_shell(path) else _archive(path, sources))


@lru_cache(256)
def _words(command: str, args: tuple[str, ...] | None, plugin: str, project: str) -> tuple[str, ...] | None:
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
    at = next((at for at, word in enumerate(words) if at and not _PLAIN_FLAGS[kind].fullmatch(word)), 0)
    return at if at and not words[at].startswith("-") else None


def _hashed(path: str, sha256: str) -> bytes:
    found = read_bytes(path, LARGEST)
    if not isinstance(found, bytes) or hashlib.sha256(found).hexdigest() != sha256:
        raise SealBroken(f"was not run: `{path}` has changed since it was trusted; {_LOOK}")
    return found


def _archive(path: Path, sources: Mapping[str, bytes]) -> bytes:
    """A Python script and the modules beside it, as an archive that Python runs; its first line stays the first."""
    import zipfile

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
        with open(self.descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.fchmod(self.descriptor, 0o500)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def __del__(self) -> None:
        os.close(self.descriptor)
