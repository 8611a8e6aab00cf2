"""What `git push` may not do: write to a protected branch, or take commits away from any, in all its spellings.

A protected branch is judged by where a push goes: `HEAD:main`, `+main`, `:main`, `--delete main`, `--all`, `--mirror`,
`:`, `refs/heads/*`, and a push that names no branch while a protected one is checked out. Force is an option, a `+`, or
a setting of the repository. What cannot be told is asked about.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hookline.core.globs import name_expression
from hookline.core.hooks import Hook, make_hook
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.table import ParsedOptions, Program, known, program
from hookline.core.shell.targets import join, placed
from hookline.events import PreToolUse
from hookline.guards.commands import PRIORITY, SHELL_TOOLS, Undecided, answer_to_doubts, at_least_one, shell_lines
from hookline.guards.off_loop import judge_lines, strictest
from hookline.guards.paths import line_folder
from hookline.guards.permissions.readonly_commands import GitConfig, read_git_config
from hookline.guards.tool_inputs import Line
from hookline.replies import Reply, deny

_MOST_ALIASES = 5
_EVERYTHING = frozenset({"--all", "--branches", "--mirror"})
_PUSHES = ("push", "send-pack", "http-push", "subtree", None)
_DECIDING_SETTINGS = ("alias.", "push.", "remote.", "branch.", "include.", "includeif.", "url.")
_READS_SETTINGS = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"})
_MCP_PUSHES = ("push", "commit", "create_or_update_file", "delete_file", "update_ref")


class _Push(NamedTuple):
    """A `git push` as it stands in a line: the command, what follows it, and where it runs."""

    part: SimpleCommand
    command: str | None
    words: list[str]
    folder: str
    current: str | None
    """The branch that the line itself has checked out before, if it has; empty where it does not say which."""

    @property
    def shown(self) -> str:
        return self.part.text[:200]


_Finding = tuple[str, bool]  # why a line may not run, and whether that is certain
_Judge = Callable[[_Push], Iterator[_Finding]]
_ByTool = Callable[[Mapping[str, Any]], str]


def protect(
    branches: Iterable[str] = ("main", "master"),
    *,
    undecided: Undecided = "ask",
    match: str = SHELL_TOOLS,
    name: str = "branches.protect",
) -> Hook:
    """Deny every push to these branches: `branches.protect(["main", "release/*"])`.

    `git push` without a branch is judged by what is checked out. MCP tools that push or commit are judged by their
    `branch`.
    """
    wanted = at_least_one(branches, "branch to protect, such as `main`")

    def by_tool(given: Mapping[str, Any]) -> str:
        branch = given.get("branch")
        protected = isinstance(branch, str) and _protected(_short(branch), wanted)
        return f"`{branch}` is a protected branch" if protected else ""

    judge = partial(_to_branches, branches=wanted)
    return _guard(judge, by_tool, "push to another and open a pull request", undecided, match=match, name=name)


def no_force_push(
    *,
    with_lease: bool = False,
    delete: bool = False,
    undecided: Undecided = "ask",
    match: str = SHELL_TOOLS,
    name: str = "branches.no_force_push",
) -> Hook:
    """Deny every push that may take commits away from a branch: `--force`, `-f`, `+main`, `--mirror`, `--delete`.

    `with_lease=True` lets `--force-with-lease` through, `delete=True` the removal of branches and tags.
    """

    def by_tool(given: Mapping[str, Any]) -> str:
        return "a forced update takes commits away" if given.get("force") not in (None, False) else ""

    judge = partial(_by_force, with_lease=with_lease, delete=delete)
    return _guard(judge, by_tool, "push without force, or merge first", undecided, match=match, name=name)


def _guard(push: _Judge, by_tool: _ByTool, advice: str, undecided: Undecided, *, match: str, name: str) -> Hook:
    """A hook that judges every push that a call makes; `by_tool` says what is wrong with the input of an MCP tool."""
    doubted = answer_to_doubts(undecided)

    async def judge(event: PreToolUse) -> Reply | None:
        pushes = event.tool_name.startswith("mcp__") and any(word in event.tool_name for word in _MCP_PUSHES)
        if pushes and (problem := by_tool(event.tool_input)):
            return deny(f"{problem}; {advice}")

        def judge_line(line: Line) -> Reply | None:
            found = _judged(line.text, line_folder(event) or ".", push)
            return strictest(*(deny(f"{reason}; {advice}") if sure else doubted(reason) for reason, sure in found))

        return await judge_lines(shell_lines(event), judge_line)

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def _judged(line: str, cwd: str, judge: _Judge, depth: int = 0) -> Iterator[_Finding]:
    parsed = parse_line(line)
    if parsed.undecidable and "push" in line:
        yield f"what `{line[:200]}` pushes cannot be told: {parsed.undecidable[0]}", False
    branches: list[str | None] = [None]  # what may be checked out, the last one most likely
    moved, configures = True, False
    for part, bases in placed(parsed):
        moved = moved and part.after == "&&"
        if part.name.startswith("git-"):
            part = msgspec.structs.replace(part, name="git", words=("git", part.name[4:], *part.words[1:]))  # noqa: PLW2901 - one command, as git itself reads it
        if part.name not in ("git", "hub"):  # which hands on what it does not know
            continue
        command, words, folder = _subcommand(part)
        if (switched := _checked_out(command, words)) is not None:
            branches += switched[0]
            moved = switched[1]
            continue
        configures = configures or _changes_settings(command, words)
        for base in bases or [""]:
            place = str(Path(cwd, join(base, folder) if folder else base))
            push = _Push(part, command, words, place, branches[-1])
            if command in _PUSHES:
                yield from judge(push)
                others = () if moved else branches[:-1]
                yield from ((why, False) for one in others for why, _ in judge(push._replace(current=one)))
                yield from _unsure(push) if configures else ()
            elif command and (meant := read_git_config(place).get(f"alias.{command.lower()}")) is not None:
                yield from _expanded_alias(meant, push, judge, depth)
            elif configures and command != "config":
                yield from _unsure(push)


def _checked_out(command: str | None, words: Sequence[str]) -> tuple[list[str], bool] | None:
    """The branch that git is told to check out, empty if it is one of before; and whether it can be nothing else."""
    if command not in ("checkout", "switch"):
        renamed = _renamed(command, words)
        return ([renamed], True) if renamed else None
    named = [word for word in words if word == "-" or not word.startswith("-")]
    files = command == "checkout" and "--" in words[:-1]  # `git checkout main --` names a branch, `-- main` a file
    if not named or files:
        return [], command == "switch"
    creates = any(re.match(r"-[a-z]*[bBcC]|--orphan|--(?:force-)?create", word) for word in words)
    tracks = not creates and any(re.match(r"-[a-z]*t|--track", word) for word in words)
    name = named[0].partition("/")[2] if tracks else named[0]
    return ["" if name.startswith(("-", "@")) else name], creates or tracks or command == "switch"


def _renamed(command: str | None, words: Sequence[str]) -> str:
    """What the branch that is checked out is called from now on: `git branch -M x`, `git symbolic-ref HEAD …/x`."""
    moves = command == "branch" and any(re.fullmatch(r"-[a-zA-Z]*[mM][a-zA-Z]*|--move", word) for word in words)
    return _short(words[-1]) if moves or (command == "symbolic-ref" and words[:-1][-1:] == ["HEAD"]) else ""


def _changes_settings(command: str | None, words: Sequence[str]) -> bool:
    """Whether git is told to change what a later command of the same line does: aliases, remotes, what is pushed."""
    if command == "remote":
        return any("mirror" in word for word in words)
    named = any(word.lower().startswith(_DECIDING_SETTINGS) for word in words)
    return command == "config" and (named or "--edit" in words or "-e" in words) and not set(words) & _READS_SETTINGS


def _expanded_alias(meant: str, push: _Push, judge: _Judge, depth: int) -> Iterator[_Finding]:
    """An alias is the line it stands for: git's own words, or after a `!` any shell line."""
    if depth >= _MOST_ALIASES:
        yield from _unsure(push)
        return
    rest = shlex.join(push.words)
    line = f"{meant[1:]} {rest}" if meant.startswith("!") else f"git {meant} {rest}"
    for reason, sure in _judged(line, push.folder, judge, depth + 1):
        yield f"`{push.shown}` is an alias, and {reason}", sure


