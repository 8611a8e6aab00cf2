"""One run: a fresh `__main__` before the script, and Python's own way of ending after it."""

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
import _weakref

HERE = os.path.dirname(__file__)
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
