"""How long tools take, and how often they fail (user story 3).

    python examples/metrics.py

`Metrics` watches the hooks: every event is counted, every tool call timed. Read it in your program, or let Prometheus
read it (`metrics.serve(port=9464)`).
"""

import asyncio
import tempfile
from pathlib import Path

from hookline import Hooks
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.records import Metrics


async def main(project: Path) -> None:
    metrics = Metrics()
    hooks = Hooks()
    hooks.observe(metrics, inline=True)

    model = Scripted.of(
        {"tools": [["Bash", {"command": "true"}]]},
        {"tools": [["Bash", {"command": "false"}]]},
        {"tools": [["Glob", {"pattern": "*.py"}]]},
        "Done.",
    )
    async with Agent(
        model=model, hooks=hooks, cwd=project, permission_mode="bypassPermissions", persist=False
    ) as agent:
        await agent.run("try some tools")

    for name, tool in metrics.tools().items():
        print(f"{name}: {tool.calls} calls, {tool.errors} failed, p95 {tool.latency.p95:.1f} ms")

    print("\nWhat Prometheus reads:")
    for line in metrics.text().splitlines():
        if line.startswith(("hookline_tool_errors_total", "hookline_tool_duration_seconds_count")):
            print(line)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
