"""The parts of a warm interpreter: the process that forks, modules imported ahead, and one run from start to end."""

# mypy: ignore-errors
# It runs in any Python from 3.8 on, and may import next to nothing: no annotations, no pathlib, no contextlib.

import atexit
import builtins
import gc
import os
import sys
import zipimport

import _frozen_importlib_external as external
import _signal
import _socket
import _weakref

HERE = os.path.dirname(__file__)
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


# -- modules imported ahead of time, hidden until the script imports them ---------------------------------------------

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

    def hide(self, before):
        """Make `sys.modules` look as it did `before`, also the attributes that submodules leave on their packages."""
        self.modules = {name: module for name, module in sys.modules.items() if name not in before}
        for name in self.modules:
            del sys.modules[name]
        needed = {name for names in self.needs.values() for name in names}.union(AHEAD)
        kept = {id(module) for module in sys.modules.values()}
        for name, module in self.modules.items():
            package, _, last = name.rpartition(".")
            # Put there by its package, without an import (`typing.io`), or as a second name (`importlib._bootstrap`).
            if name not in needed or id(module) in kept:
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
            if os.path.exists(entry) and not names.isdisjoint(one.partition(".")[0] for one in files_in(entry)):
                return True
    except (OSError, TypeError):  # another archive, or not even a string: let Python look for itself
        pass
    return True


def files_in(entry):
    """The files of a folder, or of an archive that has been looked into, as a trusted script's own."""
    archive = getattr(sys.path_importer_cache.get(entry), "_files", None)
    return os.listdir(entry) if archive is None else [name.replace(os.sep, ".") for name in archive]


# -- one run: a fresh `__main__` before the script, and Python's own way of ending after it --------------------------

REPORT = 250  # where a run says its exit code: out of the way of the script's own descriptors
REPORTER = []


def prepare(go, file, folder, words, before):
    """Set `sys` and a fresh `__main__` as for a newly started interpreter; the code to run, and where."""
    script = words[before]
    sys.argv = words[before:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = words
    full = script if sys.version_info < (3, 9) or script.startswith("/") else os.path.join(os.getcwd(), script)
    loader, code = compiled(full)
    if not os.read(go, 1):
        os._exit(0)  # the run is not wanted any more
    try:
        os.dup2(go, REPORT, inheritable=False)
        REPORTER.append(os.getpid())
    except OSError:
        pass
    os.close(go)
    if code is None:
        os.execv(file, words)
    sys.path[0] = getattr(loader, "archive", folder)
    main = type(sys)("__main__")
    main.__loader__ = loader
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    vars(main).update(__builtins__=builtins, __file__=full, __cached__=None)
    sys.modules["__main__"] = main
    return [code, vars(main)]


def compiled(path):
    """The script's loader and code; no code if it is not for us to say what is wrong with it.

    An archive in memory is a trusted script with its modules (`hashed_script`); any other takes Python's `runpy`.
    """
    try:
        with open(path, "rb") as file:
            source = file.read()
        if path.startswith("/proc/") and source[-22:-18] == b"PK\5\6":
            loader = sys.path_importer_cache[path] = zipimport.zipimporter(path)
            return loader, loader.get_code("__main__")
        return external.SourceFileLoader("__main__", path), compile(source, path, "exec", dont_inherit=True)
    except BaseException:
        return None, None


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
    while traceback is not None and os.path.dirname(traceback.tb_frame.f_code.co_filename) == HERE:
        traceback = traceback.tb_next
    return traceback


def reported(error):
    """Report an uncaught exception as Python does; the exit code."""
    if isinstance(error, SystemExit):
        return asked_for(error)
    error.__traceback__ = own(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as another:
        return asked_for(another)
    except BaseException as another:
        another.__traceback__ = own(another.__traceback__)
        another.__context__ = None if another.__context__ is error else another.__context__
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(another), another, another.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return -_signal.SIGINT if type(error) is KeyboardInterrupt else 1


def asked_for(exit):
    """The exit code of `sys.exit(…)`; what is not simply one is left to Python."""
    if exit.code is None:
        return 0
    if isinstance(exit.code, int) and -(1 << 63) <= exit.code < 1 << 63:
        return exit.code & 0xFF
    raise exit


def finish(code, started_with):
    """End as Python ends: exit functions, flushing, the script's modules taken apart, flushing again.

    Where threads are left, or stdout cannot be written, Python itself does all that, which takes a millisecond longer.
    """
    threading = sys.modules.get("threading")
    if threading is not None and (threading.active_count() > 1 or getattr(threading, "_threading_atexits", None)):
        leave(code)
    try:
        sys.modules.get("atexit", atexit)._run_exitfuncs()  # before 3.10 each import of it has a list of its own
    except BaseException:
        pass  # before 3.10 the last error is raised again, after having been printed
    if not flush():
        leave(code)
    gc.collect()
    take_apart(started_with)
    flush()
    if code >= 0:
        report(code)
        os._exit(code)
    leave(code)


def leave(code):
    """Let Python end; by a signal, if it was one."""
    if code >= 0:
        sys.exit(code)
    _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)


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


def flush():
    """Flush stdout and stderr; whether stdout's last words were heard."""
    heard = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            heard = heard and name == "stderr"
    return heard


def take_apart(started_with):
    """Let go of the script's modules in Python's order, so that finalisers run; the rest goes with the process."""
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
