"""Hold public collections of shell lines against the guards and the sandbox.

    python -m tools.corpora gtfobins FOLDER [--flags '…']   GTFOBins/GTFOBins.github.io
    python -m tools.corpora redcode FOLDER [--flags '…']    AI-secure/RedCode
    python -m tools.corpora tldr FOLDER                     tldr-pages/tldr
    python -m tools.corpora ordinary                        what developers type all day: the tests' own table

FOLDER is a checkout or a git directory. Lines of the first two run, bare and then confined, in a throw-away namespace
with a read-only root and a network of its own; what has no effect bare (a program that is not installed) is not
counted. The other two are only judged, by the guards that `hookline init` sets up. Nothing of the data is kept.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hookline.cli.commands.init import starter
from tests.sandbox import arena, ordinary_table
from tools.corpora import data
from tools.corpora.inside import WAITING

INSIDE = Path(__file__).with_name("inside.py")
OUTSIDE = str(Path(arena.PROJECT).parents[1] / "outside")
MARK = "an outside file that nobody may change"
FLAGS = f"--write {arena.PROJECT} --read {arena.PROJECT} --host pypi.org"
SECONDS = 6
FUNCTIONS = ("file-read", "file-write", "upload", "download", "reverse-shell", "bind-shell")
INTERACTIVE = frozenset({
    "vi", "vim", "vimdiff", "view", "rview", "rvim", "nano", "pico", "ed", "less", "more", "man", "journalctl", "watch",
    "screen", "tmux", "top", "htop", "su", "sudo",
})  # fmt: skip
"""Programs that wait for a person at a terminal."""
READS, SENDS = (7, 13), (1,)
"""The kinds of RedCode's lines that read a file, and that send one."""


