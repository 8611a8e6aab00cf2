"""What a program file is: a script and its interpreter, a loader, a copy of a program that is blocked by name."""

import os
import struct
from collections.abc import Callable

from hookline.sandbox.kernel import MACHINE, content
from hookline.sandbox.path_access import OpenedPath, own_real

STANDARD = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib/git-core")
"""Where programs are looked for besides PATH."""
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1",
           "/lib/ld-musl-aarch64.so.1")  # fmt: skip
"""Dynamic loaders, which start any program that they are given."""
MANY_IN_ONE = ("busybox", "toybox", "coreutils", "uutils", "sbase-box", "ubase-box")
"""Programs that are many programs; which one they are is their first argument, or their name."""
_HEAD = 4096
_BUILD_ID = b"\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"
_MOST_BYTES = 1024 * 1024
_SAMPLES, _SAMPLE = 48, 512
"""How many places of two programs are compared, and how many bytes of each."""
_LOADER_TAKES_VALUE = ("--library-path", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--inhibit-rpath", "--audit",
                       "--preload", "--argv0")  # fmt: skip
LOADER_OPTIONS = {"--preload": "LD_PRELOAD", "--audit": "LD_AUDIT", "--library-path": "LD_LIBRARY_PATH"}
"""Options of a loader that put code into the program it loads, and the variables that do the same."""
_MACHINES = {"x86_64": (2, 62), "aarch64": (2, 183)}
_ELF, _LOADER_SEGMENT = b"\x7fELF", 3
INTERPRETERS = {
    **dict.fromkeys(("sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "python", "pypy"), "c"),
    "node": "ep", "nodejs": "ep", "deno": "", "bun": "e", "perl": "eE", "ruby": "e", "php": "rBRE", "lua": "e",
    "luajit": "e", "tclsh": "", "Rscript": "e", "pwsh": "c",
}  # fmt: skip
"""Programs that run scripts, and the letters of the options by which they are given code instead."""
_TAKING_VALUE = {**dict.fromkeys(("sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh"), "oO"), "python": "WX",
                 "pypy": "WX", "node": "rC", "nodejs": "rC", "ruby": "IrC", "perl": "", "php": "cdz"}  # fmt: skip
_LONG_TAKING_VALUE = ("--check-hash-based-pycs", "--rcfile", "--init-file", "--require", "--import", "--loader")
"""Their options that take a value, which may be the next word."""
_RUN_MODULES = ("runpy", "cProfile", "profile", "pdb", "trace", "coverage")
"""Modules of Python that run another one, named by any of their words."""
_PACKAGES = ("node_modules", "nodejs", "site-packages", "dist-packages")
"""Folders whose entries are programs by the name of the entry, whichever file of it is run."""


class ProgramFile:
    """What the first bytes of a file say: its interpreter line, its build, whether this machine's calls are its own.

    `loader` is the program that the kernel starts in its place, to load it.
    """

    def __init__(self, head: bytes, status: os.stat_result) -> None:
        self.identity: tuple[int, int] = (status.st_dev, status.st_ino)
        self.size: int = status.st_size
        self.head: bytes = head
        self.is_binary: bool = head.startswith(_ELF)
        """Whether the kernel runs it itself, without an interpreter."""
        self.interpreter: list[str] = _interpreter(head)
        self.build: bytes = _build(head)
        machine = (head[4], struct.unpack("<H", head[18:20])[0]) if len(head) >= 20 else ()
        self.foreign: bool = self.is_binary and machine != _MACHINES.get(MACHINE)
        self.loader: str = _loader(head) if self.is_binary and not self.foreign else ""


def _interpreter(head: bytes) -> list[str]:
    """The program a script names in its first line, and the one argument that line may give it."""
    if not head.startswith(b"#!"):
        return []
    line = head[2:].partition(b"\n")[0].strip(b" \t")
    program, _, argument = line.replace(b"\t", b" ").partition(b" ")
    return [os.fsdecode(part.strip(b" ")) for part in (program, argument) if part.strip(b" ")]


def _loader(head: bytes) -> str:
    """The loader that a binary names; `?` where it is not among the first bytes, as no linker would put it."""
    if len(head) < 64:
        return ""
    first, size, count = (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))
    for at in range(first, first + size * count, size or 1):
        if at + 56 > len(head):
            return "?"
        if struct.unpack_from("<I", head, at)[0] == _LOADER_SEGMENT:
            start, length = struct.unpack_from("<Q", head, at + 8)[0], struct.unpack_from("<Q", head, at + 32)[0]
            return os.fsdecode(head[start : start + length].rstrip(b"\0")) if start + length <= len(head) else "?"
    return ""


def _build(head: bytes) -> bytes:
    """The id that the linker gave this build; it survives copying, stripping and bytes added at the end."""
    at = head.find(_BUILD_ID)
    start = at + len(_BUILD_ID)
    return head[start : start + 20] if at >= 0 else b""


class Library:
    """Files that were looked at, each read once; a file that changes is read again."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ...], ProgramFile] = {}

    def look(self, path: str) -> ProgramFile | None:
        """The file at a path that can be opened from here; None if it cannot be read."""
        try:
            status = os.stat(path)
            key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if key not in self._seen:
                with OpenedPath(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)) as file:
                    self._seen[key] = ProgramFile(os.read(file.fd, _HEAD), status)
            return self._seen[key]
        except OSError:
            return None


class Originals:
    """The files behind the names that patterns block, so that a copy is told by what it is.

    `writable` says whether a line may write to a folder: what lies there may be a copy that a line has made.
    """

    def __init__(self, names: list[str], library: Library, writable: Callable[[str], bool]) -> None:
        self._names, self._library, self._writable = names, library, writable
        self._files: list[tuple[str, str, ProgramFile]] = []
        self._runners: list[tuple[str, str, ProgramFile]] = []
        self._folders: set[str] = set()
        self._compared: dict[tuple[ProgramFile, ProgramFile], bool] = {}

    def look(self) -> None:
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

    @property
    def has_scripts(self) -> bool:
        """Whether one of the blocked programs is a script, which an interpreter may be told to run."""
        self.look()
        return any(not file.is_binary for _, _, file in self._files)

    def names_of(self, path: str, opened: str, file: ProgramFile) -> list[str]:
        """The blocked names whose program this file is, or is a copy of; what the system has put there is not.

        A script in a folder of PATH is what it is called: many scripts there are the same but for their names.
        """
        folder = path.rpartition("/")[0]
        if folder in STANDARD and not self._writable(folder):
            return []
        self.look()
        if folder in self._folders and (not file.is_binary or not self._writable(folder)):
            return []
        return [*self.same_as(opened, file), *(self.runners_of(opened, file) if file.is_binary else ())]

    def runners_of(self, opened: str, file: ProgramFile) -> list[str]:
        """The programs that run others of which a file is a copy: many in one and, where it matters, interpreters."""
        if not self._runners:
            names = [*MANY_IN_ONE, *(INTERPRETERS if self.has_scripts else ())]
            paths = [(name, own_real(f"{folder}/{name}")) for name in names for folder in sorted(self._folders)]
            known = {path: (name, self._library.look(path)) for name, path in paths}
            self._runners = [(name, path, file) for path, (name, file) in known.items() if file and file.is_binary]
        found = (name for name, path, known in self._runners if self._same(opened, file, path, known))
        return list(dict.fromkeys(found))

    def same_as(self, opened: str, file: ProgramFile, *, scripts: bool = False) -> list[str]:
        """The blocked names whose program this very file is, or is a copy of; or only those that are scripts."""
        self.look()
        rows = [row for row in self._files if not (scripts and row[2].is_binary)]
        return list(dict.fromkeys(name for name, original, known in rows if self._same(opened, file, original, known)))

    def _same(self, path: str, file: ProgramFile, original: str, known: ProgramFile) -> bool:
        if file.identity == known.identity:
            return True
        if file.is_binary != known.is_binary:
            return False
        if known.build and file.build == known.build:
            return True
        if (file, known) not in self._compared:
            self._compared[file, known] = _similar(path, file, original, known)
        return self._compared[file, known]


def _similar(path: str, file: ProgramFile, original: str, known: ProgramFile) -> bool:
    """Whether one file is the other, perhaps with something added, removed or changed that is not its code."""
    if not known.is_binary:
        whole = 0 < known.size <= min(file.size, _MOST_BYTES)
        return whole and file.head.startswith(known.head[: known.size]) and content(path).startswith(content(original))
    if file.size < known.size // 2:
        return False
    step = max(_SAMPLE, known.size // _SAMPLES)
    with open(path, "rb", 0) as one, open(original, "rb", 0) as other:
        fds = (one.fileno(), other.fileno())
        pairs = [[os.pread(fd, _SAMPLE, at) for fd in fds] for at in range(0, known.size, step)]
    telling = [left == right for left, right in pairs if right.strip(b"\0")]
    return bool(telling) and sum(telling) > len(telling) // 2


def script_names(path: str) -> list[str]:
    """The names of the program that a script is: its own, also without an ending, and its package's."""
    parts = path.split("/")
    stem = parts[-1].partition(".")[0]
    packages = [parts[at + 1] for at, part in enumerate(parts[:-1]) if part in _PACKAGES]
    return [name for name in dict.fromkeys([parts[-1], stem, stem.removesuffix("-cli"), *packages]) if name]


def script_words(name: str, words: list[str]) -> list[tuple[str, list[str]]]:
    """What an interpreter runs, by its words: the script or module with the words behind it; code has no name."""
    code, values = INTERPRETERS[name], _TAKING_VALUE.get(name, "")
    left = words
    while left:
        word, *left = left
        if word in _LONG_TAKING_VALUE:
            left = left[1:]
        elif not word.startswith(("-", "+")) or word == "-":
            return [(each, left) for each in script_names(word)]
        elif not word.startswith("--"):
            at = next((at for at, letter in enumerate(word) if at and letter in f"{code}{values}m"), 0)
            letter, value = word[at], word[at + 1 :]
            if at and letter == "m" and name in ("python", "pypy"):
                return _modules(name, value or "".join(left[:1]), left if value else left[1:])
            if at and letter in code:
                return []
            left = left[1:] if at and letter in values and not value else left
    return []


def _modules(name: str, module: str, words: list[str]) -> list[tuple[str, list[str]]]:
    """What `python -m` runs: a module, and what that runs in its turn."""
    top = module.partition(".")[0]
    found = [(each, words) for each in (module, top, f"{top}3") if each]
    if top in _RUN_MODULES:
        for at, word in enumerate(words):
            if word in ("-m", "--module"):
                found += _modules(name, "".join(words[at + 1 : at + 2]), words[at + 2 :])
            found += [(each, words[at + 1 :]) for each in script_names(word)]
    return found


def loaded(argv: list[str]) -> tuple[list[str], list[str]]:
    """What a dynamic loader that is started as a program runs: its words after the options; and what it adds to it.

    The latter as variables, which say the same.
    """
    words, added = argv[1:], []
    while words and words[0].startswith("--"):
        option, given, value = words[0].partition("=")
        takes = option in _LOADER_TAKES_VALUE
        if option in LOADER_OPTIONS:
            added.append(f"{LOADER_OPTIONS[option]}={value if given else ''.join(words[1:2])}")
        words = words[2:] if takes and not given else words[1:]
    return words, added


def is_loader(name: str) -> bool:
    """Whether a program is a dynamic loader, by its name."""
    return name.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so")) or (name.startswith("ld-") and ".so" in name)
