"""Protected branches: `git push` to them in all its spellings, and the pushes beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.guards import branches
from hookline.replies import Decision


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with `feature` checked out, and one below it with `main`."""
    for folder, branch in ((tmp_path, "feature"), (tmp_path / "sub", "main")):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git/HEAD").write_text(f"ref: refs/heads/{branch}\n")
    return tmp_path


async def judged(cwd: Path, given: dict[str, Any], tool: str = "Bash", **options: Any) -> Decision:
    """What the guard says."""
    hooks = Hooks()
    hooks.add(branches.protect(["main", "release/*"], **options))
    return (await hooks.fire(PreToolUse(cwd=str(cwd), tool_name=tool, tool_input=given))).decision


@pytest.mark.parametrize(
    "line",
    [
        "git push origin main",
        "git push origin main:main",
        "git push origin feature:main",
        "git push origin HEAD:main",
        "git push origin @:main",
        "git push origin HEAD~2:main",
        "git push origin HEAD:refs/heads/main",
        "git push origin feature:heads/main",
        "git push origin refs/heads/main",
        "git push origin +main",
        "git push origin +HEAD:main",
        "git push -f origin main",
        "git push --force origin feature main",
        "git push --force-with-lease origin main",
        "git push --force-with-lease=main:abc origin main",
        "git push -u origin main",
        "git push --set-up origin main",
        "git push -o ci.skip origin main",
        "git push --push-option ci.skip origin main",
        "git push origin :main",
        "git push origin --delete main",
        "git push -d origin main",
        "git push --del origin main",
        "git push --all",
        "git push --all origin",
        "git push --branches origin",
        "git push --mirror",
        "git push --mir origin",
        "git push origin :",
        "git push origin +:",
        "git push origin 'refs/heads/*:refs/heads/*'",
        "git push origin 'refs/*:refs/*'",
        "git push origin 'ma*'",
        "git push origin release/1.2",
        "git push https://h/x.git main",
        "git push git@h:x.git HEAD:main",
        "git push --repo=origin main",
        "git push -- origin main",
        "git --no-pager push origin main",
        "git -C sub push",
        "git -C sub push origin HEAD",
        "cd sub && git push",
        "cd sub && git push origin",
        "git checkout main && git push",
        "git switch main; git push",
        "cd sub && git checkout main -- && git push",
        "cd sub && git switch -- main && git push",
        "git checkout -t origin/main && git push",
        "cd sub && git checkout -- README.md && git push",
        "git branch -M main && git push",
        "git branch --move main; git push -u origin HEAD",
        "git symbolic-ref HEAD refs/heads/main && git push",
        "hub push origin main",
        "git push origin tag v1 main",
        "sudo git push origin main",
        "env A=1 git push origin main",
        "bash -c 'git push origin main'",
        "eval 'git push origin main'",
        "/usr/bin/git push origin main",
        '"git" pu""sh origin ma\\in',
        "b=main; git push origin $b",
        "ls && git push origin main &",
        "echo $(git push origin main)",
        "git send-pack origin main",
        "git subtree push --prefix x origin main",
    ],
)
async def test_a_push_to_a_protected_branch_is_denied(line: str, repository: Path) -> None:
    """Wherever the name of the branch stands, and when it stands nowhere."""
    assert await judged(repository, {"command": line}) is Decision.DENY


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push origin",
        "git push origin HEAD",
        "git push origin feature",
        "git push -u origin feature",
        "git push origin main:feature",
        "git push origin HEAD:refs/heads/feature",
        "git push origin refs/tags/main",
        "git push origin tag main",
        "git push --tags",
        "git push origin v1.0",
        "git push origin main-2",
        "git push origin feature/main",
        "git push origin ^main feature",
        "git push -o main origin feature",
        "git checkout -b x && git push -u origin x",
        "cd sub && git checkout -qb x && git push -u origin HEAD",
        "cd sub && git switch topic && git push",
        "git checkout README.md && git push",
        "git checkout -b x && git branch -vv && git push",
        "git branch -d main && git push",
        "git branch -m topic && git push",
        "git -C $x status",
        "git fetch origin main",
        "git pull origin main",
        "git checkout main",
        "git merge main",
        "git log main",
        "git stash push -m main",
        "git commit -m 'git push origin main'",
        "echo git push origin main",
        "git status",
        "ls",
    ],
)
async def test_other_pushes_pass(line: str, repository: Path) -> None:
    """Work goes on beside the protected branch."""
    assert await judged(repository, {"command": line}) is Decision.PASS


