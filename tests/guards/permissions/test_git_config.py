"""Whether git, asked only to look, would run something: judged by a repository's own files, and tried with git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hookline import Hooks
from hookline.core.git_settings import is_harmless_setting
from hookline.guards import approvals
from hookline.guards.permissions.readonly_commands import runs_something
from tests.environ import clean_environ

ORDINARY = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = git@github.com:me/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
[user]
\tname = "Me # myself"
[filter "lfs"]
\tprocess = git-lfs filter-process
"""
RUNNING = (
    "[core]\n\tfsmonitor = ./x", "[core]fsmonitor=./x", "[CORE]\n\tFsMonitor = ./x", "[core]\n\tfsmoni\\\ntor = ./x",
    "[core]\n\thooksPath = h", "[core]\n\tpager = ./x", "[core]\n\tsshCommand = ./x", "[diff]\n\texternal = ./x",
    '[diff "x"]\n\ttextconv = ./x', '[filter "x"]\n\tclean = ./x', '[filter "lfs"]\n\tprocess = ./x',
    "[include]\n\tpath = ../x", '[includeIf "gitdir:/"]\n\tpath = ../x', "[alias]\n\tst = !x", "[gpg]\n\tprogram = ./x",
    "[log]\n\tshowSignature = true", "[credential]\n\thelper = ./x", '[remote "o"]\n\turl = ext::sh -c x',
    '[remote "o"]\n\turl = --upload-pack=x', '[submodule "s"]\n\tupdate = !x', "[unheard]\n\tof = true", "gibberish",
    "[core]\n\tworktree = /", "[uploadpack]\n\tpackObjectsHook = ./x",
)  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=clean_environ(tmp_path))
    (tmp_path / ".git/config").write_text(ORDINARY)
    return tmp_path


async def approves(line: str, cwd: Path, *patterns: str) -> bool:
    hooks = Hooks()
    hooks.add(approvals.auto(patterns) if patterns else approvals.auto())
    event = {"hook_event_name": "PermissionRequest", "session_id": "s", "cwd": str(cwd), "tool_name": "Bash",
             "tool_input": {"command": line}}  # fmt: skip
    return str((await hooks.fire(event)).decision) == "allow"


async def test_looking_is_approved_only_where_nothing_is_known_to_run(repository: Path) -> None:
    """What is not on the list of harmless settings is not harmless; the safe-list and one's own list alike."""
    (repository / "sub").mkdir()
    assert runs_something(str(repository)) == ""
    for patterns in ((), ("git status *", "git -C * status")):
        assert await approves("git status", repository, *patterns)
        assert await approves("git status", repository / "sub", *patterns)
    passed = []
    for text in RUNNING:
        (repository / ".git/config").write_text(f"{ORDINARY}{text}\n")
        lines = ("git status", "git status -s", "cd sub && git status", "git -C sub status")
        for listed in ((), ("git status *", "git -C * status", "cd *")):
            passed += [(text, line) for line in lines if await approves(line, repository, *listed)]
    assert passed == []


async def test_a_hook_that_git_runs_when_it_looks_counts(repository: Path) -> None:
    """`git status` writes its index, and then runs `post-index-change`; other hooks wait for other commands."""
    (repository / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    assert await approves("git status", repository)
    (repository / ".git/hooks/post-index-change").write_text("#!/bin/sh\n")
    assert not await approves("git status", repository)


def test_what_git_itself_runs_is_not_called_harmless(repository: Path) -> None:
    """Tried with the real git, in a repository of its own: every file that leaves a trace was found."""
    trace, program = repository / "trace", repository / "x"
    program.write_text(f"#!/bin/sh\necho ran >> {trace}\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    (repository / "file").write_text("1\n")
    env = clean_environ(repository)
    ran = []
    for text in RUNNING:
        (repository / ".git/config").write_text(f"{ORDINARY}{text}\n".replace("./x", str(program)))
        for words in (["status"], ["diff"], ["log", "-p"]):
            subprocess.run(["git", *words], cwd=repository, env=env, capture_output=True, check=False)
        if trace.exists():
            ran.append(text)
            trace.unlink()
            assert runs_something(str(repository))
    assert ran


def test_settings_by_name() -> None:
    """Any subsection, small letters or capitals; a value counts for addresses."""
    harmless = (
        ("core.fileMode", "x"),
        ("branch.a.b.merge", "x"),
        ("remote.o.url", "https://x/y"),
    )
    others = (
        ("core.fsmonitor", "x"),
        ("remote.o.url", "ext::x"),
        ("remote.o.vcs", "x"),
        ("diff.x.command", "x"),
        ("x", "y"),
    )

    assert [name for name, value in harmless if not is_harmless_setting(name, value)] == []
    assert [name for name, value in others if is_harmless_setting(name, value)] == []
