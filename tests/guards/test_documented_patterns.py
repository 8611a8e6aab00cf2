"""Every pattern in README, docs, help and examples does what it says: in a real repository, as text and confined.

A pattern that is written anywhere without a row here fails `test_every_documented_pattern_has_a_row`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hookline import Hooks, deny
from hookline.core.hooks import Hook
from hookline.events import PermissionRequest, PreToolUse
from hookline.guards import approvals, commands
from hookline.replies import Decision
from hookline.sandbox.main import missing
from hookline.sandbox.policy import Policy
from tests.environ import clean_environ
from tests.pages import ROOT
from tests.sandbox.arena import HOOKLINE

ROWS = """
block: git push --force*
stops: git push --force origin main | git push origin main --force | git push origin main -f | git push -uf origin main
    | git push -u --force origin main | git push origin +main | git push origin +HEAD:main | git push -q origin -f
    | git -C . push origin main --force | bash -c 'git push -f origin main' | git push --mirror | git push --force
lets: git push origin topic | git push -u origin topic | git push origin main:other | git fetch --force | git status

block: rm -rf *
stops: rm -rf build | rm -r -f build | rm build -rf | rm --recursive --force build | rm -fR build | env A=1 rm -rf build
    | find build -maxdepth 0 -exec rm -rf {} +
lets: rm build/x | rm -r build | ls | touch new | git status

block: rm -rf ~
stops: rm -rf ~ | rm -r -f ~ | rm ~ -rf
lets: rm -rf build | ls

block: rm -rf /
never run: rm -rf / | rm -fr / | rm / -rf | rm -rf // | rm --recursive --force /
lets: rm -rf build | ls

block: sudo *
stops: sudo id | sudo -u root id | sudo -n true | env sudo id | bash -c 'sudo id'
lets: id | echo sudo | git log --grep sudo

block: curl *
stops: curl http://host/ | curl -s -o x http://host/ | true && curl x
lets: git status | echo curl

block: wget *
stops: wget http://host/ | wget -q -O x http://host/
lets: git status | echo wget

containing: rm -rf
stops: rm -rf build | rm  -rf build | rm '-rf' build
lets: rm -r build | ls

only: ls *
stops: rm -rf build | touch new | ls; touch new | ls > new | touch $(ls)x
lets: ls | ls -la | ls build

only: git status
stops: git push origin topic | git checkout -q topic | git status; touch new
lets: git status

only: pytest *
stops: touch new | pytest -q || touch new
lets: pytest -q | pytest

auto: ls *
stops: rm -rf build | ls; touch new | ls > new
lets: ls -la | ls build

auto: git status
stops: git push origin topic | git status; touch new
lets: git status

auto: git status *
stops: git push origin topic | git status -s; touch new | git status > new
lets: git status | git status -s

auto: git diff *
stops: git push origin topic | git diff --output=new | git diff > new
lets: git diff | git diff HEAD --stat

rule: git *
stops: git push origin topic | git checkout -q topic | true && git push origin topic
lets: ls | echo git

rule: git push *
stops: git push origin topic | git push -q origin topic | true; git push origin topic
lets: git status | echo git push

rule: git push:*
stops: git push origin topic | git push -q origin topic
lets: git status

rule: npm test:*
stops: npm test | npm test -- -q
lets: npm install | git status

rule: python -m unittest *
stops: python -m unittest | python -m unittest -q
lets: ls

rule: rm *
stops: rm build/x | rm -rf build | true && rm build/x
lets: ls

