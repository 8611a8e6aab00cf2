"""Doing something with the rights of the thread that asked for it: its user, its groups and its capabilities.

Only root has any to put down. Who is not root cannot become another user in a confined line, so that the supervisor's
rights are the line's.
"""

from __future__ import annotations

import os

from hookline.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Rights:
    """User, group, further groups and capabilities, as files see them."""

    __slots__ = ("capabilities", "group", "groups", "user")

    user: int
    group: int
    groups: list[int]
    capabilities: int

    def __init__(self, user: int, group: int, groups: list[int], capabilities: int) -> None:
        self.user, self.group, self.groups, self.capabilities = user, group, groups, capabilities


def rights_of(thread: int | str) -> Rights:
    """What the kernel says of a thread."""
    with open(f"/proc/{thread}/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    groups = [int(group) for group in lines["Groups"].split()]
    return Rights(int(lines["Uid"].split()[3]), int(lines["Gid"].split()[3]), groups, int(lines["CapEff"], 16))


class Actor:
    """Acts with a caller's rights, and takes its own back."""

    def __init__(self) -> None:
        self._own = rights_of("self")

    def act(self, thread: int, deed: Callable[[], None]) -> None:
        """Do something as the thread would; OSError where that thread may not."""
        if not self._own.capabilities:
            deed()
            return
        theirs = rights_of(thread)
        self._become(theirs, theirs.capabilities & self._own.capabilities)
        try:
            deed()
        finally:
            kernel.use_capabilities(self._own.capabilities)
            self._become(self._own, self._own.capabilities)

    def _become(self, rights: Rights, capabilities: int) -> None:
        """Groups first: changing them takes a capability."""
        if rights.groups != os.getgroups():
            os.setgroups(rights.groups)
        kernel.use_identity(rights.user, rights.group)
        kernel.use_capabilities(capabilities)
