"""Today's hooks against what was recorded: which calls would now be decided differently. No tool is run."""

import asyncio
import inspect
import multiprocessing
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.engine import HookSet, Verdict
from hookline.core.hooks.hook import Function, Hook
from hookline.errors import HooklineError
from hookline.events import Event
from hookline.records.replay.reader import HEARD, Range, RecordedCall, is_within, next_line
from hookline.replies import Decision

CHUNK = 4 * 1024 * 1024
MOST_FLIPS = 10_000
_BREATH = 64
MakeHooks = Callable[[], HookSet]
OnProgress = Callable[[int, "Report"], None]

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_RECORDS = re.compile(r".*\.jsonl(?:\.[0-9]+)?")


class Flip(msgspec.Struct, frozen=True):
    """A call that would now be decided differently."""

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
    def is_looser(self) -> bool:
        """Whether something that was stopped would now go through."""
        return _STRICTNESS[self.now] < _STRICTNESS[self.was]


class Report(msgspec.Struct):
    """What a replay found; `flips` has the worst 10,000, `counts` counts them all.

    `vanished` are the calls whose folder is no longer there and on which a hook failed for want of it: they are not
    compared.
    """

    calls: int = 0
    failures: int = 0
    vanished: int = 0
    counts: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    flips: list[Flip] = msgspec.field(default_factory=list)

    @property
    def flip_count(self) -> int:
        """How many calls would now be decided differently."""
        return sum(number for (was, now), number in self.counts.items() if was != now)


class Piece(msgspec.Struct, frozen=True):
    """The lines of one file that one worker reads; `before` is how many there are before them."""

    path: str
    start: int
    end: int
    before: int


def pieces(paths: Iterable[str | Path], size: int = CHUNK) -> Iterator[Piece]:
    """Files, and the `.jsonl` files in folders (rotated ones too), cut where lines end."""
    for path in record_files(paths):
        start = before = 0
        while size < (length := path.stat().st_size) - start:
            with path.open("rb") as file:
                file.seek(start)
                lines = file.read(size).count(b"\n") + 1
                next_line(file)  # what is left of the last one, or one more
                end = file.tell()
            yield Piece(str(path), start, end, before)
            start, before = end, before + lines
        if start < length:
            yield Piece(str(path), start, length, before)


def record_files(paths: Iterable[str | Path]) -> Iterator[Path]:
    """Files as they are given, and those in folders that hold records."""
    for given in map(Path, paths):
        if given.is_dir():
            found = (path for path in given.rglob("*.jsonl*") if _RECORDS.fullmatch(path.name) and path.is_file())
            yield from sorted(found)
        else:
            yield given


