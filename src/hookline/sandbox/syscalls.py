"""The system calls that confinement looks at: their numbers per machine, and what each of them touches.

Tables only. A call that is in none of them passes untouched.
"""

from __future__ import annotations

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
    "seccomp": (317, 277), "pidfd_getfd": (438, 438), "process_vm_readv": (310, 270), "pidfd_open": (434, 434),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
    "capset": (126, 91), "prlimit64": (302, 261), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "shmat": (30, 196), "shmctl": (31, 195), "semop": (65, 193), "semtimedop": (220, 192),
    "semctl": (66, 191), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "add_key": (248, 217),
    "keyctl": (250, 219), "statx": (332, 291), "umask": (95, 166), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setgroups": (116, 159), "setresuid": (117, 147),
    "setresgid": (119, 149), "setfsuid": (122, 151), "setfsgid": (123, 152), "flock": (73, 32), "fcntl": (72, 25),
    "ptrace": (101, 117), "arch_prctl": (158, -1), "fork": (57, -1), "vfork": (58, -1),
}  # fmt: skip
"""Each call's number on x86-64 and on aarch64; -1 where the machine does not have it."""


class Paths:
    """Where a call names what it changes: pairs of (descriptor, path) argument positions, -1 for none.

    `follow` says whether a link at the end is followed; where a `flags` argument decides that, its position is given.
    """

    __slots__ = ("flags", "follow", "pairs")

    flags: int
    follow: bool
    pairs: tuple[tuple[int, int], ...]

    def __init__(self, *pairs: tuple[int, int], follow: bool = False, flags: int = -1) -> None:
        self.pairs, self.follow, self.flags = pairs, follow, flags


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

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2")
"""Calls that a filter cannot look into; programs that meet ENOSYS use the older ones."""
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
