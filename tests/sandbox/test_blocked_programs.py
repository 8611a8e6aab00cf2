"""Programs that a pattern names do not start in disguise: with other code in them, as copies, by their interpreter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.sandbox.exec_policy import Approvals, Start
from hookline.sandbox.programs import Library
from tests.sandbox import arena, tables

pytestmark = [pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")]

BIN = "/tmp/arena/bin"
BLOCK = ("rm -rf *", "git push --force *", "deploy *", "forbidden *", "npm publish *", "pip uninstall *")
SETUP = rf"""
git init -q; git commit -qm first --allow-empty
git init -q --bare {tables.REMOTE}; git remote add origin {tables.REMOTE}
printf '#!/bin/sh\ntouch deployed\n' > {BIN}/deploy; chmod +x {BIN}/deploy
"""
LARGE = rf"""
python3 - <<'EOF'
data = open('/bin/touch', 'rb').read()
at = data.find(b'\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0')
plain = data if at < 0 else data[:at + 12] + b'XXX' + data[at + 15:]
open('{BIN}/forbidden', 'wb').write(plain + bytes(40 * 1024 * 1024))
EOF
chmod +x {BIN}/forbidden
"""
"""A program of many megabytes, made for the lines that name it."""
LOADER = "/lib64/ld-linux-x86-64.so.2"
ATTACH = """
import ctypes, os, subprocess
one = subprocess.Popen(['git', 'cat-file', '--batch'], stdin=subprocess.PIPE)
while os.readlink(f'/proc/{one.pid}/exe').rpartition('/')[2] != 'git': pass
done = ctypes.CDLL(None, use_errno=True).ptrace(16, one.pid, 0, 0)
print('attached' if done == 0 else 'held', flush=True); one.kill()
"""
EDIT = (
    "import sys; d = open('/bin/rm', 'rb').read(); old, new = (w.encode() for w in sys.argv[1:]); "
    "open('x', 'wb').write(d.replace(old, new + bytes(len(old) - len(new))))"
)
REBUILT = (
    "d = open('/bin/rm', 'rb').read(); at = d.find(b'GNU' + bytes(1)); "
    "open('x', 'wb').write(d[:at + 8] + b'zzz' + d[at + 11:])"
)
WHY = re.compile(r"hookline: refused .*(pattern|other code|loader|traced|has git run)")
"""What is said of such a program; other refusals, such as that of a cache outside, do not count."""
REFUSED = [
    "LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6 rm notes.txt",
    "export LD_PRELOAD=./any.so; git status",
    "LD_AUDIT=./any.so git status",
    "LD_LIBRARY_PATH=. git status",
    "GCONV_PATH=$PWD git log",
    f"{LOADER} --preload ./any.so /usr/bin/git status",
    f"{LOADER} --preload=./any.so /usr/bin/git status",
    f"{LOADER} --audit ./any.so /usr/bin/git status",
    f"{LOADER} --library-path . /usr/bin/git status",
    "python3 -c 'import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.execvp(\"git\", [\"git\", \"status\"])'",
    f"python3 -c \"{ATTACH.strip()}\"",
    f"python3 -c \"{EDIT}\" {LOADER} ./ld.so; chmod +x x; ./x notes.txt",
f'python3 -c "{REBUILT}"; chmod +x x; ./x -rf victim',
    "printf 'int main(void) { return 0; }' | gcc -x c -o x -Wl,--dynamic-linker=/usr/bin/rm -; ./x -rf victim",
    "objcopy --remove-section .note.gnu.build-id --remove-section .comment /bin/rm x; ./x -rf victim",
    "objcopy --remove-section .note.gnu.build-id --strip-all /usr/bin/git x; ./x push --force origin HEAD",
    "busybox sh $(which deploy) || bash $(which deploy)",
    f"cp /bin/rm {BIN}/x; x -rf victim",
    f"cp {BIN}/forbidden x; ./x made",
    f"cp {BIN}/forbidden {BIN}/x; x made",
    "bash $(which deploy)",
    "bash -e $(which deploy) production",
    "bash < $(which deploy)",
    "sh -s production < $(which deploy)",
    "cp $(which deploy) d; dash ./d",
    "cd $(dirname $(which deploy)) && bash ./deploy",
    "python3 -m pip uninstall -y nothing",
    "python3 -mpip uninstall -y nothing",
    "python3 -Im pip uninstall -y nothing",
    "python3 -W ignore -m pip.__main__ uninstall -y nothing",
    "node $(readlink -f $(which npm)) publish",
    "node $(dirname $(dirname $(readlink -f $(which npm)))) publish",
    "node --no-warnings $(dirname $(dirname $(readlink -f $(which npm))))/index.js publish",
    "ln -s $(which git) g; git config remote.origin.push +HEAD; ./g push origin",
    "git config remote.origin.push +HEAD; $(git --exec-path)/git-push origin || git push origin",
    "ln -s $(git --exec-path)/git-push p; git config remote.origin.push +HEAD; (exec -a git-push ./p origin)",
    "git config alias.p push; git config remote.origin.push +HEAD; git p origin",
    "git -c alias.p=push -c remote.origin.mirror p origin",
    "V=+HEAD git --config-env=remote.origin.push=V push origin",
    "V=+HEAD git --config-env remote.origin.push=V push origin",
    f"echo +HEAD:refs/heads/main | git send-pack --stdin {tables.REMOTE}",
    f"echo +HEAD:refs/heads/main | $(git --exec-path)/git-send-pack --std {tables.REMOTE}",
    "printf 'push +HEAD:main\n\n' | git remote-https origin http://127.0.0.1:1/",
    "ln -s $(git --exec-path)/git-remote-https r; (exec -a git-remote-https ./r o http://127.0.0.1:1/) < notes.txt",
    "cp $(which bash) b; ./b $(which deploy)",
    "cp $(which dash) b; ./b < $(which deploy)",
    "cp $(readlink -f $(which node)) n; ./n $(readlink -f $(which npm)) publish",
    "cp $(python3 -c 'import sys; print(sys.executable)') p; ./p -m pip uninstall -y nothing",
    "bash -O extglob deploy || bash -O extglob $(which deploy)",
    "python3 -X utf8 -m pip uninstall -y nothing",
    "python3 -BX utf8 -Wignore -m pip uninstall -y nothing",
    "python3 --check-hash-based-pycs default -m pip uninstall -y nothing",
    "python3 -m runpy pip uninstall -y nothing",
    "python3 -m cProfile -o out -m pip uninstall -y nothing",
    "python3 -m pdb -c c -m pip uninstall -y nothing",
    "python3 -m trace --count -C . --module pip uninstall -y nothing",
]  # fmt: skip
PASSED = [
    "LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6 ls",
    "git status && git log -1 && rm notes.txt",
    "LD_LIBRARY_PATH=/usr/lib git status",
    "cat $(which deploy) && grep touch $(which deploy) && echo deploy",
    "python3 -m json.tool --help && python3 -m pip --version",
    "node -e 1 && npm --version",
    "bash -c 'echo deploy' && bash -ec 'true deploy'",
    "cp /bin/ls x && ./x && cp /bin/true y && PATH=$PWD:$PATH y",
    "git push origin HEAD:refs/heads/other",
    f"git send-pack {tables.REMOTE} HEAD:refs/heads/sent && ! git push http://127.0.0.1:1/ HEAD",
    "! git fetch -q https://127.0.0.1:1/ && ! git clone -q http://127.0.0.1:1/ x",
    f"cp /bin/ls {BIN}/x; x",
]


def hold(lines: list[str], **policy: Any) -> list[dict[str, Any]]:
    prefix = arena.confined(write=[arena.PROJECT, tables.REMOTE, BIN], block=BLOCK, **policy)
    job = {"only_files": True, "prefix": prefix}
    setups = (SETUP + LARGE if "forbidden" in line else SETUP for line in lines)
    return list(arena.tried({"line": line, "setup": setup, **job} for line, setup in zip(lines, setups, strict=True)))


def test_a_program_that_a_pattern_names_does_not_start_in_disguise() -> None:
    """Every line is refused, and says so."""
    missing = [name for name in ("node", "gcc", "git", "objcopy") if shutil.which(name) is None]
    lines = [line for line in REFUSED if not any(f"{name} " in line for name in missing)]

    open_lines = [
        (line, result["output"])
        for line, result in zip(lines, hold(lines), strict=True)
        if not WHY.search(result["output"]) and result["output"] != "held\n"
    ]

    assert open_lines == []


def test_what_only_looks_alike_starts() -> None:
    """Other programs may have other code in them, and the named ones their ordinary words."""
    differ = [
        (line, result["output"]) for line, result in zip(PASSED, hold(PASSED), strict=True) if result["code"] != 0
    ]

    assert differ == []


def test_a_line_cannot_limit_its_supervisor() -> None:
    """Its number is known, as the parent of the line's first program; it is not one of the line's own."""
    lines = [
        "prlimit --pid $PPID --nofile=3:3; rm -rf victim",
        "prlimit --pid $PPID --as=1:1; rm -rf victim",
        "renice 19 $PPID; ionice -c 3 -p $PPID; taskset -p 1 $PPID; chrt -i -p 0 $PPID; rm -rf victim",
        "kill -9 $PPID; kill -STOP $PPID; rm -rf victim",
    ]
    results = hold(lines)

    assert [result["commands"] for result in results] == [[], [], [], []]
    assert ["the pattern `rm -rf *`" in result["output"] for result in results] == [True] * 4
    assert all("refused to change process" in result["output"] for result in results[:3])


TRACED = """
import ctypes, os
name = b'\\\\rTracerPid:\\\\t0'
os.symlink('/usr/bin/git', name)
libc = ctypes.CDLL(None)
libc.prctl(15, name, 0, 0, 0)
libc.ptrace(0, 0, 0, 0)
os.execv(os.path.abspath(name), ['git', 'version'])
"""


def test_a_traced_program_cannot_pass_for_another_by_the_name_that_it_gives_itself() -> None:
    """A process's name is a row of the table that says who traces it; what starts by a link has the link's name."""
    [result] = hold([f'python3 -c "{TRACED.strip()}"'])

    assert "it is traced, and the pattern" in result["output"]


MEMORY = """
import os, subprocess
one = subprocess.Popen(['git', 'cat-file', '--batch'], stdin=subprocess.PIPE)
while os.readlink(f'/proc/{one.pid}/exe').rpartition('/')[2] != 'git': pass
reading = os.open(f'/proc/{one.pid}/mem', os.O_RDONLY)
places = [f'/proc/{one.pid}/mem', f'/proc/{one.pid}/task/{one.pid}/mem', f'/proc/self/fd/{reading}']
for path in (*places, f'/proc/{os.getppid()}/oom_score_adj', '/tmp/arena/outside/new'):
    try: os.close(os.open(path, os.O_RDWR | os.O_CREAT)); print('open')
    except OSError: print('held')
