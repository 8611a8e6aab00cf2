"""Approve safe commands without a prompt, block the rest (user story 4).

    python examples/auto_approval.py

Every command needs permission here (the `ask` rule). Nobody sits at the keyboard: the hook on PermissionRequest
answers. `ls -la` is on its list and runs; `rm` is not, and is blocked.
"""

import asyncio
import tempfile
from pathlib import Path

from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.events import PermissionRequest
from hookline.guards import approvals
from hookline.guards.permissions import read_rules


async def main(project: Path) -> None:
    hooks = Hooks()
    hooks.add(approvals.auto(["ls *", "git status"], otherwise="block"))

    # Ask the hook yourself:
    for command in ("ls -la", "ls -la && rm -rf /", "rm -rf /"):
        event = PermissionRequest(cwd=str(project), tool_name="Bash", tool_input={"command": command})
        verdict = await hooks.fire(event)
        print(f"{command!r}: {verdict.decision}, {verdict.reason}")

    # The same hook around an agent:
    (project / "precious.txt").write_text("keep me")
    model = Scripted.of(
        {"tools": [["Bash", {"command": "ls -la"}]]},
        {"tools": [["Bash", {"command": "rm precious.txt"}]]},
        "I looked around.",
    )
    rules = read_rules({"ask": ["Bash"]})
    async with Agent(model=model, hooks=hooks, cwd=project, rules=rules, persist=False) as agent:
        result = await agent.run("look around")

    print("denied in the run:", [denial["tool_input"]["command"] for denial in result.denials])
    print("precious.txt exists:", (project / "precious.txt").exists())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
