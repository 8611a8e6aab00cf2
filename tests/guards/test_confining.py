"""Guards that hand a line to the kernel: what they rewrite, what they still deny, and what they tell afterwards."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from hookline import Hooks
from hookline.core.calls import call_notes, observed_effect
from hookline.core.engine import Verdict
from hookline.errors import HookError
from hookline.events import PostToolUse, PreToolUse
from hookline.guards import commands, paths, sandboxing
from hookline.records.audit.log import AuditLog, read
from hookline.replies import Decision
from hookline.sandbox.judged_line import Reporter
from hookline.sandbox.policy import Policy

pytestmark = pytest.mark.skipif(bool(sandboxing.unavailable()), reason=sandboxing.unavailable() or "lines can be held")

Order = Literal["sequential", "parallel"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    return folder


def guarded(project: Path, order: Order = "sequential") -> Hooks:
    hooks = Hooks(order=order)
    hooks.add(paths.stay_inside(project, confine="auto"))
    hooks.add(commands.block(["rm -rf *", "sudo *"], confine="auto"))
    return hooks


async def asked(hooks: Hooks, project: Path, line: str, call: str = "toolu_1") -> Verdict:
    given = {"command": line, "description": "as asked"}
    return await hooks.fire(PreToolUse(cwd=str(project), tool_name="Bash", tool_use_id=call, tool_input=given))


def run(verdict: Verdict, project: Path) -> subprocess.CompletedProcess[str]:
    """What a host does with the verdict: run the command in its shell."""
    assert verdict.input is not None
    line = f"{verdict.input['command']}\npwd -P"
    return subprocess.run(["bash", "-c", line], cwd=project, capture_output=True, text=True, check=False, timeout=60)


async def told(hooks: Hooks, project: Path, verdict: Verdict, call: str = "toolu_1") -> Verdict:
    given: dict[str, Any] = verdict.input or {}
    return await hooks.fire(PostToolUse(cwd=str(project), tool_name="Bash", tool_use_id=call, tool_input=given))


DOUBTFUL = [
    "python3 -c 'print(1)'",
    "source .venv/bin/activate && pytest",
    'cp notes "$DEST"',
    "python3 - <<'E'\nprint(1)\nE",
    'eval "$CMD"',
    "rm -r build",
    "$EDITOR notes",
]


@pytest.mark.parametrize("line", DOUBTFUL)
async def test_what_reading_cannot_tell_is_held_instead_of_asked_about(project: Path, line: str) -> None:
    """Without a kernel that can hold it, the same line is asked about or passes as it is."""
    verdict = await asked(guarded(project), project, line)

    assert (verdict.decision, verdict.word) == (Decision.PASS, "REWRITE")
    assert verdict.input is not None
    assert shlex.split(verdict.input["command"])[-3:] == ["bash", "-c", line]
    assert verdict.input["description"] == "as asked"


async def test_what_reading_is_sure_of_is_denied_before_anything_runs(project: Path) -> None:
    """Text is still the first answer: at once, and with its reason."""
    hooks = guarded(project)
    verdicts = [await asked(hooks, project, line) for line in ("rm -rf build", "echo x > /etc/hosts", "true; sudo id")]

    assert [verdict.decision for verdict in verdicts] == [Decision.DENY] * 3
    assert verdicts[0].reason == "`rm -rf build` is blocked by the pattern `rm -rf *`"


async def test_a_file_outside_that_is_not_there_is_left_to_the_kernel(project: Path) -> None:
    """It refuses to make it and says how to allow it; nothing is lost by the attempt, and no person is interrupted."""
    verdict = await asked(guarded(project), project, f"echo x > {project.parent}/new; echo y > made")
    done = run(verdict, project)

    assert not (project.parent / "new").exists()
    assert (project / "made").read_text() == "y\n"
    assert f"refused to write `{project.parent}/new`" in done.stderr


@pytest.mark.parametrize("order", ["sequential", "parallel"])
async def test_both_guards_hold_the_line_whichever_rewrote_it_last(project: Path, order: Order) -> None:
    """Rewrites at the same time lose one another; the policies do not."""
    hooks = guarded(project, order)
    line = 'x=$(printf rm); mkdir -p kept; $x -rf kept; python3 -c \'open("../outside", "w")\'; echo done > inside'
    verdict = await asked(hooks, project, line)
    done = run(verdict, project)
    after = await told(hooks, project, verdict)

    assert sorted(path.name for path in project.iterdir()) == ["inside", "kept", "sub"]
    assert not (project.parent / "outside").exists()
    assert "refused `rm -rf kept`: the pattern `rm -rf *` (commands.block)" in done.stderr
    assert f"refused to write `{project.parent}/outside`: it is outside `{project}` (paths.stay_inside)" in done.stderr
    assert [text.partition("\n")[0] for text in after.context] == [
        "paths.stay_inside refused this while the line ran; its text had not shown it:",
        "commands.block refused this while the line ran; its text had not shown it:",
    ]
    assert "to allow it, add `--also" in after.context[0]
    assert "refused `rm -rf kept`" in after.explain()


async def test_nothing_is_told_where_nothing_was_refused(project: Path) -> None:
    """And nothing stays behind."""
    hooks = guarded(project)
    verdict = await asked(hooks, project, "echo hi")
    run(verdict, project)
    after = await told(hooks, project, verdict)

    assert (after.context, [*(project.parent / "state/hookline/confine").glob("*[!t]")]) == ((), [])


async def test_the_shell_follows_a_line_that_changes_its_folder(project: Path) -> None:
    """As it would have without confinement, exit code included."""
    verdict = await asked(guarded(project), project, "cd sub && (sleep 30 > /dev/null 2>&1 &) && false")
    done = run(verdict, project)

    assert done.stdout == f"{project}/sub\n"


async def test_a_line_that_only_looks_confined_is_confined_all_the_same(project: Path) -> None:
    """A model that writes `hookline confine --write /` gains nothing by it."""
    hooks = guarded(project)
    generous = shlex.join([*sandboxing.launcher(), "--write", "/", "--", "bash", "-c", "touch ../outside"])
    for line in (generous, f"{generous} #", f"{generous}; touch ../outside"):
        verdict = await asked(hooks, project, line)
        if verdict.decision is not Decision.DENY:
            run(verdict, project)
        assert not (project.parent / "outside").exists()


async def test_a_host_that_cannot_rewrite_gets_the_answer_of_the_text(project: Path) -> None:
    """There a doubt is still a question."""
    token = sandboxing.host_rewrites.set(False)
    verdict = await asked(guarded(project), project, 'eval "$CMD"')
    sandboxing.host_rewrites.reset(token)

    assert (verdict.decision, verdict.input) == (Decision.ASK, {"command": 'eval "$CMD"', "description": "as asked"})


def test_another_word_for_confine_is_refused_at_once() -> None:
    """With the words that there are."""
    with pytest.raises(HookError, match="confine must be `auto` or `off`, got `yes`"):
        commands.block(["rm *"], confine="yes")  # type: ignore[arg-type]


async def test_what_nobody_asked_about_afterwards_is_dropped_after_a_day(project: Path, tmp_path: Path) -> None:
    """A host that is asked before calls alone leaves the notes of each; they must not pile up."""
    hooks, folder = guarded(project), tmp_path / "state" / "hookline" / "confine"
    await asked(hooks, project, "make", "old")
    for path in (*folder.iterdir(), folder.with_suffix(".tidied")):
        os.utime(path, (1, 1))
    await asked(hooks, project, "make", "new")
    await asked(hooks, project, "make", "newer")

    assert sorted(path.name for path in folder.glob("*.policy")) == ["new.policy", "newer.policy"]


async def test_the_record_of_a_call_has_what_the_kernel_saw_of_it(project: Path, tmp_path: Path) -> None:
    """Programs, files, hosts, refusals, as they were, and not what the line's text says; a later call has its own."""
    hooks, log = guarded(project), AuditLog(tmp_path / "audit.jsonl", user="ada")
    hooks.observe(log, inline=True)
    code = 'import socket; socket.socket().connect_ex(("127.0.0.1", 9)); open("../out" + "side", "w")'
    for call, line in (("one", f"w=touch; $w made; python3 -c '{code}'"), ("two", "exec env true")):
        verdict = await asked(hooks, project, line, call)
        run(verdict, project)
        await told(hooks, project, verdict, call)
    assert log.flush()
    first, second = (line["observed"] for line in read(log.file.path) if line["event"] == "PostToolUse")

    assert first["programs"][0].startswith("bash -c")
    assert "touch made" in first["programs"]
    assert str(project / "made") in first["written"]
    assert first["hosts"] == ["127.0.0.1:9"]
    assert [what.partition(":")[0] for what in first["refused"]] == [f"to write `{tmp_path}/outside`"]
    assert second == {"programs": ["bash -c 'exec env true'", "env true", "true"]}