one.kill()
"""


def test_a_program_s_memory_is_not_written_where_everything_else_is() -> None:
    """A line that may write everywhere is held to patterns alone: the way around them is closed, and nothing more."""
    flags = ["--write-anywhere", *(word for pattern in BLOCK for word in ("--block", pattern)), "--"]
    job = {"setup": SETUP, "only_files": True, "prefix": [*arena.HOOKLINE, *flags]}
    [result] = arena.tried([{"line": f'exec python3 -c "{MEMORY.strip()}"', **job}])

    lines = [line for line in result["output"].splitlines() if not line.startswith("hookline:")]
    assert lines == ["held", "held", "held", "held", "open"]


def test_words_without_end_are_refused_at_once() -> None:
    """A million pointers to one long word would take minutes to read; the kernel takes none of it."""
    code = (
        "import ctypes; w = ctypes.create_string_buffer(b'x' * 100000); n = 10 ** 6; "
        "a = (ctypes.c_void_p * (n + 1))(*[ctypes.addressof(w)] * n, None); "
        "c = ctypes.CDLL(None, use_errno=True); c.execve(b'/bin/true', a, None); print('error', ctypes.get_errno())"
    )
    [result] = hold([f'python3 -c "{code}"'])

    assert result["output"] == "error 7\n"


def test_a_start_is_looked_at_again_where_its_folder_or_variables_are_not_the_ones_judged() -> None:
    """A thread may change both between the look and the start."""
    library = Library()
    words = [os.fsdecode(word) for word in Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]]
    environ = [os.fsdecode(pair) for pair in Path("/proc/self/environ").read_bytes().split(b"\0")[:-1]]
    exe, pid = str(Path("/proc/self/exe").readlink()), os.getpid()

    def surprises(cwd: str, variables: list[str] | None) -> int:
        approvals = Approvals(library)
        start = Start(exe, exe, words, cwd, pid, variables=lambda: variables or [])
        if variables is not None:
            start.variables()
        approvals.note(start)
        return len(approvals.surprises(pid))

    here = str(Path.cwd().resolve())
    assert surprises(here, None) == 0
    assert surprises(here, environ) == 0
    assert surprises("/", None) > 0
    assert surprises(here, [*environ, "LD_PRELOAD=x"]) > 0


SECOND_LOOK = """
import os, sys
from hookline.sandbox import exec_policy
from hookline.sandbox.policy import Policy
from hookline.sandbox.run import run

