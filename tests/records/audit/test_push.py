"""A log on its way to a receiver: each record arrives, in order, at least once, whatever goes wrong on the way."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline.cli.main import main
from hookline.errors import AuditError
from hookline.records.audit.log_file import AuditFile
from hookline.records.audit.push import Pusher, push_states, sinks_in
from hookline.records.audit.reader import Cursor
from tests.records.audit.receivers import Collector, Syslog, certificate


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "state" / "hookline"


@pytest.fixture
def log(tmp_path: Path) -> AuditFile:
    return AuditFile(tmp_path / "audit.jsonl")


def write(log: AuditFile, count: int) -> None:
    said = {"time": "2026-11-18T08:00:00.000+00:00", "event": "PreToolUse", "tool": "Bash", "decision": "deny"}
    log.append([{**said, "run": "s1", "input": {"command": "ls"}}] * count)


def numbers(received: list[Any]) -> list[int]:
    return [one["seq"] for one in received]


def in_order(seqs: list[int]) -> list[int]:
    """What arrived for the first time, one after another; what comes again must have come before."""
    return list(dict.fromkeys(seqs))


def syslog_numbers(server: Syslog) -> list[int]:
    return [int(re.findall(rb'sequenceId="(\d+)"', message)[0]) for message in server.messages()]


def lines_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


# -- where to ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
def test_syslog_takes_messages_of_rfc_5424(tmp_path: Path, log: AuditFile, *, tls: bool) -> None:
    """Framed by their length, over TCP or TLS; the body is the OCSF event."""
    if tls:
        pytest.importorskip("cryptography")
    pem = certificate(tmp_path) if tls else None
    write(log, 3)
    with closing(Syslog(pem)) as server:
        to = f"syslog+tls://localhost:{server.port}?ca={pem}" if tls else f"syslog://localhost:{server.port}"
        assert Pusher(log.path, to).until_sent() == 3
        messages = server.messages()

    assert len(messages) == 6  # the step, and the finding that it was denied
    head = rb'<108>1 2026-11-18T08:00:00.000\+00:00 \S+ hookline \d+ PreToolUse \[meta sequenceId="1"\]\[origin '
    assert re.match(head + rb'software="hookline"\] \{', messages[0])
    assert [json.loads(one.partition(b'"] ')[2])["class_uid"] for one in messages[:2]] == [1007, 2004]


def test_a_certificate_that_is_not_known_is_not_sent_to(tmp_path: Path, log: AuditFile) -> None:
    """Without the authority's file, and for another name, nothing leaves."""
    pytest.importorskip("cryptography")
    write(log, 1)
    with closing(Syslog(certificate(tmp_path))) as server:
        with pytest.raises(AuditError, match="CERTIFICATE_VERIFY_FAILED"):
            Pusher(log.path, f"syslog+tls://localhost:{server.port}").until_sent()
        assert server.messages() == []


