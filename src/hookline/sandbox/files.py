"""Files and folders that are written to or changed."""

from __future__ import annotations

import _thread
import fcntl
import os

from hookline.sandbox import kernel, metadata, syscalls
from hookline.sandbox.exec_policy import quoted
from hookline.sandbox.judged_line import (
    EBADF,
    EFAULT,
    EINVAL,
    ENOENT,
    CallAnswered,
    CallMade,
    JudgedLine,
    Notice,
    number_in,
)
from hookline.sandbox.outside import signed
from hookline.sandbox.path_access import OpenedPath, name_of, real, resolve_in_process
from hookline.sandbox.policy import Policy
from hookline.sandbox.reports import Refusal, quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookline.sandbox.judged_line import Table


class FileChanges:
    """Files and folders that are written to or changed."""

    def __init__(self, line: JudgedLine) -> None:
        self._line = line

    def table(self) -> Table:
        """The calls that write or change."""
        table: Table = dict.fromkeys(syscalls.WRITES, self._write)
        return table | dict.fromkeys(syscalls.METADATA, self._change) | {"flock": self._lock}

    def _lock(self, _name: str, notice: Notice) -> Refusal | None:
        """Take a lock on a file inside, for the file as the caller has it open; outside it seems to be taken.

        A program outside would wait for it; and what cannot be written needs none.
        """
        if self._line.places is None:
            return None
        thread, (number, operation, *_) = notice[1], notice[6:]
        fd = kernel.take_descriptor(thread, signed(number))
        wait = not operation & fcntl.LOCK_NB
        try:
            if self._line.places.hold(name_of(fd)):
                fcntl.flock(fd, operation & 0xFF | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            _thread.start_new_thread(_wait_for_lock, (self._line.listener, notice[0], os.dup(fd), operation & 0xFF))
            raise CallAnswered from None
        finally:
            os.close(fd)
        raise CallMade

    def _write(self, name: str, notice: Notice) -> Refusal | None:
        """Landlock holds these calls; they are looked at to say why they fail."""
        if self._line.places is None:
            return None
        thread, arguments = notice[1], notice[6:]
        call = syscalls.WRITES[name]
        for position, (folder, path) in enumerate(call.pairs):
            at = syscalls.AT_FDCWD if folder < 0 else signed(arguments[folder])
            text = os.fsdecode(self._line.memory.text(thread, arguments[path])) if arguments[path] else ""
            if not text and folder < 0:
                return None  # the kernel answers an empty path itself
            place = real(thread, at, text, follow=call.follow)
            if self._line.places.hold(place) and not self._line.others.own(place):
                if not place.startswith("/dev/"):
                    self._line.saw("written", place)
                continue
            return None if self._fails_anyway(name, notice, position, place) else self._outside(name, place)
        return None

    def _change(self, name: str, notice: Notice) -> Refusal | None:
        """Landlock does not know these calls: they are judged, and made, on one and the same open file."""
        if self._line.places is None:
            return None
        thread, arguments = notice[1], notice[6:]
        if name == "ioctl" and arguments[1] & 0xFFFFFFFF in syscalls.SUBVOLUMES:
            place = real(thread, signed(arguments[0]), "")
            return None if self._line.places.hold(place) else self._outside(name, place)
        with self._changed(name, notice) as file:
            if file.fd < 0:
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
            if not self._line.places.hold(file.path) or self._line.others.own(file.path):
                return self._outside(name, file.path)
            if self._line.waits(notice):
                self._make(name, thread, arguments, file.fd)
        raise CallMade

    def _changed(self, name: str, notice: Notice) -> OpenedPath:
        """The file that a call would change."""
        thread, arguments = notice[1], notice[6:]
        call = syscalls.METADATA[name]
        [(folder, path)] = call.pairs
        at = syscalls.AT_FDCWD if folder < 0 else signed(arguments[folder])
        if name == "ioctl":
            fd = kernel.take_descriptor(number_in(f"/proc/{thread}/status", "Tgid:", thread), at)
            return OpenedPath(name_of(fd), fd)
        flags = arguments[call.flags] & 0xFFFFFFFF if call.flags >= 0 else 0
        if flags & ~(syscalls.AT_NO_FOLLOW | syscalls.AT_EMPTY_PATH):
            raise OSError(EINVAL, os.strerror(EINVAL))
        text = self._path(thread, arguments[path], flags, name) if path >= 0 else ""
        if path < 0 and at < 0:
            raise OSError(EBADF, os.strerror(EBADF))
        return resolve_in_process(thread, at, text, follow=call.follow and not flags & syscalls.AT_NO_FOLLOW)

    def _path(self, thread: int, address: int, flags: int, name: str) -> str:
        """The path that a call is given; where it may be left out, the descriptor is meant."""
        if not address:
            if name in syscalls.MAY_LEAVE_OUT_PATH:
                return ""
            raise OSError(EFAULT, os.strerror(EFAULT))
        text = os.fsdecode(self._line.memory.text(thread, address))
        if not text and not flags & syscalls.AT_EMPTY_PATH:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return text

    def _make(self, name: str, thread: int, arguments: tuple[int, ...], fd: int) -> None:
        request = metadata.MetadataCall(self._line.memory, thread, arguments)
        self._line.callers.act(thread, lambda: metadata.CHANGES[name](request, fd))

    def _fails_anyway(self, name: str, notice: Notice, position: int, place: str) -> bool:
        """Whether the kernel answers a call itself: what is to be made is there, or what is to be changed is not."""
        exists = os.path.lexists(place)
        if name in syscalls.OPEN_FLAGS:
            return _open_fails(notice[6 + syscalls.OPEN_FLAGS[name]], exists=exists)
        if name in syscalls.MAKES or (name in ("link", "linkat") and position):
            return exists
        return not exists and not position

    def _outside(self, name: str, place: str) -> Refusal:
        return outside(self._line.policy, "change" if name in syscalls.METADATA else "write", place)


def _wait_for_lock(listener: int, notice: int, fd: int, operation: int) -> None:
    try:
        fcntl.flock(fd, operation)
        kernel.respond(listener, notice, 0)
    except OSError as error:
        kernel.respond(listener, notice, error.errno)
    finally:
        os.close(fd)


def outside(policy: Policy, what: str, place: str) -> Refusal:
    """That a place may not be written or changed, and what to add so that it may."""
    folders = ", ".join(f"`{folder}`" for folder in policy.write or ())
    reason = f"it is outside {folders}" if folders else "no folder may be written to"
    flag = "--write" if policy.write_guard == "--write" else "--also"
    advice = f"to allow it, add `{flag} {quoted(worth_allowing(place))}`"
    return Refusal(f"to {what} `{place}`", policy.write_guard, reason, advice, quiet=quiet(place))


def _open_fails(flags: int, *, exists: bool) -> bool:
    if exists:
        return flags & syscalls.O_EXCLUSIVE == syscalls.O_EXCLUSIVE
    return not flags & syscalls.O_CREATE


def worth_allowing(place: str) -> str:
    """The folder to allow for a write: a tool's own one in the home directory, else the one the file is in."""
    home = os.environ.get("HOME", "").rstrip("/")
    if home and place.startswith(home + "/"):
        first, *rest = place[len(home) + 1 :].split("/")
        if first in (".local", ".config", ".cache") and len(rest) > 1:
            return f"~/{first}/{rest[0]}" if first != ".local" or len(rest) < 3 else f"~/.local/{rest[0]}/{rest[1]}"
        if first.startswith(".") and rest:
            return f"~/{first}"
    return place.rpartition("/")[0] or "/"
