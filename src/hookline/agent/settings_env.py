"""The variables that settings state, in the process's environment while a run lasts: SDKs and TLS look there."""

from __future__ import annotations

import os
from collections.abc import Mapping


class SettingsEnv:
    """What settings have put into the environment, and what was there before."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def apply(self, variables: Mapping[str, str]) -> None:
        """Put these in."""
        for name in variables:
            self._before.setdefault(name, os.environ.get(name))
        os.environ.update(variables)

    def restore(self) -> None:
        """The run is over: the environment is as it was."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()
