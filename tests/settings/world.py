"""A project, a home and a plugin in folders of their own."""

import json
from pathlib import Path
from typing import Any

import msgspec

from hookline.settings import LoadedSettings, Trust, load


class World(msgspec.Struct, frozen=True):
    """Real folders; `write` puts JSON or text into a file under them."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "proj"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def managed(self) -> Path:
        return self.base / "etc" / "managed-settings.json"

    @property
    def trust(self) -> Trust:
        return Trust.load(home=self.home)

    def write(self, path: str, value: Any) -> Path:
        file = self.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    def load(self, **options: Any) -> LoadedSettings:
        return load(self.project, home=self.home, managed=self.managed, **options)


def run(command: str, event: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    """Settings with one command hook."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command, **more}]}]}}
