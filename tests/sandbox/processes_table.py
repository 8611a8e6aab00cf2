"""Ways to reach a program that runs outside: each line is tried beside a watcher, which leaves a file when it is touched.

The watcher is started before the line, by the test, unconfined. Its pid is in `$OUT/pid`.
"""

from __future__ import annotations

from pathlib import Path

WATCHER = Path(__file__).with_name("watcher.py")
SETUP = f"""
find /dev/shm -mindepth 1 -delete
setsid python3 {WATCHER} > /dev/null 2> /tmp/arena/error < /dev/null &
until [ -e $OUT/ready ]; do sleep 0.02; done
"""

_P = "P=$(cat $OUT/pid); "
_C = "python3 -c 'import ctypes, os, sys; l = ctypes.CDLL(None); p = int(sys.argv[1]); {}' $(cat $OUT/pid)"

_SWAPPED = """python3 -c '
import ctypes, os, socket, threading
libc = ctypes.CDLL(None)
own = socket.socket(1); own.bind("own-socket"); own.listen(4096)
good, bad = (b"\\1\\0" + name.encode() + b"\\0" for name in ("own-socket", os.environ["OUT"] + "/streams"))
memory, stop = ctypes.create_string_buffer(good, 110), []
def swap():
    while not stop: ctypes.memmove(memory, bad, len(bad)); ctypes.memmove(memory, good, len(good))
thread = threading.Thread(target=swap); thread.start()
for _ in range(1000):
    s = socket.socket(1); s.setblocking(False); libc.connect(s.fileno(), memory, 110)
stop.append(1)'
"""
"""The address of a connection is another one whenever it is read again."""

