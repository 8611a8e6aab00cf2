"""The system calls that confinement looks at: their numbers per machine, what each of them touches, and the filter.

The seccomp filter hands calls to the supervisor, or answers that there is no such call. What is in no table passes.
"""

from __future__ import annotations

import struct
from _collections_abc import Iterable  # without `collections`, which no line needs so early
from errno import ENOSYS, EOPNOTSUPP, EPERM

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
"""Audit names of the machines, as a seccomp filter sees them."""
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1)}
"""What `uname -m` says → the machine's audit name, and its column below."""
X32 = 0x40000000
"""Set in the numbers of x32 calls, which share the machine's audit name."""

NUMBERS: dict[str, tuple[int, int]] = {
    "execve": (59, 221), "execveat": (322, 281), "open": (2, -1), "openat": (257, 56), "openat2": (437, 437),
    "creat": (85, -1), "unlink": (87, -1), "unlinkat": (263, 35), "rename": (82, -1), "renameat": (264, 38),
    "renameat2": (316, 276), "mkdir": (83, -1), "mkdirat": (258, 34), "rmdir": (84, -1), "link": (86, -1),
    "linkat": (265, 37), "symlink": (88, -1), "symlinkat": (266, 36), "mknod": (133, -1), "mknodat": (259, 33),
    "truncate": (76, 45), "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1),
    "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469), "ioctl": (16, 29),
    "connect": (42, 203), "socket": (41, 198), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199),
    "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265),
    "process_vm_writev": (311, 271), "bpf": (321, 280), "perf_event_open": (298, 241), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "sethostname": (170, 161), "setdomainname": (171, 162), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "iopl": (172, -1), "ioperm": (173, -1),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "set_tid_address": (218, 96),
    "seccomp": (317, 277), "pidfd_getfd": (438, 438), "process_vm_readv": (310, 270),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    "capset": (126, 91), "prlimit64": (302, 261), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "shmat": (30, 196), "shmctl": (31, 195), "semop": (65, 193), "semtimedop": (220, 192),
    "semctl": (66, 191), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "add_key": (248, 217),
    "keyctl": (250, 219), "statx": (332, 291), "umask": (95, 166), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setgroups": (116, 159), "setresuid": (117, 147),
    "setresgid": (119, 149), "setfsuid": (122, 151), "setfsgid": (123, 152), "flock": (73, 32), "fcntl": (72, 25),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "statmount": (457, 457), "listmount": (458, 458),
    "ptrace": (101, 117), "arch_prctl": (158, -1), "fork": (57, -1), "vfork": (58, -1),
}  # fmt: skip
"""Each call's number on x86-64 and on aarch64; -1 where the machine does not have it."""


class Paths:
    """Where a call names what it changes: pairs of (descriptor, path) argument positions, -1 for none.

    `follow` says whether a link at the end is followed; where a `flags` argument decides that, its position is given.
    """

    def __init__(self, *pairs: tuple[int, int], follow: bool = False, flags: int = -1) -> None:
        self.pairs: tuple[tuple[int, int], ...] = pairs
        self.follow: bool = follow
        self.flags: int = flags


WRITES: dict[str, Paths] = {
    "open": Paths((-1, 0), follow=True), "creat": Paths((-1, 0), follow=True), "openat": Paths((0, 1), follow=True),
    "truncate": Paths((-1, 0), follow=True),
    "unlink": Paths((-1, 0)), "unlinkat": Paths((0, 1)), "rmdir": Paths((-1, 0)),
    "rename": Paths((-1, 0), (-1, 1)), "renameat": Paths((0, 1), (2, 3)), "renameat2": Paths((0, 1), (2, 3)),
    "link": Paths((-1, 0), (-1, 1)), "linkat": Paths((0, 1), (2, 3)),
    "symlink": Paths((-1, 1)), "symlinkat": Paths((1, 2)), "mkdir": Paths((-1, 0)), "mkdirat": Paths((0, 1)),
    "mknod": Paths((-1, 0)), "mknodat": Paths((0, 1)),
}  # fmt: skip
"""Calls that change what a folder or a file holds. Landlock keeps them inside; the supervisor makes them."""
OPENS = ("open", "openat", "creat")
"""Those of them that open a file."""

