"""Runs inside a throw-away namespace: each line in real bash, bare or confined, and what it changed.

Started by `arena.py`, with the user whom lines run as. The whole file system is read-only here but for `/tmp`, `/run`
and `/dev/shm`, which are empty and vanish with the namespace. One JSON object per line comes in and one goes out.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

package = ModuleType("hookline")  # as in `launch.py`: without the rest of Hookline
package.__path__ = [str(Path(__file__).parents[2] / "src" / "hookline")]
sys.modules["hookline"] = package

from hookline.sandbox.main import parse  # noqa: E402
from hookline.sandbox.warm import WarmStarter  # noqa: E402

ARENA = Path("/tmp/arena")
HOME, OUTSIDE, PROJECT = ARENA / "home", ARENA / "outside", ARENA / "home" / "project"
PYTHON = ARENA / "python"
"""A Python with nothing but its standard library: what else is installed may take longer to start than a line takes."""
CREW = "crew"
"""The first word before a line that a crew runs which was forked ahead; flags of `hookline confine` follow."""
SECONDS = 20
USER = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 0
AS_USER = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--no-new-privs"] if USER else []
_COARSE = 5  # the clock that the kernel takes a file's times from
_NOT_OUTSIDE = tuple(f"{path}/" for path in (PROJECT, HOME / ".cache", ARENA / "remote.git"))
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
Found = dict[str, tuple[tuple[int, ...], list[Any]]]
"""By path: what changes with any change, and what is compared."""
_made: dict[str, Tree] = {}
_starter = WarmStarter()


class Stage:
    """What a set-up has made, for as long as no line changes it: files, mounts, and programs beside the line."""

    def __init__(self, setup: str) -> None:
        self.setup = setup
        self.beside = processes()
        self.found = survey({})
        self.mounts = mounts()
        self.effects = inside_effects()
        newest = max(changed for (*_, changed), _ in self.found.values())
        while time.clock_gettime_ns(_COARSE) <= newest:  # so that every change from now on has a later time
            time.sleep(0.001)

    def is_intact(self, now: Found) -> bool:
        keys = [{path: key for path, (key, _) in found.items()} for found in (self.found, now)]
        return keys[0] == keys[1] and self.mounts == mounts() and self.beside <= processes()


_stage: list[Stage] = []


def enclose() -> None:
    """Make everything read-only, and give an empty `/tmp`, `/run` and `/dev/shm`."""
    libc = ctypes.CDLL(None, use_errno=True)
    private, recursive_flag, read_only, mount_setattr = 1 << 18 | 1 << 14, 0x8000, 1, 442
    checked(libc.mount(None, b"/", None, ctypes.c_ulong(private), None))
    attributes = (ctypes.c_uint64 * 4)(read_only, 0, 0, 0)
    checked(libc.syscall(mount_setattr, -100, b"/", recursive_flag, ctypes.byref(attributes), 32))
    for folder in (b"/tmp", b"/run", b"/dev/shm"):
        checked(libc.mount(b"tmpfs", folder, b"tmpfs", ctypes.c_ulong(0), None))
    for top in ("/", "/usr", str(Path(__file__).parent)):
        if not os.statvfs(top).f_flag & os.ST_RDONLY:
            raise PermissionError(f"`{top}` could be written to: no line runs here")


def checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def set_up(setup: str, *, only_files: bool) -> Stage:
    """A project with a repository and its remote, a home and a folder outside, all as new.

    They are as new if the last line had the same set-up and changed nothing. What a set-up of only files made is
    written once more for the next line that wants the same: a repository with its commits costs more than most lines.
    """
    if _stage and _stage[0].setup == setup:
        return _stage[0]
    _stage.clear()
    end_strays(set())
    clear()
    if setup in _made:
        write_tree(_made[setup])
        give_away()
    else:
        make(setup)
        if only_files:
            end_strays(set())
            _made[setup] = read_tree(ARENA)
    _stage.append(Stage(setup))
    return _stage[0]


def make(setup: str) -> None:
    for folder in (PROJECT / "victim" / "deep", OUTSIDE / "folder", HOME / ".ssh", ARENA / "bin", PYTHON / "bin"):
        folder.mkdir(parents=True)
    (PROJECT / "victim" / "deep" / "file").write_text("x\n")
    (PROJECT / "notes.txt").write_text("some notes\n")
    for path in (OUTSIDE / "file", OUTSIDE / "folder" / "file", HOME / ".ssh" / "id", HOME / ".bashrc"):
        path.write_text(_SECRET)
    (ARENA / "bin" / "sudo").write_text('#!/bin/sh\n: > marker-sudo\nexec "$@"\n')
    (ARENA / "bin" / "sudo").chmod(0o755)
    (PYTHON / "bin" / "python3").symlink_to(f"{sys.base_prefix}/bin/python3")
    (PYTHON / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\ninclude-system-site-packages = false\n")
    (HOME / ".gitconfig").write_text(_GIT)
    give_away()
    if setup:
        command = [*AS_USER, "bash", "-c", setup]
        subprocess.run(command, cwd=PROJECT, env=environment(), check=False, capture_output=True, timeout=60)


def give_away() -> None:
    """Make everything the user's whom lines run as."""
    if USER:
        subprocess.run(["chown", "-hR", f"{USER}:{USER}", ARENA], check=True)


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
    for mount in reversed(mounts()):
        if mount.startswith("/tmp/"):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
    for top in (Path("/tmp"), Path("/run")):
        for path in top.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def mounts() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def environment(*, packages: bool = True) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "HL_PYTHON") if name in os.environ}
    path = f"{ARENA}/bin:{sys.base_prefix}/bin:" + os.environ["PATH"]  # Python itself, not a script that finds it
    path = path if packages else f"{PYTHON}/bin:{path}"
    places = {"OUT": str(OUTSIDE), "PROJECT": str(PROJECT), "SHELL": "/bin/bash"}
    quick = {"FILTER_BRANCH_SQUELCH_WARNING": "1"}  # the warning is a pause of ten seconds
    return {**kept, **places, **quick, "HOME": str(HOME), "PATH": path}


