"""Shell commands that go on while the conversation does: started by Bash's `run_in_background`, ended with the session.

A job's output goes to a file the model can read. When it ends, `on_done` is told (the loop turns that into a
notification). `aclose` ends every job and everything its commands left running: nothing outlives the session.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from hookline.agent.tools.shell import Shell
from hookline.sandbox.warm import WarmStarter


@dataclass
class Job:
    """One background command; `status` is `running`, `completed`, `failed` or `killed`."""

    id: str
    command: str
    output: Path
    description: str = ""
    tool_use_id: str = ""
    status: str = "running"
    exit_code: int | None = None
    shell: Shell | None = field(default=None, repr=False)

    def summary(self) -> dict[str, Any]:
        """The job as Stop hooks are told of it (`background_tasks`)."""
        return {
            "id": self.id,
            "type": "shell",
            "status": self.status,
            "description": self.description,
            "command": self.command,
        }


class Jobs:
    """The session's background commands, and who starts its confined ones."""

    def __init__(self) -> None:
        self.on_done: Callable[[Job], None] | None = None
        self.starter: WarmStarter = WarmStarter()
        self._jobs: dict[str, Job] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._strays: list[Shell] = []
        self._folder: Path | None = None

    def start(self, shell: Shell, description: str = "", tool_use_id: str = "") -> Job:
        """Start a command and return at once."""
        name = "b" + token_hex(4)
        job = Job(name, shell.command, self.folder() / f"{name}.output", description, tool_use_id, shell=shell)
        with job.output.open("wb") as sink:
            shell.start(stdout=sink.fileno())
        self._jobs[name] = job
        watcher = asyncio.create_task(self._watch(job, shell), name=f"job {name}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return job

    def get(self, id: str) -> Job | None:
        """The job of that id, if there is one."""
        return self._jobs.get(id)

    def running(self) -> list[Job]:
        """The jobs that still go on."""
        return [job for job in self._jobs.values() if job.status == "running"]

    async def stop(self, id: str) -> Job | None:
        """End a job with everything it started; None when there is none of that id."""
        job = self._jobs.get(id)
        if job and job.status == "running" and job.shell:
            job.status = "killed"
            await job.shell.end()
        return job

    def leave(self, shell: Shell) -> None:
        """Remember a command that ended while something it started goes on (`server &`)."""
        self._strays.append(shell)

    def folder(self) -> Path:
        """Where outputs lie, until the session ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="hookline-jobs-"))
        return self._folder

    async def aclose(self) -> None:
        """End what still runs, wait for it, remove the outputs."""
        await asyncio.gather(*(self.stop(job.id) for job in self.running()))
        if self._watchers:
            await asyncio.wait(set(self._watchers))
        strays, self._strays = self._strays, []
        await asyncio.gather(*(shell.end() for shell in strays))
        await asyncio.to_thread(self.starter.close)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def _watch(self, job: Job, shell: Shell) -> None:
        job.exit_code = await shell.wait()
        shell.close()
        if shell.left_something():
            self.leave(shell)
        if job.status == "running":
            job.status = "completed" if job.exit_code == 0 else "failed"
        if self.on_done:
            self.on_done(job)