def test_otlp_takes_one_request_per_batch(log: AuditFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON over HTTP to `/v1/logs`, with the headers of OpenTelemetry's own variable."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer x,tenant=a")
    write(log, 2)
    with closing(Collector()) as server:
        Pusher(log.path, f"http://localhost:{server.port}").until_sent()
    [(path, headers, body)] = server.requests

    assert (path, headers["Tenant"], headers["Authorization"]) == ("/v1/logs", "a", "Bearer x")
    assert [len(one["scopeLogs"][0]["logRecords"]) for one in body["resourceLogs"]] == [1, 1]


def test_a_file_and_a_command_take_the_records_as_they_are(tmp_path: Path, log: AuditFile) -> None:
    """Or in another format that is named."""
    write(log, 2)
    Pusher(log.path, f"file:{tmp_path / 'a'}").until_sent()
    Pusher(log.path, f"exec:sh -c 'cat >> {tmp_path}/b'").until_sent()
    Pusher(log.path, f"file:{tmp_path / 'c'}", "ocsf").until_sent()

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert numbers(lines_in(tmp_path / "a")) == [1, 2]
    assert [one["class_uid"] for one in lines_in(tmp_path / "c")] == [1007, 2004] * 2


@pytest.mark.parametrize(
    "to, form, why",
    [
        ("ftp://x", "", "begins with one of `syslog:`"),
        ("syslog://", "", "names no host"),
        ("syslog://x:99999", "", "out of range"),
        ("syslog+tls://x?ca=/nowhere", "", "a certificate cannot be read"),
        ("http://x", "ocsf", "cannot take the format `ocsf`"),
        ("file:x", "otlp", "cannot take the format `otlp`"),
        ("exec:", "", "names no command"),
    ],
)
def test_an_address_that_cannot_be_understood_says_why(log: AuditFile, to: str, form: str, why: str) -> None:
    """Before anything is sent."""
    with pytest.raises(AuditError, match=why):
        Pusher(log.path, to, form)


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_receiver_that_is_away_gets_everything_later(log: AuditFile) -> None:
    """The log is the queue: nothing is lost and nothing waits for it; the lag is told."""
    first = Syslog()
    port = first.port
    first.close()
    to = f"syslog://localhost:{port}"
    for _ in range(3):
        write(log, 700)
        with pytest.raises(AuditError, match="Connection refused"):
            Pusher(log.path, to).until_sent()
    [waiting] = push_states()
    assert (waiting.behind, waiting.sent, "refused" in waiting.problem) == (2100, 0, True)
    with closing(Syslog(port=port)) as server:
        assert Pusher(log.path, to).until_sent() == 2100

    assert in_order(syslog_numbers(server)) == list(range(1, 2101))
    assert (push_states()[0].behind, push_states()[0].problem) == (0, "")


@pytest.mark.parametrize("tls", [False, True])
def test_a_receiver_that_dies_in_the_middle_gets_the_batch_again(tmp_path: Path, log: AuditFile, *, tls: bool) -> None:
    """Whatever it had read: what it did not take to the end is sent again, so nothing is skipped."""
    if tls:
        pytest.importorskip("cryptography")
    pem = certificate(tmp_path) if tls else None
    write(log, 1200)
    deaths = (1, 1_000, 100_000, 300_000)
    with closing(Syslog(pem, dies=deaths)) as server:
        to = f"syslog+tls://localhost:{server.port}?ca={pem}" if tls else f"syslog://localhost:{server.port}"
        for _ in deaths:
            with pytest.raises(AuditError, match=r"reset|EOF|pipe|violation|not connected"):
                Pusher(log.path, to).until_sent()
        Pusher(log.path, to).until_sent()

    assert in_order(syslog_numbers(server)) == list(range(1, 1201))


def test_a_tls_receiver_that_leaves_without_a_word_is_not_believed(tmp_path: Path, log: AuditFile) -> None:
    """It may have been killed; where a receiver always leaves so, the address can say it."""
    pytest.importorskip("cryptography")
    pem = certificate(tmp_path)
    write(log, 1)
    with closing(Syslog(pem, says_goodbye=False)) as server:
        to = f"syslog+tls://localhost:{server.port}?ca={pem}"
        with pytest.raises(AuditError, match="without `close_notify`; add `close=any`"):
            Pusher(log.path, to).until_sent()
        assert Pusher(log.path, f"{to}&close=any").until_sent() == 1


def test_a_collector_that_refuses_gets_the_batch_again(log: AuditFile) -> None:
    """Busy, broken, or taking only a part of it."""
    write(log, 3)
    refusals = ((503, b""), (500, b"x"), (200, b'{"partialSuccess": {"rejectedLogRecords": "1"}}'))
    with closing(Collector(refusals)) as server:
        for _ in refusals:
            with pytest.raises(AuditError, match=r"50[03]|rejected 1 of 3"):
                Pusher(log.path, f"http://localhost:{server.port}").until_sent()
        Pusher(log.path, f"http://localhost:{server.port}").until_sent()

    assert len(server.requests[-1][2]["resourceLogs"]) == 3


def test_a_receiver_that_answers_nonsense_gets_the_batch_again(log: AuditFile) -> None:
    """Whatever it says instead of HTTP, it has not said that it took the records."""
    write(log, 1)
    for nonsense in (b"", b"hello\r\n\r\n", b"HTTP/1.1 99999 x\r\n\r\n"):
        with socket.create_server(("localhost", 0)) as server:
            thread = threading.Thread(target=_answer, args=(server, nonsense))
            thread.start()
            with pytest.raises(AuditError):
                Pusher(log.path, f"http://localhost:{server.getsockname()[1]}").until_sent()
            thread.join()


def _answer(server: socket.socket, data: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1 << 16)
        connection.sendall(data)


def test_half_written_lines_wait_until_they_are_whole(tmp_path: Path, log: AuditFile) -> None:
    """A writer that was killed leaves a torn line; the next one cuts it off, and nothing of it was sent."""
    pusher = Pusher(log.path, f"file:{tmp_path / 'out'}")
    for torn in (b'{"seq":', b'{"seq":4,"prev":"x","no'):
        write(log, 2)
        with log.path.open("ab") as file:
            file.write(torn)
        pusher.until_sent()
    write(log, 1)
    Pusher(log.path, f"file:{tmp_path / 'out'}").until_sent()

    assert numbers(lines_in(tmp_path / "out")) == [1, 2, 3, 4, 5]


def test_rotations_are_followed(tmp_path: Path) -> None:
    """Also those that happened while the receiver was away, and a copy of the log in other files."""
    log, out = AuditFile(tmp_path / "audit.jsonl", max_bytes=1_000), tmp_path / "out"
    pusher = Pusher(log.path, f"file:{out}")
    for _ in range(10):
        write(log, 3)
        pusher.step()
    assert len(log.rotated()) > 3
    Pusher(log.path, f"file:{out}").until_sent()
    for path in (log.path, *log.rotated()):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    write(log, 1)
    Pusher(log.path, f"file:{out}").until_sent()

    assert numbers(lines_in(out)) == list(range(1, 32))


def test_what_was_deleted_before_it_was_sent_is_counted(tmp_path: Path) -> None:
    """A log that keeps too few files for a receiver that is away: the rest arrives, and it is told what did not."""
    log, out = AuditFile(tmp_path / "audit.jsonl", max_bytes=1_000, keep=1), tmp_path / "out"
    write(log, 2)
    Pusher(log.path, f"file:{out}").until_sent()
    for _ in range(20):
        write(log, 3)
    Pusher(log.path, f"file:{out}").until_sent()
    [state], seqs = push_states(), numbers(lines_in(out))

    assert seqs[:2] == [1, 2]
    assert seqs[2:] == list(range(seqs[2], 63))
    assert state.missing == seqs[2] - 3 > 0


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """Files cannot grow beyond `size`: as good as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_at_the_receiver_leaves_no_half_of_a_batch(tmp_path: Path, log: AuditFile) -> None:
    """What could only be written in part is taken back, and comes once there is room."""
    write(log, 20)
    with no_room(2_000), pytest.raises(AuditError, match="File too large"):
        Pusher(log.path, f"file:{tmp_path / 'out'}").until_sent()
    assert (tmp_path / "out").read_bytes() == b""
    Pusher(log.path, f"file:{tmp_path / 'out'}").until_sent()

    assert numbers(lines_in(tmp_path / "out")) == list(range(1, 21))


def test_a_full_disk_here_costs_the_place_and_not_a_record(log: AuditFile) -> None:
    """The place cannot be noted: this process goes on where it is, the next one sends again what it cannot know of."""
    write(log, 3)
    with closing(Syslog()) as server:
        pusher = Pusher(log.path, f"syslog://localhost:{server.port}")
        with no_room(10):
            assert pusher.until_sent() == 3
        assert push_states() == []
        write(log, 1)
        with no_room(10):
            assert pusher.until_sent() == 1
        assert Pusher(log.path, f"syslog://localhost:{server.port}").until_sent() == 4

    assert in_order(syslog_numbers(server)) == [1, 2, 3, 4]


def test_a_pusher_that_is_killed_goes_on_from_what_was_noted(tmp_path: Path, log: AuditFile) -> None:
    """Killed after the receiver took a batch and before that was noted, three times: it comes twice, none is lost."""
    out = tmp_path / "out"
    receiver = tmp_path / "receiver.sh"
    receiver.write_text(f"cat >> {out}; [ -e {tmp_path}/kill ] && rm {tmp_path}/kill && kill -9 $PPID; exit 0")
    command = [sys.executable, "-m", "hookline", "audit", "push", str(log.path), "--to", f"exec:sh {receiver}"]
    for _ in range(3):
        write(log, 600)
        (tmp_path / "kill").touch()
        assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    seqs = numbers(lines_in(out))

    assert in_order(seqs) == list(range(1, 1801))
    assert len(seqs) == 1800 + 3 * 500


def test_following_sends_what_is_written_meanwhile(tmp_path: Path, log: AuditFile) -> None:
    """And ends when it is told to; a receiver that is away is tried again, ever more slowly."""
    pusher, waits = Pusher(log.path, f"file:{tmp_path / 'no' / 'out'}"), []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 1:
            write(log, 2)
        if len(waits) == 4:
            (tmp_path / "no").mkdir()
        return len(waits) == 6

    pusher.follow(wait)

    assert waits == [0.5, 1.0, 2.0, 4.0, 0.5, 0.5]
    assert numbers(lines_in(tmp_path / "no" / "out")) == [1, 2]


# -- by command --------------------------------------------------------------------------------------------------------


def test_push_by_command_and_by_settings(
    tmp_path: Path, log: AuditFile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--to`, or the user's own `sink`; a project's is not heeded: it could send the log anywhere."""
    write(log, 2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"sink": f"file:{tmp_path}/stolen"}))

    assert main(["audit", "push", str(log.path), "--to", f"file:{tmp_path}/out"]) == 0
    assert f"file:{tmp_path}/out: 2 records sent" in capsys.readouterr().out
    assert main(["audit", "push", str(log.path)]) == 2
    assert "no receiver" in capsys.readouterr().err
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    mine = {"sink": [f"file:{tmp_path}/a", {"to": f"file:{tmp_path}/b", "log": str(log.path), "format": "ocsf"}]}
    (tmp_path / "home" / ".claude" / "settings.json").write_text(json.dumps(mine))
    assert main(["audit", "push", str(log.path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file() and len(path.name) < 9) == [
        "a",
        "b",
        "out",
    ]


def test_one_process_pushes_a_log_to_a_place(tmp_path: Path, log: AuditFile) -> None:
    """A second one says so instead of sending everything twice."""
    first = Pusher(log.path, f"file:{tmp_path / 'out'}")
    first.acquire()
    with pytest.raises(AuditError, match="another process pushes it there already"):
        Pusher(log.path, f"file:{tmp_path / 'out'}").acquire()


def test_following_ends_with_the_process_that_started_it(tmp_path: Path, log: AuditFile) -> None:
    """As the resident service does it: standard input is a pipe that only the service holds open."""
    write(log, 2)
    command = [sys.executable, "-m", "hookline", "audit", "push", str(log.path), "--follow", "--until-eof"]
    with subprocess.Popen([*command, "--to", f"exec:sh -c 'cat >> {tmp_path}/out; echo > {tmp_path}/done'"],
                          stdin=subprocess.PIPE) as process:  # fmt: skip
        ended = threading.Event()
        while not (tmp_path / "done").exists():
            assert not ended.wait(0.05)
            assert process.poll() is None
        process.communicate(timeout=30)

    assert process.returncode == 0
    assert numbers(lines_in(tmp_path / "out")) == [1, 2]


@pytest.mark.parametrize("raw", [{}, 5, [""], {"to": 1}, {"to": "file:x", "lgo": "x"}, [{"log": "x"}]])
def test_a_sink_that_cannot_be_understood_says_what_to_write(raw: Any) -> None:
    """Where it stands in settings."""
    with pytest.raises(AuditError, match="sink: expected"):
        list(sinks_in(raw))


def test_a_note_of_an_older_form_begins_again(tmp_path: Path, log: AuditFile, state: Path) -> None:
    """A note that cannot be read costs duplicates, not records."""
    write(log, 2)
    Pusher(log.path, f"file:{tmp_path / 'out'}").until_sent()
    [note] = (state / "audit").glob("push-*.json")
    note.write_bytes(msgspec.json.encode({"log": "x"}))
    assert Pusher(log.path, f"file:{tmp_path / 'out'}").state.cursor == Cursor()
    Pusher(log.path, f"file:{tmp_path / 'out'}").until_sent()

    assert numbers(lines_in(tmp_path / "out")) == [1, 2, 1, 2]
