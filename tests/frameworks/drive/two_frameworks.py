"""One `Hooks` inside agents of two frameworks."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hookline import Hooks, Verdict, deny
from hookline.events import PreToolUse
from hookline.records.audit.log import AuditLog
from hookline.records.telemetry import Metrics
from tests.frameworks.drive import langchain_sync, pydantic_ai_agent
from tests.frameworks.drive.scenarios import LS, RM, Seen


def one_set_of_hooks() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return played_with(Path(folder) / "audit.jsonl")


def played_with(audit: Path) -> Any:
    hooks, metrics = Hooks(), Metrics()
    explained: list[str] = []
    hooks.observe(AuditLog(audit, sync="line"), inline=True)
    hooks.observe(metrics, inline=True)

    def explain(notice: object) -> None:
        if isinstance(notice, Verdict) and notice.blocked:
            explained.append(notice.explain())

    hooks.observe(explain, inline=True)

    @hooks.on(PreToolUse, match="shell")
    async def no_rm(event: PreToolUse) -> object:
        return deny("never") if "rm" in event.tool_input["command"] else None

    seen = {"langchain": Seen(), "pydantic-ai": Seen()}
    langchain_sync.run(seen["langchain"], [RM, LS, "done"], "hello", hooks, on_ask=None, inner=())
    pydantic_ai_agent.run(seen["pydantic-ai"], [RM, LS, "done"], "hello", hooks, on_ask=None, inner=())
    return {
        "calls": {name: one.calls for name, one in seen.items()},
        "audit": [json.loads(line) for line in audit.read_text().splitlines()],
        "metrics": metrics.text(),
        "explained": explained,
    }


CASES = {one_set_of_hooks.__name__: one_set_of_hooks}
