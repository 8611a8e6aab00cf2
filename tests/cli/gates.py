"""Entries that `install` and `init` write, and the variables and files that a project could put in their way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from hookline.core.interpreter import LASTING, PROJECT
from tests.cli.place import Place, denies

DOCUMENTED = (
    "BREAKPOINT CASEOK COERCECLOCALE DEBUG DEVMODE DONTWRITEBYTECODE FAULTHANDLER HASHSEED HOME INSPECT "
    "INTMAXSTRDIGITS IOENCODING MALLOC NODEBUGRANGES NOUSERSITE OPTIMIZE PATH PERFSUPPORT PLATLIBDIR "
    "PROFILEIMPORTTIME PYCACHEPREFIX SAFEPATH STARTUP TRACEMALLOC UNBUFFERED UTF8 VERBOSE WARNDEFAULTENCODING WARNINGS "
    "_COLORS _CPU_COUNT _FROZEN_MODULES _HISTORY _GIL _PERF_JIT_SUPPORT _BASIC_REPL "
    "ASYNCIODEBUG DUMPREFS DUMPREFSFILE EXECUTABLE MALLOCSTATS STDIOENCODING THREADDEBUG USERBASE"
)
"""What `python --help-env` and the manuals of 3.11 to 3.13 name; the interpreter under test is asked, too."""
VALUES = {
    "PYTHONIOENCODING": "utf-16", "PYTHONWARNINGS": "error", "PYTHONINTMAXSTRDIGITS": "640", "PYTHONMALLOC": "debug",
    "PYTHONHASHSEED": "0", "PYTHONEXECUTABLE": "{evil}/bin/python", "PYTHONSTARTUP": "{evil}/startup.py",
    "PYTHONOPTIMIZE": "2", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    "__PYVENV_LAUNCHER__": "{evil}/bin/python",
}  # fmt: skip
FOLDERS = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX")
OUTSIDE = Path("/usr")  # wherever this checkout lies, which may be the temporary folder
"""A folder that can be written to and is not in the system's temporary one, as the projects of tests are."""
EVIL = "import os; open({mark!r}, 'a').write(__file__); os._exit(0)\n"
PLANTED = (
    "hookline/__init__.py", "hookline/__main__.py", "sitecustomize.py", "usercustomize.py", "msgspec.py", "json.py",
    "asyncio.py", "startup.py", "lib/python{version}/site-packages/sitecustomize.py",
)  # fmt: skip


class Gate(NamedTuple):
    """An entry as a host runs it, the payload, and what it answers where nothing is hostile."""

    name: str
    command: str
    payload: str
    answer: tuple[int, str]


class Arena(NamedTuple):
    place: Place
    evil: Path
    mark: Path

    def run(self, gate: Gate | str, payload: str = "", **env: str) -> tuple[int, str]:
        command, payload = (gate, payload) if isinstance(gate, str) else (gate.command, gate.payload)
        done = self.place.start("/bin/sh", "-c", command, stdin=payload, **env)
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    """A project and another folder full of files that leave a mark if they are run, and answer nothing."""
    base = tmp_path_factory.mktemp("gate")
    place, mark = Place(base), base / "was-run"
    (base / "home/.claude").mkdir(parents=True)
    (base / "mine").mkdir()
    for folder in (place.project, base / "evil"):
        for name in [name.format(version=f"3.{sys.version_info[1]}") for name in PLANTED]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(EVIL.format(mark=str(mark)))
    (base / "evil/pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    (base / "evil/.config/hookline").mkdir(parents=True)
    (base / "evil/.config/hookline/hooks.off").touch()
    (base / "evil/hookline/hooks.off").touch()
    (base / "evil/.claude").mkdir()
    (base / "evil/.claude/settings.json").write_text('{"disableAllHooks": true}')
    return Arena(place, base / "evil", mark)


def payload(cwd: Path, tool: str = "Bash", **given: str) -> str:
    return json.dumps({
        "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": str(cwd), "tool_name": tool,
        "tool_input": given,
    })  # fmt: skip


@pytest.fixture(scope="module")
def gates(arena: Arena) -> list[Gate]:
    """What `install` writes for a Python file and for settings, and what `init` writes."""
    place, home = arena.place, arena.place.base / "home"
    hooks = place.base / "mine/hooks.py"
    hooks.write_text(
        "from hookline import Hooks, deny\nfrom hookline.guards import paths\nhooks = Hooks()\n"
        "hooks.add(paths.stay_inside())\n"
        "@hooks.on('PreToolUse', match='Bash')\ndef no(event):\n    return deny('no')\n"
    )
    found = []
    bash, write = payload(place.project, command="rm x"), payload(place.project, "Write", file_path=f"{OUTSIDE}/x")
    own = home / ".claude/settings.json"
    file = ("--hooks", str(hooks))
    touch = payload(place.project, command=f"touch {OUTSIDE}/x")
    for name, host, flags, sent in (
        ("hook file", "claude", file, bash), ("settings", "codex", (), bash), ("inside", "codex", file, touch)
    ):  # fmt: skip
        own.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [denies("settings say no")]}]}}))
        done = place.run("install", host, "--replace", *flags)
        assert done.returncode == 0, done.stderr
        config = own if host == "claude" else home / ".codex/hooks.json"
        groups = json.loads(config.read_text())["hooks"]["PreToolUse"]
        command = next(hook["command"] for group in groups for hook in group["hooks"] if " answer " in hook["command"])
        found.append((name, command, sent))
    assert place.run("init").returncode == 0
    starter = json.loads((place.project / ".claude/settings.json").read_text())["hooks"]["PreToolUse"]
    (place.project / ".claude/settings.json").unlink()
    by_mcp = payload(place.project, "mcp__fs__write_file", path=".claude/settings.json")
    calls = {"stay-inside": write, "confined-shell": payload(home, command="sudo x"), "own-files": by_mcp}
    found += [(hook["name"], hook["command"], calls[hook["name"]]) for group in starter for hook in group["hooks"]]
    made = [Gate(name, command, sent, arena.run(command, sent)) for name, command, sent in found]
    held = [gate.name for gate in made if gate.answer[0] == 2 or re.search('"(deny|ask)"', gate.answer[1])]
    assert held == [gate.name for gate in made]
    return made


