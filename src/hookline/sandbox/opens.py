"""Files that are opened: by the supervisor, which hands them over, where they are opened for writing.

Where a secret lies in a folder that the line may write to, every file is opened here. `writes` says why.
"""

import errno
import fcntl
import os
import stat

from hookline.core.paths import inside_any
from hookline.sandbox import kernel, syscalls
from hookline.sandbox.files import outside
from hookline.sandbox.judged_line import CallAnswered, JudgedLine, Refusal, Syscall, Table, terminal_of
from hookline.sandbox.path_access import OpenedPath, name_of, resolve_parent
from hookline.sandbox.places import read_table
from hookline.sandbox.processes import descends
from hookline.sandbox.protected import OPENS, ProtectedPaths
from hookline.sandbox.writes import NamedPlace, WriteJudge

_MOST_LINKS = 40
_QUICK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKING = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_TRUNC
_LOOK = os.O_PATH | os.O_CLOEXEC
_TELLS = frozenset({"net", "mounts", "mountinfo", "mountstats"})
"""What lies in each process's own folder of procfs and tells of the machine."""


class OpenCalls(WriteJudge):
    """The calls that open files, each made by the supervisor."""

    def __init__(self, line: JudgedLine, protected: ProtectedPaths) -> None:
        super().__init__(line, protected)
        line.secrets |= _identities(line.hidden)
        self._handover = kernel.Handover()
        self._view = None if line.view is None else SystemView(line.view)

    def table(self) -> Table:
        return dict.fromkeys(syscalls.OPENS, self._open)

    def _open(self, call: Syscall) -> Refusal | None:
        if self._line.places is None and not self._line.policy.block and self._view is None:
            return None
        folder, path, flags, mode = _opening(call)
        if flags & os.O_PATH:
            return None  # the flags are in a register: nothing can be written, nor read
        text = call.text(path)
        if not flags & syscalls.O_WRITES and self._view is not None:
            if file := self._view.file(text):
                self._hand_over(call, self._view.open(file), flags)
                raise CallAnswered
            if not self._line.hidden and not text.startswith("/proc"):
                return None  # Landlock decides
        fd = self._line.callers.act(call.thread, lambda: self._opened(call, folder, text, flags, mode))
        try:
            facts = os.fstat(fd)
            self._judge_opened(fd, flags, facts)
        except (Refusal, OSError):
            os.close(fd)
            raise
        self._hand_over(call, fd, flags, facts)
        raise CallAnswered

    def _judge_opened(self, fd: int, flags: int, facts: os.stat_result) -> None:
        if flags & os.O_ACCMODE != os.O_WRONLY:
            self._judge_secret(fd, "read")
        in_proc = flags & syscalls.O_WRITES and not os.major(facts.st_dev) and kernel.is_proc(fd)
        if in_proc:
            self._judge_proc(name_of(fd))
        if self._view is not None:
            self._view.judge(fd)

    def _judge_proc(self, path: str) -> None:
        """Refuse what is written to procfs: memory is a way into a program, and others are not the line's."""
        process = next((int(part) for part in path.split("/") if part.isdigit()), 0)
        if path.endswith("/mem"):
            raise Refusal(f"to write `{path}`", "a program is not changed as it runs", guard="block_guard")
        if process and not descends(process, os.getpid()):
            raise Refusal(f"to write `{path}`", "this line did not start that program")

    def _opened(self, call: Syscall, folder: int, text: str, flags: int, mode: int) -> int:
        """A file that is open: links at the end of its path are read here, one after the other."""
        base = -1
        try:
            for _ in range(_MOST_LINKS):
                parent, last = resolve_parent(call.thread, folder, text + "." if text.endswith("/") else text, base)
                if base >= 0:
                    os.close(base)
                base = parent.fd
                found = self._open_name(call, NamedPlace(parent, last), flags, mode)
                if isinstance(found, int):
                    return found
                text = found
        finally:
            if base >= 0:
                os.close(base)
        raise kernel.error(errno.ELOOP)

    def _open_name(self, call: Syscall, place: NamedPlace, flags: int, mode: int) -> int | str:
        """A file that is open, or what the link says that lies there."""
        writes = flags & syscalls.O_WRITES
        if writes:
            self._judge(place, OPENS)
            if not self._holds(place.path):
                return self._fail_outside(call, place, flags)
        elif not flags & os.O_NONBLOCK and (facts := place.facts()) and stat.S_ISFIFO(facts.st_mode):
            return self._wait_to_open(call, place, flags)
        try:
            fd = os.open(place.name, (flags & ~os.O_TRUNC) | _QUICK, mode & 0o7777, dir_fd=place.folder.fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and not flags & os.O_NOFOLLOW:
                if kernel.is_proc(place.folder.fd):
                    return self._open_behind(place, flags)
                try:
                    return os.readlink(place.name, dir_fd=place.folder.fd)
                except OSError:
                    raise error from None
            if error.errno == errno.ENXIO and not flags & os.O_NONBLOCK:
                return self._wait_to_open(call, place, flags)
            raise
        self._note(place, flags, fd)
        return fd

    def _open_behind(self, place: NamedPlace, flags: int) -> int:
        """The file behind a link of procfs, which says no path: a descriptor of the caller, a folder, a program."""
        with OpenedPath("", os.open(place.name, _LOOK, dir_fd=place.folder.fd)) as file:
            path = name_of(file.fd)
            if flags & syscalls.O_WRITES:
                self._judge_change(path)
            fd = os.open(file.opened, (flags & ~_MAKING) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            self._note(NamedPlace(OpenedPath(path), "."), flags, fd)
            return fd

    def _fail_outside(self, call: Syscall, place: NamedPlace, flags: int) -> int | str:
        """What the kernel would say to an open for writing outside: only what could be written is worth a report."""
        facts = place.facts()
        if facts is not None and stat.S_ISLNK(facts.st_mode) and not flags & (os.O_NOFOLLOW | os.O_EXCL):
            if kernel.is_proc(place.folder.fd):
                return self._open_behind(place, flags)
            return os.readlink(place.name, dir_fd=place.folder.fd)
        if facts is None and not flags & os.O_CREAT:
            raise kernel.error(errno.ENOENT)
        if facts is not None and flags & os.O_CREAT and flags & os.O_EXCL:
            raise kernel.error(errno.EEXIST)
        if facts is not None and not flags & (os.O_ACCMODE | os.O_TRUNC):
            return self._open_name(call, place, flags & ~os.O_CREAT, 0)  # it is there, and is only read
        raise outside(self._line.policy, "write", place.path)

    def _wait_to_open(self, call: Syscall, place: NamedPlace, flags: int) -> int:
        """A pipe that no program reads yet is waited for in a thread; `/dev/tty` is the caller's terminal."""
        if place.path == "/dev/tty":
            if not (terminal := terminal_of(call.thread)):
                raise kernel.error(errno.ENXIO)
            return os.open(terminal, (flags & ~_MAKING) | os.O_NOCTTY | os.O_CLOEXEC)
        pipe = os.open(place.name, _LOOK | os.O_NOFOLLOW, dir_fd=place.folder.fd)

        def open_slowly() -> None:
            fd = os.open(f"/proc/self/fd/{pipe}", (flags & ~_MAKING) | os.O_NOCTTY | os.O_CLOEXEC)
            self._hand_over(call, fd, flags)
            raise CallAnswered

        call.answer_later(open_slowly, pipe)
        raise CallAnswered

    def _hand_over(self, call: Syscall, fd: int, flags: int, facts: os.stat_result | None = None) -> None:
        """Give an open file to the caller, emptied and waiting as it asked."""
        try:
            if flags & os.O_TRUNC and stat.S_ISREG((facts or os.fstat(fd)).st_mode):
                os.truncate(fd if flags & os.O_ACCMODE else f"/proc/self/fd/{fd}", 0)
            if not flags & os.O_NONBLOCK:
                fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
            if facts is None:  # rare, or from a thread of its own
                kernel.give_descriptor(call.listener, call.ident, fd, flags & os.O_CLOEXEC, answer=True)
            else:
                self._handover.answer(call.listener, call.ident, call.thread, fd, flags & os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENOENT:  # else the caller has ended
                call.answer(error.errno or errno.EACCES)
        finally:
            os.close(fd)

    def _note(self, place: NamedPlace, flags: int, fd: int) -> None:
        if flags & syscalls.O_WRITES:
            if not place.path.startswith("/dev/"):
                self._line.saw("written", place.path)
            if place.name == ".git":
                self._protected.pointers.append(place.path)


class SystemView:
    """What a line may know of this machine, where its reading is limited: of `files` the lines that tell nothing."""

    def __init__(self, files: dict[str, tuple[str, bytes]]) -> None:
        self._files = files
        self._names = {os.path.basename(path) for path in files}
        self._proc = tuple(f"/proc/{name}" for name in read_table("proc"))

    def file(self, path: str) -> str:
        """The file at a path of which a line sees a part; empty where it sees all or nothing of it."""
        if path.rpartition("/")[2] not in self._names or not path.startswith("/"):
            return ""
        return path if path in self._files else next(iter(self._files.keys() & {os.path.realpath(path)}), "")

    def open(self, path: str) -> int:
        """The part of a file that may be seen, open for reading."""
        import re

        pattern, content = self._files[path]
        groups = "|".join(map(str, {os.getgid(), *os.getgroups()}))
        part = re.compile(pattern.format(user=os.getuid(), groups=groups).encode())
        lines = (content or kernel.content(path)).splitlines(keepends=True)
        kept = [line for line in lines if part.match(line)]
        if path == "/etc/passwd" and not any(line.split(b":")[2] == b"%d" % os.getuid() for line in kept):
            name, home = os.environ.get("USER", "user"), os.environ.get("HOME", "/")  # known to a directory service
            kept.append(os.fsencode(f"{name}:x:{os.getuid()}:{os.getgid()}::{home}:/bin/sh\n"))
        with OpenedPath(path, os.memfd_create(os.path.basename(path))) as memory:
            os.write(memory.fd, b"".join(kept))
            return os.open(memory.opened, os.O_RDONLY | os.O_CLOEXEC)

    def judge(self, fd: int) -> None:
        """Refuse a file of procfs that is neither of a process of the line nor in the table."""
        if not kernel.is_proc(fd):
            return
        path = name_of(fd)
        _, _, process, *names = [*path.split("/"), ""]
        own = process.isdigit() and descends(int(process), os.getpid()) and not _TELLS.intersection(names)
        if not own and path != "/proc" and not inside_any(path, self._proc):
            raise kernel.error(errno.EACCES)


def _opening(call: Syscall) -> tuple[int, int, int, int]:
    """Folder, the path's place among the arguments, flags and mode of a call that opens."""
    if call.name == "creat":
        return syscalls.AT_FDCWD, 0, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, call.arguments[1]
    path = 0 if call.name == "open" else 1
    flags, mode = call.arguments[path + 1 : path + 3]
    return call.folder(path - 1), path, flags & 0x7FFFFFFF, mode


def _identities(places: tuple[str, ...]) -> dict[tuple[int, int], int]:
    """The files that lie in some places, by what they are, with when they were made."""
    found = {}
    for place in places:
        for folder, _, names in (os.path.split(place)[0], (), [os.path.basename(place)]), *os.walk(place):
            for name in names:
                try:
                    facts = os.stat(f"{folder}/{name}")
                except OSError:
                    continue
                if stat.S_ISREG(facts.st_mode):
                    found[facts.st_dev, facts.st_ino] = kernel.birth(syscalls.AT_FDCWD, f"{folder}/{name}")
    return found
