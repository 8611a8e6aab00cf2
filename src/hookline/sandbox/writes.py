"""Names that are made, moved and removed: all of these calls are made here, in the line's name.

Were the kernel to make a call after it has been judged, it would read the path again, and a line that swaps a name in
between would write elsewhere. So the folder is opened here, judged by the name that the kernel has for it, and the call
made in that very folder, one call after the other: what was judged cannot move before it is used. This process is held
to the line's own rules by Landlock, so that a mistake here cannot write outside.
"""

import errno
import os
import stat
from contextlib import ExitStack

from hookline.sandbox import kernel, syscalls
from hookline.sandbox.files import outside
from hookline.sandbox.judged_line import CallAnswered, CallMade, JudgedLine, Refusal, Syscall, Table
from hookline.sandbox.path_access import OpenedPath, name_of, resolve_in_process, resolve_parent
from hookline.sandbox.protected import MAKES, MAKES_FOLDER, MOVES, OPENS, REMOVES, SETTINGS, ProtectedPaths, identity

_EXCHANGE, _FOLLOW = 2, 0x400
_MOST_TEXT = 1 << 20
_ACTS = {"unlink": REMOVES, "unlinkat": REMOVES, "rmdir": REMOVES, "mkdir": MAKES_FOLDER, "mkdirat": MAKES_FOLDER}


