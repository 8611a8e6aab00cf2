"""`hookline inbox`: a question of a real hook, answered in a terminal; not by an agent, nor from a confinement."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.guards.sandboxing import unavailable
from hookline.hosts.table import find
from tests.cli.test_person import CLEAN, outside
from tests.processes.service.conftest import HOOKLINE, Desk, desk, until
from tests.terminal import on_terminal

__all__ = ["desk"]

HOOKS = """
from hookline import Hooks, ask
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
def people(event):
    return ask("pushing is for people")
"""
EVENT = {"hook_event_name": "BeforeTool", "session_id": "s", "tool_name": "run_shell_command",
         "tool_input": {"command": "git push"}}  # fmt: skip

REACH = """
import socket

def tried(what):
    try:
        print("REACHED", what()[:50])
    except OSError as problem:
        print("refused", problem)

def asked():
    one = socket.socket(socket.AF_UNIX)
    one.connect("{socket}")
    one.sendall(b'{{"do": "list"}}\\n')
    if not (found := one.recv(100)):
        raise OSError("no answer")
    return found

tried(lambda: open("{file}").read())
tried(lambda: open("/proc/{pid}/mem", "rb").read(10))
tried(lambda: open("/proc/{pid}/environ").read())
tried(asked)
"""


class Office:
    """A service of the test's own, a user with `approvals`, and hooks that ask, in front of a host that cannot."""

    def __init__(self, made: Desk) -> None:
        self.desk = made
        (made.home / ".claude").mkdir()
        self.configure({"approvals": {}})
        (made.project / "hooks.py").write_text(HOOKS)
        self.calls: list[subprocess.Popen[bytes]] = []

    def configure(self, settings: dict[str, Any]) -> None:
        (self.desk.home / ".claude" / "settings.json").write_text(json.dumps(settings))

    def call(self, deadline: float = 60.0, **more: object) -> subprocess.Popen[bytes]:
        """The command that the host runs before a call."""
        words = ("answer", "gemini", "--hooks", "hooks.py", "--event", "BeforeTool", "--deadline", str(deadline))
        made = self.desk.start(*words)
        assert made.stdin is not None
        made.stdin.write(json.dumps({**EVENT, "cwd": str(self.desk.project), **more}).encode())
        made.stdin.close()
        self.calls.append(made)
        return made

    def answered(self, call: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert call.stdout is not None
        assert call.stderr is not None
        said: dict[str, Any] = json.loads(call.stdout.read() or b"{}")
        call.wait(60)
        return said

    def questions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.desk.run("inbox", "--json").stdout)
        return found

    def question(self) -> str:
        """The id of the one that is open."""
        until(lambda: [one for one in self.questions() if one["state"] == "open" and one["waiting"]])
        return str(next(one["id"] for one in self.questions() if one["state"] == "open"))

    def decide(self, word: str, question: str, **env: str) -> tuple[int, str]:
        """`hookline inbox approve` in a terminal."""
        clean = {name: value for name, value in self.desk.env.items() if name in CLEAN or name == "HOOKLINE_SERVICE"}
        return on_terminal([*HOOKLINE, "inbox", word, question], env={**clean, **env}, cwd=str(self.desk.project))

    @property
    def state(self) -> Path:
        return self.desk.home / ".local" / "state" / "hookline" / "inbox"


@pytest.fixture
def office(desk: Desk) -> Iterator[Office]:
    made = Office(desk)
    yield made
    for call in made.calls:
        call.kill()
        call.wait(30)
        for pipe in (call.stdout, call.stderr):
            if pipe is not None:
                pipe.close()
    until(lambda: not desk.status()["running"] or not any(one["waiting"] for one in made.questions()))


