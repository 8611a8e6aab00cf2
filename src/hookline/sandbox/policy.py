"""What a confined line may do, as a value; and the same as arguments of `hookline confine`."""

from __future__ import annotations

NETWORKS = ("all", "hosts", "loopback", "none")
"""Everything; named hosts; a loopback of its own; nothing."""
GUARDS = {"write_guard": "--write", "block_guard": "--block", "host_guard": "--host"}
"""In whose name something is refused where no guard's was given: the flag's that asks for it."""
LISTS = {"write": "--write", "read": "--read", "block": "--block", "sockets": "--socket",
         "hide": "--hide", "show": "--show", "hosts": "--host", "tokens": "--token",
         "protect": "--protect", "unprotect": "--unprotect"}  # fmt: skip
"""What a policy lists, and the flag of `hookline confine` that adds to it."""


class Policy:  # noqa: PLW1641 - it is compared, never a key
    """Folders that may be written to and read, patterns that may not be started, and the network.

    `read` is None where reading is not restricted. `hide` and `protect` add to what is hidden and protected in any
    line that may not write everywhere, `show` and `unprotect` take from it. The guards' names stand in what a refusal
    says.
    """

    def __init__(
        self,
        write: tuple[str, ...] | None = (),
        *,
        read: tuple[str, ...] | None = None,
        block: tuple[str, ...] = (),
        network: str = "all",
        sockets: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
        tokens: tuple[str, ...] = (),
        limits: dict[str, float] | None = None,
        hide: tuple[str, ...] = (),
        show: tuple[str, ...] = (),
        protect: tuple[str, ...] = (),
        unprotect: tuple[str, ...] = (),
        call: str = "",
        write_guard: str = GUARDS["write_guard"],
        block_guard: str = GUARDS["block_guard"],
        host_guard: str = GUARDS["host_guard"],
    ) -> None:
        self.write: tuple[str, ...] | None = write
        self.read: tuple[str, ...] | None = read
        self.block: tuple[str, ...] = block
        self.network: str = "hosts" if hosts and network == "all" else network
        self.sockets: tuple[str, ...] = sockets
        self.hosts: tuple[str, ...] = hosts if self.network == "hosts" else ()
        self.tokens: tuple[str, ...] = tokens
        self.limits: dict[str, float] = limits or {}
        self.hide: tuple[str, ...] = hide
        self.show: tuple[str, ...] = show
        self.protect: tuple[str, ...] = protect
        self.unprotect: tuple[str, ...] = unprotect
        self.call: str = call
        self.write_guard: str = write_guard
        self.block_guard: str = block_guard
        self.host_guard: str = host_guard

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return vars(self) == vars(other)

    def arguments(self) -> list[str]:
        words = ["--write-anywhere"] if self.write is None else []
        for name, flag in LISTS.items():
            words += [word for value in getattr(self, name) or () for word in (flag, value)]
        words += {"loopback": ["--loopback"], "none": ["--no-network"]}.get(self.network, [])
        words += [word for name, most in self.limits.items() for word in (f"--{name}", f"{most:.15g}")]
        words += ["--call", self.call] if self.call else []
        named = {name: getattr(self, name) for name, usual in GUARDS.items() if getattr(self, name) != usual}
        return [*words, *(word for name, guard in named.items() for word in (f"--{name.replace('_', '-')}", guard))]

    def intersected(self, other: Policy) -> Policy:
        """What both policies allow; the sockets and tokens that either of them grants."""
        network, hosts = self._shared_network(other)
        limits = dict(self.limits)
        limits |= {name: min(most, limits.get(name, most)) for name, most in other.limits.items()}
        rest: dict[str, object] = {name: self._shared(name, other) for name in ("show", "unprotect")}
        for name in ("block", "tokens", "sockets", "hide", "protect"):
            rest[name] = tuple(dict.fromkeys([*getattr(self, name), *getattr(other, name)]))
        for name, usual in GUARDS.items():
            rest[name] = getattr(self if getattr(other, name) == usual else other, name)
        return Policy(
            _both(self.write, other.write), read=_both(self.read, other.read), network=network, hosts=hosts,
            limits=limits, call=self.call or other.call,
            **rest,  # type: ignore[arg-type]  # as the names above say
        )  # fmt: skip

    def _shared_network(self, other: Policy) -> tuple[str, tuple[str, ...]]:
        network, hosts = max(self.network, other.network, key=NETWORKS.index), self.hosts or other.hosts
        if network == "hosts" and self.hosts and other.hosts and self.hosts != other.hosts:
            from hookline.sandbox.hosts import shared_hosts  # only where there are two lists

            hosts = shared_hosts(self.hosts, other.hosts)
        return (network, hosts) if network != "hosts" or hosts else ("none", ())

    def _shared(self, name: str, other: Policy) -> tuple[str, ...]:
        """What both take from the defaults; a policy that holds no files has nothing to say about them."""
        if self.write is None or other.write is None:
            return getattr(other if self.write is None else self, name)  # type: ignore[no-any-return]
        return tuple(path for path in getattr(self, name) if path in getattr(other, name))

    @property
    def holds_files(self) -> bool:
        """Whether a line's files are held at all; without, nothing is hidden or protected."""
        return self.write is not None or self.read is not None or bool(self.hide)

    def record(self) -> bytes:
        """The arguments as bytes that one append leaves whole."""
        return "".join(f"{word}\0" for word in self.arguments()).encode("utf-8", "surrogateescape") + b"\0"


def records(data: bytes) -> list[list[str]]:
    """The arguments of every policy that was recorded."""
    found = [part for part in data.split(b"\0\0") if part]
    return [part.decode("utf-8", "surrogateescape").split("\0") for part in found]


def _both(first: tuple[str, ...] | None, second: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    from hookline.core.paths import inside_any  # only where there are two policies

    kept = [path for path in first if inside_any(path, second)] + [path for path in second if inside_any(path, first)]
    return tuple(dict.fromkeys(kept))
