"""Transcripts survive what happens to processes: kills, full disks, two runs at once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookline.agent.messages import Assistant, Message, Raw, Reminder, Text, ToolOutput, ToolUse, Usage, User
from hookline.agent.session import transcript as module
from hookline.agent.session.transcript import (
    Transcript,
    find,
    latest,
    read_transcript,
    resume,
    transcript_path,
    unanswered,
)
from hookline.errors import TranscriptError

KILLS = int(os.environ.get("HOOKLINE_KILLS", "20"))

TALK: tuple[Message, ...] = (
    User.of("go"),
    Reminder("mind the gap"),
    Assistant(
        (Raw({"type": "thinking", "thinking": "hm"}), Text("ok"), ToolUse("t1", "Bash", {"command": "ls"})),
        id="msg_1",
        model="m",
        stop_reason="tool_use",
        usage=Usage(input_tokens=3, output_tokens=4),
    ),
    User.of(ToolOutput("t1", "out", is_error=True)),
    User.of("Stop hook feedback:\nnot yet", synthetic=True),
    Reminder("Contents of /p/CLAUDE.md", file="/p/CLAUDE.md"),
    Assistant((Text("done ☃"),), id="msg_2"),
)


def written(path: Path, *messages: Message) -> Path:
    transcript = Transcript(path, path.stem, cwd="/proj")
    for message in messages:
        transcript.add(message)
    transcript.close()
    return path


def test_what_was_said_is_read_back(tmp_path: Path) -> None:
    """Every kind of message and block survives the disk."""
    transcript, messages = resume(written(tmp_path / "s.jsonl", *TALK))
    transcript.close()

    assert (messages, transcript.session_id) == (TALK, "s")


def test_lines_are_claude_codes(tmp_path: Path) -> None:
    """Type, message, session and the chain of parents are where Claude Code has them."""
    first, _, answer, *_ = [json.loads(line) for line in written(tmp_path / "s.jsonl", *TALK).read_text().splitlines()]

    assert (first["type"], first["message"], first["sessionId"]) == (
        "user",
        {"role": "user", "content": "go"},
        "s",
    )
    assert (first["parentUuid"], first["isSidechain"], first["cwd"]) == (None, False, "/proj")
    assert (answer["type"], answer["message"]["usage"]["input_tokens"]) == ("assistant", 3)


def test_a_transcript_of_claude_code_can_be_resumed(tmp_path: Path) -> None:
    """It writes one line per block, and lines about other things; subagents' lines are not the session's."""
    lines = [
        {"type": "queue-operation", "operation": "enqueue"},
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "hello"}},
        {
            "type": "assistant",
            "uuid": "2",
            "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "a"}]},
        },
        {
            "type": "assistant",
            "uuid": "3",
            "message": {
                "id": "m1",
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
            },
        },
        {
            "type": "assistant",
            "isSidechain": True,
            "message": {"role": "assistant", "content": [{"type": "text", "text": "sub"}]},
        },
        {
            "type": "user",
            "uuid": "4",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
        },
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert read_transcript(path)[0] == (
        User.of("hello"),
        Assistant((Text("a"), ToolUse("t", "Bash", {})), id="m1"),
        User.of(ToolOutput("t", "r")),
    )


def test_a_torn_last_line_is_cut_off_and_kept_beside(tmp_path: Path) -> None:
    """The run goes on from the last whole line; no byte is lost."""
    path = written(tmp_path / "s.jsonl", *TALK)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"type": "assistant", "mess')

    transcript, messages = resume(path)
    transcript.add(User.of("on we go"))
    transcript.close()

    assert messages == TALK
    assert path.read_bytes().startswith(whole)
    assert read_transcript(path)[0] == (*TALK, User.of("on we go"))
    assert (tmp_path / "s.torn").read_bytes() == b'{"type": "assistant", "mess\n'


def test_the_chain_of_parents_goes_on_after_a_resume(tmp_path: Path) -> None:
    """The first new line names the last old one."""
    path = written(tmp_path / "s.jsonl", User.of("a"))
    transcript, _ = resume(path)
    transcript.add(User.of("b"))
    transcript.close()

    old, new = (json.loads(line) for line in path.read_text().splitlines())
    assert new["parentUuid"] == old["uuid"]


def test_a_line_of_garbage_in_the_middle_is_passed_over_and_counted(tmp_path: Path) -> None:
    """One bad line never costs the others."""
    path = written(tmp_path / "s.jsonl", User.of("a"))
    with path.open("ab") as file:
        file.write(b"\x00\x00\xff\n[1]\n")
    written(path, User.of("b"))

    transcript, messages = resume(path)
    transcript.close()

    assert messages == (User.of("a"), User.of("b"))


def test_half_characters_do_not_lose_the_line(tmp_path: Path) -> None:
    """A model may say what UTF-8 cannot write."""
    path = written(tmp_path / "s.jsonl", User.of("a \ud800 b", ToolOutput("t", [{"type": "text", "text": "\udfff"}])))

    assert read_transcript(path)[0] == (User.of("a ? b", ToolOutput("t", [{"type": "text", "text": "?"}])),)


def test_a_second_run_gets_a_copy(tmp_path: Path) -> None:
    """Two runs of one session never write into each other; the second is told whose copy it has."""
    path = written(tmp_path / "s.jsonl", User.of("a"))
    first, _ = resume(path)

    second, _ = resume(path)
    first.add(User.of("first"))
    second.add(User.of("second"))
    first.close()
    second.close()

    assert first.session_id == "s"
    assert second.session_id == second.path.stem != "s"
    assert read_transcript(path)[0] == (User.of("a"), User.of("first"))
    assert read_transcript(second.path)[0] == (User.of("a"), User.of("second"))


def test_a_run_that_ended_holds_nothing(tmp_path: Path) -> None:
    """A fork happens only while the other run lives; `fork=True` asks for one."""
    path = written(tmp_path / "s.jsonl", User.of("a"))
    resume(path)[0].close()

    (again, _), (copy, _) = resume(path), resume(path, fork=True)
    again.close()
    copy.close()

    assert again.session_id == "s" != copy.session_id


def test_after_a_compaction_only_the_summary_counts(tmp_path: Path) -> None:
    """The old lines stay on disk; after a clear, another session begins in a file of its own."""
    transcript = Transcript(tmp_path / "s.jsonl", "s")
    for message in TALK:
        transcript.add(message)
    transcript.compacted("they said hello")
    transcript.add(User.of("next"))
    fresh = transcript.renewed("t")
    fresh.close()

    assert read_transcript(transcript.path)[0] == (User.of("they said hello", synthetic=True), User.of("next"))
    assert (fresh.path.name, read_transcript(fresh.path)[0]) == ("t.jsonl", ())
    assert "done ☃" in transcript.path.read_text()


def test_calls_nobody_answered_are_known(tmp_path: Path) -> None:
    """A killed run leaves them; they can be run now or answered as interrupted."""
    path = written(tmp_path / "s.jsonl", *TALK[:3])

    (use,) = unanswered(read_transcript(path)[0])

    assert use == ToolUse("t1", "Bash", {"command": "ls"})
    assert unanswered((*read_transcript(path)[0], User((ToolOutput(use.id),)))) == ()


def test_a_full_disk_is_told_and_nothing_before_is_lost(tmp_path: Path) -> None:
    """A real limit on the file's size: the line that does not fit is taken back whole, and the error says so."""
    program = (
        "import resource, signal, sys; from pathlib import Path;"
        "from hookline.agent.session.transcript import Transcript; from hookline.agent.messages import User;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "t = Transcript(Path(sys.argv[1]), 's');"
        "[t.add(User.of('x' * 500)) for _ in range(100)]"
    )
    path = tmp_path / "s.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60, check=False
    )

    assert f"TranscriptError: {path}: cannot write:" in done.stderr
    assert path.read_bytes().endswith(b"\n")
    assert read_transcript(path)[0] == (User.of("x" * 500),) * (path.read_bytes().count(b"\n"))
    assert len(read_transcript(path)[0]) >= 2


