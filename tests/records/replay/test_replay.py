"""Reading records again: every format, every range, whatever else is in the file."""

import asyncio
import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Hooks, ask, deny, stop
from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.errors import HooklineError
from hookline.events import PermissionRequest, PostToolUse, UserPromptSubmit
from hookline.guards.permissions import read_rules
from hookline.records.audit.log import AuditLog
from hookline.records.replay import reader
from hookline.records.replay.compare import Flip, pieces, replay
from hookline.records.replay.reader import Range, RecordedCall, calls, refused
from hookline.testing import bash
from tests.environ import clean_environ

CLAUDE = Path(__file__).with_name("claude_transcript.jsonl")


def use(call: str, command: str) -> str:
    block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
    return json.dumps({"type": "assistant", "message": {"role": "assistant", "content": [block]}, "sessionId": "s"})


def result(call: str, text: Any = "fine", *, is_error: bool = False, **more: Any) -> str:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
    return json.dumps({"type": "user", "message": {"role": "user", "content": [block]}, "sessionId": "s", **more})


def said(found: Any) -> list[tuple[int, str, str]]:
    return [(call.line, call.event.tool_input["command"], call.decided) for call in found]


def command_of(call: RecordedCall) -> str:
    event: Any = call.event
    return str(event.tool_input.get("command") or event.tool_input.get("file_path"))


# -- formats ---------------------------------------------------------------------------------------------------------


def test_claude_codes_own_transcript_is_understood() -> None:
    """A real one: two calls that a hook refused, one that nobody allowed, one that failed, two that worked."""
    found = list(calls(CLAUDE))

    assert [(call.line, command_of(call), call.decided) for call in found] == [
        (7, "rm -rf build", "deny"),
        (8, "echo hello", "allow"),
        (13, "cat secret.txt", "deny"),
        (18, "/etc/hookline-sample", "ask"),
        (21, "nothing.txt", "allow"),
        (23, "echo again", "allow"),
    ]
    assert {call.event.cwd for call in found} == {"/home/u/project"}


def test_claude_transcripts_that_say_nothing_of_permission_are_understood_by_their_words(tmp_path: Path) -> None:
    """Older ones have only the text of the result."""
    old = tmp_path / "old.jsonl"
    known = ("toolDenialKind", "permissionDecision")
    entries = [json.loads(line) for line in CLAUDE.read_text().splitlines()]
    old.write_text("\n".join(json.dumps({k: v for k, v in e.items() if k not in known}) for e in entries) + "\n")

    assert [call.decided for call in calls(old)] == [call.decided for call in calls(CLAUDE)]


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: permission was denied for relation users",
        "bash: ./x: Permission denied",
        "the log says: PreToolUse:Bash hook error: old news",
        "fatal: access denied by administrator",
    ],
)
def test_a_tool_that_failed_was_not_refused(text: str) -> None:
    """Only how the text begins counts: a command may print any words."""
    assert not refused({"is_error": True, "content": text})
    assert not refused({"is_error": True, "content": [{"type": "text", "text": text}]})


async def test_our_own_transcript_is_understood(tmp_path: Path) -> None:
    """The words in which our agent refuses a call are known as such."""
    hooks = Hooks()

    @hooks.on("PreToolUse")
    async def judge(event: Any) -> Any:
        return {"denied": deny("no"), "asked": ask(), "stopped": stop("enough")}.get(event.tool_input["command"])

    commands = ("denied", "asked", "true", "stopped")
    turns = [{"tools": [["Bash", {"command": command}]]} for command in commands]
    async with Agent(
        model=Scripted.of(*turns), hooks=hooks, cwd=tmp_path, environ=clean_environ(tmp_path),
        rules=read_rules({}, allowed=["Bash"]),
    ) as agent:  # fmt: skip
        await agent.run("go")
        assert agent.conversation.transcript is not None
        found = list(calls(agent.conversation.transcript.path))

    assert [(command_of(call), call.decided) for call in found] == [
        ("denied", "deny"), ("asked", "deny"), ("true", "allow"), ("stopped", "deny"),
    ]  # fmt: skip
    assert {(call.event.cwd, call.event.session_id) for call in found} == {(str(tmp_path), agent.session.id)}


