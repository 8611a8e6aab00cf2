"""What this kernel offers for confinement, found out by asking it."""

from __future__ import annotations

import os
import sys

from hookline.core.paths import inside_any
from hookline.sandbox.policy import Policy
from hookline.sandbox.syscalls import MACHINES


class Abilities:
    """What a kernel, and the container around it, offers: what can be held follows from this alone."""

    def __init__(self, landlock: int, *, notifications: bool, killable: bool, namespaces: bool) -> None:
        self.landlock: int = landlock
        """Its version, 0 for none."""
        self.notifications: bool = notifications
        self.killable: bool = killable
        """Whether a call that the supervisor makes cannot be interrupted and made twice (Linux 5.19)."""
        self.namespaces: bool = namespaces
        """Whether a network of one's own can be made."""


def found() -> Abilities:
    """What is offered here, by asking and trying."""
    from hookline.sandbox import kernel, namespaces

    return Abilities(
        kernel.landlock_version(),
        notifications=kernel.notifications(),
        killable=kernel.waits_killable(),
        namespaces=namespaces.can_unshare(),
    )


def held(has: Abilities) -> list[tuple[bool, str, str]]:
    """Line by line: whether it is held, what, and by what; or what happens without."""
    rules = f"Landlock {has.landlock}"
    landlock = [
        (1, "writes stay in the folders of `--write`", "cannot be held: `--write` does not run"),
        (1, "secret places are not read, nor what lies outside of `--read`", "cannot be held: `--hide` does not run"),
        (2, "files are moved between folders", "`mv` copies and removes instead"),
        (3, "files outside are not emptied", "a file outside can be emptied by its path"),
        (5, "devices take no orders but from their own users", "a device that can be opened can be given orders"),
    ]
    calls = "seccomp notifications"
    rows = [
        (has.landlock >= since, what, rules if has.landlock >= since else without) for since, what, without in landlock
    ]
    signals = rules if has.landlock >= 6 else "the supervisor, which sends them itself" if has.notifications else "no"
    rows.append((has.landlock >= 6 or has.notifications, "signals stay inside", signals))
    judged = (
        "programs are judged as they start, on their real words (`--block`)",
        "modes, owners, times and attributes outside are not changed",
        "sockets, limits and shared memory of programs outside are not reached",
        "there is no network (`--no-network`), or named hosts alone (`--host`)",
    )
    how = calls if has.notifications else "no line runs without them (Linux 5.9)"
    rows += [(has.notifications, what, how) for what in judged]
    kept = has.notifications and has.killable
    snapshot = "Linux 5.19 is needed to hold them; before, they are compared and put back when the line has ended"
    rows.append((kept, "protected paths in writable folders are not changed", calls if kept else snapshot))
    own = "a network namespace" if has.namespaces else "namespaces are not allowed here: the line does not run"
    rows.append((has.namespaces, "a loopback of its own (`--loopback`)", own))
    return [*rows, (True, "time, processor time, memory and processes are limited", "the supervisor")]


def missing(policy: Policy) -> str:
    """Why a policy cannot be held here; empty if nothing speaks against it."""
    if not sys.platform.startswith("linux"):
        return f"confinement needs Linux; this is {sys.platform}"
    from hookline.sandbox import kernel  # which only Linux can import

    if kernel.machine() not in MACHINES:
        return f"confinement is not known for `{kernel.machine()}` machines; it works on {' and '.join(MACHINES)}"
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

        print(f"kernel     {os.uname().release} on {kernel.machine()}")
        for holds, what, how in [] if problem else held(found()):
            print(fill(f"  {'yes' if holds else 'no ':3}  {what}: {how}", 80, subsequent_indent=" " * 7))
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
