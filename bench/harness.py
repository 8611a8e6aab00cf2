"""Measuring side by side: candidates take turns, so that a noisy moment hits them all; medians and ratios are compared.

A module in `bench/rows/` looks like this:

    def rows() -> Iterator[Row]:
        yield Row("core.none", "one async hook that answers None", at_most(4, "× a bare await"), measure_none)

    async def measure_none() -> Measured:
        times = await interleave({"bare": bare, "ours": ours, "pluggy": pluggy})
        return Measured(times.ratio("ours", "bare"), {"pluggy": times.ratio("pluggy", "bare")})

A peer that is not installed, or a thing this machine cannot do, raises `Unavailable("why")`; the table shows it.
"""

import asyncio
import gc
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, inf, isfinite
from random import Random
from statistics import median
from textwrap import shorten, wrap
from typing import Any

Candidate = Callable[[], Any]
Clock = Callable[[], float]
NEXT_TO_NOTHING = 0.01


class Unavailable(Exception):
    """A row cannot be measured here; its text says why."""


class NotMeasurable(Exception):
    """What was measured is too small beside the noise to say anything: neither yes nor no."""


# ---------------------------------------------------------------------------------------------------------- rows


@dataclass(frozen=True)
class Target:
    """What a row must reach: at most or at least so much of a unit."""

    sign: str
    bound: float
    unit: str

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.sign == "≤" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g} {self.unit}"


def at_most(bound: float, unit: str) -> Target:
    return Target("≤", bound, unit)


def at_least(bound: float, unit: str) -> Target:
    return Target("≥", bound, unit)


