"""Ways to change a file outside by calling the kernel directly: every call of its kind, odd descriptors, and races.

Each is a Python program that has `out`, the folder outside, `call` (a system call by number), `fd` (a file outside, open
for reading), `handle` (the same, opened with O_PATH) and `folder` (the folder outside).
"""

from __future__ import annotations

import shlex

_START = """
import ctypes, fcntl, mmap, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
out = os.environ["OUT"]
path = (out + "/file").encode()
def call(number, *words):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
fd, handle = os.open(path, os.O_RDONLY), os.open(path, os.O_PATH)
folder = os.open(out, os.O_RDONLY)
times = (ctypes.c_long * 4)(1, 0, 1, 0)
old = (ctypes.c_long * 2)(1, 1)
"""

CALLS = [
    "call(90, path, 0)",
    "call(91, fd, 0)",
    "call(91, handle, 0); os.chmod(f'/proc/self/fd/{handle}', 0)",
    "call(268, -100, path, 0)",
    "call(268, folder, b'file', 0)",
    "call(452, -100, path, 0, 0)",
    "call(452, folder, b'file', 0, 0)",
    "call(452, fd, b'', 0, 0x1000)",
    "call(452, handle, b'', 0, 0x1000)",
    "os.chdir(out); call(452, -100, b'file', 0, 0)",
    "os.chdir(out); call(452, -100, b'', 0o700, 0x1000)",
    "call(92, path, 0, 0); call(90, path, 0o600)",
    "call(93, fd, 0, 0); call(91, fd, 0o600)",
    "call(260, handle, b'', 0, 0, 0x1000); call(452, handle, b'', 0o604, 0x1000)",
    "call(132, path, old)",
    "call(132, path, None)",
    "call(235, path, times)",
    "call(261, -100, path, times)",
    "call(261, folder, b'file', times)",
    "call(261, fd, None, times)",
    "call(280, -100, path, times, 0)",
    "call(280, folder, b'file', times, 0)",
    "call(280, fd, None, times, 0)",
    "call(280, handle, b'', times, 0x1000)",
    "call(280, fd, b'', times, 0x1000)",
    "call(280, fd, None, None, 0)",
    "os.symlink(path, 'l'); call(280, -100, b'l', times, 0)",
    "os.symlink('l2', 'l'); os.symlink(path, 'l2'); call(452, -100, b'l', 0, 0)",
    "os.symlink(out, 'l'); call(452, -100, b'l/file', 0, 0x100); call(90, b'l/file', 0)",
    "os.symlink(out, 'l'); call(452, os.open('l', os.O_PATH), b'file', 0, 0)",
    "os.symlink(out, 'l'); call(90, b'l/', 0o700)",
    "os.symlink(out, 'l'); call(90, b'l/.', 0o700)",
    "os.symlink(out, 'l'); call(90, b'./l//../outside', 0o700)",
    "call(188, path, b'user.x', b'1', 1, 0)",
    "call(189, path, b'user.x', b'1', 1, 0)",
    "call(190, fd, b'user.x', b'1', 1, 0)",
    "call(463, -100, path, 0, b'user.x', (ctypes.c_uint64 * 2)(ctypes.addressof(times), 8), 16)",
    "call(463, fd, b'', 0x1000, b'user.x', (ctypes.c_uint64 * 2)(ctypes.addressof(times), 8), 16)",
    "call(463, handle, b'', 0x1000, b'user.x', (ctypes.c_uint64 * 2)(ctypes.addressof(times), 8), 16)",
    "fcntl.ioctl(fd, 0x40086602, struct.pack('l', 0x80)); call(91, fd, 0)",
    "fcntl.ioctl(fd, 0x40046602, struct.pack('l', 0x80)); call(91, fd, 0)",
    "fcntl.ioctl(fd, 0x401C5820, struct.pack('IIIII8x', 0x40, 0, 0, 0, 0)); call(91, fd, 0)",
    "call(91, os.dup2(fd, 900), 0)",
    "call(91, fcntl.fcntl(fd, 1030, 500), 0)",
    "call(90, b'/proc/self/fd/%d' % fd, 0)",
    "call(90, b'/proc/thread-self/fd/%d' % handle, 0)",
    "call(90, b'/proc/%d/fd/%d' % (os.getpid(), fd), 0)",
    "call(90, b'/proc/%d/task/%d/fd/%d' % (os.getpid(), os.getpid(), fd), 0)",
    "call(90, b'/dev/fd/%d' % fd, 0)",
    "call(90, b'/proc/self/cwd/../../outside/file', 0)",
    "call(90, b'/proc/self/root' + path, 0)",
    "call(90, b'/proc/self/map_files/' + next(n.encode() for n in os.listdir('/proc/self/map_files') for m in [mmap.mmap(fd, 0, prot=1)] if os.readlink('/proc/self/map_files/' + n) == path.decode()), 0) or call(91, fd, 0)",
    "m = mmap.mmap(fd, 0, prot=1); [call(90, ('/proc/self/map_files/' + n).encode(), 0) for n in os.listdir('/proc/self/map_files') if os.readlink('/proc/self/map_files/' + n) == path.decode()]",
    "p = os.fork() or time.sleep(3) or os._exit(0); call(90, b'/proc/%d/fd/%d' % (p, fd), 0); os.kill(p, 9)",
    "p = os.fork()\nif not p: os.chdir(out); time.sleep(3); os._exit(0)\ntime.sleep(0.3); call(90, b'/proc/%d/cwd/file' % p, 0); os.kill(p, 9)",
    "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [fd]); call(91, socket.recv_fds(b, 1, 1)[1][0], 0)",
    "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [folder]); call(268, socket.recv_fds(b, 1, 1)[1][0], b'file', 0)",
    "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [folder]); call(257, socket.recv_fds(b, 1, 1)[1][0], b'new', os.O_CREAT | os.O_WRONLY, 0o600)",
    "threading.Thread(target=call, args=(90, path, 0)).start()",
    "threading.Thread(target=lambda: (os.chdir(out), call(90, b'file', 0))).start()",
    "os.fchdir(folder); call(90, b'./file', 0)",
    "os.fchdir(folder); call(85, b'new', 0o600)",
    "call(85, path[:-4] + b'new', 0o600)",
    "call(2, path[:-4] + b'new', 0o101, 0o600)",
    "call(437, -100, path[:-4] + b'new', struct.pack('QQQ', 0o101, 0o600, 0), 24)",
    "call(437, folder, b'new', struct.pack('QQQ', 0o101, 0o600, 8), 24)",
    "call(437, folder, b'file', struct.pack('QQQ', 0o1001, 0, 0), 24)",
    "call(76, path, 0)",
    "call(77, os.open(path, os.O_RDWR), 0)",
    "call(285, os.open(path, os.O_RDWR), 0, 0, 9999)",
    "call(82, path, path + b'2')",
    "call(264, folder, b'file', folder, b'file2')",
    "call(316, folder, b'file', -100, b'notes.txt', 2)",
    "call(316, -100, b'notes.txt', folder, b'file', 0)",
    "call(86, path, b'own') or open('own', 'a').write('x')",
    "call(265, fd, b'', -100, b'own', 0x1000) or open('own', 'a').write('x')",
    "call(265, -100, b'/proc/self/fd/%d' % fd, -100, b'own', 0x400) or open('own', 'a').write('x')",
    "call(265, -100, b'notes.txt', folder, b'new', 0)",
    "call(87, path)",
    "call(263, folder, b'file', 0)",
    "call(263, folder, b'folder/file', 0) or call(263, folder, b'folder', 0x200)",
    "call(84, path[:-4] + b'folder/none') or call(83, path[:-4] + b'new', 0o700)",
    "call(258, folder, b'new', 0o700)",
    "call(88, b'x', path[:-4] + b'new')",
    "call(266, b'x', folder, b'new')",
    "call(133, path[:-4] + b'new', 0o100600, 0)",
    "call(259, folder, b'new', 0o10600, 0)",
    "n = os.open('.', os.O_TMPFILE | os.O_RDWR); call(265, n, b'', folder, b'new', 0x1000) and os.link(f'/proc/self/fd/{n}', out + '/new')",
    "s = socket.socket(socket.AF_UNIX); os.chdir(out); s.bind('new')",
    "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind('/proc/self/fd/%d/new' % folder)",
    "p = os.posix_spawn('/usr/bin/touch', ['touch', out + '/new'], os.environ); os.waitpid(p, 0)",
    "p = os.posix_spawn('/bin/echo', ['echo'], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, out + '/new', os.O_CREAT | os.O_WRONLY, 0o600)]); os.waitpid(p, 0)",
    "m = os.memfd_create('x'); os.write(m, open('/usr/bin/touch', 'rb').read()); os.execve(m, ['touch', out + '/new'], os.environ)",
    "m = os.memfd_create('x'); os.write(m, b'#!/bin/sh\\ntouch $OUT/new\\n'); os.execve(f'/proc/self/fd/{m}', ['x'], os.environ)",
    "e = os.open('/usr/bin/touch', os.O_PATH); call(322, e, b'', (ctypes.c_char_p * 3)(b'touch', path[:-4] + b'new'), (ctypes.c_char_p * 1)(), 0x1000)",
    "libc.vfork() or libc.execl(b'/usr/bin/touch', b'touch', path[:-4] + b'new', None); os.wait()",
    "call(0x40000000 | 90, path, 0); os.chmod(path, 0)",
    "call(425, 8, 0); os.chmod(path, 0)",
    "call(272, 0x10000000); call(165, path[:-5], b'victim', None, 4096, None); open('victim/new', 'w')",
    "call(56, 0x10000000 | 17, 0, 0, 0, 0) or (call(165, path[:-5], b'victim', None, 4096, None), open(out + '/new', 'w'))",
    "call(161, path[:-5]); open('/new', 'w')",
    "call(428, -100, path[:-5], 1); open(out + '/new', 'w')",
    "h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128)); i = ctypes.c_int(); call(303, -100, path, h, ctypes.byref(i), 0); f = call(304, folder, h, os.O_RDWR); os.write(f, b'x') if f >= 0 else open(path, 'a').write('x')",
    "os.setuid(65534); os.chmod(path, 0)",
    "os.seteuid(65534); os.seteuid(0); os.chmod(path, 0)",
    "libc.prctl(38, 0, 0, 0, 0); libc.prctl(22, 0); os.chmod(path, 0)",
    "libc.prctl(4, 0, 0, 0, 0); os.chmod(path, 0)",
    "libc.prctl(4, 0, 0, 0, 0); open(out + '/new', 'w')",
    "libc.prctl(36, 1, 0, 0, 0); os.fork() or (os.setsid(), os.fork() or os.chmod(path, 0), os._exit(0)); time.sleep(0.3)",
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); os.chmod(path, 0)",
    "import signal; signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001); signal.signal(14, lambda *a: None); os.chmod(path, 0)",
    "[os.open('/dev/null', 0) for _ in range(900)]; os.chmod(path, 0)",
    "os.chmod(b'/' * 4000 + path[1:], 0)",
    "os.chmod(b'/.' * 1900 + path, 0)",
    "page = mmap.mmap(-1, 8192); at = ctypes.addressof(ctypes.c_char.from_buffer(page)); page[4096 - 9 : 4096 - 9 + len(path) + 1] = path + b'\\0'; call(90, at + 4096 - 9, 0)",
]  # fmt: skip
"""Each changes something outside when it runs bare."""