def replay(
    paths: Iterable[str | Path],
    make_hooks: MakeHooks,
    *,
    jobs: int | None = None,
    size: int = CHUNK,
    on_progress: OnProgress | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Report:
    """Run today's hooks against files and folders of records, on `jobs` processes.

    `make_hooks` is called once in each process; who observes those hooks is not told, so that a replay is not itself
    recorded. Commands of settings files do run, as they would for a call; tools do not. `on_progress` is told of every
    piece that is done: its bytes, and the report so far.
    """
    try:
        todo = list(pieces(paths, size))
        workers = max(min(jobs or os.cpu_count() or 1, len(todo)), 1)
        work = partial(_work, since=since, until=until)
        done = _in_turn(todo, work, make_hooks) if workers == 1 else _at_once(todo, work, make_hooks, workers)
        return _joined(done, on_progress)
    except OSError as problem:
        raise HooklineError(f"{problem.filename}: {problem.strerror}; name a file of records, or a folder") from None
    except BrokenProcessPool:
        raise HooklineError("a process that replayed was ended from outside; try `--jobs 1`") from None


Work = Callable[[Piece], Report]
_worker: dict[str, Any] = {}
_ending = ExitStack()


def _start(make_hooks: MakeHooks, *, alone: bool = True) -> None:
    if not alone:  # Ctrl-C ends it at once; the user is told by the first process
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    hooks = make_hooks()
    hooks.engine.observers.take()
    if watchers(hooks):  # what they remember of a replay is not mixed with what they know of real sessions
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = _ending.enter_context(tempfile.TemporaryDirectory())
        _ending.callback(os.environ.update, {} if before is None else {"XDG_STATE_HOME": before})
        _ending.callback(os.environ.pop, "XDG_STATE_HOME", None)
    runner = _ending.enter_context(asyncio.Runner())
    _ending.callback(lambda: runner.run(hooks.aclose()))
    _worker.update(hooks=hooks, runner=runner)
    Finalize(None, _ending.close, exitpriority=100)


def _work(piece: Piece, since: datetime | None, until: datetime | None) -> Report:
    hooks = _worker["hooks"]
    recorded = Range(piece.path, piece.start, piece.end, before=piece.before, heard=bool(watchers(hooks)))
    wanted = (call for call in recorded if call.decided == HEARD or is_within(call.time, since, until))
    report: Report = _worker["runner"].run(judge(wanted, hooks))
    return report


async def judge(recorded: Iterable[RecordedCall], hooks: HookSet) -> Report:
    """Fire every recorded call and compare."""
    report = Report()
    for call in recorded:
        if call.decided == HEARD:
            await _hear(call.event, hooks)
            continue
        verdict = await hooks.fire(call.event)
        report.calls += 1
        report.failures += bool(verdict.failures)
        now = decided(verdict)
        folder = call.event.cwd  # `Path.is_dir` raises for a name that is too long
        if verdict.failures and folder and not os.path.isdir(folder):  # noqa: PTH112, ASYNC240
            report.vanished += 1
            continue
        was = now if call.rejected and now != "deny" else call.decided  # a person's no says nothing of the hooks
        report.counts[was, now] += 1
        if report.calls % _BREATH == 0:
            await asyncio.sleep(0)  # where Ctrl-C is heard
        if now != was:
            report.flips.append(_flip(call, verdict, now))
            if len(report.flips) >= 2 * MOST_FLIPS:
                report.flips = sorted(report.flips, key=_order)[:MOST_FLIPS]
    return report


def watchers(hooks: HookSet) -> list[Hook]:
    """The hooks that judge by what a session has seen: Python functions on results that only watch."""
    return [
        hook for hook in hooks.engine.registry.index.hooks
        if not hook.rejudge and isinstance(hook.action, Function) and not hook.action.takes_context
        and any(event.event_name == "PostToolUse" for event in hook.events)
    ]  # fmt: skip


async def _hear(event: Event, hooks: HookSet) -> None:
    """Tell those hooks, and the ones beside them, of what they would have been told; no command is run."""
    names = {hook.name.partition(".")[0] for hook in watchers(hooks)}
    for hook in hooks.engine.registry.index.hooks:
        known = hook.name.partition(".")[0] in names and not hook.rejudge and type(event) in hook.events
        if known and isinstance(hook.action, Function):
            said = hook.action.call(event)
            if inspect.isawaitable(said):
                await said


def decided(verdict: Verdict) -> str:
    """A verdict in the three words that a recording knows."""
    if verdict.blocked:
        return "deny"
    return "ask" if verdict.decision in (Decision.ASK, Decision.DEFER) else "allow"


def _flip(call: RecordedCall, verdict: Verdict, now: str) -> Flip:
    event = call.event
    tool_input = event.tool_input or {}
    first = next((v for v in tool_input.values() if isinstance(v, str)), "") or getattr(event, "prompt", "")
    return Flip(
        call.file, call.line, event.event_name, event.tool_name or "", first[:200], call.decided, now,
        verdict.decided_by or "", verdict.reason[:500], call.partial,
    )  # fmt: skip


def _order(flip: Flip) -> tuple[int, str, int]:
    """The worst first: DENY → ALLOW, then the lesser loosenings, then what got stricter."""
    return _STRICTNESS[flip.now] - _STRICTNESS[flip.was], flip.file, flip.line


def _in_turn(todo: list[Piece], work: Work, make_hooks: MakeHooks) -> Iterator[tuple[Piece, Report]]:
    with _ending:
        _start(make_hooks)
        for piece in todo:
            yield piece, work(piece)


def _at_once(todo: list[Piece], work: Work, make_hooks: MakeHooks, jobs: int) -> Iterator[tuple[Piece, Report]]:
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=partial(_start, make_hooks, alone=False)) as pool:
        running = {pool.submit(work, piece): piece for piece in todo}
        try:
            for done in as_completed(running):
                yield running.pop(done), done.result()
        except BaseException:
            for worker in set(multiprocessing.active_children()) - before:
                worker.terminate()  # its piece is not waited for any more
            pool.shutdown(cancel_futures=True)  # and wait: on leaving, Python would wake a thread that closes its pipe
            raise


def _joined(done: Iterable[tuple[Piece, Report]], on_progress: OnProgress | None) -> Report:
    report = Report()
    for piece, part in done:
        report.calls += part.calls
        report.failures += part.failures
        report.vanished += part.vanished
        report.counts += part.counts
        report.flips = sorted([*report.flips, *part.flips], key=_order)[:MOST_FLIPS]
        if on_progress is not None:
            on_progress(piece.end - piece.start, report)
    return report
