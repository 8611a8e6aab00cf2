"""The process that forks, and how a fork turns into a run."""

# mypy: ignore-errors
# It runs in any Python from 3.8 on, and may import next to nothing: no annotations, no pathlib, no contextlib.

import os
import select
import sys

import _signal
import _socket
import _thread

MARKER = b"HOOKLINE_HOOK_ID"


class Parent:
    """The process that forks: always one ahead, so that a run finds its process waiting.

    The spare process reads the next request itself, says so to the parent, and the parent forks the next spare. The
    parent keeps nothing of a run but its id, and that until the run has ended.
    """

    def __init__(self, fd, rehearse, ready):
        self.rehearse, self.ready = rehearse, ready
        self.sock = _socket.socket(fileno=fd)
        os.set_inheritable(fd, False)
        self.wake_r, self.wake_w = pipe()
        self.taken_r, self.taken_w = pipe()
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        self.poll = select.poll()
        self.poll.register(fd, 0)  # only its end
        self.poll.register(self.wake_r, select.POLLIN)
        self.poll.register(self.taken_r, select.POLLIN)
        self.spare = 0
        self.lost = 0
        self.runs = {}
        self.shown = Shown()

    def say(self, *words):
        self.sock.sendall(b" ".join(words) + b"\n")

    def hello(self, before):
        if sys.implementation.name != "cpython" or _thread._count() or threads() > 1:
            os._exit(70)  # forking a process with threads is not safe
        watched = b"\0".join(os.fsencode(path) for path in depends_on(before))
        self.say(b"hello", b"%d" % os.getpid(), b"%d" % len(watched))
        self.sock.sendall(watched)

    def wait_for_run(self):
        """Fork for every run. Returns in the forks only; the end of the conversation ends the process."""
        while True:
            if not self.spare:
                self.spare = os.fork()
                if not self.spare:
                    return self.become()
            for fd, _ in self.poll.poll():
                if fd == self.taken_r:
                    self.took()
                elif fd == self.wake_r:
                    self.reap()
                else:
                    os._exit(0)

    def took(self):
        """The spare has taken a request and is a run now."""
        for name in drain(self.taken_r).split():
            self.runs[self.spare] = name
            self.spare = self.lost = 0

    def reap(self):
        drain(self.wake_r)
        while self.spare or self.runs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if pid == self.spare:
                self.took()  # it may have told us in its last moment
            if pid == self.spare:
                self.spare, self.lost = 0, self.lost + 1
                if self.lost > 3:
                    os._exit(71)
            name = self.runs.pop(pid, None)
            if name is not None:
                self.say(b"exited", name, b"%d" % status)

    # ---- in the fork

    def become(self):
        """Wait as the spare, then turn into a run: its `go`, interpreter, path, words, and which word is the script."""
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            for fd in (self.wake_r, self.wake_w, self.taken_r):
                os.close(fd)
            if not self.asked():
                self.rehearse()
            self.ready()
            fields, fds = self.receive()
            os.setpgid(0, 0)
            self.say(b"started", fields[0], b"%d" % os.getpid())
            os.write(self.taken_w, fields[0] + b"\n")
            os.close(self.taken_w)
            self.sock.close()
            for target in (0, 1, 2):
                os.dup2(fds[target], target)
                os.close(fds[target])
            _, cwd, file, folder, before, count = fields[:6]
            after = 6 + int(count)
            self.shown.write(wear(fields[after:]))
            os.chdir(cwd)
            words = [os.fsdecode(word) for word in fields[6:after]]
            return fds[3], os.fsdecode(file), os.fsdecode(folder), words, int(before)
        except BaseException:
            os._exit(126)

    def asked(self):
        """Whether a request is there already."""
        poll = select.poll()
        poll.register(self.sock.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def receive(self):
        """The next request: its fields and its descriptors."""
        data, ancillary, _, _ = self.sock.recvmsg(8, _socket.CMSG_SPACE(16))
        fds = [
            int.from_bytes(payload[i : i + 4], sys.byteorder)
            for level, kind, payload in ancillary
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS
            for i in range(0, len(payload) - len(payload) % 4, 4)
        ]
        data += self.exactly(8 - len(data))
        return self.exactly(int.from_bytes(data, "big")).split(b"\0"), fds

    def exactly(self, size):
        chunks = []
        while size:
            chunk = self.sock.recv(min(size, 1 << 20))
            if not chunk:
                os._exit(0)  # the conversation has ended
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)


def pipe():
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    return ends


def drain(fd):
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


class Shown:
    """Where the system shows our marker (`/proc/PID/environ`): a run writes its own there, so its forks are found."""

    def __init__(self):
        self.length, self.address = 0, 0
        try:
            with open("/proc/self/environ", "rb") as file:
                entries = b"\0" + file.read()
            with open("/proc/self/stat", "rb") as file:
                start = int(file.read().rpartition(b")")[2].split()[47])
        except (OSError, ValueError, IndexError):
            return  # not Linux, or not allowed: then only the group and what it executes can be found
        _, found, after = entries.partition(b"\0" + MARKER + b"=")
        if found and start:
            self.length = len(after.partition(b"\0")[0])
            self.address = start + len(entries) - len(after) - 1

    def write(self, marker):
        if not self.address or marker is None or len(marker) != self.length:
            return
        try:
            memory = os.open("/proc/self/mem", os.O_WRONLY)
            os.pwrite(memory, marker, self.address)
            os.close(memory)
        except OSError:
            pass


def wear(entries):
    """Replace the environment, in order; keep the locale that Python itself put there (PEP 538)."""
    new = dict(entry.split(b"=", 1) for entry in entries)
    old = os.environ._data
    if b"LC_CTYPE" in old and b"LC_CTYPE" not in new:
        new[b"LC_CTYPE"] = old[b"LC_CTYPE"]
    for key in old.keys() - new.keys():
        os.unsetenv(key)
    for key, value in new.items():
        if old.get(key) != value:
            os.putenv(key, value)
    old.clear()
    old.update(new)
    return new.get(MARKER)


def threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def depends_on(before):
    """The files and folders that made this interpreter what it is, the standard library's own files aside."""
    stdlib = os.path.dirname(os.__file__)
    paths = [sys.executable, os.path.join(os.path.dirname(sys.executable), "..", "pyvenv.cfg"), stdlib]
    for name in before - {"__main__"}:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and not (file.startswith(stdlib + os.sep) and "-packages" not in file[len(stdlib) :]):
            paths.append(file)
    for entry in sys.path[1:]:
        if os.path.isdir(entry) and not entry.endswith("lib-dynload"):
            paths.append(entry)
            paths.extend(os.path.join(entry, name) for name in os.listdir(entry) if name.endswith(".pth"))
    return list(dict.fromkeys(paths))
