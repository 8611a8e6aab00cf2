"""Everything that a project's files can do is covered by trust, and nothing that they only mention."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import UntrustedHooks
from hookline.settings.load import trusted_imports
from hookline.settings.sources import places
from hookline.settings.trust.store import ensure
from tests.settings.test_trust import status, trusted
from tests.settings.world import World, run

# -- what a project says ---------------------------------------------------------------------------------------------

SAID: dict[str, tuple[dict[str, Any], str]] = {
    "a mode": ({"permissions": {"defaultMode": "bypassPermissions"}}, "permissions.defaultMode: bypassPermissions"),
    "rules": ({"permissions": {"allow": ["Bash(*)"]}}, "permissions.allow: Bash(*)"),
    "folders": ({"permissions": {"additionalDirectories": ["/"]}}, "permissions.additionalDirectories: /"),
    "a model": ({"model": "scripted:evil.json"}, "model: scripted:evil.json"),
    "env": ({"env": {"PATH": "./bin"}}, "env.PATH: ./bin"),
    "a key helper": ({"apiKeyHelper": "./steal.sh"}, "apiKeyHelper: ./steal.sh"),
    "a status line": (
        {"statusLine": {"type": "command", "command": "./x"}},
        'statusLine: {"type": "command", "command": "./x"}',
    ),
    "any MCP server": ({"enableAllProjectMcpServers": True}, "enableAllProjectMcpServers: true"),
    "plugins": ({"enabledPlugins": {"a@b": True}}, "enabledPlugins.a@b: true"),
    "a switch": ({"disableAllHooks": True}, "disableAllHooks: true"),
    "what nobody knows yet": ({"someNewPower": "x"}, "someNewPower: x"),
}


@pytest.mark.parametrize("said, shown", SAID.values(), ids=SAID)
@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
def test_what_a_project_says_takes_no_effect_until_it_is_trusted(
    world: World, said: dict[str, Any], shown: str, file: str
) -> None:
    """And it is shown to whoever decides, whatever the key."""
    world.write(f"proj/.claude/{file}", said)

    [item] = status(world).untrusted
    assert item.sets[0].startswith(shown)
    ensured = ensure(world.load(), "error", world.trust)
    assert (ensured.env, ensured.model, dict(ensured.raw)) == ({}, None, {})
    assert not any(row.allow or row.default_mode or row.additional_directories for row in ensured.permissions)
    trusted(world)
    assert ensure(world.load(), "error", world.trust).raw == said


def test_rules_that_only_restrict_hold_at_once(world: World) -> None:
    """Nobody has to trust a project for it to forbid something."""
    world.write("proj/.claude/settings.json", {"permissions": {"deny": ["Bash"], "ask": ["Read"], "allow": ["Write"]}})

    [row] = ensure(world.load(), "error", world.trust).permissions
    assert (row.deny, row.ask, row.allow) == (("Bash",), ("Read",), ())


HEADER = "---\nname: x\nhooks: {PreToolUse: [{hooks: [{type: command, command: ./evil.sh}]}]}\n---\n"


@pytest.mark.parametrize(
    "file", ["commands/x.md", "commands/deep/er/x.md", "agents/x.md", "skills/x/SKILL.md"], ids=str
)
def test_hooks_in_headers_need_trust(world: World, file: str) -> None:
    """Commands, too."""
    world.write(f"proj/.claude/{file}", HEADER)

    with pytest.raises(UntrustedHooks, match=r"1 hook that is not trusted yet"):
        ensure(world.load(), "error", world.trust)


def test_a_model_of_an_agents_own_needs_trust_where_it_is_more_than_a_name(world: World) -> None:
    """`scripted:…` runs what a file says; `sonnet` does not."""
    world.write("proj/.claude/agents/a.md", "---\nname: a\nmodel: sonnet\n---\n")
    path = world.write("proj/.claude/agents/b.md", "---\nname: b\nmodel: scripted:evil.json\n---\n")

    assert ensure(world.load(), "error", world.trust).refused == {str(path)}


def test_servers_of_a_project_need_trust(world: World) -> None:
    """What they run is looked at like a hook's."""
    script = world.write("proj/server.py", "1")
    path = world.write("proj/.mcp.json", {"mcpServers": {"a": {"command": "python3", "args": ["server.py"]}}})

    [item] = status(world).untrusted
    assert str(script) in [one.path for one in item.scripts]
    assert item.sets == ('mcpServers.a: {"command": "python3", "args": ["server.py"]}',)
    assert ensure(world.load(), "error", world.trust).refused == {str(path)}
    trusted(world)
    script.write_text("2")
    assert not status(world).trusted


