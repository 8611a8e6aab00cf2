"""A script cannot tell a warm interpreter from a new one."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.processes.pipes import ProcessResult
from hookline.processes.spawn import ProcessSpec
from hookline.runners.warm import WarmPython, enabled
from tests.processes.running import run_process
from tests.runners.scripts import BESIDE, BINARY, SCRIPTS

pytestmark = pytest.mark.skipif(not enabled(True), reason="needs fork")
RECVMSG = ("47 ", "212 ")  # on x86-64 and on the others
STDIN = b'{"a": "\xc3\xbc"}\nsecond line\n'
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "plain": {},
    "PYTHONIOENCODING": {"PYTHONIOENCODING": "latin-1:replace"},
    "PYTHONUNBUFFERED": {"PYTHONUNBUFFERED": "1"},
    "C locale": {"LC_ALL": "", "LANG": "C"},
    "TZ": {"TZ": "Pacific/Auckland"},
    "PYTHONWARNINGS": {"PYTHONWARNINGS": "error"},
}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def warm(runner: asyncio.Runner) -> Iterator[WarmPython]:
    async def make() -> WarmPython:
        return WarmPython(limit=20)

    pool = runner.run(make())
    yield pool
    runner.run(pool.aclose())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BESIDE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def environment(extra: dict[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "GIVEN": "given", "LC_ALL": "C.UTF-8", **extra}


async def both(warm: WarmPython, spec: ProcessSpec) -> tuple[ProcessResult, ProcessResult]:
    """The same program, run by a new interpreter and by a warm one."""
    cold = await run_process(spec, timeout=60)
    await rehearsed(warm)
    first = await run_process(spec, timeout=60, launch=warm.launch)
    if first.warm:
        return cold, first
    await warm.warmed()
    await rehearsed(warm)
    return cold, await run_process(spec, timeout=60, launch=warm.launch)


async def rehearsed(warm: WarmPython) -> None:
    """Wait until a fork of each interpreter has rehearsed and asks for its request, where the system shows that."""
    for parent in warm.parents:
        while os.access("/proc/self/syscall", os.R_OK) and not parent.ended.done():
            if any(map(asks, psutil.Process(parent.process.pid).children())):
                break
            await asyncio.sleep(0.001)


def asks(process: psutil.Process) -> bool:
    try:
        return Path(f"/proc/{process.pid}/syscall").read_text().startswith(RECVMSG)
    except OSError:  # a run that has just ended
        return False


def what_counts(finished: ProcessResult) -> tuple[object, ...]:
    texts = (re.sub(rb"0x[0-9a-f]+", b"0x", text) for text in (finished.stdout, finished.stderr))
    return finished.exit_code, finished.signal, *texts, finished.truncated


def check(runner: asyncio.Runner, warm: WarmPython, spec: ProcessSpec) -> ProcessResult:
    cold, warmed = runner.run(both(warm, spec))

    assert warmed.warm
    assert what_counts(warmed) == what_counts(cold)
    return warmed


@pytest.mark.parametrize("name", [*SCRIPTS, *BINARY])
def test_a_script_runs_alike(name: str, runner: asyncio.Runner, warm: WarmPython, folder: Path) -> None:
    """The same output, errors and exit code, whatever the script does."""
    script = folder / "script.py"
    script.write_bytes(BINARY[name] if name in BINARY else SCRIPTS[name].encode())

    command = f"{sys.executable} script.py one 'two three'"
    check(runner, warm, ProcessSpec(argv=("/bin/sh", "-c", command), cwd=str(folder), env=environment({}), stdin=STDIN))


@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=list(ENVIRONMENTS))
@pytest.mark.parametrize(
    "name", ["streams", "unicode", "locale", "time zone", "warnings", "environment", "interleaved"]
)
def test_the_environment_counts_alike(
    name: str, env: dict[str, str], runner: asyncio.Runner, warm: WarmPython, folder: Path
) -> None:
    """What an interpreter reads from its environment while starting up, a warm one has read too."""
    (folder / "script.py").write_text(SCRIPTS[name])

    argv = (sys.executable, str(folder / "script.py"))
    check(runner, warm, ProcessSpec(argv=argv, cwd=str(folder), env=environment(env), stdin=STDIN))


def others() -> list[str]:
    """Other Pythons that hooks may name: those in `HOOKLINE_PYTHONS`, and those on the path."""
    named = os.environ.get("HOOKLINE_PYTHONS", "").split(os.pathsep)
    found = (shutil.which(f"python3.{minor}") for minor in range(8, 20) if minor != sys.version_info.minor)
    return [path for path in dict.fromkeys([*named, *found]) if path and _works(path)]


def _works(path: str, code: str = "") -> bool:
    return subprocess.run((path, "-c", code), capture_output=True, check=False).returncode == 0


def test_scripts_run_alike_in_other_pythons(runner: asyncio.Runner, warm: WarmPython, folder: Path) -> None:
    """The warm interpreter is the one that the hook names, older or newer than ours; before 3.11 there is none."""
    pythons = others() or pytest.skip("no other Python here")
    different = {}
    current = {python: _works(python, "import sys; sys.exit(sys.version_info < (3, 11))") for python in pythons}
    for python, (name, text) in itertools.product(pythons, SCRIPTS.items()):
        (folder / "script.py").write_text(text)
        spec = ProcessSpec(argv=(python, "script.py", "one"), cwd=str(folder), env=environment({}), stdin=STDIN)
        cold, warmed = runner.run(both(warm, spec))
        assert warmed.warm is current[python]
        if what_counts(warmed) != what_counts(cold):
            different[python, name] = (what_counts(warmed), what_counts(cold))

    assert different == {}
