"""The warm interpreter: a Python that has started up and waits, forking once for every run of a script.

It is run by the interpreter that a hook names, so its state is what that interpreter's start-up makes it. A fork puts
on the run's descriptors, directory, environment and arguments, makes a fresh `__main__`, runs the script, and lets
Python end it. Whatever it cannot do exactly (a script that does not compile, a folder, an archive) it leaves to the
interpreter proper, by `execv`, before anything has happened.

Nothing but the standard library, Python 3.11 on. What is imported here is taken out of `sys.modules` again.

A request is `template`'s: stdin, stdout, stderr, `go` and a file with everything else. A run says its id on `go` and
waits for one byte there; if it is closed instead, the run is not wanted any more. At its very end it says its exit
code, for the system takes a while to clear a process away; how a run ended that could not is said by its parent.
"""

# mypy: ignore-errors
# It may import next to nothing, for a script would find it imported: no annotations, no pathlib, no contextlib.

import atexit
import builtins
import gc
import marshal
import os
import sys
import zipimport

import _frozen_importlib as bootstrap
import _frozen_importlib_external as external
import _socket


HERE = os.path.dirname(os.path.abspath(__file__))
CODE = None  # the exit code of a script that has ended in a usual way
template = type(sys)("hookline_template")  # a module of Hookline's, without Hookline
exec(external.SourceFileLoader("hookline_template", HERE + "/../../../core/template.py").get_code(None), vars(template))


class Parent(template.Template):
    """Forks for every run of a script."""

    def ended(self, pid, run, status):
        say(run.fds[0], b"ended", os.waitstatus_to_exitcode(status))
        os.close(run.fds[0])

    def become(self):
        """Turn into the run of the next request: its `go`, interpreter, path, words, and which word is the script."""
        try:
            name, fds = self.next_request(1, 5)
            os.setpgid(0, 0)
            self.note(template.TAKEN, name, fds[3])
            say(fds[3], b"begun", self.pid)
            self.requests.close()
            self.to_template.close()
            cwd, file, folder, marker, before, words, environ = marshal.loads(template.read_file(fds[4]))
            template.redirect(fds[:3])
            for fd in fds[:3]:
                os.close(fd)
            show(marker)
            template.replace_environ(environ)
            os.chdir(cwd)
            return fds[3], os.fsdecode(file), os.fsdecode(folder), [os.fsdecode(word) for word in words], before
        except BaseException:
            os._exit(126)


def say(go, word, number):
    """Tell the owner of a run; one that has gone, or knows already, does not hear it."""
    try:
        os.write(go, b"%b %d\n" % (word, number))
    except OSError:
        pass


def show(marker):
    """Make the marker this process's name, which its forks inherit: its environment still shows as its parent's."""
    try:
        name = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(name, marker)
        os.close(name)
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


class Hidden:
    """Modules imported ahead of time and hidden until the script imports them."""

    def __init__(self):
        self.modules = {}
        self.needs = {}
        self.attributes = []
        self.finders = []
        self.at_fork = {}

    def load(self):
        original = builtins.__import__

        def importing(name, globals=None, locals=None, fromlist=(), level=0):
            """Notes which module needs which."""
            module = original(name, globals, locals, fromlist, level)
            importer = (globals or {}).get("__name__")
            if importer is not None:
                self.needs.setdefault(importer, []).extend(named(name, globals, fromlist, level))
            return module

        def noting(**hooks):
            """Notes what a module wants done about forks: it is done in a run that imports it, not in every one."""
            self.at_fork[hooks["after_in_child"].__module__] = hooks

        register = os.register_at_fork
        builtins.__import__, os.register_at_fork = importing, noting
        try:
            for name in AHEAD:
                original(name)
        finally:
            builtins.__import__, os.register_at_fork = original, register

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
        for name, needs in self.needs.items():
            self.needs[name] = [one for one in dict.fromkeys(needs) if one in self.modules]

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
        for one in given.keys() & self.at_fork.keys():
            self.at_fork[one]["after_in_child"]()
            os.register_at_fork(**self.at_fork[one])

    def rehearse(self, name):
        """Import a hidden module and use it, where a script would get it, and have nothing of that remain."""
        spec, names = external.PathFinder.find_spec(name), self.closure(name)
        if spec is not None and names and self.can_give(spec, self.modules[name]):
            spec.loader.exec_module = None
            self.give(name, spec.loader)
            sys.modules[name].loads(sys.modules[name].dumps({"a": ["b", 1, 2.5, None, True]}))
            self.modules.update({one: sys.modules.pop(one) for one in names})
            for holder, last, one in self.attributes:
                if one in names:
                    delattr(holder, last)
        sys.path_importer_cache.pop(sys.path[0], None)