@outside
def test_a_question_is_listed_shown_and_approved(office: Office) -> None:
    """The call goes on; the list says who said so; the same again needs a new yes."""
    call = office.call()
    question = office.question()
    listed = office.desk.run("inbox").stdout
    shown = office.desk.run("inbox", "show", question[:6]).stdout
    code, said = office.decide("approve", question)

    assert f"? {question}" in listed
    assert "Bash: git push  open" in listed
    for text in ("why       pushing is for people", "asked by  people", "agent     Gemini CLI", "    git push"):
        assert text in shown
    assert (code, said.splitlines()[-1]) == (0, f"{question}: yes, once")
    assert office.answered(call).get("decision") != "deny"
    assert "yes, and it ran, by " in office.desk.run("inbox").stdout
    assert "it was answered before" in office.decide("approve", question)[1]


@outside
def test_a_no_reaches_the_model(office: Office) -> None:
    """With who said so, and why it was asked."""
    call = office.call()
    office.decide("deny", office.question())

    reason = office.answered(call)["reason"]
    assert "said no (terminal, question A-" in reason
    assert reason.endswith("pushing is for people")


def test_an_agent_cannot_answer_for_a_person(office: Office) -> None:
    """Neither with the command, nor over the socket with a program of its own."""
    call = office.call()
    question = office.question()
    code, said = office.decide("approve", question, CLAUDECODE="1")
    program = (
        "import asyncio, sys\nfrom hookline.records.approvals.inbox import ask_once\n"
        f"print(asyncio.run(ask_once({{'do': 'decide', 'id': {question!r}, 'yes': True, 'how': 'terminal'}})))\n"
    )
    env = {**office.desk.env, "CLAUDECODE": "1"}
    direct = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)

    assert (code, "this is for a person, not for an agent" in said) == (1, True)
    assert "this is for a person, not for an agent" in direct.stdout
    assert call.poll() is None


@pytest.mark.skipif(bool(unavailable()), reason=f"lines cannot be confined here: {unavailable()}")
def test_nothing_of_the_inbox_is_within_a_confined_agents_reach(office: Office) -> None:
    """Neither its files, nor its socket, nor its process's memory; a token is nowhere on the disk."""
    call = office.call()
    office.question()
    pid = office.desk.status()["inbox"]["pid"]
    (office.desk.project / "reach.py").write_text(
        REACH.format(
            file=office.state / "questions.json", pid=pid, socket=office.desk.socket.with_suffix(".inbox.sock")
        )
    )
    confined = office.desk.run_cold("confine", "--write", ".", "--", sys.executable, "reach.py")
    disk = b"".join(path.read_bytes() for path in office.state.iterdir())

    assert "REACHED" not in confined.stdout, confined.stdout + confined.stderr
    assert confined.stdout.count("refused") == 4, confined.stdout + confined.stderr
    assert b"&t=" not in disk
    assert call.poll() is None


def test_a_call_waits_through_the_end_of_the_inbox_and_of_the_service(office: Office) -> None:
    """Killed or stopped in the middle of a question: the same question is there again, and its answer counts."""
    call = office.call()
    first = office.question()
    os.kill(office.desk.status()["inbox"]["pid"], signal.SIGKILL)
    assert office.question() == first
    office.desk.run("service", "stop")
    assert office.question() == first
    assert call.poll() is None
    assert office.desk.status()["running"]


def test_without_an_answer_the_host_is_told_in_time(office: Office) -> None:
    """Before the deadline that it was given, with what the model is to do."""
    said = office.answered(office.call(deadline=3.0))

    assert said["decision"] == "deny"
    assert "make exactly the same call again later" in said["reason"]


def test_without_approvals_nothing_is_asked(office: Office) -> None:
    """As before: the host has no way to ask. What is wrong with the settings is said."""
    office.configure({})
    assert "Gemini CLI has no way to ask" in office.answered(office.call())["reason"]
    office.configure({"approvals": {"hold": "long"}})
    assert "approvals: Expected `float | null`, got `str`" in office.answered(office.call())["reason"]
    assert not office.desk.status().get("inbox", {}).get("pid")