def survey(known: Found) -> Found:
    """Everything that a line could have changed, inside the project and outside; what has not is taken as known."""
    found: Found = {}
    look("/run", known, found)
    folders = ["/tmp", "/run"]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                paths = [entry.path for entry in entries]
        except OSError:
            continue
        for path in paths:
            if path.startswith("/tmp/hookline-"):
                continue  # the folder for temporary files that a confined line has
            if look(path, known, found):
                folders.append(path)
    return found


def look(path: str, known: Found, found: Found) -> bool:
    """Take down what a path is; whether it is a folder."""
    try:
        status = os.lstat(path)
        mode, change = status.st_mode, (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        key = (mode, status.st_uid, status.st_gid, status.st_nlink, status.st_ino, status.st_dev, *change)
        if path in known and known[path][0] == key:
            found[path] = known[path]
            return stat.S_ISDIR(mode)
        row: list[Any] = [stat.filemode(mode), status.st_uid, status.st_gid, status.st_nlink]
        if stat.S_ISREG(mode):
            row += [hashlib.sha1(Path(path).read_bytes()).hexdigest(), status.st_mtime_ns]
        elif stat.S_ISLNK(mode):
            row.append(str(Path(path).readlink()))
        row.append(sorted(os.listxattr(path, follow_symlinks=False)))
    except OSError:
        return False
    found[path] = key, row
    return stat.S_ISDIR(mode)


def is_outside(path: str) -> bool:
    """Whether a path is neither the project's, nor in a cache of ours, nor a folder that only holds the others."""
    return path != str(ARENA) and not f"{path}/".startswith(_NOT_OUTSIDE) and "/hookline-" not in path


def changed_outside(before: Found, after: Found) -> list[str]:
    rows = [{path: row for path, (_, row) in found.items() if is_outside(path)} for found in (before, after)]
    return sorted(path for path in rows[0].keys() | rows[1].keys() if rows[0].get(path) != rows[1].get(path))


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
    if not (remote / "HEAD").exists():
        return ""
    command = ["git", "--git-dir", str(remote), "log", "-1", "--format=%s", "main"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def tried(job: dict[str, Any]) -> dict[str, Any]:
    """Run one line and say what it changed."""
    setup = job.get("setup", "")
    stage = set_up(setup, only_files=job.get("only_files", not setup))
    prefix, seconds = job.get("prefix", []), job.get("seconds", SECONDS)
    words = [*prefix, "bash", "-c", job["line"]]
    env = environment(packages=job.get("packages", True))
    code, output = by_crew(words[1:], seconds, env) if prefix[:1] == [CREW] else by_process(words, seconds, env)
    after = survey(stage.found)
    changed = changed_outside(stage.found, after)
    if _starter.process is not None and _starter.process.poll() is not None:
        changed.append("the process that starts lines was ended")
    intact = stage.is_intact(after)
    effects = stage.effects if intact else inside_effects()
    if not intact:
        _stage.clear()
    happened = [name for name, seen in effects.items() if seen]
    return {"outside": changed, "commands": happened, "code": code, "output": output[-3000:]}


def by_process(words: list[str], seconds: float, env: dict[str, str]) -> tuple[int, str]:
    """The exit code and output of a program of its own: bare bash, or a confined line that is started cold."""
    process = subprocess.Popen(
        [*AS_USER, *words], cwd=PROJECT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace",
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += "\n[timed out]"
    end_strays(beside())
    return process.returncode, output


def by_crew(words: list[str], seconds: float, env: dict[str, str]) -> tuple[int, str]:
    """The exit code and output of a confined line that a crew runs, as our own agent's lines are run."""
    policy, command = parse(words)
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        files = {0: nothing.fileno(), 1: writing, 2: writing}
        line = _starter.start(policy, command, cwd=str(PROJECT), env=env, files=files)
    os.close(writing)
    output, deadline = b"", time.monotonic() + seconds
    waited = [reading, line.status]
    while waited and (ready := select.select(waited, [], [], max(0, deadline - time.monotonic()))[0]):
        piece = os.read(reading, 65536) if ready[0] == reading else b""
        output += piece
        if not piece:
            waited.remove(ready[0])
    if waited:
        output += b"\n[timed out]"
    os.close(reading)
    end_strays(beside(), line.pid)
    code = line.exit_code()
    return 137 if code is None else code, output.decode(errors="replace").replace("\r\n", "\n")


def beside() -> set[int]:
    return _stage[0].beside


def end_strays(kept: set[int], line: int = 0) -> None:
    """End what a line left running: in a namespace of our own that is every other process, but for those kept."""
    reap()
    while others := processes(line) - kept:
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def processes(line: int = 0) -> set[int]:
    """Every process but this one, the one that starts lines, and the crew that waits for the line after this one."""
    with os.scandir("/proc") as entries:
        parents = {int(entry.name): parent(entry.name) for entry in entries if entry.name.isdigit()}
    starter = _starter.process.pid if _starter.process is not None else 0

    def waits(pid: int) -> bool:
        while pid in parents and pid not in (starter, line):
            pid = parents[pid]
        return pid != 0 and pid == starter

    return {pid for pid in parents if pid != 1 and not waits(pid)}


def parent(pid: str) -> int:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, 4096).rpartition(b")")[2].split()[1])
    except OSError:
        return 0
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    enclose()
    for line in sys.stdin:
        print(json.dumps(tried(json.loads(line))), flush=True)
