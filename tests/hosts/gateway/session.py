"""A client of the gateway that sends what it likes, line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.hosts.gateway.driver import HOOKS, SERVER


class Session:
    """The gateway as a process in front of the small server; `home` has its pins."""

    def __init__(
        self,
        home: Path,
        *server: str,
        command: list[str] | None = None,
        hooks: Path = HOOKS,
        flags: Sequence[str] = (),
    ) -> None:
        words = ["mcp", "--name", "s", "--hooks", str(hooks), "--ask-seconds", "20", *flags, "--"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookline.cli.main", *words, *(command or [sys.executable, str(SERVER), *server])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home,
            env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")},
        )  # fmt: skip
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> tuple[int, str]:
        """End it; its exit code, and what it said on stderr."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.close()
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request."""
        self._last += 1
        self.send(id=self._last, method=method, params=params)
        return self.read()

    def initialize(self, **capabilities: Any) -> Any:
        client = {"name": "t", "version": "1"}
        answer = self.ask("initialize", protocolVersion="2025-06-18", capabilities=capabilities, clientInfo=client)
        self.send(method="notifications/initialized")
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool call."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def text(self, tool: str, **arguments: Any) -> str:
        """The texts of a tool call's result."""
        return "\n".join(part["text"] for part in self.call(tool, **arguments)["content"])