@pytest.mark.parametrize(
    "line",
    [
        "git push origin $branch",
        "git push origin $(cat branch)",
        "git push $x",
        "git $x origin main push",
        "git push --unknown origin x",
        "git -c alias.x=push x origin push",
        "git -c push.default=matching push",
        "$git push origin main",
        "cd sub && git checkout README.md && git push",
        "cd sub && git checkout -b x; git push -u origin HEAD",
        "git switch - && git push",
        "git checkout @{-1} && git push origin HEAD",
        "git worktree add ../other main && git -C ../other push",
        "cd ../other && git push",
        "git $x origin main",
    ],
)
async def test_what_cannot_be_told_is_asked_about_or_denied(line: str, repository: Path) -> None:
    """As the user chose."""
    assert await judged(repository, {"command": line}) is Decision.ASK
    assert await judged(repository, {"command": line}, undecided="deny") is Decision.DENY


@pytest.mark.parametrize(
    "tool,branch,expected",
    [
        ("mcp__github__push_files", "main", Decision.DENY),
        ("mcp__github__create_or_update_file", "refs/heads/main", Decision.DENY),
        ("mcp__github__push_files", "feature", Decision.PASS),
        ("mcp__github__list_commits", "feature", Decision.PASS),
    ],
)
async def test_mcp_tools_that_push_are_judged_by_their_branch(
    tool: str, branch: str, expected: Decision, tmp_path: Path
) -> None:
    """A push need not be a shell line."""
    assert await judged(tmp_path, {"branch": branch, "files": []}, tool) is expected


def test_bad_options_are_refused_at_once() -> None:
    """With what to write instead."""
    with pytest.raises(HookError, match="at least one branch"):
        branches.protect([])
    with pytest.raises(HookError, match="`ask` or `deny`"):
        branches.protect(undecided="maybe")  # type: ignore[arg-type]


