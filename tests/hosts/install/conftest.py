"""A home of their own for the tests of installing."""

from pathlib import Path

import pytest

from hookline.hosts.install.survey import lab
from hookline.hosts.table import HOSTS

LAB = lab()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the machine's is read or written."""
    for host in HOSTS.values():
        if host.config.home_env:
            monkeypatch.delenv(host.config.home_env, raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOSTLAB", str(LAB))
    return tmp_path
