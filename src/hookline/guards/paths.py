"""Keeping an agent inside a folder: judged on where a path really leads, not on how it is spelt.

Every path a file tool is given is resolved (`..`, `~`, links, also in a parent) and must end inside. A shell line is
judged on what it writes to, as far as its text tells; where it does not tell, that is said, and asked about or denied.
After a write the path is looked at once more, so that a link swapped in between is found.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hookline.core.engine import Context
from hookline.core.files import identity, other_names
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import ARGUMENTS, EDITING, READING
from hookline.core.patches import holds_patch, read_patch
from hookline.core.paths import inside_any
from hookline.core.shell import writes
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse, SessionStart
from hookline.guards import sandboxing
from hookline.guards.commands import PRIORITY, Doubted, Undecided, answer_to_doubts, shell_lines
from hookline.guards.off_loop import judge_lines, strictest
from hookline.guards.permissions.line_reads import FileRead, reads_of
from hookline.guards.permissions.path_on_disk import GLOB, TooMany, UnresolvablePath, glob_start, matches, places_of
from hookline.guards.sandboxing import Confine
from hookline.guards.tool_inputs import Line, paths_in, texts_of
from hookline.replies import Reply, deny, rewrite, stop
from hookline.sandbox.places import holds_secrets, known_places, place_of, places_below
from hookline.sandbox.policy import Policy

WRITERS = {tool: ARGUMENTS[tool].name for tool in EDITING}
READERS = {tool: ARGUMENTS[tool].name for tool in READING} | {"LSP": ""}
_READS = re.compile(
    r"(?:^|_)(?:read|list|get|search|stat|view|find|tree|info|exists|head|show|fetch|cat)", re.IGNORECASE
)
_WRITES = re.compile(
    r"write|edit|create|delete|move|copy|rename|append|save|put|update|remove|mkdir|patch|replace|set|upload|download",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:/|~/|\.\./)\S{1,4000}")
_HERE = ("cwd", "workdir", "working_directory", "workingDirectory", "directory")
_MOST_SESSIONS = 1_000


Fence = tuple[str, ...]  # the folders that count as inside, links resolved


class Judgement(NamedTuple):
    """What is wrong with a path (or nothing), where it really leads, and whether that is only a doubt."""

    problem: str
    leads: str = ""
    doubt: bool = False


def stay_inside(
    root: str | Path | None = None,
    also: Iterable[str | Path] = (),
    *,
    read: bool = False,
    undecided: Undecided = "ask",
    confine: Confine = None,
    show: Iterable[str | Path] = (),
    unprotect: Iterable[str | Path] = (),
    name: str = "paths.stay_inside",
) -> list[Hook]:
    """Deny what would write outside `root` (default: the session's project folder) and the folders in `also`.

    `read=True` keeps reading inside, too: what file tools open, and every word of a shell line that may be a file.
    `undecided` is what happens when a shell line does not tell what it writes.
    Files that hold secrets (keys, credentials, histories, `.env`) are not read, but for those in `show`. A confined
    line leaves files alone that run later (git's hooks, settings of agents and editors), but for those in `unprotect`.
    With `confine="auto"` such a line is not asked about where the kernel can hold it: it runs confined. Hookline's own
    agent does that unless `confine="off"`.
    """
    folders = (also,) if isinstance(also, (str, Path)) else tuple(also)
    doubted, confine = answer_to_doubts(undecided), sandboxing.checked(confine)
    guard = StayInside(root, folders, read, doubted, confine, name, _real(show), _real(unprotect))
    after = (PostToolUse,) if confine == "off" else (PostToolUse, PostToolUseFailure)
    judge = make_hook((PreToolUse,), guard.judge, name=name, priority=PRIORITY)
    return [
        msgspec.structs.replace(judge, confines=confine == "auto"),
        make_hook(after, guard.look_again, name=f"{name}.afterwards", priority=PRIORITY),
        make_hook((SessionStart,), guard.begin, name=f"{name}.begin", priority=PRIORITY, on_failure="continue"),
    ]


def _holds(fence: Fence, path: str) -> bool:
    """Whether a resolved path is one of the folders or lies in one, whatever its case where case does not count."""
    if inside_any(path, fence):
        return True
    roots = {identity(folder) for folder in fence} - {None}  # where two spellings are one folder
    return any(identity(str(parent)) in roots for parent in (Path(path), *Path(path).parents))


def _real(paths: Iterable[str | Path]) -> tuple[str, ...]:
    given = (paths,) if isinstance(paths, (str, Path)) else tuple(paths)
    return tuple(os.path.realpath(os.path.expanduser(str(path))) for path in given)


class StayInside(msgspec.Struct, eq=False):
    """The guard behind `stay_inside`: remembers where each session began, so that `cd` does not move the fence."""

    root: str | Path | None
    also: tuple[str | Path, ...]
    read: bool
    answer: Doubted
    confine: Confine
    name: str
    show: tuple[str, ...] = ()
    unprotect: tuple[str, ...] = ()
    begun: dict[str, str] = {}

    async def begin(self, event: SessionStart, ctx: Context) -> None:
        """Remember the folder the session began in."""
        self._fence(event, ctx)

    async def judge(self, event: PreToolUse, ctx: Context) -> Reply | None:
        """Deny a call whose paths lead outside; let it go on with the resolved path that was judged."""
        fence = self._fence(event, ctx)
        changed: dict[str, Any] = {}
        doubt: Reply | None = None
        guess = not self.read and seems_to_read(event.tool_name)
        # what is written is what was judged; not an MCP server's, which may mean something else by it
        named = WRITERS.get(event.tool_name) or READERS.get(event.tool_name)
        given = tuple(paths_of(event, read=True))
        read = given if event.tool_name not in WRITERS else ()
        searches = "search" if event.tool_name == "Grep" else ""
        files = [FileRead(path, by=searches, deep=bool(searches)) for _, path in read]
        if secret := self._secret(files, event.cwd):
            return deny(secret)
        for field, path in given if self.read or event.tool_name not in READERS else ():
            found = judged(path, event.cwd, fence, write=event.tool_name not in READERS)
            if found.problem and not found.doubt and not guess:
                return deny(found.problem)
            if found.problem:
                doubt = self.answer(found.problem)
            elif field == named and event.tool_input.get(field) == path:
                changed |= {field: found.leads} if found.leads != path else {}
        if doubt is None and event.tool_name.startswith("mcp__"):
            doubt = self._judge_guesses(event, fence)
        confined = sandboxing.applies_to(event, self.confine)
        lines = [Line(sandboxing.line_of(event))] if confined else [line for line in shell_lines(event) if line.certain]
        judge, folder = self._judge_held if confined else self._judge_line, line_folder(event)
        said = await judge_lines(lines, lambda line: judge(line.text, folder, fence), disk=not confined)
        if said is not None or doubt is not None:
            return strictest(said, doubt)
        if confined:
            return self._hold(event, fence)
        return rewrite({**event.tool_input, **changed}) if changed else None

    def _secret(self, files: Sequence[FileRead], cwd: str) -> str:
        """Why files may not be read, if one of them holds secrets."""
        places = known_places(os.environ) if files else {}
        for file in files:
            try:
                leads = list(places_of(file.path, cwd))
            except UnresolvablePath:
                continue  # it is judged with the others
            for path in leads:
                found = [path] if holds_secrets(path, places) else []
                if not found and (file.deep or file.by == "git"):
                    found = self._in_folder(path, file, places)
                for place in found:
                    if not inside_any(place, self.show):
                        return f"`{file.path}` holds secrets; to let it be read, give the guard `show=[{place!r}]`"
        return ""

    def _in_folder(self, folder: str, file: FileRead, places: Mapping[str, str]) -> list[str]:
        """The secrets that a reader of a whole folder comes upon; one of which nothing is known may read the folder."""
        if place_of(folder, places) and os.path.isdir(folder):
            return [folder]
        below = places_below(folder, places) if file.deep and file.by else ()
        return [
            one for one in below if not any(fnmatchcase(name, each) for name in one.split("/") for each in file.without)
        ]

    def _judge_guesses(self, event: PreToolUse, fence: Fence) -> Reply | None:
        """Ask about a text that is the name of something on this machine, whatever its argument is called."""
        for text in texts_of(event.tool_input):
            if _PATH.fullmatch(text) and _is_there(os.path.join(event.cwd, os.path.expanduser(text))):
                found = judged(text, event.cwd, fence, write=False)
                if found.problem:
                    return self.answer(found.problem)
        return None

    async def look_again(self, event: PostToolUse | PostToolUseFailure, ctx: Context) -> Reply | None:
        """Find a path that led inside when it was judged, and outside when it was written; tell what was refused."""
        if sandboxing.wanted(self.confine) and event.tool_name == sandboxing.TOOL:
            return sandboxing.afterwards(event, self.name)
        fence = self._fence(event, ctx)
        found = (judged(path, event.cwd, fence, write=False).problem for _, path in paths_of(event, read=self.read))
        problem = next(filter(None, found), "")
        return stop(f"it was changed while it was written: {problem}") if problem else None

    def _fence(self, event: Any, ctx: Context) -> Fence:
        folder = str(self.root) if self.root is not None else self._project(event, ctx)
        return _real((folder, *self.also))

    def _project(self, event: Any, ctx: Context) -> str:
        known = ctx.project_dir or ctx.env.get("CLAUDE_PROJECT_DIR")
        if known:
            return known
        if event.session_id not in self.begun and len(self.begun) >= _MOST_SESSIONS:
            del self.begun[next(iter(self.begun))]
        return self.begun.setdefault(event.session_id, event.cwd or os.getcwd())

    def _judge_held(self, line: str, cwd: str, fence: Fence) -> Reply | None:
        """Deny a line that plainly changes something outside that is there; the rest is left to the kernel."""
        found = (judged(target, cwd, fence, write=False) for target in writes(line).targets)
        there = (one.problem for one in found if one.problem and one.leads and os.path.lexists(one.leads))
        problem = next(there, "") or self._reading(line, cwd, fence)
        return deny(problem) if problem else None

    def _hold(self, event: PreToolUse, fence: Fence) -> Reply | None:
        folders = tuple(folder for folder in fence if os.path.exists(folder))
        policy = Policy(folders, read=folders if self.read else None, write_guard=self.name)
        policy.show, policy.unprotect, policy.protect = self.show, self.unprotect, sandboxing.own_places(folders)
        return sandboxing.hold(event, policy)

    def _judge_line(self, line: str, cwd: str, fence: Fence) -> Reply | None:
        found = writes(line)
        doubts = list(found.undecidable)
        outside = (one.problem for target in found.targets for one in _problems(target, cwd, fence, doubts))
        if problem := next(outside, "") or self._reading(line, cwd, fence, doubts):
            return deny(problem)
        if doubts:
            does = "reads and writes" if self.read else "writes"
            return self.answer(f"cannot tell what `{line[:200]}` {does}: {'; '.join(doubts)[:2000]}")
        return None

    def _reading(self, line: str, cwd: str, fence: Fence, doubts: list[str] | None = None) -> str:
        """Why a line may not read what it reads: secrets, or what is surely outside; the rest is one more doubt."""
        found, held = reads_of(line), doubts is None
        doubts = [] if doubts is None else doubts
        paths = dict.fromkeys([*found.mentioned, *(file.path for file in found.files)])
        for file in found.files:
            if file.by not in ("", "ls") and not held and not GLOB.isdisjoint(file.path):
                paths |= dict.fromkeys(_files(file.path, cwd, doubts, hidden="dotglob" in line))
        whole = [file for file in found.files if file.deep or file.by == "git"]
        whole = [file for file in whole if file.path != "." or (file.deep and not held)]
        named = paths.keys() - {".", *(file.path for file in whole)}  # a folder is not one of the files
        secret = self._secret([*map(FileRead, sorted(named)), *whole], cwd)
        if secret or not self.read:
            return secret
        doubts += [each for each in found.undecidable if each not in doubts]
        for path in found.mentioned:
            one = judged(path, cwd, fence, write=False)
            if one.problem and os.path.isfile(one.leads):
                return one.problem
        for file in found.files:
            for one in _problems(file.path, cwd, fence, doubts):
                if file.certain or os.path.lexists(one.leads):
                    return one.problem
                if not re.search(r"\s", file.path):
                    doubts.append(one.problem)
        return ""


def _files(word: str, cwd: str, doubts: list[str], *, hidden: bool = True) -> list[str]:
    """A path of a line and the files that its wildcards stand for; a doubt when these are too many."""
    try:
        return matches(word, cwd, hidden=hidden)
    except TooMany:
        doubts.append("its wildcards stand for more files than can be looked at")
        return [word]


def _problems(word: str, cwd: str, fence: Fence, doubts: list[str]) -> Iterator[Judgement]:
    """What is wrong with a path of a line, and with the files that its wildcards stand for."""
    found = (judged(path, cwd, fence, write=False) for path in _files(word, cwd, doubts))
    return (one for one in found if one.problem)


def _is_there(path: str) -> bool:
    """Whether a path names something, or a folder below the root it could be made in."""
    folder = os.path.dirname(os.path.normpath(path))
    return os.path.lexists(path) or (folder != "/" and os.path.isdir(folder))


def line_folder(event: PreToolUse) -> str:
    """The folder a shell tool will run in."""
    given = next((event.tool_input[name] for name in _HERE if isinstance(event.tool_input.get(name), str)), "")
    return os.path.join(event.cwd, os.path.expanduser(given)) if given else event.cwd


def paths_of(event: PreToolUse | PostToolUse | PostToolUseFailure, *, read: bool) -> Iterator[tuple[str, Any]]:
    """The paths a call is given, with the argument of each; a writing tool's own path also when it is missing."""
    tool, given = event.tool_name, event.tool_input
    if tool in READERS and not read:
        return
    if tool in WRITERS:
        yield WRITERS[tool], given.get(WRITERS[tool], "")
    elif tool in ("Glob", "Grep", "LS"):  # the current folder when none is named; a glob may climb out of it
        folder = given.get("path") or "."
        yield "path", folder
        if tool == "Glob":
            yield "pattern", os.path.join(str(folder), glob_start(str(given.get("pattern") or "")))
        return
    elif tool.startswith("mcp__"):
        patches = [text for text in texts_of(given, all_of_them=True) if holds_patch(text)]
        yield from (("patch", change.path) for patch in patches for change in read_patch(patch))
    seen = WRITERS.get(tool, "")
    for field, path in paths_in(given):
        if field != seen:
            yield field, path


def seems_to_read(tool: str) -> bool:
    """Whether an MCP tool is called as if it only read; that is a name and nothing more, so it is asked about."""
    name = tool.rsplit("__", 1)[-1]
    return tool.startswith("mcp__") and _READS.search(name) is not None and _WRITES.search(name) is None


def judged(path: Any, cwd: str, fence: Fence, *, write: bool = True) -> Judgement:
    """What is wrong with a path, if anything, and where it really leads."""
    leads = ""
    try:
        for lands in places_of(path, cwd):
            if not _holds(fence, lands):
                shown = f", which leads to `{lands}`," if lands != path else ""
                return Judgement(f"`{path}`{shown} is outside `{fence[0]}`", lands)
            leads = leads or lands
    except UnresolvablePath as astray:
        return Judgement(str(astray))
    if write and other_names(leads):
        return Judgement(f"`{path}` is a hard link: the file has another name, perhaps outside", leads, doubt=True)
    return Judgement("", leads)
