"""One hook file, installed with `hookline install`, on the real agent CLIs: what was promised is what happens.

Each CLI runs headless against a scripted model on loopback, in a home of its own. A CLI that is not on this machine is
a skip that says how to get it; the slow ones run with HOOKLINE_HOSTS=all (`make hosts`).
"""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from hookline.hosts.host import Host, able
from hookline.hosts.prove.run import ProgramRun
from hookline.hosts.table import AGENTS, find
from tests.hosts.lab import NAMES, installed, laid_out, own_program, own_python
from tests.hosts.tools import HOOKS as TOOL_HOOKS
from tests.hosts.tools import MARKS, REASONS_LOST, SERVER, agent_with_server, tool_calls
from tests.processes.service.conftest import Desk, running

__all__ = ["running"]

pytestmark = [pytest.mark.real_hosts, pytest.mark.timeout(900)]

HOOKS = """
import asyncio, os, time
from hookline import Hooks, context, deny, replace_output, rewrite
from hookline.events import PostToolUse, PreToolUse, UserPromptSubmit

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash", timeout=4)
def judge(event):
    kind = event.tool_input["command"].rpartition("-")[2]
    if kind == "denied": return deny("REASON_DENIED")
    if kind == "crashed": raise ValueError("REASON_CRASHED")
    if kind == "exited": os._exit(0)
    if kind == "hung": time.sleep(600)
    if kind == "old": return rewrite({**event.tool_input, "command": event.tool_input["command"].replace("old", "new")})

@hooks.on(PreToolUse, match="Bash", timeout=500)
async def hold(event):
    if event.tool_input["command"].endswith("-held"): await asyncio.sleep(600)

@hooks.on(UserPromptSubmit)
def prompts(event):
    if "forbidden" in event.prompt: return deny("REASON_PROMPT")

@hooks.on(PostToolUse, match="Bash")
def after(event):
    if event.tool_input["command"].endswith("-replaced"): return replace_output("REASON_NEW_OUTPUT")
    if event.tool_input["command"].endswith("-noted"): return context("REASON_CONTEXT")
"""


PROJECT_HOOKS = """
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash", timeout=4)
def judge(event):
    return deny("REASON_REFUSED") if event.tool_input["command"].endswith("-refused") else None
"""


class Recorded(NamedTuple):
    """What one CLI did: in a run with a call of each kind, in one with a forbidden prompt, in one without hookline."""

    host: Host
    calls: ProgramRun
    prompt: ProgramRun
    inner: ProgramRun | None
    """The run that starts an agent; none if it has no tool for that."""
    gone: ProgramRun
    ran: frozenset[str]
    """The kinds of calls that ran."""
    files: dict[str, str]
    """What the tools that are no commands made or left."""