async def test_our_audit_log_is_understood(tmp_path: Path) -> None:
    """Calls, prompts and permission requests come back as the events they were; the rest is no decision to repeat."""
    path = tmp_path / "audit.jsonl"
    async with Hooks() as hooks:

        @hooks.on("PreToolUse")
        async def judge(event: Any) -> Any:
            return {"rm": deny("no"), "curl": ask("sure?")}.get(event.tool_input["command"])

        hooks.observe(AuditLog(path), inline=True)
        for command in ("ls", "rm", "curl"):
            await hooks.fire(bash(command, session_id="s", cwd="/p", agent_id="a", permission_mode="plan"))
        await hooks.fire(PostToolUse(tool_name="Bash", tool_response='{"type":"tool_use"}'))
        await hooks.fire(UserPromptSubmit(prompt="hello"))
        await hooks.fire(PermissionRequest(tool_name="Bash", tool_input={"command": "x" * 5000}))
    found = list(calls(path))

    assert [(c.line, c.event.event_name, c.decided, c.partial) for c in found] == [
        (1, "PreToolUse", "allow", False),
        (2, "PreToolUse", "deny", False),
        (3, "PreToolUse", "ask", False),
        (5, "UserPromptSubmit", "allow", False),
        (6, "PermissionRequest", "allow", True),
    ]
    first = found[0].event
    assert first == bash("ls", session_id="s", cwd="/p", agent_id="a", permission_mode="plan", transcript_path="")


def test_a_call_without_a_result_was_allowed(tmp_path: Path) -> None:
    """The session ended before it was done."""
    path = tmp_path / "t.jsonl"
    path.write_text(use("1", "ls"))

    assert said(calls(path)) == [(1, "ls", "allow")]


def test_results_that_come_in_another_order_find_their_calls(tmp_path: Path) -> None:
    """Calls made at once are answered as they are done."""
    path = tmp_path / "t.jsonl"
    denied = result("1", "PreToolUse:Bash hook error: no", is_error=True)
    path.write_text("\n".join([use("1", "rm"), use("2", "ls"), result("2"), denied]))

    assert sorted(said(calls(path))) == [(1, "rm", "deny"), (2, "ls", "allow")]


# -- ranges ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 120), min_size=1, max_size=40), st.integers(1, 400), st.booleans())
def test_ranges_that_meet_cover_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], size: int, ends: bool
) -> None:
    """Wherever a file is cut (in a line, at its end, in a newline), no call is lost, doubled or misnumbered."""
    path = tmp_path_factory.mktemp("ranges") / "t.jsonl"
    lines = [
        json.dumps({"event": "PreToolUse", "decision": "pass", "tool": "Bash", "input": {"command": "x" * n}})
        for n in lengths
    ]
    path.write_text("\n".join(lines) + ("\n" if ends else ""))
    found = [
        (call.line, len(command_of(call)) if lengths[call.line - 1] else 0)
        for piece in pieces([path], size)
        for call in Range(piece.path, piece.start, piece.end, before=piece.before)
    ]

    assert found == list(enumerate(lengths, 1))


def test_a_result_beyond_the_range_still_counts(tmp_path: Path) -> None:
    """A call at the end of one range is refused in the next; it is told once, by the first."""
    path = tmp_path / "t.jsonl"
    first = use("1", "rm") + "\n"
    path.write_text(first + result("1", "PreToolUse:Bash hook error: no", is_error=True) + "\n" + use("2", "ls") + "\n")

    assert said(Range(path, 0, len(first))) == [(1, "rm", "deny")]
    assert said(Range(path, len(first), path.stat().st_size)) == [(2, "ls", "allow")]


# -- whatever else is in the file ------------------------------------------------------------------------------------


def test_garbage_between_records_is_passed_over(tmp_path: Path) -> None:
    """Torn lines, other JSON, bytes that are no text, and deep nesting with the right words in it."""
    path = tmp_path / "t.jsonl"
    garbage = [
        b"", b"\x00\xff\xfe\x80" * 50, b'{"type":"assistant","message":', b"[]", b"null", b'"tool_use"',
        b'{"type":"user","message":{"content":[{"type":"tool_result"}]}}',
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","input":"text"}]}}',
        b'{"type":"assistant","message":{"content":"\\"tool_use\\""}}',
        b'{"decision": 7, "event": []}', b'{"a":"tool_use","b":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type":"assistant","message":{"content":[{"type":"tool_use"}, 7]}}',
        "\ud800".encode("utf-8", "surrogatepass"),
    ]  # fmt: skip
    path.write_bytes(b"\n".join([*garbage, use("1", "ls").encode(), *garbage, result("1").encode()]))

    assert said(calls(path)) == [(len(garbage) + 1, "ls", "allow")]


def test_empty_and_binary_files_hold_no_calls(tmp_path: Path) -> None:
    """Nothing is found, and nothing breaks."""
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "binary.jsonl").write_bytes(os.urandom(300_000))

    assert replay([tmp_path], Hooks, jobs=1).calls == 0


