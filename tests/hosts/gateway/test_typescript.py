"""The page for agents in other languages: its files run on Node, through the gateway and the resident service."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

PAGE = (ROOT / "docs/how-to/typescript.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))
PRINTS = dict(re.findall(r"<!-- node: (\S+) -->\n```text\n(.*?)```", PAGE, re.DOTALL))
NODE_MODULES = ROOT / ".cache/node/node_modules"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.skipif(not NODE_MODULES.is_dir(), reason="needs the packages of `make node_modules`")
@pytest.mark.parametrize("name", sorted(PRINTS))
def test_the_pages_program_runs_and_prints_what_it_says(name: str, tmp_path: Path) -> None:
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["node", name], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == PRINTS[name], done.stderr
