"""The agent on a terminal: a real one, with a person who presses keys."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.environ import clean_environ

LONG = 60.0


class Terminal:
    """`hookline run` on a terminal of its own."""

    def __init__(
        self, folder: Path, turns: list[Any], *flags: str, settings: dict[str, Any] | None = None, term: str = "dumb"
    ) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "turns.json").write_text(json.dumps(turns))
        if settings is not None:
            (folder / ".claude").mkdir(exist_ok=True)
            (folder / ".claude" / "settings.json").write_text(json.dumps(settings))
        self._fd, theirs = pty.openpty()
        argv = [sys.executable, "-m", "hookline.cli.main", "run", "--trust", "--model", "scripted:turns.json", *flags]
        env = clean_environ(folder.parent, PATH=os.environ["PATH"], TERM=term)
        self.process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.screen = ""

    def until(self, text: str, *, last: bool = False) -> None:
        """Read on until the screen shows this, or ends with it."""
        deadline = time.monotonic() + LONG
        while not self.screen.endswith(text) if last else text not in self.screen:
            left = deadline - time.monotonic()
            assert left > 0, self.screen
            if select.select([self._fd], [], [], min(left, 1.0))[0]:
                try:
                    self.screen += os.read(self._fd, 65536).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(f"it ended: {self.screen}") from None

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> int:
        """The exit code, once it has ended by itself."""
        code = self.process.wait(LONG)
        while select.select([self._fd], [], [], 0.1)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.screen += data.decode("utf-8", "replace")
        os.close(self._fd)
        return code


def entry(event: str, command: str) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}}


def test_ctrl_c_ends_the_interactive_mode(tmp_path: Path) -> None:
    """At the prompt, with nobody typing; SessionEnd hooks still run."""
    terminal = Terminal(tmp_path / "p", [{"text": "one"}], settings=entry("SessionEnd", "touch ended"))
    terminal.until("\n> ")
    terminal.type("go\n")
    terminal.until("one")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.end() == 130
    assert (tmp_path / "p" / "ended").exists()


def test_the_end_of_the_input_ends_it(tmp_path: Path) -> None:
    """Ctrl-D, as in every shell."""
    terminal = Terminal(tmp_path / "p", [{"text": "one"}])
    terminal.until("\n> ")
    terminal.type("\x04")

    assert terminal.end() == 0


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_no_prompt_appears_where_a_hook_has_answered(answer: str, tmp_path: Path) -> None:
    """Whichever way it decides, nobody is asked, and the run comes to its end."""
    said = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": answer}}}
    turns = [{"tools": [["Bash", {"command": "echo ran > out.txt"}]]}, {"text": "done"}]
    settings = entry("PermissionRequest", f"sleep 0.3; echo '{json.dumps(said)}'")
    terminal = Terminal(tmp_path / "p", turns, "go", settings=settings)
    terminal.until("done")

    assert terminal.end() == 0
    assert "[y]es" not in terminal.screen
    assert (tmp_path / "p" / "out.txt").exists() is (answer == "allow")


def test_a_question_that_nobody_answers_ends_with_ctrl_c(tmp_path: Path) -> None:
    """A permission prompt on the screen does not keep the run from ending."""
    turns = [{"tools": [["Bash", {"command": "echo ran > out.txt"}]]}, {"text": "done"}]
    terminal = Terminal(tmp_path / "p", turns, "go")
    terminal.until("[y]es")
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.end() == 130
    assert not (tmp_path / "p" / "out.txt").exists()


def test_a_question_shows_the_change_and_not_json(tmp_path: Path) -> None:
    """A diff of what is there; a no has its reason told to the model."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.txt").write_text("one\ntwo\n")
    write = {"tools": [["Read", {"file_path": "a.txt"}], ["Write", {"file_path": "a.txt", "content": "one\nthree\n"}]]}
    terminal = Terminal(tmp_path / "p", [write, {"text": "done"}], "go")
    terminal.until("[y]es")
    terminal.type("not today\n")
    terminal.until("done")

    assert terminal.end() == 0
    assert "\n-two\r\n+three" in terminal.screen
    assert '"content"' not in terminal.screen.partition("a.txt\r\n")[2].partition("Allow?")[0]
    assert "✗ DENY Write" in terminal.screen
    assert (tmp_path / "p" / "a.txt").read_text() == "one\ntwo\n"


def test_prompts_are_edited_and_remembered_and_help_is_there(tmp_path: Path) -> None:
    """The arrow brings back the prompt of an earlier session; `/help` lists what can be typed."""
    first = Terminal(tmp_path / "p", [{"text": "one"}], term="xterm")
    first.until("> ")
    first.type("say somethinX\x7fg\n")
    first.until("one")
    first.until("> ", last=True)
    first.type("/exit\n")
    assert first.end() == 0

    second = Terminal(tmp_path / "p", [{"text": "two"}], term="xterm")
    second.until("> ")
    second.type("/help\n")
    second.until("/compact")
    second.until("> ", last=True)
    second.type("\x1b[A\x1b[A\x1b[A\n")
    second.until("two")
    second.until("> ", last=True)
    second.type("\x04")

    assert second.end() == 0
    assert "say something\r\ntwo" in second.screen
    assert "say something\n" in (tmp_path / ".local" / "state" / "hookline" / "prompts").read_text()


def test_ctrl_c_gives_the_terminal_back_as_it_was(tmp_path: Path) -> None:
    """While a line is edited, too."""
    terminal = Terminal(tmp_path / "p", [{"text": "one"}], term="xterm")
    before = termios.tcgetattr(terminal._fd)
    terminal.until("> ")
    terminal.process.send_signal(signal.SIGINT)
    code = terminal.process.wait(LONG)
    after = termios.tcgetattr(terminal._fd)

    assert (code, terminal.end()) == (130, 130)
    assert after[:4] == before[:4]
