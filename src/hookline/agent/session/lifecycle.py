"""How a session begins, and what it reads and watches: Setup, SessionStart, InstructionsLoaded, FileChanged."""

import asyncio
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from hookline.agent.messages import Reminder
from hookline.agent.session.session import ALL_INSTRUCTIONS, Conversation
from hookline.agent.session.transcript import config_folder
from hookline.agent.tools.search import glob_pattern
from hookline.core.engine import Verdict
from hookline.core.hooks.hook import Function, Hook
from hookline.events import FileChanged, InstructionsLoaded, SessionStart, Setup
from hookline.settings.load import MOST_HOPS, includes, is_outside, trusted_imports
from hookline.settings.watcher import loaded_by, signature

HEADER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
SIZE_LIMIT = 1 << 20
INTERVAL = 0.25  # seconds between two looks at the files that hooks watch
LITERAL = re.compile(r"[\w .,|-]+", re.ASCII)


class Instructions(Struct, frozen=True):
    """One file of instructions, with why it was loaded."""

    file_path: str
    content: str
    memory_type: str = "Project"
    load_reason: str = "session_start"
    parent_file_path: str | None = None
    trigger_file_path: str | None = None
    globs: tuple[str, ...] | None = None


def discover(
    cwd: str,
    environ: Mapping[str, str] = os.environ,
    *,
    sources: frozenset[str] = ALL_INSTRUCTIONS,
    outside: Collection[str] = (),
) -> list[Instructions]:
    """What holds for a session in `cwd`, the user's first, then from the outermost folder inwards; each file once.

    `outside` has the files that a project may take in from outside its own folder: those that are trusted.
    """
    home = config_folder(environ)
    found: list[Instructions] = []
    seen: set[str] = set()
    files = [("User", home / "CLAUDE.md"), *(("User", rule) for rule in _rules(home))]
    for folder in (*reversed(Path(cwd).parents), Path(cwd)):
        # the user's own folder may lie above the project: its files are the user's, whichever way they are found
        files += [(kind, file) for kind, file in _folder_files(folder) if not file.is_relative_to(home)]
    for kind, path in files:
        if kind in sources and _globs(path) is None:
            # what a file of a folder above the project takes in lies in that folder
            above = path.parent.parent if path.parent.name == ".claude" else path.parent
            root = None if kind == "User" else Path(cwd) if path.is_relative_to(cwd) else above
            found += _load(path, Instructions(str(path), "", kind), seen, root, outside)
    return found


def nested(file_path: str, cwd: str, known: set[str]) -> list[Instructions]:
    """What touching a file below `cwd` brings: the CLAUDE.md of the folders on the way, and rules for such paths.

    `known` has the paths loaded so far and is added to, so that each file is loaded once in a session.
    """
    path, root = Path(file_path), Path(cwd)
    if not path.is_relative_to(root):
        return []
    found: list[Instructions] = []
    folders = [*itertools.accumulate(path.relative_to(root).parts[:-1], Path.joinpath, initial=root)][1:]
    for folder in folders:
        for kind, file in _folder_files(folder):
            if _globs(file) is None:
                about = Instructions(str(file), "", kind, "nested_traversal", trigger_file_path=file_path)
                found += _load(file, about, known, root)
    for rule in [rule for folder in (root, *folders) for rule in _rules(folder / ".claude")]:
        globs = _globs(rule)
        inside = path.relative_to(root).as_posix()
        if globs and any(glob_pattern(glob).match(inside) for glob in globs):
            about = Instructions(str(rule), "", "Project", "path_glob_match", trigger_file_path=file_path, globs=globs)
            found += _load(rule, about, known, root)
    return found


def _folder_files(folder: Path) -> Iterator[tuple[str, Path]]:
    main = folder / "CLAUDE.md"
    yield "Project", main if main.is_file() else folder / "AGENTS.md"
    yield "Project", folder / ".claude" / "CLAUDE.md"
    yield from (("Project", rule) for rule in _rules(folder / ".claude"))
    yield "Local", folder / "CLAUDE.local.md"


def _rules(settings: Path) -> list[Path]:
    return sorted((settings / "rules").rglob("*.md"))


def _load(
    path: Path, about: Instructions, seen: set[str], root: Path | None, outside: Collection[str] = (), *, hops: int = 0
) -> list[Instructions]:
    """The file and, after it, what it includes; nothing when it is missing, unreadable, fenced off or loaded before."""
    real = os.path.realpath(path)
    fenced_off = root is not None and is_outside(path, root) and real not in outside
    if real in seen or fenced_off or not _readable(path):
        return []
    seen.add(real)
    content = HEADER.sub("", path.read_text("utf-8", "replace"), count=1)
    loaded = [structs.replace(about, content=content)]
    if hops >= MOST_HOPS:
        return loaded
    for target in includes(content, path.parent):
        inner = Instructions(str(target), "", about.memory_type, "include", str(path), about.trigger_file_path)
        loaded += _load(target, inner, seen, root, outside, hops=hops + 1)
    return loaded


def _readable(path: Path) -> bool:
    with suppress(OSError):
        return path.is_file() and path.stat().st_size <= SIZE_LIMIT and os.access(path, os.R_OK)
    return False


