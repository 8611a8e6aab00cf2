"""A forked `hookline` does what a started one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import forked
from tests.environ import clean_environ

HOOKS = """
import atexit, os, sys
from hookline import Hooks, deny

hooks = Hooks()
atexit.register(sys.stderr.write, "at the end\\n")

@hooks.on("PreToolUse")
def look(event):
    seen = {"cwd": os.getcwd(), "env": sorted(os.environ.items()), "argv": sys.argv, "path": sys.path,
            "flags": list(sys.flags),
            "fds": sorted(os.listdir("/dev/fd")), "streams": [s.encoding + s.errors for s in (sys.stdin, sys.stderr)]}
    return deny(repr(seen))
"""
EVENT = {
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "rm -rf /", "pad": "x" * 99_999},
}
COMMANDS = {
    "fire": ("hookline.__main__", "fire", "--json", "--hooks", "hooks.py"),
    "pipe": ("hookline.cli.main", "pipe", "--hooks", "hooks.py"),
    "answer": ("hookline.__main__", "answer", "codex", "--hooks", "hooks.py"),
    "guard": ("hookline.__main__", "guard", "commands", "--block", "rm -rf *"),
    "list": ("hookline.cli.main", "list", "--hooks", "hooks.py"),
    "check": ("hookline.cli.main", "check", "--hooks", "missing.py"),
    "trust": ("hookline.cli.main", "trust", "--list"),
    "install": ("hookline.cli.main", "install", "--list"),
    "help": ("hookline.cli.main", "run", "--help"),
    "usage": ("hookline.cli.main",),
    "wrong": ("hookline.cli.main", "fire", "--nonsense"),
}
START_UPS: list[dict[str, str]] = [{}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}]


@pytest.mark.parametrize("name", COMMANDS)
def test_it_says_and_ends_as_one_that_was_started(name: str, tmp_path: Path) -> None:
    """Folder, environment, arguments, module path, open files and streams, whatever the interpreter started with."""
    (tmp_path / "hooks.py").write_text(HOOKS)
    module, *words = COMMANDS[name]
    for start_up in START_UPS[: 2 if name == "pipe" else 1]:
        env = clean_environ(tmp_path, EXTRA="line\nbreak", EMPTY="", **start_up)
        cold = subprocess.run(
            [sys.executable, "-m", module, *words], cwd=tmp_path, env=env, input=json.dumps(EVENT).encode(),
            capture_output=True, check=False,
        )  # fmt: skip
        warm = forked.run(words, cwd=tmp_path, env=env, stdin=json.dumps(EVENT).encode(), module=module)

        assert (steady(warm.stdout), warm.stderr, warm.returncode) == (
            steady(cold.stdout),
            cold.stderr,
            cold.returncode,
        )
        assert cold.stdout + cold.stderr


def steady(said: bytes) -> bytes:
    """Without how long it took."""
    head, found, tail = said.partition(b'"ms":')
    return head + found + tail.partition(b",")[2]


def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    """Each has its own pipes and exit code."""
    env = clean_environ(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: forked.run([f"word{n}"], cwd=tmp_path, env=env, stdin=b"x" * n), range(40)))

    assert [done.returncode for done in found] == [64] * 40
    assert [done.stderr.split(b"`")[1] for done in found] == [f"word{n}".encode() for n in range(40)]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing is forked here")
def test_one_that_does_not_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(("list", "--hooks", "hooks.py"), cwd=tmp_path, env=clean_environ(tmp_path), timeout=0.2)
