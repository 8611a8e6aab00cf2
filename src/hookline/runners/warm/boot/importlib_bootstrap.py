"""The warm interpreter: a Python that has started up and waits, forking once for every run of a script.

It is run by the interpreter that a hook names, so its state is what that interpreter's start-up makes it. A fork puts on
the run's descriptors, directory, environment and arguments, makes a fresh `__main__`, runs the script, and ends as Python
ends: exit functions, threads, flushing, finalisers. Whatever it cannot do exactly (a script that does not compile, a
folder, an archive) it leaves to the interpreter proper, by `execv`, before anything has happened.

Nothing but the standard library, Python 3.8 on. What is imported here is taken out of `sys.modules` again. The file's name
is chosen so that `warnings` do not count our frame, the one beneath the script's.

Talk, over a socket pair: we say `hello PID` with the files that our state depends on; a request is a length, then fields
joined by NUL, with four descriptors (stdin, stdout, stderr, go); the answers are `started ID PID` and `exited ID STATUS`.
A run waits for one byte on `go`; if it is closed instead, nobody wants the run any more. At its very end a run says its
exit code there, for the system takes a while to clear a process away.
"""

import sys

BEFORE = set(sys.modules)

import atexit  # noqa: E402
import builtins  # noqa: E402
import gc  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402

import _frozen_importlib_external as external  # noqa: E402
import _signal  # noqa: E402
import _socket  # noqa: E402
import _thread  # noqa: E402
import _weakref  # noqa: E402

MARKER = b"HOOKLINE_HOOK_ID"
REPORT = 250
REPORTER = []

# Modules whose import is most of a small script's time: imported ahead, then hidden until the script imports them.
# None of them does more on import than define things (`logging` notes the time, `random` is seeded: they are not here).
AHEAD = (
    "json re pathlib subprocess datetime shlex typing dataclasses argparse fnmatch functools collections "
    "contextlib enum string textwrap glob base64 urllib.parse operator"
).split()


class Ahead:
    """Modules imported ahead of time and hidden until the script imports them."""

    def __init__(self):
        self.modules = {}
        self.needs = {}
        self.attributes = []
        self.finders = []

    def load(self):
        original = builtins.__import__
        builtins.__import__ = self._recording(original)
        try:
            for name in AHEAD:
                original(name)
        finally:
            builtins.__import__ = original

    def _recording(self, original):
        """An `__import__` that notes which module needs which."""

        def importing(name, globals=None, locals=None, fromlist=(), level=0):
            module = original(name, globals, locals, fromlist, level)
            importer = (globals or {}).get("__name__")
            if importer is not None:
                self.needs.setdefault(importer, []).extend(named(name, globals, fromlist, level))
            return module

        return importing

    def hide(self):
        """Make `sys.modules` look as it did at first, also the attributes that submodules leave on their packages."""
        self.modules = {name: module for name, module in sys.modules.items() if name not in BEFORE}
        for name in self.modules:
            del sys.modules[name]
        needed = {name for names in self.needs.values() for name in names}
        for name, module in self.modules.items():
            package, _, last = name.rpartition(".")
            if name not in needed:  # put there by its package, without an import (`typing.io`)
                self.needs.setdefault(package, []).append(name)
            holder = sys.modules.get(package) or self.modules.get(package)
            if holder is not None and vars(holder).get(last) is module:
                delattr(holder, last)
                self.attributes.append((holder, last, name))

    def offer(self):
        """Let the import system take a hidden module where it would otherwise load the very same file."""
        basics = external._LoaderBasics
        original = basics.create_module
        ahead = self

        def create_module(self, spec):
            module = ahead.modules.get(spec.name)
            if module is None or not ahead.can_give(spec, module):
                return original(self, spec)
            self.exec_module = lambda module: ahead.give(spec.name, self)
            return module

        create_module.__qualname__ = original.__qualname__
        create_module.__module__ = original.__module__
        create_module.__doc__ = original.__doc__
        basics.create_module = create_module
        self.finders = list(sys.meta_path)

    def can_give(self, spec, module):
        """Whether the module and all it needs would be these very ones: nothing shadowed, nothing replaced."""
        if getattr(module.__spec__, "origin", None) != spec.origin or sys.meta_path != self.finders:
            return False
        closure = self.closure(spec.name)
        if any(name in sys.modules for name in closure):
            return False
        return not shadowed({name for name in closure if "." not in name})

    def closure(self, name):
        """The module and what its import would import that is still hidden, in the order of importing."""
        order, stack = {}, [name]
        while stack:
            one = stack.pop()
            if one not in order and one in self.modules:
                order[one] = True
                stack.extend(reversed(self.needs.get(one, ())))
        return order

    def give(self, name, loader):
        del loader.exec_module
        self.modules[name].__loader__ = loader
        given = {one: self.modules.pop(one) for one in self.closure(name)}
        sys.modules.update(given)
        for holder, last, one in self.attributes:
            if one in given:
                setattr(holder, last, given[one])


