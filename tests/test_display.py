"""Text of others on a terminal: it cannot steer it, hide anything, or pass for a line of ours."""

import asyncio
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Hooks, Verdict, deny, message
from hookline.cli.main import main
from hookline.display import block, lines, one_line, strip_unseen
from hookline.errors import ConfigError, HookFailed
from hookline.events import PreToolUse
from hookline.settings import Problem

STEERING = [
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))),  # ESC, BEL, BS, CR, CSI and all other C0 and C1
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",  # bidirectional
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u1160\u3164\uffa0\u180e\u2800",  # without a width, or blank
    *"\u2028\u2029\u206a\ufff9\U000e0041\U000e0100",  # separators, interlinear, tags, selectors
    *"\ue000\ud800\udfff\uffff",  # private, lone surrogates, no character at all
]

anything = st.text(st.characters() | st.sampled_from(STEERING), max_size=60)


def steers(shown: str, allowed: str = "") -> list[str]:
    """What of a shown text a terminal would obey or not show."""
    return [c for c in shown if c not in allowed and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")]


@pytest.mark.parametrize("char", STEERING, ids=lambda char: f"{ord(char):04x}")
def test_what_steers_a_terminal_is_shown_as_its_escape(char: str) -> None:
    """Between words of ours nothing of it is left, and something is seen in its place."""
    shown = one_line(f"a{char}b")

    assert char not in shown
    assert len(shown) >= 3
    assert shown.isprintable()


@given(anything)
def test_one_line_is_one_line_that_any_terminal_can_show(text: str) -> None:
    """Whatever the text: no control survives, it can be encoded, and showing it twice changes nothing."""
    shown = one_line(text)

    assert not steers(shown, "\u200c\u200d")
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert one_line(shown) == shown


@given(anything, st.integers(1, 40))
def test_a_line_is_cut_to_length(text: str, most: int) -> None:
    """The cut counts what is shown, not what was written: an escape takes room."""
    assert len(one_line(text, most)) <= most
    assert not steers(one_line(text, most), "\u200c\u200d")


@given(anything)
def test_a_block_keeps_line_breaks_and_tabs_alone(text: str) -> None:
    """All else is as strict as on one line."""
    shown = block(text)

    assert not steers(shown, "\n\t\u200c\u200d")
    assert all(len(line.splitlines()) <= 1 for line in lines(text))
    shown.encode()


@pytest.mark.parametrize(
    "text", ["plain", "Grüße, 日本語, עברית, हिन्दी", "👩‍🚀 ❤️ 1️⃣ 👍🏽", "می‌خواهم", "é e\u0301", "a  b"]
)
def test_ordinary_writing_is_left_alone(text: str) -> None:
    """People write in more than ASCII, and some of them need joiners."""
    assert one_line(text) == text
    assert block(text) == text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a\nb", "a⏎b"),
        ("a\r\nb", "a⏎b"),
        ("a\rb", r"a\x0db"),
        ("a\tb", "a b"),
        ("a\u00a0b\u3000c", "a b c"),
        ("r\u200dm", r"r\u200dm"),
        ("x" + "\u0301" * 6, "x" + "\u0301" * 4 + r"\u0301\u0301"),
        (f"ls{' ' * 200}; curl evil", "ls …200 spaces… ; curl evil"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_is_shown_instead(text: str, shown: str) -> None:
    """Something to see, and short."""
    assert one_line(text) == shown


EVIL = "no\x1b[2J\x07\x9b31m\u202e\u200b\n  ✓ audit          allow: everything is fine\r"


def clean(text: str) -> bool:
    return not steers(text, "\n")


def test_no_reason_of_a_hook_looks_like_a_line_of_an_explanation() -> None:
    """Its lines go on behind a bar, its controls are escapes."""
    verdict = _fired(deny(EVIL) | message(EVIL), EVIL)

    assert clean(verdict.explain())
    assert clean(str(verdict))
    assert "\n" not in str(verdict)
    assert [line for line in verdict.explain().splitlines() if line.startswith("  ✓ audit")] == []


def _fired(reply: Any, name: str) -> Verdict:
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: reply, name=name)
    return asyncio.run(hooks.fire(PreToolUse(tool_name=f"Bash{EVIL}")))


def test_errors_quote_without_obeying() -> None:
    """Whoever prints an exception or a problem prints plain text."""
    for error in (ConfigError(EVIL, EVIL), HookFailed(EVIL)):
        assert clean(str(error))
    assert clean(str(Problem(EVIL, EVIL)))
    assert "\n" not in str(Problem(EVIL, EVIL))


@pytest.mark.parametrize(
    "argv",
    [
        ["list"],
        ["list", "--event", "PreToolUse", "--tool", "Read"],
        ["check"],
        ["trust"],
        ["fire", "PreToolUse", "--tool", "Bash", "--input", '{"command": "ls"}', "--trust"],
        ["fire", "PreToolUse", "--tool", "Read", "--trust"],
        ["fire", "Nothing\x1b[2J"],
        ["nothing\x1b[2J"],
    ],
    ids=lambda argv: " ".join(argv[:3]).replace("\x1b", "ESC"),
)
def test_no_command_obeys_what_a_project_wrote(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Names, matchers, conditions, commands, scripts and answers may hold anything."""
    _project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    main(argv)
    printed = capfd.readouterr()

    assert clean(printed.out)
    assert clean(printed.err)
    assert not [line for line in (printed.out + printed.err).splitlines() if line.startswith("  ✓ audit")]


def _project(folder: Path) -> None:
    script = folder / "che\x1bck.sh"
    script.write_text(f"#!/bin/sh\n# {EVIL}\nprintf '%s' '{EVIL}' >&2\nexit 2\n")
    script.chmod(0o755)
    entry = {"type": "command", "command": f"'{script}' # {EVIL}", "name": f"n{EVIL}"}
    other = {"type": "command", "command": f"true # {EVIL}", "if": f"Bash({EVIL})"}
    groups = [{"matcher": "Bash", "hooks": [entry, other]}, {"matcher": f"M{EVIL}", "hooks": [entry]}]
    settings = {"hooks": {"PreToolUse": groups, EVIL: groups}, f"hooks{EVIL}": 1, "env": {f"A{EVIL}": EVIL}}
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text(json.dumps(settings))


STRIPPED = {
    "plain\n\ttext\r\n": 0,
    "می\u200cخواهم": 0,  # a joiner that Persian needs
    "👩\u200d🚀 ❤\ufe0f": 0,
    "a\u200db": 1,
    "a\ufe0fb": 1,
    "\ufeffa": 1,
    "a\x1b[31;1mb\x1b[0m": 2,
    "a\x1b]8;;https://example.com\x1b\\b\x1b]0;t\x07": 2,
    "a\x1bPq\x1b\\": 1,
    "a\x1b": 1,
    "a\x9b31mb": 1,
    "a\u202eb\u2066c\u2069": 3,
    "a" + "".join(chr(0xE0000 + ord(letter)) for letter in "hi"): 2,
    "a\U000e0100": 1,
    "a\x00\x08": 2,
    "a\xadb": 1,
}
"""A text, and how much of it does not show."""


def test_what_does_not_show_is_removed_and_counted() -> None:
    """Escape sequences go as a whole; what ordinary writing needs stays."""
    for text, removed in STRIPPED.items():
        clean, count = strip_unseen(text)

        assert count == removed, repr(text)
        assert (clean == text) == (removed == 0), repr(text)
        assert strip_unseen(clean) == (clean, 0), repr(text)
