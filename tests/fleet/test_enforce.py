"""The fleet's policy on a machine: in force wherever Hookline answers, and closed when it was tampered with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, allow, deny, rewrite
from hookline.core.engine import Verdict
from hookline.errors import FleetError
from hookline.events import PreToolUse, Stop
from hookline.fleet.bundle import MANIFEST, pack, unpack
from hookline.fleet.enforce import check_in_process, govern, policy_hooks, record_refusal
from hookline.fleet.machine import Enrolment, Machine, Stale
from hookline.fleet.members import TeamKey
from hookline.records.audit import AuditFile
from tests import forked

KEY = TeamKey(b"k" * 32)
POLICY = b"""
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse, match="Bash", when="Bash(git push *)")
def no_push(event):
    return deny("the team pushes through CI")
"""
PUSH = PreToolUse(cwd="/", tool_name="Bash", tool_input={"command": "git push"})
READ = PreToolUse(cwd="/", tool_name="Read", tool_input={"file_path": "/x"})


def enrolled(folder: Path, *, stale_hours: float = 0.0, when_stale: Stale = "keep", audit: str = "") -> Machine:
    machine = Machine(folder)
    enrolment = Enrolment(
        machine="m1", name="laptop", hub="nats://127.0.0.1:1", team=KEY.public, audit=audit, stale_hours=stale_hours,
        when_stale=when_stale,
    )  # fmt: skip
    machine.enrol(enrolment, "SU")
    machine.heard()
    return machine


def put_in_force(machine: Machine, files: dict[str, bytes], version: int = 1) -> None:
    bundle = unpack(pack(files, version=version, key=KEY), public=KEY.public)
    machine.stage(bundle)
    machine.put_in_force(bundle)


async def decided(machine: Machine, event: PreToolUse | Stop) -> tuple[str, str | None]:
    hooks = Hooks()
    hooks.add(*policy_hooks(machine))
    verdict = await hooks.fire(event)
    return str(verdict.decision), verdict.decided_by


async def test_a_policy_in_force_decides(tmp_path: Path) -> None:
    """And names its hook."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY})

    assert await decided(machine, PUSH) == ("deny", "fleet/no_push")
    assert await decided(machine, READ) == ("pass", None)