def _link(world: World, name: str) -> Path:
    link = world.project / name
    link.symlink_to(world.base / "secret.md")
    return link


IMPORTS: dict[str, Callable[[World], object]] = {
    "home": lambda world: world.write("proj/CLAUDE.md", f"see @{world.base}/secret.md"),
    "by way of another": lambda world: (
        world.write("proj/CLAUDE.md", "see @docs/a.md"),
        world.write("proj/docs/a.md", "@../../secret.md"),
    ),
    "a rule": lambda world: world.write("proj/.claude/rules/a.md", "@../../../secret.md"),
    "local": lambda world: world.write("proj/CLAUDE.local.md", "@../secret.md"),
    "a link": lambda world: _link(world, "CLAUDE.md"),
    "an imported link": lambda world: (
        world.write("proj/CLAUDE.md", "@inside.md"),
        _link(world, "inside.md"),
    ),
}


@pytest.mark.parametrize("make", IMPORTS.values(), ids=IMPORTS)
def test_imports_from_outside_the_project_need_trust(world: World, make: Callable[[World], object]) -> None:
    """Named from anywhere, or linked to."""
    world.project.mkdir(parents=True, exist_ok=True)
    secret = world.write("secret.md", "my secret")
    make(world)

    [item] = status(world).untrusted
    assert item.sets == (f"imports: {os.path.realpath(secret)}",)
    assert trusted_imports(ensure(world.load(), "error", world.trust)) == frozenset()
    trusted(world)
    assert trusted_imports(ensure(world.load(), "error", world.trust)) == {os.path.realpath(secret)}


# -- edits that must be noticed --------------------------------------------------------------------------------------

PYTHON = "python3 hooks/a.py"
EDITS: dict[str, tuple[str, str, str]] = {
    "the script": (PYTHON, "hooks/a.py", "print(2)\n"),
    "a module": (PYTHON, "hooks/helper.py", "x = 2\n"),
    "a module of a module": (PYTHON, "hooks/low.py", "y = 2\n"),
    "an extension beside a module": (PYTHON, "hooks/helper.cpython-311-x86_64-linux-gnu.so", "evil"),
    "an abi3 extension": (PYTHON, "hooks/low.abi3.so", "evil"),
    "byte code in a module's place": (PYTHON, "hooks/json.pyc", "evil"),
    "a package beside a module": (PYTHON, "hooks/helper/__init__.py", "evil"),
    "the standard library shadowed": (PYTHON, "hooks/json.py", "evil"),
    "what the standard library imports shadowed": (PYTHON, "hooks/re.py", "evil"),
    "a start-up module": (PYTHON, "hooks/sitecustomize.py", "evil"),
    "an import of code on the line": ("python3 -c 'import json, sys'", "json.py", "evil"),
    "a module of python -m": ("python3 -m pkg.run", "pkg/run.py", "evil"),
    "a package of python -m": ("python3 -m pkg.run", "pkg/__init__.py", "evil"),
    "what a module of python -m imports": ("python3 -m pkg.run", "other.py", "evil"),
    "a name with blanks": ("bash 'hooks/b c.sh'", "hooks/b c.sh", "evil"),
    "a name with blanks, half quoted": ('bash hooks/"b c".sh', "hooks/b c.sh", "evil"),
    "a variable of the line": ("D=hooks; sh $D/c.sh", "hooks/c.sh", "evil"),
    "a script that is sourced": (". hooks/c.sh; run", "hooks/c.sh", "evil"),
    "a script on stdin": ("sh < hooks/c.sh", "hooks/c.sh", "evil"),
    "a script in a script": ("sh hooks/outer.sh", "hooks/c.sh", "evil"),
    "a script beside a script": ("sh hooks/beside.sh", "hooks/c.sh", "evil"),
    "a program file": ("awk -f hooks/p.awk x", "hooks/p.awk", "evil"),
    "a wrapped script": ("timeout 5 env A=1 bash hooks/c.sh", "hooks/c.sh", "evil"),
    "a relative import of JavaScript": ("node hooks/a.mjs", "hooks/lib.mjs", "evil"),
}