def named(name, globals, fromlist, level):
    """The full names of the modules that an import statement names."""
    if level:
        package = globals.get("__package__") or ""
        base = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = base + "." + name if name else base
    parts = name.split(".")
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    for one in fromlist or ():
        if name + "." + one in sys.modules:
            names.append(name + "." + one)
    return names


def shadowed(names):
    """Whether the path has modules of these names before the standard library."""
    try:
        stdlib = os.path.dirname(os.__file__)
        for entry in sys.path:
            if entry == stdlib:
                return False
            if os.path.exists(entry) and not names.isdisjoint(one.partition(".")[0] for one in os.listdir(entry)):
                return True
    except (OSError, TypeError):  # an archive, or not even a string: let Python look for itself
        pass
    return True


# ---- the parent


class Parent:
    """The process that forks: always one ahead, so that a run finds its process waiting.

    The spare process reads the next request itself, says so to the parent, and the parent forks the next spare. The parent
    keeps nothing of a run but its id, and that until the run has ended.
    """

    def __init__(self, fd):
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

    def hello(self):
        if sys.implementation.name != "cpython" or _thread._count() or threads() > 1:
            os._exit(70)  # forking a process with threads is not safe
        watched = b"\0".join(os.fsencode(path) for path in depends_on())
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
        """Wait as the spare, then turn into a run: its interpreter, the words of its command, and which is the script."""
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            for fd in (self.wake_r, self.wake_w, self.taken_r):
                os.close(fd)
            if not self.asked():
                rehearse()
            AHEAD_OF_TIME.offer()
            deepen()
            fields, fds = self.receive()
            os.setpgid(0, 0)
            os.write(self.taken_w, fields[0] + b"\n")
            os.close(self.taken_w)
            self.say(b"started", fields[0], b"%d" % os.getpid())
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


def rehearse():
    """Touch what nearly every script touches, so that its pages are this process's own before the run begins."""
    compile(REHEARSAL, "<rehearsal>", "exec")
    json = AHEAD_OF_TIME.modules.get("json")
    if json is not None:
        json.loads(json.dumps({"a": ["b", 1, 2.5, None, True]}))
    shadowed({""})


REHEARSAL = """
import json, sys
class A:
    def f(self, x, *y, z=1, **k):
        try:
            for i in range(3):
                if x.get("tool_input", {}).get("command", "") == f"{i}": print("a", file=sys.stderr)
        except (KeyError, ValueError) as error:
            return [x for x in y if x] + [lambda: z]
        with open("x") as f: data = json.load(f)
        while not data or z in data: break
        else: return {**k, "a": (1, 2.0, None, True)}
if __name__ == "__main__": sys.exit(A().f({}))
"""


class Shown:
    """Where the system shows our marker (`/proc/PID/environ`): a run writes its own there, so that its forks are found."""

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


def depends_on():
    """The files and folders that made this interpreter what it is, the standard library's own files aside."""
    stdlib = os.path.dirname(os.__file__)
    paths = [sys.executable, os.path.join(os.path.dirname(sys.executable), "..", "pyvenv.cfg"), stdlib]
    for name in BEFORE - {"__main__"}:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and not (file.startswith(stdlib + os.sep) and "-packages" not in file[len(stdlib) :]):
            paths.append(file)
    for entry in sys.path[1:]:
        if os.path.isdir(entry) and not entry.endswith("lib-dynload"):
            paths.append(entry)
            paths.extend(os.path.join(entry, name) for name in os.listdir(entry) if name.endswith(".pth"))
    return list(dict.fromkeys(paths))


# ---- the run


