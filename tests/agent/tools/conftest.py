"""What the tools' tests share: a session in a throw-away project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hookline.agent.tools import SessionState, ToolEnv


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[ToolEnv]:
    """A session whose project is an empty folder; its background jobs end with the test."""
    state = SessionState(str(tmp_path.resolve()))
    yield ToolEnv(state, session_id="s1")
    await state.jobs.aclose()
