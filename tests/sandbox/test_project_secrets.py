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
