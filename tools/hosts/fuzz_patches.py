"""`python -m tools.hosts.fuzz_patches HOST [COUNT [SEED]]`: every file that a host's patches change is reported.

Random patches are read by Hookline; what it does not refuse is given to the host's own `apply_patch`, in a namespace
where one folder is all that can be written. Every file that has changed must be one that was reported.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hookline.core.patches import read_patch
from hookline.core.shell.patched_files import patched_files
from hookline.errors import EventError
from hookline.hosts.install.survey import find_binary, lab
from hookline.hosts.prove.model import ModelTurn
from hookline.hosts.prove.run import Workspace, run
from hookline.hosts.table import AGENTS, find
from tools.hosts.families import Call, family_of, with_family
from tools.hosts.random_patches import make_line, make_patch

ROOT = Path(__file__).resolve().parents[2]
CONFINED = """
mount --make-rprivate / && mount -t tmpfs none "$1" && mount -o remount,ro,bind / / && shift && exec "$@"
"""
_PATIENCE = 15.0
"""Seconds that a host gets for one patch; Cline hangs over some."""
OLD = "one\ntwo\nthree\n"


class Outcome(NamedTuple):
    """How many patches were tried, how many changed a file, how many were refused, and what was not reported."""

    tried: int
    applied: int
    refused: int
    escaped: list[tuple[str, list[str]]]


# -- the folder -----------------------------------------------------------------------------------------------------


def lay_out(base: Path) -> tuple[Path, list[str]]:
    """A folder to work in, files there and beside it, and the names that patches use for them."""
    work = base / "work"
    (work / "sub").mkdir(parents=True)
    (base / "out").mkdir()
    for path in files(base):
        path.write_text(OLD)
    inside = ["a.txt", "sub/b.txt", "new.txt", "sub/n/new.txt", "my file.txt", "~/h.txt", f"{work}/a.txt"]
    return work, [*inside, "../out/o.txt", "../out/new.txt", f"{base}/out/o.txt", f"{base}/out/new.txt"]


def files(base: Path) -> list[Path]:
    """The files that are there before a patch."""
    return [base / "work/a.txt", base / "work/sub/b.txt", base / "work/sub/a.txt", base / "out/o.txt"]


def changed(base: Path) -> list[str]:
    """What a patch has made, changed or removed; then everything is as it was."""
    found = {Path(folder, name) for folder, _, names in os.walk(base) for name in names}
    before = set(files(base))
    touched = [path for path in found | before
               if path not in before or path not in found or path.read_bytes() != OLD.encode()]  # fmt: skip
    for path in touched:
        path.unlink(missing_ok=True)
        if path in before:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(OLD)
    return sorted(map(str, touched))


# -- hosts ----------------------------------------------------------------------------------------------------------

Apply = Callable[[str], object]

CLINE = """
import { createApplyPatchExecutor } from "MODULE";
import { createInterface } from "node:readline";
const apply = createApplyPatchExecutor({ restrictToCwd: false });
for await (const line of createInterface({ input: process.stdin })) {
  try { await apply({ input: JSON.parse(line) }, "WORK", {}); } catch (error) {}
  console.log("");
}
"""
OPENHANDS = """
import json, sys
from openhands.tools.apply_patch.definition import ApplyPatchAction, ApplyPatchExecutor
apply = ApplyPatchExecutor("WORK")
apply._resolve_path = lambda path: __import__("pathlib").Path("WORK", path)
for line in sys.stdin:
    try:
        apply(ApplyPatchAction(patch=json.loads(line)))
    except Exception:
        pass
    print("", flush=True)
"""


def program_of(name: str) -> Path:
    """The binary of a host."""
    found = find_binary(find(name))
    if found is None:
        raise SystemExit(f"{name} is not on this machine; run tools/hosts/install {name}")
    return found.path.resolve()


def codex_program(base: Path) -> Path:
    """Codex as `apply_patch`, which is what its shell finds on PATH."""
    vendor = program_of("codex").parents[1]
    native = next(path for path in vendor.parent.rglob("bin/codex") if path.stat().st_size > 1_000_000)
    folder = base / "bin"
    folder.mkdir()
    for name in ("apply_patch", "applypatch"):
        (folder / name).symlink_to(native)
    return folder


@contextmanager
def codex(base: Path, work: Path) -> Iterator[Apply]:
    """Codex's own program for patches."""
    program = codex_program(base.parent) / "apply_patch"
    yield lambda patch: subprocess.run([program, patch], cwd=work, capture_output=True, check=False)


