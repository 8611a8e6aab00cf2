"""Today's hooks against what was recorded: which calls would now be decided otherwise. No tool is run."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Self

import msgspec

from hookline.engine import Engine, Verdict
from hookline.observe.recorded import Call, calls
from hookline.replies import Decision

CHUNK = 8 * 1024 * 1024
MOST_FLIPS = 10_000
MakeHooks = Callable[[], Engine]

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class Flip(msgspec.Struct, frozen=True):
    """A call that would now be decided otherwise."""

    file: str
    line: int
    event: str
    tool: str
    what: str
    was: str
    now: str
    by: str
    reason: str
    partial: bool = False

    @property
    def loosened(self) -> bool:
        """Whether something that was stopped would now go through."""
        return _STRICTNESS[self.now] < _STRICTNESS[self.was]


class Report(msgspec.Struct):
    """What a replay found; `flips` are bounded, `counts` are not."""

    calls: int = 0
    failures: int = 0
    counts: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    flips: list[Flip] = msgspec.field(default_factory=list)

    @property
    def flipped(self) -> int:
        """How many calls would now be decided otherwise."""
        return sum(number for (was, now), number in self.counts.items() if was != now)

    def __iadd__(self, other: Report) -> Self:
        self.calls += other.calls
        self.failures += other.failures
        self.counts += other.counts
        self.flips = sorted([*self.flips, *other.flips], key=_order)[:MOST_FLIPS]
        return self


def _order(flip: Flip) -> tuple[int, str, int]:
    """The worst first: DENY → ALLOW, then the lesser loosenings, then what got stricter."""
    return _STRICTNESS[flip.now] - _STRICTNESS[flip.was], flip.file, flip.line


class Piece(msgspec.Struct, frozen=True):
    """A range of one file that one worker reads."""

    path: str
    start: int
    end: int


def pieces(paths: Iterable[str | Path], size: int = CHUNK) -> Iterator[Piece]:
    """Files, and the `.jsonl` files in folders, cut into ranges."""
    for path in _files(paths):
        length = path.stat().st_size
        for start in range(0, length, size):
            yield Piece(str(path), start, min(start + size, length))


def _files(paths: Iterable[str | Path]) -> Iterator[Path]:
    for given in map(Path, paths):
        if given.is_dir():
            yield from sorted(given.rglob("*.jsonl"))
        else:
            yield given


def replay(
    paths: Iterable[str | Path],
    make_hooks: MakeHooks,
    *,
    jobs: int | None = None,
    on_progress: Callable[[int, Report], None] | None = None,
) -> Report:
    """Run today's hooks against files and folders of records, on `jobs` processes.

    `make_hooks` is called once in each process. `on_progress` is told of every piece that is done: its bytes, and the
    report so far.
    """
    todo = list(pieces(paths))
    jobs = min(jobs or os.cpu_count() or 1, len(todo) or 1)
    report = Report()
    for piece, part in _in_turn(todo, make_hooks) if jobs == 1 else _at_once(todo, make_hooks, jobs):
        report += part
        if on_progress is not None:
            on_progress(piece.end - piece.start, report)
    return report


def _in_turn(todo: list[Piece], make_hooks: MakeHooks) -> Iterator[tuple[Piece, Report]]:
    _start(make_hooks)
    try:
        for piece in todo:
            yield piece, _work(piece)
    finally:
        _stop()


def _at_once(todo: list[Piece], make_hooks: MakeHooks, jobs: int) -> Iterator[tuple[Piece, Report]]:
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(make_hooks,)) as pool:
        running = {pool.submit(_work, piece): piece for piece in todo}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_worker: dict[str, Any] = {}


def _start(make_hooks: MakeHooks) -> None:
    _worker["hooks"] = make_hooks()
    _worker["runner"] = asyncio.Runner()


def _stop() -> None:
    runner: asyncio.Runner = _worker.pop("runner")
    runner.run(_worker.pop("hooks").aclose())
    runner.close()


def _work(piece: Piece) -> Report:
    report: Report = _worker["runner"].run(judge(calls(piece.path, piece.start, piece.end), _worker["hooks"]))
    return report


async def judge(recorded: Iterable[Call], hooks: Engine) -> Report:
    """Fire every recorded call and compare."""
    report = Report()
    for call in recorded:
        verdict = await hooks.fire(call.event)
        report.calls += 1
        report.failures += bool(verdict.failures)
        now = decided(verdict)
        report.counts[call.decided, now] += 1
        if now != call.decided and len(report.flips) < MOST_FLIPS:
            report.flips.append(_flip(call, verdict, now))
    return report


def decided(verdict: Verdict) -> str:
    """A verdict in the three words that a recording knows."""
    if verdict.blocked:
        return "deny"
    return "ask" if verdict.decision in (Decision.ASK, Decision.DEFER) else "allow"


def _flip(call: Call, verdict: Verdict, now: str) -> Flip:
    event = call.event
    tool_input = getattr(event, "tool_input", None) or {}
    first = next((v for v in tool_input.values() if isinstance(v, str)), "") or getattr(event, "prompt", "")
    return Flip(
        call.file, call.line, event.event_name, getattr(event, "tool_name", ""), first[:200], call.decided, now,
        verdict.decided_by or call.by, verdict.reason, call.partial,
    )  # fmt: skip
