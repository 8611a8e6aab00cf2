"""The files that decide whether an agent is guarded: no tool of its writes them without the user being asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.guards import protect
from hookline.guards.permissions.file_access import SETS_UP, protected_name
from hookline.hosts.table import HOSTS
from hookline.replies import Decision

PATHS = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/x.py", ".codex/config.toml",
    ".gemini/settings.json", ".qwen/settings.json", ".github/hooks/x.json", ".git/hooks/pre-commit", ".git/config",
    ".GIT/config", ".git/modules/x/config", ".mcp.json", ".envrc", ".vscode/tasks.json", "sub/.git/config",
    ".husky/pre-commit", "node_modules/.bin/eslint", ".venv/bin/python", "./x/../.claude/settings.json",
    "~/.claude/settings.json", "~/.config/hookline/hooks.off", "~/.bashrc", "link/settings.json", "hard", "other-hard",
    "tools/run",
)  # fmt: skip
FREE = (
    "src/a.py", "README.md", ".gitignore", "docs/git/config", ".claude/plans/p.md", ".claude/worktrees/w/src/a.py",
    ".github/workflows/ci.yml", "claude/settings.json",
)  # fmt: skip
LINES = (
    "echo x > .claude/settings.json", "cp evil.json .claude/settings.json", "mv .claude old", "rm -rf .git/hooks",
    "sed -i s/a/b/ .git/config", "tee .envrc < x", "cd .git && echo x > config", "ln -sf x .mcp.json",
    "mkdir -p .git/hooks && cp x .git/hooks/pre-commit", "cp -r pack/. .", "cp -r pack/.claude .", "cp .mcp.json sub/",
    "echo x > .cl*/settings.json", "cp x .[^d]laude/settings.json",
    "git config core.fsmonitor ./x", "git config --global core.pager ./x",
    "git config alias.st '!x'", "git config --edit", "python3 -c \"open('.claude/settings.json', 'w')\"",
    "bash -c 'echo x > .git/hooks/pre-commit'", "echo x > tools/git", "truncate -s 0 .gemini/settings.json",
    "hookline mcp accept files", "cd sub; env -i /x/bin/hookline inbox approve A-1", "python -m hookline trust --yes",
    "setsid script -qc 'hookline mcp accept s' /dev/null", "sh -c 'hookline uninstall claude'", "hookline service off",
    "python3 -c \"import os; os.system('hookline mcp accept s')\"", "rm -rf ~/.local/state", "mv ~/.local x",
    "echo {} > ~/.local/state/hookline/mcp/s.json", "h=hookline; $h trust --yes", "git mv x .claude/settings.json",
    "git restore .claude", "git checkout HEAD~1 -- .claude/settings.json", "git rm -r .claude",
)  # fmt: skip
HARMLESS_LINES = (
    "cat .claude/settings.json", "git status", "git commit -m x", "git add .gitignore", "cp a.py sub/", "cp a.py .",
    "ls -la .git", "grep -r x .vscode", "git config user.name Me", "git config --get core.pager", "rm -rf build",
    "hookline mcp diff files", "hookline list", "git commit -m 'hookline mcp accept needs a person'",
    "git remote add origin https://example.com/x.git", "echo x > notes.txt", "cd $x && grep hookline a.py",
    "git checkout main", "git checkout -- a.py", "git mv a.py b.py", "git rm --cached a.py",
    "git restore --staged a.py",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with settings, a link to their folder, another name of git's configuration, and tools on PATH."""
    home, project = tmp_path / "home", tmp_path / "proj"
    monkeypatch.setenv("HOME", str(home))
    for folder in (
        home,
        project / ".claude",
        project / ".git/hooks",
        project / "sub",
        project / "pack/.claude",
        project / "tools",
    ):
        folder.mkdir(parents=True)
    for file in (
        ".claude/settings.json",
        ".git/config",
        "pack/.claude/settings.json",
        "other-hard-1",
        "a.py",
        ".mcp.json",
    ):
        (project / file).write_text("{}")
    (project / "link").symlink_to(".claude")
    os.link(project / ".git/config", project / "hard")
    os.link(project / "other-hard-1", project / "other-hard")
    monkeypatch.setenv("PATH", f"{project}/tools:{os.environ['PATH']}")
    return project


async def decision(hooks: Hooks, project: Path, tool: str, **given: Any) -> str:
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(project),
        "tool_name": tool,
        "tool_input": given,
    }
    return str((await hooks.fire(event)).decision)


