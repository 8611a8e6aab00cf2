"""`launcher.c`: confined lines without a new interpreter, by a crew that waits."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.sandbox.warm import build_launcher
from tests.environ import clean_environ
from tests.sandbox import arena

pytestmark = [
    pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]


class Launcher:
    """A launcher, and the process that keeps crews for it as the resident service has it kept."""

    def __init__(self, state: Path) -> None:
        self.path, self.lines = build_launcher(str(state / "hookline")), state / "lines"
        serving = [sys.executable, "-m", "hookline", "confine", "--lines", str(self.lines)]
        env = {**os.environ, "XDG_STATE_HOME": str(state)}
        self.server = subprocess.Popen(serving, stdin=subprocess.PIPE, env=env, start_new_session=True)
        while not self.lines.exists():
            assert self.server.poll() is None
            time.sleep(0.01)

    def words(self, *flags: str, cold: str = "echo COLD") -> list[str]:
        before = ["sh", "-c", cold, "cold"]
        return [self.path, str(self.lines), str(len(before)), *before, *flags]

    def run(self, line: str, *flags: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*flags, "--write", str(cwd), "--", "bash", "-c", line), cwd=cwd, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, start_new_session=True, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    state = tmp_path_factory.mktemp("state")
    (state / "hookline").mkdir()
    one = Launcher(state)
    yield one
    assert one.server.stdin is not None
    one.server.stdin.close()
    assert one.server.wait(20) == 0


def test_a_line_runs_as_it_would_by_an_interpreter_of_its_own(launcher: Launcher, tmp_path: Path) -> None:
    """Its output, exit code, folder, variables, file mask, limits and descriptors are the caller's."""
    odd = {"PATH": os.environ["PATH"], "ODD": "a\nb", "BYTES": os.fsdecode(b"\xff")}
    env = {**clean_environ(tmp_path), **odd}
    line = 'pwd; umask; ulimit -n; echo "$ODD"; printf %s "$BYTES" | od -An -tx1; echo to nine >&9; : > made; exit 7'
    reading, writing = os.pipe()
    prepare = f'umask 027; ulimit -Sn 200; exec "$@" 9>&{writing} {writing}>&-'
    words = launcher.words("--write", str(tmp_path), "--", "bash", "-c", line)
    done = subprocess.run(
        ["bash", "-c", prepare, "bash", *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, text=True,
        capture_output=True, pass_fds=(writing,), start_new_session=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(writing)

    assert (done.returncode, done.stdout) == (7, f"{tmp_path.resolve()}\n0027\n200\na\nb\n ff\n"), done.stderr
    assert os.read(reading, 100) == b"to nine\n"
    os.close(reading)
    assert (tmp_path / "made").exists()


def test_a_line_is_held(launcher: Launcher, tmp_path: Path) -> None:
    """The same flags, the same refusals."""
    (tmp_path / "in").mkdir()
    done = launcher.run("echo x > ../out; rm -rf made", "--block", "rm -rf *", cwd=tmp_path / "in")

    assert not (tmp_path / "out").exists()
    assert f"hookline: refused to write `{tmp_path.resolve()}/out`" in done.stderr
    assert "hookline: refused `rm -rf made`: the pattern `rm -rf *` (--block)" in done.stderr


def test_what_is_sent_to_the_launcher_reaches_the_line(launcher: Launcher, tmp_path: Path) -> None:
    """Also its end: a line does not outlive it."""
    line = "trap 'echo told; exit 3' TERM; touch ready; while :; do sleep 0.05; done"
    for number in (signal.SIGTERM, signal.SIGKILL):
        (tmp_path / "ready").unlink(missing_ok=True)
        words = launcher.words("--write", str(tmp_path), "--", "bash", "-c", f"{line}; : {number}")
        with subprocess.Popen(
            words, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        ) as one:
            while not (tmp_path / "ready").exists():
                time.sleep(0.01)
            os.killpg(one.pid, number)
            output, _ = one.communicate(timeout=30)  # which ends when nothing of the line is left to write to it
        assert (one.returncode, output) == ((3, b"told\n") if number == signal.SIGTERM else (-9, b""))


def test_what_a_line_leaves_behind_goes_on(launcher: Launcher, tmp_path: Path) -> None:
    """As it does without a launcher: the end of a line is not the end of its daemons, which stay held."""
    (tmp_path / "in").mkdir()
    for name in ("gate", "later"):
        os.mkfifo(tmp_path / "in" / name)
    line = "(read -r x < gate; echo y > ../out; echo $x > later) > /dev/null 2>&1 & exit 4"
    done = launcher.run(line, cwd=tmp_path / "in")
    (tmp_path / "in" / "gate").write_text("x\n")

    assert (done.returncode, done.stderr, (tmp_path / "in" / "later").read_text()) == (4, "", "x\n")
    assert not (tmp_path / "out").exists()


def test_where_a_crew_cannot_stand_in_an_interpreter_is_started(launcher: Launcher, tmp_path: Path) -> None:
    """No service; a descriptor above 9; other limits, priorities or groups than the crew's; a terminal."""
    flags = ["--write", str(tmp_path), "--", "true"]
    words = shlex.join(launcher.words(*flags))
    absent = launcher.words(*flags)
    absent[1] += ".none"
    lines = [
        shlex.join(absent),
        f"exec 12</dev/null; {words}",
        f"nice -n 3 {words}",
        f"taskset -c 0 {words}" if len(os.sched_getaffinity(0)) > 1 else shlex.join(absent),
        f"script -qec {shlex.quote(words)} /dev/null </dev/null",
    ]
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
            start_new_session=True,
        )  # fmt: skip
        assert done.stdout.strip() == "COLD", (line, done.stderr)


def test_a_confined_line_gets_no_crew(launcher: Launcher, tmp_path: Path) -> None:
    """It could ask for a line that is held to less: what is confined differently is declined."""
    inner = shlex.join(launcher.words("--write", "/", "--", "touch", str(tmp_path.parent / "escaped")))
    done = launcher.run(inner, "--show", str(launcher.lines.parent), "--socket", str(launcher.lines), cwd=tmp_path)

    assert (done.stdout, (tmp_path.parent / "escaped").exists()) == ("COLD\n", False)
