"""One row per host: its name stands there, in a module of that name and in the table; another host is one more."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hookline
from hookline.hosts.table import HOSTS
from tests.environ import clean_environ

PACKAGE = Path(hookline.__file__).parent
EXCEPTIONS = {
    "hosts/claude_code": "the client of Claude Code: another way to run hooks, and no row",
    "hosts/rows/grok.json": "Grok runs the hooks that were written for Claude Code and Cursor",
    "hosts/prove/model.py": "the names of models that it offers, and Gemini is also a protocol",
    "hosts/gateway": "a `cursor` of MCP says where a list goes on",
    "hosts/acs.py": "an Agent Control Standard client speaks of tools as Claude Code does: its names and their meaning",
    "hosts/answer.py": "why a stop is a deny: what Claude Code does; `claude` is also the name of a dialect",
    "cli": "`hookline attach` is for Claude Code, and examples in help texts name a host",
}
"""Where the name of another host may stand, and why."""


def words_of(tree: ast.Module) -> Iterator[str]:
    """Every text and name of a module, but for its docstrings and comments."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value
        elif isinstance(node, ast.Name | ast.FunctionDef | ast.ClassDef):
            yield (node.id if isinstance(node, ast.Name) else node.name).replace("_", " ")


def test_a_hosts_name_stands_in_its_own_module() -> None:
    """So what is known of a host is found, and changed, in one place."""
    elsewhere = []
    rows = (PACKAGE / "hosts/rows").iterdir()
    for path in sorted([*rows, *(PACKAGE / "hosts").rglob("*.py"), *(PACKAGE / "cli").rglob("*.py")]):
        place = path.relative_to(PACKAGE).as_posix()
        if place == "hosts/table.py" or any(place.startswith(one) for one in EXCEPTIONS):
            continue
        text = path.read_text()
        words = "\n".join(words_of(ast.parse(text))) if path.suffix == ".py" else text
        elsewhere += [f"{place}: {name}" for name in HOSTS
                      if path.stem != name and re.search(rf"\b{name}\b", words, re.IGNORECASE)]  # fmt: skip

    assert elsewhere == []


def test_nothing_asks_for_a_hosts_name() -> None:
    """A branch on a name is a field that is missing in the row; this holds for the exceptions as well."""
    asked = re.compile(r"(?<!os)\.name (?:==|!=|in|not in) .*[\"'](?:" + "|".join(HOSTS) + r")[\"']")
    files = [*(PACKAGE / "hosts").rglob("*.py"), *(PACKAGE / "cli").rglob("*.py")]

    assert [str(path) for path in files if asked.search(path.read_text())] == []


ACME = {
    "name": "acme",
    "title": "Acme",
    "executable": "acme",
    "events": {"PreToolUse": "PreToolUse"},
    "says": {"PreToolUse": {"deny": {"decision": "block", "reason": "{text}"}}},
    "tools": {"run": {"name": "Bash"}},
    "config": {"user": ".acme/hooks.json", "entry": {"command": "{command}", "timeout": "{timeout}"}},
}
HOOKS = """from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse, match="Bash")
def refuse(event):
    return deny("not here") if "rm" in event.tool_input["command"] else None
"""


def test_another_host_is_one_file_and_one_line(tmp_path: Path) -> None:
    """It is installed, answered and taken out again; nothing else had to change."""
    package, home = tmp_path / "hookline", tmp_path / "home"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    (package / "hosts/rows/acme.json").write_text(json.dumps(ACME))
    table = package / "hosts/table.py"
    table.write_text(table.read_text().replace("\n    CLAUDE,", '\n    read_row("acme"), CLAUDE,', 1))
    hooks = tmp_path / "hooks.py"
    hooks.write_text(HOOKS)

    def run(*words: str, stdin: str = "") -> str:
        argv = [sys.executable, "-m", "hookline", *words]
        env = clean_environ(home, PYTHONPATH=str(tmp_path))
        return subprocess.run(argv, cwd=tmp_path, env=env, input=stdin, capture_output=True, text=True, check=True,
                              timeout=60).stdout  # fmt: skip

    run("install", "acme", "--hooks", str(hooks))
    written = json.loads((home / ".acme/hooks.json").read_text())
    call = {"hook_event_name": "PreToolUse", "tool_name": "run", "tool_input": {"command": "rm x"}, "session_id": "s"}
    said = run("answer", "acme", "--hooks", str(hooks), "--event", "PreToolUse", stdin=json.dumps(call))
    run("uninstall", "acme")

    assert [list(entry) for entry in written["hooks"]["PreToolUse"]] == [["command", "timeout"]]
    assert json.loads(said) == {"decision": "block", "reason": "not here"}
    assert not (home / ".acme/hooks.json").exists()