async def test_a_hook_of_the_same_name_is_not_in_the_way(tmp_path: Path) -> None:
    """The team and the user both block commands; both are asked."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY.replace(b"no_push", b"mine")})
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: None, name="mine")

    assert [hook.name for hook in govern(hooks, machine).hooks] == ["fleet/mine", "mine"]


async def test_no_fleet_and_no_policy_yet_change_nothing(tmp_path: Path) -> None:
    """A machine that was never enrolled, and one whose policy has not come yet."""
    assert policy_hooks(Machine(tmp_path / "none")) == ()
    assert policy_hooks(enrolled(tmp_path / "new")) == ()


def test_a_machine_without_a_policy_yet_is_recorded_and_not_in_the_way(tmp_path: Path) -> None:
    """It has joined; the first policy may come later."""
    hooks = govern(Hooks(), enrolled(tmp_path / "fleet", audit=str(tmp_path / "audit.jsonl")))

    assert str(hooks.fire_sync(READ).decision) == "pass"
    assert AuditFile(tmp_path / "audit.jsonl").verify() == []
    assert b'"tool":"Read"' in (tmp_path / "audit.jsonl").read_bytes()


def edit(folder: Path) -> None:
    (folder / "hooks.py").write_bytes(b"from hookline import Hooks\nhooks = Hooks()\n")


def remove(folder: Path) -> None:
    (folder / "hooks.py").unlink()


def plant(folder: Path) -> None:
    (folder / "json.py").write_bytes(b"import os\n")


def plant_byte_code(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "hooks.cpython-311.pyc").write_bytes(b"")


def link(folder: Path) -> None:
    (folder / "hooks.py").rename(folder.parent / "elsewhere.py")
    (folder / "hooks.py").symlink_to(folder.parent / "elsewhere.py")


def new_manifest(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_bytes())
    manifest["files"] = {}
    (folder / MANIFEST).write_bytes(json.dumps(manifest).encode())


def older(folder: Path) -> None:
    (folder.parent.parent / "current.json").write_bytes(b'{"version": 0, "digest": "", "since": ""}')


def edit_current(folder: Path) -> None:
    (folder.parent.parent / "current.json").write_bytes(b"{}")


def remove_current(folder: Path) -> None:
    (folder.parent.parent / "current.json").unlink()


def link_current(folder: Path) -> None:
    current = folder.parent.parent / "current.json"
    current.rename(folder.parent.parent / "moved.json")
    current.symlink_to("moved.json")


def link_a_folder(folder: Path) -> None:
    (folder.parent / "planted").mkdir()
    (folder.parent / "planted" / "__init__.py").write_bytes(b"")
    (folder / "helper").symlink_to(folder.parent / "planted")


def plant_a_folder(folder: Path) -> None:
    (folder / "helper").mkdir()


def link_the_folder(folder: Path) -> None:
    folder.rename(folder.parent / "moved")
    folder.symlink_to("moved")


def link_all_policies(folder: Path) -> None:
    folder.parent.rename(folder.parent.parent / "moved")
    folder.parent.symlink_to("moved")


def remove_all_policies(folder: Path) -> None:
    shutil.rmtree(folder.parent)


TAMPERED = [
    edit, remove, plant, plant_byte_code, link, new_manifest, older, edit_current, remove_current, link_current,
    link_a_folder, plant_a_folder, link_the_folder, link_all_policies, remove_all_policies,
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERED)
async def test_a_policy_that_was_tampered_with_closes_every_gate(tmp_path: Path, tamper: object) -> None:
    """What it would have said is not known."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY})
    tamper(machine.policy_folder(1))  # type: ignore[operator]

    assert await decided(machine, READ) == ("deny", "fleet.policy")
    assert (await decided(machine, Stop(cwd="/")))[0] == "pass"  # only gates are closed


async def test_an_older_policy_that_is_still_on_the_disk_is_not_the_policy(tmp_path: Path) -> None:
    """It is signed, and whoever edits `current.json` names it; a newer one was in force."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": OWN.encode()})
    before = (tmp_path / "current.json").read_bytes()
    put_in_force(machine, {"hooks.py": POLICY}, version=2)
    (tmp_path / "current.json").write_bytes(before)

    assert await decided(machine, READ) == ("deny", "fleet.policy")
    with pytest.raises(FleetError, match="version 1, and version 2 is in force"):
        put_in_force(machine, {"hooks.py": OWN.encode()}, version=1)
    put_in_force(machine, {"hooks.py": POLICY}, version=2)
    assert await decided(machine, PUSH) == ("deny", "fleet/no_push")


async def test_nothing_appears_beside_signed_files(tmp_path: Path) -> None:
    """Python's byte code would make the policy look tampered with at the next event."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": b"import helper\n" + POLICY, "helper.py": b""})

    assert await decided(machine, PUSH) == ("deny", "fleet/no_push")
    assert await decided(machine, PUSH) == ("deny", "fleet/no_push")


@pytest.mark.parametrize("when_stale, decision", [("keep", "pass"), ("ask", "ask"), ("deny", "deny")])
async def test_a_stale_policy_does_what_was_set(tmp_path: Path, when_stale: Stale, decision: str) -> None:
    """Keep, ask or deny after so many hours without the hub."""
    machine = enrolled(tmp_path, stale_hours=2, when_stale=when_stale)
    put_in_force(machine, {"hooks.py": POLICY})
    os.utime(tmp_path / "contact", (0, 0))

    assert (await decided(machine, READ))[0] == decision
    machine.heard()
    assert (await decided(machine, READ))[0] == "pass"