def _subcommand(part: SimpleCommand) -> tuple[str | None, list[str], str]:
    """What git is told to do, with which words, and the folder that `-C` names; None when it cannot be told."""
    words, at, folder = list(part.words), 1, ""
    while at < len(words) and words[at].startswith("-"):
        taken = known(words[at : at + 1], program("git"))
        if taken is None:
            taken = known(words[at : at + 2], program("git"))
            at += 1
        if taken is None or at in part.unknown:
            return None, words[at:], folder
        for option, value in taken.options:
            if option == "-C":
                folder = join(folder, value)
            elif option in ("-c", "--config-env") and value.lower().startswith(_DECIDING_SETTINGS[:4]):
                return None, words[at:], folder
        at += 1
    if at >= len(words):
        return "", [], folder
    return None if at in part.unknown else words[at], words[at + 1 :], folder


def _to_branches(push: _Push, branches: Sequence[str]) -> Iterator[_Finding]:
    """What is wrong with a push where these branches are protected."""
    if push.command == "subtree":
        if push.words[:1] == ["push"] and _protected(_short(push.words[-1].rpartition(":")[2]), branches):
            yield f"`{push.shown}` pushes to a protected branch", True
        return
    taken = _options(push)
    if taken is None:
        yield from _unsure(push)
    elif _EVERYTHING & {option for option, _ in taken.options}:
        yield f"`{push.shown}` pushes every branch, and `{branches[0]}` is protected", True
    else:
        specs, current, doubt = _refs(push, taken)
        yield from doubt
        for target in _targets(specs, current):
            if target is None:
                yield from _unsure(push)
            elif _protected(target, branches):
                yield f"`{push.shown}` pushes to `{target}`, a protected branch", True


