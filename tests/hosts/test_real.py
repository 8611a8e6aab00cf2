"""One hook file, installed with `hookline install`, on the real agent CLIs: what was promised is what happens.

Each CLI runs headless against a scripted model on loopback, in a home of its own. A CLI that is not on this machine is
a skip that says how to get it; the slow ones run with HOOKLINE_HOSTS=all (`make hosts`).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.hosts.host import able
from hookline.hosts.table import find
from tests.hosts.lab import NAMES, Lab, installed, laid_out

pytestmark = [pytest.mark.real_hosts, pytest.mark.timeout(900)]

HOOKS = """
import os, time
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

@hooks.on(UserPromptSubmit)
def prompts(event):
    if "forbidden" in event.prompt: return deny("REASON_PROMPT")

@hooks.on(PostToolUse, match="Bash")
def after(event):
    if event.tool_input["command"].endswith("-replaced"): return replace_output("REASON_NEW_OUTPUT")
    if event.tool_input["command"].endswith("-noted"): return context("REASON_CONTEXT")
"""


@pytest.fixture(params=NAMES)
def lab(request: pytest.FixtureRequest, program: Path, tmp_path: Path) -> Iterator[Lab]:
    with laid_out(request.param, program, tmp_path, HOOKS) as lab:
        yield lab


def test_calls_are_allowed_denied_rewritten_and_refused_when_a_hook_fails(lab: Lab) -> None:
    """Allowed: it runs. Denied, crashed, exited, hung: it does not, and the model reads why."""
    rewrites = able(find(lab.name), "rewrite")
    done = lab.run("please run it", "allowed", "denied", "crashed", "exited", *(["old"] if rewrites else []), "hung")

    assert lab.ran("allowed"), done.stderr[-2000:]
    assert [kind for kind in ("denied", "crashed", "exited", "hung", "old") if lab.ran(kind)] == []
    assert lab.ran("new") is rewrites
    assert done.model.read("REASON_DENIED")
    assert done.model.read("REASON_CRASHED")
    assert done.model.read("ended without an answer")
    assert done.model.read("gave no reply within")


def test_a_prompt_is_refused_where_the_host_can(lab: Lab) -> None:
    """The model never sees it; without the word it does."""
    done = lab.run("this is forbidden", "allowed")

    if able(find(lab.name), "gate prompt"):
        assert done.model.turns_asked == 0
        assert not lab.ran("allowed")
    else:
        assert lab.ran("allowed")


def test_what_a_hook_says_after_a_call_reaches_the_model_where_the_host_can(lab: Lab) -> None:
    """Context is read; a replaced output takes the place of the old one, which is not read."""
    host = find(lab.name)
    done = lab.run("please run it", "replaced", "noted")

    assert done.model.read("REASON_CONTEXT") is able(host, "context")
    assert done.model.read("REASON_NEW_OUTPUT") is able(host, "replace output")
    assert done.model.read(f"2000{len('replaced')}") is not able(host, "replace output")


def test_the_users_hooks_and_a_projects_both_hold(lab: Lab, program: Path, tmp_path: Path) -> None:
    """Neither file silences the other, where a project can have one."""
    if not find(lab.name).config.project:
        pytest.skip(f"{lab.name} has no hooks of a project")
    theirs = tmp_path / "project_hooks.py"
    theirs.write_text(HOOKS.replace("denied", "refused").replace("DENIED", "REFUSED"))
    installed(lab, program, theirs, scope="project")

    done = lab.run("please run it", "denied", "refused", "allowed")

    assert [kind for kind in ("denied", "refused", "allowed") if lab.ran(kind)] == ["allowed"], done.stderr[-2000:]
    assert (done.model.read("REASON_DENIED"), done.model.read("REASON_REFUSED")) == (True, True)


def test_a_gate_stays_shut_when_hookline_is_gone(lab: Lab, program: Path) -> None:
    """Removed, moved, or its Python was: the entry in the host's file still denies."""
    program.unlink()

    done = lab.run("please run it", "allowed")

    assert not lab.ran("allowed"), done.stdout[-2000:]
