"""One headless run of an agent CLI, in a world of its own."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from hookline.core.interpreter import python_argv
from hookline.hosts.host import FileEdit, Host, ProofRecipe, TrustedFolders, fill
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.apply import keep_form
from hookline.hosts.install.entries import config_path, user_path
from hookline.hosts.install.survey import Binary, lab
from hookline.hosts.prove.model import ModelTurn, ScriptedModel, serving
from hookline.hosts.table import AGENTS, as_dict
from hookline.processes.tree import MARKER, Group, new_marker


class ProgramRun(NamedTuple):
    """How a run ended."""

    exit_code: int | None  # `None` if it had to be ended
    stdout: str
    stderr: str
    seconds: float
    model: ScriptedModel


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A home and a project of their own, which are gone afterwards."""
    with TemporaryDirectory(prefix="hookline-prove-", ignore_cleanup_errors=True) as name:
        base = Path(os.path.realpath(name))
        home, project = base / "home", base / "project"
        home.mkdir()
        project.mkdir()
        git = ["git", "-c", "user.email=a@b", "-c", "user.name=x"]
        with suppress(OSError):
            for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run([*git, *words], cwd=project, check=False, capture_output=True)
        yield home, project


class Workspace(NamedTuple):
    """Where an agent runs: its binary, its home, its project."""

    binary: Binary
    home: Path
    project: Path


def run(
    agent: ProofRecipe, place: Workspace, prompt: str, turns: Sequence[ModelTurn], *,
    inner: Sequence[ModelTurn] = (), env: Mapping[str, str] = MappingProxyType({}), limit: float = 120.0,
) -> ProgramRun:  # fmt: skip
    """Let an agent work on a prompt, its model following the script; it ends with us, also when we are killed.

    `inner` is the script of the agents that it starts itself.
    """
    ending = [ModelTurn(tools=(call,)) for call in agent.ending]
    with serving([*turns, *ending], [*inner, *ending] if inner else (), prompt if inner else "") as model:
        here = {"home": str(place.home), "project": str(place.project), "url": model.url, "prompt": prompt}
        environ = {**_environment(place), **fill(agent.env, **here), **env}
        if agent.setup:
            words = [str(place.binary.path), *fill(agent.setup, **here)]
            subprocess.run(words, env=environ, cwd=place.project, capture_output=True, timeout=60, check=False)
        for edit in agent.edits:
            apply_edit(place.home, edit, here)
        started = time.monotonic()
        argv = [str(place.binary.path), *fill(agent.argv, **here)]
        code, out, err = _run(argv, place.project, environ, (min(limit, agent.to_the_model), limit), model)
        return ProgramRun(code, out, err, time.monotonic() - started, model)


def apply_edit(home: Path, edit: FileEdit, here: Mapping[str, str] = MappingProxyType({})) -> None:
    """Set the values of an edit in a file below a home, their blanks filled."""

    def edited(text: str) -> str:
        if edit.without and text:
            text = toml_edit.remove_value(text, tuple(edit.without.split(".")))
        for key, value in edit.values.items():
            text = _put(edit.path, text, tuple(key.split(".")), fill(value, **here))
        for array, row in fill(edit.rows, **here).items():
            text = toml_edit.remove_rows(text, array, lambda one, name=row["name"]: one.get("name") == name)  # type: ignore[misc]
            text = toml_edit.add_row(text, array, row)
        return text

    _edit(home / fill(edit.path, **here), edited)


