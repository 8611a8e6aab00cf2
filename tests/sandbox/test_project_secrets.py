"""Secrets in a folder that the line may write to: every file is opened by the supervisor, which knows them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox import arena

pytestmark = pytest.mark.skipif(bool(arena.possible()), reason=arena.possible() or "lines can be tried")

CANARY = "CANARY-8"
SETUP = f"""
git init -q .; mkdir -p app/deep certs tests; echo 'TOKEN={CANARY}' | tee .env app/deep/.env.local > /dev/null
printf -- '-----BEGIN PRIVATE KEY-----\\n{CANARY}\\n' | tee certs/server.key certs/all.pem tests/test.key > /dev/null
echo public > certs/ca.pem; echo sample > .env.example
"""
READS = (
    "cat .env", "cat app/deep/.env.local certs/server.key certs/all.pem", "ln .env e; cat e",
    "mv .env e; cat e; mv e .env", "ln -s .env e; cat e", "cat /proc/self/cwd/.env", "cd app && cat ../.env",
    "python3 -c 'print(open(\".env\", \"r+\").read())'", "exec 3< .env; cat <&3", "source .env; echo $TOKEN",
    "cp .env c; cat c", "grep -r TOKEN .", "tar c . | grep -a TOKEN", "git add -A; git diff --cached",
    "python3 -c 'import os; d = os.open(\".\", 0); print(os.read(os.open(\".env\", 0, dir_fd=d), 99))'",
    "sed -i s/a/b/ .env; cat .env",
    "python3 -c 'import os, mmap; print(mmap.mmap(os.open(\".env\", 0), 5, prot=1)[:])'", "perl -pe '' .env",
    "node -e 'console.log(require(\"fs\").readFileSync(\".env\", \"utf8\"))'", "bash .env; bash -x .env",
    "exec < .env; cat", "dd if=.env", "od -c .env; base64 .env", "ln .env app/deep/x; cat app/deep/x",
)  # fmt: skip


def outputs(lines: list[str], **policy: Any) -> list[dict[str, Any]]:
    job = {"setup": SETUP, "prefix": arena.confined(by=arena.CREW, **policy), "only_files": True}
    return list(arena.tried({"line": line, **job} for line in lines))


def test_no_way_to_read_a_file_reads_a_secret_of_the_project() -> None:
    """By whichever program, name, link or descriptor; its name says nothing, the file itself does."""
    results = outputs([*READS])

    assert [line for line, each in zip(READS, results, strict=True) if CANARY in each["output"]] == []
    assert "refused to read `/tmp/arena/home/project/.env`: it holds secrets" in results[0]["output"]
    assert "to allow it, add `--show /tmp/arena/home/project/.env`" in results[0]["output"]


def test_everything_else_is_read_written_and_waited_for() -> None:
    """Files that the line makes itself, pipes, devices, programs that read many files."""
    line = """
        cat certs/ca.pem .env.example tests/test.key | wc -l; echo A=1 >> .env; echo new > made && cat made
        echo B=2 > .env.mine; cat .env.mine
        mkfifo p; (cat p & echo piped > p; wait); (echo late > p & cat < p; wait)
        python3 -c 'import json, ssl; print("python")'
        head -c 3 /dev/zero | wc -c; cat < /dev/null; cat <<< here; cat <(echo there)
        git status --short | wc -l; ls > l && wc -l < l; (exec 3<> both; echo 1 >&3)
        rm .env; echo C=3 > .env; cat .env; cat no-such-file || echo $?
        ls no-such-folder || echo $?; cat app || echo $?
    """
    [result] = outputs([line])

    said = [each for each in result["output"].splitlines() if ": " not in each]
    assert said == ["4", "new", "B=2", "piped", "late", "python", "3", "here", "there", "9", "8", "C=3", "1", "2", "1"]


def test_a_project_secret_can_be_shown() -> None:
    [shown] = outputs(["cat .env"], extra=["--show", f"{arena.PROJECT}/.env"])

    assert CANARY in shown["output"]


OVERLAY = f"""
{SETUP}
mkdir -p /dev/shm/o/up /dev/shm/o/work .git/hooks; rm -rf /dev/shm/o/low; cp -a .. /dev/shm/o/low
mount -t overlay -o lowerdir=/dev/shm/o/low,upperdir=/dev/shm/o/up,workdir=/dev/shm/o/work,userxattr none ..
"""
"""The home folder as in a container whose image holds the project: what is changed is made again above it."""


def test_in_a_container_what_is_changed_first_is_neither_read_nor_the_line_s_own() -> None:
    """Overlayfs gives an old file or folder a new time of birth, and a linked file a new number."""
    reads = ["chmod 600 .env; cat .env", "echo A=1 >> .env; cat .env", "ln .env e; cat e", "mv .env e; ln e f; cat f"]
    leaves = "touch x .git/x app/x; for f in .git/hooks/x .mcp.json app/.envrc; do echo > $f; done; cat $f .mcp.json"
    works = "mkdir -p n/.vscode && echo made > n/.vscode/x && cat n/.vscode/x && git init -q r && ls -d r/.git/hooks"
    job = {"setup": OVERLAY, "prefix": arena.confined(by=arena.CREW)}
    lines = ["stat -f -c %T .", *reads, leaves, works]
    kind, *said, left, made = [each["output"] for each in arena.tried({"line": line, **job} for line in lines)]

    if kind != "overlayfs\n":
        pytest.skip("overlayfs cannot be mounted here")
    assert [line for line, output in zip(reads, said, strict=True) if CANARY in output] == []
    assert left.count("refused to write") == 3
    assert made == "made\nr/.git/hooks\n"