def test_a_line_that_is_too_long_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    """Two hundred megabytes without a newline cost neither memory nor the calls around them."""
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.write(f"{use('1', 'ls')}\n{result('1')}\n".encode() + b'{"tool_use":"')
        file.seek(200 << 20, os.SEEK_CUR)
        file.write(f'"}}\n{use("2", "pwd")}\n{result("2")}\n'.encode())
    code = """
    import sys, resource
    from hookline import Hooks
    from hookline.records.replay.compare import replay
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = replay([sys.argv[1]], Hooks, jobs=1)
    print(report.calls, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, check=True, timeout=120
    )
    found, megabytes = map(int, ran.stdout.split())

    assert found == 2
    assert megabytes < 120


def test_a_line_longer_than_its_range_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not cut within a line, however long that is."""
    path = tmp_path / "t.jsonl"
    path.write_text(f"{use('1', 'x' * 5000)}\n{use('2', 'ls')}\n")
    counts = [len(list(Range(piece.path, piece.start, piece.end))) for piece in pieces([path], 500)]

    assert sum(counts) == 2
    monkeypatch.setattr(reader, "MOST_LINE", 1000)
    assert said(calls(path)) == [(2, "ls", "allow")]


def test_a_file_that_is_cut_off_meanwhile_ends_there(tmp_path: Path) -> None:
    """What is read next is there when it is read, or the file has no more."""
    path = tmp_path / "t.jsonl"
    path.write_text(f"{use('1', 'ls')}\n" * 20)
    cut = pieces([path], 500)
    next(cut)
    path.write_bytes(b"")

    assert list(cut) == []


# -- replaying -------------------------------------------------------------------------------------------------------


def cautious() -> Hooks:
    hooks = Hooks()

    @hooks.on("PreToolUse", match="Bash")
    async def judge(event: Any) -> Any:
        word = event.tool_input["command"].split()[0]
        return {"rm": deny("no deleting"), "curl": ask("sure?"), "boom": 1 / 0 if word == "boom" else None}.get(word)

    return hooks


