"""What the demo's model says: some careless turns first, then the repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookline.agent.models.scripted import Scripted

PROMPT = "Fix the tests."
OUTSIDE = "/etc/hookline.conf"
ERRAND = "Find where discounts are computed."


def model(project: Path, pause: float) -> Scripted:
    """The scripted model; `pause` is how long it thinks before each answer."""

    def turn(text: str | None = None, *tools: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        return {"text": text, "tools": list(tools), "delay": pause}

    def bash(command: str) -> dict[str, Any]:
        return turn(None, ("Bash", {"command": command}))

    def read(*names: str) -> dict[str, Any]:
        return turn(None, *(("Read", {"file_path": str(project / name)}) for name in names))

    def edit(name: str, old: str, new: str) -> dict[str, Any]:
        return turn(None, ("Edit", {"file_path": str(project / name), "old_string": old, "new_string": new}))

    errand = {"description": "look for discounts", "prompt": ERRAND, "subagent_type": "Explore"}
    return Scripted.of(
        bash("ls -la"),
        bash("python -m unittest"),
        turn(None, ("Write", {"file_path": OUTSIDE, "content": "debug = yes\n"})),
        bash("rm -rf /"),
        turn("All done."),
        read("shop/cart.py"),
        edit("shop/cart.py", "sum(prices[1:])", "sum(prices)"),
        turn("Fixed it."),
        turn(None, ("Agent", {**errand, "run_in_background": False})),
        read("shop/discount.py"),
        edit("shop/discount.py", "percent // 100", "(100 - percent) // 100"),
        turn("The tests pass now."),
        lanes={
            "errand": {
                "first": ERRAND,
                "turns": [
                    bash("sudo updatedb"),
                    turn(None, ("Grep", {"pattern": "def discounted", "path": str(project)})),
                    turn("They are computed in shop/discount.py."),
                ],
            }
        },
    )
