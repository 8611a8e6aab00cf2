"""The process that forks, and how a fork turns into a run."""

# mypy: ignore-errors
# It runs in any Python from 3.8 on, and may import next to nothing: no annotations, no pathlib, no contextlib.

import os
import sys

import _frozen_importlib_external as external
import _socket

CORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "core")


def load(name):
    """A module of Hookline's, without Hookline."""
    module = type(sys)("hookline_" + name)
    loader = external.SourceFileLoader(module.__name__, os.path.join(CORE, name + ".py"))
    exec(loader.get_code(module.__name__), vars(module))
    return module


template = load("template")


class Parent(template.Template):
    """Forks for every run of a script; a run is known by the eight bytes of its request."""

    def ended(self, pid, run, status):
        self.say(b"exited", b"%d" % int.from_bytes(run.data, "big"), b"%d" % status)

    def hello(self, before):
        """Say which files have made this interpreter what it is."""
        if sys.implementation.name != "cpython":
            os._exit(70)
        self.announce(depends_on(before))

    def become(self):
        """Turn into the run of the next request: its `go`, interpreter, path, words, and which word is the script."""
        try:
            name, fds = self.next_request(8, 5)
            os.setpgid(0, 0)
            self.say(b"started", b"%d" % int.from_bytes(name, "big"), b"%d" % os.getpid())
            self.note(template.TAKEN, name)
            self.requests.close()
            self.to_template.close()
            fields = template.read_file(fds[4]).split(b"\0")
            template.redirect(fds[:3])
            for fd in fds[:3]:
                os.close(fd)
            cwd, file, folder, before, count = fields[:5]
            after = 5 + int(count)
            show(fields[after])
            template.replace_environ(fields[after + 1 :])
            os.chdir(cwd)
            words = [os.fsdecode(word) for word in fields[5:after]]
            return fds[3], os.fsdecode(file), os.fsdecode(folder), words, int(before)
        except BaseException:
            os._exit(126)


def start(fd):
    return Parent(_socket.socket(fileno=fd))


def show(marker):
    """Make the marker this process's name, which its forks inherit: its environment still shows as its parent's."""
    try:
        with open("/proc/self/comm", "wb", buffering=0) as name:
            name.write(marker)
    except OSError:
        pass  # not Linux: then only the group and what it executes can be found


def depends_on(before):
    """The files and folders that made this interpreter what it is, the standard library's own files aside."""
    stdlib = os.path.dirname(os.__file__)
    paths = [sys.executable, os.path.join(os.path.dirname(sys.executable), "..", "pyvenv.cfg"), stdlib]
    paths += template.files_of([sys.modules.get(name) for name in before - {"__main__"}])
    for entry in sys.path[1:]:
        if os.path.isdir(entry) and not entry.endswith("lib-dynload"):
            paths.append(entry)
            paths.extend(os.path.join(entry, name) for name in os.listdir(entry) if name.endswith(".pth"))
    return list(dict.fromkeys(paths))