def test_an_older_version_is_never_put_back(tmp_path: Path) -> None:
    """A replayed bundle is signed, and refused all the same."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY}, version=2)

    with pytest.raises(FleetError, match="version 1, and version 2 is in force"):
        put_in_force(machine, {"hooks.py": b""}, version=1)
    current = machine.current()
    assert current is not None
    assert current.version == 2


BROKEN = [
    ({"hooks.py": b"1 / 0\n"}, "ZeroDivisionError"),
    ({"hooks.py": b"import os; os._exit(0)\n"}, ""),
    ({"hooks.py": b"x = 1\n"}, "defines no `hooks`"),
    ({"settings.json": b'{"hooks": {"PreToolUse": 3}}'}, "PreToolUse"),
    ({"notes.txt": b"hello"}, "has no hooks"),
    ({"hooks.py": POLICY, "tests.jsonl": b'{"event": {}, "decision": "deny"}\n'}, "tests.jsonl:1"),
    ({"hooks.py": POLICY, "tests.jsonl": b"nonsense\n"}, "tests.jsonl:1: not a test"),
    (
        {
            "hooks.py": POLICY,
            "tests.jsonl": b'{"event": {"hook_event_name": "PreToolUse", "cwd": "/", "session_id": "s", '
            b'"transcript_path": "", "tool_name": "Bash", "tool_input": {"command": "ls"}}, "decision": "deny"}\n',
        },
        "tests.jsonl:1: expected `deny`, got `pass`",
    ),
]


@pytest.mark.parametrize("files, problem", BROKEN)
def test_a_policy_that_does_not_load_or_fails_its_own_tests_is_refused(
    tmp_path: Path, files: dict[str, bytes], problem: str
) -> None:
    """Found in a process of its own, before it is in force."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)

    found = check_in_process(tmp_path)

    assert found
    assert problem in found[0]


OWN = "from hookline import Hooks\nhooks = Hooks(mode='evaluate_only')\nhooks.engine.enabled = False\n"
ANSWERS = {
    "guard": ("guard", "commands", "--block", "sudo *"),
    "pipe": ("pipe", "--hooks", "own.py"),
    "fire": ("fire", "--json", "--hooks", "own.py"),
    "answer": ("answer", "claude", "--hooks", "own.py"),
    "answer, settings": ("answer", "claude", "--settings", "settings.json"),
}


def answered(tmp_path: Path, words: tuple[str, ...], line: str) -> subprocess.CompletedProcess[str]:
    """A command of ours, asked about a shell line on a machine of the fleet."""
    event = {
        "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": str(tmp_path),
        "tool_name": "Bash", "tool_input": {"command": line},
    }  # fmt: skip
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    return forked.as_text(forked.run(words, cwd=tmp_path, env=env, stdin=json.dumps(event).encode()))


@pytest.mark.parametrize("words", ANSWERS.values(), ids=ANSWERS)
def test_every_command_that_answers_is_governed_and_recorded(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Whatever an agent's settings name enforces the fleet's policy, and its verdict is in the log, once."""
    machine = enrolled(tmp_path / "state" / "hookline" / "fleet", audit=str(tmp_path / "logs" / "audit.jsonl"))
    put_in_force(machine, {"hooks.py": POLICY})
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "settings.json").write_text("{}")
    ran = answered(tmp_path, words, "git push")

    assert "the team pushes through CI" in ran.stdout + ran.stderr
    assert AuditFile(tmp_path / "logs" / "audit.jsonl").verify() == []
    [line] = (tmp_path / "logs" / "audit.jsonl").read_bytes().splitlines()
    assert b'"by":"fleet/no_push"' in line


DOES_NOT_LOAD = "raise RuntimeError('a broken file')\n"
ENDS_THE_PROGRAM = """
import os
from hookline import Hooks
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse)
async def ends(event):
    os._exit(0)
