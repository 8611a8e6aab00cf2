"""One headless run of an agent CLI, in a world of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from hookline.core.interpreter import python_argv
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.survey import Binary, lab
from hookline.hosts.proof_recipe import FileEdit, ProofRecipe, World
from hookline.hosts.prove.model import ModelTurn, ScriptedModel, serving
from hookline.processes.tree import MARKER, Group, new_marker


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
    """A home and a project of their own, which are gone afterwards."""
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
    agent: ProofRecipe, place: Workspace, prompt: str, turns: Sequence[ModelTurn], *,
    inner: Sequence[ModelTurn] = (), env: Mapping[str, str] = MappingProxyType({}), limit: float = 120.0,
) -> ProgramRun:  # fmt: skip
    """Let an agent work on a prompt, its model following the script; it ends with us, also when we are killed.

    `inner` is the script of the agents that it starts itself.
    """
    ending = [ModelTurn(tools=(call,)) for call in agent.ending]
    with serving([*turns, *ending], [*inner, *ending] if inner else (), prompt if inner else "") as model:
        world = World(place.home, place.project, model.url)
        environ = {**_environment(place), **agent.env(world), **env}
        if agent.setup:
            words = [str(place.binary.path), *agent.setup(world)]
            subprocess.run(words, env=environ, cwd=place.project, capture_output=True, timeout=60, check=False)
        for edit in agent.edits(world):
            apply_edit(place.home, edit)
        started = time.monotonic()
        argv = [str(place.binary.path), *agent.argv(world, prompt)]
        code, out, err = _run(argv, world, environ, (min(limit, agent.to_the_model), limit), model)
        return ProgramRun(code, out, err, time.monotonic() - started, model)


def apply_edit(home: Path, edit: FileEdit) -> None:
    """Set the values of an edit in a file below a home."""
    path = home / edit.path
    text = path.read_text() if path.exists() else ""
    put = toml_edit.set_value if path.suffix == ".toml" else jsonc.put
    if edit.without and text:
        text = toml_edit.remove_value(text, edit.without)
    for key, value in edit.values.items():
        text = put(text, key, value)
    for array, row in edit.rows.items():
        text = toml_edit.remove_rows(text, array, lambda one, name=row["name"]: one.get("name") == name)  # type: ignore[misc]
        text = toml_edit.add_row(text, array, row)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _environment(place: Workspace) -> dict[str, str]:
    """What every agent's process gets: a home of its own, and nothing of the user's keys."""
    node = lab() / "node24" / "node_modules" / "node" / "bin"
    path = os.environ.get("PATH", "/usr/bin:/bin")
    if lab() in place.binary.path.parents and node.is_dir():
        path = f"{node}:{path}"
    return {"PATH": path, "HOME": str(place.home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1", "TMUX_TMPDIR": str(place.home)}  # fmt: skip


def _run(
    argv: list[str], world: World, env: Mapping[str, str], limits: tuple[float, float], model: ScriptedModel
) -> tuple[int | None, str, str]:
    marker = new_marker()
    process = subprocess.Popen(
        argv, cwd=world.project, env={**env, MARKER: marker}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with _ended_after_us(process.pid, marker):
        try:
            out, err = _output(process, limits, model)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            code = None
            end_all(process.pid, marker)
            out, err = process.communicate()
        finally:
            end_all(process.pid, marker)
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def _output(process: subprocess.Popen[bytes], limits: tuple[float, float], model: ScriptedModel) -> tuple[bytes, bytes]:
    """What a run prints; one that has not asked its model by the first of the limits will not do so later."""
    first, limit = limits
    try:
        return process.communicate(timeout=first)
    except subprocess.TimeoutExpired:
        if not model.requests or limit <= first:
            raise
        return process.communicate(timeout=limit - first)


def end_all(leader: int, marker: str) -> None:
    """The agent and everything it has started, also what left its group: a hub, a terminal server."""

    async def end() -> None:
        over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        over.set_result(None)
        await Group(leader, marker).end(over)

    asyncio.run(end())


_KEEPER = "sys.stdin.read(); from hookline.hosts.prove.run import end_all; end_all(int(sys.argv[1]), sys.argv[2])"


@contextmanager
def _ended_after_us(leader: int, marker: str) -> Iterator[None]:
    """A process that waits for our end, whatever the reason, and then ends the agent."""
    words = python_argv(_KEEPER, str(leader), marker)
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as keeper:
        try:
            yield
        finally:
            keeper.kill()