class NamedPlace:
    """A name in an open folder."""

    def __init__(self, folder: OpenedPath, name: str, *, slash: bool = False) -> None:
        self.folder: OpenedPath = folder
        self.name: str = name + "/" if slash and name != "." else name
        self.path: str = folder.path if name == "." else f"{folder.path.rstrip('/')}/{name}"

    def facts(self) -> os.stat_result | None:
        """What lies there, links not followed; None if nothing does."""
        try:
            return os.stat(self.name, dir_fd=self.folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


class WriteJudge:
    """Judges what a name is about to be used for, and explains what fails."""

    def __init__(self, line: JudgedLine, protected: ProtectedPaths) -> None:
        self._line, self._protected = line, protected

    def _problem(self, place: NamedPlace, act: str) -> str:
        return self._protected.problem(place.folder.path, place.name.rstrip("/"), act) if place.name != "." else ""

    def _judge(self, place: NamedPlace, act: str) -> None:
        if self._line.places is None:
            return
        if self._line.others.own(place.path):
            raise outside(self._line.policy, "write", place.path)
        problem = self._problem(place, act)
        if problem:
            self._refuse(place.path, problem)

    def _judge_path(self, path: str, act: str) -> None:
        """Judge a file that is open by the name that the kernel has for it; what has none lies in no folder."""
        folder, _, name = path.rpartition("/")
        if path.startswith("/"):
            self._judge(NamedPlace(OpenedPath(folder or "/"), name or "."), act)

    def _refuse(self, path: str, problem: str) -> None:
        advice = f"to allow it, add `--unprotect {path}`"
        raise Refusal(f"to write `{path}`", problem, advice)

    def _judge_change(self, path: str) -> None:
        """Judge a file that is open, and is about to be written."""
        self._judge_path(path, OPENS)
        if not self._holds(path):
            raise outside(self._line.policy, "write", path)

    def _judge_secret(self, fd: int, what: str) -> None:
        """Refuse a hidden file. On overlayfs one that is changed is made again, and gets another number by a link."""
        if self._line.secrets:
            made = self._line.secrets.get(identity(os.fstat(fd)))
            if made is not None and (made == kernel.birth(fd) or kernel.is_overlay(fd)):
                advice = f"to allow it, add `--show {name_of(fd)}`"
                raise Refusal(f"to {what} `{name_of(fd)}`", "it holds secrets", advice)

    def _holds(self, path: str) -> bool:
        return self._line.places is None or self._line.places.hold(path)

    def _keep_inside(self, place: NamedPlace, *, new: bool) -> None:
        """Refuse a place outside; where the call would fail anyway, it fails as it always does."""
        if self._holds(place.path):
            return
        there = place.facts() is not None
        if there and new:
            raise kernel.error(errno.EEXIST)
        if not there and not new:
            raise kernel.error(errno.ENOENT)
        raise outside(self._line.policy, "write", place.path)


class NameCalls(WriteJudge):
    """The calls that make, move and remove names, each made by the supervisor."""

    def table(self) -> Table:
        """These calls, and those after which a caller is another one."""
        table: Table = {name: self._make for name in syscalls.WRITES if name not in syscalls.OPENS}
        return table | dict.fromkeys(syscalls.CREDENTIALS, lambda _: self._line.callers.forget())

    def _make(self, call: Syscall) -> None:
        if self._line.places is None:
            return
        named = {"link": self._link, "linkat": self._link, "truncate": self._truncate}
        deed = named.get(call.name, self._make_names)
        self._line.callers.act(call.thread, lambda: deed(call))
        raise CallMade

    def _make_names(self, call: Syscall) -> None:
        places: list[NamedPlace] = []
        with ExitStack() as opened:
            for folder, path in syscalls.WRITES[call.name].pairs:
                places.append(_place(call, folder, path))
                opened.enter_context(places[-1].folder)
            if not call.waits():
                raise CallAnswered
            self._change(call, places)
        for place in places:
            self._line.saw("written", place.path)

    def _change(self, call: Syscall, places: list[NamedPlace]) -> None:
        name, arguments, (first, last) = call.name, call.arguments, (places[0], places[-1])
        fd, at = first.folder.fd, last.folder.fd
        if name.startswith("rename"):
            self._rename(first, last, arguments[4] & 0xFFFFFFFF if name == "renameat2" else 0)
            return
        act = _ACTS.get(name, MAKES)
        self._judge(last, act)
        self._keep_inside(last, new=act != REMOVES)
        if name == "rmdir" or (name == "unlinkat" and arguments[2] & syscalls.AT_REMOVE_FOLDER):
            there = last.facts()
            os.rmdir(last.name, dir_fd=at)
            self._protected.made -= {identity(there)} if there else set()  # whose number may be used again
        elif act == REMOVES:
            os.unlink(last.name, dir_fd=at)
        elif name.startswith("mkdir"):
            os.mkdir(last.name, arguments[1 if name == "mkdir" else 2] & 0o7777, dir_fd=at)
            self._protected.made.add(identity(os.stat(last.name, dir_fd=at, follow_symlinks=False)))
        elif name.startswith("symlink"):
            os.symlink(call.text(0), last.name, dir_fd=at)
        else:
            os.mknod(last.name, arguments[1 if name == "mknod" else 2] & 0o177777, dir_fd=fd)

    def _rename(self, source: NamedPlace, target: NamedPlace, flags: int) -> None:
        self._judge(source, MOVES)
        self._keep_inside(source, new=False)
        if not self._holds(target.path):
            raise outside(self._line.policy, "write", target.path)
        if flags & _EXCHANGE:
            self._judge(target, MOVES)
            self._judge(source, MAKES)
        if target.name in SETTINGS and not flags and self._problem(target, MAKES):
            self._replace_settings(source, target)
            return
        self._judge(target, MAKES)
        words = (os.fsencode(source.name), os.fsencode(target.name))
        ends = (source.folder.fd, target.folder.fd)
        kernel.call("renameat2", ends[0], words[0], ends[1], words[1], flags)

    def _link(self, call: Syscall) -> None:
        (folder, path), (to, new) = syscalls.WRITES[call.name].pairs
        flags = call.arguments[4] & 0xFFFFFFFF if call.name == "linkat" else 0
        text = call.text(path)
        if not text and not flags & syscalls.AT_EMPTY_PATH:
            raise kernel.error(errno.ENOENT)
        with resolve_in_process(call.thread, call.folder(folder), text, follow=bool(flags & _FOLLOW)) as file:
            if file.fd < 0:
                raise kernel.error(errno.ENOENT)
            target = _place(call, to, new)
            with target.folder:
                self._judge_path(file.path, MOVES)
                self._judge_secret(file.fd, "link")
                self._judge(target, MAKES)
                self._keep_inside(target, new=True)
                here, there = syscalls.AT_FDCWD, target.folder.fd
                words = (os.fsencode(file.opened), os.fsencode(target.name))
                kernel.call("linkat", here, words[0], there, words[1], _FOLLOW)
            self._line.saw("written", target.path)

    def _truncate(self, call: Syscall) -> None:
        with resolve_in_process(call.thread, syscalls.AT_FDCWD, call.text(0)) as file:
            if file.fd < 0:
                raise kernel.error(errno.ENOENT)
            self._judge_change(file.path)
            size = call.arguments[1]
            os.truncate(file.opened, size - (1 << 64) if size >> 63 else size)
            self._line.saw("written", file.path)

    def _replace_settings(self, source: NamedPlace, target: NamedPlace) -> None:
        """Put settings of git in place that were written beside them: what is new in them must not run anything.

        The file that was judged may still be open for writing, so that a copy takes its place.
        """
        from hookline.core.git_settings import running_settings

        new, facts = _text_of(source)
        try:
            old, _ = _text_of(target)
        except FileNotFoundError:
            old = ""
        found = running_settings(old, new)
        if found == ["core.worktree"] and "/modules/" in target.path:
            found = []  # a submodule's folder
        if found:
            self._refuse(target.path, f"`{found[0]}` has git run something, or is not known not to")
        name = f"{target.name}.hookline"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, stat.S_IMODE(facts.st_mode), dir_fd=target.folder.fd), "wb") as file:
            file.write(new.encode("utf-8", "surrogateescape"))
        os.rename(name, target.name, src_dir_fd=target.folder.fd, dst_dir_fd=target.folder.fd)
        os.unlink(source.name, dir_fd=source.folder.fd)


def _place(call: Syscall, folder: int, path: int) -> NamedPlace:
    text = call.text(path)
    slash = text.endswith("/") and not call.name.startswith("mkdir")
    return NamedPlace(*resolve_parent(call.thread, call.folder(folder), text), slash=slash)


def _text_of(place: NamedPlace) -> tuple[str, os.stat_result]:
    """What a file holds, which must be a plain one."""
    fd = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place.folder.fd)
    with open(fd, "rb") as file:
        facts, data = os.fstat(fd), file.read(_MOST_TEXT + 1)
    if not stat.S_ISREG(facts.st_mode) or len(data) > _MOST_TEXT:
        raise kernel.error(errno.EACCES)
    return data.decode("utf-8", "surrogateescape"), facts
