"""Warm interpreters: when they are used, when they are replaced, and that they hold nothing."""

# ruff: noqa: ASYNC109 - a test may block its own loop for a moment

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.processes.pipes import ProcessResult, start_process
from hookline.processes.spawn import ProcessSpec
from hookline.runners.warm import WarmPython, enabled, plan, shell_words
from tests.processes.running import run_process
from tests.resources import descriptors

pytestmark = pytest.mark.skipif(not enabled(True), reason="needs fork")
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
async def pool() -> AsyncIterator[WarmPython]:
    pool = WarmPython()
    yield pool
    await pool.aclose()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("import os; print(os.getppid())")
    return path


def spec(script: Path, *args: str, python: str = sys.executable, **env: str) -> ProcessSpec:
    return ProcessSpec(argv=(python, str(script), *args), cwd=str(script.parent), env={**os.environ, **env})


async def run(pool: WarmPython, spec: ProcessSpec, timeout: float = 60) -> ProcessResult:
    return await run_process(spec, timeout=timeout, launch=pool.launch)


async def warmed(pool: WarmPython, spec: ProcessSpec) -> None:
    """Run once, and wait until the next run will be warm."""
    await run(pool, spec)
    await pool.warmed()


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        await asyncio.sleep(0.005)


async def test_the_first_run_is_ordinary_and_the_next_is_warm(pool: WarmPython, script: Path) -> None:
    """Nobody waits for an interpreter to get warm."""
    first = await run(pool, spec(script))
    await pool.warmed()
    second = await run(pool, spec(script))

    assert (first.warm, second.warm) == (False, True)
    assert int(second.stdout) == pool.parents[0].process.pid


async def test_a_variable_of_makes_does_not_count(pool: WarmPython, script: Path) -> None:
    """`make PYTHON=python3.12 …` hands it on to every program; Python does not read it."""
    await warmed(pool, spec(script, PYTHON="python3"))

    assert (await run(pool, spec(script, PYTHON="python3"))).warm


async def test_one_interpreter_serves_every_script(pool: WarmPython, script: Path) -> None:
    """Scripts share a warm parent, and each is read anew."""
    await warmed(pool, spec(script))
    other = script.with_name("other.py")
    other.write_text("print('other')")

    ran = await run(pool, spec(other))
    other.write_text("print('edited')")
    edited = await run(pool, spec(other))

    assert (ran.stdout, edited.stdout, ran.warm, edited.warm) == (b"other\n", b"edited\n", True, True)
    assert len(pool.parents) == 1


async def test_runs_at_once_do_not_mix(pool: WarmPython, script: Path) -> None:
    """Twenty at a time, each with its own arguments, input and exit code."""
    script.write_text("import sys; print(sys.argv[1], sys.stdin.read()); sys.exit(int(sys.argv[1]))")
    await warmed(pool, spec(script, "0"))

    def one(n: int) -> ProcessSpec:
        given = spec(script, str(n))
        return ProcessSpec(argv=given.argv, cwd=given.cwd, env=given.env, stdin=f"input {n}".encode())

    ran = await asyncio.gather(*(run(pool, one(n)) for n in range(20)))

    assert [(f.warm, f.exit_code, f.stdout) for f in ran] == [(True, n, f"{n} input {n}\n".encode()) for n in range(20)]


async def test_another_environment_gets_another_interpreter(pool: WarmPython, script: Path) -> None:
    """What Python reads at start-up must be what it would read now."""
    await warmed(pool, spec(script))

    changed = await run(pool, spec(script, PYTHONUTF8="1"))
    unrelated = await run(pool, spec(script, SOMETHING="else"))

    assert (changed.warm, unrelated.warm) == (False, True)


async def test_a_changed_interpreter_is_noticed(pool: WarmPython, script: Path, tmp_path: Path) -> None:
    """Whatever the interpreter was made from, such as a folder on its path, starts a new parent when it changes."""
    packages = tmp_path / "packages"
    packages.mkdir()
    await warmed(pool, spec(script, PYTHONPATH=str(packages)))
    before = await run(pool, spec(script, PYTHONPATH=str(packages)))

    (packages / "new.py").write_text("")
    after = await run(pool, spec(script, PYTHONPATH=str(packages)))

    assert (before.warm, after.warm) == (True, False)