METADATA: dict[str, Paths] = {
    "chmod": Paths((-1, 0), follow=True), "fchmod": Paths((0, -1)), "fchmodat": Paths((0, 1), follow=True),
    "fchmodat2": Paths((0, 1), follow=True, flags=3), "chown": Paths((-1, 0), follow=True), "fchown": Paths((0, -1)),
    "lchown": Paths((-1, 0)), "fchownat": Paths((0, 1), follow=True, flags=4),
    "utime": Paths((-1, 0), follow=True), "utimes": Paths((-1, 0), follow=True),
    "futimesat": Paths((0, 1), follow=True), "utimensat": Paths((0, 1), follow=True, flags=3),
    "setxattr": Paths((-1, 0), follow=True), "lsetxattr": Paths((-1, 0)), "fsetxattr": Paths((0, -1)),
    "removexattr": Paths((-1, 0), follow=True), "lremovexattr": Paths((-1, 0)), "fremovexattr": Paths((0, -1)),
    "setxattrat": Paths((0, 1), follow=True, flags=2), "removexattrat": Paths((0, 1), follow=True, flags=2),
    "file_setattr": Paths((0, 1), follow=True, flags=4), "ioctl": Paths((0, -1)),
}  # fmt: skip
"""Calls that change a file's mode, owner, times or attributes. Landlock does not know these: the supervisor decides."""

MAY_LEAVE_OUT_PATH = ("utimensat", "futimesat", "setxattrat", "removexattrat", "file_setattr")
"""Calls that change what their descriptor leads to where no path is given."""

