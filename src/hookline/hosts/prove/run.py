"""One headless run of an agent CLI, in a world of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from hookline.hosts.install.installed import Binary
from hookline.hosts.prove.agents import Agent, World, environment
from hookline.hosts.prove.model import ScriptedModel, serving
from hookline.hosts.prove.protocols import ModelTurn


class ProgramRun(NamedTuple):
    """How a run ended."""

    exit_code: int | None
    """`None` if it had to be ended."""
    stdout: str
    stderr: str
    seconds: float
    model: ScriptedModel


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A home and a project that nobody else uses, and that are gone afterwards."""
    with TemporaryDirectory(prefix="hookline-prove-", ignore_cleanup_errors=True) as name:
        base = Path(os.path.realpath(name))
        home, project = base / "home", base / "project"
        home.mkdir()
        project.mkdir()
        git = ["git", "-c", "user.email=a@b", "-c", "user.name=x"]
        with suppress(OSError):
            subprocess.run([*git, "init", "-q"], cwd=project, check=False, capture_output=True)
            subprocess.run(
                [*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=False, capture_output=True
            )
        yield home, project


class Workspace(NamedTuple):
    """Where an agent runs: its binary, its home, its project."""

    binary: Binary
    home: Path
    project: Path


def run(
    agent: Agent, place: Workspace, prompt: str, turns: Sequence[ModelTurn], *,
    env: Mapping[str, str] = MappingProxyType({}), limit: float = 120.0,
) -> ProgramRun:  # fmt: skip
    """Let an agent work on a prompt, its model following the script."""
    with serving([*turns, *agent.ending]) as model:
        world = World(place.home, place.project, model.url, place.binary)
        agent.prepare(world)
        started = time.monotonic()
        try:
            argv = [str(place.binary.path), *agent.argv(world, prompt)]
            code, out, err = _run(argv, world, environment(world, agent, env), limit)
        finally:
            agent.clean_up(world)
        return ProgramRun(code, out, err, time.monotonic() - started, model)


def _run(argv: list[str], world: World, env: Mapping[str, str], limit: float) -> tuple[int | None, str, str]:
    process = subprocess.Popen(
        argv, cwd=world.project, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=limit)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        code = None
        _end(process)
        out, err = process.communicate()
    finally:
        _end(process)
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The agent and what it has started, if anything is left of it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
