"""`tools.corpora` reads public collections from a checkout and from a git directory; none of their data is here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tools.corpora import data

PAGE = """\
---
functions:
  file-read:
  - code: |-
      x /path/to/input-file
    contexts: {sudo: null, unprivileged: {code: x -u /path/to/input-file}}
  bind-shell:
  - contexts: {sudo: {code: x -l}}
    connector: tcp-client
...
"""
PAYLOADS = [
    data.Payload("x", "file-read", "x /path/to/input-file"),
    data.Payload("x", "file-read", "x -u /path/to/input-file"),
    data.Payload("x", "bind-shell", "x -l", waits=True),
]


def test_payloads_are_read_from_a_checkout_and_from_a_git_directory(tmp_path: Path) -> None:
    """As a user without further rights runs them; what only waits is told from what connects."""
    (tmp_path / "_gtfobins").mkdir()
    (tmp_path / "_gtfobins" / "x").write_text(PAGE)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)

    assert data.gtfobins(tmp_path) == PAYLOADS
    assert data.gtfobins(tmp_path / ".git") == PAYLOADS


def test_scripts_and_examples_are_read(tmp_path: Path) -> None:
    """Scripts with their kind; examples with their placeholders filled in, each once."""
    folder = tmp_path / "dataset/RedCode-Exec/bash2text_dataset_json"
    folder.mkdir(parents=True)
    (folder / "index7.json").write_text(json.dumps([{"Index": "7_1", "Code": "cat x"}]))
    for name in ("common", "linux"):
        (tmp_path / "pages" / name).mkdir(parents=True)
        (tmp_path / "pages" / name / "x.md").write_text(
            "# x\n\n- Do:\n\n`x {{[-f|--file]}} {{path/to/file}} {{...}}`\n"
        )

    assert data.redcode(tmp_path) == [(7, "cat x")]
    assert data.tldr(tmp_path) == ["x -f path/to/file x"]
