"""The index holds what the logs hold, however they grow, rotate, tear or lie."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.core.hooks import make_hook
from hookline.errors import HooklineError
from hookline.events import PreToolUse
from hookline.records.audit.entry import decision_word_of
from hookline.records.audit.push import Pusher
from hookline.records.audit.reader import logs_in
from hookline.records.console.index import LogIndex
from hookline.records.console.records import VERDICTS, EventRecord, decode, percentile, slot, slot_ms
from hookline.records.console.store import Filter, LogStore
from tests.records.console.place import Log


class Indexed:
    """An index over logs, and the store that asks it."""

    def __init__(self, folder: Path, *paths: Path, **options: Any) -> None:
        self.index = LogIndex(folder / "index.sqlite", logs_in(paths))
        self.index.refresh()
        self.store = LogStore(self.index, **options)

    def about(self, **wanted: Any) -> list[str]:
        return [row["about"] for row in self.rows(**wanted)]

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.store.page(Filter(**wanted), "", 500)["rows"]
        return found


def test_everything_in_a_log_is_in_its_index(log: Log, tmp_path: Path) -> None:
    """Newest first, with verdict, tool, session, hooks and reason."""
    log.bash("ls")
    log.denied("rm -rf /", "not that")

    [refused, listed] = Indexed(tmp_path, log.path).rows()

    assert (refused["verdict"], refused["tool"], refused["about"], refused["reason"], refused["by"]) == (
        "deny", "Bash", "rm -rf /", "not that", "guard",
    )  # fmt: skip
    assert (listed["verdict"], listed["about"], listed["session"], listed["hooks"], listed["ms"]) == (
        "pass",
        "ls",
        "session-1",
        1,
        1.5,
    )


def test_a_log_that_grows_is_read_on_from_where_it_was(log: Log, tmp_path: Path) -> None:
    """Only what is new is read, also by the next process."""
    log.bash("first")
    Indexed(tmp_path, log.path).index.close()
    log.bash("second")

    index = LogIndex(tmp_path / "index.sqlite", logs_in([log.path]))

    assert index.refresh() == 1
    assert index.refresh() == 0
    assert [row["about"] for row in LogStore(index).page(Filter(), "", 10)["rows"]] == ["second", "first"]


def test_rotated_files_belong_to_their_log(tmp_path: Path) -> None:
    """Before and after the index was made: no event is lost, none is there twice, and each is read from its file."""
    log = Log(tmp_path / "audit.jsonl", max_bytes=1_000)
    for number in range(10):
        log.bash(f"echo {number}")
    indexed = Indexed(tmp_path, log.path)
    for number in range(10, 30):
        log.bash(f"echo {number}")
        indexed.index.refresh()

    found = indexed.about()

    assert found == [f"echo {number}" for number in reversed(range(30))]
    assert len(list(tmp_path.glob("audit.jsonl.*"))) > 5
    for row in indexed.rows():
        detail = indexed.store.event(row["id"])
        assert detail is not None
        assert detail["record"]["input"]["command"] == row["about"]
        assert detail["chain"]["holds"]


def test_a_torn_last_line_waits_until_it_is_whole(log: Log, tmp_path: Path) -> None:
    """A line is read once its newline is there."""
    log.bash("whole")
    whole = log.path.read_bytes()
    log.bash("torn")
    torn = log.path.read_bytes()
    log.path.write_bytes(torn[: len(whole) + 40])
    indexed = Indexed(tmp_path, log.path)
    assert indexed.about() == ["whole"]

    with log.path.open("ab") as file:
        file.write(torn[len(whole) + 40 :])
    indexed.index.refresh()

    assert indexed.about() == ["torn", "whole"]


@pytest.mark.parametrize("change", ["shorter", "replaced", "rewritten"])
def test_a_log_that_is_not_the_one_indexed_is_read_from_the_start(log: Log, tmp_path: Path, change: str) -> None:
    """The log stays the truth."""
    for number in range(5):
        log.bash(f"old {number}")
    indexed = Indexed(tmp_path, log.path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    if change == "shorter":
        log.path.write_bytes(b"".join(lines[:2]))
    elif change == "replaced":
        other = Log(tmp_path / "other.jsonl")
        other.bash("new")
        other.path.replace(log.path)
    else:
        log.path.write_bytes(b"".join(lines).replace(lines[-1][-50:-10], b"f" * 40))

    indexed.index.refresh()

    expected = {"shorter": ["old 1", "old 0"], "replaced": ["new"]}
    assert indexed.about() == expected.get(change, [f"old {n}" for n in (4, 3, 2, 1, 0)])


def test_an_index_that_is_damaged_or_half_made_is_made_again(log: Log, tmp_path: Path) -> None:
    """It can be deleted at any time, and need not be trusted."""
    log.bash("ls")
    (tmp_path / "index.sqlite").write_bytes(b"SQLite format 3\0 and then nonsense" * 50)

    assert Indexed(tmp_path, log.path).about() == ["ls"]


def test_a_second_console_keeps_an_index_of_its_own(log: Log, tmp_path: Path) -> None:
    """Two processes never write one index; the second one's is gone when it ends."""
    log.bash("ls")
    first = Indexed(tmp_path, log.path)

    second = Indexed(tmp_path, log.path)

    assert second.index.path != first.index.path
    assert first.about() == second.about() == ["ls"]
    second.index.close()
    assert {path.name for path in tmp_path.glob("index*")} >= {"index.sqlite"}
    assert not second.index.path.exists()


