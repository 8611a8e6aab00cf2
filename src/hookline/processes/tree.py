"""End everything a hook started: its process group first, then the processes that left it.

Who belongs to a hook: its process group (a hook is started in one of its own), and every process whose environment
carries the hook's marker, which survives a double fork and `setsid`, and whatever descends from these. A fork of a warm
interpreter, whose environment shows as the interpreter's, has the marker as its name. Only a process that left the
group, cleared its environment *and* lost its parent cannot be found. All this is looked for in `/proc`;
elsewhere than on Linux only the group is ended.
"""

# ruff: noqa: PTH112, PTH123, PTH208 - hundreds of files of /proc are read at a time: plain paths cost a tenth
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import weakref

import msgspec

MARKER = "HOOKLINE_HOOK_ID"
"""The environment variable by which a hook's processes are found; hooks inside hooks join theirs with `/`."""
TERM_GRACE = 1.0  # seconds between asking (TERM) and insisting (KILL)
POLL = 0.01
INSISTENCE = 200  # how often KILL is repeated, `POLL` apart, for processes that fork faster than they are killed


def new_marker() -> str:
    """A name no other run has, short enough to be a process's name."""
    return os.urandom(8).hex()[:15]


class Group(msgspec.Struct, frozen=True):
    """Everything one run started: the group (or session) led by `leader`, and the processes that carry `marker`."""

    leader: int
    marker: str

    async def end(self, exit: asyncio.Future[int | None]) -> None:
        """TERM, then KILL after `TERM_GRACE`, until nothing of the run is left."""
        loop = asyncio.get_running_loop()
        known: frozenset[_Life] = frozenset()  # a process that was found once is not lost when its parent dies
        members = await self._members(known)
        self._signal(members, signal.SIGTERM, exit)
        deadline = loop.time() + TERM_GRACE
        while loop.time() < deadline:
            known |= {one.life for one in members}
            if exit.done() and not (members := await self._members(known)):
                return
            await asyncio.wait((exit,), timeout=POLL)
            if exit.done():
                await asyncio.sleep(POLL)
        for _ in range(INSISTENCE):
            members = await self._members(known)
            if exit.done() and not members:
                return
            known |= {one.life for one in members}
            self._signal(members, signal.SIGKILL, exit)
            await asyncio.sleep(POLL)

    async def _members(self, known: frozenset[_Life]) -> list[_ProcessEntry]:
        """The processes that belong to the run, or were known to, and their descendants."""
        if not _HAS_PROC:  # without /proc the group is all that can be seen
            try:
                os.killpg(self.leader, 0)
            except ProcessLookupError:
                return []
            except PermissionError:  # there is one, but its members have become another user's
                pass
            return [_ProcessEntry(self.leader, 0, self.leader, self.leader, 0, ())]
        census = await _CENSUS.setdefault(asyncio.get_running_loop(), _SharedCensus()).take()
        found = {one.pid: one for one in census if one.belongs(self.leader, self.marker) or one.life in known}
        while more := [one for one in census if one.parent in found and one.pid not in found]:
            found |= {one.pid: one for one in more}
        return list(found.values())

    def _signal(self, members: list[_ProcessEntry], number: int, exit: asyncio.Future[int | None]) -> None:
        """Signal the group and those outside it; an id without members may be someone else's by now and is spared."""
        if not exit.done() or any(one.group == self.leader for one in members):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)
        for one in members:
            if one.group != self.leader:
                _signal_if_same(one, number)


def _signal_if_same(found: _ProcessEntry, number: int) -> None:
    """Signal a process found in a census, unless its id has passed to another process since."""
    with contextlib.suppress(OSError, AttributeError):  # it has gone, or this Python was built without the call
        pidfd = os.pidfd_open(found.pid)
        try:
            seen = _look_at(str(found.pid))
            if seen is not None and seen.life == found.life:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


_Life = tuple[int, int]  # a process for good: its id, and when it began


class _ProcessEntry(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    group: int
    session: int
    began: int
    markers: tuple[str, ...]

    @property
    def life(self) -> _Life:
        return self.pid, self.began

    def belongs(self, leader: int, marker: str) -> bool:
        return leader in (self.group, self.session) or marker in self.markers


def take_census() -> tuple[_ProcessEntry, ...]:
    """The live processes of this user; those that have ended and wait to be reaped do not count."""
    me = str(os.getpid())
    names = (name for name in os.listdir("/proc") if name.isdigit() and name != me)
    return tuple(seen for name in names if (seen := _look_at(name)) is not None)


def _look_at(pid: str) -> _ProcessEntry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            name, _, rest = stat.read().partition(b"(")[2].rpartition(b")")
        fields = rest.split()
        state, parent, group, session, began = *fields[:4], fields[_BEGAN]
        if state in (b"Z", b"X"):
            return None
        markers = (*_markers(pid), name.decode("ascii", "replace"))
        return _ProcessEntry(int(pid), int(parent), int(group), int(session), int(began), markers)
    except OSError:
        return None


_BEGAN = 19  # where `/proc/PID/stat` has the time a process began, counted from its state


def _markers(pid: str) -> tuple[str, ...]:
    entries = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:  # else someone else's process
        entries = environ.read().split(b"\0")
    prefix = MARKER.encode() + b"="
    found = [entry.removeprefix(prefix).decode("ascii", "replace") for entry in entries if entry.startswith(prefix)]
    return tuple("/".join(found).split("/")) if found else ()


_HAS_PROC = os.path.isdir("/proc/self")


class _SharedCensus:
    """One look serves all who asked before it began; it is taken in a thread, for it costs milliseconds."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._began = 0.0
        self._seen: tuple[_ProcessEntry, ...] = ()

    async def take(self) -> tuple[_ProcessEntry, ...]:
        asked = time.monotonic()
        async with self._turn:
            if self._began < asked:
                began = time.monotonic()
                self._seen = await asyncio.to_thread(take_census)
                self._began = began
            return self._seen


_CENSUS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedCensus] = weakref.WeakKeyDictionary()
