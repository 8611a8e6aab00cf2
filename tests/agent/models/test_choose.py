"""Which model a word means."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.agent.models import choose
from hookline.errors import ModelError

KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}


@pytest.mark.parametrize(
    "spec,name",
    [
        ("anthropic:claude-x", "claude-x"),
        ("anthropic:opus", "claude-opus-5-5"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("sonnet", "claude-sonnet-5-5"),
        ("", "claude-opus-5-5"),
        ("openai:gpt-x", "gpt-x"),
    ],
)
def test_a_word_names_a_model(spec: str, name: str) -> None:
    """Provider and name, or a bare Claude name, or nothing for the default."""
    assert choose(spec, KEYS).name == name


def test_a_script_is_a_model(tmp_path: Path) -> None:
    """`scripted:` takes a file of turns."""
    path = tmp_path / "turns.json"
    path.write_text(json.dumps([{"text": "hi"}]))

    assert choose(f"scripted:{path}", {}).name == "scripted"


@pytest.mark.parametrize(
    "spec,says",
    [
        ("claude-x", "set `ANTHROPIC_API_KEY`"),
        ("openai:gpt-x", "set `OPENAI_API_KEY`"),
        ("scripted:", "write `scripted:turns.json`"),
        ("scripted:/nowhere.json", "cannot read script `/nowhere.json`"),
        ("gpt-x", "unknown model `gpt-x`; write `scripted:turns.json`, `anthropic:MODEL` or `openai:MODEL`"),
    ],
)
def test_what_is_missing_is_said(spec: str, says: str) -> None:
    """An error tells what to set or write."""
    with pytest.raises(ModelError) as caught:
        choose(spec, {})

    assert says in str(caught.value)


def test_a_local_server_needs_no_key() -> None:
    """`OPENAI_BASE_URL` alone is enough: such servers take any key."""
    assert choose("openai:local", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).name == "local"


def test_choosing_imports_no_sdk() -> None:
    """Start-up does not pay for an SDK before the first request."""
    code = (
        "import sys; from hookline.agent.models import choose; choose('claude-x', {'ANTHROPIC_API_KEY': 'k'});"
        "print([name for name in ('anthropic', 'openai', 'mcp', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"