def prepare(go, file, folder, words, before):
    """Set `sys` and a fresh `__main__` as for a newly started interpreter; the code to run, and where."""
    script = words[before]
    sys.argv = words[before:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = words
    full = script if sys.version_info < (3, 9) or script.startswith("/") else os.path.join(os.getcwd(), script)
    code = compiled(full)
    if not os.read(go, 1):
        os._exit(0)  # nobody wants the run any more
    try:
        os.dup2(go, REPORT, inheritable=False)  # out of the way of the script's own descriptors
        REPORTER.append(os.getpid())
    except OSError:
        pass
    os.close(go)
    if code is None:
        os.execv(file, words)
    sys.path[0] = folder
    main = type(sys)("__main__")
    vars(main).update(
        __loader__=external.SourceFileLoader("__main__", full), __builtins__=builtins, __file__=full, __cached__=None
    )
    if sys.version_info < (3, 14):
        file_, cached = vars(main).pop("__file__"), vars(main).pop("__cached__")
        made = vars(main).pop("__builtins__")
        vars(main).update(__annotations__={}, __builtins__=made, __file__=file_, __cached__=cached)
    sys.modules["__main__"] = main
    return [code, vars(main)]


def compiled(path):
    """The script's code; None if it is not for us to say what is wrong with it."""
    try:
        with open(path, "rb") as file:
            source = file.read()
        return compile(source, path, "exec", dont_inherit=True)
    except BaseException:
        return None


def deepen():
    """Make up for our one frame beneath the script's, so that its recursion ends where it always does."""
    get, put = sys.getrecursionlimit, sys.setrecursionlimit
    beneath = 1 if sys.version_info >= (3, 12) else 2  # the call of `exec` counts too

    def getrecursionlimit():
        return get() - beneath

    def setrecursionlimit(limit, /):
        put(limit + beneath if isinstance(limit, int) and limit > 0 else limit)

    put(get() + beneath)
    sys.getrecursionlimit, sys.setrecursionlimit = getrecursionlimit, setrecursionlimit


def own(traceback):
    """A traceback from the script's first frame on."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def reported(error):
    """Report an exception that nobody caught as Python does; the exit code."""
    if isinstance(error, SystemExit):
        return asked_for(error.code)
    error.__traceback__ = own(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as another:
        return asked_for(another.code)
    except BaseException as another:
        another.__traceback__ = own(another.__traceback__)
        another.__context__ = None if another.__context__ is error else another.__context__
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(another), another, another.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return -_signal.SIGINT if type(error) is KeyboardInterrupt else 1


def asked_for(code):
    """The exit code of `sys.exit(code)`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    try:
        sys.stderr.write(str(code))
    except BaseException:
        pass
    try:
        sys.stderr.write("\n")
    except BaseException:
        pass
    return 1


def finish(code, started_with):
    """End as Python ends: threads, exit functions, flushing, the script's modules taken apart, flushing again."""
    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException as error:
            ignored(error, threading)
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass  # before 3.10 the last error is raised again, after having been printed
    if not flush():
        code = 120
    gc.collect()
    take_apart(started_with)
    flush(silently=True)
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    report(code)
    os._exit(code)


def report(code):
    """Say how the run ends, unless this is a fork that the script made."""
    if REPORTER != [os.getpid()]:
        return
    try:
        for fd in (0, 1, 2):
            os.close(fd)
    except OSError:
        pass
    try:
        os.write(REPORT, b"%d\n" % code)
    except OSError:
        pass


def flush(silently=False):
    """Flush stdout and stderr; whether stdout's last words were heard."""
    heard = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException as error:
            if name == "stdout" and not silently:
                ignored(error, stream)
                heard = False
    return heard


def ignored(error, where):
    """Say that an exception was ignored, in Python's words."""
    caught = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: caught.append(type(args))

    class Raising:
        def __del__(self):
            raise ValueError

    Raising()
    sys.unraisablehook = hook
    error.__traceback__ = own(error.__traceback__)
    try:
        hook(caught[0]((type(error), error, error.__traceback__, None, where)))
    except BaseException:
        pass


def take_apart(started_with):
    """Let go of the script's modules in Python's order, so that their finalisers run; the rest goes with the process."""
    for name in ("path", "argv", "last_type", "last_value", "last_traceback", "path_hooks", "meta_path"):
        setattr(sys, name, None)
    if hasattr(sys, "last_exc"):
        sys.last_exc = None
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, name, getattr(sys, "__" + name + "__", None))
    names = [name for name, module in sys.modules.items() if started_with.get(name) is not module]
    if "__main__" in names:  # the first that Python makes, so the last that it takes apart
        names.remove("__main__")
        names.insert(0, "__main__")
    references = []
    for name in names:
        try:
            references.append(_weakref.ref(sys.modules[name]))
        except TypeError:
            pass
        sys.modules[name] = None
    for name in names:
        del sys.modules[name]
    gc.collect()
    for reference in reversed(references):
        module = reference()
        if module is not None:
            empty(vars(module))


def empty(names):
    for private in (True, False):
        for name in list(names):
            if (name[:1] == "_" and name[1:2] != "_") is private and name != "__builtins__":
                names[name] = None


AHEAD_OF_TIME = Ahead()
AHEAD_OF_TIME.load()
AHEAD_OF_TIME.hide()
sys.path_importer_cache.pop(sys.path[0], None)
STARTED_WITH = dict(AHEAD_OF_TIME.modules)
STARTED_WITH.update(sys.modules)
PARENT = Parent(int(os.environ.pop("HOOKLINE_WARM_FD")))
PARENT.hello()
gc.collect()
gc.freeze()  # a fork neither walks nor copies what was there before it
RUN = prepare(*PARENT.wait_for_run())  # only forks get past this line
del PARENT
try:
    exec(RUN.pop(0), RUN.pop())
except BaseException as error:  # noqa: BLE001 - everything, as Python itself does
    CODE = reported(error)
else:
    CODE = 0
finish(CODE, STARTED_WITH)
