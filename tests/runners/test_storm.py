"""Hundreds of command hooks with every fault mixed in; afterwards nothing is left of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hookline import Command, Hooks, Verdict
from hookline.core.engine import Status
from hookline.core.hooks.hook import OnFailure
from hookline.events import PreToolUse
from tests.resources import children, descriptors

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.serial,
    pytest.mark.timeout(280),
]

RUNS = int(os.environ.get("HOOKLINE_STORM_RUNS", "600"))
"""2000 for the whole storm; 600 have every fault six times at least, fifty at once."""
AT_ONCE = 50
ALLOW = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}})

# How often a fault comes in a hundred runs, the command, how it ends, and whether it fails (so that a gate is closed).
FAULTS: dict[str, tuple[int, str, Status, bool]] = {
    "allows": (30, f"cat >/dev/null; echo '{ALLOW}'", Status.OK, False),
    "says nothing": (14, "true", Status.OK, False),
    "python": (10, "@PYTHON@ @FOLDER@/hook.py", Status.OK, False),
    "never reads stdin": (4, f"echo '{ALLOW}'", Status.OK, False),
    "does not exist": (4, "@FOLDER@/not-there", Status.FAILED, True),
    "not executable": (4, "@FOLDER@/plain.txt", Status.FAILED, True),
    "a directory": (3, "@FOLDER@", Status.FAILED, True),
    "exits 1": (4, "exit 1", Status.FAILED, True),
    "kills itself": (3, "kill -9 $$", Status.FAILED, True),
    "closes stdout and sleeps": (2, "exec 1>&- 2>&-; sleep 300", Status.TIMEOUT, True),
    "daemon holds the pipe": (2, "(setsid sh -c 'sleep 300' &); exit 0", Status.OK, False),
    "python daemon": (1, "@PYTHON@ @FOLDER@/daemon.py", Status.TIMEOUT, True),
    "ignores TERM": (2, "trap '' TERM; while :; do sleep 0.1; done", Status.TIMEOUT, True),
    "leaves children": (2, "setsid sleep 300 & sleep 300 & wait", Status.TIMEOUT, True),
    "prints without end": (
        2,
        "yes xxxxxxxxxxxxxxxx",
        Status.FAILED,
        True,
    ),
    "invalid UTF-8": (4, "printf '\\377\\376 text'", Status.FAILED, True),
    "json then text": (3, f"echo '{ALLOW}'; echo text", Status.FAILED, True),
    "text then json": (3, f"echo text; echo '{ALLOW}'", Status.FAILED, True),
    "two json values": (3, f"echo '{ALLOW}'; echo '{ALLOW}'", Status.FAILED, True),
}

UNREADABLE = ("invalid UTF-8", "text then json")
"""What only a hook that fails closed may not print."""

HOOK = "import json, sys\njson.load(sys.stdin)\n"
DAEMON = (
    "import os, time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n"
    "        time.sleep(300)\n    os._exit(0)\n"
    "time.sleep(300)\n"
)


def with_word(word: str) -> list[psutil.Process]:
    """Every live process of the storm, whoever its parent is now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("STORM") == word and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


async def test_a_storm_of_faults_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, zombie, descriptor or temporary file; every gate that failed was denied where the policy says so."""
    word = f"storm-{os.getpid()}"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "hook.py").write_text(HOOK)
    (tmp_path / "daemon.py").write_text(DAEMON)
    (tmp_path / "plain.txt").write_text("text")
    before, children_before = descriptors(), children()
    kinds = [kind for kind, (share, *_) in FAULTS.items() for _ in range(share)]
    assert len(kinds) == 100
    seen: Counter[tuple[str, str, bool, bool]] = Counter()

    env = {**os.environ, "STORM": word, "TMPDIR": str(temporary)}
    async with Hooks(env=env) as lenient, Hooks(env=env) as strict:
        policies: tuple[tuple[Hooks, OnFailure], ...] = ((strict, "block"), (lenient, "continue"))
        for hooks, policy in policies:
            for kind, (_, command, _, _) in FAULTS.items():
                filled = command.replace("@FOLDER@", str(tmp_path)).replace("@PYTHON@", sys.executable)
                hooks.add(
                    PreToolUse,
                    Command(command=filled),
                    name=kind,
                    match=kind.replace(" ", "_").replace("-", "_"),
                    timeout=0.5 if FAULTS[kind][2] is Status.TIMEOUT else 60,
                    on_failure=policy,
                )
        room = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, kind: str) -> None:
            name = kind.replace(" ", "_").replace("-", "_")
            blocks = number % 2 == 0
            async with room:
                event = PreToolUse(cwd=str(tmp_path), tool_name=name, tool_input={"n": number, "big": "x" * 5_000})
                verdict: Verdict = await (strict if blocks else lenient).fire(event)
            seen[kind, str(verdict.outcomes[0].status), blocks, verdict.blocked] += 1

        runs = zip(range(RUNS), itertools.cycle(kinds), strict=False)
        await asyncio.gather(*(one(number, kind) for number, kind in runs))

    expected: Counter[tuple[str, str, bool, bool]] = Counter()
    for number, kind in zip(range(RUNS), itertools.cycle(kinds), strict=False):
        blocks = number % 2 == 0
        status = Status.OK if kind in UNREADABLE and not blocks else FAULTS[kind][2]
        expected[kind, str(status), blocks, blocks and FAULTS[kind][3]] += 1
    assert seen == expected
    assert psutil.wait_procs(with_word(word), timeout=60)[1] == []  # a spare interpreter ends after its parent
    assert children() <= children_before
    assert descriptors() <= before
    assert list(temporary.iterdir()) == []
