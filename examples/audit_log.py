"""One line of audit.jsonl for everything the agent did (user story 2).

    python examples/audit_log.py

Three tools run: two succeed, one fails. The log has a line for each of them with time, user and result, and lines for
the session's start and end. The lines are chained: `verify` finds any that was changed, removed or moved.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.records import AuditLog

RESULTS = ("PostToolUse", "PostToolUseFailure")
SESSION = ("SessionStart", "SessionEnd")


async def main(project: Path) -> None:
    log = AuditLog(project / "audit.jsonl", user="ada")
    hooks = Hooks()
    hooks.observe(log, inline=True)

    model = Scripted.of(
        {"tools": [["Write", {"file_path": "notes.txt", "content": "buy milk\n"}]]},
        {"tools": [["Bash", {"command": "cat notes.txt"}]]},
        {"tools": [["Bash", {"command": "cat no-such-file"}]]},
        "Done.",
    )
    async with Agent(
        model=model, hooks=hooks, cwd=project, permission_mode="bypassPermissions", persist=False
    ) as agent:
        await agent.run("write a note and read it")
    log.close()

    lines = [json.loads(line) for line in (project / "audit.jsonl").read_text().splitlines()]
    for line in lines:
        if line["event"] in RESULTS:
            outcome = f"failed: {line['error'].splitlines()[0]}" if "error" in line else "succeeded"
            subject = next(iter(line["input"].values())).removeprefix(f"{project}/")
            print(f"{line['user']}: {line['tool']} {subject} {outcome}")
        elif line["event"] in SESSION:
            print(f"{line['user']}: {line['event']} of session {line['run'][:8]}")
    print("tools:", sum(line["event"] in RESULTS for line in lines), "lines; breaks in the chain:", log.file.verify())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