"""
REFUSED = {
    "answer, a file that does not load": (("answer", "claude", "--hooks", "own.py"), DOES_NOT_LOAD, "a broken file"),
    "answer, a hook that ends the program": (("answer", "claude", "--hooks", "own.py"), ENDS_THE_PROGRAM, "the hooks"),
    "answer, a flag nobody knows": (("answer", "claude", "--hoks", "own.py"), OWN, "--hoks"),
    "pipe, a file that does not load": (("pipe", "--hooks", "own.py"), DOES_NOT_LOAD, "a broken file"),
    "pipe, a hook that ends the program": (("pipe", "--hooks", "own.py"), ENDS_THE_PROGRAM, "a hook ended the process"),
    "guard, without anything to judge": (("guard", "commands"), OWN, "say what to judge"),
}


@pytest.mark.parametrize("words, own, why", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_without_a_verdict_is_recorded_too(
    tmp_path: Path, words: tuple[str, ...], own: str, why: str
) -> None:
    """Whoever looks after the fleet sees that an agent is being refused, and why."""
    enrolled(tmp_path / "state" / "hookline" / "fleet", audit=str(tmp_path / "logs" / "audit.jsonl"))
    (tmp_path / "own.py").write_text(own)
    ran = answered(tmp_path, words, "ls")

    assert why in ran.stdout + ran.stderr
    assert AuditFile(tmp_path / "logs" / "audit.jsonl").verify() == []
    [line] = (tmp_path / "logs" / "audit.jsonl").read_bytes().splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["decision"], entry["by"]) == ("PreToolUse", "deny", "hookline")
    assert why in entry["reasons"][0]


def test_a_guard_that_stays_does_not_wait_for_an_event_to_refuse(tmp_path: Path) -> None:
    """With `--lines` nobody closes its stdin; that it cannot judge anything is said at once."""
    enrolled(tmp_path / "state" / "hookline" / "fleet", audit=str(tmp_path / "logs" / "audit.jsonl"))
    words = [sys.executable, "-m", "hookline", "guard", "commands", "--lines"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as guard:
        try:
            assert guard.wait(timeout=60) == 2
        finally:
            guard.kill()


# -- the team's set and the user's -----------------------------------------------------------------------------------


class _Lenient(Hooks):
    async def fire(self, event: Any, deadline: float | None = None, only: str | None = None) -> Verdict:
        return Verdict(event, allow())


def _switched_off() -> Hooks:
    hooks = Hooks()
    hooks.engine.enabled = False
    return hooks


def _allowing() -> Hooks:
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: allow())
    return hooks


LENIENT: dict[str, Callable[[], Hooks]] = {
    "it only evaluates": lambda: Hooks(mode="evaluate_only"),
    "it lifts every question": lambda: Hooks(on_ask=lambda verdict: True),
    "it is switched off": _switched_off,
    "it has no time": lambda: Hooks(timeout=1e-9),
    "it lies elsewhere": lambda: Hooks(project_dir="/elsewhere"),
    "it is a class of its own": _Lenient,
    "it allows everything": _allowing,
}


@pytest.mark.parametrize("answer", ["deny", "ask"])
async def test_a_users_set_cannot_lift_what_the_team_says(
    tmp_path: Path, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the user's file does to its own set."""
    monkeypatch.setenv("HOOKLINE_ENABLED", "0")
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY.replace(b"deny", answer.encode())})

    for name, make in LENIENT.items():
        async with govern(make(), machine) as hooks:
            verdict = await hooks.fire(PUSH)
            assert str(verdict.decision) == answer, name
            assert verdict.decided_by == "fleet/no_push", name