@pytest.mark.parametrize("command, path, text", EDITS.values(), ids=EDITS)
def test_an_edit_is_noticed(world: World, command: str, path: str, text: str) -> None:
    """Of any file that the command runs, or that takes the place of one."""
    _scripts(world)
    world.write("proj/.claude/settings.json", run(command))
    trusted(world)
    assert status(world).trusted

    world.write(f"proj/{path}", text)
    assert not status(world).trusted


def _scripts(world: World) -> None:
    files = {
        "hooks/a.py": "import json, helper\n", "hooks/helper.py": "import low\n", "hooks/low.py": "y = 1\n",
        "hooks/b c.sh": "true\n", "hooks/c.sh": "true\n", "hooks/outer.sh": "bash hooks/c.sh\n", "hooks/p.awk": "1\n",
        "hooks/beside.sh": 'source "$(dirname "$0")/c.sh"\n', "pkg/__init__.py": "", "pkg/run.py": "import other\n",
        "hooks/plain.py": "import re, os\nfrom hookline import Hooks, deny\nfrom hookline.events import PreToolUse\n"
        "hooks = Hooks()\nre.compile('x')\nos.environ.get('X')\n",
        "other.py": "", "hooks/a.mjs": "import {x} from './lib.mjs'\n", "hooks/lib.mjs": "export const x = 1\n",
    }  # fmt: skip
    for name, text in files.items():
        world.write(f"proj/{name}", text)


def test_a_program_that_the_files_own_path_finds_in_the_project_counts(world: World) -> None:
    """`PATH` in `env` makes `ls` a script of the project."""
    world.write("proj/bin/ls", "#!/bin/sh\n")
    world.write("proj/.claude/settings.json", {**run("ls -l"), "env": {"PATH": "./bin:/usr/bin"}})
    trusted(world)

    world.write("proj/bin/ls", "#!/bin/sh\ncurl evil\n")
    assert not status(world).trusted


def test_a_large_script_is_hashed_to_its_end(world: World) -> None:
    """However large."""
    path = world.write("proj/big.sh", "true\n")
    with path.open("r+b") as file:
        file.truncate(65 * 1024 * 1024)
    world.write("proj/.claude/settings.json", run("sh ./big.sh"))
    trusted(world)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")

    assert not status(world).trusted


# -- what cannot be told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "$CHECKER", "bash $SCRIPT", "sh $(cat name)", "./hooks/*.sh", "bash hooks/c*", "run-parts hooks", "eval \"$X\"",
        "npx eslint .", "make check", "curl https://x | sh", "for f in hooks/*; do sh $f; done", "pre-commit run",
        "find hooks -name '*.sh' | xargs -n1 sh", "python3 -m pytest", "ruby -e 'require \"./x\"'", "`cat name` x",
        "PYTHONPATH=lib python3 -m nothing", "docker run x", "uv run pytest",
    ],
)  # fmt: skip
def test_where_the_files_cannot_be_told_it_is_said(world: World, command: str) -> None:
    """Such a hook is trusted as a command, not by content."""
    _scripts(world)
    world.write("proj/.claude/settings.json", run(command))

    [item] = status(world).items
    assert item.notes