def _globs(path: Path) -> tuple[str, ...] | None:
    """The `paths` of a rule's header; None when it has none and so always holds."""
    if "rules" not in path.parts or not _readable(path):
        return None
    header = HEADER.match(path.read_text("utf-8", "replace"))
    # in brackets, one per line, or on one line with commas: too little to need a YAML library
    found = header and re.search(r"^paths:[ \t]*(.*(?:\n[ \t]*-.*)*)", header[1], re.MULTILINE)
    if not found:
        return None
    text = found[1].strip().removeprefix("[").removesuffix("]")
    # a list by its lines, else by its commas, but not by those in `{a,b}`
    parts = re.findall(r"^[ \t]*-[ \t]*(.+)$", text, re.MULTILINE) or re.findall(r"(?:\{[^}]*\}|[^,{])+", text)
    return tuple(part.strip().strip("\"'") for part in parts if part.strip().strip("\"'"))


async def fire_setup(conversation: Conversation, trigger: str) -> None:
    """Setup: hooks prepare the project; their context is for the first request (seeds/003)."""
    verdict = await conversation.fire(Setup, trigger=trigger)
    # in Claude Code's own dialect it is for the user, not the model (`setup_text`)
    others = [hook for hook in conversation.session.hooks.hooks if not isinstance(hook.action, Function)]
    claude = {hook.name for hook in others if getattr(hook.action, "dialect", "claude") == "claude"}
    told = tuple(text for one in verdict.outcomes if one.hook not in claude for text in one.reply.context)
    conversation.remind_of_context(structs.replace(verdict, reply=structs.replace(verdict.reply, context=told)))
    for text in verdict.context:
        if text not in told:
            conversation.session.output.inform(f"Setup says: {text}")


async def fire_session_start(conversation: Conversation, source: str, **about: Any) -> Verdict:
    """SessionStart: context for the first request, files to watch, a title; a block ends the session (seeds/002)."""
    if source == "compact":
        about.setdefault("model", conversation.session.model.name)
    verdict = await conversation.fire(SessionStart, source=source, **about)
    # a resumed conversation may hold the context already, word for word
    heard = "\n".join(message.text for message in conversation.messages if isinstance(message, Reminder))
    fresh = tuple(text for text in verdict.context if text not in heard)
    conversation.remind_of_context(structs.replace(verdict, reply=structs.replace(verdict.reply, context=fresh)))
    return verdict


async def load_instructions(conversation: Conversation, reason: str = "session_start") -> None:
    """Read CLAUDE.md and its kin into the conversation, each announced by InstructionsLoaded."""
    session = conversation.session
    loaded = loaded_by(session.hooks)
    outside = trusted_imports(loaded) if loaded is not None else ()
    found = discover(session.project_dir, session.environ, sources=session.config.instructions, outside=outside)
    conversation.instructions_seen.update(one.file_path for one in found)
    conversation.instructions_seen.update(reminder.file for reminder in instructions_told(conversation))
    told = [one if one.parent_file_path else structs.replace(one, load_reason=reason) for one in found]
    await announce(conversation, told)


def instructions_told(conversation: Conversation) -> list[Reminder]:
    """The instructions in the conversation, as the model was told them."""
    told = [message for message in conversation.messages if isinstance(message, Reminder)]
    return [reminder for reminder in (*told, *conversation.waiting) if reminder.file]


async def announce(conversation: Conversation, found: list[Instructions]) -> None:
    """Tell hooks of instructions, by InstructionsLoaded, and the model what they say."""
    for one in found:
        about = structs.asdict(one) | {"globs": list(one.globs) if one.globs else None}
        del about["content"]
        await conversation.fire(InstructionsLoaded, **about)
        text = f"Contents of {one.file_path} ({one.memory_type} instructions):\n\n{one.content}"
        reminder = Reminder(text, one.file_path)
        if reminder not in instructions_told(conversation):  # a resumed conversation holds it already
            conversation.waiting.append(reminder)


def names_in(hooks: Iterable[Hook]) -> list[str]:
    """The file names that FileChanged matchers spell out; a pattern alone watches nothing (FACTS.md §5)."""
    patterns = [hook.matcher.pattern for hook in hooks if FileChanged in hook.events]
    literal = [pattern for pattern in patterns if LITERAL.fullmatch(pattern)]
    return [name.strip() for pattern in literal for name in re.split(r"[|,]", pattern) if name.strip()]


class FileWatcher:
    """Looks at some files again and again, and says what became of them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen: dict[str, tuple[int, ...] | None] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, paths: Iterable[str]) -> None:
        fresh = [os.path.realpath(Path(self._conversation.state.cwd, path)) for path in paths]
        self._seen.update(zip(fresh, signature(fresh), strict=True))
        if self._seen and self._task is None:
            self._task = asyncio.create_task(self._watch(), name="watch files")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            paths = list(self._seen)
            for path, now in zip(paths, signature(paths), strict=True):
                before, self._seen[path] = self._seen[path], now
                if now != before:
                    what = "add" if before is None else "unlink" if now is None else "change"
                    await self._conversation.fire(FileChanged, file_path=path, event=what)
