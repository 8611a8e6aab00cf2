"""A home and a project for a real agent CLI, with hooks that `hookline install` put in place.

A CLI that is not on this machine is a skip that says how to get it; the slow ones run with HOOKLINE_HOSTS=all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hookline.hosts.host import ProofRecipe, able
from hookline.hosts.install.survey import find_binary
from hookline.hosts.prove.model import SUBTASK, ModelTurn
from hookline.hosts.prove.run import ProgramRun, Workspace, folders, run, trust_folder
from hookline.hosts.table import AGENTS, find
from tests.environ import clean_environ

QUICK = ("claude", "codex", "gemini", "grok", "copilot")
SLOW = tuple(name for name in AGENTS if name not in QUICK)
CHOSEN = os.environ.get("HOOKLINE_HOSTS", " ".join(QUICK))
NAMES = tuple(AGENTS) if CHOSEN == "all" else tuple(CHOSEN.split())
SERVED = ("claude", "gemini", "grok", "copilot")
"""Where the service answers, as it does for people; on the others each hook is a process that answers by itself."""


class Lab(NamedTuple):
    """A home and a project with hooks installed, and a CLI to run there."""

    name: str
    place: Workspace
    service: str

    def run(
        self,
        prompt: str,
        *kinds: str,
        others: Sequence[tuple[str, dict[str, Any]]] = (),
        agent: ProofRecipe | None = None,
        served: bool = False,
    ) -> ProgramRun:
        """Let the CLI work on a prompt.

        The model asks for one command of each kind, which prints `OUTPUT_<kind>`, then for the other tools. An `agent`
        is one that was told more than `AGENTS` tells it; with `served`, the service answers its hooks.
        """
        agent = agent or AGENTS[self.name]
        commands = [f"printf 'OUTPUT_%s' {kind}; touch {self.place.project}/mark-{kind}" for kind in kinds]
        turns = [ModelTurn(tools=(call,)) for call in (*map(agent.bash, commands), *others)]
        env = {"HOOKLINE_SERVICE": self.service} if served else self._env
        return run(agent, self.place, prompt, turns, env=env, limit=400)

    def run_subagent(self, *kinds: str) -> ProgramRun:
        """Let the CLI start an agent that runs one command of each kind, and wait for the last of them."""
        agent, project = AGENTS[self.name], self.place.project
        assert agent.spawn is not None
        inner = [ModelTurn(tools=(agent.bash(f"touch {project}/mark-{kind}"),)) for kind in kinds]
        if not find(self.name).refuses_commands_only:  # there a refused file ends the agent
            inner.append(ModelTurn(tools=(agent.write(f"{project}/private/inner"),)))
        inner.append(ModelTurn(tools=(agent.bash(f"touch {project}/mark-over"),)))
        wait = f"until test -e {project}/mark-over; do sleep 0.1; done"
        turns = [ModelTurn(tools=(agent.spawn(SUBTASK),))]
        if able(find(self.name), "inside subagents"):
            turns.append(ModelTurn(tools=(agent.bash(wait),)))
        return run(agent, self.place, "please start an agent", turns, inner=inner, env=self._env, limit=100)

    @property
    def _env(self) -> dict[str, str]:
        return {"HOOKLINE_SERVICE": self.service if self.name in SERVED else "0"}

    def ran(self) -> frozenset[str]:
        """The kinds of commands that ran."""
        return frozenset(path.name.removeprefix("mark-") for path in self.place.project.glob("mark-*"))


LIMIT = 8
"""Seconds that a host waits at most, as far as the program of a test knows."""

_PROGRAM = f"""from types import MappingProxyType

import msgspec

from hookline.hosts import table

replace = msgspec.structs.replace
rows = [replace(host, config=replace(host.config, longest={LIMIT})) for host in table.HOSTS.values()]
table.HOSTS = MappingProxyType({{host.name: host for host in rows}})

from hookline.__main__ import main

main()
"""


def own_program(folder: Path) -> Path:
    """A `hookline` with an interpreter of its own, which a test may remove; it knows that no host waits long."""
    path = folder / "bin" / "hookline"
    path.parent.mkdir()
    python = own_python(path)
    python.symlink_to(os.path.realpath(sys.executable))
    settings = Path(sys.prefix, "pyvenv.cfg")
    if settings.exists():
        (folder / "pyvenv.cfg").write_text(settings.read_text())
        (folder / "lib").symlink_to(Path(sys.prefix, "lib"))
    path.write_text(f"#!{python}\n{_PROGRAM}")
    path.chmod(0o755)
    return path


def own_python(program: Path) -> Path:
    """The interpreter that a host's entries start."""
    return program.with_name("python")


@contextmanager
def laid_out(
    name: str, program: Path, tmp_path: Path, text: str, service: str, settings: dict[str, Any] | None = None
) -> Iterator[Lab]:
    """A hook file, installed for a CLI that is on this machine; `settings` are the user's own."""
    binary = find_binary(find(name))
    if binary is None:
        pytest.skip(f"{name} is not on this machine; run tools/hosts/install {name}")
    hooks = tmp_path / "hooks.py"
    hooks.write_text(text)
    with folders() as (home, project):
        if settings is not None:
            (home / ".claude").mkdir()
            (home / ".claude" / "settings.json").write_text(json.dumps(settings))
        lab = Lab(name, Workspace(binary, home, project), service)
        installed(lab, program, hooks)
        trust_folder(name, home, project)
        yield lab


def installed(lab: Lab, program: Path, hooks: Path, scope: str = "user") -> None:
    """Install a hook file for a lab's CLI."""
    words = ["install", lab.name, "--hooks", str(hooks), "--scope", scope, "--yes"]
    done = subprocess.run([program, *words], cwd=lab.place.project, capture_output=True, check=False,
                          env=clean_environ(lab.place.home))  # fmt: skip
    assert done.returncode == 0, done.stderr
