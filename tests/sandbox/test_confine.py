"""`hookline confine`: what a confined line can and cannot do, seen by running lines."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hookline
from tests.sandbox import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")


def run(line: str, *, seconds: int = 60, **policy: Any) -> dict[str, Any]:
    [result] = arena.tried([{"line": line, "seconds": seconds, "prefix": arena.confined(**policy)}])
    return result


def test_a_write_outside_is_refused_and_the_line_says_how_to_allow_it() -> None:
    """One clear line: what, why, by whom, and what to add."""
    result = run("echo x > $OUT/new; echo inside > made; cat made")

    assert result["outside"] == []
    assert (
        "hookline: refused to write `/tmp/arena/outside/new`: it is outside `/tmp/arena/home/project` (--write); "
        "to allow it, add `--write /tmp/arena/outside`"
    ) in result["output"]
    assert "inside" in result["output"]


def test_a_blocked_program_does_not_start_and_the_pattern_is_named() -> None:
    """The words are the real ones, after all expansion."""
    result = run('a=r; b=m; "$a$b" -r -f victim', block=["rm -rf *"])

    assert (result["outside"], result["commands"]) == ([], [])
    assert "hookline: refused `rm -r -f victim`: the pattern `rm -rf *` (--block)" in result["output"]


def test_the_exit_code_is_the_commands_own() -> None:
    """Also when a signal ended it, as shells count."""
    codes = [run(line)["code"] for line in ("exit 7", "true", "kill -9 $$", "exec no-such-program")]

    assert codes == [7, 0, 137, 127]


BAD = [
    ([], 64, "usage: hookline confine"),
    (["--help"], 0, "usage: hookline confine"),
    (["make"], 64, "write `--` before the command"),
    (["--write", ".", "--"], 64, "no command after `--`"),
    (["--write", "/no/such/folder", "--", "true"], 64, "--write: `/no/such/folder` does not exist"),
    (["--write", "--", "true"], 64, "--write: a value is missing"),
    (["--wrte", ".", "--", "true"], 64, "unknown argument `--wrte`"),
    (["--block", " ", "--", "true"], 64, "--block: an empty pattern"),
    (["--write", ".", "--", "no-such-program-at-all"], 127, "`no-such-program-at-all`: no such program"),
]


@pytest.mark.parametrize("flags, code, said", BAD)
def test_flags_that_cannot_be_understood_run_nothing(flags: list[str], code: int, said: str) -> None:
    """One line says what to write instead."""
    done = subprocess.run([*arena.HOOKLINE, *flags], capture_output=True, text=True, check=False)

    assert (done.returncode, said in done.stdout + done.stderr) == (code, True)


@pytest.mark.skipif(not Path("/usr/bin/perl").exists(), reason="needs a program that renames without starting another")
def test_what_patterns_name_is_known_before_the_first_program_moves_it(tmp_path: Path) -> None:
    """The command is let go before the supervisor has looked at everything, but nothing that it does is."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "forbidden").write_bytes(Path("/bin/echo").read_bytes() + b"another build")
    (tmp_path / "bin" / "forbidden").chmod(0o755)
    moving = ["/usr/bin/perl", "-e", 'rename("bin/forbidden", "moved") or die; exec("./moved", "ran") or exit 9']
    flags = ["--write", str(tmp_path), "--block", "forbidden *", "--"]
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        [*arena.HOOKLINE, *flags, *moving], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (9, "")
    assert "hookline: refused `./moved ran`: the pattern `forbidden *` (--block)" in done.stderr


def test_what_would_fail_anyway_fails_as_it_always_does() -> None:
    """Nobody is told of a refusal where nothing would have been changed."""
    result = run(
        "mkdir -p $OUT/folder && rm -f $OUT/none && ! rmdir $OUT/none && ! chmod 700 $OUT/none && ! ls > $OUT/a/b"
    )

    assert (result["code"], "refused" in result["output"]) == (0, False)


def test_a_line_may_start_thousands_of_programs() -> None:
    """Each is judged, and none is lost: more than a table of descriptors holds; `test_cold_lines.py` starts more."""
    result = run("for i in {1..2000}; do /bin/true; done; echo $?", seconds=240, block=["rm *"])

    assert result["output"].splitlines()[0] == "0"


