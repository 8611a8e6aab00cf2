"""Branches that nobody pushes to from here: `git push` to `main`, in all its spellings.

Judged by where a push goes: `git push origin HEAD:main`, `+main`, `:main`, `--delete main`, `--all`, `--mirror`, `:`,
`refs/heads/*`, and a push that names no branch while a protected one is checked out. What cannot be told is
asked about.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hookline.core.globs import name_expression
from hookline.core.hooks import Hook, make_hook
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.folders import join, placed
from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.guards.commands import PRIORITY, SHELL_TOOLS, Undecided, shell_lines
from hookline.guards.git_config import GitConfig, read_git_config
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions.options import ParsedOptions, ReadOnlyOptions, row, take
from hookline.replies import Reply, ask, deny

_GLOBAL = row(
    "-pP -C: -c: --git-dir: --work-tree: --namespace: --exec-path? --config-env: --no-pager --paginate --bare "
    "--no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs "
    "--no-optional-locks --no-lazy-fetch --no-advice"
)
_PUSH_LONG = (
    "--all --branches --mirror --delete --tags --follow-tags --force --force-with-lease? --force-if-includes --dry-run "
    "--porcelain --prune --quiet --verbose --set-upstream --thin --progress --verify --signed? --atomic --ipv4 --ipv6 "
    "--repo: --push-option: --receive-pack: --exec: --recurse-submodules: --no-tags --no-follow-tags --no-force "
    "--no-verify --no-thin --no-signed --no-atomic --no-progress --no-recurse-submodules --no-force-with-lease"
)
_PUSH = row(f"-fdnqvu46 -o: {_PUSH_LONG}", "text")
_MOST_ALIASES = 5
_EVERYTHING = frozenset({"--all", "--branches", "--mirror"})
_MOVES = frozenset({"checkout", "switch"})
_MCP_PUSHES = ("push", "commit", "create_or_update_file", "delete_file", "update_ref")


class _Push(NamedTuple):
    """A `git push` as it stands in a line: the command, what follows it, and where it runs."""

    part: SimpleCommand
    command: str | None
    words: list[str]
    folder: str
    current: str | None
    """The branch that the line itself has checked out before, if it has."""

    @property
    def shown(self) -> str:
        """The command as a reason names it."""
        return self.part.text[:200]


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
    wanted = (branches,) if isinstance(branches, str) else tuple(branches)
    if not wanted or not all(wanted):
        raise HookError("give at least one branch to protect, such as `main`")
    if undecided not in ("ask", "deny"):
        raise HookError(f"undecided must be `ask` or `deny`, got `{undecided}`")

    async def judge(event: PreToolUse) -> Reply | None:
        if _pushes_by_tool(event, wanted):
            return deny(
                f"`{event.tool_input['branch']}` is a protected branch; push to another and open a pull request"
            )
        lines = [line.text for line in shell_lines(event)]
        here = event.cwd or "."
        found = await run_off_loop(lines, lambda: [each for line in lines for each in _judged(line, here, wanted)])
        if any(sure for _, sure in found):
            return deny(next(reason for reason, sure in found if sure) + "; push to another and open a pull request")
        if not found:
            return None
        return {"ask": ask, "deny": deny}[undecided](found[0][0])

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def _pushes_by_tool(event: PreToolUse, branches: Sequence[str]) -> bool:
    branch: Any = event.tool_input.get("branch")
    pushes = event.tool_name.startswith("mcp__") and any(word in event.tool_name for word in _MCP_PUSHES)
    return pushes and isinstance(branch, str) and _protected(_short(branch), branches)


def _judged(line: str, cwd: str, branches: Sequence[str], depth: int = 0) -> Iterator[tuple[str, bool]]:
    """Why a line may not run, and whether that is sure."""
    parsed = parse_line(line)
    if parsed.undecidable and "push" in line:
        yield f"whether `{line[:200]}` pushes to a protected branch cannot be told: {parsed.undecidable[0]}", False
    current: str | None = None
    for part, bases in placed(parsed):
        if part.name != "git":
            continue
        command, words, folder = _subcommand(part)
        if command in _MOVES:
            current = _moved_to(words)
            continue
        for base in bases or [""]:
            place = str(Path(cwd, join(base, folder) if folder else base))
            if command in ("push", "send-pack", "subtree", None):
                yield from _pushed(_Push(part, command, words, place, current), branches)
            elif (meant := _alias(place, command)) is not None:
                yield from _expanded_alias(meant, _Push(part, command, words, place, current), branches, depth)


def _alias(folder: str, command: str | None) -> str | None:
    """What the repository's or the user's settings make of a command that git does not have itself."""
    return read_git_config(folder).get(f"alias.{command.lower()}") if command else None


def _expanded_alias(meant: str, push: _Push, branches: Sequence[str], depth: int) -> Iterator[tuple[str, bool]]:
    """An alias is the line it stands for: git's own words, or after a `!` any shell line."""
    if depth >= _MOST_ALIASES:
        yield _unsure(push)
        return
    rest = shlex.join(push.words)
    line = f"{meant[1:]} {rest}" if meant.startswith("!") else f"git {meant} {rest}"
    for reason, sure in _judged(line, push.folder, branches, depth + 1):
        yield f"`{push.shown}` is an alias, and {reason}", sure