HIDDEN = Hidden()


def named(name, globals, fromlist, level):
    if level:
        package = globals.get("__package__") or ""
        base = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = base + "." + name if name else base
    parts = name.split(".")
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return names + [name + "." + one for one in fromlist or () if name + "." + one in sys.modules]


def shadowed(names):
    """Whether the path has modules of these names before the standard library, as imports have just seen it."""
    stdlib = os.path.dirname(os.__file__)
    for entry in sys.path:
        if entry == stdlib:
            return False
        finder = sys.path_importer_cache.get(entry, sys)
        if finder is None:  # there is no such folder
            continue
        files = vars(finder).get("_path_cache")  # of a folder, else of an archive, as a trusted script's own
        if files is None:
            files = [name.replace(os.sep, ".") for name in vars(finder).get("_files", names)]
        if not names.isdisjoint([one.partition(".")[0] for one in files]):
            return True
    return True


# -- one run: a fresh `__main__` before the script, and Python's own way of ending after it --------------------------

GO = 250  # where a run says its exit code: out of the way of the script's own descriptors


def prepare(go, file, folder, words, before):
    """Set `sys` and a fresh `__main__` as for a newly started interpreter; the code to run, and where."""
    script = words[before]
    sys.argv, sys.orig_argv = words[before:], words
    full = script if script.startswith("/") else os.path.join(os.getcwd(), script)
    loader, code = compiled(full)
    if not os.read(go, 1):
        os._exit(0)  # the run is not wanted any more
    try:
        os.dup2(go, GO, inheritable=False)
    except OSError:
        pass  # so few descriptors are allowed; then the parent alone says how it ends
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


def plain(code):
    """The exit code of `sys.exit(code)`, where that is simply one."""
    if code is None:
        return 0
    return code if type(code) is int and 0 <= code < 256 else None


STARTED_WITH = {}  # the modules that were there before the script


class Moment:
    """What is done when Python, while it ends, lets go of this object."""

    def __init__(self, work):
        self.work = work

    def __del__(self):
        self.work()


def shorten():
    """The last exit function. Python takes the script's modules apart; all others go with the process.

    Where stdout cannot be written, or the exit code is not simply one, Python does all of it, some milliseconds longer;
    where nothing that the script has made would notice, it does none of it.
    """
    if CODE is not None and flush():
        if is_plain(sys.modules.get("__main__")):
            leave()
        sys.__interactivehook__ = Moment(forget)  # the last thing that goes before modules are taken apart
        sys._hookline = Moment(leave)  # and the first thing that goes when all modules but `sys` have been


def is_plain(main):
    """Whether nothing that a script has made, its module aside, does anything when Python lets go of it."""
    types = STARTED_WITH["types"]
    plain = {types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CellType, types.FrameType}
    plain |= {dict, list, tuple, set, frozenset, SystemExit, types.TracebackType}
    plain |= {bootstrap.ModuleSpec, external.FileFinder, external.SourceFileLoader}
    made = {type(one) for one in gc.get_objects() if one is not main}  # what was there before is not among these
    return type(main) is types.ModuleType and "gc" not in sys.modules and made <= plain


def forget():
    """Have Python see none of the modules that were there before the script."""
    for name in [name for name, module in sys.modules.items() if STARTED_WITH.get(name) is module]:
        del sys.modules[name]


def leave():
    """End the process, with its last words."""
    flush()
    os.closerange(0, 3)
    say(GO, b"ended", CODE)
    os._exit(CODE)


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


# -- the process that forks, and from `become` on a run ---------------------------------------------------------------


def serve(before):
    """Fork for every run; only a fork returns: the code to run, and where."""
    if sys.version_info < (3, 11) or sys.implementation.name != "cpython":
        os._exit(70)
    HIDDEN.load()
    HIDDEN.hide(before)
    sys.path_importer_cache.pop(sys.path[0], None)
    STARTED_WITH.update({**HIDDEN.modules, **sys.modules})
    parent = Parent(_socket.socket(fileno=int(sys.argv.pop())))
    parent.announce(depends_on(before))
    atexit.register(shorten)
    os.register_at_fork(after_in_child=lambda: os.closerange(GO, GO + 1))  # what a script forks is not the run
    gc.collect()
    gc.freeze()  # a fork neither walks nor copies what was there before it
    parent.serve()
    HIDDEN.offer()
    if not template.is_waiting(parent.requests):  # what nearly every script touches becomes the run's own ahead of it
        compile("import json\nif 'a' in {}.get(f'{1}'): print(*[x for x in (1, 2.5)], sep='')", "<rehearsal>", "exec")
        HIDDEN.rehearse("json")
    return prepare(*parent.become())