def test_without_a_network_nothing_is_reached() -> None:
    """Not even this machine; and programs that do not need it go on."""
    listens = "(: > /dev/tcp/127.0.0.1/8765) 2> /dev/null"
    server = f"python3 -m http.server 8765 --bind 127.0.0.1 & until {listens}; do sleep 0.1; done; "
    reach = "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8765\")' && echo reached"
    closed = run(f"{reach}; echo > /dev/tcp/127.0.0.1/8765; git init -q x && echo fine", extra=["--no-network"])
    own = run(f"{server}{reach}; kill %1", extra=["--loopback"])

    assert "hookline: refused the network: this line runs without one (--no-network)" in closed["output"]
    assert ("reached" in closed["output"], "fine" in closed["output"]) == (False, True)
    assert "reached" in own["output"]


def test_reading_can_be_kept_inside_too() -> None:
    """What the system needs to run programs can still be read."""
    project = "/tmp/arena/home/project"
    line = "cat ~/.bashrc; cat notes.txt; ls > listed; cat listed"
    open_ = run(line)
    held = run(line, extra=["--read", project])

    assert "nobody may change" in open_["output"]
    assert "nobody may change" not in held["output"]
    assert "some notes" in held["output"]


def test_background_programs_stay_inside_and_nobody_waits_for_them() -> None:
    """The caller gets the exit code at once; the supervisor stays as long as they do."""
    line = "(sleep 0.5; touch made; touch $OUT/new; rm -rf victim; : > over) > /dev/null 2>&1 & echo started"
    result = run(f"{line}; until [ -e over ]; do sleep 0.1; done; ls", block=["rm -rf *"])

    assert (result["outside"], result["commands"]) == ([], [])
    assert "made" in result["output"]


LEFT = """
import os, subprocess, sys, time
line = "sleep 300 & setsid sleep 300 & (setsid bash -c 'while :; do sleep 300; done' &); echo ready; wait"
process = subprocess.Popen([*sys.argv[2:], "bash", "-c", line], stdout=subprocess.PIPE, text=True)
process.stdout.readline()
def words(pid):
    try: return open(f"/proc/{pid}/cmdline").read()
    except OSError: return ""  # it has ended meanwhile
def processes(): return [words(n) for n in os.listdir("/proc") if n.isdigit()]
launcher = process.pid
supervisor = int(open(f"/proc/{launcher}/task/{launcher}/children").read().split()[0])
for victim in {"supervisor": [supervisor], "launcher": [launcher], "both": [supervisor, launcher]}[sys.argv[1]]:
    os.kill(victim, 9)
def left(): return [line for line in processes() if "sleep" in line and "process" not in line]
deadline = time.monotonic() + 20
while left() and time.monotonic() < deadline: time.sleep(0.05)
print("left", len(left()), "code", process.wait())
"""


@pytest.mark.parametrize("victim", ["supervisor", "launcher"])
def test_a_line_without_its_supervisor_or_launcher_is_ended(victim: str) -> None:
    """Nothing goes on unwatched, sessions of its own included."""
    line = f"python3 -c {shlex.quote(LEFT)} {victim} {shlex.join(arena.confined())}"
    [result] = arena.tried([{"line": line, "seconds": 60}])

    assert "left 0" in result["output"]


SWAPS = [
    "mv $TMPDIR moved; ln -s /run/x $TMPDIR",
    "mv $TMPDIR /tmp/moved; ln -s /run $TMPDIR",
    "rm -r $TMPDIR; ln -s /run/x $TMPDIR; mkdir d; mv d $TMPDIR/",
    "mkdir $TMPDIR/d; ln -s /run/x $TMPDIR/d/link; ln -s /run/x/file $TMPDIR/file",
]


