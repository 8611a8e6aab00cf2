"""Start-up: `hookline fire` as a whole process, since that is what every `hookline …` command hook costs."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Measured, Row, at_most, interleave

SETTINGS = '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}}'
FIRE = ("fire", "PreToolUse", "--tool", "Bash", "--input", '{"command": "ls -la"}', "--trust")
PYTHON = (sys.executable, "-c")


def rows() -> Iterator[Row]:
    unit = "× python -c 'import msgspec'"
    yield Row("startup.fire", "`hookline fire` as a whole process, one `true` hook", at_most(3, unit), fire)


async def fire() -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / ".claude").mkdir()
        (place / ".claude" / "settings.json").write_text(SETTINGS)
        env = {**os.environ, "HOME": folder}

        def process(*argv: str) -> None:
            subprocess.run(argv, cwd=place, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        times = await interleave(
            {
                "fire": lambda: process(sys.executable, "-m", "hookline.cli.main", *FIRE),
                "msgspec": lambda: process(*PYTHON, "import msgspec"),
                "asyncio": lambda: process(*PYTHON, "import asyncio, msgspec"),
            },
            rounds=21,
            batch_seconds=0.001,
        )
    peers = {"msgspec and asyncio alone": times.ratio("asyncio", "msgspec")}
    return Measured(times.ratio("fire", "msgspec"), peers, f"{times.seconds('fire') * 1e3:.0f} ms")