def hostile(arena: Arena) -> Iterator[Mapping[str, str]]:
    """Every variable for itself, and then all of them."""
    asked = subprocess.run([sys.executable, "--help-env"], capture_output=True, text=True, check=False).stdout
    names = {f"PYTHON{name}" for name in DOCUMENTED.split()}
    names |= set(re.findall(r"^PYTHON[A-Z0-9_]+", asked, re.MULTILINE))
    evil = str(arena.evil)
    whole: dict[str, str] = {}
    for name in sorted(names | {"__PYVENV_LAUNCHER__"}):
        value = evil if name in FOLDERS else VALUES.get(name, "1").format(evil=evil)
        whole[name] = value
        yield {name: value}
    for name in (*LASTING, "HOME", "TMPDIR", "TEMP", "TMP", "BASH_ENV", "ENV", "GIT_DIR", "GIT_CONFIG_GLOBAL"):
        value = str(OUTSIDE) if name in ("TMPDIR", "TEMP", "TMP") else evil
        whole[name] = value
        yield {name: value}
    for name in ("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS"):
        whole[name] = evil
        yield {name: evil}
    for name, value in {
        "HOOKLINE_ENABLED": "0", "HOOKLINE_WARM": "0", "HOOKLINE_SERVICE": "../../evil", "HOOKLINE_HOOK_ID": "x/../y",
        "HOOKLINE_CLAUDE": evil, "OPENSSL_CONF": f"{evil}/x.cnf", "LC_ALL": "C", "LANG": "xx_XX.ISO-8859-1",
        "TZ": ":/x", "PATH": f"{evil}:.", "IFS": "/", "CDPATH": "/", "SHELLOPTS": "noexec", "PS4": "$(touch x)",
    }.items():  # fmt: skip
        yield {name: value}
        if name != "SHELLOPTS":  # it is the shell's own, and read-only in some
            whole[name] = value
    yield whole
    yield {"CLAUDE_PROJECT_DIR": "/"}


def hold_denies(arena: Arena, rows: Iterable[tuple[Gate, Mapping[str, str]]]) -> None:
    """Assert that every row's answer is the same to the byte, and that nothing planted has run."""
    rows = list(rows)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda row: arena.run(row[0], **row[1]), rows))

    changed = [
        (gate.name, dict(env) if len(env) < 3 else "all", answer)
        for (gate, env), answer in zip(rows, answers, strict=True)
        if answer != gate.answer
    ]
    assert changed == []
    assert not arena.mark.exists(), arena.mark.read_text()


def concerns(gate: Gate, env: Mapping[str, str]) -> bool:
    """Whether the host leaves that variable to the project: those of the others' entries set it themselves."""
    return PROJECT not in env or " codex " in gate.command
