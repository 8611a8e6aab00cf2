"""Runs inside a throw-away namespace: each line in real bash, bare or confined, and what it changed.

Started by `arena.py`. The whole file system is read-only here but for `/tmp`, `/run` and `/dev/shm`, which are empty
and vanish with the namespace. One JSON object per line comes in and one goes out.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

ARENA = Path("/tmp/arena")
HOME, OUTSIDE, PROJECT = ARENA / "home", ARENA / "outside", ARENA / "home" / "project"
SECONDS = 20
_SECRET = "an outside file that nobody may change\n"
_GIT = """
[user]
name = a
email = a@b.c
[init]
defaultBranch = main
[core]
trustctime = false
checkStat = minimal
"""

Tree = list[tuple[Path, int, int, "bytes | Path | None"]]
_made: dict[str, Tree] = {}


def enclose() -> None:
    """Make everything read-only, and give an empty `/tmp`, `/run` and `/dev/shm`."""
    libc = ctypes.CDLL(None, use_errno=True)
    private, recursive_flag, read_only, mount_setattr = 1 << 18 | 1 << 14, 0x8000, 1, 442
    checked(libc.mount(None, b"/", None, ctypes.c_ulong(private), None))
    attributes = (ctypes.c_uint64 * 4)(read_only, 0, 0, 0)
    checked(libc.syscall(mount_setattr, -100, b"/", recursive_flag, ctypes.byref(attributes), 32))
    for folder in (b"/tmp", b"/run", b"/dev/shm"):
        checked(libc.mount(b"tmpfs", folder, b"tmpfs", ctypes.c_ulong(0), None))


def checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def set_up(setup: str, *, only_files: bool) -> None:
    """A project with a repository and its remote, a home and a folder outside, all new.

    What a set-up of only files made is written once more for the next line that wants the same: a repository with its
    commits costs more than most lines.
    """
    clear()
    if setup in _made:
        write_tree(_made[setup])
        return
    for folder in (PROJECT / "victim" / "deep", OUTSIDE / "folder", HOME / ".ssh", ARENA / "bin"):
        folder.mkdir(parents=True)
    (PROJECT / "victim" / "deep" / "file").write_text("x\n")
    (PROJECT / "notes.txt").write_text("some notes\n")
    for path in (OUTSIDE / "file", OUTSIDE / "folder" / "file", HOME / ".ssh" / "id", HOME / ".bashrc"):
        path.write_text(_SECRET)
    (ARENA / "bin" / "sudo").write_text('#!/bin/sh\n: > marker-sudo\nexec "$@"\n')
    (ARENA / "bin" / "sudo").chmod(0o755)
    (HOME / ".gitconfig").write_text(_GIT)
    subprocess.run(["bash", "-c", setup], cwd=PROJECT, env=environment(), check=False, capture_output=True, timeout=60)
    if only_files:
        _made[setup] = read_tree(ARENA)


def read_tree(top: Path) -> Tree:
    """Folders before what is in them: path, mode, time of change, and what a file or link holds."""
    rows: Tree = []
    for path in (top, *sorted(top.rglob("*"))):
        status = path.lstat()
        held: bytes | Path | None = None
        if stat.S_ISLNK(status.st_mode):
            held = path.readlink()
        elif stat.S_ISREG(status.st_mode):
            held = path.read_bytes()
        rows.append((path, stat.S_IMODE(status.st_mode), status.st_mtime_ns, held))
    return rows


def write_tree(rows: Tree) -> None:
    """The same tree again, with its times, by which git knows its files."""
    for path, mode, _, held in rows:
        if isinstance(held, Path):
            path.symlink_to(held)
            continue
        path.mkdir() if held is None else path.write_bytes(held)
        path.chmod(mode)
    for path, _, changed, _ in reversed(rows):
        os.utime(path, ns=(changed, changed), follow_symlinks=False)


def clear() -> None:
    """Take away what the last line left, mounts included."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in reversed(mounts):
        if mount.startswith("/tmp/"):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    for top in (Path("/tmp"), Path("/run")):
        for path in top.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "HL_PYTHON") if name in os.environ}
    path = f"{ARENA}/bin:" + os.environ["PATH"]
    places = {"OUT": str(OUTSIDE), "PROJECT": str(PROJECT), "SHELL": "/bin/bash"}
    quick = {"FILTER_BRANCH_SQUELCH_WARNING": "1"}  # the warning is a pause of ten seconds
    return {**kept, **places, **quick, "HOME": str(HOME), "PATH": path}


def snapshot() -> dict[str, Any]:
    """Everything outside the project, and what commands leave inside it."""
    found: dict[str, Any] = {}
    for top in (OUTSIDE, HOME, ARENA / "bin", Path("/run"), Path("/tmp")):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if not ours(Path(folder, name))]
            for name in (*folders, *files, *(["."] if folder != "/tmp" else [])):
                look(Path(folder, name), found)
    return found


def ours(path: Path) -> bool:
    """Whether a folder is not outside: the project, our own caches, and a walk's other half."""
    return path in (PROJECT, HOME / ".cache", ARENA, ARENA / "remote.git") or path.name.startswith("hookline-")


def look(path: Path, found: dict[str, Any]) -> None:
    try:
        status = path.lstat()
        row: list[Any] = [stat.filemode(status.st_mode), status.st_uid, status.st_gid, status.st_nlink]
        if stat.S_ISREG(status.st_mode):
            row += [hashlib.sha1(path.read_bytes()).hexdigest(), status.st_mtime_ns]
        elif stat.S_ISLNK(status.st_mode):
            row.append(str(path.readlink()))
        row.append(sorted(os.listxattr(path, follow_symlinks=False)))
    except OSError:
        return
    found[str(path)] = row


def inside_effects() -> dict[str, bool]:
    """What the blocked commands would have done, each seen by its effect."""
    victim = PROJECT / "victim"
    return {
        "rm": not (victim / "deep" / "file").exists(),
        "sudo": (PROJECT / "marker-sudo").exists(),
        "dd": (PROJECT / "made-by-dd").exists(),
        "chmod": (victim / "deep" / "file").exists() and (victim / "deep" / "file").stat().st_mode & 0o777 == 0o777,
        "push": _remote() == "forced",
    }


def _remote() -> str:
    remote = ARENA / "remote.git"
    if not remote.exists():
        return ""
    command = ["git", "--git-dir", str(remote), "log", "-1", "--format=%s", "main"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def tried(job: dict[str, Any]) -> dict[str, Any]:
    """Run one line and say what it changed."""
    set_up(job.get("setup", ""), only_files=job.get("only_files", False))
    before = snapshot()
    command = [*job.get("prefix", []), "bash", "-c", job["line"]]
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace",
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=job.get("seconds", SECONDS))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += "\n[timed out]"
    end_stragglers()
    after = snapshot()
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    happened = [name for name, seen in inside_effects().items() if seen]
    return {"outside": changed, "commands": happened, "code": process.returncode, "output": output[-3000:]}


def end_stragglers() -> None:
    """End what a line left running: in a namespace of our own every other process is one."""
    while others := [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and path.name != "1"]:
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    enclose()
    for line in sys.stdin:
        print(json.dumps(tried(json.loads(line))), flush=True)