def configured(folder: Path, text: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/feature\n")
    (folder / ".git/config").write_text(text)
    (folder / ".git/more").write_text("[alias]\n\tincluded = push origin main\n")
    return folder


CONFIGS = [
    ("[alias]\n\tpsh = push origin main\n", "git psh"),
    ("[alias]\n\tp = push\n", "git p origin HEAD:main"),
    ('[alias]\n\tship = "!git push origin HEAD:main"\n', "git ship"),
    ("[alias]\n\tshout = !f() { git push origin HEAD:main\\; }\\; f\n", "git shout"),
    ("[alias]\n\ta = b\n\tb = push origin main\n", "git a"),
    ("[ALIAS] Go = push origin main # home\n", "git go"),
    ("[push]\n\tdefault = matching\n", "git push"),
    ('[push]\n\tdefault = upstream\n[branch "feature"]\n\tmerge = refs/heads/main\n', "git push -f"),
    ('[remote "origin"]\n\tpush = refs/heads/feature:refs/heads/main\n', "git push -q"),
    ('[remote "origin"]\n\tpush = refs/heads/feature:refs/heads/main\n', "git push origin feature"),
    ('[remote "origin"]\n\tpush = +refs/heads/*:refs/heads/*\n', "git push origin"),
    ('[remote "up"]\n\tmirror = true\n', "git push up"),
    ('[remote "up"]\n\tpush = HEAD:main\n[remote]\n\tpushDefault = up\n', "git push -v"),
    ("[include]\n\tpath = more\n", "git included"),
]


@pytest.mark.parametrize("text,line", CONFIGS, ids=[line for _, line in CONFIGS])
async def test_what_the_repository_s_settings_make_of_a_push_is_known(text: str, line: str, tmp_path: Path) -> None:
    """Aliases, `push.default`, a remote's own refspecs, and files that are included."""
    folder = configured(tmp_path / "repo", text)
    hooks = Hooks()
    hooks.add(branches.protect(["main"]))
    verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": line}, cwd=str(folder)))

    assert verdict.decision is Decision.DENY


@pytest.mark.parametrize("text,line", [
    ("[alias]\n\tst = status -s\n", "git st"),
    ("[push]\n\tdefault = nothing\n", "git push"),
    ("[push]\n\tdefault = current\n", "git push"),
    ('[branch "feature"]\n\tmerge = refs/heads/main\n', "git push"),
    ('[remote "origin"]\n\tpush = refs/heads/feature:refs/heads/review\n', "git push"),
])  # fmt: skip
async def test_a_push_elsewhere_passes_with_these_settings(text: str, line: str, tmp_path: Path) -> None:
    """`push.default=simple`, git's own, pushes to the branch of the same name or to none."""
    folder = configured(tmp_path / "repo", text)
    hooks = Hooks()
    hooks.add(branches.protect(["main"]))
    verdict = await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": line}, cwd=str(folder)))

    assert verdict.decision is Decision.PASS


FORCED = """
git push --force | git push -f origin feature | git push origin feature -f | git push -uf origin feature
git push origin +x | git push origin +HEAD:refs/heads/x | git push --mirror | git push --force-with-lease
git push --force-with-lease=x:1 origin x | git push origin --delete x | git push origin :x | git push -d origin x
git push --prune origin 'refs/heads/*' | git -C sub push -f | cd sub && git push -f | bash -c 'git push -f' | git psh
git push mirrored | git push plus | git push plus feature | git send-pack --force origin x | git-push -f
env git push -fv | git subtree push --prefix x origin +main | sudo git push --force origin x
"""
UNFORCED = """
git push | git push -u origin feature | git push origin HEAD:main | git push --tags | git push --all | git push origin :
git commit -m 'git push --force' | git fetch --force | git push --no-force origin x | git push -n | git branch -f x
git branch -D x | git push -o fd origin x | git config --get push.default && git push
git config user.name x && git commit -m y | git remote -v && git push
"""
UNSURE = """
git push $x | git push origin $x | git -c remote.origin.push=+x push | git config remote.origin.push +x && git push
git remote add --mirror=push o u && git push o | git config alias.p "push -f"; git p origin x
git config set alias.p "push -f" && git p | git push --unknown | git push --forc
"""


def lines(table: str) -> list[str]:
    return [line.strip() for row in table.strip().splitlines() for line in row.split(" | ")]


async def test_a_push_by_force_is_denied_in_every_spelling(tmp_path: Path) -> None:
    """By an option, a `+`, an alias, a setting; other pushes pass, and what cannot be told is asked about."""
    folder = configured(
        tmp_path / "repo",
        '[alias]\n\tpsh = push -f\n[remote "mirrored"]\n\tmirror = true\n'
        '[remote "plus"]\n\tpush = +refs/heads/*:refs/heads/*\n',
    )
    expected = {FORCED: Decision.DENY, UNFORCED: Decision.PASS, UNSURE: Decision.ASK}
    hooks = Hooks()
    hooks.add(branches.no_force_push())
    found = {
        line: (await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": line}, cwd=str(folder)))).decision
        for table in expected
        for line in lines(table)
    }

    assert found == {line: decision for table, decision in expected.items() for line in lines(table)}


async def test_a_lease_and_the_removal_of_branches_are_choices(tmp_path: Path) -> None:
    """Each lets its own form through, and nothing else."""
    folder = configured(tmp_path / "repo", "")
    by_choice = {
        "git push --force-with-lease origin x": branches.no_force_push(with_lease=True),
        "git push --force-with-lease=x:1": branches.no_force_push(with_lease=True),
        "git push origin --delete x": branches.no_force_push(delete=True),
        "git push origin :x": branches.no_force_push(delete=True),
    }
    for line, guard in by_choice.items():
        event = PreToolUse(tool_name="Bash", tool_input={"command": line}, cwd=str(folder))
        forced = PreToolUse(tool_name="Bash", tool_input={"command": f"{line} -f"}, cwd=str(folder))
        hooks = Hooks()
        hooks.add(guard)

        assert ((await hooks.fire(event)).decision, (await hooks.fire(forced)).decision) == (
            Decision.PASS,
            Decision.DENY,
        ), line


async def test_an_mcp_tool_that_forces_is_denied(tmp_path: Path) -> None:
    """`force: true` is what `--force` is."""
    hooks = Hooks()
    hooks.add(branches.no_force_push())
    decided = [
        (await hooks.fire(PreToolUse(tool_name="mcp__github__update_ref", tool_input=given, cwd="/"))).decision
        for given in (
            {"ref": "x", "force": True},
            {"ref": "x", "force": "true"},
            {"ref": "x", "force": False},
            {"ref": "x"},
        )
    ]

    assert decided == [Decision.DENY, Decision.DENY, Decision.PASS, Decision.PASS]