async def test_a_dead_parent_is_replaced(pool: WarmPython, script: Path) -> None:
    """Its death fails no run: the next one is ordinary, the one after that warm again."""
    await warmed(pool, spec(script))
    dead = pool.parents[0]
    os.kill(dead.process.pid, signal.SIGKILL)
    await until(dead.ended.done)

    after = await run(pool, spec(script))
    await pool.warmed()
    again = await run(pool, spec(script))

    assert (after.exit_code, after.warm, again.warm) == (0, False, True)


async def test_a_stalled_parent_is_replaced(pool: WarmPython, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer is ended, its spare too, and the run happens once, the ordinary way."""
    monkeypatch.setattr("hookline.runners.warm.ANSWER_LIMIT", 0.3)
    script.write_text("open('ran', 'a').write('x'); print('ok')")
    await warmed(pool, spec(script))
    parent = psutil.Process(pool.parents[0].process.pid)
    await until(parent.children)
    stopped = [parent, *parent.children()]
    for process in stopped:
        process.suspend()

    ran = await run(pool, spec(script))
    for process in stopped:
        if process.is_running():
            process.resume()
    _, left = psutil.wait_procs(stopped[1:], timeout=60)

    assert (ran.warm, ran.stdout) == (False, b"ok\n")
    assert (script.parent / "ran").read_text() == "xx"
    assert left == []


async def test_a_run_whose_parent_dies_is_a_failure_not_a_hang(pool: WarmPython, script: Path) -> None:
    """How it ended is then unknown, and said to be."""
    script.write_text("import sys; print('up', flush=True); sys.stdin.read(); import os; os.kill(os.getpid(), 9)")
    warm = spec(script)
    await warmed(pool, ProcessSpec(argv=warm.argv, cwd=warm.cwd, env=warm.env))
    parent = pool.parents[0]

    process = await start_process(warm, launch=pool.launch, keep_stdin=True)
    await until(lambda: process.printed.kept[process.child.stdout])
    os.kill(parent.process.pid, signal.SIGKILL)
    await until(parent.ended.done)
    process.stdin.stays = False
    process.stdin.write(b"")
    finished = await process.finish()

    assert finished is not None
    assert (finished.warm, finished.exit_code, finished.signal) == (True, None, None)


@linux
async def test_nothing_is_left_of_a_warm_run_that_timed_out(pool: WarmPython, script: Path) -> None:
    """Neither forks that left the session nor programs it started; the parent lives on."""
    script.write_text(
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(60)\n    os._exit(0)\n"
        "open('up', 'w').close()\ntime.sleep(60)\n"
    )
    empty = script.with_name("empty.py")
    empty.write_text("")
    await warmed(pool, spec(empty, LEFT=str(script)))

    process = await start_process(spec(script, LEFT=str(script)), launch=pool.launch)
    await until((script.parent / "up").exists)
    asyncio.get_running_loop().call_later(1, process.stop)
    finished = await process.finish()

    assert finished is not None
    assert (finished.warm, finished.truncated) == (True, True)
    left = [p for p in psutil.process_iter(["cmdline"]) if "sleep" in (p.info["cmdline"] or [])]
    assert [p.pid for p in left if _environ(p).get("LEFT") == str(script)] == []
    parent = psutil.Process(pool.parents[0].process.pid)
    await until(lambda: len(parent.children(recursive=True)) == 1)
    strays = [p for p in psutil.process_iter() if _environ(p).get("LEFT") == str(script)]
    assert {p.pid for p in strays} == {parent.pid, *(child.pid for child in parent.children())}


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


@linux
async def test_a_parent_holds_nothing_of_its_runs(pool: WarmPython, script: Path) -> None:
    """After hundreds of runs: no more descriptors, no zombie, hardly more memory."""
    script.write_text("import sys, json; x = ['x' * 1000] * 1000; print(len(sys.stdin.read()))")
    given = spec(script)
    given = ProcessSpec(argv=given.argv, cwd=given.cwd, env=given.env, stdin=b"y" * 50_000)
    await warmed(pool, given)
    for _ in range(20):
        await run(pool, given)
    parent = psutil.Process(pool.parents[0].process.pid)
    await until(lambda: len(parent.children()) == 1)
    files, memory = parent.num_fds(), parent.memory_info().rss

    for _ in range(300):
        assert (await run(pool, given)).warm

    # one that was just forked is there before its parent has closed what is only the child's
    await until(lambda: len(parent.children()) == 1 and parent.num_fds() <= files)
    assert parent.memory_info().rss - memory < 1_000_000


@linux
async def test_closing_leaves_no_process_and_no_descriptor(script: Path) -> None:
    """Parents and their spares end with their pool."""
    files = descriptors()
    pool = WarmPython()
    await warmed(pool, spec(script))
    parent = psutil.Process(pool.parents[0].process.pid)
    await until(parent.children)
    children = parent.children()

    await pool.aclose()

    assert not parent.is_running()
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert descriptors() <= files


async def test_closing_waits_for_one_that_was_let_go_and_does_not_leave(script: Path) -> None:
    """Every process the pool ever started has been reaped when it is closed."""
    before = set(psutil.Process().children(recursive=True))
    pool = WarmPython(limit=1)
    await warmed(pool, spec(script))
    pool.parents[0].process.send_signal(signal.SIGSTOP)
    await warmed(pool, spec(script, PYTHONUTF8="1"))

    await pool.aclose()

    assert set(psutil.Process().children(recursive=True)) <= before


async def test_closing_waits_for_one_that_is_getting_warm(script: Path) -> None:
    """It is ended and reaped like the others."""
    before = set(psutil.Process().children(recursive=True))
    pool = WarmPython()
    await run(pool, spec(script))
    await until(lambda: set(psutil.Process().children()) - before)

    await pool.aclose()

    assert set(psutil.Process().children(recursive=True)) <= before


async def test_an_interpreter_that_is_not_used_is_let_go(script: Path) -> None:
    """After `idle` seconds its process has ended."""
    pool = WarmPython(idle=0.2)
    await run(pool, spec(script))
    await until(lambda: pool.parents)
    [parent] = pool.parents

    await until(parent.ended.done)

    assert pool.parents == ()
    await pool.aclose()


async def test_only_so_many_interpreters_are_kept(script: Path) -> None:
    """The one used longest ago makes room."""
    pool = WarmPython(limit=2)
    for word in ("a", "b", "c"):
        await warmed(pool, spec(script, PYTHONPYCACHEPREFIX=str(script.parent / word)))

    assert len(pool.parents) == 2
    assert (await run(pool, spec(script, PYTHONPYCACHEPREFIX=str(script.parent / "c")))).warm
    await pool.aclose()


async def test_an_interpreter_that_cannot_be_kept_warm_is_not_tried_again(
    pool: WarmPython, script: Path, tmp_path: Path
) -> None:
    """A `sitecustomize` that starts a thread makes forking unsafe; scripts then run the ordinary way, as ever."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    threaded = spec(script, PYTHONPATH=str(tmp_path))
    await warmed(pool, threaded)

    assert (await run(pool, threaded)).exit_code == 0
    assert pool.parents == ()


@pytest.mark.parametrize(
    "command, words",
    [
        ("python3 x.py", ("python3", "x.py")),
        ("  python3   x.py 'a b' \"c d\" ", ("python3", "x.py", "a b", "c d")),
        ('"$CLAUDE_PROJECT_DIR"/x.py', ("/my proj/x.py",)),
        ('"${CLAUDE_PROJECT_DIR}/x.py" a.json', ("/my proj/x.py", "a.json")),
        ("$PLAIN/x.py", ("/plain/x.py",)),
        ("$CLAUDE_PROJECT_DIR/x.py", None),
        ("$UNSET/x.py", None),
        ("python3 x.py | cat", None),
        ("python3 x.py > out", None),
        ("python3 x.py; true", None),
        ("python3 x.py && true", None),
        ("python3 x.py &", None),
        ("python3 *.py", None),
        ("python3 ~/x.py", None),
        ("python3 x.py `id`", None),
        ('python3 x.py "$(id)"', None),
        ('python3 x.py "a\\"b"', None),
        ("python3 x.py # comment", None),
        ("A=1 python3 x.py", None),
        ("exec python3 x.py", None),
        ("python3 x.py $1 $@", None),
        ("python3 x.py {a,b}", None),
        ("python3 x.py\npython3 y.py", None),
        ("", None),
        ("python3 'x", None),
    ],
)
def test_only_what_needs_no_shell_is_read_without_one(command: str, words: tuple[str, ...] | None) -> None:
    """Words, quotes and variables that cannot be split; everything else is left to the shell."""
    assert shell_words(command, {"CLAUDE_PROJECT_DIR": "/my proj", "PLAIN": "/plain"}) == words


def test_a_line_of_many_variables_is_refused_at_once() -> None:
    """What takes a shell is told from what does not in one pass, however many variables there are."""
    line = " ".join(['"$CLAUDE_PROJECT_DIR"/x.py', "$CLAUDE_PROJECT_DIR"] * 20)
    began = time.monotonic()

    assert shell_words(f"{line} | cat", {"CLAUDE_PROJECT_DIR": "/p"}) is None
    assert time.monotonic() - began < 5


LIMITED = """
import asyncio, os, resource, sys
from hookline.processes.pipes import start_process
from hookline.processes.spawn import ProcessSpec
from hookline.runners.warm import WarmPython

async def main():
    pool = WarmPython()
    for _ in range(2):
        spec = ProcessSpec(argv=(sys.executable, sys.argv[1]), env=dict(os.environ))
        process = await start_process(spec, launch=pool.launch)
        ended = await process.finish()
        await pool.warmed()
    await pool.aclose()
    print(ended.warm, ended.exit_code, ended.stderr.decode())

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
asyncio.run(main())
"""


def test_a_block_is_a_block_where_few_descriptors_are_allowed(tmp_path: Path) -> None:
    """A run tells its end on a descriptor of a high number; where there is none, its parent alone tells it."""
    script = tmp_path / "script.py"
    script.write_text("import sys; print('no', file=sys.stderr); sys.exit(2)")

    done = subprocess.run((sys.executable, "-c", LIMITED, str(script)), capture_output=True, text=True, check=False)

    assert done.stdout == "True 2 no\n\n", done.stderr


@pytest.mark.parametrize(
    "words, planned",
    [
        (("PYTHON", "script.py"), True),
        (("PYTHON", "-u", "-B", "script.py", "-x"), True),
        (("PYTHON", "-c", "pass"), False),
        (("PYTHON", "-m", "json"), False),
        (("PYTHON", "-i", "script.py"), False),
        (("PYTHON", "-"), False),
        (("PYTHON",), False),
        (("PYTHON", "not there.py"), False),
        (("./script.py",), True),
        (("script.py",), False),
        (("uv", "run", "script.py"), False),
        (("cat", "script.py"), False),
    ],
)
def test_what_is_plainly_a_python_script(words: tuple[str, ...], planned: bool, tmp_path: Path) -> None:
    """An interpreter and a file, or an executable that names its interpreter."""
    script = tmp_path / "script.py"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    argv = tuple(sys.executable if word == "PYTHON" else word for word in words)

    assert (plan(ProcessSpec(argv=argv, cwd=str(tmp_path), env={"PATH": "/bin"})) is not None) is planned


@pytest.mark.parametrize(
    "first, planned",
    [
        (f"#!{sys.executable}", True),
        (f"#!{sys.executable} -u", True),
        ("#!/bin/sh", False),
        (f"#!{sys.executable} -i", False),
        ("#!/usr/bin/env -S python3 -u", False),
        ("print(1)", False),
    ],
)
def test_an_executable_says_which_interpreter_it_wants(first: str, planned: bool, tmp_path: Path) -> None:
    """By its first line; flags that need thought are left to the system."""
    script = tmp_path / "script"
    script.write_text(first + "\n")
    script.chmod(0o755)

    assert (plan(ProcessSpec(argv=(str(script),), cwd="/", env={})) is not None) is planned


@pytest.mark.parametrize("shebang", [f"#!{sys.executable}", f"#!{sys.executable} -u"])
async def test_an_executable_script_runs_warm(pool: WarmPython, tmp_path: Path, shebang: str) -> None:
    """With the same arguments as the system would give it."""
    script = tmp_path / "script"
    script.write_text(f"{shebang}\nimport sys; print(sys.argv, sys.orig_argv, __file__, sys.flags.unbuffered)\n")
    script.chmod(0o755)
    given = ProcessSpec(argv=("/bin/sh", "-c", "./script a"), cwd=str(tmp_path), env=dict(os.environ))
    cold = await run(pool, given)
    await pool.warmed()

    warm = await run(pool, given)

    assert (cold.warm, warm.warm) == (False, True)
    assert warm.stdout == cold.stdout


def test_one_setting_turns_it_off() -> None:
    """The argument first, then `HOOKLINE_WARM`."""
    assert [enabled(None, {}), enabled(None, {"HOOKLINE_WARM": "0"}), enabled(True, {"HOOKLINE_WARM": "0"})] == [
        True,
        False,
        True,
    ]
    assert enabled(False, {}) is False
