"""`hookline console` and `replay`: what was recorded, in the browser, and what today's hooks would say to it."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.options import hooks_of, key_in, load, parser_for, run
from hookline.cli.style import counted, json_text, paint
from hookline.core.files import default_log
from hookline.core.hooks import Hook
from hookline.display import one_line
from hookline.errors import HooklineError, extra
from hookline.hook_file import load_hooks
from hookline.records.approvals.inbox import Unreachable, ask_once
from hookline.records.console.report import ReplaySubprocess
from hookline.records.replay.compare import CHUNK, Flip, Report, record_files, replay, watchers

_SOURCES = ("project", "settings", "setting_sources", "hooks")


def main(argv: list[str]) -> int:
    """Serve until Ctrl-C."""
    args = parser_for("console").parse_args(argv)

    from hookline.records.console.server import serve

    shown = serve(
        logs(args.files), port=args.port, index=Path(args.index) if args.index else None, key=key_in(args.key_file),
        configured=configured(args), replay=replay_job(args), acts={"inbox": _decide},
        more={"inbox": lambda: _asked({"do": "list"}) | {"problem": ""}},  # none if no inbox is kept now
        on_ready=lambda address: ready(address, open_it=not args.no_open),
    )  # fmt: skip
    try:
        run(shown)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def _decide(body: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(body, type=dict[str, Any])
    return _asked({"do": "decide", "id": found.get("id"), "yes": found.get("yes"), "how": "console"})


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return asyncio.run(ask_once(body, limit=0))
    except Unreachable as problem:
        return {"questions": [], "problem": str(problem)}


def logs(files: list[str]) -> list[str]:
    """The logs that are meant: those named, else those that lie in this folder and what `install --audit` writes."""
    usual = [default_log()] if default_log().exists() else []
    here = (*Path().glob("*.jsonl"), *Path(".hookline").glob("*.jsonl"), *usual)
    if found := files or [str(path) for path in here]:
        return found
    raise HooklineError("no audit log in this folder; name one, or have one written: `hookline install claude --audit`")


def configured(args: argparse.Namespace) -> Sequence[Hook]:
    """The hooks that are configured today; they are only read, not run."""
    return load_hooks(args.hooks).hooks if args.hooks else load(args).hooks


def replay_job(args: argparse.Namespace) -> ReplaySubprocess | None:
    """The replay that the page may start, if it was allowed."""
    if not args.replay:
        return None
    flags = [f"--{name.replace('_', '-')}={value}" for name in _SOURCES if (value := getattr(args, name))]
    flags += [f"--plugin-dir={folder}" for folder in args.plugin_dir] + (["--trust"] if args.trust else [])
    return ReplaySubprocess(logs(args.files), flags, args.hooks or f"settings of {Path(args.project).resolve()}")


def ready(address: str, *, open_it: bool) -> None:
    """Say where it is, and open it."""
    print(f"console: {address}\nThe address works once. Ctrl-C ends the console.", flush=True)
    if open_it:
        import webbrowser

        webbrowser.open(address)


def replay_all(argv: list[str]) -> int:
    """`hookline replay`: which recorded calls today's hooks would decide differently, the loosened ones first."""
    args = parser_for("replay").parse_args(argv)
    args.files = logs(args.files)
    if missing := [file for file in args.files if not Path(file).exists()]:
        raise HooklineError(f"{missing[0]}: no such file or folder")
    if args.jobs is not None and args.jobs < 1:
        raise HooklineError(f"--jobs: expected a number from 1 on, got `{args.jobs}`")
    hooks = hooks_of(args)
    if not hooks.hooks:  # what is wrong with the files is said once, here, not by every worker
        name = "name them with --hooks FILE.py, or their project with --project DIR"
        raise HooklineError(f"{args.project}: no hooks, so every denied call would be let through; {name}")
    with _progress(sum(path.stat().st_size for path in record_files(args.files))) as advance:
        size = sys.maxsize if watchers(hooks) else CHUNK  # a session is heard from its beginning
        report = replay(args.files, partial(_quietly, args), jobs=args.jobs, size=size, on_progress=advance,
                        since=args.since, until=args.until)  # fmt: skip
    counts = [{"was": was, "now": now, "calls": number} for (was, now), number in sorted(report.counts.items())]
    said = {"calls": report.calls, "flipped": report.flip_count, "failures": report.failures,
            "vanished": report.vanished, "counts": counts, "flips": report.flips}  # fmt: skip
    print(json_text(said) if args.json else report_text(report, args.most))
    return 1 if args.fail_on_flip and report.flip_count else 0


def _quietly(args: argparse.Namespace) -> Any:
    args.trust = True  # it was asked about already
    return hooks_of(args)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, Report], None] | None]:
    """On a terminal a bar over bytes, from the first piece on: workers must not be copies of one that draws."""
    if not sys.stderr.isatty():
        yield None
        return
    with extra("a progress bar", "cli"):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=total)

    def advance(done: int, report: Report) -> None:
        progress.start()
        progress.update(task, advance=done, description=f"{report.calls:,} calls, {report.flip_count:,} differently")

    try:
        yield advance
    finally:
        progress.stop()


def report_text(report: Report, most: int) -> str:
    """The flips, alike ones as one, and how many there are."""
    groups: dict[tuple[str, ...], list[Flip]] = {}
    for flip in report.flips:
        groups.setdefault((flip.was, flip.now, flip.by, flip.tool, *flip.what.split()[:1]), []).append(flip)
    lines = [_line(group[0], len(group)) for group in groups.values()][:most]
    shown = sum(len(group) for group in list(groups.values())[:most])
    if report.flip_count > shown:
        lines.append(paint(f"… and {report.flip_count - shown:,} more; `--most` shows more", "dim"))
    counts = sorted(report.counts.items(), reverse=True)
    kinds = [f"{was.upper()} → {now.upper()} {number:,}" for (was, now), number in counts if was != now]
    failed = f", a hook failed on {report.failures:,}" if report.failures else ""
    failed += f", {report.vanished:,} not compared: their folder is gone" if report.vanished else ""
    summary = f"{counted(report.calls, 'call')}, {report.flip_count:,} would be decided differently"
    return "\n".join([*lines, f"{summary}{': ' + ', '.join(kinds) if kinds else ''}{failed}"])


def _line(flip: Flip, alike: int = 1) -> str:
    """The first of a group: calls of one program that the same hook now decides differently."""
    change = paint(f"{flip.was.upper()} → {flip.now.upper()}", "red" if flip.is_looser else "green")
    why = f"  {one_line(flip.by)}: {one_line(flip.reason)}" if flip.reason else ""
    partial_ = (" (recorded in part)" if flip.partial else "") + (f" and {alike - 1:,} like it" if alike > 1 else "")
    what = f"{one_line(flip.tool or flip.event)} {one_line(flip.what, 60)}"
    return f"{change}  {what}{partial_}{why}  {paint(f'{one_line(flip.file)}:{flip.line}', 'dim')}"
