"""Command patterns such as `rm -rf *`, held against one simple command: its flags in any order and any spelling."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from hookline.core.hooks.condition import Rule, RuleMatch, parse_rule, part_caught
from hookline.core.shell import SimpleCommand, parse_line
from hookline.errors import HookError
from hookline.sandbox.patterns import STAR, CommandPattern, operands_fit


class GuardPattern(msgspec.Struct, frozen=True):
    """One pattern, ready to be held against commands."""

    text: str
    rule: Rule
    command: CommandPattern
    mention: re.Pattern[str]
    needle: str
    """What any command that is meant must contain, in small letters."""

    def names(self, name: str) -> bool:
        """Whether a program of this name is meant."""
        return self.command.names(name)


def _instead(text: str) -> str:
    """What to write in the place of a pattern that is several commands, or none."""
    if "|" not in text:
        return "write one pattern per command, such as `rm -rf *`"
    end = text.rpartition("|")[2].strip()
    return (
        "a pattern names one program as it starts, and a pipe starts several: block those that may not run at all "
        f"(`curl *`), or refuse the text with `commands.containing(['| {end}', '|{end}'])`"
    )


@lru_cache(maxsize=1024)
def pattern_of(text: str) -> GuardPattern:
    """Read one pattern; what is not a single command is refused."""
    if not text.strip():
        raise HookError("a command pattern is empty; write one such as `rm -rf *`")
    parsed = parse_line(text.replace(STAR, "x"))
    if sum(not part.via for part in parsed.commands) != 1 or not parsed.commands[0].words:
        raise HookError(f"`{text}` is not a single command; {_instead(text)}")
    mentioned = r"\s+".join(re.escape(word) for word in text.partition(STAR)[0].split())
    mention = re.compile(rf"(?<![\w-]){mentioned}(?![\w-])" if mentioned else "(?!)")
    command = CommandPattern(text)
    return GuardPattern(
        text=text,
        rule=parse_rule(f"Bash({text.strip()})"),
        command=command,
        mention=mention,
        needle=command.name.partition(STAR)[0].lower().rpartition("/")[2],
    )


def matches_command(pattern: GuardPattern, part: SimpleCommand) -> RuleMatch:
    """Whether one simple command falls under a pattern, its flags in any order and spelling."""
    if not part.words:
        return RuleMatch.NO
    worth = pattern.names(part.name) and (part.unknown or pattern.command.may_take(part.words))
    fits = _fits(pattern.command, part) if worth else RuleMatch.NO
    return fits if fits is RuleMatch.YES else max(fits, part_caught(pattern.rule.pattern or "", part))


def _fits(pattern: CommandPattern, part: SimpleCommand) -> RuleMatch:
    words = pattern.sort(part.name, part.words[1:], [index - 1 for index in part.unknown])
    here = pattern.has_flags(words.flags)
    if here and operands_fit(pattern.operands, words.operands, unsure=False):
        return RuleMatch.YES
    may = (here or words.open) and bool(part.unknown) and operands_fit(pattern.operands, words.operands, unsure=True)
    return RuleMatch.MAYBE if may else RuleMatch.NO