REFUSED: dict[str, str] = {
    **dict.fromkeys(("mount", "umount2", "pivot_root", "move_mount", "open_tree", "open_tree_attr", "fsopen",
                     "fsconfig", "fsmount", "fspick", "mount_setattr"), "changing mounts"),
    "chroot": "changing the root folder", "setns": "entering a namespace", "unshare": "making a namespace",
    "clone": "making a namespace", "open_by_handle_at": "opening a file by its handle",
    "process_vm_writev": "writing to another process's memory", "userfaultfd": "handling page faults",
    "bpf": "loading kernel programs", "perf_event_open": "watching the kernel",
    **dict.fromkeys(("kexec_load", "kexec_file_load", "reboot"), "restarting the machine"),
    **dict.fromkeys(("init_module", "finit_module", "delete_module"), "loading kernel modules"),
    **dict.fromkeys(("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "iopl", "ioperm"), "changing the system"),
    **dict.fromkeys(("settimeofday", "clock_settime"), "setting the clock"),
    **dict.fromkeys(("sethostname", "setdomainname"), "renaming the machine"),
    **dict.fromkeys(("add_key", "keyctl"), "changing a keyring"),
}  # fmt: skip
"""Calls that no line needs and that could undo a confinement or change the machine; each with what it would do."""

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2", "statmount",
          "listmount")  # fmt: skip
"""Calls that a filter cannot look into, or that tell what `/proc` keeps back; without them, programs use older ones."""
CREDENTIALS = ("umask", "setuid", "setgid", "setreuid", "setregid", "setgroups", "setresuid", "setresgid", "setfsuid",
               "setfsgid")  # fmt: skip
"""Calls after which a thread makes files with another mode or as another user."""

SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
"""Calls that reach other processes; Landlock holds them from version 6 on."""
SIGNAL_AT = {"tgkill": 2, "rt_tgsigqueueinfo": 2}
"""Where these have the signal; the others have it second."""

SCHEDULING = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""Calls that change a process, named by their first argument; 0 is the caller."""
OWNED_GROUPS = {"setpriority": 0, "ioprio_set": 1}
"""Calls that change a process, a group or all of a user's processes; the number that means a process."""
BY_USER = 2
"""What is added to that number to mean a user."""
NEW_LIMIT = 2
"""Where `prlimit64` has what it sets; without, it only reads."""

IPC = ("shmat", "shmctl", "semop", "semtimedop", "semctl", "msgsnd", "msgrcv", "msgctl")
"""Calls that reach System V memory, semaphores and queues."""
QUEUES = ("mq_open", "mq_unlink")
"""Calls that reach POSIX message queues: these have names that programs outside know, and no folder."""
IPC_CHANGES: dict[str, tuple[int, tuple[int, ...]]] = {
    "shmctl": (1, (0, 1, 11, 12)), "msgctl": (1, (0, 1)), "semctl": (2, (0, 1, 16, 17)),
}  # fmt: skip
"""Where these have their command, and the commands that change something."""
READ_ONLY_SEGMENT = 0x1000
KEY_CHANGES = (2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 19, 20, 21, 29, 30)
"""The commands of `keyctl` that change a key or a keyring."""
SENDS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""Calls that may name whom they send to, and where their flags are. What they could name is closed elsewhere: there are
no Unix datagrams, and no UDP where the network is limited."""
FAST_OPEN = 0x20000000
"""MSG_FASTOPEN: a connection made by sending."""

FORKS = ("clone", "fork", "vfork")
"""Calls that make a process, or a thread; `clone3` is absent."""
THREAD = 0x00010000
"""CLONE_THREAD: a thread of the caller's own process."""
STARTED: dict[str, tuple[str, tuple[int, ...]]] = {
    "x86_64": ("arch_prctl", (0x1002,)),
    "aarch64": ("set_tid_address", ()),
}
"""The first call of every program, before its own code runs, and what its first argument is: where it keeps what each
thread has of its own (ARCH_SET_FS). C libraries make it, and on x86-64 Go's runtime as well."""
ATTACHING = (16, 0x4206)
"""PTRACE_ATTACH and PTRACE_SEIZE; what traces a program from its start is seen when that starts."""
NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME: the flags that make a namespace."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into the terminal in the user's place."""
FILE_FLAGS = {
    0x40086602: 4, 0x40046602: 4, 0x401C5820: 28, 0x40087602: 4, 0x40047602: 4, 0x40086604: 4, 0x40046604: 4,
    0x800C6613: 12, 0x40806685: 128,
}  # fmt: skip
"""FS_IOC_SETFLAGS, FSSETXATTR, SETVERSION (each in its forms), SET_ENCRYPTION_POLICY and ENABLE_VERITY: what `chattr`
and its like do to a file that is open for reading; with how many bytes each is given."""
SUBVOLUMES = (0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x4008941A, 0xC0C09425, 0x5000943F)
"""What btrfs makes, takes away and changes in a folder that is open for reading; Landlock is not asked."""
O_WRITES = 0x1 | 0x2 | 0x40 | 0x200
"""O_WRONLY, O_RDWR, O_CREAT and O_TRUNC."""
O_CREATE, O_EXCLUSIVE = 0x40, 0xC0
OPEN_FLAGS = {"open": 1, "openat": 2}
"""Where the flags of the calls that open files are."""
MAKES = ("mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat")
"""Calls that fail where something is already."""
SET_OWNER = (8, 15, 0x8901, 0x8902)
"""F_SETOWN, F_SETOWN_EX of `fcntl`, FIOSETOWN and SIOCSPGRP of `ioctl`: whom a file's signals go to."""
TAKES_LOCK, SET_LEASE = 3, 1024
"""The operations of `flock` that take a lock, and the command of `fcntl` that asks to be told of others' opens."""
AT_FDCWD = -100
AT_NO_FOLLOW = 0x100
AT_REMOVE_FOLDER = 0x200
AT_EMPTY_PATH = 0x1000

# -- the filter ------------------------------------------------------------------------------------------------------

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


def _by_value(argument: int, *rows: tuple[Iterable[int], int]) -> list[Instruction]:
    """What happens where an argument is one of some values, row by row; with any other one the call passes."""
    tried = [each for values, action in rows for value in values for each in _if_equal(value, [_answer(action)])]
    return [_load_argument(argument), *tried, _answer(ALLOW)]


def _notify_unless_zero(argument: int) -> list[Instruction]:
    """Hand over where an argument is set, in either half."""
    high = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)
    return [_load_argument(argument), (_EQUAL, 0, 2, 0), high, (_EQUAL, 1, 0, 0), _answer(NOTIFY), _answer(ALLOW)]


