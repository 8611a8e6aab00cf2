"""Commands an agent may not run, or the only ones it may: judged on every simple command of the parsed line.

Patterns are permission-rule patterns (`rm -rf *`, `git push *`); short flags are compared as a set, so `rm -r -f` and
`rm -fr` are `rm -rf`. What reading alone cannot decide (`$x -rf /`, `eval "$y"`) is never passed over: it is asked
about, or denied, as the user chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.hooks import Hook, make_hook
from hookline.hooks.condition import Catch, Place, Rule, covers, parse_rule
from hookline.hooks.shell import SimpleCommand, parse_line
from hookline.replies import Reply, ask, deny

Undecided = Literal["ask", "deny"]
SHELL_TOOLS = "Bash|Monitor|mcp__.*(?:bash|shell|exec|command).*"
PRIORITY = 100
_FIELDS = ("command", "cmd", "script")

_LONG_FLAGS = {
    "rm": {"--recursive": "r", "--force": "f", "--dir": "d"},
    "chmod": {"--recursive": "R"},
    "chown": {"--recursive": "R"},
    "cp": {"--recursive": "r", "--force": "f"},
    "git": {"--force": "f", "--force-with-lease": "f", "--hard": "--hard", "--delete": "d"},
    "curl": {"--output": "o", "--insecure": "k"},
}
_SAME_LETTER = {"rm": {"R": "r"}, "cp": {"R": "r"}}


class Pattern(msgspec.Struct, frozen=True):
    """One pattern, ready to be held against commands."""

    text: str
    rule: Rule
    name: str
    flags: frozenset[str]
    operands: tuple[str, ...]


def block(
    patterns: Iterable[str], *, undecided: Undecided = "ask", match: str = SHELL_TOOLS, name: str = "commands.block"
) -> Hook:
    """Deny any line that would run one of these commands: `commands.block(["rm -rf *", "sudo *"])`."""
    known = [_pattern(text) for text in patterns]

    async def judge(event: PreToolUse) -> Reply | None:
        return judged(_line_of(event), known, undecided)

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def only(
    patterns: Iterable[str], *, undecided: Undecided = "deny", match: str = SHELL_TOOLS, name: str = "commands.only"
) -> Hook:
    """Deny any line that would run anything else: `commands.only(["ls *", "git status", "pytest *"])`."""
    rules = [_pattern(text).rule for text in patterns]

    async def judge(event: PreToolUse) -> Reply | None:
        line = _line_of(event)
        parsed = parse_line(line)
        if parsed.undecidable or parsed.notes:
            return _undecided(undecided, line, (*parsed.undecidable, *parsed.notes))
        if covers(rules, "Bash", {"command": line}, Place()) is not None:
            return None
        names = ", ".join(f"`{part.text}`" for part in parsed.commands if part.words) or f"`{line}`"
        return deny(f"only {', '.join(f'`{rule.pattern}`' for rule in rules)} may be run here, not {names}")

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def containing(texts: Iterable[str], *, match: str = SHELL_TOOLS, name: str = "commands.containing") -> Hook:
    """Deny any line that contains one of these texts, wherever it stands (seeds/000's BlockBashPatternHook)."""
    words = _some(texts, "text")

    async def judge(event: PreToolUse) -> Reply | None:
        line = _line_of(event)
        return next((deny(f"command contains forbidden pattern: {word}") for word in words if word in line), None)

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def judged(line: str, patterns: Sequence[Pattern], undecided: Undecided) -> Reply | None:
    """What a line's commands mean under the patterns: a deny that names the command, a doubt, or nothing."""
    parsed = parse_line(line)
    doubts = list(parsed.undecidable)
    for part in parsed.commands:
        for pattern in patterns:
            caught = caught_by(pattern, part)
            if caught is Catch.YES:
                return deny(f"`{part.text}` is blocked by the pattern `{pattern.text}`")
            if caught is Catch.MAYBE:
                doubts.append(f"`{part.raw or part.text}` may be `{pattern.text}`, depending on what is expanded")
    return _undecided(undecided, line, doubts) if doubts else None


def caught_by(pattern: Pattern, part: SimpleCommand) -> Catch:
    """Whether one simple command falls under a pattern, its flags in any order and spelling."""
    if _flags_fit(pattern, part):
        return Catch.YES
    return pattern.rule.catches("Bash", {"command": part.raw}, Place()) if part.unknown else _plainly(pattern, part)


def _plainly(pattern: Pattern, part: SimpleCommand) -> Catch:
    found = pattern.rule.catches("Bash", {"command": part.text}, Place())
    return Catch.YES if found is Catch.YES else Catch.NO


def _flags_fit(pattern: Pattern, part: SimpleCommand) -> bool:
    if not pattern.flags or part.name != pattern.name:
        return False
    flags, operands = _split(part.name, part.words[1:])
    return pattern.flags <= flags and _operands_fit(pattern.operands, operands)


def _operands_fit(wanted: Sequence[str], given: Sequence[str]) -> bool:
    """Whether the words fit the pattern's in order; a closing `*` takes any rest, none included."""
    for index, want in enumerate(wanted):
        if want == "*" and index == len(wanted) - 1:
            return True
        if index >= len(given) or not _fits(want, given[index]):
            return False
    return len(given) == len(wanted)


def _fits(want: str, word: str) -> bool:
    from fnmatch import fnmatchcase  # only for patterns with operands

    return fnmatchcase(word, want)


def _split(name: str, words: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    """A command's flags as a set, `-rf` and `--recursive --force` alike, and its other words."""
    long, same = _LONG_FLAGS.get(name, {}), _SAME_LETTER.get(name, {})
    flags: set[str] = set()
    operands: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            operands += words[index + 1 :]
            break
        if word.startswith("--"):
            plain = word.partition("=")[0]
            flags.add(long.get(plain, plain))
        elif word.startswith("-") and len(word) > 1:
            flags.update(same.get(letter, letter) for letter in word[1:])
        else:
            operands.append(word)
    return frozenset(flags), operands


def _pattern(text: str) -> Pattern:
    if not text.strip():
        raise HookError("a command pattern is empty; write one such as `rm -rf *`")
    parsed = parse_line(text.replace("*", "x"))
    if sum(not part.via for part in parsed.commands) != 1 or parsed.undecidable:
        raise HookError(f"`{text}` is no single command; write one pattern per command, such as `rm -rf *`")
    words = text.split()
    flags, operands = _split(words[0], words[1:])
    return Pattern(text, parse_rule(f"Bash({text.strip()})"), words[0], flags, tuple(operands))


def _line_of(event: PreToolUse) -> str:
    given: dict[str, Any] = event.tool_input
    return next((given[field] for field in _FIELDS if isinstance(given.get(field), str)), "")


def _undecided(choice: Undecided, line: str, doubts: Iterable[str]) -> Reply:
    answer = {"ask": ask, "deny": deny}[choice]
    return answer(f"cannot tell what `{line[:200]}` would run: {'; '.join(dict.fromkeys(doubts))}")


def _some(texts: Iterable[str], what: str) -> tuple[str, ...]:
    words = (texts,) if isinstance(texts, str) else tuple(texts)
    if not words or not all(words):
        raise HookError(f"give at least one non-empty {what}")
    return words
