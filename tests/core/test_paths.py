"""Paths as texts."""

import subprocess
import sys

import pytest

from hookline.core.paths import absolute, inside, inside_any


@pytest.mark.parametrize("path, whole", [
    ("a/b", "/srv/a/b"), ("./a//b/", "/srv/a/b"), ("../a", "/a"), ("../../..", "/"), ("/x/../y", "/y"),
    ("~", "/home/me"), ("~/a", "/home/me/a"), ("~you/a", "/srv/~you/a"), ("", "/srv"),
])  # fmt: skip
def test_a_path_from_the_root(path: str, whole: str) -> None:
    """`~`, `.`, `..` and doubled slashes are resolved; somebody else's home is left to others."""
    assert absolute(path, "/srv", "/home/me") == whole


@pytest.mark.parametrize("path, folder, lies", [
    ("/a", "/a", True), ("/a/b", "/a", True), ("/a/b", "/a/", True), ("/ab", "/a", False), ("/", "/a", False),
    ("/a", "/", True), ("/", "/", True),
])  # fmt: skip
def test_a_path_inside_a_folder(path: str, folder: str, *, lies: bool) -> None:
    """The folder itself counts; a name that only begins alike does not."""
    assert inside(path, folder) is lies
    assert inside_any(path, ["/nowhere", folder]) is lies


def test_a_confined_line_starts_fast() -> None:
    """The module imports nothing: it is loaded by every confined line."""
    script = (
        "import sys; before = set(sys.modules); import hookline.core.paths; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": "src"})  # fmt: skip

    assert done.stdout == "['hookline', 'hookline.core', 'hookline.core.paths']\n"