WRITERS = """
import os, signal, sys
from pathlib import Path
from hookline.agent.messages import User
from hookline.agent.session.transcript import Transcript, resume

def write(path):
    transcript = resume(path)[0] if path.exists() else Transcript(path, path.stem)
    print(os.getpid(), flush=True)
    for n in range(2000):  # some 20 MB, far more than until it is killed, unless whoever kills is held up
        transcript.add(User.of(f"{n} " + "x" * (n * 7919 % 20000)))
    signal.pause()

for name in sys.stdin:
    pid = os.fork()
    if pid == 0:
        write(Path(name.strip()))
    os.waitpid(pid, 0)
    print("dead", flush=True)
"""


def test_a_killed_run_leaves_a_transcript_that_resumes(tmp_path: Path) -> None:
    """SIGKILL at random moments, each run going on where the last one died: no line is ever torn in the middle.

    Set `HOOKLINE_KILLS` for more than the usual twenty; every tenth run begins a new transcript.
    """
    rng, before = random.Random(4), 0
    command = [sys.executable, "-c", WRITERS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        for number in range(KILLS):
            path = tmp_path / f"{number // 10}.jsonl"
            writers.stdin.write(f"{path}\n")
            pid = int(writers.stdout.readline())
            time.sleep(rng.uniform(0, 0.02))  # the moment of death, not a wait for something
            os.kill(pid, signal.SIGKILL)
            assert writers.stdout.readline() == "dead\n"
            before = _check_resumes(path, before if number % 10 else 0)
        writers.stdin.close()


def _check_resumes(path: Path, before: int) -> int:
    """Every line since the last look is whole, and the transcript resumes with all of them."""
    *whole, _tail = path.read_bytes().split(b"\n")
    assert all(json.loads(line)["type"] == "user" for line in whole[before:])
    transcript, messages = resume(path)
    transcript.close()
    assert (transcript.path, len(messages)) == (path, len(whole))
    return len(whole)


def test_sessions_are_found_where_claude_code_keeps_them(tmp_path: Path) -> None:
    """By id, by path, or the latest; a folder's name is its path with dashes."""
    environ = {"HOME": str(tmp_path)}
    old = written(transcript_path("/a/b.c_d", "one", environ), User.of("x"))
    new = written(transcript_path("/a/b.c_d", "two", environ), User.of("x"))
    os.utime(old, (1, 1))

    assert old == tmp_path / ".claude/projects/-a-b-c-d/one.jsonl"
    assert find("one", "/a/b.c_d", environ) == old
    assert find("one", "/elsewhere", environ) == old
    assert find(str(new), "/elsewhere", environ) == new
    assert latest("/a/b.c_d", environ) == new
    for session in ("three", "../one", "*"):
        with pytest.raises(TranscriptError, match="no session"):
            find(session, "/a/b.c_d", environ)


def test_the_folder_name_of_a_very_long_path_fits_the_file_system(tmp_path: Path) -> None:
    """Two long paths with the same beginning stay apart."""
    environ = {"HOME": str(tmp_path)}
    first, second = ("/" + "x" * 300 + end for end in "ab")

    paths = [written(transcript_path(cwd, "s", environ), User.of("x")) for cwd in (first, second)]

    assert paths[0] != paths[1]


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """Conversations are private."""
    path = written(tmp_path / "deep" / "s.jsonl", User.of("x"))

    assert path.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """The path and the reason are named."""
    (tmp_path / "file").write_text("")

    with pytest.raises(TranscriptError, match="cannot open"):
        Transcript(tmp_path / "file" / "s.jsonl", "s")
    with pytest.raises(TranscriptError, match="no such transcript"):
        resume(tmp_path / "none.jsonl")
    assert module.read_transcript(written(tmp_path / "s.jsonl"))[0] == ()