def test_an_index_may_be_named_from_here(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--index index.sqlite` is a file in this folder."""
    log.bash("ls")
    monkeypatch.chdir(tmp_path)

    assert Indexed(Path(), log.path).about() == ["ls"]
    assert (tmp_path / "index.sqlite").is_file()


@pytest.mark.parametrize("instead", [b"[1]", b"{}", b"\xff"])
def test_a_line_that_was_changed_since_it_was_read_is_said_to_be(log: Log, tmp_path: Path, instead: bytes) -> None:
    """Whatever stands there now, the event is shown as it was read."""
    log.bash("ls")
    indexed = Indexed(tmp_path, log.path)
    log.path.write_bytes(instead.ljust(log.path.stat().st_size - 1) + b"\n")

    found = indexed.store.event(1)

    assert found is not None
    assert (found["row"]["about"], found["record"]) == ("ls", {})
    assert ("the log was changed" in found["problem"]) is (instead != b"\xff")


def test_lines_that_are_no_records_are_counted_and_passed_over(log: Log, tmp_path: Path) -> None:
    """Garbage, other JSON, and bytes that are no text cost themselves only."""
    log.bash("before")
    with log.path.open("ab") as file:
        file.write(b'nonsense\n\n[1]\n{"no": "event"}\n{"event": 7}\n\xff\xfe\n' + b"x" * 100_000 + b"\n")
    log.path.with_name("audit.jsonl.head").unlink()
    with log.path.open("ab") as file:
        file.write(json.dumps(log.record("Stop", hooks=(), last_assistant_message="after")).encode() + b"\n")

    indexed = Indexed(tmp_path, log.path)

    assert indexed.about() == ["after", "before"]
    assert indexed.store.health()["logs"][0]["unreadable"] == 7


def test_a_field_of_the_wrong_type_costs_that_field(tmp_path: Path) -> None:
    """A record by another program is shown as far as it can be."""
    line = b'{"event":"PreToolUse","tool":7,"ms":"x","hooks":[3,{"hook":5,"ms":"y"}],"time":"soon","run":"s"}'

    record = decode(line)

    assert record is not None
    assert (record.event, record.run, [run.hook for run in record.hooks]) == ("PreToolUse", "s", ["5"])


def test_folders_hold_logs_and_a_missing_one_is_named(log: Log, tmp_path: Path) -> None:
    """Every log below a folder, its rotated files not twice."""
    log.bash("one")
    (tmp_path / "deep").mkdir()
    other = Log(tmp_path / "deep" / "b.jsonl", max_bytes=1)
    other.bash("two")
    other.bash("three")

    assert sorted(Indexed(tmp_path, tmp_path).about()) == ["one", "three", "two"]
    with pytest.raises(HooklineError, match=r"nowhere\.jsonl: no such file or folder"):
        logs_in([tmp_path / "nowhere.jsonl"])


def filled(log: Log) -> None:
    for number in range(60):
        tool = ("Bash", "Read", "Write")[number % 3]
        hooks: tuple[str, ...] = ("a", "b") if number % 2 else ("a",)
        fields: dict[str, Any] = {"run": f"s{number % 4}"}
        if number % 5 == 0:
            fields |= {"decision": "deny", "blocked": True, "reasons": [f"why {number}"]}
        if number % 7 == 0:
            hooks = ()
        log.add(tool=tool, input={"x": f"thing_{number}%"}, hooks=hooks, **fields)


FILTERS = [
    {}, {"verdict": ("deny",)}, {"verdict": ("deny", "pass")}, {"tool": "Read"}, {"hook": "b"}, {"hook": "nobody"},
    {"session": "s1"}, {"unseen": True}, {"event": "Stop"}, {"tool": "Bash", "verdict": ("deny",), "hook": "a"},
    {"session": "s1", "tool": "Write"}, {"failed": True}, {"since": 1772442010000, "until": 1772442030000},
    {"text": "THING_1"}, {"text": "%"}, {"text": "why", "tool": "Bash"},
]  # fmt: skip


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_every_filter_finds_what_a_look_at_each_row_finds(log: Log, tmp_path: Path, wanted: dict[str, Any]) -> None:
    """In pages of any size; and the counts agree with the rows."""
    filled(log)
    indexed = Indexed(tmp_path, log.path)
    plain = [row for row in indexed.rows() if fits(indexed, row, Filter(**wanted))]

    paged: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = indexed.store.page(Filter(**wanted), cursor, 7)
        paged += page["rows"]
        cursor = page["next"]
        if not cursor:
            break

    assert paged == plain
    if "text" not in wanted:
        facets = indexed.store.facets(Filter(**wanted))
        assert facets["total"] == len(plain)
        assert sum(facets["verdict"].values()) == len(plain)
        assert sum(sum(n.values()) for _, n in indexed.store.timeline(Filter(**wanted))["buckets"]) == len(plain)


def fits(indexed: Indexed, row: dict[str, Any], wanted: Filter) -> bool:
    detail = indexed.store.event(row["id"])
    assert detail is not None
    hooks = [run["hook"] for run in detail["record"].get("hooks", [])]
    return all((
        not wanted.verdict or row["verdict"] in wanted.verdict, wanted.tool in ("", row["tool"]),
        wanted.event in ("", row["event"]), wanted.session in ("", row["session"]),
        not wanted.hook or wanted.hook in hooks, not wanted.unseen or not hooks, not wanted.failed or row["failed"],
        not wanted.since or wanted.since <= row["time"] < wanted.until,
        wanted.text.lower() in f"{row['about']}\0{row['reason']}".lower(),
    ))  # fmt: skip


def test_sums_over_time_stay_small_as_time_goes_on(log: Log, tmp_path: Path) -> None:
    """Years of records make no more buckets than a picture has room for, and nothing is lost in them."""
    for year in range(2010, 2026):
        for month in range(1, 13):
            log.add(time=f"{year}-{month:02}-01T00:00:00+00:00", hooks=("h",))
    indexed = Indexed(tmp_path, log.path)

    line = indexed.store.timeline(Filter())
    series = indexed.store.hook("h")

    assert sum(sum(counts.values()) for _, counts in line["buckets"]) == 192
    assert len(line["buckets"]) <= 512
    assert series is not None
    assert sum(series["runs"]) == 192


def test_times_that_nobody_meant_do_not_stretch_the_picture(log: Log, tmp_path: Path) -> None:
    """A record from the year 9999, or without a time, stands where the one before it stands."""
    log.bash("now")
    log.bash("far", time="9999-12-31T00:00:00+00:00")
    log.bash("old", time="1970-01-01T00:00:00+00:00")
    log.bash("none", time="whenever")

    assert len({row["time"] for row in Indexed(tmp_path, log.path).rows()}) == 1


def test_hooks_are_summed(log: Log, tmp_path: Path) -> None:
    """Runs, denials, failures, skips, percentiles and the slowest runs."""
    for ms in range(1, 101):
        log.bash("x", hooks=({"hook": "h", "status": "ok", "ms": float(ms)},))
    log.bash(
        "x", hooks=({"hook": "h", "status": "failed", "ms": 1.0}, {"hook": "late", "status": "skipped", "ms": 0.0})
    )

    hooks = {hook["name"]: hook for hook in Indexed(tmp_path, log.path).store.hooks()}

    assert (hooks["h"]["runs"], hooks["h"]["failed"], hooks["late"]["runs"], hooks["late"]["skipped"]) == (101, 1, 0, 1)
    assert hooks["h"]["p50"] == pytest.approx(50, rel=0.1)
    assert hooks["h"]["p99"] == pytest.approx(99, rel=0.1)
    assert [ms for ms, _ in hooks["h"]["slowest"]] == [100.0 - n for n in range(10)]


def test_coverage_names_calls_unseen_and_hooks_that_never_fired(log: Log, tmp_path: Path) -> None:
    """Both ways to be without protection."""
    log.bash("seen")
    log.add(tool="Read", hooks=())
    configured = [make_hook((PreToolUse,), lambda event: None, name=name) for name in ("guard", "asleep")]

    coverage = Indexed(tmp_path, log.path, configured=configured).store.coverage()

    assert {(tool["tool"], tool["calls"], tool["seen"]) for tool in coverage["tools"]} == {
        ("Bash", 1, 1),
        ("Read", 1, 0),
    }
    assert [(hook["name"], hook["events"]) for hook in coverage["never"]] == [("asleep", ["PreToolUse"])]


def test_health_tells_a_whole_log_from_a_changed_one(log: Log, tmp_path: Path) -> None:
    """Nothing is claimed before the chain was followed."""
    log.bash("a")
    log.bash("b")
    indexed = Indexed(tmp_path, log.path)
    assert indexed.store.health()["logs"][0]["whole"] is None

    indexed.store.check()
    assert indexed.store.health()["logs"][0]["whole"] is True

    log.path.write_bytes(log.path.read_bytes().replace(b'"command":"a"', b'"command":"c"'))
    indexed.index.refresh()
    indexed.store.check()
    assert indexed.store.health()["logs"][0]["whole"] is False


def test_health_says_how_far_a_log_was_sent(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To which receiver, how many wait, and what is in the way."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log.bash("a")
    pusher = Pusher(log.path, f"file:{tmp_path / 'out'}")
    pusher.until_sent()
    log.bash("b")
    Pusher(tmp_path / "other.jsonl", f"file:{tmp_path / 'out'}")._note("away")
    [pushed] = Indexed(tmp_path, log.path).store.health()["pushes"]

    assert (pushed["to"], pushed["sent"], pushed["behind"]) == (f"file:{tmp_path / 'out'}", 1, 1)


def test_a_keyed_log_is_said_to_need_its_key(tmp_path: Path) -> None:
    """Without the key no line is called changed."""
    log = Log(tmp_path / "audit.jsonl", key=b"k")
    log.bash("a")

    without = Indexed(tmp_path, log.path).store.event(1)
    with_key = Indexed(tmp_path, log.path, key=b"k").store.event(1)

    assert without is not None
    assert with_key is not None
    assert (without["chain"]["holds"], with_key["chain"]["holds"]) == (None, True)


ENTRIES = st.fixed_dictionaries(
    {"event": st.just("PreToolUse"), "decision": st.sampled_from(["pass", "allow", "ask", "defer", "deny"])},
    optional={
        "stop": st.just(True), "keep_going": st.just(True), "replaced": st.just(True), "rewritten": st.just({"a": 1}),
    },
)  # fmt: skip


@given(ENTRIES)
def test_the_console_uses_the_word_that_the_audit_log_uses(entry: dict[str, Any]) -> None:
    """One word per verdict, everywhere."""
    record = decode(json.dumps(entry).encode())

    assert isinstance(record, EventRecord)
    assert VERDICTS[record.verdict] == decision_word_of(entry).lower()


@given(st.floats(0.001, 1e6))
def test_a_run_time_is_counted_within_a_tenth(ms: float) -> None:
    """Slots are logarithmic."""
    assert slot_ms(slot(ms)) == pytest.approx(ms, rel=0.1, abs=0.001)
    assert percentile({slot(ms): 3}, 0.5) == slot_ms(slot(ms))
