"""The audit log as an observer: what is in a line, what never is, and what happens when it cannot be written."""

import asyncio
import json
import logging
import resource
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from hookline import Hooks, allow, deny, rewrite, stop
from hookline.core.engine import Verdict
from hookline.core.engine.policy import policy_digest
from hookline.errors import AuditError
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse, SessionEnd, SessionStart, Stop
from hookline.guards.detect import redact as default_redactor
from hookline.records.audit import log as audit_module
from hookline.records.audit.entry import MOST_TEXT, record
from hookline.records.audit.log import AuditLog, read
from hookline.replies import NOTHING
from hookline.testing import announced, bash

GITHUB_TOKEN = "ghp_" + "aB3d" * 9
ANTHROPIC_KEY = "sk-ant-api03-" + "Zx9_" * 12


def lines(path: Path) -> list[dict[str, Any]]:
    return [dict(line) for line in read(path)]


@contextmanager
def no_room(size: int = 1100) -> Iterator[None]:
    """Files cannot grow beyond `size`: as good as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- what is in a line -----------------------------------------------------------------------------------------------


async def test_a_line_says_when_who_what_and_why(tmp_path: Path) -> None:
    """One verdict, one line, with all that a compliance officer asks for."""
    hooks = Hooks()
    hooks.on("PreToolUse", name="no-rm")(lambda event: deny("never that"))
    log = AuditLog(tmp_path / "audit.jsonl", user="ada")
    hooks.observe(log, inline=True)
    event = bash("rm -rf /", session_id="s1", agent_id="a1", tool_use_id="t1")
    await hooks.fire(event)
    assert log.flush()
    (line,) = lines(log.file.path)
    (hook,) = line.pop("hooks")

    assert line.pop("ms") == hook.pop("ms")
    assert hook == {"hook": "no-rm", "status": "ok", "decision": "deny"}
    assert {k: v for k, v in line.items() if k not in ("hash", "prev")} == {
        "seq": 1,
        "time": event.timestamp.isoformat(timespec="milliseconds"),
        "run": "s1",
        "user": "ada",
        "agent": "a1",
        "cwd": "/project",
        "event": "PreToolUse",
        "subject": "Bash",
        "tool": "Bash",
        "tool_use_id": "t1",
        "decision": "deny",
        "blocked": True,
        "by": "no-rm",
        "reasons": ["never that"],
        "mode": "default",
        "input": {"command": "rm -rf /"},
        "policy_digest": policy_digest(hooks.hooks),
    }


@pytest.mark.parametrize(
    "event, words",
    [
        (PostToolUse(tool_name="Bash", tool_response={"stdout": "hi"}, duration_ms=12.5),
         {"result": {"stdout": "hi"}, "duration_ms": 12.5}),
        (PostToolUseFailure(tool_name="Bash", error="exit 1: boom"), {"error": "exit 1: boom"}),
        (SessionStart(source="resume", model="opus", transcript_path="/t.jsonl", permission_mode="plan"),
         {"source": "resume", "model": "opus", "transcript_path": "/t.jsonl", "mode": "plan"}),
        (SessionEnd(reason="logout"), {"reason": "logout"}),
        (Stop(last_assistant_message="done"), {"last_assistant_message": "done"}),
        (PostToolUse(tool_name="X", extra={"new_field": 1}), {"extra": {"new_field": 1}}),
    ],
)  # fmt: skip
def test_results_errors_and_session_metadata_are_in_the_line(event: Any, words: dict[str, Any]) -> None:
    """US-2: what a tool gave, how it failed, and how a session began and ended."""
    said = record(Verdict(event, NOTHING))

    assert {name: said.get(name) for name in words} == words


async def test_a_rewritten_input_stands_beside_the_first(tmp_path: Path) -> None:
    """Both what was asked for and what ran are on record."""
    hooks = Hooks()
    hooks.on("PreToolUse")(lambda event: rewrite({"command": "ls"}))
    verdict = await hooks.fire(bash("rm x"))

    said = record(verdict)
    assert (said["input"], said["rewritten"]) == ({"command": "rm x"}, {"command": "ls"})


async def test_a_stop_is_on_record_with_its_reason() -> None:
    """A hook that ended the turn is named, and so is why."""
    hooks = Hooks()
    hooks.on("PreToolUse", name="limit")(lambda event: stop("enough"))
    said = record(await hooks.fire(bash("ls")))

    assert (said["stop"], said["by"], said["reasons"], said["blocked"]) == (True, "limit", ["enough"], True)


async def test_what_a_tool_changes_later_is_not_what_is_recorded(tmp_path: Path) -> None:
    """The line shows the input as it was judged, though the tool got the same object and changed it."""
    hooks = Hooks()
    log = AuditLog(tmp_path / "audit.jsonl")
    hooks.observe(log, inline=True)
    given: dict[str, Any] = {"command": "ls", "nested": {"list": [1, 2]}}
    await hooks.fire(PreToolUse(tool_name="Bash", tool_input=given))
    given["command"] = "changed"
    given["nested"]["list"].append(3)
    assert log.flush()

    assert lines(log.file.path)[0]["input"] == {"command": "ls", "nested": {"list": [1, 2]}}


def test_any_object_a_tool_may_return_can_be_recorded() -> None:
    """Half characters, huge numbers, bytes, sets, cycles and objects that cannot even be shown."""

    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    cycle: dict[str, Any] = {"name": "cycle"}
    cycle["self"] = cycle
    given = {
        "half": "a\udcffb", "huge": 10**30, "bytes": b"\x00", "set": {1}, "nan": float("nan"), 7: "seven",
        "hostile": Hostile(), "cycle": cycle, "deep": json.loads("[" * 500 + "]" * 500),
    }  # fmt: skip
    said = record(Verdict(PostToolUse(tool_name="T", tool_response=given), NOTHING), redact=default_redactor)

    assert json.loads(json.dumps(said["result"]))["half"] == "a\\udcffb"
    assert said["result"]["huge"] == str(10**30)
    assert said["result"]["7"] == "seven"
    assert said["result"]["hostile"] == "<Hostile>"


def test_a_record_is_bounded_whatever_the_tool_returned() -> None:
    """Many parts, long texts and many long texts all end up in a line of moderate size."""
    for given in (
        ["x"] * 1_000_000,
        "y" * 10_000_000,
        ["z" * 100_000] * 1000,
        {str(n): {"k": n} for n in range(99_999)},
    ):
        said = record(Verdict(PostToolUse(tool_name="T", tool_response=given), NOTHING), redact=default_redactor)

        assert said["tool"] == "T"
        assert len(json.dumps(said)) < 400_000


# -- secrets ---------------------------------------------------------------------------------------------------------


async def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    """In inputs, keys, reasons, errors, results, paths and names: nowhere."""
    hooks = Hooks()

    @hooks.on("PreToolUse", name=f"hook-{GITHUB_TOKEN}")
    async def denies(event: Any) -> Any:
        return deny(f"found {GITHUB_TOKEN}")

    @hooks.on("PostToolUse")
    async def fails(event: Any) -> None:
        raise ValueError(f"cannot use {GITHUB_TOKEN}")

    log = AuditLog(tmp_path / "audit.jsonl", user=f"u {GITHUB_TOKEN}")
    hooks.observe(log, inline=True)
    await hooks.fire(announced("TaskCreated", task_subject=ANTHROPIC_KEY, extra={"status": ANTHROPIC_KEY}))
    command = f"curl -H 'X: {ANTHROPIC_KEY}'"
    await hooks.fire(bash(command, cwd=f"/{GITHUB_TOKEN}", session_id=GITHUB_TOKEN, agent_type=GITHUB_TOKEN))
    deep = {
        "list": [{"k": [ANTHROPIC_KEY]}],
        f"key {GITHUB_TOKEN}": 1,
        "password": "hunter2",
        "db": {"api_key": "short1"},
    }
    await hooks.fire(PostToolUse(tool_name=GITHUB_TOKEN, tool_input=deep, tool_response=f"{ANTHROPIC_KEY}"))
    await hooks.fire(PostToolUseFailure(tool_name="T", error=ANTHROPIC_KEY, extra={"more": ANTHROPIC_KEY}))
    assert log.flush()
    text = log.file.path.read_text()

    assert len(lines(log.file.path)) == 4
    for secret in (GITHUB_TOKEN, ANTHROPIC_KEY, "hunter2", "short1"):
        assert secret not in text
    assert "[redacted: GitHub Token]" in text


@pytest.mark.parametrize("ends", [True, False])
def test_a_secret_across_the_cut_is_taken_out_whole(ends: bool) -> None:
    """Long texts are cut, but only after the secrets are out: a private key must not leave its first half behind."""
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 50
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n" + ("-----END PRIVATE KEY-----" if ends else "")
    text = "x " * ((MOST_TEXT - 200) // 2) + key + " and so on" * 1000
    said = record(Verdict(PostToolUse(tool_name="T", tool_response=text), NOTHING), redact=default_redactor)

    assert "MIIEvQ" not in said["result"]
    assert said["result"].endswith(f"({len(text):,} characters)")


@hypothesis.settings(max_examples=80, deadline=None)
@hypothesis.given(st.integers(0, 45_000), st.sampled_from(["", "key", "tokens", "passwords"]), st.integers(0, 60))
def test_no_part_of_a_token_is_left_at_a_cut(before: int, filling: str, shift: int) -> None:
    """Wherever a token lies in a long text, and however much the secrets before it shrink when they are taken out."""
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 60
    fillings = {
        "": "x " * 8,
        "key": f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n",
        "tokens": f"{ANTHROPIC_KEY} ",
        "passwords": "password=" + "Qw3" * 20 + " ",
    }
    start = fillings[filling] * (before // len(fillings[filling])) + "x " * shift
    text = f"{start} {GITHUB_TOKEN} {'y ' * 12_000}"
    said = record(Verdict(PostToolUse(tool_name="T", tool_response=text), NOTHING), redact=default_redactor)["result"]

    assert GITHUB_TOKEN[:8] not in said
    assert ANTHROPIC_KEY[:16] not in said
    assert "MIIEvQ" not in said
    assert len(said) <= MOST_TEXT + 40


@pytest.mark.parametrize(
    "value",
    [
        {"dbPassword": "hunter2"},
        {"clientSecret": "hunter2"},
        {"X-Api-Key": "hunter2"},
        {"AWS_SECRET_ACCESS_KEY": "hunter2"},
        {"GITHUB_TOKEN": "hunter2"},
        {"password": ["hunter2", "a"]},
        {"passwords": ["hunter2"]},
        {"secret": {"deep": ["hunter2"]}},
        {"credentials": {"user": "hunter2"}},
        {"password": 48151623, "not": "hunter2"[:0]},
        {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"env": [{"key": "apiKey", "default": "hunter2"}]},
        {"argv": ["tool", "--password", "hunter2"]},
        {"argv": ["tool", "--db-password=hunter2"]},
        {"command": ["curl", "-H", "Authorization: Basic aHVudGVyMg=="]},
        {"connectionString": "hunter2"},
        {"cookie": "hunter2"},
        {"list": [[{"privateKey": "hunter2"}]]},
    ],
)
def test_what_a_name_calls_a_secret_is_taken_out_however_deep(value: dict[str, Any]) -> None:
    """camelCase, lists, objects, arguments, pairs of name and value."""
    said = str(record(Verdict(PostToolUse(tool_name="T", tool_input=value), NOTHING), redact=default_redactor))

    for secret in ("hunter2", "48151623", "aHVudGVyMg"):
        assert secret not in said
    assert "[redacted: " in said


def test_names_that_only_resemble_a_secrets_are_kept() -> None:
    """Counts of tokens, names of files and settings."""
    value = {
        "max_tokens": 4096,
        "input_tokens": 12,
        "tokenizer": "bpe",
        "passwordFile": "/x",
        "key": "left",
        "on": True,
    }
    said = record(Verdict(PostToolUse(tool_name="T", tool_input=value), NOTHING), redact=default_redactor)

    assert said["input"] == value


async def test_a_redactor_that_fails_costs_the_payload_not_the_line(tmp_path: Path) -> None:
    """What cannot be cleaned is not written; that a verdict was made is."""

    def fails(text: str) -> str:
        raise KeyError(text)

    log = AuditLog(tmp_path / "audit.jsonl", redact=fails)
    log(Verdict(bash("secret"), NOTHING))
    assert log.flush()
    (line,) = lines(log.file.path)

    assert (line["event"], line["problem"]) == ("PreToolUse", "the rest could not be recorded: KeyError")
    assert "secret" not in log.file.path.read_text()


# -- failing the way the user chose ----------------------------------------------------------------------------------


async def fired(log: AuditLog, *commands: str) -> list[Verdict]:
    hooks = Hooks()
    hooks.on("PreToolUse", name="yes")(lambda event: allow())
    hooks.observe(log, inline=True)
    return [await hooks.fire(bash(command)) for command in commands]


@pytest.mark.parametrize("sync", ["batch", "line", "fsync"])
async def test_a_missing_folder_stops_the_agent_at_its_first_step(tmp_path: Path, sync: Any) -> None:
    """The first call is blocked already, and the reason says what is wrong."""
    log = AuditLog(tmp_path / "missing" / "audit.jsonl", sync=sync)
    (verdict,) = await fired(log, "ls")

    assert (verdict.blocked, verdict.stop) == (True, True)
    assert verdict.stop_reason is not None
    assert "the audit log cannot be written, so the agent must not go on" in verdict.stop_reason
    assert "audit.jsonl: cannot write the audit log: No such file or directory" in verdict.stop_reason
    with pytest.raises(AuditError):
        log.close()


@pytest.mark.parametrize("sync", ["batch", "line", "fsync"])
async def test_warn_says_so_and_goes_on(tmp_path: Path, sync: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The agent works on; the log says that it cannot be written, once, and at the end how much is missing."""
    (tmp_path / "file").write_text("")
    log = AuditLog(tmp_path / "file" / "audit.jsonl", sync=sync, on_error="warn")
    with caplog.at_level(logging.WARNING):
        verdicts = await fired(log, "one", "two")
        log.close()

    assert [verdict.blocked for verdict in verdicts] == [False, False]
    said = [message for message in caplog.messages if "Not a directory" in message]
    assert len(said) == 2
    assert said[-1].endswith("(2 verdicts were not recorded)")