async def test_what_ran_unconfined_has_no_effect_on_record(project: Path, tmp_path: Path) -> None:
    """That nothing is known is not the same as that nothing was done."""
    hooks, log = Hooks(), AuditLog(tmp_path / "audit.jsonl", user="ada")
    hooks.observe(log, inline=True)
    await told(hooks, project, await asked(hooks, project, "true"))
    assert log.flush()

    assert all("observed" not in line for line in read(log.file.path))
    assert not (tmp_path / "state").exists()  # a record leaves nothing behind


def test_effects_beyond_the_limit_are_counted_as_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note stays small whatever a line does, and says that it is not all."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    reporter = Reporter(Policy(call=str(call_notes("s", "t1", ""))))
    for number in range(2_000):
        reporter.saw("written", f"/f{number}\n")
    reporter.saw("host", "10.0.0.1:443")
    effect = observed_effect("s", "t1", "")

    assert effect is not None
    assert (effect["written"][:2], len(effect["written"]), effect["more"]) == (["/f0\n", "/f1\n"], 100, True)


async def test_a_line_that_is_held_is_judged_at_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wildcards are the kernel's business, and those of the patterns around it nobody's: no thread is started."""
    monkeypatch.delattr("asyncio.to_thread")
    verdict = await asked(guarded(project), project, "cat *.py")

    assert verdict.input is not None
    assert sandboxing.unwrapped(verdict.input["command"]) is not None


async def test_a_line_is_told_what_may_be_read_and_written_besides(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the guard shows and leaves unprotected, and the file that its hooks came from, with its folder."""
    module = type(os)("own_hooks")
    module.__dict__.update(hooks=Hooks(), __file__=str(project / "sub" / "hooks.py"))
    monkeypatch.setitem(__import__("sys").modules, "own_hooks", module)
    (project / ".env").write_text("A=1")
    (project / ".vscode").mkdir()
    hooks = Hooks()
    hooks.add(paths.stay_inside(project, confine="auto", show=[project / ".env"], unprotect=[project / ".vscode"]))
    line = "x=.env; cat $x; f=.vscode/a; echo b > $f; cat $f; d=sub; echo x > $d/hooks.py; echo x > $d/other; ls sub"
    done = run(await asked(hooks, project, line), project)

    assert done.stdout.splitlines()[0] == "A=1b"
    assert list((project / "sub").iterdir()) == []
    assert done.stderr.count("is protected (paths.stay_inside)") == 2


async def test_with_read_a_line_that_plainly_reads_outside_is_denied_before_it_runs(project: Path) -> None:
    """Also what the kernel must let programs read, such as the list of users."""
    hooks = Hooks()
    hooks.add(paths.stay_inside(project, read=True, confine="auto"))
    lines = ["cat /etc/passwd", "f=/etc/group; cat $f", "python3 -c 'print(1)'", "cat sub/x || ls"]

    decisions = [(await asked(hooks, project, line)).decision for line in lines]
    assert [decision == Decision.DENY for decision in decisions] == [True, True, False, False]
