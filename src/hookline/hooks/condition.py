"""PLACEHOLDER until the condition engineer's version lands: overwrite me."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """placeholder"""

    text: str

    def matches(self, tool_name: str, tool_input: Mapping[str, Any], *, cwd: str, project_dir: str, home: str) -> bool:
        return self.text.partition("(")[0] == tool_name


def parse_rule(text: str) -> Rule:
    return Rule(text)
