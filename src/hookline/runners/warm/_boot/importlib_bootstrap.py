"""The warm interpreter: a Python that has started up and waits, forking once for every run of a script.

It is run by the interpreter that a hook names, so its state is what that interpreter's start-up makes it. A fork puts
on the run's descriptors, directory, environment and arguments, makes a fresh `__main__`, runs the script, and ends as
Python ends: exit functions, threads, flushing, finalisers. Whatever it cannot do exactly (a script that does not
compile, a folder, an archive) it leaves to the interpreter proper, by `execv`, before anything has happened.

Nothing but the standard library, Python 3.8 on. What is imported here is taken out of `sys.modules` again. The file's
name is chosen so that `warnings` do not count our frame, the one beneath the script's.

The conversation is `template`'s: a request is eight bytes, its name, with stdin, stdout, stderr, `go` and a file with
everything else; we say `ready` and the files that our state depends on, `started NAME PID` and `exited NAME STATUS`. A
run waits for one byte on `go`; if it is closed instead, the run is not wanted any more. At its very end a run says its
exit code there, for the system takes a while to clear a process away.
"""

# mypy: ignore-errors
# It runs in any Python from 3.8 on, and may import next to nothing: no annotations, no pathlib, no contextlib.

import sys

BEFORE = set(sys.modules)

import gc

import hookline_boot

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


def rehearse():
    """Touch what nearly every script touches, so that its pages are this process's own before the run begins."""
    compile(REHEARSAL, "<rehearsal>", "exec")
    json = AHEAD.modules.get("json")
    if json is not None:
        json.loads(json.dumps({"a": ["b", 1, 2.5, None, True]}))
    hookline_boot.shadowed({""})


AHEAD = hookline_boot.Ahead()
AHEAD.load()
AHEAD.hide(BEFORE)
sys.path_importer_cache.pop(sys.path[0], None)
STARTED_WITH = {**AHEAD.modules, **sys.modules}
PARENT = hookline_boot.start(int(sys.argv.pop()))
PARENT.hello(BEFORE)
gc.collect()
gc.freeze()  # a fork neither walks nor copies what was there before it
PARENT.serve()  # only forks get past this line
if not hookline_boot.template.is_waiting(PARENT.requests):
    rehearse()
AHEAD.offer()
hookline_boot.deepen()
RUN = hookline_boot.prepare(*PARENT.become())
try:
    exec(RUN.pop(0), RUN.pop())
except BaseException as error:  # everything, as Python itself does
    CODE = hookline_boot.reported(error)
else:
    CODE = 0
hookline_boot.finish(CODE, STARTED_WITH)
