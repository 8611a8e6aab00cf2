"""The benchmark's arithmetic: turns, medians, ratios, targets, and what a row that cannot run says."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench import __main__ as command
from bench.harness import (
    Batch,
    Measured,
    NotMeasurable,
    Row,
    Target,
    Times,
    Unavailable,
    at_least,
    at_least_surely,
    at_most,
    interleave,
    markdown,
    measure,
    number,
    rotated,
    shuffled,
    table,
    with_figures,
)


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.now += seconds

        return run

    def async_work(self, seconds: float) -> Callable[[], object]:
        async def run() -> None:
            self.now += seconds

        return run


def row(target: Target, value: float, name: str = "x.y", **peers: float) -> Row:
    return Row(name, "what it does", target, lambda: Measured(value, peers))


async def test_seconds_per_call_are_found_for_functions_coroutines_and_batches() -> None:
    """Each kind of candidate is repeated in its own way and divided by its own count."""
    clock = Clock()

    def batch(count: int) -> None:
        clock.now += 0.005 * count

    times = await interleave(
        {"sync": clock.work(0.001), "async": clock.async_work(0.003), "batch": Batch(batch)}, rounds=3, clock=clock
    )

    assert times.seconds("sync") == pytest.approx(0.001)
    assert times.seconds("async") == pytest.approx(0.003)
    assert times.ratio("batch", "sync") == pytest.approx(5)


async def test_a_call_longer_than_a_batch_runs_once_per_round() -> None:
    """Starting a process 15 times is 15 starts, one to warm up and one to see how long it takes, not thousands."""
    clock, calls = Clock(), []

    def slow() -> None:
        calls.append(1)
        clock.now += 1.0

    times = await interleave({"slow": slow}, rounds=15, clock=clock)

    assert (len(calls), times.seconds("slow")) == (17, 1.0)


async def test_what_only_the_first_call_has_to_do_is_not_measured() -> None:
    """A client that imports its library and connects at its first call gets as large a batch as the others."""
    clock, calls = Clock(), []

    def lazy() -> None:
        calls.append(1)
        clock.now += 1.0 if len(calls) == 1 else 0.001

    times = await interleave({"lazy": lazy}, rounds=3, batch_seconds=0.02, clock=clock)

    assert times.seconds("lazy") == pytest.approx(0.001)
    assert len(calls) > 3 * 15


async def test_a_call_too_short_for_the_clock_is_repeated_until_it_shows() -> None:
    """Calibration ends also when single calls take no measurable time."""
    clock = Clock()

    def batch(count: int) -> None:
        clock.now += 0.0 if count < 50 else 1e-6 * count

    times = await interleave({"short": Batch(batch)}, rounds=1, clock=clock)

    assert times.seconds("short") == pytest.approx(1e-6)


def test_a_ratio_is_the_median_of_rounds_compared_within_themselves() -> None:
    """A round in which the whole machine was slow does not count against one of the two."""
    times = Times({"bare": [1.0, 10.0, 1.0], "ours": [2.0, 20.0, 30.0]})

    assert times.ratio("ours", "bare") == 2.0
    assert times.seconds("ours") == 20.0


def test_every_candidate_begins_a_round_in_turn() -> None:
    """No candidate always runs first, when caches are cold."""
    assert [rotated(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert rotated([], 3) == []


def test_targets_are_bounds_that_include_themselves() -> None:
    """`≤ 4` is met by 4, `≥ 2` by 2."""
    assert [at_most(4, "×").met_by(value) for value in (3.9, 4.0, 4.1)] == [True, True, False]
    assert [at_least(2, "×").met_by(value) for value in (1.9, 2.0, 2.1)] == [False, True, True]


def test_the_table_shows_target_number_peers_and_whether_it_is_met() -> None:
    """One line per row, in columns; what gives a number its scale stands below."""
    results = [measure(row(at_most(4, "× a bare await"), 3.456, pluggy=7.0)), measure(row(at_least(99, "%"), 12))]

    assert table(results, width=60).splitlines() == [
        "met?  measured  target              what",
        "----  --------  ------------------  ------------------------",
        "yes       3.46  ≤ 4 × a bare await  what it does",
        "                                      pluggy 7",
        "NO          12  ≥ 99 %              what it does",
    ]


def test_the_table_fits_a_terminal_whatever_is_in_it() -> None:
    """Long texts are wrapped, and a failure is told in short."""

    def failing() -> Measured:
        raise ValueError("no such thing " * 100)

    long = Row("x", "a row with much to say " * 9, at_most(1, "× what the other one takes"), failing)
    peers = {f"peer {number}": 1.5 for number in range(40)}
    wide = Row("y", "wide", at_most(2, "×"), lambda: Measured(1, peers, "and a note " * 9))
    lines = table([measure(long), measure(wide)]).splitlines()

    assert max(map(len, lines)) <= 120
    assert any(line.startswith("FAILED") for line in lines)
    assert "peer 39 1.5" in " ".join(" ".join(lines).split())


def test_numbers_have_three_digits_that_count() -> None:
    """A throughput reads as 46,000; a text, such as why a peer has no number, stays."""
    assert [number(value) for value in (0.0123456, 3.456, 46000.4, "not installed")] == [
        "0.0123",
        "3.46",
        "46,000",
        "not installed",
    ]


def test_a_row_that_cannot_run_says_why_and_one_that_fails_is_broken() -> None:
    """Neither stops the other rows; only the failure fails the run."""

    def missing() -> Measured:
        raise Unavailable("strands is not installed")

    async def failing() -> Measured:
        await asyncio.sleep(0)
        raise ValueError("boom")

    results = [measure(Row("x", "x", at_most(1, "×"), what)) for what in (missing, failing)]

    assert [(result.problem, result.met, result.broken) for result in results] == [
        ("not measured: strands is not installed", None, False),
        ("failed: ValueError: boom", None, True),
    ]


NOISE = [0.9, -1.1, 1.0, -0.8, 0.2, -0.3, 0.1, -0.2, 0.4]


def test_what_is_added_is_compared_by_the_medians_of_differences() -> None:
    """A round in which everything was slow counts like the others."""
    times = Times({
        "none": [10.0, 50.0, 10.0] * 3, "theirs": [12.0, 52.0, 12.0] * 3, "ours": [13.0, 53.0, 900.0] * 3,
    })  # fmt: skip

    assert times.difference("ours", "none") == 3.0
    assert times.added("ours", "theirs", over="none") == 1.5


def test_a_ratio_of_noise_is_not_given() -> None:
    """If what the other adds may be nothing, the row says so: neither yes nor no, and the run does not pass."""
    times = Times({"none": [10.0] * 9, "theirs": [10.0 + more for more in NOISE], "ours": [10.1] * 9})

    result = measure(Row("x", "x", at_most(1.3, "×"), lambda: Measured(times.added("ours", "theirs", over="none"))))

    assert (result.met, result.broken, result.word) == (None, True, "?")
    assert result.problem.startswith("not measurable: `theirs` adds")


@pytest.mark.parametrize(
    "ours, word",
    [([11.0] * 9, "yes"), ([9.0] * 9, "yes"), ([15.0] * 9, "NO"), ([14.0 + more for more in NOISE], "?")],
)
def test_a_bound_is_met_or_missed_only_if_that_is_sure(ours: list[float], word: str) -> None:
    """Nine rounds that scatter around the bound say neither yes nor no."""
    times = Times({"none": [10.0] * 9, "theirs": [12.0] * 9, "ours": ours})

    result = measure(Row("x", "x", at_most(2, "×"), lambda: Measured(times.within(2, "ours", "theirs", over="none"))))

    assert result.word == word


def test_what_is_surely_more_than_next_to_nothing_is_missed() -> None:
    """Where what the other adds drowns, twice that can still be exceeded: the number is the least it can be."""
    times = Times({"none": [10.0] * 9, "theirs": [10.0 + more for more in NOISE], "ours": [20.0] * 9})

    assert times.within(2, "ours", "theirs", over="none") == 10.0


def test_there_is_no_number_of_times_that_nothing_is() -> None:
    """Where the other surely adds nothing, what ours adds is not a multiple of it, and not within the bound either."""
    times = Times({"none": [10.0] * 9, "theirs": [9.0] * 9, "ours": [20.0] * 9})

    with pytest.raises(NotMeasurable, match="`theirs` adds nothing"):
        times.within(2, "ours", "theirs", over="none")


def test_what_surely_exceeds_a_bound_is_never_within_it() -> None:
    """In every round ours is three times theirs; that theirs may be much does not make it a yes."""
    theirs = [1.0, -1.0, 50.0, -1.0, 1.0, 60.0, 1.0, 2.0, 1.0]
    ours = [11.0 + 3 * abs(more) for more in theirs]
    times = Times({"none": [10.0] * 9, "theirs": [10.0 + more for more in theirs], "ours": ours})

    assert times.within(2, "ours", "theirs", over="none") > 2


@pytest.mark.parametrize("value", [-0.92, 0.0, float("nan"), float("inf")])
def test_a_number_that_cannot_be_is_no_verdict(value: float) -> None:
    """Every row is a time, a size, a rate or a ratio of these: -0.92 is not less than 1.3."""
    result = measure(row(at_most(1.3, "×"), value))

    assert (result.met, result.broken, result.word) == (None, True, "?")


def test_the_lower_bound_of_a_median_needs_enough_rounds() -> None:
    """A few rounds prove nothing; of many, all but a few must lie above."""
    assert at_least_surely([1.0] * 6) == float("-inf")
    assert at_least_surely([1.0] * 7) == 1.0
    assert at_least_surely([*NOISE[:8], *[5.0] * 23]) == 5.0


def test_every_round_has_each_name_once() -> None:
    """In an order of its own, so that no kind always comes after the same other."""
    turns = shuffled(["a", "b", "c"], 20, Random(1))

    assert [sorted(turns[at : at + 3]) for at in range(0, 60, 3)] == [["a", "b", "c"]] * 20
    assert len({tuple(turns[at : at + 3]) for at in range(0, 60, 3)}) > 1


@pytest.mark.parametrize("value, code", [(3.0, 0), (5.0, 1), (-1.0, 1)])
def test_the_command_fails_when_a_target_is_not_met(
    value: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The exit code is the answer, the JSON file has the same lines as the table."""
    monkeypatch.setattr(command, "rows", lambda: [row(at_most(4, "×"), value, "a.b"), row(at_most(4, "×"), 9, "c.d")])

    assert command.main(["--only", "a.", "--json", str(tmp_path / "out.json")]) == code
    assert "what it does" in capsys.readouterr().out
    assert '"name": "a.b"' in (tmp_path / "out.json").read_text()


