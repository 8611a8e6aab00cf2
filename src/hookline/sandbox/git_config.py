"""What git's own configuration adds to a push: a remote may be set up so that every push to it is forced."""

import os

from hookline.sandbox import kernel
from hookline.sandbox.confined_line import PathRights

_GIT = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git")
_WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree")
_KEPT = ("HOME", "XDG_CONFIG_HOME", "GIT_DIR", "GIT_COMMON_DIR")
_NO = ("false", "no", "off", "0", "")
_SILENT = {"GIT_TRACE2": "0", "GIT_TRACE2_EVENT": "0", "GIT_TRACE2_PERF": "0"}
"""Logs that a configuration could ask for, in any file."""
_SECONDS = 5


def forces(cwd: str, words: list[str], variables: list[str]) -> bool:
    """Whether a `git … push …` is forced by the configuration that it will read; also where that cannot be told."""
    if "push" not in words or not any(os.path.exists(path) for path in _GIT):
        return False
    options = _places(words[: words.index("push")], dict(pair.split("=", 1) for pair in variables if "=" in pair))
    found = _asked([*options, "config", "-z", "--get-regexp", r"^remote\..*\.(push|mirror)$"], cwd, variables)
    if found is None or any(_forced(entry) for entry in found.split("\0")):
        return True
    folder = _asked([*options, "rev-parse", "--path-format=absolute", "--git-path", "remotes"], cwd, variables)
    return folder is None or _forced_by_file(folder.rstrip("\n"))


def _forced(entry: str) -> bool:
    """Whether one entry of the configuration makes pushes forced ones; a name without a value means yes."""
    key, given, value = entry.partition("\n")
    if key.endswith(".mirror"):
        return not given or value.lower() not in _NO
    return value.startswith("+")


def _forced_by_file(folder: str) -> bool:
    """Whether a remote of the old kind, which is a file, does: `Push: +main`."""
    try:
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", errors="replace") as file:
                if any(line.startswith("Push:") and line[5:].lstrip().startswith("+") for line in file):
                    return True
    except OSError:
        return os.path.isdir(folder)
    return False


def _places(words: list[str], variables: dict[str, str]) -> list[str]:
    """The options that say where the configuration is and what it says; no other one is handed on."""
    kept: list[str] = []
    for index, word in enumerate(words):
        if word in _WITH_VALUE:
            kept += words[index : index + 2]
        elif word.startswith("--config-env"):  # `--config-env=NAME=VARIABLE`, or the second part by itself
            given = word[13:] if "=" in word else "".join(words[index + 1 : index + 2])
            name, _, variable = given.rpartition("=")
            kept += ["-c", f"{name}={variables.get(variable, '')}"]
        elif word.partition("=")[0] in _WITH_VALUE and "=" in word:
            kept.append(word)
    return kept


def _asked(words: list[str], cwd: str, variables: list[str]) -> str | None:
    """What git prints, or None if it takes too long; it has few of the caller's variables, and may write nothing."""
    import subprocess  # only where a push is judged

    program = next(path for path in _GIT if os.path.exists(path))
    pairs = [pair.partition("=") for pair in variables]
    environment = {name: value for name, _, value in pairs if name in _KEPT or name.startswith("GIT_CONFIG_")}
    try:
        done = subprocess.run(
            [program, "-C", cwd, *words], env={**environment, **_SILENT}, stdin=subprocess.DEVNULL, timeout=_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=_confine, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _confine() -> None:
    """Git reads files that the line has written."""
    kernel.no_new_privileges()
    if version := kernel.landlock_version():
        PathRights(version, reading=False).enforce()