def _if_equal(value: int, block: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(block), value), *block]


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
    found = {name: [_answer(NOTIFY)] for name in (*WRITES, *METADATA, *REFUSED)}
    found |= {name: [_answer(NOTIFY)] for name in ("execve", "execveat", "connect", "bind", *CREDENTIALS)}
    found |= {name: [_answer(ERRNO | ENOSYS)] for name in ABSENT}
    if not reads:
        found["open"] = _when_any_bit(1, O_WRITES, NOTIFY)
        found["openat"] = _when_any_bit(2, O_WRITES, NOTIFY)
    found["clone"] = _when_any_bit(0, NAMESPACES, NOTIFY)
    owners = () if scoped_signals else SET_OWNER  # a file that is watched sends signals, too, to whom it is told
    changes = (*FILE_FLAGS, *SUBVOLUMES)
    found["ioctl"] = _by_value(1, ((*TERMINAL_INPUT, *owners), ERRNO | EPERM), (changes, NOTIFY))
    found["fcntl"] = _by_value(1, ((SET_LEASE, *owners), ERRNO | EPERM))
    found["flock"] = _when_any_bit(1, TAKES_LOCK, NOTIFY)
    found["keyctl"] = _by_value(0, (KEY_CHANGES, NOTIFY))
    found |= {name: [_answer(NOTIFY)] for name in (*OWNED_GROUPS, *IPC, *QUEUES)}
    found |= {name: _notify_unless_zero(0) for name in SCHEDULING}
    found |= {name: _when_any_bit(at, FAST_OPEN, ERRNO | EOPNOTSUPP) for name, at in SENDS.items()}
    found["socket"] = _socket(network)
    found["socketpair"] = [_load_argument(0), *_if_equal(_UNIX, _streams()), _answer(NOTIFY)]
    if starts:
        name, values = STARTED[machine]
        found[name] = _by_value(0, (values, NOTIFY)) if values else [_answer(NOTIFY)]
        found["ptrace"] = _by_value(0, (ATTACHING, NOTIFY))
    if forks:
        thread = [(_SET, 0, 1, NAMESPACES), _answer(NOTIFY), (_SET, 0, 1, THREAD), _answer(ALLOW)]  # which passes
        found |= {name: [_answer(NOTIFY)] for name in FORKS}
        found["clone"] = [_load_argument(0), *thread, _answer(NOTIFY)]
    if network == "tcp":
        found["listen"] = [_answer(NOTIFY)]
    if not scoped_signals:
        found |= {name: [_answer(NOTIFY)] for name in SIGNALS}
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
        arch, column = MACHINES[machine]
        code: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _answer(KILL), (_LOAD, 0, 0, _NUMBER)]
        if arch == X86_64:
            code += [(_AT_LEAST, 0, 1, X32), _answer(ERRNO | ENOSYS)]
        rows = [(NUMBERS[name][column], block) for name, block in found.items()]
        code += _choice(sorted((row for row in rows if row[0] >= 0), key=lambda row: row[0]))
        _MADE[wanted] = b"".join(struct.pack("HBBI", *each) for each in code)
    return _MADE[wanted]


def _choice(rows: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Go to the block of a number, by halves: the kernel tries a new filter on every number there is."""
    if len(rows) <= _FEW:
        tried = [each for number, block in rows for each in ((_EQUAL, 0, len(block), number), *block)]
        return [*tried, _answer(ALLOW)]
    middle = len(rows) // 2
    lower, upper = _choice(rows[:middle]), _choice(rows[middle:])
    return [(_AT_LEAST, 0, 1, rows[middle][0]), (_JUMP, 0, 0, len(lower)), *lower, *upper]
