"""README as people meet it: in a clone, and on a package index."""

import importlib.util
import re
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hookline.guards import sandboxing
from tests.environ import clean_environ
from tests.pages import blocks, steady
from tools import picture

ROOT = Path(__file__).parents[1]
JOBS = {
    "guard-claude-code": "hookline init", "log-everything": "hookline install claude --audit",
    "migrate-from-claude-code": "hookline check", "write-a-hook": "python -m pytest",
    "ask-before-push": "python agent.py", "replay": "hookline replay --since 7d",
    "share-with-your-team": "hookline install claude",
}  # fmt: skip
"""What people come for: the page, and the command that it begins with; tests/test_docs.py runs each page."""


def build_hook() -> Any:
    pytest.importorskip("hatchling", reason="needs the build backend")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_links_to_a_guessed_repository() -> None:
    """There is no public address yet: nothing names one."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py"), ROOT / "pyproject.toml"]

    assert [str(page) for page in pages if "github.com/hookline" in page.read_text()] == []


def test_links_are_made_absolute_from_one_variable() -> None:
    """Each relative link, and nothing else."""
    readme = (ROOT / "README.md").read_text()
    made = build_hook().with_absolute_links(readme, "https://example.org/hookline/")

    assert build_hook().with_absolute_links(readme, "") == readme
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", made) == []
    assert "](https://example.org/hookline/docs/tutorial.md)" in made


def test_each_of_the_seven_jobs_begins_with_its_command() -> None:
    """No page explains before it says what to type; files that the command needs may come first."""
    for page, command in JOBS.items():
        found = [block for block in blocks((ROOT / f"docs/how-to/{page}.md").read_text()) if block.language == "sh"]
        before = (ROOT / f"docs/how-to/{page}.md").read_text().partition("```sh")[0]
        prose = re.sub(r"```\w*\n.*?```|<!--.*?-->|^#.*$", "", before, flags=re.DOTALL | re.MULTILINE).strip()
        assert command in found[0].text, page
        assert prose == "", page


def test_readmes_picture_is_what_the_commands_print() -> None:
    """`python -m tools.picture` makes it; but for times, it shows what is printed today."""
    if sandboxing.unavailable():
        pytest.skip("drawn where lines are confined")
    spans = re.compile(r"<tspan[^>]*>([^<]*)</tspan>")
    shown = [
        steady("".join(spans.findall(line))) for line in picture.PICTURE.read_text().splitlines() if "<text" in line
    ]
    drawn = picture.drawn(picture.recorded()).splitlines()

    assert shown == [steady("".join(spans.findall(line))) for line in drawn if "<text" in line]


def installed_bare(folder: Path) -> dict[str, str]:
    """A fresh environment that has what `pip install WHEEL` brings: the wheel itself, and msgspec."""
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="needs the build backend")
    import msgspec

    venv.create(folder / "env", with_pip=False)
    [packages] = (folder / "env").glob("lib/python*/site-packages")
    [built] = wheel.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    zipfile.ZipFile(built).extractall(packages)
    shutil.copytree(Path(msgspec.__file__).parent, packages / "msgspec")
    script = folder / "env" / "bin" / "hookline"
    script.write_text(f"#!{folder}/env/bin/python\nfrom hookline.__main__ import main\n\nmain()\n")
    script.chmod(0o755)
    return clean_environ(folder, PATH=f"{folder}/env/bin:/usr/bin:/bin", NO_COLOR="1", LANG="C.UTF-8", COLUMNS="120")


def test_every_line_of_readme_runs_after_a_bare_install(tmp_path: Path) -> None:
    """In order, in one folder, with nothing but the wheel and msgspec."""
    env = installed_bare(tmp_path)
    (folder := tmp_path / "project").mkdir()
    python = ""
    for block in blocks((ROOT / "README.md").read_text()):
        if "skip" in block.comments or not block.runs:
            continue
        if "file" in block.comments:
            (folder / block.comments["file"]).write_text(block.text)
            continue
        if block.language == "python":
            python += block.text
        argv = ["python", "-c", python] if block.language == "python" else ["bash", "-e", "-c", block.text]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == int(block.comments.get("run", "").removeprefix("exit ") or 0), done.stderr

    for line in ("hookline init --pack git python secrets", "hookline packs", "hookline demo"):
        done = subprocess.run(line.split(), cwd=folder / "..", env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, line + done.stderr
