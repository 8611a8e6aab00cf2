"""Run a command where no namespace can be made, as with Docker's usual profile: `no_namespaces.py CMD…`."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
UNSHARE = {"x86_64": 272, "aarch64": 97}[platform.machine()]
SECCOMP = {"x86_64": 317, "aarch64": 277}[platform.machine()]
CODE = [(0x20, 0, 0, 0), (0x15, 0, 1, UNSHARE), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in CODE))
libc.prctl(38, 1, 0, 0, 0)
if libc.syscall(SECCOMP, 1, 0, ctypes.byref(Program(len(CODE), ctypes.addressof(memory)))) != 0:
    sys.exit("no filter can be installed")
os.execvp(sys.argv[1], sys.argv[1:])
