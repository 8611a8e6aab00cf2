"""Keep the agent inside its project folder (user story 1).

    python examples/file_validation.py

The model wants to write outside the project, then inside. The first write is denied and the model is told why; the
second one happens. The model is scripted; the agent, the guard and the files are real.
"""

import asyncio
import tempfile
from pathlib import Path

from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import PreToolUse
from hookline.guards import paths


async def main(project: Path) -> None:
    hooks = Hooks(project_dir=str(project))
    hooks.add(paths.stay_inside())

    # Ask the hooks yourself, without any agent:
    event = PreToolUse(cwd=str(project), tool_name="Write", tool_input={"file_path": "/etc/passwd", "content": "x"})
    verdict = await hooks.fire(event)
    print("write /etc/passwd:", "denied by" if verdict.blocked else "passed", verdict.decided_by)

    # The same hooks around an agent:
    model = Scripted.of(
        {"tools": [["Write", {"file_path": "../outside.txt", "content": "escaped"}]]},
        {"tools": [["Write", {"file_path": "hello.txt", "content": "hello"}]]},
        "I wrote one of two files.",
    )
    async with Agent(model=model, hooks=hooks, cwd=project, permission_mode="acceptEdits", persist=False) as agent:
        result = await agent.run("write two files")

    print("the agent says:", result.text)
    print("outside.txt exists:", (project.parent / "outside.txt").exists())
    print("hello.txt contains:", (project / "hello.txt").read_text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        asyncio.run(main(project))