async def test_a_user_may_be_stricter_than_the_team(tmp_path: Path) -> None:
    """The strictest counts, whoever says it; what only evaluates counts for nothing and is shown."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY})
    seen: list[Verdict] = []
    for mode, decision in (("enforce", "deny"), ("evaluate_only", "pass")):
        own = Hooks(mode=mode)  # type: ignore[arg-type]
        own.add(PreToolUse, lambda event: deny("mine"), name="mine")
        own.observe(lambda notice: seen.append(notice) if isinstance(notice, Verdict) else None, inline=True)
        async with govern(own, machine) as hooks:
            verdict = await hooks.fire(READ)
        assert str(verdict.decision) == decision
        assert verdict.evaluated == (None if mode == "enforce" else deny("mine"))

    assert [(str(one.decision), one.decided_by) for one in seen] == [("deny", "mine")] * 2


async def test_the_team_judges_what_the_user_rewrote(tmp_path: Path) -> None:
    """And a rewrite of the team's is what the user's hooks judge, and what runs."""
    machine = enrolled(tmp_path)
    put_in_force(machine, {"hooks.py": POLICY})
    own = Hooks()
    own.add(PreToolUse, lambda event: rewrite({"command": "git push"}), match="Bash", name="sly")
    async with govern(own, machine) as hooks:
        verdict = await hooks.fire(PreToolUse(cwd="/", tool_name="Bash", tool_input={"command": "ls"}))
    assert (str(verdict.decision), verdict.decided_by) == ("deny", "fleet/no_push")

    team = POLICY.replace(b"deny(", b"rewrite(").replace(b'"the team pushes through CI"', b'{"command": "true"}')
    put_in_force(machine, {"hooks.py": team.replace(b"import Hooks, deny", b"import Hooks, rewrite")}, version=2)
    heard: list[object] = []
    own = Hooks()
    own.add(PreToolUse, lambda event: heard.append(dict(event.tool_input)), name="mine")
    async with govern(own, machine) as hooks:
        verdict = await hooks.fire(PUSH)
    assert (verdict.input, heard) == ({"command": "true"}, [{"command": "true"}])


async def test_a_set_that_stays_follows_the_policy(tmp_path: Path) -> None:
    """From the next event on; also what was done to it on the machine."""
    machine = enrolled(tmp_path)
    async with govern(Hooks(), machine) as hooks:
        assert str((await hooks.fire(PUSH)).decision) == "pass"
        put_in_force(machine, {"hooks.py": POLICY})
        assert (await hooks.fire(PUSH)).decided_by == "fleet/no_push"
        (machine.policy_folder(1) / "hooks.py").write_bytes(b"")
        assert (await hooks.fire(READ)).decided_by == "fleet.policy"
        put_in_force(machine, {"hooks.py": POLICY}, version=2)
        assert str((await hooks.fire(READ)).decision) == "pass"


async def test_each_version_has_modules_of_its_own(tmp_path: Path) -> None:
    """Also in a process that has imported a module of the same name for an older one."""
    machine = enrolled(tmp_path)
    text = b"import rules\n" + POLICY.replace(b'"the team pushes through CI"', b"rules.why")
    async with govern(Hooks(), machine) as hooks:
        for version in (1, 2):
            why = {"rules.py": b"from deep.low import why\n", "deep/low.py": b"why = 'no %d'" % version}
            files = {"hooks.py": text, **why}
            put_in_force(machine, files, version=version)
            assert (await hooks.fire(PUSH)).reason == f"no {version}"


async def test_a_policy_runs_from_the_bytes_that_were_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is exchanged after it was checked changes nothing."""
    machine = enrolled(tmp_path)
    files = {"hooks.py": b"import rules\n" + POLICY, "rules.py": b"", "settings.json": b"{}"}
    put_in_force(machine, files)
    verified = machine.verified_policy
    folder = machine.policy_folder(1)

    def exchanged() -> object:
        found = verified()
        for name in files:
            (folder / name).write_bytes(b"raise SystemExit(0)")
        return found

    monkeypatch.setattr(machine, "verified_policy", exchanged)

    assert await decided(machine, PUSH) == ("deny", "fleet/no_push")


def test_every_record_says_which_policy_was_in_force(tmp_path: Path) -> None:
    """Also where there is none, or none that can be used."""
    log = tmp_path / "audit.jsonl"
    machine = enrolled(tmp_path / "fleet", audit=str(log))
    hooks = govern(Hooks(), machine)
    hooks.fire_sync(READ)
    put_in_force(machine, {"hooks.py": POLICY}, version=3)
    hooks.fire_sync(READ)
    record_refusal([READ], "no", machine)
    (machine.folder / "current.json").unlink()
    hooks.fire_sync(READ)

    assert [json.loads(line)["policy"] for line in log.read_bytes().splitlines()] == [0, 3, 3, 0]
