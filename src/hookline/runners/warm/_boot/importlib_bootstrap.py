"""The frame beneath a script that runs warm; `hookline_boot` does the rest.

The file's name is chosen so that `warnings` do not count the frame. It is short, as Python lets go of its syntax tree
only once the script has ended.
"""

# mypy: ignore-errors

import sys

BEFORE = set(sys.modules)

import hookline_boot

RUN = hookline_boot.serve(BEFORE)
try:
    exec(RUN.pop(0), RUN.pop())
except BaseException as error:  # everything, as Python itself does
    hookline_boot.CODE = hookline_boot.reported(error)
else:
    hookline_boot.CODE = 0
if hookline_boot.CODE:
    raise SystemExit(hookline_boot.CODE)  # the script may have put something else in the place of `sys.exit`