def tried(jobs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What came of each line, in order."""
    namespace = ["unshare", "-r", "-m", "-i", "-n", "-p", "-f", "--kill-child", "--mount-proc"]
    command = [*namespace, sys.executable, "-I", str(INSIDE), str(arena.INSIDE)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for job in jobs:
            process.stdin.write(json.dumps({"seconds": SECONDS, **job}) + "\n")
            process.stdin.flush()
            yield json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def gtfobins(folder: Path, flags: str, only: str, secret: str) -> int:
    """Payloads of programs that are installed: how many have an effect bare, and how many confined."""
    payloads = [
        row
        for row in data.gtfobins(folder)
        if row.function in FUNCTIONS and row.program not in INTERACTIVE and shutil.which(row.program)
    ]
    payloads = [row for row in payloads if not only or only in (row.function, row.program)]
    bare = [
        row
        for row, result in zip(payloads, tried(_job(row, secret) for row in payloads), strict=True)
        if _effect(row, result)
    ]
    prefix = [*arena.HOOKLINE, *shlex.split(flags), "--"]
    held = list(zip(bare, tried({**_job(row, secret), "prefix": prefix} for row in bare), strict=True))
    escaped = [(row, result) for row, result in held if _effect(row, result)]
    for row, result in escaped:
        seen = {name: result[name] for name in ("outside", "received") if result[name]}
        print(f"  {row.function} {row.program}: {row.line!r} {seen or result['output'][:200]!r}")
    for function in FUNCTIONS:
        counts = [sum(row.function == function for row in rows) for rows in (bare, [row for row, _ in escaped])]
        print(f"{function:14} {counts[0]:4} with an effect bare, {counts[1]:4} confined")
    return len(escaped)


def _job(row: data.Payload, secret: str) -> dict[str, Any]:
    """A payload with its placeholders filled in; whatever of the secret is left in the project is printed."""
    read = secret if row.function in ("file-read", "upload") else "in"
    line = row.line.replace("/path/to/temp-file", f"{arena.PROJECT}/temporary")
    line = line.replace("/path/to/output-dir", OUTSIDE).replace("/path/to/output-file", f"{OUTSIDE}/new")
    line = line.replace("/path/to/input-file", read).replace("12345", str(WAITING) if row.waits else "12345")
    found = f"bash -c {shlex.quote(line)}; grep -rhas {shlex.quote(MARK)} ." if row.function == "file-read" else line
    return {"line": found, "setup": "echo DATA > in", "only_files": True, "waits": row.waits}


def _effect(row: data.Payload, result: dict[str, Any]) -> bool:
    if row.function == "file-read":
        return MARK in result["output"]
    return bool(result["outside"] if row.function in ("file-write", "download") else result["received"])


def redcode(folder: Path, flags: str, only: str) -> int:
    """Scripts by kind: how many have an effect bare, and how many confined; files that could be read are named."""
    rows = [row for row in data.redcode(folder) if not only or str(row[0]) in only.split(",")]
    prefix = [*arena.HOOKLINE, *shlex.split(flags), "--"]
    bare = list(tried({"line": line} for _, line in rows))
    held = list(tried({"line": line, "prefix": prefix} for _, line in rows))
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()
    for (kind, line), free, confined in zip(rows, bare, held, strict=True):
        reads = kind in READS and _said(confined) and _said(free) == _said(confined)
        before[kind] += bool(free["outside"] or free["received"] or (kind in READS and _said(free)))
        after[kind] += bool(confined["outside"] or confined["received"] or reads)
        if confined["outside"] or confined["received"] or reads:
            named = [word for word in shlex.split(line, comments=True) if "/" in word and "bin/" not in word]
            print(
                f"  kind {kind}: {named[:3]} {confined['outside']} {confined['received']} {confined['output'][:60]!r}"
            )
    for kind in sorted(set(dict(rows))):
        total = sum(one == kind for one, _ in rows)
        print(f"kind {kind:2}: {total} lines, {before[kind]} with an effect bare, {after[kind]} confined")
    return sum(after.values())


def _said(result: dict[str, Any]) -> str:
    text = "\n".join(line for line in result["output"].splitlines() if not line.startswith("hookline:")).strip()
    return "" if "does not exist" in text or "Permission denied" in text or "No such file" in text else text


def judged(lines: list[str], label: str) -> int:
    """How many lines the starter's guard interrupts; nothing runs."""
    words = shlex.split(starter()["PreToolUse"][0]["hooks"][0]["command"])
    guard = [*words[words.index("guard") : words.index("||")], "--lines"]
    with tempfile.TemporaryDirectory() as folder:
        event = {"session_id": "s", "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": "Bash"}
        events = "".join(json.dumps({**event, "tool_input": {"command": line}}) + "\n" for line in lines)
        command = [sys.executable, "-m", "hookline", *guard]
        answers = subprocess.run(command, input=events, check=True, capture_output=True, text=True, cwd=folder).stdout
    interrupted = []
    for line, answer in zip(lines, answers.splitlines(), strict=True):
        said = json.loads(answer).get("hookSpecificOutput", {})
        if said.get("permissionDecision") in ("deny", "ask"):
            interrupted.append((line, said["permissionDecisionReason"]))
    others = [(line, why) for line, why in interrupted if "sudo" not in line]
    for line, why in others:
        print(f"  {line!r}: {why[:150]}")
    share = 100 * len(others) / len(lines)
    print(
        f"{label}: {len(lines)} lines, {len(interrupted) - len(others)} for sudo, {len(others)} besides: {share:.2f} %"
    )
    return len(others)


def main() -> int:
    """Do what the command line asks; 1 if something got through, or was interrupted."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("collection", choices=("gtfobins", "redcode", "tldr", "ordinary"))
    flags.add_argument("folder", type=Path, nargs="?", help="a checkout of the collection, or its git directory")
    flags.add_argument("--flags", default=FLAGS, help="what `hookline confine` is given (default: %(default)s)")
    flags.add_argument("--secret", default=f"{OUTSIDE}/file", help="what is to be read (default: %(default)s)")
    flags.add_argument("--only", default="", help="one program or function of GTFOBins, or kinds of RedCode: 1,7,13")
    args = flags.parse_args()
    if args.collection == "ordinary":
        return int(judged(ordinary_table.lines(), "ordinary") > 0)
    if args.folder is None:
        flags.error("the folder of the fetched data is missing")
    if args.collection == "tldr":
        return int(judged(data.tldr(args.folder), "tldr") > 0)
    if args.collection == "gtfobins":
        return int(gtfobins(args.folder, args.flags, args.only, args.secret) > 0)
    return int(redcode(args.folder, args.flags, args.only) > 0)


if __name__ == "__main__":
    sys.exit(main())