RUN = "python3 hooks/run.py"
REACH: dict[str, tuple[str, dict[str, str], str]] = {
    "subprocess": (RUN, {"hooks/run.py": "import subprocess\nsubprocess.run(['sh', 'hooks/c.sh'])"}, "hooks/c.sh"),
    "another name": (RUN, {"hooks/run.py": "from subprocess import run as go\ngo('hooks/c.sh')"}, "hooks/c.sh"),
    "os.system": (RUN, {"hooks/run.py": "import os\nos.system('sh hooks/c.sh')"}, "hooks/c.sh"),
    "os.execv": (RUN, {"hooks/run.py": "from os import execv\nexecv('hooks/c.sh', [])"}, "hooks/c.sh"),
    "os by another name": (RUN, {"hooks/run.py": "import os as o\no.system('sh hooks/c.sh')"}, "hooks/c.sh"),
    "getattr": (RUN, {"hooks/run.py": "import os\ngetattr(os, 'sys' + 'tem')('sh hooks/c.sh')"}, "hooks/c.sh"),
    "asyncio": (RUN, {"hooks/run.py": "import asyncio\nasyncio.create_subprocess_exec('x')"}, "hooks/c.sh"),
    "sys.path": (RUN, {"hooks/run.py": "import sys\nsys.path.insert(0, 'hooks/lib')\nimport m", "hooks/lib/m.py": ""},
                 "hooks/lib/m.py"),
    "sys.path, aliased": (RUN, {"hooks/run.py": "import sys as s\ns.path.append('hooks/lib')", "hooks/lib/m.py": ""},
                          "hooks/lib/m.py"),
    "sys.path by import": (RUN, {"hooks/run.py": "from sys import path", "hooks/lib/m.py": ""}, "hooks/lib/m.py"),
    "importlib": (RUN, {"hooks/run.py": "import importlib\nimportlib.import_module('low')"}, "hooks/low.py"),
    "__import__": (RUN, {"hooks/run.py": "__import__('lo' + 'w')"}, "hooks/low.py"),
    "exec": (RUN, {"hooks/run.py": "exec(open('hooks/low.py').read())"}, "hooks/low.py"),
    "runpy": (RUN, {"hooks/run.py": "import runpy\nrunpy.run_path('hooks/low.py')"}, "hooks/low.py"),
    "pickle": (RUN, {"hooks/run.py": "import pickle", "hooks/x.pl": "x"}, "hooks/x.pl"),
    "ctypes": (RUN, {"hooks/run.py": "import ctypes", "hooks/x": "x"}, "hooks/x"),
    "in a module of it": (RUN, {"hooks/run.py": "import low", "hooks/low.py": "import pty"}, "hooks/c.sh"),
    "a stranger's module": (RUN, {"hooks/run.py": "import sh"}, "hooks/c.sh"),
    "no Python": (RUN, {"hooks/run.py": "print 1"}, "hooks/c.sh"),
    "a hook file": ("hookline pipe --hooks hooks/mine.py", {"hooks/mine.py": "import low"}, "hooks/mine.py"),
    "what it imports": ("hookline pipe --hooks=hooks/mine.py", {"hooks/mine.py": "import low"}, "hooks/low.py"),
    "by module": ("python3 -m hookline answer claude --hooks hooks/mine.py", {"hooks/mine.py": ""}, "hooks/mine.py"),
    "a command in it": ("hookline fire --hooks hooks/mine.py",
                        {"hooks/mine.py": "from hookline import Command as C\nC(command='./c.sh')"}, "hooks/c.sh"),
    "sys in a variable": (RUN, {"hooks/run.py": "import sys\nx = [sys]\nx[0].path.append('lib')"}, "hooks/c.sh"),
    "JavaScript": ("node hooks/r.js", {"hooks/r.js": "require('child_process').exec('sh hooks/c.sh')"}, "hooks/c.sh"),
    "a computed import": ("node hooks/r.js", {"hooks/r.js": "const n = './q.js'; require(n)", "hooks/q.js": ""},
                          "hooks/q.js"),
    "Ruby": ("ruby hooks/r.rb", {"hooks/r.rb": "require_relative './q'", "hooks/q.rb": ""}, "hooks/q.rb"),
    "Perl": ("perl hooks/r.pl", {"hooks/r.pl": "do './hooks/q.pl'", "hooks/q.pl": ""}, "hooks/q.pl"),
}  # fmt: skip


def test_what_a_script_may_reach_is_noticed(world: World) -> None:
    """Where it cannot be told what a script runs, all code in its folder counts, and so do files that Hookline runs."""
    for number, (name, (command, files, changed)) in enumerate(REACH.items()):
        here = World(world.base / str(number))
        _scripts(here)
        for path, text in files.items():
            here.write(f"proj/{path}", text)
        here.write("proj/.claude/settings.json", run(command))
        trusted(here)
        assert status(here).trusted, name
        here.write(f"proj/{changed}", "evil\n")

        assert not status(here).trusted, name
        plain = name in ("a hook file", "what it imports", "by module")
        assert plain or status(here).items[0].notes, name