async def test_paths_that_set_up_guards_are_asked_about(project: Path) -> None:
    """By every tool that writes, however the path is spelt; reading them, and every other file, is free."""
    hooks = Hooks()
    hooks.add(protect.own_files())
    tools = (("Write", "file_path"), ("Edit", "file_path"), ("mcp__fs__write_file", "path"), ("Unknown", "path"))
    expected = {(tool, field, path): "ask" for tool, field in tools for path in PATHS}
    expected |= {(tool, field, path): "pass" for tool, field in tools for path in FREE}
    expected |= {("Read", "file_path", path): "pass" for path in PATHS}
    wrong = [
        (tool, path, said)
        for (tool, field, path), wanted in expected.items()
        if (said := await decision(hooks, project, tool, **{field: path, "content": "x"})) != wanted
    ]

    assert wrong == []


async def test_lines_that_write_them_are_asked_about(project: Path) -> None:
    """As far as the text of a line tells; a line that hides what it writes is asked about if it names such a file."""
    hooks = Hooks()
    hooks.add(protect.own_files())
    asked = [line for line in LINES if await decision(hooks, project, "Bash", command=line) == "ask"]
    free = [line for line in HARMLESS_LINES if await decision(hooks, project, "Bash", command=line) == "pass"]

    assert [line for line in LINES if line not in asked] == []
    assert [line for line in HARMLESS_LINES if line not in free] == []


async def test_wildcards_that_stand_for_too_much_are_asked_about(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many files a glob may stand for a protected one."""
    monkeypatch.setattr("hookline.guards.permissions.path_on_disk.MOST_ENTRIES", 3)
    hooks = Hooks()
    hooks.add(protect.own_files())

    assert await decision(hooks, project, "Bash", command="cp x n*/.b*n/eslint") == "ask"


async def test_the_hook_file_and_what_it_imports_are_protected(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they lie: all that this process has loaded and that was not installed."""
    from hookline.hook_file import load_hooks

    (project / "guards_here").mkdir()
    (project / "guards_here/rules_of_mine.py").write_text("")
    (project / "guards_here/mine.py").write_text(
        "import rules_of_mine\nfrom hookline import Hooks\nfrom hookline.guards import protect\n"
        "hooks = Hooks()\nhooks.add(protect.own_files(answer='deny', also=['secret.txt']))\n"
    )
    monkeypatch.chdir(project)
    hooks = load_hooks(project / "guards_here/mine.py")

    for name in ("guards_here/mine.py", "guards_here/rules_of_mine.py", "secret.txt"):
        assert await decision(hooks, project, "Write", file_path=name) == "deny", name
    assert await decision(hooks, project, "Bash", command="rm -r guards_here") == "deny"
    assert await decision(hooks, project, "Write", file_path="guards_here/other.py") == "pass"


def test_every_host_has_its_files_protected() -> None:
    """A new host's files need a row in the guard."""
    files = {
        path for host in HOSTS.values() for path in (host.config.user, host.config.project, host.config.local) if path
    }

    assert [path for path in sorted(files) if not protected_name(f"/x/{path}", SETS_UP)] == []


def test_another_answer_is_refused() -> None:
    """At registration."""
    with pytest.raises(HookError, match="answer must be `ask` or `deny`"):
        protect.own_files(answer="allow")  # type: ignore[arg-type]


async def test_a_process_looks_at_its_modules_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each guard: the service makes new guards for every event."""

    real, calls = os.path.realpath, list[str]()

    def counted(path: Any, **more: Any) -> Any:
        calls.append(str(path))
        return real(path, **more)

    async def looked_at() -> int:
        hooks = Hooks()
        hooks.add(protect.own_files())
        calls.clear()
        await decision(hooks, project, "Write", file_path=str(project / "a.py"))
        return sum(path.endswith(".py") and "hookline" in path for path in calls)

    monkeypatch.setattr(os.path, "realpath", counted)
    await looked_at()

    assert await looked_at() < 5


HELD = {
    "echo x > .claude/settings.json": True, "cp x .husky/pre-commit": True, "hookline trust --all": True,
    "python3 -m venv .venv && . .venv/bin/activate": False, "echo x >> ~/.zshrc": False, "git config alias.st x": False,
}  # fmt: skip
"""Lines that the kernel holds, and whether they are asked about nevertheless."""


async def test_where_the_kernel_holds_a_line_only_what_it_plainly_does_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is refused where it happens, with its reason."""
    monkeypatch.setattr("hookline.guards.sandboxing.unavailable", lambda: "")
    hooks = Hooks()
    hooks.add(protect.own_files(held=True))
    asked = {}
    for line in HELD:
        event = PreToolUse(session_id="s", cwd=str(tmp_path), tool_name="Bash", tool_input={"command": line})
        asked[line] = (await hooks.fire(event)).decision is Decision.ASK

    assert asked == HELD
