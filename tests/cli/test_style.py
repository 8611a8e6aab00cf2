"""Colour and width: as the terminal is, and as people ask."""

from __future__ import annotations

import io

import pytest

from hookline.cli.style import colours, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


COLOURS = [
    ({}, Terminal(), True),
    ({}, io.StringIO(), False),
    ({"NO_COLOR": "1"}, Terminal(), False),
    ({"NO_COLOR": ""}, Terminal(), True),
    ({"FORCE_COLOR": "1"}, io.StringIO(), True),
    ({"FORCE_COLOR": "0"}, io.StringIO(), False),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, Terminal(), False),
    ({"TERM": "dumb"}, Terminal(), False),
]


@pytest.mark.parametrize("env, stream, expected", COLOURS)
def test_colour(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], stream: io.StringIO, expected: bool) -> None:
    """NO_COLOR wins over FORCE_COLOR, and both over what the stream is."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert colours(stream) is expected


@pytest.mark.parametrize("columns, expected", [("40", 60), ("100", 100), ("500", 160)])
def test_width_follows_the_terminal_within_reason(monkeypatch: pytest.MonkeyPatch, columns: str, expected: int) -> None:
    """Neither a column of words nor lines nobody can read."""
    monkeypatch.setenv("COLUMNS", columns)

    assert width(Terminal()) == expected


def test_a_pipe_has_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what a script reads does not depend on where it runs."""
    monkeypatch.setenv("COLUMNS", "120")

    assert width(io.StringIO()) == 80