WAS_BLOCKED = {"batch": [False] * 4, "line": [True] * 4}
"""In batch mode the four calls got through before anybody knew; in line mode each waited for its line."""


@pytest.mark.parametrize("sync", ["batch", "line"])
async def test_a_disk_that_fills_up_stops_the_agent_until_there_is_room(
    tmp_path: Path, sync: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was judged meanwhile is lost: it is written, as it was decided, once there is room."""
    monkeypatch.setattr(audit_module, "_BATCH_SECONDS", 5.0)  # four calls may take long; `flush` does not wait for it
    log = AuditLog(tmp_path / "audit.jsonl", sync=sync)
    await fired(log, "before")
    assert log.flush()
    with no_room():
        await fired(log, *["x" * 500] * 4)
        assert not log.flush()
        (blocked,) = await fired(log, "blocked")
        assert blocked.blocked
        assert "File too large" in blocked.reason
    assert log.flush()
    (after,) = await fired(log, "after")
    log.close()
    written = lines(log.file.path)

    assert not after.blocked
    assert [line["input"]["command"][:7] for line in written] == ["before", *["x" * 7] * 4, "blocked", "after"]
    assert [line["blocked"] for line in written] == [False, *WAS_BLOCKED[sync], True, False]
    assert log.file.verify() == []


async def test_a_batch_that_fails_is_noticed_at_the_next_verdict(tmp_path: Path) -> None:
    """In batch mode the failing call itself got through; the next does not."""
    log = AuditLog(tmp_path / "audit.jsonl")
    assert not (await fired(log, "fine"))[0].blocked
    log.flush()
    with no_room():
        first = (await fired(log, "x" * 3000))[0]
        log.flush()
        second = (await fired(log, "ls"))[0]
        with pytest.raises(AuditError, match="File too large"):
            log.close()

    assert (first.blocked, second.blocked) == (False, True)


def test_what_does_not_fit_in_memory_either_is_counted_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line says how many are missing, where they are missing."""
    monkeypatch.setattr(audit_module, "_MOST_UNWRITTEN", 10)
    folder = tmp_path / "later"
    log = AuditLog(folder / "audit.jsonl", on_error="warn", sync="line")
    for number in range(25):
        log(Verdict(bash(str(number)), NOTHING))
    folder.mkdir()
    assert log.flush()
    gap, *rest = lines(log.file.path)

    assert (gap["event"], gap["missing"]) == ("AuditGap", 15)
    assert [line["input"]["command"] for line in rest] == [str(n) for n in range(15, 25)]


@pytest.mark.parametrize("given", [{"sync": "often"}, {"on_error": "ignore"}])
def test_a_word_that_is_none_of_the_choices_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    """A typing mistake must not choose a policy."""
    with pytest.raises(AuditError, match="must be"):
        AuditLog(tmp_path / "a.jsonl", **given)


# -- the thread, the exit, the fork ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", ["line", "fsync"])
async def test_line_and_fsync_are_written_when_fire_returns(tmp_path: Path, sync: Any) -> None:
    """Nobody has to flush."""
    log = AuditLog(tmp_path / "audit.jsonl", sync=sync)
    for number in range(3):
        await fired(log, str(number))
        assert len(lines(log.file.path)) == number + 1


async def test_closing_the_hooks_writes_what_waits(tmp_path: Path) -> None:
    """After `async with Hooks()` the log can be read."""
    log = AuditLog(tmp_path / "audit.jsonl")
    async with Hooks() as hooks:
        hooks.observe(log, inline=True)
        for number in range(5):
            await hooks.fire(bash(str(number)))

    assert len(lines(log.file.path)) == 5


async def test_a_closed_log_opens_again(tmp_path: Path) -> None:
    """Two sets of hooks may share a log, one after another, and no thread is left behind."""
    log = AuditLog(tmp_path / "audit.jsonl")
    for number in range(3):
        await fired(log, str(number))
        log.close()

    assert len(lines(log.file.path)) == 3
    assert log._thread is None


def test_many_threads_may_tell_one_log(tmp_path: Path) -> None:
    """Every verdict of every thread is there when `flush` returns."""
    log = AuditLog(tmp_path / "audit.jsonl", redact=str)

    def tell(number: int) -> None:
        for step in range(100):
            log(Verdict(bash(f"{number} {step}"), NOTHING))
            if step % 30 == 0:
                assert log.flush()

    threads = [threading.Thread(target=tell, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()

    assert len({line["input"]["command"] for line in lines(log.file.path)}) == 800
    assert log.file.verify() == []


def test_a_slow_disk_makes_the_agent_wait_instead_of_filling_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue has a bound, and nothing is dropped at it."""
    monkeypatch.setattr(audit_module, "_MOST_WAITING", 50)
    log = AuditLog(tmp_path / "audit.jsonl", redact=str)
    for number in range(500):
        log(Verdict(bash(str(number)), NOTHING))
        assert len(log._waiting) <= 51
    log.close()

    assert [line["input"]["command"] for line in lines(log.file.path)] == [str(n) for n in range(500)]


HEAD = """
import asyncio, os, sys, multiprocessing
from hookline import Hooks
from hookline.records.audit.log import AuditLog
from hookline.testing import bash
path = sys.argv[1]
hooks, log = Hooks(), AuditLog(path, redact=str)
hooks.observe(log, inline=True)
def fire(*names):
    async def all_of_them():
        for name in names:
            await hooks.fire(bash(name))
    asyncio.run(all_of_them())
"""


def ran(path: Path, code: str) -> list[str]:
    """The commands on record after a program of its own ran."""
    done = subprocess.run(
        # since 3.12 Python warns of every fork of a process with threads, which is what these tests are about
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + textwrap.dedent(code), path],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    log = AuditLog(path)
    assert log.file.verify() == []
    return sorted(line["input"]["command"] for line in lines(path))


def test_a_program_that_just_ends_loses_nothing(tmp_path: Path) -> None:
    """No flush, no close: what waits is written at exit."""
    assert ran(tmp_path / "a.jsonl", "fire('one', 'two')") == ["one", "two"]


def test_a_program_that_ends_by_an_exception_or_exit_loses_nothing(tmp_path: Path) -> None:
    """`sys.exit` in the middle of things."""
    assert ran(tmp_path / "a.jsonl", "fire('one'); sys.exit(0)") == ["one"]


def test_verdicts_made_while_the_program_ends_are_written(tmp_path: Path) -> None:
    """An exit handler of the user's own may still fire events."""
    code = """
    import atexit
    atexit.register(lambda: fire('late'))
    fire('one')
    """
    assert ran(tmp_path / "a.jsonl", code) == ["late", "one"]


def test_a_forked_process_writes_its_own_lines_only(tmp_path: Path) -> None:
    """What waited in the parent is written once; the child's lines are written too, by a thread of its own."""
    code = """
    fire('parent before')
    pid = os.fork()
    if pid == 0:
        fire('child')
        log.flush() or os._exit(9)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    fire('parent after')
    """
    assert ran(tmp_path / "a.jsonl", code) == ["child", "parent after", "parent before"]


def test_a_forked_process_that_just_ends_loses_nothing(tmp_path: Path) -> None:
    """Also where `multiprocessing` ends the process, which runs no exit handlers."""
    code = """
    fire('parent')
    context = multiprocessing.get_context('fork')
    children = [context.Process(target=fire, args=(f'child {n}',)) for n in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    """
    assert ran(tmp_path / "a.jsonl", code) == ["child 0", "child 1", "child 2", "parent"]


def test_a_fork_while_the_thread_writes_leaves_no_lock_behind(tmp_path: Path) -> None:
    """Whatever the parent's threads hold at that moment, the child can write."""
    code = """
    import threading
    fire('busy')  # what the first event makes, under locks of the hooks, is there
    going = True
    def busy():
        while going: fire('busy')
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads: thread.start()
    for n in range(20):
        pid = os.fork()
        if pid == 0:
            fire(f'child {n}')
            os._exit(0 if log.flush(20) else 9)
        assert os.waitpid(pid, 0)[1] == 0
    going = False
    for thread in threads: thread.join()
    """
    assert sorted(set(ran(tmp_path / "a.jsonl", code))) == sorted(["busy", *(f"child {n}" for n in range(20))])


def test_without_file_locks_of_unix_the_log_can_still_be_imported(tmp_path: Path) -> None:
    """On Windows there is no `fcntl`; its own locks are used, and here stood in for."""
    code = """
    import asyncio, os, sys, types, hookline.core.engine
    held = []
    locks = {'LK_UNLCK': 0, 'LK_LOCK': 1, 'LK_NBLCK': 2}
    msvcrt = types.SimpleNamespace(**locks, locking=lambda fd, mode, length: held.append((mode, length)))
    sys.platform, sys.modules['fcntl'], sys.modules['msvcrt'] = 'win32', None, msvcrt
    from hookline.records.audit.log_file import AuditFile
    file = AuditFile(sys.argv[1])
    file.append([{'a': 1}]); file.append([{'a': 2}])
    assert held == [(1, 1), (0, 1)] * 2, held
    assert file.verify() == []
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "a.jsonl")]
    done = subprocess.run(command, capture_output=True, check=False)

    assert done.stderr.decode() == ""
    assert done.returncode == 0


async def test_other_observers_still_hear_of_every_hook(tmp_path: Path) -> None:
    """An audit log asks for verdicts only; who watches beside it is told as before."""
    heard: list[str] = []
    hooks = Hooks()
    hooks.on("PreToolUse")(lambda event: None)
    hooks.observe(AuditLog(tmp_path / "a.jsonl"), inline=True)
    await hooks.fire(bash("ls"))
    hooks.observe(lambda notice: heard.append(type(notice).__name__), inline=True)
    await hooks.fire(bash("ls"))
    await hooks.aclose()

    assert heard == ["HookStarted", "HookResponse", "Verdict"]
    assert len(lines(tmp_path / "a.jsonl")) == 2


async def test_every_kind_of_way_through_the_hooks_is_recorded_once(tmp_path: Path) -> None:
    """Quick or slow, matched or not: one event, one line."""
    log = AuditLog(tmp_path / "a.jsonl")
    async with Hooks() as hooks:
        hooks.observe(log, inline=True)

        @hooks.on("PreToolUse", match="Bash")
        async def quick(event: Any) -> None:
            return None

        @hooks.on("PreToolUse", match="Bash", when="Bash(wait*)")
        async def slow(event: Any) -> None:
            await asyncio.sleep(0)

        for command in ("a", "a", "wait", "b", "wait b"):
            await hooks.fire(bash(command))
            await hooks.fire(PostToolUse(tool_name="Other"))

    assert [line["event"] for line in lines(log.file.path)] == ["PreToolUse", "PostToolUse"] * 5


async def test_an_audit_log_is_inline_whether_one_says_so_or_not(tmp_path: Path) -> None:
    """Somebody who forgets `inline=True` is protected all the same."""
    hooks = Hooks()
    hooks.observe(AuditLog(tmp_path / "missing" / "audit.jsonl"))

    assert (await hooks.fire(bash("ls"))).blocked