def _by_force(push: _Push, *, with_lease: bool, delete: bool) -> Iterator[_Finding]:
    """What is wrong with a push that may not take commits away."""
    taken = ParsedOptions((), tuple(push.words[1:]), ()) if push.command == "subtree" else _options(push)
    if taken is None:
        yield from _unsure(push)
        return
    forced = {"-f", "--force", "--mirror", *(() if with_lease else ("--force-with-lease",))}
    deleting = set() if delete else {"-d", "--delete", "--prune"}
    specs, _, doubt = _refs(push, taken)
    signs = [
        *sorted({option for option, _ in taken.options} & (forced | deleting)),
        *(spec for spec in specs if spec[:1] == "+" or (spec[:1] == ":" and spec != ":" and not delete)),
    ]
    yield from ((f"`{push.shown}` may take commits away, by `{sign}`", True) for sign in signs)
    yield from doubt


def _options(push: _Push) -> ParsedOptions | None:
    """The words of a push, sorted, abbreviated options written out; None where they are not understood."""
    row = program("git:push")
    return known([_whole(word, row) for word in push.words], row) if push.command else None


def _unsure(push: _Push) -> Iterator[_Finding]:
    """A doubt about a command, if it may be a push at all."""
    if push.command or 1 in push.part.unknown or any("push" in word for word in push.part.words):
        yield f"what `{push.shown}` pushes cannot be told", False


def _refs(push: _Push, taken: ParsedOptions) -> tuple[list[str], str | None, list[_Finding]]:
    """The refspecs of a push, those that settings add included; what is checked out; the doubt if there may be more."""
    names = {option for option, _ in taken.options}
    specs = taken.operands if "--repo" in names else taken.operands[1:]
    config = read_git_config(push.folder)
    current = config.branch if push.current is None else push.current or None
    remote = _remote(taken, config, current)
    if not specs and "--tags" not in names:
        specs = _by_default(config, remote, current)
    doubt = [*_unsure(push)] if push.part.unknown or not config.complete else []
    return list(_mapped(specs, config, remote)), current, doubt


def _remote(taken: ParsedOptions, config: GitConfig, current: str | None) -> str:
    told = taken.operands or tuple(value for option, value in taken.options if option == "--repo")
    settings = (f"branch.{current}.pushremote", "remote.pushdefault", f"branch.{current}.remote")
    return next(filter(None, (*told[:1], *map(config.get, settings))), "origin")


def _by_default(config: GitConfig, remote: str, current: str | None) -> tuple[str, ...]:
    """What `git push` pushes when it is told nothing: the settings say."""
    if (config.get(f"remote.{remote}.mirror") or "").lower() in ("true", "yes", "on", "1"):
        return ("+:",)
    if configured := tuple(config.all(f"remote.{remote}.push")):
        return configured
    default = (config.get("push.default") or "simple").lower()
    upstream = config.get(f"branch.{current}.merge") if default in ("upstream", "tracking") else None
    return {"matching": (":",), "nothing": ()}.get(default, (f"HEAD:{upstream}" if upstream else "HEAD",))


def _mapped(specs: Sequence[str], config: GitConfig, remote: str) -> Iterator[str]:
    """Refspecs as the remote's own settings complete them: one without a target may be given another."""
    configured = [spec.partition(":") for spec in config.all(f"remote.{remote}.push")]
    for spec in specs:
        yield spec
        source = _short(spec.removeprefix("+"))
        for pattern, colon, target in configured if ":" not in spec else ():
            found = name_expression(_short(pattern.removeprefix("+"))).fullmatch(source)
            if colon and found:
                yield f"{pattern[: pattern.startswith('+')]}{source}:{target}"


def _whole(word: str, row: Program) -> str:
    """An abbreviated long option written out, when it can only mean one."""
    name, sign, value = word.partition("=")
    if not name.startswith("--") or name == "--" or name in row.options:
        return word
    meant = [option for option in row.options if option.startswith(name)]
    return f"{meant[0]}{sign}{value}" if len(meant) == 1 else word


def _targets(specs: Iterable[str], current: str | None) -> Iterator[str | None]:
    """The branches that refspecs write to; None for one that cannot be told."""
    tag = False
    for spec in specs:
        if tag or spec == "tag" or spec.startswith("^"):
            tag = spec == "tag" and not tag
            continue
        source, colon, target = spec.removeprefix("+").partition(":")
        name = (target if source or target else "*") if colon else source
        yield current if name in ("HEAD", "@") else _short(name)


def _short(name: str) -> str:
    return name.removeprefix("refs/").removeprefix("heads/")


def _protected(target: str, branches: Sequence[str]) -> bool:
    """Whether a branch, or a pattern of branches, is or may be one of the protected ones."""
    if any(name_expression(branch).fullmatch(target) for branch in branches):
        return True
    return "*" in target and any(name_expression(target).fullmatch(branch.replace("*", "x")) for branch in branches)
