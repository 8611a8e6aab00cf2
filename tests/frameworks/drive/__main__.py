"""Play on a real framework and print what happened, a line each: `python tests/frameworks/drive MODULE|PAGE.md …`.

A framework takes seconds to import: it is imported once, and each module or page is played in a fork of its own.
"""

import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[3])  # `tests.…` in an environment that has no pytest


def ready_to_play(name: str) -> Callable[[], Any]:
    """Import what a module or page needs; the playing is left to the fork."""
    if name.endswith(".md"):
        from tests.frameworks.drive.page import ReadPage

        return ReadPage(Path(name)).play
    from tests.frameworks.drive.scenarios import SCENARIOS, play

    module = importlib.import_module(f"tests.frameworks.drive.{name}")
    cases = getattr(module, "CASES", None) or {name: partial(play, module.run, one) for name, one in SCENARIOS.items()}
    return lambda: {name: case() for name, case in cases.items()}


for name in sys.argv[1:]:
    gc.disable()  # what is imported stays: nothing to collect
    play = ready_to_play(name)
    gc.freeze()
    gc.enable()
    sys.stdout.flush()
    child = os.fork() if len(sys.argv) > 2 else 0  # one alone needs none, nor a system that has it
    if child == 0:
        facts = play()
        print(f"\nFACTS {name} {json.dumps(facts)}")
        break  # and end as any process does
    os.waitpid(child, 0)