def test_a_person_sees_what_happened_before(office: Office) -> None:
    """What the audit log of the hooks has of the session, and not of others."""
    (office.desk.project / "hooks.py").write_text(
        HOOKS.replace("    return ask(", '    if "push" in event.tool_input["command"]: return ask(')
        + "\nfrom hookline.records import AuditLog\nhooks.observe(AuditLog('audit.jsonl', sync='line'))\n"
    )
    for session in ("s", "other"):
        office.answered(office.call(session_id=session, tool_input={"command": f"ls {session}"}))
    office.call()
    office.question()

    assert office.questions()[0]["before"] == ["Bash ls s → pass"]


def test_a_host_that_gave_up_is_not_waited_for(office: Office) -> None:
    """The question stays open, and no process is left behind that would hold it for as long as the host had waited."""
    call = office.call()
    office.question()
    call.kill()

    until(lambda: not any(one["waiting"] for one in office.questions()))
    assert [one["state"] for one in office.questions()] == ["open"]


def test_following_shows_a_question_as_it_comes(office: Office) -> None:
    """One line each, and nothing before the first."""
    following = office.desk.start("inbox", "follow", "--json")
    office.call()
    assert following.stdout is not None
    seen = json.loads(following.stdout.readline())
    following.kill()
    following.communicate()

    assert (seen["state"], seen["tool"]) == ("open", "Bash")


def test_a_command_line_that_is_wrong_says_so(office: Office) -> None:
    """Without an id, with one that is not there."""
    assert "needs the id of a question" in office.desk.run("inbox", "show").stderr
    assert "A-none: no such question" in office.desk.run("inbox", "show", "A-none").stderr


def test_install_lets_a_call_wait_as_long_as_the_agent_does(office: Office) -> None:
    """With `approvals` the entry's deadline is the host's own longest, and `ask` is no longer a deny there."""
    words = ("install", "qwen", "gemini", "--hooks", "hooks.py", "--yes", "--json")
    office.configure({})
    before = json.loads(office.desk.run(*words).stdout)
    office.configure({"approvals": {"always": True}})
    after = json.loads(office.desk.run(*words, "--replace").stdout)
    deadlines = [re.findall(r"--deadline (\S+)", Path(one["path"]).read_text())[0] for one in after]

    assert "cannot `ask`: it becomes a deny" in json.dumps(before)
    assert "cannot `ask`: it becomes a deny" not in json.dumps(after)
    assert [float(text) for text in deadlines] == [find(name).config.longest for name in ("qwen", "gemini")]


def test_a_gate_that_hangs_is_told_to_the_same_people(office: Office) -> None:
    """The host gets its deny in time; the people who want alerts hear that the hooks gave no answer."""
    box = office.desk.base / "alerts"
    deliver = ["/bin/sh", "-c", f"cat >> {box}; echo >> {box}"]
    people = {"ada": [{"type": "command", "command": deliver}]}
    office.configure({"approvals": {"people": people, "alerts": {}}})
    (office.desk.project / "hooks.py").write_text(
        HOOKS.replace("    return ask(", "    import time; time.sleep(600); ask(")
    )
    office.desk.warm()
    said = office.answered(office.call(deadline=2.0))
    until(box.exists)
    until(lambda: box.read_text().endswith("\n"))

    assert said["decision"] == "deny"
    told = [json.loads(line)["title"] for line in box.read_text().splitlines()]
    assert any("timed out" in title or "could not be asked" in title for title in told), told


def test_denials_of_guards_count_as_well(office: Office) -> None:
    """`hookline guard` in a settings file: the third denial is a burst; a worker that gets warm tells nothing."""
    box = office.desk.base / "alerts"
    people = {"ada": [{"type": "command", "command": ["/bin/sh", "-c", f"cat >> {box}; echo >> {box}"]}]}
    office.configure({"approvals": {"people": people, "alerts": {"denials": 3}}})
    office.desk.warm()
    for _ in range(3):
        assert "rm -rf" in office.desk.guard().stdout
    until(lambda: box.exists() and box.read_text().endswith("\n"))

    [told] = [json.loads(line) for line in box.read_text().splitlines()]
    assert told["title"] == "3 calls were denied in 300 s"
    assert told["text"].startswith("the last one: Bash: ")
