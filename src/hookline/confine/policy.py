"""What a confined line may do, as a value; and the same as arguments of `hookline confine`."""

from __future__ import annotations

NETWORKS = ("all", "loopback", "none")
"""Everything; a loopback of its own; nothing."""
WRITE_GUARD, BLOCK_GUARD = "--write", "--block"


class Policy:
    """Folders that may be written to and read, patterns that may not be started, and the network.

    `read` is None where reading is not restricted. The guards' names stand in what a refusal says.
    """

    __slots__ = ("block", "block_guard", "network", "read", "report", "sockets", "write", "write_guard")

    def __init__(
        self,
        write: tuple[str, ...] | None = (),
        *,
        read: tuple[str, ...] | None = None,
        block: tuple[str, ...] = (),
        network: str = "all",
        sockets: tuple[str, ...] = (),
        report: str = "",
        write_guard: str = WRITE_GUARD,
        block_guard: str = BLOCK_GUARD,
    ) -> None:
        self.write, self.read, self.block, self.network, self.sockets = write, read, block, network, sockets
        self.report, self.write_guard, self.block_guard = report, write_guard, block_guard

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # a policy is compared, never a key

    def arguments(self) -> list[str]:
        """The flags of `hookline confine` that say the same."""
        words = ["--write-anywhere"] if self.write is None else []
        words += [word for folder in self.write or () for word in ("--write", folder)]
        words += [word for folder in self.read or () for word in ("--read", folder)]
        words += [word for pattern in self.block for word in ("--block", pattern)]
        words += [word for path in self.sockets for word in ("--socket", path)]
        words += {"all": [], "loopback": ["--loopback"], "none": ["--no-network"]}[self.network]
        words += ["--report", self.report] if self.report else []
        words += ["--write-guard", self.write_guard] if self.write_guard != WRITE_GUARD else []
        return [*words, *(["--block-guard", self.block_guard] if self.block_guard != BLOCK_GUARD else [])]