@pytest.mark.parametrize("by", [arena.HOOKLINE, arena.CREW], ids=["cold", "warm"])
def test_what_a_line_puts_in_the_place_of_its_temporary_folder_is_left_alone(by: list[str]) -> None:
    """It may move the folder where `/tmp` may be written to; who takes the folder away follows no link."""
    prefix = arena.confined(write=[arena.PROJECT, "/tmp"], by=by)
    setup = "mkdir -p /run/x/sub; echo a > /run/x/file; echo b > /run/x/sub/file"
    results = arena.tried({"line": line, "setup": setup, "prefix": prefix} for line in SWAPS)

    assert [[path for path in result["outside"] if path.startswith("/run")] for result in results] == [[]] * len(SWAPS)


def test_a_link_in_the_place_of_the_caches_is_not_followed() -> None:
    """A line that may write to the user's caches could put one there, for the lines after it."""
    setups = [
        "mkdir -p ~/.cache/hookline; ln -s $OUT ~/.cache/hookline/confined",
        "mkdir -p ~/.cache; ln -s $OUT ~/.cache/hookline; mkdir -p $OUT/confined",
    ]
    line = "touch $OUT/new $OUT/file $OUT/confined/new; pip cache dir"
    results = arena.tried({"line": line, "setup": setup, "prefix": arena.confined()} for setup in setups)

    assert [result["outside"] for result in results] == [[], []]


def test_an_unprivileged_user_is_confined_as_well() -> None:
    """Neither Landlock nor notifications need root."""
    setup = "chmod 777 /tmp/arena /tmp/arena/home . ; chmod 777 $OUT $OUT/file"
    nobody = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    line = "touch made; touch $OUT/new; chmod 700 $OUT/file; x=$(echo rm); $x -rf victim; ls"
    jobs = [{"line": line, "setup": setup, "prefix": [*nobody, *arena.confined(block=["rm -rf *"])]}]
    [result] = arena.tried(jobs)

    assert (result["outside"], result["commands"]) == ([], [])
    assert "made" in result["output"]


NO_CALLS = """
import ctypes, os, struct, sys
numbers, errno = [int(n) for n in sys.argv[1].split(",")], int(sys.argv[2])
code = [(0x20, 0, 0, 0)]
for number in numbers: code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno)]
code = b"".join(struct.pack("HBBI", *each) for each in [*code, (0x06, 0, 0, 0x7FFF0000)])
class Program(ctypes.Structure): _fields_ = [("n", ctypes.c_ushort), ("f", ctypes.c_void_p)]
buffer = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None); libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p).value))) == 0
os.execvp(sys.argv[3], sys.argv[3:])
"""
POOR_KERNELS = [
    ("444,445,446", 38, "this kernel has no Landlock"),
    ("444,445,446", 1, "this kernel has no Landlock"),
    ("317", 38, "does not allow Landlock or seccomp notifications"),
    ("317", 1, "does not allow Landlock or seccomp notifications"),
    ("446", 1, "does not allow Landlock or seccomp notifications"),
    ("438", 38, "cannot watch the command"),
]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are x86-64's")
@pytest.mark.parametrize("numbers, errno, said", POOR_KERNELS)
def test_where_the_kernel_cannot_hold_it_a_line_does_not_run(numbers: str, errno: int, said: str) -> None:
    """Real system calls that fail as they do on older kernels and in strict containers."""
    prefix = ["python3", "-c", NO_CALLS, numbers, str(errno), *arena.confined()]
    [result] = arena.tried([{"line": "touch made; echo ran", "prefix": prefix}])

    assert (result["code"], "ran" in result["output"]) == (125, False)
    assert said in result["output"]


def test_without_landlock_program_starts_can_still_be_judged() -> None:
    """Asked for by name: nobody is told that writes are held."""
    flags = ["--write-anywhere", "--block", "rm -rf *", "--"]
    prefix = ["python3", "-c", NO_CALLS, "444,445,446", "38", *arena.HOOKLINE, *flags]
    [result] = arena.tried([{"line": "x=$(echo rm); $x -rf victim; echo ran", "prefix": prefix}])

    assert (result["commands"], "ran" in result["output"]) == ([], True)


