"""Run scenarios on a real framework and print what happened: `python tests/adapters/drive langchain_sync [deny …]`."""

import importlib
import json
import sys
from functools import partial
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])  # `tests.…` in an environment that has no pytest

from tests.adapters.drive.scenarios import SCENARIOS, play

framework, *chosen = sys.argv[1:]
module = importlib.import_module(f"tests.adapters.drive.{framework}")
cases = getattr(module, "CASES", None) or {name: partial(play, module.run, one) for name, one in SCENARIOS.items()}
facts = {name: case() for name, case in cases.items() if not chosen or name in chosen}
print("FACTS " + json.dumps(facts))
