"""The seccomp filter: which system calls are handed to the supervisor, which do not exist, and which pass."""

from __future__ import annotations

import struct
from errno import ENOSYS, EOPNOTSUPP, EPERM

from hookline.sandbox import syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOW, NOTIFY, ERRNO, KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _SET, _AT_LEAST, _JUMP, _RETURN, _AND = 0x20, 0x15, 0x45, 0x35, 0x05, 0x06, 0x54
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_FEW = 3
_UNIX, _NETLINK, _INTERNET = 1, 16, (2, 10)
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF
_TCP = 6

Instruction = tuple[int, int, int, int]


def _load_argument(index: int) -> Instruction:
    """The lower half of an argument, which is where flags, commands and families are."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _answer(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _when_any_bit(argument: int, bits: int, action: int) -> list[Instruction]:
    return [_load_argument(argument), (_SET, 0, 1, bits), _answer(action), _answer(ALLOW)]


def _ioctl() -> list[Instruction]:
    block = [_load_argument(1)]
    for command in syscalls.TERMINAL_INPUT:
        block += [(_EQUAL, 0, 1, command), _answer(ERRNO | EPERM)]
    return [*block, *_notify_if_any(1, (*syscalls.FILE_FLAGS, *syscalls.SUBVOLUMES))[1:]]


def _notify_if_any(argument: int, values: Iterable[int]) -> list[Instruction]:
    """Hand over where an argument is one of some values."""
    block = [_load_argument(argument)]
    for value in values:
        block += [(_EQUAL, 0, 1, value), _answer(NOTIFY)]
    return [*block, _answer(ALLOW)]


def _notify_unless_zero(argument: int) -> list[Instruction]:
    """Hand over where an argument is set, in either half."""
    high = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)
    return [_load_argument(argument), (_EQUAL, 0, 2, 0), high, (_EQUAL, 1, 0, 0), _answer(NOTIFY), _answer(ALLOW)]


def _if_equal(value: int, block: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(block), value), *block]


def _clone() -> list[Instruction]:
    """Hand over what makes a process or a namespace; threads pass."""
    names = [_load_argument(0), (_SET, 0, 1, syscalls.NAMESPACES), _answer(NOTIFY)]
    return [*names, (_SET, 0, 1, syscalls.THREAD), _answer(ALLOW), _answer(NOTIFY)]


def _streams() -> list[Instruction]:
    """Unix streams only: a datagram names whom it is for in memory, where the filter cannot look."""
    passes = [each for kind in (_STREAM, _SEQPACKET) for each in _if_equal(kind, [_answer(ALLOW)])]
    return [_load_argument(1), (_AND, 0, 0, _KIND), *passes, _answer(NOTIFY)]


def _socket(network: str) -> list[Instruction]:
    """Families that are known, and of these the kinds that can be held."""
    tcp = [each for protocol in (0, _TCP) for each in _if_equal(protocol, [_answer(ALLOW)])]
    kinds = [_load_argument(1), (_AND, 0, 0, _KIND), *_if_equal(_STREAM, [_load_argument(2), *tcp, _answer(NOTIFY)])]
    internet = {"all": [_answer(ALLOW)], "tcp": [*kinds, _answer(NOTIFY)], "none": [_answer(NOTIFY)]}[network]
    route = [_load_argument(2), *_if_equal(0, [_answer(ALLOW)]), _answer(ALLOW if network == "all" else NOTIFY)]
    families = [(_UNIX, _streams()), (_NETLINK, route), *((family, internet) for family in _INTERNET)]
    return [_load_argument(0), *(each for row in families for each in _if_equal(*row)), _answer(NOTIFY)]


def blocks(
    machine: str, *, network: str, scoped_signals: bool, starts: bool, forks: bool = False, reads: bool = False
) -> dict[str, list[Instruction]]:
    """What happens at each call that is looked at, by its name; `network` is `all`, `tcp` or `none`."""
    found = {name: [_answer(NOTIFY)] for name in (*syscalls.WRITES, *syscalls.METADATA, *syscalls.REFUSED)}
    found |= {name: [_answer(NOTIFY)] for name in ("execve", "execveat", "connect", "bind", *syscalls.CREDENTIALS)}
    found |= {name: [_answer(ERRNO | ENOSYS)] for name in syscalls.ABSENT}
    if not reads:
        found["open"] = _when_any_bit(1, syscalls.O_WRITES, NOTIFY)
        found["openat"] = _when_any_bit(2, syscalls.O_WRITES, NOTIFY)
    found["clone"] = _when_any_bit(0, syscalls.NAMESPACES, NOTIFY)
    found["ioctl"] = _ioctl()
    found["flock"] = _when_any_bit(1, syscalls.TAKES_LOCK, NOTIFY)
    found["fcntl"] = [_load_argument(1), *_if_equal(syscalls.SET_LEASE, [_answer(ERRNO | EPERM)]), _answer(ALLOW)]
    found["keyctl"] = _notify_if_any(0, syscalls.KEY_CHANGES)
    found |= {name: [_answer(NOTIFY)] for name in (*syscalls.OWNED_GROUPS, *syscalls.IPC)}
    found |= {name: _notify_unless_zero(0) for name in syscalls.SCHEDULING}
    found |= {name: _when_any_bit(at, syscalls.FAST_OPEN, ERRNO | EOPNOTSUPP) for name, at in syscalls.SENDS.items()}
    found["socket"] = _socket(network)
    found["socketpair"] = [_load_argument(0), *_if_equal(_UNIX, _streams()), _answer(NOTIFY)]
    if starts:
        name, values = syscalls.STARTED[machine]
        found[name] = _notify_if_any(0, values) if values else [_answer(NOTIFY)]
        found["ptrace"] = _notify_if_any(0, syscalls.ATTACHING)
    if forks:
        found |= {name: [_answer(NOTIFY)] for name in syscalls.FORKS} | {"clone": _clone()}
    if network == "tcp":
        found["listen"] = [_answer(NOTIFY)]
    if not scoped_signals:  # a file that is watched sends signals, too, to whom it is told
        refused = [each for command in syscalls.SET_OWNER for each in _if_equal(command, [_answer(ERRNO | EPERM)])]
        found["fcntl"] = [found["fcntl"][0], *refused, *found["fcntl"][1:]]
        found["ioctl"] = [found["ioctl"][0], *refused, *found["ioctl"][1:]]
        found |= {name: [_answer(NOTIFY)] for name in syscalls.SIGNALS}
    return found


_MADE: dict[tuple[str | bool, ...], bytes] = {}


def program(
    machine: str, *, network: str = "all", scoped_signals: bool = True, starts: bool = True, forks: bool = False,
    reads: bool = False,
) -> bytes:  # fmt: skip
    """The filter as the kernel takes it; programs of another architecture can call nothing at all.

    With `starts` a program that has started is looked at once more, before its own code runs; with `forks` processes
    are counted; with `reads` every file is opened by the supervisor.
    """
    wanted = (machine, network, scoped_signals, starts, forks, reads)
    if wanted not in _MADE:
        found = blocks(machine, network=network, scoped_signals=scoped_signals, starts=starts, forks=forks, reads=reads)
        _MADE[wanted] = _program(machine, found)
    return _MADE[wanted]


def _program(machine: str, found: dict[str, list[Instruction]]) -> bytes:
    arch, column = syscalls.MACHINES[machine]
    code: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _answer(KILL), (_LOAD, 0, 0, _NUMBER)]
    if arch == syscalls.X86_64:
        code += [(_AT_LEAST, 0, 1, syscalls.X32), _answer(ERRNO | ENOSYS)]
    rows = [(syscalls.NUMBERS[name][column], block) for name, block in found.items()]
    code += _choice(sorted((row for row in rows if row[0] >= 0), key=lambda row: row[0]))
    return b"".join(struct.pack("HBBI", *each) for each in code)


def _choice(rows: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Go to the block of a number, by halves: the kernel tries a new filter on every number there is."""
    if len(rows) <= _FEW:
        tried = [each for number, block in rows for each in ((_EQUAL, 0, len(block), number), *block)]
        return [*tried, _answer(ALLOW)]
    middle = len(rows) // 2
    lower, upper = _choice(rows[:middle]), _choice(rows[middle:])
    return [(_AT_LEAST, 0, 1, rows[middle][0]), (_JUMP, 0, 0, len(lower)), *lower, *upper]
