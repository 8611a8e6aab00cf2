"""Real projects build and test confined: what a line of each kind of work leaves behind is what it leaves bare."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.sandbox import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")

_WHEEL = """
import zipfile
with zipfile.ZipFile("greet-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("greet.py", "def hello(): return 'hi'")
    wheel.writestr("greet-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greet\\nVersion: 1.0\\n")
    wheel.writestr("greet-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("greet-1.0.dist-info/RECORD", "")
"""  # noqa: E501 - the format's own lines
PYTHON = f"""
mkdir bin && printf '#!/bin/sh\\nexit 1\\n' > bin/rustc && chmod +x bin/rustc && PATH=$PWD/bin:$PATH  # for pip
{sys.executable} -c {shlex.quote(_WHEEL)}
python3 -m venv .venv
.venv/bin/pip install -q --no-index --disable-pip-version-check greet-1.0-py3-none-any.whl
printf 'import greet\\n\\ndef test_it(tmp_path):\\n    (tmp_path / "x").write_text(greet.hello())\\n' > test_greet.py
PYTHONPATH=$(echo .venv/lib/python3*/site-packages) {sys.executable} -m pytest -q test_greet.py
"""
NODE = """
mkdir -p lib && printf '{"name": "lib", "version": "1.0.0", "main": "i.js"}' > lib/package.json
echo 'module.exports = 42' > lib/i.js
printf '{"name": "app", "version": "1.0.0",
  "scripts": {"test": "node t.js", "postinstall": "echo done > installed"}}' > package.json
npm install --offline --no-audit --no-fund --silent ./lib
npm install --offline --no-audit --no-fund --silent
echo 'require("assert").equal(require("lib"), 42)' > t.js
npm test --silent
grep -q done installed
"""
C = """
printf 'all: app\\napp: main.o util.o\\n\\tcc -o $@ $^\\ncheck: app\\n\\t./app\\n' > Makefile
printf 'install: app\\n\\tinstall -D app out/bin/app\\n' >> Makefile
printf 'int util(void);\\nint main(void) { return util() - 42; }\\n' > main.c
printf 'int util(void) { return 42; }\\n' > util.c
make -j2 all && make check && make install && out/bin/app
"""
GIT = """
mkdir r && cd r && git init -q .
printf '#!/bin/sh\\necho hooked >> hooked\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit
echo a > file && git add file && git commit -qm one
git switch -qc topic && echo b > other && git add other && git commit -qm two
git switch -q main && echo c > third && git add third && git commit -qm three
git switch -q topic && git rebase -q main && git commit -q --amend -m 'two, again'
git worktree add -q wt main && git -C wt log --oneline && git stash list && git gc -q
test "$(git log --format=%s)" = 'two, again
three
one'
"""
PROJECTS = {"python": PYTHON, "node": NODE, "c": C, "git": GIT}


@pytest.mark.parametrize("kind", PROJECTS)
def test_a_project_builds_and_tests_confined(kind: str) -> None:
    """It succeeds, nothing outside changes, and nothing is refused."""
    prefix = arena.confined(block=["rm -rf /", "rm -rf ~", "sudo *"])
    [result] = arena.tried([{"line": f"set -e{PROJECTS[kind]}", "prefix": prefix, "seconds": 120}])

    assert (result["code"], result["outside"]) == (0, []), result["output"]
    assert "refused" not in result["output"]
