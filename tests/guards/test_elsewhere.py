"""Guards on a system whose kernel is another one: they judge by the text, and import nothing that is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

ELSEWHERE = """
import sys
from hookline.guards import sandboxing as confining
sys.platform = sys.argv[1]
for name in ("fcntl", "_ctypes", "_posixsubprocess", "hookline.sandbox.kernel"):
    sys.modules[name] = None  # an import of it fails
print(confining.unavailable())
"""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_why_lines_cannot_be_confined_is_said_without_the_kernel_s_interface(platform: str) -> None:
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, platform], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"confinement needs Linux; this is {platform}\n", "")
