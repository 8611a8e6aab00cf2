"""An `ask` on the real agent CLIs: a person answers on the page after a while, and the call runs, or does not.

Each CLI runs headless against a scripted model, as in `test_real`. The person is a thread that opens the link that a
transport brought, waits, and presses a button of the form.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from hookline.hosts.table import AGENTS, find
from tests.hosts.lab import NAMES, Lab, laid_out
from tests.processes.service.conftest import desk_for

pytestmark = [pytest.mark.real_hosts, pytest.mark.timeout(900)]

HOSTS = ("claude", "codex", "gemini", "qwen", "kimi", "grok", "cline")
ASKED = tuple(name for name in NAMES if name in HOSTS)
LATER = float(os.environ.get("HOOKLINE_ANSWER_AFTER", "3"))
"""Seconds until the person answers."""
HOLD = float(os.environ.get("HOOKLINE_ANSWER_HOLD", "6"))
"""Seconds that a call is held; 0: as long as the host waits."""

HOOKS = """
from hookline import Hooks, ask
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
def people(event):
    if "mark-" in event.tool_input["command"]: return ask("REASON_PEOPLE")
"""


class Person:
    """Opens each link that comes in, and answers as the command says: `yes`, `no`, and the first `late` too late."""

    def __init__(self, folder: Path) -> None:
        self.box, self.program, self.answered = folder / "links.jsonl", folder / "deliver.py", folder / "answered"
        self.program.write_text(f"import sys\nopen({str(self.box)!r}, 'a').write(sys.stdin.read() + chr(10))\n")
        self.pages: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def links(self) -> list[str]:
        """Every link that was sent."""
        return [json.loads(line)["link"] for line in self.box.read_text().splitlines()] if self.box.exists() else []

    def _work(self) -> None:
        late = ""
        while not self._ended.wait(0.05):
            for link in self.links()[len(self.pages) :]:
                page = opened(link.replace("?", ".json?"))
                self.pages.append(page)
                kind = re.findall(r"mark-(\w+)", page)[0]
                if kind == "late":
                    late = late or link
                else:
                    self._ended.wait(LATER)
                    opened(link, f"answer={kind}")
            if late and not self.answered.exists() and not json.loads(opened(late.replace("?", ".json?")))["waiting"]:
                opened(late, "answer=yes")
                self.answered.touch()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def opened(link: str, answer: str = "") -> str:
    """The page behind a link; with an answer, what comes when the button is pressed."""
    with urllib.request.urlopen(urllib.request.Request(link, answer.encode() or None), timeout=10) as page:
        return str(page.read().decode())


@pytest.fixture(params=ASKED)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Lab, Person]]:
    """A CLI whose hooks ask, and a person who is asked."""
    person = Person(tmp_path)
    settings = {"people": {"ada": [{"type": "command", "command": [sys.executable, str(person.program)]}]},
                "always": True, **({"hold": HOLD} if HOLD else {})}  # fmt: skip
    program = Path(sys.executable).with_name("hookline")
    with (
        desk_for(tmp_path) as desk,
        laid_out(request.param, program, tmp_path, HOOKS, desk.name, {"approvals": settings}) as made,
        person,
    ):
        yield made, person


def test_a_person_answers_what_the_host_cannot_ask(lab: tuple[Lab, Person]) -> None:
    """Yes: it runs. No: it does not, and the model reads who said so. No answer: denied; a late yes counts once."""
    made, person = lab
    project, bash = made.place.project, AGENTS[made.name].bash
    wait = bash(f"until test -e {person.answered}; do sleep 0.1; done")
    late = bash(f"printf x >> {project}/mark-late")
    done = made.run("please run it", "yes", "no", others=[late, wait, late, late], served=True)

    assert made.ran() == {"yes", "late"}, done.stderr[-2000:]
    assert (project / "mark-late").read_text() == "x"
    assert done.model.read("ada said no (page, question A-")
    assert done.model.read("make exactly the same call again later")
    assert len(person.pages) == 4
    for shown in ("REASON_PEOPLE", find(made.name).title, "people"):
        assert shown in person.pages[0]
