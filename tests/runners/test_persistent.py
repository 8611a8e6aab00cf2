"""Processes that stay: restarted when they die, ended when they are late, one question at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hookline.errors import HookFailed
from hookline.processes.spawn import ProcessSpec
from hookline.runners.persistent import Persistent, is_answer

SCRIPT = """
import os, sys, time
for line in sys.stdin:
    word = line.strip()
    if word == "die": sys.exit(3)
    if word == "sleep": time.sleep(60)
    if word == "two": os.write(1, b"{one\\n{two\\n"); continue
    if word == "long": print("{" + "x" * 200_000)
    if word == "error": sys.stderr.write("oops"); sys.exit(4)
    print("{" + word, os.getpid(), flush=True)
"""


@pytest.fixture
def spec(tmp_path: Path) -> ProcessSpec:
    (tmp_path / "stays.py").write_text(SCRIPT)
    return ProcessSpec(argv=(sys.executable, str(tmp_path / "stays.py")), env=dict(os.environ))


async def test_one_process_answers_many_questions(spec: ProcessSpec) -> None:
    """It is started once."""
    process = Persistent(spec)

    answers = [(await process.ask(f"q{n}".encode())).split() for n in range(5)]
    await process.aclose()

    assert [word for word, _ in answers] == [b"{q0", b"{q1", b"{q2", b"{q3", b"{q4"]
    assert len({pid for _, pid in answers}) == 1


async def test_questions_at_once_are_asked_in_turn(spec: ProcessSpec) -> None:
    """Answers never cross."""
    process = Persistent(spec)

    answers = await asyncio.gather(*(process.ask(f"q{n}".encode()) for n in range(20)))
    await process.aclose()

    assert [answer.split()[0] for answer in answers] == [f"{{q{n}".encode() for n in range(20)]


async def test_one_that_dies_is_started_again(spec: ProcessSpec) -> None:
    """The question it died on fails, with its last words; the next one is answered by a new process."""
    process = Persistent(spec)
    first = await process.ask(b"a")

    with pytest.raises(HookFailed, match="exit code 4") as failed:
        await process.ask(b"error")
    second = await process.ask(b"b")
    await process.aclose()

    assert failed.value.stderr == "oops"
    assert first.split()[1] != second.split()[1]


async def test_one_that_is_too_late_is_ended(spec: ProcessSpec) -> None:
    """Giving up on a question ends the process, so that its answer cannot be taken for another's."""
    process = Persistent(spec)
    pid = int((await process.ask(b"a")).split()[1])

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.ask(b"sleep"), 0.2)
    answer = await process.ask(b"b")
    await process.aclose()

    assert answer.startswith(b"{b ")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_line_nobody_asked_for_is_a_failure(spec: ProcessSpec) -> None:
    """After it, answers would belong to the wrong questions."""
    process = Persistent(spec)

    assert await process.ask(b"two") == b"{one"
    with pytest.raises(HookFailed, match="was not asked"):
        await process.ask(b"three")
    assert (await process.ask(b"four")).startswith(b"{four ")
    await process.aclose()


async def test_an_answer_is_bounded(spec: ProcessSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without end is a failure, not a growing buffer."""
    monkeypatch.setattr("hookline.runners.persistent.LINE_LIMIT", 100_000)
    process = Persistent(spec)

    with pytest.raises(HookFailed):
        await process.ask(b"long")
    assert (await process.ask(b"short")).startswith(b"{short ")
    await process.aclose()


async def test_one_that_cannot_live_is_not_started_again_and_again() -> None:
    """Each failure doubles the pause before the next start."""
    process = Persistent(ProcessSpec(argv=("/bin/false",)))
    pauses = []
    for _ in range(3):
        with pytest.raises(HookFailed):
            await process.ask(b"x")
        pauses.append(process._not_before)
    await process.aclose()

    assert pauses[2] - pauses[1] > 0.1


async def test_a_closed_one_answers_nothing(spec: ProcessSpec) -> None:
    """Closing ends the process."""
    process = Persistent(spec)
    pid = int((await process.ask(b"a")).split()[1])

    await process.aclose()

    with pytest.raises(HookFailed, match="closed"):
        await process.ask(b"b")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


STRAY = ["checking…", "", "   ", "true", "null", "[1]", '"{}"', '{"level": "info", "message": "checking"}', "}", "deny"]


@pytest.mark.parametrize("stray", STRAY)
@pytest.mark.parametrize("when", ["at the start", "before the answer", "after the answer"])
async def test_what_is_printed_beside_the_answer_is_not_the_answer(stray: str, when: str, tmp_path: Path) -> None:
    """A banner or a line of a log must not stand in the place of a deny."""
    denied = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}'
    begin, before, after = (repr(stray + "\n") if when == name else "''" for name in (
        "at the start", "before the answer", "after the answer"))  # fmt: skip
    script = tmp_path / "stays.py"
    script.write_text(
        f"import sys\nsys.stdout.write({begin})\nfor line in sys.stdin:\n"
        f"    sys.stdout.write({before} + {denied!r} + chr(10) + {after}); sys.stdout.flush()\n"
    )
    process = Persistent(ProcessSpec(argv=(sys.executable, str(script)), env={**os.environ, "PYTHONUTF8": "1"}))

    answers = [await process.ask(b"{}") for _ in range(3)]
    await process.aclose()

    assert answers == [denied.encode()] * 3


async def test_silence_in_json_is_an_answer(tmp_path: Path) -> None:
    """`{}` says that there is nothing to say; broken JSON is for the reader to refuse."""
    assert [is_answer(line) for line in (b"{}", b" {} ", b'{"decision":', b'{"continue_execution": true}')] == [
        True
    ] * 4