_RACE = """
os.mkdir('d'); open('d/file', 'w').close()
def swap():
    while True:
        for target in ('d', out):
            os.symlink(target, 'next'); os.rename('next', 'l')
os.symlink('d', 'l')
threading.Thread(target=swap, daemon=True).start()
for _ in range(3000):
    try: {deed}
    except OSError: pass
"""
_WORDS = """
buffer = ctypes.create_string_buffer(b'notes.txt', 200)
def swap():
    while True:
        buffer.value = path; buffer.value = b'notes.txt'
threading.Thread(target=swap, daemon=True).start()
for _ in range(1000): {deed}
"""
_DESCRIPTORS = """
own, spare = os.open('notes.txt', 0), 700
def swap():
    while True: os.dup2(own, spare); os.dup2(fd, spare)
os.dup2(own, spare)
threading.Thread(target=swap, daemon=True).start()
for _ in range(3000): {deed}
"""
RACES = [
    _RACE.format(deed="os.chmod('l/file', 0o777)"),
    _RACE.format(deed="os.utime('l/file', (1, 1))"),
    _RACE.format(deed="os.chmod('file', 0o777, dir_fd=os.open('l', os.O_PATH))"),
    _RACE.format(deed="os.setxattr('l/file', 'user.x', b'1')"),
    _RACE.format(deed="open('l/new', 'w').close()"),
    _RACE.format(deed="os.unlink('l/file') or open('d/file', 'w').close()"),
    _WORDS.format(deed="call(90, buffer, 0o777)"),
    _WORDS.format(deed="call(452, -100, buffer, 0o777, 0)"),
    _WORDS.format(deed="call(280, -100, buffer, times, 0)"),
    _WORDS.format(deed="call(188, buffer, b'user.x', b'1', 1, 0)"),
    _WORDS.format(deed="call(76, buffer, 1)"),
    _DESCRIPTORS.format(deed="call(91, spare, 0o777)"),
    _DESCRIPTORS.format(deed="call(280, spare, None, times, 0)"),
    _DESCRIPTORS.format(deed="call(190, spare, b'user.x', b'1', 1, 0)"),
    _DESCRIPTORS.format(deed="call(16, spare, 0x40086602, (ctypes.c_long * 1)(0x80))"),
]
"""Threads that swap a link, a path or a descriptor while a call is being judged.

With a supervisor that judged a call and left it to the kernel, a path was won within 300 tries and a descriptor within
2,600.
"""


def lines(programs: list[str]) -> list[str]:
    """The programs as lines for bash."""
    return [f"python3 -c {shlex.quote(_START + program)}" for program in programs]