rule: sudo *
stops: sudo id | true; sudo id
lets: id
"""

PATTERNS_OF_FILES = {"Read(src/**)"}
"""Patterns about files; `tests/guards/test_approvals.py` has them."""
MADE_BY_PROGRAM = re.compile(r".*\{.*\}.*|Tool|make && .*")
"""What looks like a pattern and is not one: a field that a program fills in, a command after `--`."""
SAME = {"allow": "auto"}


class Row(NamedTuple):
    """A pattern, where it is used, the lines it stops (as text only, if `unrun`) and those it lets through."""

    kind: str
    pattern: str
    stops: list[str]
    lets: list[str]
    unrun: bool


def rows() -> Iterator[Row]:
    for text in ROWS.strip().split("\n\n"):
        cells = re.findall(r"(?:^|\n)([a-z ]+): (.*?)(?=\n[a-z ]+: |$)", text, re.DOTALL)
        (kind, pattern), (how, stops), (_, lets) = cells
        split = [
            [line.strip() for line in re.split(r"\s\|\s(?!\|)", " ".join(each.split("\n")))] for each in (stops, lets)
        ]
        yield Row(kind, pattern.strip(), split[0], split[1], how == "never run")


# -- every documented pattern is here ----------------------------------------------------------------------------------

CALL = re.compile(r"(?<!network\.)\b(block|only|containing|auto)\(\s*\[([^\]]*)\]")
OPTION = re.compile(r"--(block|only|containing|allow)\b")
RULE = re.compile(r"Bash\(([^)\n{}]+)\)")


def documented(text: str) -> Iterator[tuple[str, str]]:
    """The patterns that a text shows: in calls of the guards, behind options, in rules."""
    for call in CALL.finditer(text):
        yield from ((call[1], one or other) for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", call[2]))
    for part in re.split(r"(?=--(?:block|only|containing|allow)\b)|\n", text):
        if option := OPTION.match(part or ""):
            yield from ((SAME.get(option[1], option[1]), quoted) for quoted in re.findall(r"'([^'\n]*)'", part))
    yield from (("rule", rule) for rule in RULE.findall(text))


def test_every_documented_pattern_has_a_row() -> None:
    """In README, docs, examples and whatever the code prints or says of itself."""
    known = {(row.kind, row.pattern) for row in rows()}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    pages += [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".json", ".md")]
    missing_rows = {
        (str(path.relative_to(ROOT)), kind, pattern)
        for path in pages
        for kind, pattern in documented(path.read_text())
        if (kind, pattern) not in known and pattern not in PATTERNS_OF_FILES and not MADE_BY_PROGRAM.fullmatch(pattern)
    }

    assert missing_rows == set()


def test_a_new_pattern_would_be_found() -> None:
    """Each way of writing one."""
    text = "commands.block(['a *', \"b\"])\n--block 'c' --only 'd *'\n\"--allow\", help=\"such as 'e'\"\nBash(f *)"

    assert set(documented(text)) == {
        ("block", "a *"), ("block", "b"), ("block", "c"), ("only", "d *"), ("auto", "e"), ("rule", "f *"),
    }  # fmt: skip


# -- what each of them does --------------------------------------------------------------------------------------------

STUB = '#!/bin/sh\necho "$0 $*" >> "$HOME/started"\n'


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose `main` has parted from the remote's, a branch `topic`, and programs that leave a mark."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "bin").mkdir()
    for name in ("sudo", "curl", "wget", "npm", "python", "pytest"):
        (folder / "bin" / name).write_text(STUB)
        (folder / "bin" / name).chmod(0o755)
    script = """
    git init -q --bare -b main remote.git && git clone -q remote.git repo 2>/dev/null && cd repo
    git config user.name x && git config user.email x@x && git config push.default simple && git checkout -q -b main
    mkdir build && echo a > build/x && echo a > a && git add . && git commit -qm one && git push -qu origin main
    echo b > a && git commit -qam two && git push -q && git commit -q --amend -m other
    git branch topic && echo c >> a && rm -rf .git/hooks && git remote set-url origin ../remote.git
    """
    run(folder, script, cwd=folder, check=True)
    return folder


def run(world: Path, line: str, *, cwd: Path, before: tuple[str, ...] = (), check: bool = False) -> int:
    """Run a line in real bash, with the folder as home."""
    path = f"{world}/bin:{os.environ['PATH']}"
    env = clean_environ(world, PATH=path, GIT_CONFIG_NOSYSTEM="1", LANG="C.UTF-8")
    argv = [*before, "bash", "-c", line]
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done.returncode


def state(world: Path) -> list[str]:
    """What a line can change: the remote's branches, what is checked out, the files, the programs that were started."""
    refs = [world / "remote.git" / "packed-refs", *(world / "remote.git" / "refs").rglob("*"), world / "repo/.git/HEAD"]
    marks = [f"{path} {path.read_text()}" for path in (*refs, world / "started") if path.is_file()]
    files = [str(path) for path in world.rglob("*") if not {".git", "remote.git"} & set(path.parts)]
    return sorted([*marks, *files])


class World:
    """A fresh copy of the template for each line."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template, self._folder, self._made = template, folder, 0
        self.tried = functools.cache(self._tried)

    def _tried(self, line: str, *before: str) -> tuple[bool, int]:
        """Whether a line changed anything, and how it ended; bare, some are in several rows."""
        self._made += 1
        world = self._folder / f"world{self._made}"
        shutil.copytree(self._template, world, symlinks=True)
        was = state(world)
        code = run(world, line, cwd=world / "repo", before=tuple(word.format(world=world) for word in before))
        return state(world) != was, code


def deny_all(_: PreToolUse) -> Any:
    return deny("no")


def ruled(pattern: str) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse, when=f"Bash({pattern})")(deny_all)
    return hooks


def guarded(hook: Hook | list[Hook]) -> Hooks:
    hooks = Hooks()
    hooks.add(hook)
    return hooks


MAKE: dict[str, Callable[[str], Hooks]] = {
    "block": lambda pattern: guarded(commands.block([pattern])),
    "only": lambda pattern: guarded(commands.only([pattern])),
    "containing": lambda text: guarded(commands.containing([text])),
    "auto": lambda pattern: guarded(approvals.auto([pattern], otherwise="block")),
    "rule": ruled,
}


async def decided(row: Row, line: str) -> Decision:
    kind = PermissionRequest if row.kind == "auto" else PreToolUse
    event = kind(cwd="/proj", tool_name="Bash", tool_input={"command": line})
    return (await MAKE[row.kind](row.pattern).fire(event)).decision


async def test_each_pattern_stops_what_it_says_and_lets_the_rest_through(template: Path, tmp_path: Path) -> None:
    """A line that is stopped has an effect when nothing stops it, and none under the guard, as text or confined."""
    worlds, wrong = World(template, tmp_path), []
    passes = {"auto": Decision.ALLOW}
    confined = not missing(Policy((str(tmp_path),), block=("x *",)))
    for row in rows():
        before = (*HOOKLINE, "--write", "{world}", "--block", row.pattern, "--")
        for line in row.stops:
            if await decided(row, line) is not Decision.DENY:
                wrong.append(f"{row.kind} `{row.pattern}` lets `{line}` through")
            if not row.unrun and not worlds.tried(line)[0]:
                wrong.append(f"`{line}` has no effect here, so stopping it proves nothing")
            if not row.unrun and row.kind == "block" and confined and worlds.tried(line, *before)[0]:
                wrong.append(f"{row.kind} `{row.pattern}` does not hold for `{line}`, confined")
        for line in row.lets:
            if await decided(row, line) is not passes.get(row.kind, Decision.PASS):
                wrong.append(f"{row.kind} `{row.pattern}` stops `{line}`")
            if row.kind == "block" and confined and worlds.tried(line, *before) != worlds.tried(line):
                wrong.append(f"{row.kind} `{row.pattern}` changes `{line}`, confined")

    assert wrong == []