def test_no_rows_are_no_error_but_a_wrong_name_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder of rows works; a prefix that matches nothing is told."""
    monkeypatch.setattr(command, "rows", list)

    assert (command.main([]), command.main(["--only", "zzz"])) == (0, 1)
    assert capsys.readouterr().out == "there are no rows yet\nno row's name begins with `zzz`\n"


def test_every_module_of_rows_is_found_and_names_its_rows_uniquely() -> None:
    """A new file in bench/rows/ needs no registration."""
    names = [row.name for row in command.rows()]

    assert len(names) == len(set(names))


def test_no_module_of_rows_sees_what_another_left_behind(capfd: pytest.CaptureFixture[str]) -> None:
    """Each has a process of its own; where that dies, one row has failed, and the others are measured."""
    seen: list[str] = []

    def leaving() -> Measured:
        seen.append("left")
        return Measured(len(seen))

    def dying() -> Measured:
        os._exit(3)

    kinds = {"a.1": leaving, "a.2": leaving, "b.1": leaving, "b.2": dying, "b.3": leaving}
    results = list(command.measured([Row(name, name, at_most(1, "×"), what) for name, what in kinds.items()]))

    assert [(result.measured and result.measured.value, result.problem) for result in results] == [
        (1, ""), (2, ""), (1, ""), (None, "failed: its process ended with 3"), (1, ""),
    ]  # fmt: skip
    assert capfd.readouterr().err.splitlines() == ["[1/5] a.1", "[2/5] a.2", "[3/5] b.1", "[4/5] b.2", "[5/5] b.3"]


def test_a_row_that_is_missed_or_fails_shows_on_the_page() -> None:
    """The page has the same words as the table."""

    def failing() -> Measured:
        raise ValueError("boom\nand more")

    results = [measure(row(at_most(4, "×"), 5.0)), measure(Row("x", "x", at_most(1, "×"), failing))]

    assert markdown(results, "Measured today.").splitlines()[-2:] == [
        "| what it does | ≤ 4 × | 5 |  | NO |",
        "| x | ≤ 1 × |  | failed: ValueError: boom | FAILED |",
    ]


def test_figures_go_into_a_page_in_place_of_the_old_ones() -> None:
    """A dated table between two comments; the rest of the page stays."""
    page = "before\n\n<!-- figures -->\n\nold\n\n<!-- end of figures -->\nafter\n"

    made = with_figures(page, markdown([measure(row(at_most(4, "×"), 3.0))], "Measured today."))

    assert made == (
        "before\n\n<!-- figures -->\n\nMeasured today.\n\n| what | target | measured | for scale | met? |\n"
        "| --- | --- | --- | --- | --- |\n| what it does | ≤ 4 × | 3 |  | yes |\n\n<!-- end of figures -->\nafter\n"
    )
    with pytest.raises(ValueError, match="the page needs the lines"):
        with_figures("no marks", "x")