LINES = [
    _P + "kill -STOP $P",
    _P + "kill -9 $P",
    _P + "kill -USR1 $P",
    _P + "prlimit --pid $P --nofile=20",
    _P + "prlimit --pid $P --cpu=0",
    _P + "prlimit -p $P --core=0",
    _P + "renice 5 -p $P",
    _P + "renice 5 -u $(id -u)",
    _P + "renice 5 -g $(ps -o pgid= $P)",
    _P + "taskset -p 1 $P",
    _P + "chrt -b -p 0 $P",
    _P + "ionice -c 3 -p $P",
    _P + "choom -p $P -n 500",
    _P + "echo x > /proc/$P/comm",
    _P + "echo 500 > /proc/$P/oom_score_adj",
    _P + "gdb -batch -p $P -ex 'call (int)getpid()'",
    _P + "strace -p $P -o /dev/null & sleep 0.5; kill %1",
    "python3 -c 'import os, sys; p, a = map(int, sys.argv[1:]); f = os.open(f\"/proc/{p}/mem\", os.O_RDWR); os.pwrite(f, b\"changed!!\", a)' $(cat $OUT/pid) $(cat $OUT/address)",
    "python3 -c 'import ctypes, os, sys; p, a = map(int, sys.argv[1:]); b = ctypes.create_string_buffer(b\"changed!!\"); I = ctypes.c_uint64 * 2; ctypes.CDLL(None).process_vm_writev(p, I(ctypes.addressof(b), 9), 1, I(a, 9), 1, 0)' $(cat $OUT/pid) $(cat $OUT/address)",
    "python3 -c 'import ctypes, os, sys; p, a = map(int, sys.argv[1:]); l = ctypes.CDLL(None); l.ptrace.argtypes = [ctypes.c_long] * 4; l.ptrace(16, p, 0, 0); os.waitpid(p, 0x40000000); l.ptrace(4, p, a, 1)' $(cat $OUT/pid) $(cat $OUT/address)",
    _C.format("l.ptrace(16, p, 0, 0); import time; time.sleep(0.3)"),
    _C.format("l.syscall(302, p, 7, (ctypes.c_uint64 * 2)(9, 9), None)"),
    _C.format("l.syscall(203, p, 8, (ctypes.c_uint64 * 1)(1))"),
    _C.format("l.syscall(144, p, 3, (ctypes.c_int * 1)(0))"),
    _C.format("l.syscall(314, p, (ctypes.c_uint32 * 12)(48, 3, 0, 0, 7), 0)"),
    _C.format("l.syscall(141, 0, p, 9)"),
    _C.format("l.syscall(251, 1, p, 3 << 13)"),
    _C.format("l.syscall(424, os.pidfd_open(p), 9, None, 0)"),
    _C.format("l.syscall(129, p, 10, ctypes.create_string_buffer(128))"),
    _C.format("l.syscall(234, p, p, 9)"),
    _C.format("l.syscall(200, p, 9)"),
    _C.format("f = os.open(\"notes.txt\", 0); import fcntl; fcntl.fcntl(f, 8, p); fcntl.fcntl(f, 10, 9); import socket; a, b = socket.socketpair(); fcntl.fcntl(a, 8, p); fcntl.fcntl(a, 10, 9); fcntl.fcntl(a, 4, 0o20000); b.send(b\"x\"); import time; time.sleep(0.2)"),
    _C.format("l.syscall(438, os.pidfd_open(p), 3, 0)") + "; python3 -c 'import os, ctypes, sys; p = int(sys.argv[1]); [os.write(f, b\"x\") for n in range(30) if (f := ctypes.CDLL(None).syscall(438, os.pidfd_open(p), n, 0)) >= 0]' $(cat $OUT/pid)",
    _P + "for f in /proc/$P/fd/*; do echo x > $f; done",
    _P + "cd /proc/$P/cwd && touch new",
    _P + "touch /proc/$P/root/tmp/arena/outside/new",
    _P + "chmod 700 /proc/$P/cwd/../../outside/file",
    _P + "nsenter -t $P -a touch $OUT/new",
    "echo x > $(cat $OUT/terminal)",
    "echo x | tee $(cat $OUT/terminal)",
    "printf 'echo x' | write root $(cat $OUT/terminal); echo x >> $(cat $OUT/terminal)",
    "python3 -c 'import fcntl, sys; f = open(sys.argv[1], \"rb\"); [fcntl.ioctl(f, 0x5412, bytes([c])) for c in b\"ls\\n\"]' $(cat $OUT/terminal)",
    "exec 9<> $(cat $OUT/terminal); echo x >&9",
    "script -qc true $(cat $OUT/terminal)",
    "ln -s $(cat $OUT/terminal) t; echo x > t",
    "echo x > /dev/shm/watched",
    "rm /dev/shm/watched",
    "mv /dev/shm/watched /dev/shm/other",
    "truncate -s 0 /dev/shm/watched",
    "ln -s /dev/shm s; echo x > s/watched",
    "cp notes.txt /dev/shm/watched",
    "mv notes.txt /dev/shm/watched",
    "python3 -c 'from multiprocessing.shared_memory import SharedMemory as S; s = S(\"watched\"); s.buf[0] = 0; s.unlink()'",
    "python3 -c 'import os, mmap; m = mmap.mmap(os.open(\"/dev/shm/watched\", os.O_RDWR), 4); m[0] = 0'",
    "ipcrm -M 0x4711",
    "ipcrm -S 0x4711",
    "ipcrm -Q 0x4711",
    "ipcrm -a",
    "python3 -c 'import ctypes; ctypes.CDLL(None).mq_unlink(b\"/watched\")'",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.mq_send(l.mq_open(b\"/watched\", 1), b\"x\", 1, 0)'",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.mq_receive(l.mq_open(b\"/watched\", 0), ctypes.create_string_buffer(9999), 9999, None)'",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p; ctypes.memmove(l.shmat(l.shmget(0x4711, 0, 0), None, 0), b\"gone\", 4)'",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.semctl(l.semget(0x4711, 0, 0), 0, 16, 7)'",
    "python3 -c 'import ctypes; l = ctypes.CDLL(None); l.semop(l.semget(0x4711, 0, 0), (ctypes.c_short * 3)(0, 5, 0), 1)'",
    "python3 -c 'import ctypes, os; l = ctypes.CDLL(None); l.syscall(248, b\"user\", b\"watched\", b\"gone\", 4, -4); l.syscall(250, 3, int(open(os.environ[\"OUT\"] + \"/key\").read()))'",
    "python3 -c 'import ctypes, os; l = ctypes.CDLL(None); l.syscall(250, 9, int(open(os.environ[\"OUT\"] + \"/key\").read()), -4)'",
    "python3 -c 'import ctypes, os; l = ctypes.CDLL(None); l.syscall(250, 7, -4)'",
    "python3 -c 'import ctypes, os; l = ctypes.CDLL(None); l.syscall(250, 21, int(open(os.environ[\"OUT\"] + \"/key\").read()))'",
    "python3 -c 'import socket, os; socket.socket(1, 2).sendto(b\"x\", os.environ[\"OUT\"] + \"/packets\")'",
    "python3 -c 'import socket, os; s = socket.socket(1, 2); s.connect(os.environ[\"OUT\"] + \"/packets\"); s.send(b\"x\")'",
    "python3 -c 'import socket, os; socket.socket(1, 2).sendmsg([b\"x\"], [], 0, os.environ[\"OUT\"] + \"/packets\")'",
    "python3 -c 'import socket, os; socket.socketpair(1, 2)[0].sendmsg([b\"x\"], [], 0, os.environ[\"OUT\"] + \"/packets\")'",
    "cd $OUT && python3 -c 'import socket; socket.socket(1, 2).sendto(b\"x\", \"packets\")'",
    "logger -u $OUT/packets -d x",
    "python3 -c 'import socket, os; socket.socket(1).connect(os.environ[\"OUT\"] + \"/streams\")'",
    "ln -s $OUT/streams own; python3 -c 'import socket; socket.socket(1).connect(\"own\")'",
    "ln $OUT/streams own; python3 -c 'import socket; socket.socket(1).connect(\"own\")'",
    "curl -m 1 --unix-socket $OUT/streams http://x/",
    "DOCKER_HOST=unix://$OUT/streams timeout 3 docker ps",
    "DBUS_SESSION_BUS_ADDRESS=unix:path=$OUT/streams timeout 3 dbus-send --print-reply --dest=a.b /a a.b.C; curl -m 1 --unix-socket $OUT/streams http://x/",
    "tmux -S $PROJECT/tmux-0/default kill-server",
    "tmux -S $OUT/streams new -d 'touch $OUT/new'",
    "git -c core.sshCommand=\"ssh -S $OUT/streams\" ls-remote ssh://x/y; ssh -S $OUT/streams -O check x",
    "SSH_AUTH_SOCK=$OUT/streams ssh-add -D",
    "exec 9<> /dev/tcp/127.0.0.1/22; python3 -c 'import socket, os; socket.socket(1).connect(os.environ[\"OUT\"] + \"/streams\")'",
    "node -e 'require(\"net\").connect(process.env.OUT + \"/streams\")'",
    "mv tmux-0 t; python3 -c 'import socket; socket.socket(1).connect(\"t/default\")'",
    "python3 -c 'import socket, os; s = socket.socket(1); s.bind(\"a\"); s.listen(); os.rename(\"tmux-0/default\", \"a\"); socket.socket(1).connect(\"a\")'",
    "python3 -c 'import socket, os; s = socket.socket(1); s.bind(\"a\"); s.listen(); os.unlink(\"a\"); os.link(os.environ[\"OUT\"] + \"/streams\", \"a\"); socket.socket(1).connect(\"a\")'",
    "python3 -c 'import socket, os; socket.socketpair(1, 3)[0].sendto(b\"x\", os.environ[\"OUT\"] + \"/packets\")'",
    "python3 -c 'import socket, os; s = socket.socket(1); s.setblocking(False); s.connect(\"/proc/self/root\" + os.environ[\"OUT\"] + \"/streams\")'",
    _SWAPPED,
    "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(\"$ENV{OUT}/streams\"))'",
]  # fmt: skip
"""Each has an effect on the watcher when it runs bare."""


def lines() -> list[str]:
    """Every line, with a moment for the watcher to see what it did."""
    return [f"{line}; sleep 0.1" for line in LINES]
