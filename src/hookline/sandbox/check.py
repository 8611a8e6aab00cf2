"""What this kernel offers for confinement, found out by asking it."""

import os
import sys

from hookline.core.paths import inside_any
from hookline.sandbox.policy import Policy
from hookline.sandbox.syscalls import MACHINES


def held(landlock: int, *, notifications: bool, killable: bool, namespaces: bool) -> list[tuple[bool, str, str]]:
    """Line by line: whether it is held, what, and by what; or what happens without.

    It follows from Landlock's version, 0 for none; whether calls are handed to a supervisor, and not interrupted when
    it makes them, since they would be made twice (Linux 5.19); and whether a network of one's own can be made.
    """
    rules = f"Landlock {landlock}"
    of_landlock = [
        (1, "writes stay in the folders of `--write`", "cannot be held: `--write` does not run"),
        (1, "secret places are not read, nor what lies outside of `--read`", "cannot be held: `--hide` does not run"),
        (2, "files are moved between folders", "`mv` copies and removes instead"),
        (3, "files outside are not emptied", "a file outside can be emptied by its path"),
        (5, "devices take no orders but from their own users", "a device that can be opened can be given orders"),
    ]
    calls = "seccomp notifications"
    rows = [(landlock >= since, what, rules if landlock >= since else without) for since, what, without in of_landlock]
    signals = rules if landlock >= 6 else "the supervisor, which sends them itself" if notifications else "no"
    rows.append((landlock >= 6 or notifications, "signals stay inside", signals))
    judged = (
        "programs are judged as they start, on their real words (`--block`)",
        "modes, owners, times and attributes outside are not changed",
        "sockets, limits and shared memory of programs outside are not reached",
        "there is no network (`--no-network`), or named hosts alone (`--host`)",
    )
    how = calls if notifications else "no line runs without them (Linux 5.9)"
    rows += [(notifications, what, how) for what in judged]
    kept = notifications and killable
    snapshot = "Linux 5.19 is needed to hold them; before, they are compared and put back when the line has ended"
    rows.append((kept, "protected paths in writable folders are not changed", calls if kept else snapshot))
    own = "a network namespace" if namespaces else "namespaces are not allowed here: the line does not run"
    rows.append((namespaces, "a loopback of its own (`--loopback`)", own))
    return [*rows, (True, "time, processor time, memory and processes are limited", "the supervisor")]


def missing(policy: Policy) -> str:
    """Why a policy cannot be held here; empty if nothing speaks against it."""
    if not sys.platform.startswith("linux"):
        return f"confinement needs Linux; this is {sys.platform}"
    from hookline.sandbox import kernel  # which only Linux can import

    if kernel.MACHINE not in MACHINES:
        return f"confinement is not known for `{kernel.MACHINE}` machines; it works on {' and '.join(MACHINES)}"
    inside = any(inside_any(path, policy.write or ()) for path in policy.hide)
    if inside and not kernel.waits_killable():
        return "what lies in a writable folder cannot be hidden before Linux 5.19; `--hide` it outside of `--write`"
    if policy.holds_files and not kernel.landlock_version():
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
    """Print what is held here, line by line, and try it; 0 if lines can be confined."""
    from textwrap import fill

    problem = missing(Policy())
    if sys.platform.startswith("linux"):
        from hookline.sandbox import kernel
        from hookline.sandbox.egress import can_unshare

        print(f"kernel     {os.uname().release} on {kernel.MACHINE}")
        abilities = {
            "notifications": kernel.notifications(), "killable": kernel.waits_killable(), "namespaces": can_unshare(),
        }  # fmt: skip
        for holds, what, how in [] if problem else held(kernel.landlock_version(), **abilities):
            print(fill(f"  {'yes' if holds else 'no ':3}  {what}: {how}", 80, subsequent_indent=" " * 7))
    problem = problem or _trial()
    print(f"confine    {problem or 'works: a write outside was refused, and so was a blocked program'}")
    return 1 if problem else 0


def _trial() -> str:
    """Confine a small line and look at what it could do; what went wrong, or nothing."""
    import subprocess

    from hookline.core.interpreter import launch_argv

    script = "true; (: > /hookline-trial) 2>/dev/null; a=$?; (exec sleep 0) 2>/dev/null; b=$?; exit $((a * 8 + b % 8))"
    argv = [*launch_argv(), "--block", "sleep *", "--", "sh", "-c", script]
    code = subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode
    refused_write, refused_start = code // 8, code % 8 == 126 % 8
    if code == 125:
        return "the kernel, or the container this runs in, does not allow Landlock or seccomp notifications"
    return "" if refused_write and refused_start else f"a trial line was not held (it ended with {code})"