def fails(self, thread):
    raise OSError(24, "too many open files")

exec_policy.Approvals.surprises = fails
sys.exit(run(Policy((), block=("rm *",)), ["/bin/sh", "-c", "echo ran"]))
"""


def test_a_program_that_cannot_be_looked_at_again_is_ended() -> None:
    """A second look that fails is not one that finds nothing."""
    done = subprocess.run([sys.executable, "-c", SECOND_LOOK], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (137, "")
    assert "it cannot be looked at ([Errno 24] too many open files)" in done.stderr


BEFORE = """
import sys
from hookline.sandbox import kernel
kernel.landlock_version = lambda: 5
from hookline.sandbox import confined_line
from hookline.sandbox.policy import Policy
from hookline.sandbox.run import run
sys.exit(run(Policy((), block=("rm *",)), ["/bin/bash", "-c", sys.argv[1]]))
"""


OWNED = """
import fcntl, os, sys
read, write = os.pipe()
for number, to in ((fcntl.F_SETOWN, int(sys.argv[1])), (10, 9)):
    try:
        fcntl.fcntl(read, number, to)
    except OSError:
        pass
fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
os.write(write, b"x")
"""
"""A file that tells another process of what can be read, by a signal that ends it."""


BY_DESCRIPTOR = """
import os, signal, subprocess, sys
def sent(pid, wait):
    fd = os.pidfd_open(pid)
    if wait:
        os.waitpid(pid, 0)
    try:
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        return "sent"
    except OSError as error:
        return error.errno
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork() or os._exit(0)
print(sent(int(sys.argv[1]), False), sent(child, True), sent(os.getpid(), False))
"""
"""To a program outside, to one that has ended, and to itself."""


def test_signals_stay_inside_on_kernels_whose_landlock_does_not_hold_them() -> None:
    """The supervisor sends them itself: to what the line has started, and to nothing else of a group."""
    with subprocess.Popen(["sleep", "60"], process_group=0) as other:
        group = other.pid
        line = (
            f"trap 'echo group' USR1; kill -9 {other.pid}; kill -9 $PPID; kill -USR1 0; kill -USR1 -{group}; "
            "sleep 60 & kill -0 $! && kill $!; wait $!; echo ended $?; (kill -9 $BASHPID); echo own $?; "
            f"kill -0 999999; echo none $?; python3 -c '{OWNED}' {other.pid}; python3 -c '{BY_DESCRIPTOR}' {other.pid}"
        )
        done = subprocess.run(
            [sys.executable, "-c", BEFORE, line], capture_output=True, text=True, check=False, process_group=group
        )
        alive = other.poll() is None
        other.kill()

    assert alive
    assert done.stdout.split("\n") == ["group", "group", "ended 143", "own 137", "none 1", "1 3 sent", ""]
    assert done.returncode == 0
