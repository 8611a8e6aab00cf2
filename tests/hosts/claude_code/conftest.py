"""What the tests with real CLIs share."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def api() -> Iterator[Any]:
    """The contract's scripted API on loopback; `api.main["turns"]` is what the model says."""
    served = importlib.import_module("tests.contract.api").Api([])
    yield served
    served.close()
