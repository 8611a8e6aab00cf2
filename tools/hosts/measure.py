"""One host's battery: its real CLI, hooks put in place by `hookline install`, a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hookline.hosts.decode import unknown_offers
from hookline.hosts.host import Host, ProofRecipe, able
from hookline.hosts.install.survey import find_binary
from hookline.hosts.prove.model import SUBTASK, ModelTurn
from hookline.hosts.prove.run import ProgramRun, Workspace, folders, run, trust_folder
from hookline.hosts.table import AGENTS, find
from tools.hosts.families import FAMILIES, Call, with_family

CALLS = ("allow", "deny", "crash", "exit", "hang", "rewrite")
CASES = (*CALLS, "gate prompt", "subagents", "hold", "files", "patches", "known tools")
_LONG = 120
"""Seconds that a hook is held at most, to see that the answer comes before the host gives up."""

_WORDS = {"deny": "REASON_DENY", "crash": "REASON_CRASH", "exit": "ended without an answer", "hang": "gave no reply"}

_HOOKS = """
import asyncio, os, time
from hookline import Hooks, deny, rewrite
from hookline.events import PreToolUse, UserPromptSubmit

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash", timeout=5)
def judge(event):
    kind = event.tool_input["command"].rpartition("-")[2]
    if kind == "deny": return deny("REASON_DENY")
    if kind == "crash": raise ValueError("REASON_CRASH")
    if kind == "exit": os._exit(0)
    if kind == "hang": time.sleep(600)
    if kind == "rewrite": return rewrite({**event.tool_input, "command": event.tool_input["command"] + "n"})

@hooks.on(PreToolUse, match="Bash", timeout=500)
async def hold(event):
    if event.tool_input["command"].endswith("-hold"): await asyncio.sleep(600)

@hooks.on(PreToolUse, match="Write|Edit")
def files(event):
    return deny("REASON_FILE") if event.tool_input["file_path"].endswith("-deny.txt") else None

@hooks.on(UserPromptSubmit)
def prompts(event):
    if "forbidden" in event.prompt: return deny("REASON_PROMPT")
"""


def main(argv: list[str]) -> int:
    """Print what one host does, as JSON."""
    found = measure(find(argv[0]))
    print(json.dumps(found) if found.get("cases") else found["skipped"])
    return 0 if found.get("cases") else 1


def measure(host: Host) -> dict[str, Any]:
    """Which cases hold; `None` for what the host cannot do, and a reason if it could not be run."""
    binary, agent = find_binary(host), AGENTS.get(host.name)
    if binary is None or agent is None:
        return {"skipped": f"not on this machine; run tools/hosts/install {host.name}"}
    with TemporaryDirectory(prefix="hookline-hosts-") as folder, folders() as (home, project):
        hooks = Path(folder) / "hooks.py"
        hooks.write_text(_HOOKS)
        _install(host, hooks, home, project)
        trust_folder(host.name, home, project)
        place = Workspace(binary, home, project)
        cases, offered = _calls(host, agent, place)
        cases["gate prompt"] = _prompt(host, agent, place)
        cases["subagents"] = _subagents(host, agent, place)
        cases["hold"] = _hold(host, agent, place)
        cases["patches"], more = _patches(host, agent, place)
        unknown = unknown_offers(host, offered | more)
        cases["known tools"] = not unknown
    if unknown:
        print(f"{host.name} offers tools that are in no table: {', '.join(unknown)}")
    return {"version": binary.version, "cases": cases}


def _install(host: Host, hooks: Path, home: Path, project: Path) -> None:
    words = ["install", host.name, "--hooks", str(hooks), "--scope", "user", "--yes"]
    subprocess.run([sys.executable, "-m", "hookline", *words], check=True, capture_output=True, cwd=project,
                   env={"HOME": str(home), "PATH": os.environ["PATH"]})  # fmt: skip


def _run(
    agent: ProofRecipe, place: Workspace, prompt: str, kinds: list[str], others: Sequence[Call] = ()
) -> ProgramRun:  # fmt: skip
    shell = [agent.bash(f"touch {place.project}/mark-{kind}") for kind in kinds]
    turns = [ModelTurn(tools=(call,)) for call in (*shell, *others)]
    return run(agent, place, prompt, turns, env={"HOOKLINE_SERVICE": "0"}, limit=400)


def _calls(host: Host, agent: ProofRecipe, place: Workspace) -> tuple[dict[str, bool | None], frozenset[str]]:
    """What held of shell lines and files, and the tools that the model was offered."""
    kinds = [kind for kind in CALLS if kind != "rewrite" or able(host, "rewrite")]
    files = [place.project / f"file-{kind}.txt" for kind in ("allow", "deny")]
    done = _run(agent, place, "please run it", kinds, [agent.write(str(file)) for file in files])

    def ran(kind: str) -> bool:
        return (place.project / f"mark-{kind}").exists()

    cases: dict[str, bool | None] = {"allow": ran("allow")}
    cases |= {kind: not ran(kind) and done.model.read(word) for kind, word in _WORDS.items()}
    cases["rewrite"] = ran("rewriten") and not ran("rewrite") if able(host, "rewrite") else None
    cases["files"] = [file.exists() for file in files] == [True, False]
    return cases, done.model.tools


def _patches(host: Host, agent: ProofRecipe, place: Workspace) -> tuple[bool | None, frozenset[str]]:
    """Whether a hook on files holds for the families that edit by patches, and the tools that these were offered."""
    held: bool | None = None
    offered = frozenset[str]()
    for family in FAMILIES.get(host.name, ()):
        files = [place.project / f"{family.model}-{kind}.txt" for kind in ("allow", "deny")]
        patches = [f"*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch" for file in files]
        other = with_family(host.name, agent, family)
        done = _run(other, place, "please apply them", [], [family.patch(patch) for patch in patches])
        held = held is not False and [file.exists() for file in files] == [True, False]
        offered |= done.model.tools
    return held, offered


def _prompt(host: Host, agent: ProofRecipe, place: Workspace) -> bool | None:
    if not able(host, "gate prompt"):
        return None
    return _run(agent, place, "this is forbidden", ["prompt"]).model.turns_asked == 0


def _subagents(host: Host, agent: ProofRecipe, place: Workspace) -> bool | None:
    """Whether a call is refused inside an agent that the host starts; not tried where starting one is refused."""
    if agent.spawn is None or not able(host, "inside subagents"):
        return None
    inner = [ModelTurn(tools=(agent.bash(f"touch {place.project}/mark-{kind}"),)) for kind in ("inner-deny", "over")]
    wait = agent.bash(f"until test -e {place.project}/mark-over; do sleep 0.1; done")
    turns = [ModelTurn(tools=(agent.spawn(SUBTASK),)), ModelTurn(tools=(wait,))]
    done = run(agent, place, "please start an agent", turns, inner=inner, env={"HOOKLINE_SERVICE": "0"}, limit=100)
    ran = [kind for kind in ("inner-deny", "over") if (place.project / f"mark-{kind}").exists()]
    return ran == ["over"] and done.model.read("REASON_DENY")


def _hold(host: Host, agent: ProofRecipe, place: Workspace) -> bool | None:
    """Whether a call is refused whose hook takes longer than the host waits; not tried where it waits for minutes."""
    if host.config.longest > _LONG:
        return None
    done = _run(agent, place, "please run it", ["hold"])
    return not (place.project / "mark-hold").exists() and done.model.read("gave no reply within")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