def _environment(place: Workspace) -> dict[str, str]:
    """What every agent's process gets: a home of its own, and nothing of the user's keys."""
    node = lab() / "node24" / "node_modules" / "node" / "bin"
    path = os.environ.get("PATH", "/usr/bin:/bin")
    if lab() in place.binary.path.parents and node.is_dir():
        path = f"{node}:{path}"
    return {"PATH": path, "HOME": str(place.home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1", "TMUX_TMPDIR": str(place.home)}  # fmt: skip


def _run(
    argv: list[str], project: Path, env: Mapping[str, str], limits: tuple[float, float], model: ScriptedModel
) -> tuple[int | None, str, str]:
    """How it ended; one that has not asked its model by the first of the limits will not do so later."""
    marker, (first, limit) = new_marker(), limits
    process = subprocess.Popen(
        argv, cwd=project, env={**env, MARKER: marker}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with _ended_after_us(process.pid, marker):
        try:
            try:
                out, err = process.communicate(timeout=first)
            except subprocess.TimeoutExpired:
                if not model.requests or limit <= first:
                    raise
                out, err = process.communicate(timeout=limit - first)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            code = None
            end_all(process.pid, marker)
            out, err = process.communicate()
        finally:
            end_all(process.pid, marker)
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def end_all(leader: int, marker: str) -> None:
    """The agent and everything it has started, also what left its group: a hub, a terminal server."""

    async def end() -> None:
        over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        over.set_result(None)
        await Group(leader, marker).end(over)

    asyncio.run(end())


_KEEPER = "sys.stdin.read(); from hookline.hosts.prove.run import end_all; end_all(int(sys.argv[1]), sys.argv[2])"


@contextmanager
def _ended_after_us(leader: int, marker: str) -> Iterator[None]:
    """A process that waits for our end, whatever the reason, and then ends the agent."""
    words = python_argv(_KEEPER, str(leader), marker)
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as keeper:
        try:
            yield
        finally:
            keeper.kill()


# -- a copy of what an agent reads of the user's home and project; the originals are only read ---
# A project's hooks run only in a folder that the user trusts, and each agent has its own list of those. What holds for
# a folder is carried over to its copy, so that a proof finds what the user's agent would do there.

_NOT_TRUSTED = ("untrusted", "DO_NOT_TRUST", False)


def trusts(store: TrustedFolders, home: Path, project: Path) -> bool:
    """Whether the agent runs a project's hooks."""
    said = _governs(store, home, project)
    if said is not None:
        return said not in _NOT_TRUSTED
    if store.unlisted or not store.settings:
        return store.unlisted
    switch = jsonc.lookup(jsonc.parse(_text(home / store.settings)), ("security", "folderTrust", "enabled"))
    return not (store.on if switch is None else switch.value)


def _governs(store: TrustedFolders, home: Path, project: Path) -> Any:
    """What is said of a folder, itself or one above it; `None` if nothing is."""
    values, known = _parse(store, _text(home / store.path)), {}
    if store.form == "table":
        name, key = store.names
        known = {folder: toml_edit.lookup(row, (key,)) for folder, row in as_dict(values.get(name)).items()}
    elif store.form == "lists":
        known = {folder: name for name in store.names for folder in values.get(name) or ()}
    else:
        known = {str(Path(name).parent) if value == "TRUST_PARENT" else name: value for name, value in values.items()}
    folders = [project, *project.parents] if store.inherits else [project]
    return next((known[str(folder)] for folder in folders if str(folder) in known), None)


def _say(store: TrustedFolders, home: Path, folder: Path, value: Any) -> None:
    def edited(text: str) -> str:
        if store.form == "table":
            name, key = store.names
            return _put(store.path, text, (name, str(folder), key), value)
        if store.form == "lists":
            return _put(store.path, text, (value,), [*(_parse(store, text).get(value) or ()), str(folder)])
        return _put(store.path, text, (str(folder),), "TRUST_FOLDER" if value == "TRUST_PARENT" else value)

    _edit(home / store.path, edited)


def _parse(store: TrustedFolders, text: str) -> dict[str, Any]:
    return toml_edit.checked(text) if store.path.endswith(".toml") else as_dict(jsonc.parse(text).value)


def trust_folder(host: str, home: Path, folder: Path) -> None:
    """Trust a folder in a home that is no one else's, as the user would."""
    agent = AGENTS.get(host)
    if agent is not None and agent.trust is not None:
        _say(agent.trust, home, folder, agent.trust.trusted)


def _carry_trust(store: TrustedFolders | None, home: Path, project: Path, copy: Path) -> bool:
    """Trust a project's copy as the project itself, in a copy of the home; whether the project's own files count there.

    An agent that works in trusted folders only is given one, without the project's files.
    """
    if store is None:
        return True
    counts, said = trusts(store, home, project), _governs(store, home, project)
    if not counts and store.settings:
        _say(store, home, copy, store.trusted)
        return False
    if said is not None:
        _say(store, home, copy, said)
    return True


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _edit(path: Path, edit: Callable[[str], str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(keep_form(_text(path), edit))


def _put(path: str, text: str, key: tuple[str, ...], value: Any) -> str:
    return (toml_edit.set_value if path.endswith(".toml") else jsonc.put)(text, key, value)


def copy_configuration(host: Host, agent: ProofRecipe, home: Path, project: Path, place: Path) -> None:
    """Copy the files, and trust the copy of the project as the project is trusted."""
    store = [agent.trust.path] if agent.trust else []
    own = Path(host.config.user).parts[0]
    for relative in dict.fromkeys([*agent.copies, *store]):
        moves = relative.partition("/")[0] == own  # with the host's own folder, where a variable moves that
        _copy_one(user_path(host, relative) if moves else Path.home() / relative, home / relative)
    if host.hook_trust:
        base, copy = config_path(host, "user"), home / host.config.user
        _follow_hashes(copy.with_name(host.hook_trust.file), {f"{base}:": f"{copy}:", f"{project}/": f"{place}/"})
    if _carry_trust(agent.trust, home, project, place):
        for relative in agent.project_copies:
            _copy_one(project / relative, place / relative)


def _copy_one(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        shutil.copy(source, target)
        target.chmod(0o600)


def _follow_hashes(path: Path, moved: dict[str, str]) -> None:
    """The trust in hooks is bound to where they lie: in the copy they lie elsewhere. The hashes stay as they are."""

    def edited(text: str) -> str:
        for key, value in as_dict(toml_edit.lookup(toml_edit.checked(text), ("hooks", "state"))).items():
            for before, after in moved.items():
                if key.startswith(before):
                    text = toml_edit.set_value(text, ("hooks", "state", after + key.removeprefix(before)), value)
        return text

    if path.exists():
        _edit(path, edited)
