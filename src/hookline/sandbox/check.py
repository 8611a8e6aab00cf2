"""What this kernel offers for confinement, found out by asking it."""

from __future__ import annotations

import os
import sys

from hookline.sandbox.policy import Policy
from hookline.sandbox.syscalls import MACHINES

_LANDLOCK = {
    1: "writes and reads by folder (moving a file to another folder copies it)",
    2: "moving files between folders",
    3: "truncating files",
    4: "TCP ports",
    5: "devices",
    6: "signals and abstract sockets",
}
"""What each version of Landlock added."""


def missing(policy: Policy) -> str:
    """Why a policy cannot be held here; empty if nothing speaks against it."""
    if not sys.platform.startswith("linux"):
        return f"confinement needs Linux; this is {sys.platform}"
    from hookline.sandbox import kernel  # which only Linux can import

    if kernel.machine() not in MACHINES:
        return f"confinement is not known for `{kernel.machine()}` machines; it works on {' and '.join(MACHINES)}"
    if (policy.write is not None or policy.read is not None) and not kernel.landlock_version():
        return (
            "this kernel has no Landlock (Linux 5.13 and later, `landlock` in its list of security modules), "
            "so writes cannot be confined; `--write-anywhere` judges program starts alone"
        )
    return ""


def no_notifications() -> str:
    """Why a supervisor could not be told of calls, by asking the kernel and without trying; empty if it could."""
    from hookline.sandbox import kernel

    if kernel.notifications():
        return ""
    return "this kernel (Linux 5.9 and later is needed), or the container, does not offer seccomp notifications"


def report() -> int:
    """Print what there is, and try it; 0 if lines can be confined."""
    problem = missing(Policy())
    if sys.platform.startswith("linux"):
        from hookline.sandbox import kernel

        version = kernel.landlock_version()
        print(f"kernel     {os.uname().release} on {kernel.machine()}")
        print(f"landlock   {f'version {version}' if version else 'none'}")
        for since, what in _LANDLOCK.items():
            print(f"  {'yes' if version >= since else 'no ':3}  {what}")
    problem = problem or _trial()
    print(f"confine    {problem or 'works: a write outside was refused, and so was a blocked program'}")
    return 1 if problem else 0


def _trial() -> str:
    """Confine a small line and look at what it could do; what went wrong, or nothing."""
    from hookline.sandbox.run import run

    script = "true; (: > /hookline-trial) 2>/dev/null; a=$?; (exec sleep 0) 2>/dev/null; b=$?; exit $((a * 8 + b % 8))"
    errors, null = os.dup(2), os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 2)
    try:
        code = run(Policy((), block=("sleep *",)), ["sh", "-c", script])
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(null)
    refused_write, refused_start = code // 8, code % 8 == 126 % 8
    if code == 125:
        return "the kernel, or the container this runs in, does not allow Landlock or seccomp notifications"
    return "" if refused_write and refused_start else f"a trial line was not held (it ended with {code})"
