"""What the judges of one line share, and how each of them answers a call.

Every module with a judge (`starts`, `files`, `processes`, `sockets`) has a class with a `table`: the calls it knows, by
name, each with the method that answers it. The supervisor joins these tables and does nothing else with a call.
"""

from __future__ import annotations

from hookline.sandbox import kernel
from hookline.sandbox.callers import Callers
from hookline.sandbox.outside import OutsideResources
from hookline.sandbox.path_access import WritablePlaces
from hookline.sandbox.policy import Policy
from hookline.sandbox.reports import Refusal, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Table = dict[str, Callable[[str, "Notice"], Refusal | None]]
    """A call's name → what answers it: None lets it go on, a refusal fails it, OSError fails it in silence."""

ENOENT, EBADF, EACCES, EPERM, EFAULT, EINVAL = 2, 9, 13, 1, 14, 22

Notice = tuple[int, ...]
"""A notification: (id, thread, flags, number, arch, pointer, six arguments)."""


class CallMade(Exception):
    """The supervisor has made a call itself: the caller gets its result, and the kernel does nothing more."""

    def __init__(self, value: int = 0) -> None:
        self.value = value


class CallAnswered(Exception):
    """The caller has its answer already, or gets it from a thread that waits in its place."""


class JudgedLine:
    """What the judges of one line share: its policy, where it may write, what was there before, and who is calling.

    `roots` are the folders in which files are protected, `hidden` the secrets in them.
    """

    def __init__(
        self, policy: Policy, places: WritablePlaces | None, others: OutsideResources, reporter: Reporter,
        temporary: str = "", *, roots: tuple[str, ...] = (), hidden: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.policy: Policy = policy
        self.places: WritablePlaces | None = places
        self.others: OutsideResources = others
        self.saw: Callable[[str, str], None] = reporter.saw
        self.temporary: str = temporary
        self.roots: tuple[str, ...] = roots
        self.hidden: tuple[str, ...] = hidden
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
