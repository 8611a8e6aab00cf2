"""A policy folder, tried before it is in force: it must load, pass the tests it brings, and show what it would change.

It runs in a process of its own, because a policy's code is run for the first time here; the problems are a JSON list in
the last line of its output.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.api import Hooks
from hookline.core.interpreter import ISOLATED, python_argv
from hookline.errors import HooklineError
from hookline.fleet.bundle import TESTS
from hookline.fleet.enforce import load_policy
from hookline.fleet.ledger import logs_below

if TYPE_CHECKING:
    from hookline.records.replay.compare import Report

SECONDS = 120.0
DAYS = 7.0


class PolicyTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `tests.jsonl`."""

    event: dict[str, Any]
    decision: str
    by: str | None = None
    """The hook that should decide, if that matters."""


def check_in_process(folder: Path) -> list[str]:
    """The problems of a policy folder, found in a process of its own; empty means that it may be put in force."""
    options = (*ISOLATED, "-B")
    command = python_argv("from hookline.fleet.check import main; sys.exit(main())", str(folder), options=options)
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [f"the policy could not be checked within {SECONDS:.0f} s"]
    try:
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=list[str])
    except (IndexError, msgspec.DecodeError):  # it ended before it could say anything
        pass
    words = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return [f"checking the policy ended with exit code {ran.returncode}: {words[-1] if words else 'no output'}"]


def preview(audit: Path, policy: Path) -> Report | None:
    """What a policy would have changed among the hub's recent records; `None` if there are no records."""
    from hookline.records.replay.compare import replay

    since = time.time() - DAYS * 86_400
    logs = [path for path in logs_below(audit) if path.stat().st_mtime >= since]
    return replay(logs, partial(_hooks, policy), jobs=1) if logs else None


def _hooks(policy: Path) -> Hooks:
    hooks = Hooks()
    hooks.add(*load_policy(policy))
    return hooks


async def check(folder: Path) -> list[str]:
    """The problems of a policy folder, found in this process."""
    try:
        loaded = load_policy(folder)
    except HooklineError as problem:
        return [str(problem)]
    if not loaded:
        return ["the policy has no hooks; put a `hooks.py` or a `settings.json` with hooks there"]
    async with Hooks() as hooks:
        hooks.add(*loaded)
        return [problem async for problem in _failing(hooks, folder / TESTS)]


async def _failing(hooks: Hooks, path: Path) -> Any:
    for number, test in _tests(path):
        where = f"{TESTS}:{number}"
        if isinstance(test, str):
            yield f"{where}: {test}"
            continue
        try:
            verdict = await hooks.fire(test.event)
        except HooklineError as problem:
            yield f"{where}: {problem}"
            continue
        if str(verdict.decision) != test.decision:
            yield f"{where}: expected `{test.decision}`, got `{verdict.decision}` ({verdict.reason or 'no reason'})"
        elif test.by is not None and verdict.decided_by != test.by:
            yield f"{where}: expected `{test.by}` to decide, and `{verdict.decided_by}` did"


def _tests(path: Path) -> Iterator[tuple[int, PolicyTest | str]]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=PolicyTest)
            except (msgspec.DecodeError, UnicodeDecodeError) as problem:
                yield number, f"not a test: {problem}"


def main() -> int:
    """Print the problems of the folder that is named; 0 if there are none."""
    problems = asyncio.run(check(Path(sys.argv[1])))
    sys.stdout.write("\n" + msgspec.json.encode(problems).decode() + "\n")
    return 1 if problems else 0
