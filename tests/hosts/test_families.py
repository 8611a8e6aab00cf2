"""What the agents offer a model depends on its name: file tools, patches and unknown tools, once per model family.

`hookline install` puts the hooks in place, the real CLI runs on the scripted model, and its own tools do the work.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hookline.hosts.decode import unknown_offers
from hookline.hosts.host import Host
from hookline.hosts.install.survey import find_binary
from hookline.hosts.prove.run import ProgramRun
from hookline.hosts.table import AGENTS, find
from tests.hosts.lab import NAMES, laid_out, own_program
from tools.hosts.families import FAMILIES, Family, with_family

pytestmark = [pytest.mark.real_hosts]

HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse
from hookline.guards import paths

hooks = Hooks()
hooks.add(paths.stay_inside(undecided="deny"))

@hooks.on(PreToolUse, match="Write|Edit")
def keep_private(event):
    return deny("REASON_FILE") if event.tool_input["file_path"].startswith(event.cwd + "/private/") else None
"""

ODD = {
    "a space before the header": " *** Add File: {}",
    "a tab before the header": "\t*** Add File: {}",
    "a no-break space before the header": "\u00a0*** Add File: {}",
    "no space after the colon": "*** Add File:{}",
    "a line separator in the path": "*** Add File: {}\u2028",
    "a form feed in the path": "*** Add File: {}\x0c",
    "a next-line sign in the path": "*** Add File: {}\x85",
}
"""Headers that one agent or another takes, behind one that every agent takes."""
ROWS = [(name, family) for name in NAMES for family in FAMILIES.get(name, ())]


class Recorded(NamedTuple):
    """What one CLI did with a model of one family."""

    host: Host
    done: ProgramRun
    files: dict[str, str]
    outside: list[str]


def patch(*headers: str) -> str:
    return "\n".join(["*** Begin Patch", *(f"{header}\n+x" for header in headers), "*** End Patch"])


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: f"{row[0]}-{row[1].model}")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    name, family = request.param
    folder = tmp_path_factory.mktemp(f"{name}-{family.model}")
    with laid_out(name, own_program(folder), folder, HOOKS, "0") as lab:
        project = lab.place.project
        outside = project.parent / "outside"
        outside.mkdir()
        (project / "private").mkdir()
        texts = [patch("*** Add File: public.txt"), patch("*** Add File: private/new.txt"),
                 patch("*** Add File: more.txt", "*** Add File: private/second.txt"),
                 patch(f"*** Add File: {outside}/plain.txt"),
                 *(patch(f"*** Add File: ok{at}.txt", odd.format(f"{outside}/odd{at}.txt"))
                   for at, odd in enumerate(ODD.values()))]  # fmt: skip
        calls = [family.patch(text) for text in texts] + list(shell_forms(name, family, outside))
        agent = with_family(name, AGENTS[name], family)
        done = lab._replace(service="0").run("please apply them", others=calls, agent=agent)
        files = {str(path.relative_to(project)): path.read_text() for path in project.rglob("*.txt")}
        yield Recorded(find(name), done, files, sorted(path.name for path in outside.iterdir()))


def shell_forms(name: str, family: Family, outside: Path) -> Iterator[tuple[str, object]]:
    """Codex applies patches of shell lines, too; in code mode a script gives them to the shell."""
    if name != "codex":
        return
    text = patch(f" *** Add File: {outside}/shell.txt")
    for line in (f"apply_patch <<'E'\n{text}\nE", f"<<'E' apply_patch\n{text}\nE", f"'apply_patch' 0<<'E'\n{text}\nE",
                 f"apply_patch >/dev/null <<'E'\n{text}\nE", f"apply_patch '{text}'",
                 f"cat <<'E' | apply_patch\n{text}\nE"):  # fmt: skip
        if family.model == "gpt-6-sol":
            yield "functions::exec", f"text(await tools.exec_command({json.dumps({'cmd': line})}))"
        else:
            yield "exec_command", {"cmd": line}


