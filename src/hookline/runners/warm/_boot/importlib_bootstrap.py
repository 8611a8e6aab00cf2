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
except BaseException as error:
    if type(error) is SystemExit:
        hookline_boot.CODE = hookline_boot.plain(error.code)
    error.__traceback__ = error.__traceback__.tb_next  # without this frame
    raise  # which adds no frame: Python ends as it would
hookline_boot.CODE = 0