@dataclass(frozen=True)
class Measured:
    """One row's number, the peers' numbers in the same unit, and a remark."""

    value: float
    peers: Mapping[str, float | str] = field(default_factory=dict)  # a text says why there is no number
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the table, not yet measured; `name` is what `--only` looks at."""

    name: str
    what: str
    target: Target
    measure: Callable[[], Measured | Awaitable[Measured]]


@dataclass(frozen=True)
class Result:
    """A line of the table: a number, or why there is none."""

    row: Row
    measured: Measured | None = None
    problem: str = ""
    broken: bool = False  # the problem is a failure of the measurement, not something this machine lacks

    @property
    def word(self) -> str:
        """The last column."""
        if self.measured is None:
            return ("?" if self.problem.startswith("not measurable") else "FAILED") if self.broken else "-"
        return "yes" if self.met else "NO"

    @property
    def met(self) -> bool | None:
        return None if self.measured is None else self.row.target.met_by(self.measured.value)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.row.name,
            "what": self.row.what,
            "target": str(self.row.target),
            "measured": self.measured and self.measured.value,
            "peers": dict(self.measured.peers) if self.measured else {},
            "note": self.measured.note if self.measured else "",
            "met": self.met,
            "problem": self.problem,
        }


def measure(row: Row) -> Result:
    """Measure one row; a failure becomes its result, so that the other rows are still measured."""
    try:
        value = row.measure()
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
    except Unavailable as reason:
        return Result(row, problem=f"not measured: {reason}")
    except NotMeasurable as reason:
        return Result(row, problem=f"not measurable: {reason}", broken=True)
    except Exception as error:  # noqa: BLE001  (any failure of a row is shown in its line, and fails the run)
        return Result(row, problem=f"failed: {type(error).__name__}: {error}", broken=True)
    if not (isfinite(value.value) and value.value > 0):  # all rows are times, sizes, rates or ratios of these
        return Result(row, problem=f"not measurable: {number(value.value)} is the noise of this machine", broken=True)
    return Result(row, value)


async def _await(value: Awaitable[Measured]) -> Measured:
    return await value


# --------------------------------------------------------------------------------------------------- interleaving


@dataclass(frozen=True)
class Batch:
    """A candidate that repeats by itself: `run(n)` does the work n times, for work that is pipelined or inlined."""

    run: Callable[[int], Any]


@dataclass(frozen=True)
class Times:
    """Seconds per call of each candidate, round by round."""

    rounds: Mapping[str, Sequence[float]]

    def seconds(self, name: str) -> float:
        """The median time of one call."""
        return median(self.rounds[name])

    def ratio(self, name: str, base: str) -> float:
        """How many times as long as `base` it takes: the median over the rounds, each compared within itself."""
        return median(a / b for a, b in zip(self.rounds[name], self.rounds[base], strict=True))

    def difference(self, name: str, base: str) -> float:
        """How much longer than `base` it takes, in seconds: the median over the rounds."""
        return median(self._differences(name, base))

    def added(self, name: str, other: str, *, over: str) -> float:
        """How many times as much it adds to `over` as `other` does.

        `NotMeasurable` if what `other` adds is not clearly more than nothing: a ratio of noise says nothing.
        """
        sure = at_least_surely(self._differences(other, over))
        if sure <= 0:
            least = f"between {sure * 1e3:.2g} ms and more"
            raise NotMeasurable(f"`{other}` adds {least} to `{over}`, which may be nothing; measure on an idle machine")
        return self.difference(name, over) / self.difference(other, over)

    def within(self, bound: float, name: str, other: str, *, over: str) -> float:
        """How many times as much it adds to `over` as `other` does, if that is surely within `bound`, or surely not.

        `NotMeasurable` if neither is sure. Where what `other` adds may be nothing, the number is the least it can be;
        what adds nothing, or saves something, is `NEXT_TO_NOTHING`.
        """
        theirs = self._differences(other, over)
        excess = [ours - bound * their for ours, their in zip(self._differences(name, over), theirs, strict=True)]
        least, most = at_least_surely(excess), at_most_surely(excess)
        if least <= 0 < most:
            between = f"between {least * 1e6:.2g} and {most * 1e6:.2g} µs more than {bound:g} × what `{other}` adds"
            raise NotMeasurable(f"`{name}` adds {between}; measure on an idle machine")
        certain = at_least_surely(theirs) > 0
        ratio = self.difference(name, over) / (median(theirs) if certain else at_most_surely(theirs))
        if least > 0:
            if at_most_surely(theirs) <= 0:
                raise NotMeasurable(f"`{other}` adds nothing to `{over}`, and no number of times that is `{name}`")
            return max(ratio, bound + least / at_most_surely(theirs))
        return max(min(ratio, bound), NEXT_TO_NOTHING)

    def _differences(self, name: str, base: str) -> list[float]:
        return [a - b for a, b in zip(self.rounds[name], self.rounds[base], strict=True)]


def at_least_surely(values: Sequence[float], doubt: float = 0.01) -> float:
    """The lower bound of the median: with so little doubt, the true one is not below it (order statistics)."""
    ordered, count = sorted(values), len(values)
    chance, rank = 0.0, 0
    while rank < count and chance + comb(count, rank) / 2**count <= doubt:
        chance += comb(count, rank) / 2**count
        rank += 1
    return ordered[rank - 1] if rank else -inf


def at_most_surely(values: Sequence[float], doubt: float = 0.01) -> float:
    """The upper bound of the median, likewise."""
    return -at_least_surely([-value for value in values], doubt)


async def interleave(
    candidates: Mapping[str, Candidate | Batch],
    *,
    rounds: int = 15,
    batch_seconds: float = 0.02,
    clock: Clock = time.perf_counter,
) -> Times:
    """Time candidates in turns, in one event loop.

    A candidate is a function, an async function, or a `Batch`. In each round each runs one batch of about
    `batch_seconds`, beginning with another one every time; the garbage collector rests meanwhile.
    """
    runs = {name: _repeated(candidate) for name, candidate in candidates.items()}
    counts = {name: await _calibrate(run, batch_seconds, clock) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds):
        for name in rotated(list(runs), turn):
            times[name].append(await _timed(runs[name], counts[name], clock) / counts[name])
    return Times(times)


def shuffled(names: Sequence[str], rounds: int, chance: Random) -> list[str]:
    """Every name once in each round, in an order of its own."""
    return [name for _ in range(rounds) for name in chance.sample(list(names), len(names))]


def rotated(names: Sequence[str], by: int) -> list[str]:
    """The names in order, beginning at another one each turn."""
    by %= max(len(names), 1)
    return [*names[by:], *names[:by]]


def _repeated(candidate: Candidate | Batch) -> Callable[[int], Awaitable[None]]:
    if isinstance(candidate, Batch):
        return _repeated_batch(candidate.run)
    return _repeated_async(candidate) if inspect.iscoroutinefunction(candidate) else _repeated_sync(candidate)


def _repeated_async(call: Callable[[], Awaitable[Any]]) -> Callable[[int], Awaitable[None]]:
    async def run(count: int) -> None:
        for _ in range(count):
            await call()

    return run


def _repeated_sync(call: Callable[[], Any]) -> Callable[[int], Awaitable[None]]:
    async def run(count: int) -> None:
        for _ in range(count):
            call()

    return run


def _repeated_batch(call: Callable[[int], Any]) -> Callable[[int], Awaitable[None]]:
    async def run(count: int) -> None:
        result = call(count)
        if inspect.isawaitable(result):
            await result

    return run


async def _calibrate(run: Callable[[int], Awaitable[None]], seconds: float, clock: Clock) -> int:
    """How many calls fill a batch; what a first call has to import or to open is not counted."""
    await _timed(run, 1, clock)
    count = 1
    while True:
        took = await _timed(run, count, clock)
        if took >= seconds / 2:
            return max(1, round(count * seconds / took))
        count = min(count * 10, max(count * 2, int(count * seconds / took) if took > 0 else 0))


async def _timed(run: Callable[[int], Awaitable[None]], count: int, clock: Clock) -> float:
    was_enabled = gc.isenabled()
    await asyncio.sleep(0)  # the loop forgets timers of the last batch that were cancelled
    gc.collect(0)
    gc.disable()
    try:
        start = clock()
        await run(count)
        return clock() - start
    finally:
        if was_enabled:
            gc.enable()


# ---------------------------------------------------------------------------------------------------------- table

HEAD = ("what", "target", "measured", "for scale", "met?")
WIDTH = 120
LONGEST_PROBLEM = 150


def cells(result: Result) -> tuple[str, str, str, str, str]:
    """One line of the table as texts."""
    row, measured = result.row, result.measured
    if measured is None:
        problem = result.problem.partition("\n")[0]
        return row.what, str(row.target), "", shorten(problem, LONGEST_PROBLEM, placeholder=" …"), result.word
    peers = ", ".join(f"{name} {number(value)}" for name, value in measured.peers.items())
    scale = "; ".join(filter(None, [peers, measured.note]))
    return row.what, str(row.target), number(measured.value), scale, result.word


def number(value: float | str) -> str:
    """A number with three digits that count, thousands grouped; a text as it is."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(results: Iterable[Result], width: int = WIDTH) -> str:
    """All rows for a terminal: whether it is met, the number, the target, and what it is with what gives it scale."""
    lines = [(word, value, target, what, scale) for what, target, value, scale, word in map(cells, results)]
    widths = [max(len(line[column]) for line in [("met?", "measured", "target"), *lines]) for column in range(3)]
    room = width - sum(widths) - 6
    shown = [_columns(("met?", "measured", "target", "what"), widths)]
    shown.append(_columns([*("-" * width for width in widths), "-" * room], widths))
    for word, value, target, what, scale in lines:
        told = [*wrap(what, room), *wrap(scale, room, initial_indent="  ", subsequent_indent="  ")]
        shown.append(_columns((word, value, target, told[0]), widths))
        shown += [_columns(("", "", "", more), widths) for more in told[1:]]
    return "\n".join(shown)


def _columns(texts: Sequence[str], widths: Sequence[int]) -> str:
    met, value, target, what = texts
    return f"{met:<{widths[0]}}  {value:>{widths[1]}}  {target:<{widths[2]}}  {what}".rstrip()


BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def markdown(results: Iterable[Result], heading: str) -> str:
    """All lines as a table for a page, below a line that says when and how they were measured."""
    lines = [HEAD, ("---",) * len(HEAD), *(cells(result) for result in results)]
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([heading, "", *rows])


def with_figures(page: str, figures: str) -> str:
    """The page with these figures in place of the old ones."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines `{BEGIN}` and `{END}`; what is between them is replaced")
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"
