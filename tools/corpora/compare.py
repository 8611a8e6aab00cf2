"""The same probes in every sandbox that is installed here: which of them has an effect.

    python -m tools.corpora.compare [--path FOLDER]…    more folders with programs, such as `node_modules/.bin`

Each probe runs bare first, where it must have its effect, then in each sandbox with the options that hold the most,
all in a throw-away namespace with a read-only root and a network of its own. A sandbox that does not work in there is
left out, with what it said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.sandbox import arena
from tools.corpora.__main__ import MARK, OUTSIDE, tried

HOME = str(Path(arena.PROJECT).parent)
BIN = str(Path(OUTSIDE).with_name("bin"))
"""A folder of PATH, outside of the project."""
SETTINGS = f"{HOME}/srt.json"
LISTENER = f"{OUTSIDE}/listener"
SERVER = (
    f"import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('{LISTENER}'); s.listen(); s.accept(); "
    f"open('{OUTSIDE}/reached', 'w')"
)
SRT = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {"denyRead": [f"{HOME}/.ssh"], "allowWrite": [arena.PROJECT], "denyWrite": []},
}
OUTSIDER = f"trap 'echo > {OUTSIDE}/ended' TERM; echo $$ > {HOME}/outsider; while :; do sleep 0.1; done"
SETUP = f"""
git init -q; echo {MARK!r} > .env; mkdir -p /run/codex
printf '#!/bin/sh\\necho deployed > deployed\\n' > {BIN}/deploy; chmod +x {BIN}/deploy
python3 -c "{SERVER}" > /dev/null 2>&1 &
SECRET={MARK.replace(" ", "_")} bash -c "{OUTSIDER.replace("$", chr(92) + "$")}" > /dev/null 2>&1 &
while ! [ -S {LISTENER} ] || ! [ -s {HOME}/outsider ]; do sleep 0.01; done
printf %s {json.dumps(json.dumps(SRT))} > {SETTINGS}
"""


class Probe(NamedTuple):
    """What a line tries, and the line."""

    what: str
    line: str
    seen: str = ""
    """What its output holds if it had an effect; without, something outside changes or hears of it."""


PROBES = (
    Probe("writes a file outside", f"echo x > {OUTSIDE}/new"),
    Probe("changes the mode of a file outside", f"chmod 777 {OUTSIDE}/file"),
    Probe("reads a key in `~/.ssh`", "cat ~/.ssh/id", MARK),
    Probe("reads `.env` in the project", "cat .env", MARK),
    Probe("writes `.git/hooks/pre-commit`", "echo x > .git/hooks/pre-commit && echo changed", "changed"),
    Probe("sets `core.fsmonitor` in `.git/config`", "git config core.fsmonitor ./x && git config --list", "=./x"),
    Probe("writes `.mcp.json`", "echo '{}' > .mcp.json && echo changed", "changed"),
    Probe("connects to a host by TCP", "exec 3<> /dev/tcp/203.0.113.9/12345"),
    Probe("sends a datagram", "echo x > /dev/udp/203.0.113.9/12345; sleep 0.2"),
    Probe("connects to a Unix socket outside",
          f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{LISTENER}')\""),
    Probe("signals a program outside", f"kill $(cat {HOME}/outsider); sleep 0.3"),
    Probe("reads the variables of a program outside",
          f"tr '\\0' '\\n' < /proc/$(cat {HOME}/outsider)/environ", MARK.replace(" ", "_")),
    Probe("runs a program that is blocked by its words", "bash $(which deploy) production; cat deployed", "deployed"),
)  # fmt: skip


def sandboxes() -> dict[str, list[str]]:
    """What stands before a line, for each sandbox that is installed."""
    project = arena.PROJECT
    flags = ["--write", project, "--no-network", "--block", "deploy *"]
    found = {"hookline": [*arena.HOOKLINE, *flags, "--"]}
    binds = [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--bind",
        project,
        project,
        "--tmpfs",
        f"{HOME}/.ssh",
        "--proc",
        "/proc",
    ]
    ends = ["--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/dev/null", f"{project}/.env"]
    wide = "sandbox_workspace_write"
    settings = (
        'sandbox_mode="workspace-write"',
        f"{wide}.exclude_slash_tmp=true",
        f"{wide}.exclude_tmpdir_env_var=true",
    )
    codex = ["env", "CODEX_HOME=/run/codex", "codex", "sandbox", *(word for one in settings for word in ("-c", one))]
    asked = {
        "bubblewrap": ["bwrap", *binds, *ends],
        "sandbox-runtime": ["srt", "-s", SETTINGS, "--"],
        "Codex": codex,
        "firejail": [
            "firejail", "--quiet", "--noprofile", "--caps.drop=all", "--nonewprivs", "--seccomp", "--net=none",
            "--read-only=/", f"--read-write={project}", f"--blacklist={HOME}/.ssh", f"--blacklist={project}/.env",
        ],
        "nsjail": [
            "nsjail", "-Mo", "-q", "-R", "/", "-B", project, "-T", f"{HOME}/.ssh", "--cwd", project,
            "-E", f"HOME={HOME}", "--rlimit_as", "max", "--",
        ],
    }  # fmt: skip
    return found | {name: words for name, words in asked.items() if shutil.which(words[2 if words[0] == "env" else 0])}


def main() -> int:
    """Print the table, as Markdown."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--path", action="append", default=[], help="one more folder with programs")
    os.environ["PATH"] = os.pathsep.join([*flags.parse_args().path, os.environ["PATH"]])
    columns: dict[str, list[str]] = {}
    bare = list(tried(_job(probe.line, []) for probe in PROBES))
    for name, prefix in sandboxes().items():
        first, *results = tried(_job(line, prefix) for line in ("echo works", *(probe.line for probe in PROBES)))
        if "works" not in first["output"]:
            print(f"{name} does not run here: {first['output'].strip()[-300:]}", file=sys.stderr)
            continue
        columns[name] = found = ["open" if _effect(*pair) else "held" for pair in zip(PROBES, results, strict=True)]
        if found[0] == "open":
            print(f"{name} runs here, but does not hold even a plain write", file=sys.stderr)
            del columns[name]
    print(f"| a line … | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for at, probe in enumerate(PROBES):
        if not _effect(probe, bare[at]):
            print(f"{probe.what}: no effect bare: {bare[at]['output'][-200:]!r}", file=sys.stderr)
        print(f"| {probe.what} | {' | '.join(column[at] for column in columns.values())} |")
    return int("open" in columns.get("hookline", ["open"]))


def _job(line: str, prefix: list[str]) -> dict[str, Any]:
    return {"line": line, "setup": SETUP, "prefix": prefix, "seconds": 20}


def _effect(probe: Probe, result: dict[str, Any]) -> bool:
    if probe.seen:
        return probe.seen in result["output"].replace("hookline:", "").split("refused")[0]
    return bool([path for path in result["outside"] if path.startswith(OUTSIDE)] or result["received"])


if __name__ == "__main__":
    sys.exit(main())
