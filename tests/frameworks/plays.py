"""What came of all that is played on the real frameworks: one process per environment, once in a run of the tests."""

import functools
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.core.files import locked
from tools.frameworks import ROOT, run_in

DRIVE = Path(__file__).parent / "drive"
MARK = re.compile(r"<!-- environment: ([\w-]+) -->")
PAGES = {path: found[1] for path in sorted((ROOT / "docs").rglob("*.md")) if (found := MARK.search(path.read_text()))}
MODULES = {
    "agent-framework": ("agent_framework_run", "agent_framework_stream", "odd_agent_framework"),
    "agent-hooks": ("agent_hooks_host",),
    "crewai": ("crewai_crew", "crewai_native", "odd_crewai"),
    "google-adk": ("google_adk_runner", "odd_google_adk"),
    "langchain": ("langchain_sync", "langchain_async", "langchain_stream", "odd_langchain", "flow_langchain"),
    "openai-agents": ("openai_agents_run", "openai_agents_stream", "odd_openai_agents", "flow_openai_agents"),
    "pydantic-ai": ("pydantic_ai_agent", "pydantic_ai_stream", "odd_pydantic_ai", "two_frameworks"),
    "strands": ("strands_agent", "strands_stream", "odd_strands"),
}
"""What `drive/` has for each environment."""

LEFT = "left behind"
shared: Path | None = None
"""A folder that all workers of a run have in common, if there is a run: what one of them has played, all can read."""


def played(environment: str, name: str) -> Any:
    """What came of a module of `drive/`, or of a page (by its path)."""
    facts, errors = _all_of(environment)
    assert name in facts, f"{name} came to no end:\n{errors[-4000:]}"
    return facts[name]


@functools.cache
def _all_of(environment: str) -> tuple[Mapping[str, Any], str]:
    if shared is None:
        return _play(environment)
    file = shared / f"{environment}.json"
    with locked(shared / f"{environment}.lock"):
        if not file.exists():
            file.write_text(json.dumps(_play(environment)))
    facts, errors = json.loads(file.read_text())
    return facts, errors


def _play(environment: str) -> tuple[dict[str, Any], str]:
    """Pages first, which import what they say and no more."""
    pages = [str(path) for path, where in PAGES.items() if where == environment]
    with tempfile.TemporaryDirectory() as folder:
        names = (*pages, *MODULES.get(environment, ()))
        starts = [names] if hasattr(os, "fork") else [(name,) for name in names]
        done = [run_in(environment, str(DRIVE), *some, TMPDIR=folder) for some in starts]
        left = [path.name for path in Path(folder).iterdir()]
    found = re.findall(r"^FACTS (\S+) (.*)$", "\n".join(one.stdout for one in done), re.MULTILINE)
    errors = "\n".join(one.stderr for one in done)
    return {**{name: json.loads(facts) for name, facts in found}, LEFT: left}, errors