def _subcommand(part: SimpleCommand) -> tuple[str | None, list[str], str]:
    """What git is told to do, with which words, and the folder that `-C` names; None when it cannot be told."""
    words, at, folder = list(part.words), 1, ""
    while at < len(words) and words[at].startswith("-"):
        taken = take(words[at : at + 1], _GLOBAL)
        if taken is None:
            taken = take(words[at : at + 2], _GLOBAL)
            at += 1
        if taken is None or at in part.unknown:
            return None, words[at:], folder
        for option, value in taken.options:
            if option == "-C":
                folder = join(folder, value)
            elif option in ("-c", "--config-env") and value.lower().startswith(
                ("alias.", "push.", "remote.", "branch.")
            ):
                return None, words[at:], folder
        at += 1
    if at >= len(words):
        return "", [], folder
    return None if at in part.unknown else words[at], words[at + 1 :], folder


def _moved_to(words: Sequence[str]) -> str:
    names = [word for word in words if not word.startswith("-")]
    return names[0] if names else ""


def _pushed(push: _Push, branches: Sequence[str]) -> Iterator[tuple[str, bool]]:
    if push.command == "subtree":
        if push.words[:1] == ["push"] and _protected(_short(push.words[-1].rpartition(":")[2]), branches):
            yield f"`{push.shown}` pushes to a protected branch", True
        return
    taken = take([_whole(word, _PUSH) for word in push.words], _PUSH) if push.command else None
    names = {option for option, _ in taken.options} if taken else set()
    if taken is None:
        if push.command or any("push" in word for word in push.part.words):
            yield _unsure(push)
    elif names & _EVERYTHING:
        yield f"`{push.shown}` pushes every branch, and `{branches[0]}` is protected", True
    else:
        yield from _pushed_refs(push, taken, names, branches)


def _pushed_refs(
    push: _Push, taken: ParsedOptions, names: set[str], branches: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    if push.part.unknown:
        yield _unsure(push)
    specs = taken.operands if "--repo" in names else taken.operands[1:]
    config = read_git_config(push.folder)
    current = config.branch if push.current is None else push.current
    remote = _remote(taken, config, current)
    if not config.complete:
        yield _unsure(push)
    if not specs and "--tags" not in names:
        specs = _by_default(config, remote, current)
    for target in _targets(_mapped(specs, config, remote), current):
        if target is None:
            yield _unsure(push)
        elif _protected(target, branches):
            yield f"`{push.shown}` pushes to `{target}`, a protected branch", True


def _remote(taken: ParsedOptions, config: GitConfig, current: str | None) -> str:
    """The remote that a push goes to."""
    named = next((value for option, value in taken.options if option == "--repo"), None)
    return (
        (taken.operands[0] if taken.operands else named)
        or config.get(f"branch.{current}.pushremote")
        or config.get("remote.pushdefault")
        or config.get(f"branch.{current}.remote")
        or "origin"
    )


def _by_default(config: GitConfig, remote: str, current: str | None) -> tuple[str, ...]:
    """What `git push` pushes when it is told nothing: the settings say."""
    if (config.get(f"remote.{remote}.mirror") or "").lower() in ("true", "yes", "on", "1"):
        return (":",)
    configured = tuple(config.all(f"remote.{remote}.push"))
    if configured:
        return configured
    default = (config.get("push.default") or "simple").lower()
    if default == "matching":
        return (":",)
    if default in ("upstream", "tracking"):
        upstream = config.get(f"branch.{current}.merge")
        return (f"HEAD:{upstream}",) if upstream else ("HEAD",)
    return () if default == "nothing" else ("HEAD",)


def _mapped(specs: Sequence[str], config: GitConfig, remote: str) -> Iterator[str]:
    """Refspecs as the remote's own settings complete them: one without a target may be given another."""
    configured = [spec.removeprefix("+").partition(":") for spec in config.all(f"remote.{remote}.push")]
    for spec in specs:
        yield spec
        if ":" in spec:
            continue
        source = _short(spec.removeprefix("+"))
        for pattern, colon, target in configured:
            found = name_expression(_short(pattern)).fullmatch(source)
            if colon and found:
                yield f"{source}:{target}"


def _unsure(push: _Push) -> tuple[str, bool]:
    return f"whether `{push.shown}` pushes to a protected branch cannot be told", False


def _whole(word: str, options: ReadOnlyOptions) -> str:
    """An abbreviated long option written out, when it can only mean one."""
    name, sign, value = word.partition("=")
    meant = (
        [option for option in options.options if option.startswith(name)]
        if name.startswith("--") and name != "--"
        else []
    )
    return f"{meant[0]}{sign}{value}" if len(meant) == 1 and name not in options.options else word


def _targets(specs: Iterable[str], current: str | None) -> Iterator[str | None]:
    """The branches that refspecs write to; None for one that cannot be told."""
    tag = False
    for spec in specs:
        if tag or spec == "tag" or spec.startswith("^"):
            tag = spec == "tag" and not tag
            continue
        source, colon, target = spec.removeprefix("+").partition(":")
        if colon and not source and not target:
            yield "*"
            continue
        name = target if colon else source
        yield current if name in ("HEAD", "@") else _short(name)


def _short(name: str) -> str:
    return name.removeprefix("refs/").removeprefix("heads/")


def _protected(target: str, branches: Sequence[str]) -> bool:
    """Whether a branch, or a pattern of branches, is or may be one of the protected ones."""
    return any(
        name_expression(branch).fullmatch(target)
        or ("*" in target and name_expression(target).fullmatch(branch.replace("*", "x")))
        for branch in branches
    )