def test_a_hook_on_files_is_asked_about_every_file_of_a_patch(recorded: Recorded) -> None:
    """What may be written is; nothing in `private/`, also not as the second file of a patch."""
    if recorded.host.refuses_commands_only:
        assert set(recorded.files) == {"public.txt"}  # the first refusal ends the run
        return

    assert "public.txt" in recorded.files, recorded.done.stdout[-2000:] + recorded.done.stderr[-2000:]
    assert [name for name in recorded.files if name.startswith("private/") or name == "more.txt"] == []
    assert recorded.done.model.read("REASON_FILE")


def test_no_form_of_a_patch_leaves_the_project(recorded: Recorded) -> None:
    """However a header is written, and whichever tool applies it."""
    assert recorded.outside == []
    assert recorded.done.model.turns_asked > 1


def test_the_family_is_offered_tools_that_are_known(recorded: Recorded) -> None:
    """A tool that an agent offers and that is in no table fails here, and so in `make hosts`."""
    offered = recorded.done.model.tools

    assert offered, recorded.done.stderr[-2000:]
    assert unknown_offers(recorded.host, offered) == []


OTHER_HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
def lines(event):
    return deny("REASON_LINE") if "refused" in event.tool_input["command"] else None

@hooks.on(PreToolUse, match="Agent")
def agents(event):
    return deny("REASON_AGENT")
"""
LINES: dict[str, list[tuple[str, Any]]] = {
    "claude": [("ToolSearch", {"query": "select:Monitor", "max_results": 1}),
               ("Monitor", {"command": "touch refused", "description": "x", "timeout_ms": 1000, "persistent": False})],
    "grok": [("monitor", {"command": "touch refused", "description": "x", "persistent": False})],
    "qwen": [("tool_search", {"query": "select:monitor"}),
             ("tool_call", {"name": "monitor", "arguments": {"command": "touch refused", "description": "x"}})],
}  # fmt: skip
"""Tools beside the shell that run a line."""
STARTS: dict[str, list[tuple[str, Any]]] = {
    "codex": [("multi_agent_v1::spawn_agent", {"message": "go"})],
    "kimi": [("AgentSwarm", {"description": "x", "prompt_template": "do {{item}}", "items": ["a", "b"]})],
    "cline": [("team_spawn_teammate", {"agentId": "a", "rolePrompt": "go"})],
    "qwen": [("agent", {"description": "x", "prompt": "go", "subagent_type": "general-purpose"})],
    "grok": [("spawn_subagent", {"prompt": "go", "description": "x"})],
    "claude": [("Agent", {"description": "x", "prompt": "go", "subagent_type": "general-purpose"})],
}
"""Tools that hand work to another agent."""


@pytest.mark.parametrize("name", [name for name in NAMES if name in LINES or name in STARTS])
def test_hooks_on_lines_and_agents_are_asked_about_every_such_tool(name: str, tmp_path: Path) -> None:
    """Whatever an agent calls them: the line does not run, no agent is started, and the model reads why."""
    calls = [*LINES.get(name, ()), *STARTS.get(name, ())]
    with laid_out(name, own_program(tmp_path), tmp_path, OTHER_HOOKS, "0") as lab:
        done = lab._replace(service="0").run("please do it", others=calls)
        ran = (lab.place.project / "refused").exists()

    assert not ran
    assert done.model.read("REASON_LINE") is (name in LINES), done.stderr[-2000:]
    assert done.model.read("REASON_AGENT") is (name in STARTS and name != "cline"), done.stderr[-2000:]


@pytest.mark.skipif(sys.platform != "linux", reason="the run takes place in a namespace of Linux")
@pytest.mark.parametrize("host", ["codex", "codex-shell", "cline", "openhands"])
def test_a_host_changes_no_file_by_a_patch_that_was_not_reported(host: str) -> None:
    """Random patches, on the host's own code; `python -m tools.hosts.fuzz_patches HOST 10000` tries more."""
    from tools.hosts.fuzz_patches import confined

    name = host.partition("-")[0]
    if name not in NAMES:
        pytest.skip("HOOKLINE_HOSTS names others")
    if find_binary(find(name)) is None:
        pytest.skip(f"{name} is not on this machine; run tools/hosts/install {name}")
    outcome = confined(host, 150)

    assert outcome.escaped == []
    assert outcome.applied > 15
