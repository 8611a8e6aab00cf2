"""Programs that are left to themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookline import Hooks
from hookline.core.hooks.hook import Command
from hookline.events import SessionEnd
from hookline.processes.spawn import ProcessSpec, leave_running
from tests.environ import clean_environ


async def test_it_reads_what_it_is_given_in_its_own_session(tmp_path: Path) -> None:
    """Nobody waits for it; a named pipe says when it is done."""
    os.mkfifo(tmp_path / "done")
    script = 'cat > said; echo "$NAME $(ps -o sid= -p $$)" > done'
    await leave_running(
        ProcessSpec(argv=("sh", "-c", script), cwd=str(tmp_path), env={**os.environ, "NAME": "x"}, stdin=b"y" * 200_000)
    )
    name, sid = (tmp_path / "done").read_text().split()

    assert (name, int(sid) != os.getsid(0)) == ("x", True)
    assert (tmp_path / "said").read_bytes() == b"y" * 200_000


async def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """As for every program."""
    with pytest.raises(OSError, match="nowhere"):
        await leave_running(ProcessSpec(argv=("true",), cwd=str(tmp_path / "nowhere")))


async def test_an_async_hook_on_session_end_may_finish(tmp_path: Path) -> None:
    """Whoever fired the event has closed its hooks by then."""
    for name in ("go", "done"):
        os.mkfifo(tmp_path / name)
    hooks = Hooks()
    hooks.add(SessionEnd, Command(command="read x < go; cat > done", asynchronous=True), timeout=20)
    await hooks.fire(SessionEnd(cwd=str(tmp_path), reason="other"))
    await hooks.aclose(limit=0)
    (tmp_path / "go").write_text("go\n")

    assert '"hook_event_name":"SessionEnd"' in (tmp_path / "done").read_text()


def test_it_outlives_the_run_itself(tmp_path: Path) -> None:
    """`hookline run` has ended, and the hook goes on."""
    for name in ("go", "done"):
        os.mkfifo(tmp_path / name)
    entry = {"type": "command", "command": "read x < go; echo finished > done", "async": True}
    settings = {"hooks": {"SessionEnd": [{"hooks": [entry]}]}}
    (tmp_path / "turns.json").write_text('[{"text": "hi"}]')
    argv = [sys.executable, "-m", "hookline", "run", "-p", "go", "--model", "scripted:turns.json",
            "--setting-sources", "", "--settings", str(settings).replace("'", '"').replace("True", "true")]  # fmt: skip
    env = clean_environ(tmp_path, PATH=os.environ["PATH"])
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
    (tmp_path / "go").write_text("go\n")

    assert done.stdout.strip() == "hi"
    assert (tmp_path / "done").read_text() == "finished\n"