@pytest.fixture(scope="module", params=NAMES)
def recorded(request: pytest.FixtureRequest, running: Desk, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Three runs in one home and project: starting a CLI costs more than everything it is asked for in a run."""
    folder = tmp_path_factory.mktemp(request.param)
    program, host = own_program(folder), find(request.param)
    with laid_out(host.name, program, folder, HOOKS + TOOL_HOOKS, running.name) as lab:
        if host.config.project:
            theirs = folder / "project_hooks.py"
            theirs.write_text(PROJECT_HOOKS)
            installed(lab, program, theirs, scope="project")
        rewritten = ["old"] if able(host, "rewrite") else []
        refused = ["refused"] if host.config.project else []
        kinds = ["allowed", "denied", *refused, "crashed", "exited", *rewritten, "replaced", "noted", "hung", "held"]
        (folder / "server.py").write_text(SERVER)
        agent = agent_with_server(host.name, [sys.executable, str(folder / "server.py")])
        others = tool_calls(host.name, lab.place.project)
        calls = lab.run("please run it", *kinds, others=others, agent=agent)
        prompt = lab.run("this is forbidden", "prompted")
        inner = lab.run_subagent("inner-denied") if AGENTS[host.name].spawn else None
        own_python(program).unlink()
        gone = lab.run("please run it", "unguarded")
        return Recorded(host, calls, prompt, inner, gone, lab.ran(), files_in(lab.place.project))


def files_in(project: Path) -> dict[str, str]:
    """What the tools that are no commands can have made."""
    paths = [*project.glob("private/*"), *(project / name for name in ("public.txt", "allowed", "denied"))]
    return {str(path.relative_to(project)): path.read_text() for path in paths if path.exists()}


def test_calls_are_allowed_denied_rewritten_and_refused_when_a_hook_fails(recorded: Recorded) -> None:
    """Allowed: it runs. Denied, crashed, exited, hung, or held for too long: it does not, and the model reads why."""
    done, ran = recorded.calls, recorded.ran

    assert "allowed" in ran, done.stderr[-2000:]
    assert ran & {"denied", "crashed", "exited", "hung", "held", "old"} == set()
    assert ("new" in ran) is able(recorded.host, "rewrite")
    assert done.model.read("REASON_DENIED")
    assert done.model.read("REASON_CRASHED")
    assert done.model.read("ended without an answer")
    assert done.model.read("gave no reply within 4 s")
    assert done.model.read("hook `hold")


def test_a_prompt_is_refused_where_the_host_can(recorded: Recorded) -> None:
    """The model never sees it; without the word it does."""
    if able(recorded.host, "gate prompt"):
        assert recorded.prompt.model.turns_asked == 0
        assert "prompted" not in recorded.ran
    else:
        assert "prompted" in recorded.ran


def test_what_a_hook_says_after_a_call_reaches_the_model_where_the_host_can(recorded: Recorded) -> None:
    """Context is read; a replaced output takes the place of the old one, which is not read."""
    host, model = recorded.host, recorded.calls.model

    assert {"replaced", "noted"} <= recorded.ran
    assert model.read("REASON_CONTEXT") is able(host, "context")
    assert model.read("REASON_NEW_OUTPUT") is able(host, "replace output")
    assert model.read("OUTPUT_replaced") is not able(host, "replace output")


def test_hooks_hold_inside_subagents_or_none_is_started(recorded: Recorded) -> None:
    """A denied command does not run in there, and what may run does; where no hook is asked, there is no "in there"."""
    if recorded.inner is None:
        pytest.skip(f"{recorded.host.name} has no tool that starts an agent")
    model = recorded.inner.model

    assert "inner-denied" not in recorded.ran
    assert "private/inner" not in recorded.files
    assert ("over" in recorded.ran) is able(recorded.host, "inside subagents")
    assert model.read("REASON_DENIED") is able(recorded.host, "inside subagents")
    assert model.read("--allow-subagents") is not able(recorded.host, "inside subagents")


def test_the_users_hooks_and_a_projects_both_hold(recorded: Recorded) -> None:
    """Neither file silences the other, where a project can have one."""
    if not recorded.host.config.project:
        pytest.skip(f"{recorded.host.name} has no hooks of a project")
    done = recorded.calls

    assert recorded.ran & {"denied", "refused", "allowed"} == {"allowed"}, done.stderr[-2000:]
    assert (done.model.read("REASON_DENIED"), done.model.read("REASON_REFUSED")) == (True, True)


def test_one_name_for_each_tool_holds_on_every_agent(recorded: Recorded) -> None:
    """A hook on `Write|Edit` keeps a folder as it is, one on `mcp__demo__.*` refuses a tool; what may run, runs."""
    name, done, files = recorded.host.name, recorded.calls, recorded.files

    assert "public.txt" in files, done.stdout[-2000:] + done.stderr[-2000:]
    assert ("allowed" in files) is (name in MARKS), done.stdout[-2000:] + done.stderr[-2000:]
    private = {path: text for path, text in files.items() if path.startswith("private/")}
    assert private == {"private/old.txt": "old text"}
    assert "denied" not in files
    assert done.model.read("REASON_FILE") is (name not in REASONS_LOST)


def test_a_gate_stays_shut_when_hookline_is_gone(recorded: Recorded) -> None:
    """Removed, moved, or its Python was: the entry in the host's file still denies."""
    assert "unguarded" not in recorded.ran, recorded.gone.stdout[-2000:]
