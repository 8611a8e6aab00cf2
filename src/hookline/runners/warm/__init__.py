"""Python scripts without the start-up time: each run is a fork of an interpreter that has already started.

`WarmPython.launch` starts a program, in a fork of a warm interpreter where the program is plainly a Python script, else
the ordinary way. The first run of a script is ordinary; when it has ended, an interpreter is kept warm for the next. A
warm parent that dies, stalls or no longer matches the files it was made from is replaced; the run at hand is ordinary.

What a script could tell: `os.getppid()` is the warm parent, the seed of `hash()` for strings is the same in every run
of one parent, `/proc/self/cmdline` is the parent's, `/proc/self/comm` is the run's marker, and a script that prints its
own call stack sees one more frame beneath it, so that recursion ends a frame or two sooner. `HOOKLINE_WARM=0` turns
all this off.
"""

from hookline.runners.warm.pool import WarmPython, enabled, plan

__all__ = ["WarmPython", "enabled", "plan"]