def test_a_confined_line_in_a_confined_line_says_so() -> None:
    """Only one supervisor can watch a process; the inner line does not run."""
    inner = shlex.join([*arena.confined(), "echo", "ran"])
    result = run(inner)

    assert "ran" not in result["output"].splitlines()
    assert "this process is confined already" in result["output"]


def test_the_check_says_what_there_is() -> None:
    """And tries it."""
    done = subprocess.run([*arena.HOOKLINE, "--check"], capture_output=True, text=True, check=False)

    assert (done.returncode, "confine    works: a write outside was refused" in done.stdout) == (0, True)


def test_hookline_holds_lines_wherever_it_is_installed(tmp_path: Path) -> None:
    """In the temporary folder, too, which lines do not see: the supervisor reads its modules as it needs them."""
    copy, inside = tmp_path / "hookline", tmp_path / "inside"
    shutil.copytree(Path(hookline.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    inside.mkdir()
    (tmp_path / "other").write_text("another program's")
    argv = [sys.executable, "-I", "-S", "-B", str(copy / "sandbox" / "launch.py"), "--write", str(inside), "--"]
    done = subprocess.run(
        [*argv, "sh", "-c", f"echo made > made; cat made {tmp_path}/other"],
        capture_output=True, text=True, check=False, cwd=inside,
    )  # fmt: skip

    assert (done.stdout, "Permission denied" in done.stderr) == ("made\n", True), done.stderr


@pytest.mark.parametrize("kept", [(), (0, 1, 2), (1, 2, -1, 5), (0, 3, 4, 9)])
def test_a_supervisor_lets_go_of_every_descriptor_but_its_own(kept: tuple[int, ...]) -> None:
    """What the command closes is then closed: nobody waits at the other end."""
    code = (
        "import os\n"
        "from hookline.sandbox.kernel import close_all_but\n"
        "for number in range(12):\n"
        "    os.dup2(os.open(os.devnull, os.O_RDWR), number)\n"
        f"close_all_but(*{kept})\n"
        "folder = os.open('/proc/self/fd', os.O_RDONLY)\n"
        f"found = {{int(name) for name in os.listdir(folder)}} - {{folder}}\n"
        "found = {fd for fd in found if os.path.exists(f'/proc/self/fd/{fd}')}\n"
        f"os._exit(found != {{fd for fd in {kept} if fd >= 0}})\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("flags", [("--processes", "50"), ("--read", arena.PROJECT), ()])
def test_a_program_s_name_may_be_any_bytes(flags: tuple[str, ...]) -> None:
    """What the kernel says of a process holds its name, which no encoding has to know."""
    line = (
        r"cp $(command -v sleep) $'\xff)\r'; ./$'\xff)\r' 60 & while [ ! -e /proc/$!/exe ]; do :; done; "
        "cat /proc/$!/stat > /dev/null; prlimit --pid $! --nofile=9; kill $!; echo alive"
    )
    result = run(line, extra=flags)

    assert (result["code"], result["output"].splitlines()[-1]) == (0, "alive")


def test_a_line_starts_in_a_folder_that_has_been_removed(tmp_path: Path) -> None:
    """The kernel lets programs start there, too."""
    command = ['rmdir $PWD; exec "$@"', "sh", *arena.confined(write=["/var/tmp"], block=["x *"]), "echo", "alive"]
    folder = tmp_path / "gone"
    folder.mkdir()
    done = subprocess.run(["sh", "-c", *command], cwd=folder, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_a_socket_s_name_does_not_pass_for_a_row_of_the_kernel_s_table() -> None:
    """That table says which socket has an abstract name; a line's own reaches itself."""
    code = (
        "import socket\n"
        "def bind(name):\n"
        "    one = socket.socket(1); one.bind(name); one.listen(); socket.socket(1).connect(name); return one\n"
        "kept = bind(chr(0) + 'own')\n"
        "for name in (chr(0) + 'x\\n0: 2 0 10000 1 1 7 @y', 'x\\n0: 2 0 10000 1 1 7 @y'):\n"
        "    try: bind(name)\n"
        "    except OSError as error: print(error.errno)\n"
    )
    assert run(f'python3 -c "{code}"')["output"] == "22\n22\n"
