"""What a program file is: a script and its interpreter, a loader, a copy of a program that is blocked by name."""

from __future__ import annotations

import os
import struct

from hookline.sandbox.kernel import content
from hookline.sandbox.path_access import own_real

STANDARD = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/git-core")
"""Where programs are looked for besides PATH."""
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1",
           "/lib/ld-musl-aarch64.so.1")  # fmt: skip
"""Dynamic loaders, which start any program that they are given."""
MANY_IN_ONE = ("busybox", "toybox", "coreutils", "uutils", "sbase-box", "ubase-box")
"""Programs that are many programs; which one they are is their first argument, or their name."""
_HEAD = 4096
_BUILD_ID = b"\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"
_MOST_BYTES = 32 * 1024 * 1024
_LOADER_TAKES_VALUE = ("--library-path", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--inhibit-rpath", "--audit",
                       "--preload", "--argv0")  # fmt: skip
_MACHINES = {"x86_64": (2, 62), "aarch64": (2, 183)}


class ProgramFile:
    """What the first bytes of a file say: its interpreter line, its build, whether this machine's calls are its own."""

    __slots__ = ("build", "foreign", "head", "identity", "interpreter", "size")

    identity: tuple[int, int]
    head: bytes
    size: int
    interpreter: list[str]
    build: bytes
    foreign: bool

    def __init__(self, head: bytes, status: os.stat_result, machine: str) -> None:
        self.identity = (status.st_dev, status.st_ino)
        self.size, self.head = status.st_size, head
        self.interpreter = _interpreter(head)
        self.build = _build(head)
        self.foreign = head.startswith(b"\x7fELF") and not _native(head, machine)


def _interpreter(head: bytes) -> list[str]:
    """The program a script names in its first line, and the one argument that line may give it."""
    if not head.startswith(b"#!"):
        return []
    line = head[2:].partition(b"\n")[0].strip(b" \t")
    program, _, argument = line.replace(b"\t", b" ").partition(b" ")
    return [os.fsdecode(part.strip(b" ")) for part in (program, argument) if part.strip(b" ")]


def _build(head: bytes) -> bytes:
    """The id that the linker gave this build; it survives copying, stripping and bytes added at the end."""
    at = head.find(_BUILD_ID)
    start = at + len(_BUILD_ID)
    return head[start : start + 20] if at >= 0 else b""


def _native(head: bytes, machine: str) -> bool:
    if len(head) < 20 or machine not in _MACHINES:
        return False
    return (head[4], struct.unpack("<H", head[18:20])[0]) == _MACHINES[machine]


class Library:
    """Files that were looked at, each read once; a file that changes is read again."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._seen: dict[tuple[int, ...], ProgramFile] = {}

    def look(self, path: str) -> ProgramFile | None:
        """The file at a path that can be opened from here; None if it cannot be read."""
        try:
            status = os.stat(path)
            key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if key not in self._seen:
                self._seen[key] = ProgramFile(_head(path), status, self._machine)
            return self._seen[key]
        except OSError:
            return None


def _head(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(fd, _HEAD)
    finally:
        os.close(fd)


class Originals:
    """The files behind the names that patterns block, so that a copy is told by what it is."""

    def __init__(self, names: list[str], library: Library) -> None:
        self._names, self._library = names, library
        self._files: list[tuple[str, str, ProgramFile]] = []
        self._folders: set[str] = set()

    def look(self) -> None:
        """Find the files, unless that is done."""
        if self._folders:
            return
        folders = dict.fromkeys([*os.environ.get("PATH", "").split(":"), *STANDARD])
        self._folders = {own_real(folder) for folder in folders if folder}
        for name in self._names:
            for folder in sorted(self._folders):
                self._add(name, f"{folder}/{name}")
        for path in LOADERS:
            self._add(path.rpartition("/")[2], path)

    def _add(self, name: str, path: str) -> None:
        file = self._library.look(path)
        real = own_real(path) if file is not None else path
        if file is not None and not real.rpartition("/")[2].startswith(MANY_IN_ONE):
            self._files.append((name, real, file))

    def names_of(self, path: str, opened: str, file: ProgramFile) -> list[str]:
        """The blocked names whose program this file is, or is a copy of; files in the system's own folders are not."""
        folder = path.rpartition("/")[0]
        if folder in STANDARD:
            return []
        self.look()
        if folder in self._folders:
            return []
        return [name for name, original, known in self._files if _same(opened, file, original, known)]


def _same(path: str, file: ProgramFile, original: str, known: ProgramFile) -> bool:
    if file.identity == known.identity:
        return True
    if known.build:
        return file.build == known.build
    if file.size < known.size or file.size > _MOST_BYTES or not file.head.startswith(known.head[: known.size]):
        return False
    return content(path).startswith(content(original))


def loaded(argv: list[str]) -> list[str]:
    """What a dynamic loader that is started as a program runs: its words after the options."""
    words = argv[1:]
    while words and words[0].startswith("--"):
        words = words[2:] if words[0] in _LOADER_TAKES_VALUE else words[1:]
    return words


def is_loader(name: str) -> bool:
    """Whether a program is a dynamic loader, by its name."""
    return name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so")) or (name.startswith("ld-") and ".so" in name)