@contextmanager
def codex_shell(base: Path, work: Path) -> Iterator[Apply]:
    """A shell that finds Codex's `apply_patch`."""
    env = {"PATH": f"{codex_program(base.parent)}:/usr/bin:/bin", "HOME": str(base / "work" / "sub")}
    yield lambda line: subprocess.run(["bash", "-c", line], cwd=work, env=env, capture_output=True, check=False)


class _Served:
    """A process that applies a patch per line and says when it has; one that hangs over a patch is started again."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self._argv, self._env = argv, {**os.environ, **env}
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, patch: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL, env=self._env, bufsize=0)  # fmt: skip
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise SystemExit("no pipes")
        asked.write(json.dumps(patch).encode() + b"\n")
        if not select.select([answers], [], [], _PATIENCE)[0]:
            self.end()
        elif not answers.read(1):
            raise SystemExit(f"{self._argv[0]} has ended")

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def _served(argv: list[str], env: dict[str, str]) -> Iterator[Apply]:
    served = _Served(argv, env)
    try:
        yield served
    finally:
        served.end()


@contextmanager
def cline(base: Path, work: Path) -> Iterator[Apply]:
    """Cline's executor, called from Node."""
    module = next(parent / "@cline/core/dist/index.js" for parent in program_of("cline").parents
                  if parent.name == "node_modules")  # fmt: skip
    script = base.parent / "cline.mjs"
    script.write_text(CLINE.replace("MODULE", str(module)).replace("WORK", str(work)))
    with _served([str(lab() / "node24/node_modules/node/bin/node"), str(script)], {"HOME": str(base.parent)}) as apply:
        yield apply


@contextmanager
def openhands(base: Path, work: Path) -> Iterator[Apply]:
    """The tool of OpenHands, with its own guard on paths taken away."""
    python = program_of("openhands").parent / "python"
    env = {"HOME": str(base.parent), "OPENHANDS_SUPPRESS_BANNER": "1"}
    with _served([str(lab() / "venv/openhands/bin/python") if not python.exists() else str(python), "-c",
                  OPENHANDS.replace("WORK", str(work))], env) as apply:  # fmt: skip
        yield apply


DRIVERS = {"codex": codex, "codex-shell": codex_shell, "cline": cline, "openhands": openhands}
AGENT_RUNS = ("opencode", "copilot", "codex-agent", "codex-lines")
"""Hosts whose code cannot be called: the agent itself runs, and its model asks for many patches at a time."""


# -- runs -----------------------------------------------------------------------------------------------------------


def reported(text: str, work: Path, *, line: bool, home: Path) -> set[str] | None:
    """Every file that Hookline reports for a patch or a line; `None` if it is refused."""
    try:
        found = list(patched_files(text) if line else read_patch(text))
    except EventError:
        return None
    return {os.path.normpath(work / (path if path[:1] != "~" else f"{home}{path[1:]}"))
            for path in (one.path for one in found)}  # fmt: skip


def fuzz(host: str, count: int, seed: int, base: Path) -> Outcome:
    """Give a host patches until `count` of them were not refused by Hookline."""
    rng, tree = random.Random(seed), base / "tree"  # noqa: S311 - no secret
    tree.mkdir()
    work, names = lay_out(tree)
    if host in AGENT_RUNS:
        return _fuzz_agent(host, count, rng, tree)
    line = host == "codex-shell"
    refused = applied = 0
    escaped: list[tuple[str, list[str]]] = []
    with DRIVERS[host](tree, work) as apply:
        for _ in range(count):
            while True:
                text = (make_line if line else make_patch)(rng, names)
                known = None if "\0" in text else reported(text, work, line=line, home=work / "sub")
                if known is not None:
                    break
                refused += 1
            apply(text)
            found = changed(tree)
            applied += bool(found)
            if set(found) - known:
                escaped.append((text, found))
    return Outcome(count, applied, refused, escaped)


