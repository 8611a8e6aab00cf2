"""What git's own configuration adds to a push: a remote may be set up so that every push to it is forced."""

from __future__ import annotations

import os
import select

from hookline.confine import signals

_GIT = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git")
_WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--config-env")
_KEPT = ("HOME", "XDG_CONFIG_HOME", "GIT_DIR")
_SECONDS = 5


def forces(cwd: str, words: list[str], variables: list[str]) -> bool:
    """Whether a `git … push …` is forced by the configuration that it will read; also where that cannot be told."""
    if "push" not in words or not any(os.path.exists(path) for path in _GIT):
        return False
    options = _places(words[: words.index("push")])
    found = _asked([*options, "config", "--get-regexp", r"^remote\..*\.(push|mirror)$"], cwd, variables)
    if found is None:
        return True
    values = [line.partition(" ") for line in found.splitlines()]
    return any(value.startswith("+") if key.endswith("push") else value == "true" for key, _, value in values)


def _places(words: list[str]) -> list[str]:
    """The options that say where the configuration is and what it says; no other one is handed on."""
    kept: list[str] = []
    for index, word in enumerate(words):
        if word in _WITH_VALUE:
            kept += words[index : index + 2]
        elif word.partition("=")[0] in _WITH_VALUE and "=" in word:
            kept.append(word)
    return kept


def _asked(words: list[str], cwd: str, variables: list[str]) -> str | None:
    """What git prints, or None if it takes too long; it only reads, with none of the caller's other variables."""
    program = next(path for path in _GIT if os.path.exists(path))
    pairs = [pair.partition("=") for pair in variables]
    environment = {name: value for name, _, value in pairs if name in _KEPT or name.startswith("GIT_CONFIG")}
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    child = os.posix_spawn(program, ["git", "-C", cwd, *words], environment, file_actions=actions)
    os.close(write)
    try:
        return _read(read)
    finally:
        os.close(read)
        signals.send(child, signals.KILL)
        os.waitpid(child, 0)


def _read(fd: int) -> str | None:
    data = b""
    while select.select([fd], [], [], _SECONDS)[0]:
        piece = os.read(fd, 65536)
        if not piece:
            return data.decode("utf-8", "replace")
        data += piece
    return None