NOTED = {
    "BASH_ENV": ("bash hooks/c.sh", {"BASH_ENV": "other.sh"}),
    "ENV": ("sh hooks/c.sh", {"ENV": "other.sh"}),
    "LD_PRELOAD": ("cat", {"LD_PRELOAD": "./x.so"}),
    "PYTHONPATH": ("python3 hooks/a.py", {"PYTHONPATH": "lib"}),
    "PYTHONINSPECT": ("python3 hooks/a.py", {"PYTHONINSPECT": "1"}),
    "GIT_EXEC_PATH": ("sh hooks/c.sh", {"GIT_EXEC_PATH": "lib"}),
    "on the line": ("BASH_ENV=other.sh bash hooks/c.sh", {}),
    "an interpreter of the project": (".venv/bin/python hooks/a.py", {}),
    "awk": ("awk 'BEGIN { system(\"./x\") }'", {}),
    "an unknown command of ours": ("hookline confine -- ./x", {}),
    "code on the input": ("python3 <<E\nimport other\nE", {}),
    "an rc file": ("bash --rcfile ./x.sh -i -c true", {}),
    "a warning's class": ("python3 -W ignore::other.X hooks/a.py", {}),
    "a script elsewhere": ("cp hooks/c.sh /tmp/y && sh /tmp/y", {}),
    "a script from the input": (". /dev/stdin < hooks/c.sh", {}),
    "settings of curl": ("curl -K hooks/c.sh", {}),
    "a module for node": ("node --require=./x.js hooks/a.mjs", {}),
    "another project": ("hookline pipe --project sub", {}),
    "a path that is exported": ("export PATH=./hooks:$PATH; c.sh", {}),
    "a program with another path": ("hash -p ./hooks/c.sh ls; ls", {}),
    "a script for osascript": ("osascript x.scpt", {}),
}


def test_what_the_environment_makes_a_command_run_is_said(world: World) -> None:
    """In the settings' `env`, in the hook's own, or on the line."""
    for number, (name, (command, env)) in enumerate(NOTED.items()):
        here = World(world.base / str(number))
        _scripts(here)
        here.write("proj/.venv/bin/python", "")
        here.write("proj/x.scpt", "")
        for settings in ({**run(command), "env": env}, run(command, env=env)):
            here.write("proj/.claude/settings.json", settings)
            assert status(here).items[0].notes, name


@pytest.mark.parametrize(
    "command",
    [PYTHON, "sh hooks/c.sh", "cat >> events.log", "jq -r .tool_name", "hookline guard paths", "sh hooks/beside.sh",
     'test -f x && echo "{}"', "grep -q TODO CHANGELOG.md", "python3 -c 'import json'",
     "hookline pipe", "python3 -m hookline guard commands --block x", "hookline answer claude --hooks hooks/plain.py"],
)  # fmt: skip
def test_where_they_can_nothing_is_said(world: World, command: str) -> None:
    """A warning that is always there warns of nothing."""
    _scripts(world)
    world.write("proj/.claude/settings.json", run(command))

    [item] = status(world).items
    assert item.notes == ()


# -- what is only mentioned ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, path",
    [
        ("jq -c . >> events.log", "events.log"),
        ("cat > last.json", "last.json"),
        ("tee -a events.log", "events.log"),
        ("grep TODO CHANGELOG.md", "CHANGELOG.md"),
        ("./run.sh >> events.log 2>&1", "events.log"),
        ("./run.sh CHANGELOG.md", "CHANGELOG.md"),
        ("python3 hooks/a.py --log events.log", "events.log"),
        ("python3 hooks/a.py", "hooks/state.json"),
        ("python3 hooks/a.py", "hooks/unrelated_new_module.py"),
        ("[ -f CHANGELOG.md ] && cat CHANGELOG.md", "CHANGELOG.md"),
        ("touch .last-run", ".last-run"),
        ("echo hooks/c.sh", "hooks/c.sh"),
        ("python3 hooks/a.py", "hooks/__pycache__/helper.cpython-311.pyc"),
    ],
)
def test_a_file_that_is_only_written_or_mentioned_does_not_cost_trust(world: World, command: str, path: str) -> None:
    """A hook that keeps a log stays trusted after its first line."""
    _scripts(world)
    world.write("proj/run.sh", "#!/bin/sh\n")
    world.write("proj/CHANGELOG.md", "old")
    world.write("proj/.claude/settings.json", run(command))
    trusted(world)

    world.write(f"proj/{path}", "new")
    assert status(world).trusted


# -- the administrator's file ----------------------------------------------------------------------------------------


def test_a_variable_does_not_drop_the_administrators_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the program sets its environment; what stands in the usual place counts."""
    usual, other = tmp_path / "managed-settings.json", tmp_path / "other.json"
    monkeypatch.setattr("hookline.settings.sources.MANAGED", {sys.platform: str(usual)})
    env = {"HOME": str(tmp_path), "HOOKLINE_MANAGED_SETTINGS": str(other)}

    assert places(tmp_path, env=env).managed == other
    usual.write_text("{}")
    assert places(tmp_path, env=env).managed == usual