BATCH = 60


def _fuzz_agent(host: str, count: int, rng: random.Random, tree: Path) -> Outcome:
    """Runs of the agent, with many calls in a turn; each case has files of its own."""
    name, _, kind = host.partition("-")
    line = kind == "lines"
    agent = with_family(name, AGENTS[name], family_of(name))
    binary = find_binary(find(name))
    if binary is None:
        raise SystemExit(f"{name} is not on this machine")
    call = _command if line else family_of(name).patch
    refused = applied = tried = 0
    escaped: list[tuple[str, list[str]]] = []
    while tried < count:
        base = tree / f"run{tried}"
        work, _ = lay_out(base)
        home = base / "home"
        home.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=work, check=False, capture_output=True)
        cases: list[tuple[str, set[str]]] = []
        while len(cases) < BATCH:
            mark = f"c{len(cases)}"
            paths = [f"{mark}.txt", f"sub/{mark}.txt", f"../out/{mark}.txt", f"{base}/out/{mark}x.txt", f"n/{mark}.txt"]
            (work / f"sub/{mark}.txt").write_text(OLD)
            text = (make_line if line else make_patch)(rng, paths)
            known = reported(text, work, line=line, home=home)
            if known is None or "\0" in text:
                refused += 1
            else:
                cases.append((text, known))
        before = {path: path.read_bytes() for path in _walk(base, home)}
        turns = [ModelTurn(tools=tuple(map(call, (text for text, _ in cases[at : at + 20]))))
                 for at in range(0, BATCH, 20)]  # fmt: skip
        done = run(agent, Workspace(binary, home, work), "please apply them", turns, limit=300)
        after = {path: path.read_bytes() for path in _walk(base, home)}
        found = {str(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        known_paths = set[str]().union(*(known for _, known in cases))
        applied += sum(bool(known & found) for _, known in cases)
        tried += BATCH
        if found - known_paths or not done.model.turns_asked:
            escaped.append(
                (json.dumps([text for text, _ in cases]), sorted(found - known_paths) or [done.stderr[-500:]])
            )
    return Outcome(tried, applied, refused, escaped)


def _command(line: str) -> Call:
    return "exec_command", {"cmd": line, "login": False}  # a login shell may drop Codex's folder from PATH


def _walk(base: Path, home: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(base):
        if ".git" not in Path(folder).parts and not Path(folder).is_relative_to(home):
            yield from (Path(folder, name) for name in names)


def confined(host: str, count: int, seed: int = 1) -> Outcome:
    """A run in a namespace of its own, where nothing but one folder can be written."""
    (ROOT / ".cache").mkdir(exist_ok=True)  # Codex has no `apply_patch` on PATH if its home is a temporary folder
    with TemporaryDirectory(prefix="fuzz-", dir=ROOT / ".cache") as folder:
        words = [sys.executable, "-m", "tools.hosts.fuzz_patches", "--inside", folder, host, str(count), str(seed)]
        user = [] if os.geteuid() == 0 else ["-r"]
        argv = ["unshare", *user, "-m", "sh", "-c", CONFINED, "sh", folder, *words]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False,
                              env={**os.environ, "TMPDIR": folder})  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{host}: {done.stderr[-2000:]}")
        return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def main(argv: list[str]) -> int:
    """Print what came of it; exit 1 if a file was changed that was not reported."""
    if argv[:1] == ["--inside"]:
        folder, host, count, seed = argv[1:]
        print(json.dumps(fuzz(host, int(count), int(seed), Path(folder))._asdict()))
        return 0
    host, count, seed = (*argv, "10000", "1")[:3] if len(argv) == 1 else (*argv, "1")[:3]
    outcome = confined(host, int(count), int(seed))
    for text, paths in outcome.escaped[:5]:
        print(f"not reported: {paths}\n{text!r}", file=sys.stderr)
    print(f"{host}: {outcome.tried} inputs, {outcome.applied} changed a file, {len(outcome.escaped)} of them one that "
          f"was not reported; {outcome.refused} more were refused by Hookline")  # fmt: skip
    return 1 if outcome.escaped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
