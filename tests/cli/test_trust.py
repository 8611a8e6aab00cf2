"""`hookline trust`, on a terminal and without one."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time

import pytest

from tests.cli.place import HOOKLINE, Place, command

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")


@pytest.fixture
def scripted(place: Place) -> Place:
    """A project with a hook that names a script."""
    place.write("check.sh", "#!/bin/sh\ntouch ran\n", 0o755)
    place.hooks("PreToolUse", command("./check.sh", name="mine"))
    return place


FIRE = ("fire", "PreToolUse", "--tool", "Bash", "--input", '{"command": "ls"}')


def test_without_a_terminal_it_shows_and_refuses(scripted: Place) -> None:
    """What would run, and the script; nothing is recorded."""
    done = scripted.run("trust")

    assert done.returncode == 1
    assert done.stdout.startswith(".claude/settings.json\n  runs  PreToolUse: ./check.sh\n  file  ")
    assert "    +touch ran\n" in done.stdout
    assert done.stderr == "not trusted; run `hookline trust` on a terminal, or `hookline trust --yes`\n"
    assert scripted.run(*FIRE).returncode == 1


def test_yes_records_and_a_change_is_noticed(scripted: Place) -> None:
    """Trusted hooks run; an edit of the script asks again."""
    done = scripted.run("trust", "--yes")
    assert (done.returncode, done.stdout) == (
        0,
        "trusted from now on; any change to these files will be asked about again\n",
    )
    assert scripted.run(*FIRE).returncode == 0
    assert (scripted.project / "ran").exists()
    assert scripted.run("trust").stdout == "trusted: .claude/settings.json\n"

    scripted.write("check.sh", "#!/bin/sh\ntouch worse\n", 0o755)
    done = scripted.run(*FIRE)
    assert done.returncode == 1
    assert "`hookline trust`" in done.stderr
    assert not (scripted.project / "worse").exists()

    said = json.loads(scripted.run("trust", "--json").stdout)
    assert said["trusted"] is False
    assert [change["kind"] for change in said["changes"]] == ["changed"]
    assert "-touch ran\n+touch worse" in said["changes"][0]["diff"]


def test_json_and_forget(scripted: Place) -> None:
    """`--json` everywhere: the status, after `--yes`, and what was forgotten."""
    before = scripted.run("trust", "--json")
    assert (before.returncode, json.loads(before.stdout)["trusted"]) == (1, False)
    after = scripted.run("trust", "--yes", "--json")
    assert (after.returncode, json.loads(after.stdout)["trusted"]) == (0, True)
    assert json.loads(after.stdout)["files"][0]["runs"] == ["PreToolUse: ./check.sh"]
    gone = scripted.run("trust", "--forget", "--json")
    assert json.loads(gone.stdout) == {"forgot": 1}
    assert scripted.run("trust", "--json").returncode == 1


def test_nothing_to_trust(place: Place) -> None:
    """A project without hooks of its own needs nobody's trust."""
    done = place.run("trust")
    assert (done.returncode, done.stdout) == (0, "nothing needs trust\n")


@pytest.mark.parametrize("answer, trusted", [("y", True), ("yes", True), ("n", False), ("", False), ("yep", False)])
def test_on_a_terminal_it_asks(answer: str, trusted: bool, scripted: Place) -> None:
    """Only a plain yes is a yes."""
    code, screen = on_a_terminal(scripted, ["trust"], answer)

    assert "Trust these hooks from now on? [y/N]" in screen
    assert ("trusted from now on" in screen) is trusted
    assert ("nothing was trusted" in screen) is not trusted
    assert code == (0 if trusted else 1)
    assert (scripted.run("trust", "--json").returncode == 0) is trusted


def test_fire_asks_on_a_terminal_and_shows_the_difference(scripted: Place) -> None:
    """A script that changed is shown with what changed in it, in colour; yes is remembered."""
    scripted.run("trust", "--yes")
    scripted.write("check.sh", "#!/bin/sh\ntouch worse\n", 0o755)
    code, screen = on_a_terminal(scripted, list(FIRE), "y")

    assert code == 0, screen
    plain = re.sub(r"\x1b\[\d+m", "", screen).replace("\r", "")
    assert plain != screen.replace("\r", "")
    assert "    -touch ran\n    +touch worse\n" in plain
    assert "PreToolUse(Bash) → PASS" in plain
    assert (scripted.project / "worse").exists()
    assert scripted.run("trust", "--json").returncode == 0


def test_a_script_cannot_steer_the_terminal(place: Place) -> None:
    """What is shown of somebody else's file is plain text: no escape sequence reaches the screen."""
    place.write("check.sh", "#!/bin/sh\n\x1b[2Jecho\thi\n", 0o755)
    place.hooks("PreToolUse", command("./check.sh # \x1b[2J"))
    done = place.run("trust")

    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jecho" in done.stdout


def on_a_terminal(place: Place, argv: list[str], answer: str) -> tuple[int, str]:
    """Run with a pseudo-terminal for everything; answer the first question."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*HOOKLINE, *argv], cwd=place.project, env={**place.env, "TERM": "xterm"}, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    screen, answered, deadline = b"", False, time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            screen += piece
            if not answered and b"[y/N]" in screen:
                answered = True
                os.write(ours, f"{answer}\n".encode())
        return process.wait(60), screen.decode()
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
