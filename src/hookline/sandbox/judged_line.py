"""What the judges of one line share, in whose name they act, and how each of them answers a call.

Every module with a judge (`starts`, `files`, `processes`, `sockets`) has a class with a `table`: the calls it knows, by
name, each with the method that answers it. The supervisor joins these tables and does nothing else with a call.
"""

from __future__ import annotations

import os

from hookline.sandbox import kernel
from hookline.sandbox.outside import OutsideResources
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.policy import Policy
from hookline.sandbox.reports import Refusal, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")

    Table = dict[str, Callable[[str, "Notice"], Refusal | None]]
    """A call's name → what answers it: None lets it go on, a refusal fails it, OSError fails it in silence."""

_SYS_PTRACE = 1 << 19
_MOST_KNOWN = 512
ENOENT, EBADF, EACCES, EPERM, EFAULT, EINVAL = 2, 9, 13, 1, 14, 22

Notice = tuple[int, ...]
"""A notification: (id, thread, flags, number, arch, pointer, six arguments)."""


class CallMade(Exception):
    """The supervisor has made a call itself: the caller gets its result, and the kernel does nothing more."""

    def __init__(self, value: int = 0) -> None:
        self.value = value


class CallAnswered(Exception):
    """The caller has its answer already, or gets it from a thread that waits in its place."""


class Rights:
    """User, group, further groups, capabilities and umask, as files see them; `file` tells threads apart."""

    def __init__(self, user: int, group: int, groups: list[int], capabilities: int, umask: int) -> None:
        self.user: int = user
        self.group: int = group
        self.groups: list[int] = groups
        self.capabilities: int = capabilities
        self.umask: int = umask
        self.file: int = 0

    def same(self, other: Rights) -> bool:
        """Whether files see no difference."""
        mine = (self.user, self.group, self.groups, self.capabilities & ~_SYS_PTRACE)
        return mine == (other.user, other.group, other.groups, other.capabilities & ~_SYS_PTRACE)


def rights_of(thread: int | str) -> Rights:
    """What the kernel says of a thread."""
    text = kernel.content(f"/proc/{thread}/status").decode("utf-8", "replace")
    lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    groups = [int(group) for group in lines["Groups"].split()]
    user, group = int(lines["Uid"].split()[3]), int(lines["Gid"].split()[3])
    return Rights(user, group, groups, int(lines["CapEff"], 16), int(lines.get("Umask", "022"), 8))


class Callers:
    """Acts with a caller's rights and umask, and takes its own back.

    Only root has any to put down. Who is not root cannot become another user in a confined line, so that the
    supervisor's rights are the line's. Root's supervisor keeps to the capabilities that the line has, but for the one
    to look into its processes. What is known of a thread is forgotten when any of the line changes its own rights.
    """

    def __init__(self) -> None:
        self._own: Rights | None = None
        self._known: dict[int, Rights] = {}
        self._umask = -1

    def forget(self) -> None:
        """Rights or umask of a thread change."""
        self._known.clear()

    def act(self, thread: int, deed: Callable[[], Result]) -> Result:
        """Do something as the thread would; OSError where that thread may not."""
        own = self._own or self._settle()
        theirs = self._rights(thread, own)
        if theirs.umask != self._umask:
            os.umask(theirs.umask)
            self._umask = theirs.umask
        if not own.capabilities or theirs.same(own):
            return deed()
        self._become(theirs, (theirs.capabilities | _SYS_PTRACE) & own.capabilities)
        try:
            return deed()
        finally:
            kernel.use_capabilities(own.capabilities)
            self._become(own, own.capabilities)

    def _settle(self) -> Rights:
        own = rights_of("self")
        if own.capabilities:
            own.capabilities &= sum(1 << each for each in kernel.KEPT_CAPABILITIES) | _SYS_PTRACE
            kernel.use_capabilities(own.capabilities)
        self._own = own
        return own

    def _rights(self, thread: int, own: Rights) -> Rights:
        file = os.stat(f"/proc/{thread}").st_ino if own.capabilities else 0
        known = self._known.get(thread)
        if known is None or known.file != file:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[thread] = rights_of(thread)
            known.file = file
        return known

    def _become(self, rights: Rights, capabilities: int) -> None:
        """Groups first: changing them takes a capability."""
        if rights.groups != os.getgroups():
            os.setgroups(rights.groups)
        kernel.use_identity(rights.user, rights.group)
        kernel.use_capabilities(capabilities)


class JudgedLine:
    """What the judges of one line share: its policy, where it may write, what was there before, and who is calling.

    `roots` are the folders in which files are protected, `hidden` the secrets in them,
    `view` the files of which it sees a part, where its view of the machine is limited.
    """

    def __init__(
        self, policy: Policy, places: WritablePlaces | None, reporter: Reporter, *,
        roots: tuple[str, ...] = (), hidden: tuple[str, ...] = (),
        view: dict[str, tuple[str, bytes]] | None = None,
    ) -> None:  # fmt: skip
        self.policy: Policy = policy
        self.places: WritablePlaces | None = places
        self.others: OutsideResources = OutsideResources()
        self.saw: Callable[[str, str], None] = reporter.saw
        self.roots: tuple[str, ...] = roots
        self.hidden: tuple[str, ...] = hidden
        self.view: dict[str, tuple[str, bytes]] | None = view
        self.callers: Callers = Callers()
        self.memory: kernel.Memory = kernel.Memory()
        self.listener: int = -1

    def waits(self, notice: Notice) -> bool:
        """Whether a call is still waited for: what was read of its process was that process's."""
        return kernel.still_waiting(self.listener, notice[0])


def number_in(path: str, key: str, default: int) -> int:
    """The number behind a word in one of procfs's tables."""
    with open(path) as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith(key)), default)
