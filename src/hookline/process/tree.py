"""End everything a hook started: its process group first, then whoever left the group.

Who belongs to a hook: its process group (a hook is started in one of its own), and every process whose environment
carries the hook's marker, which survives a double fork and `setsid`. Only a process that left the group *and* cleared
its environment cannot be found. The marker is looked for in `/proc`; elsewhere than on Linux only the group is ended.
"""

# ruff: noqa: PTH112, PTH123, PTH208 - hundreds of files of /proc are read at a time: plain paths cost a tenth
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import weakref

import msgspec

MARKER = "HOOKLINE_HOOK_ID"
"""The environment variable by which a hook's processes are found; hooks inside hooks join theirs with `/`."""
TERM_GRACE = 1.0
"""Seconds between asking (TERM) and insisting (KILL)."""
POLL = 0.01
INSISTENCE = 200
"""How often KILL is repeated, `POLL` apart, for processes that fork faster than they are killed."""


def new_marker() -> str:
    """A name no other run has; its length never changes (the warm interpreter relies on that)."""
    return os.urandom(8).hex()


class Group(msgspec.Struct, frozen=True):
    """Everything one run started: the group (or session) led by `leader`, and whoever carries `marker`."""

    leader: int
    marker: str

    async def end(self, exit: asyncio.Future[int | None]) -> None:
        """TERM, then KILL after `TERM_GRACE`, until nothing of the run is left."""
        loop = asyncio.get_running_loop()
        self._signal(await self._members(), signal.SIGTERM, exit)
        deadline = loop.time() + TERM_GRACE
        while loop.time() < deadline:
            if exit.done() and not _group_exists(self.leader) and not await self._members():
                return
            await asyncio.wait((exit,), timeout=POLL)
            if exit.done():
                await asyncio.sleep(POLL)
        for _ in range(INSISTENCE):
            members = await self._members()
            if exit.done() and not members:
                return
            self._signal(members, signal.SIGKILL, exit)
            await asyncio.sleep(POLL)

    async def _members(self) -> list[_Seen]:
        if _SCAN is None:  # without /proc the group is all that can be seen
            alive = _group_exists(self.leader)
            return [_Seen(self.leader, self.leader, self.leader, ())] if alive else []
        census = await _census().take()
        return census.members(self.leader, self.marker)

    def _signal(self, members: list[_Seen], number: int, exit: asyncio.Future[int | None]) -> None:
        """Signal the group and those outside it; an id without members may be someone else's by now and is spared."""
        if not exit.done() or any(one.group == self.leader for one in members):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)
        for one in members:
            if one.group != self.leader:
                _signal_if_ours(one.pid, number, self.leader, self.marker)


def _group_exists(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_if_ours(pid: int, number: int, leader: int, marker: str) -> None:
    """Signal a process found in a census, unless its id has passed to another process since."""
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return
    try:
        seen = _look_at(str(pid))
        if seen is not None and seen.belongs(leader, marker):
            signal.pidfd_send_signal(pidfd, number)
    except OSError:
        pass
    finally:
        os.close(pidfd)


# ---- looking around


class _Seen(msgspec.Struct, frozen=True):
    pid: int
    group: int
    session: int
    markers: tuple[str, ...]

    def belongs(self, leader: int, marker: str) -> bool:
        return leader in (self.group, self.session) or marker in self.markers


class Census(msgspec.Struct, frozen=True):
    """The live processes of this user at one moment; the dead that nobody reaped do not count."""

    seen: tuple[_Seen, ...] = ()

    def members(self, leader: int, marker: str) -> list[_Seen]:
        return [one for one in self.seen if one.belongs(leader, marker)]


def take_census() -> Census:
    """Look at every process there is."""
    me = str(os.getpid())
    names = (name for name in os.listdir("/proc") if name.isdigit() and name != me)
    return Census(tuple(seen for name in names if (seen := _look_at(name)) is not None))


def _look_at(pid: str) -> _Seen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            state, _, group, session = stat.read().rpartition(b")")[2].split()[:4]
        if state in (b"Z", b"X"):
            return None
        return _Seen(int(pid), int(group), int(session), _markers(pid))
    except OSError:
        return None


def _markers(pid: str) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            entries = environ.read().split(b"\0")
    except OSError:  # someone else's process
        return ()
    prefix = MARKER.encode() + b"="
    return tuple(
        part
        for entry in entries
        if entry.startswith(prefix)
        for part in entry[len(prefix) :].decode("ascii", "replace").split("/")
    )


_SCAN = take_census if os.path.isdir("/proc/self") else None


class _SharedCensus(msgspec.Struct):
    """One look serves all who asked before it began; it is taken in a thread, for it costs milliseconds."""

    waiting: list[asyncio.Future[Census]] = msgspec.field(default_factory=list)
    looking: asyncio.Task[None] | None = None

    async def take(self) -> Census:
        answer: asyncio.Future[Census] = asyncio.get_running_loop().create_future()
        self.waiting.append(answer)
        if self.looking is None or self.looking.done():
            self.looking = asyncio.create_task(self._look())
        return await answer

    async def _look(self) -> None:
        assert _SCAN is not None
        while self.waiting:
            asking, self.waiting = self.waiting, []
            try:
                census = await asyncio.to_thread(_SCAN)
            except BaseException as error:
                for answer in asking + self.waiting:
                    if not answer.done():
                        answer.set_exception(
                            error if isinstance(error, Exception) else RuntimeError("the look around was cut short")
                        )
                raise
            for answer in asking:
                if not answer.done():
                    answer.set_result(census)


_CENSUS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedCensus] = weakref.WeakKeyDictionary()


def _census() -> _SharedCensus:
    loop = asyncio.get_running_loop()
    shared = _CENSUS.get(loop)
    if shared is None:
        shared = _CENSUS[loop] = _SharedCensus()
    return shared