def written(path: Path, rows: list[tuple[str, str]]) -> None:
    """An audit log, as plain as it can be: commands, and what was decided then."""
    lines = [
        {
            "event": "PreToolUse",
            "decision": was,
            "blocked": was == "deny",
            "tool": "Bash",
            "input": {"command": command},
        }
        for command, was in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


ROWS = [
    ("ls", "pass"),
    ("ls", "deny"),
    ("rm x", "allow"),
    ("curl", "deny"),
    ("rm y", "deny"),
    ("curl", "allow"),
    ("ls", "ask"),
]
FLIPS = [(2, "deny", "allow"), (4, "deny", "ask"), (7, "ask", "allow"), (6, "allow", "ask"), (3, "allow", "deny")]


@pytest.mark.parametrize("jobs, size", [(1, 1 << 20), (1, 100), (2, 200)])
def test_what_would_be_decided_otherwise_is_told_the_loosened_first(tmp_path: Path, jobs: int, size: int) -> None:
    """DENY → ALLOW, then the lesser loosenings, then what got stricter; line numbers are the file's, in any pieces."""
    path = tmp_path / "audit.jsonl"
    written(path, ROWS)
    report = replay([path], cautious, jobs=jobs, size=size)

    assert [(flip.line, flip.was, flip.now) for flip in report.flips] == FLIPS
    assert (report.calls, report.flip_count, report.failures) == (7, 5, 0)
    assert report.flips[-1] == Flip(
        str(path), 3, "PreToolUse", "Bash", "rm x", "allow", "deny", "judge", "no deleting", partial=False
    )


def test_the_worst_flips_are_kept_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One loosened call among thousands that got stricter is not lost, wherever it stands."""
    monkeypatch.setattr("hookline.records.replay.compare.MOST_FLIPS", 10)
    path = tmp_path / "audit.jsonl"
    written(path, [*[("rm x", "allow")] * 500, ("ls", "deny"), *[("rm x", "allow")] * 100])
    report = replay([path], cautious, jobs=1, size=2000)

    assert len(report.flips) == 10
    assert (report.flips[0].line, report.flips[0].was, report.flips[0].now) == (501, "deny", "allow")
    assert report.flip_count == 601


def test_folders_are_searched_and_rotated_logs_are_found(tmp_path: Path) -> None:
    """A year of transcripts lies in folders of folders."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("deep/er/a.jsonl", "b.jsonl", "audit.jsonl.1", "audit.jsonl.head", "notes.txt"):
        written(tmp_path / name, [("ls", "deny")])

    assert sorted(Path(flip.file).name for flip in replay([tmp_path], cautious, jobs=1).flips) == [
        "a.jsonl", "audit.jsonl.1", "b.jsonl",
    ]  # fmt: skip


def test_a_hook_that_fails_is_counted(tmp_path: Path) -> None:
    """A replay that is all failures must not look like one that found nothing."""
    path = tmp_path / "audit.jsonl"
    written(path, [("boom", "allow"), ("ls", "allow")])
    report = replay([path], cautious, jobs=1)

    assert (report.calls, report.failures) == (2, 1)


def test_a_replay_is_not_itself_recorded(tmp_path: Path) -> None:
    """The audit log that today's hooks write to stays as it is."""
    path, mine = tmp_path / "audit.jsonl", tmp_path / "mine.jsonl"
    written(path, ROWS)

    def audited() -> Hooks:
        hooks = cautious()
        hooks.observe(AuditLog(mine), inline=True)
        return hooks

    assert replay([path], audited, jobs=1).calls == 7
    assert not mine.exists()


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    """Pieces add up to the file."""
    path = tmp_path / "audit.jsonl"
    written(path, ROWS)
    steps: list[int] = []
    replay([path], cautious, jobs=1, size=100, on_progress=lambda done, report: steps.append(done))

    assert sum(steps) == path.stat().st_size
    assert len(steps) > 5


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(HooklineError, match=r"gone\.jsonl: No such file or directory; name a file"):
        replay([tmp_path / "gone.jsonl"], cautious)


def test_twenty_megabytes_are_replayed_in_little_memory(tmp_path: Path) -> None:
    """Memory does not grow with the file."""
    path = tmp_path / "t.jsonl"
    pair = f"{use('1', 'grep needle')}\n{result('1', 'x' * 2000)}\n"
    with path.open("w") as file:
        for _ in range(20_000_000 // len(pair)):
            file.write(pair)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = asyncio.run(asyncio.to_thread(replay, [path], cautious, jobs=1))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert report.calls == 20_000_000 // len(pair)
    assert grown < 15_000  # KiB


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected"


def _transcript(path: Path, cwd: str, result: str, **more: Any) -> Path:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make deploy"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": result}
    lines = [
        {"type": "assistant", "cwd": cwd, "sessionId": "s", "message": {"content": [call]}},
        {"type": "user", "cwd": cwd, "sessionId": "s", "message": {"content": [answer]}, **more},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "result, more",
    [(REJECTED, {}), (f"Error: {REJECTED}", {}), ("no", {"toolDenialKind": "user-rejected"})],
    ids=["by its words", "with a prefix", "by its kind"],
)
@pytest.mark.parametrize(
    "reply, flips", [(None, 0), (ask("sure?"), 0), (deny("never"), 1)], ids=["pass", "ask", "deny"]
)
def test_a_persons_rejection_is_not_a_hooks_deny(
    tmp_path: Path, result: str, more: dict[str, str], reply: Any, flips: int
) -> None:
    """The hooks had let it pass: only a hook that would deny it now decides differently."""

    def make() -> Hooks:
        hooks = Hooks()
        hooks.add("PreToolUse", lambda event: reply, name="one")
        return hooks

    report = replay([_transcript(tmp_path / "t.jsonl", str(tmp_path), result, **more)], make, jobs=1)

    assert (report.calls, report.flip_count) == (1, flips)


@pytest.mark.parametrize("name", ["gone", "x" * 300])
def test_a_folder_that_is_gone_is_not_a_flip(tmp_path: Path, name: str) -> None:
    """A hook that only fails because the recorded folder is no longer there says nothing about the call."""
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true", "onFailure": "block"}]}]}}

    def make() -> Hooks:
        return Hooks.from_settings(tmp_path, settings=settings, setting_sources="", watch=False)

    path = _transcript(tmp_path / "t.jsonl", str(tmp_path / name), "make: no rule")
    report = replay([path], make, jobs=1)

    assert (report.calls, report.flip_count, report.vanished) == (1, 0, 1)


def test_a_folder_that_is_there_has_not_vanished(tmp_path: Path) -> None:
    """The same hook, where it can run."""
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true", "onFailure": "block"}]}]}}

    def make() -> Hooks:
        return Hooks.from_settings(tmp_path, settings=settings, setting_sources="", watch=False)

    report = replay([_transcript(tmp_path / "t.jsonl", str(tmp_path), "make: no rule")], make, jobs=1)

    assert (report.calls, report.vanished) == (1, 0)
