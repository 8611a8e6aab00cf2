"""Commands an agent may not run, or the only ones it may: judged on every simple command of the parsed line.

Patterns are permission-rule patterns (`rm -rf *`, `git push *`); short flags are compared as a set, so `rm -r -f` and
`rm -fr` are `rm -rf`. What reading alone cannot decide (`$x -rf /`, `eval "$y"`, `python -c …`) is never passed over:
it is asked about, or denied, as the user chose.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import PathContext, Rule, RuleMatch, covers, parse_rule, part_caught
from hookline.core.shell import ShellLine, SimpleCommand, parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELLS, names
from hookline.core.shell.shell_line import LATER
from hookline.core.shell.targets import written_by
from hookline.errors import HookError
from hookline.events import PostToolUse, PostToolUseFailure, PreToolUse
from hookline.guards import sandboxing
from hookline.guards.off_loop import judge_lines
from hookline.guards.permissions.path_on_disk import fold_confusables
from hookline.guards.permissions.readonly_commands import find_unknown_options
from hookline.guards.sandboxing import Confine
from hookline.guards.tool_inputs import Line, lines_of
from hookline.replies import Reply, ask, deny
from hookline.sandbox.patterns import STAR, CommandPattern, operands_fit
from hookline.sandbox.policy import Policy


class GuardPattern(msgspec.Struct, frozen=True):
    """One pattern, ready to be held against commands."""

    text: str
    rule: Rule
    command: CommandPattern
    mention: re.Pattern[str]
    needle: str  # what any command that is meant must contain, in small letters
    label: str = ""  # what stands behind the pattern in a reason


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
    command, rule = CommandPattern(text), parse_rule(f"Bash({text.strip()})")
    return GuardPattern(text, rule, command, mention, command.name.partition(STAR)[0].lower().rpartition("/")[2])


def matches_command(pattern: GuardPattern, part: SimpleCommand) -> RuleMatch:
    """Whether one simple command falls under a pattern, its flags in any order and spelling."""
    if not part.words:
        return RuleMatch.NO
    worth = pattern.command.names(part.name) and (part.unknown or pattern.command.may_take(part.words))
    fits = _fits(pattern.command, part) if worth else RuleMatch.NO
    return fits if fits is RuleMatch.YES else max(fits, part_caught(pattern.rule.pattern or "", part))


def _fits(pattern: CommandPattern, part: SimpleCommand) -> RuleMatch:
    flags, operands, is_open = pattern.sort(part.name, part.words[1:], [index - 1 for index in part.unknown])
    here = pattern.has_flags(flags)
    if here and operands_fit(pattern.operands, operands, unsure=False):
        return RuleMatch.YES
    may = (here or is_open) and bool(part.unknown) and operands_fit(pattern.operands, operands, unsure=True)
    return RuleMatch.MAYBE if may else RuleMatch.NO


Undecided = Literal["ask", "deny"]
Doubted = Callable[[str], Reply]
"""How a doubt is answered."""
SHELL_TOOLS = "[Bb]ash|Monitor|[Ss]hell|[Tt]erminal|[Cc]ommand|[Ee]xec|mcp__.*"
"""The tools that run shell lines, and every MCP tool: what it is given is looked at, not what it is called."""
PRIORITY = 100
_TEXT = names("text")
_MAKERS = frozenset({"cp", "ln", "mv", "install", "rsync", "scp", "dd", "tee", "sponge", "curl", "wget"})
"""Programs that make a file of what is there already, or of a text."""
_SHELL = re.compile(f"{SHELL_TOOLS}(?:cmd|[Rr]un|[Ss]pawn|[Pp]rocess|[Ss]sh)")
_NAME_COMMANDS = frozenset({"SlashCommand", "Skill"})  # tools whose `command` is not a shell line


def block(
    patterns: Iterable[str] | Mapping[str, str],
    *,
    undecided: Undecided = "ask",
    confine: Confine = None,
    match: str = SHELL_TOOLS,
    name: str = "commands.block",
) -> Hook:
    """Deny any line that would run one of these commands: `commands.block(["rm -rf *", "sudo *"])`.

    With `confine="auto"` a line that reading cannot decide is not asked about where the kernel can hold it: it runs
    confined, and each program is judged as it starts. Hookline's own agent does that unless `confine="off"`. A mapping
    has for each pattern what is said behind it.
    """
    labels = patterns if isinstance(patterns, Mapping) else {}
    known = [msgspec.structs.replace(pattern_of(text), label=labels.get(text, ""))
             for text in at_least_one(patterns, "non-empty pattern")]  # fmt: skip
    policy = Policy(None, block=tuple(each.text for each in known), block_guard=name)
    doubted = answer_to_doubts(undecided)

    def judge_line(line: Line) -> Reply | None:
        return judged(line.text, known, doubted if line.certain else None)

    async def judge(event: PreToolUse | PostToolUse | PostToolUseFailure) -> Reply | None:
        if not isinstance(event, PreToolUse):
            return sandboxing.afterwards(event, name) if sandboxing.wanted(confine) else None
        if not sandboxing.applies_to(event, confine):
            return await judge_lines(shell_lines(event), judge_line)
        line = Line(sandboxing.line_of(event), certain=False)  # what is doubtful is left to the kernel
        return await judge_lines([line], judge_line) or sandboxing.hold(event, policy)

    events = (PreToolUse,) if sandboxing.checked(confine) == "off" else (PreToolUse, *sandboxing.AFTERWARDS)
    hook = make_hook(events, judge, match=match, name=name, priority=PRIORITY)
    return msgspec.structs.replace(hook, confines=confine == "auto")


def only(
    patterns: Iterable[str], *, undecided: Undecided = "deny", match: str = SHELL_TOOLS, name: str = "commands.only"
) -> Hook:
    """Deny any line that would run anything else: `commands.only(["ls *", "git status", "pytest *"])`.

    A line that also writes to a file by redirection is refused: no pattern says anything about that.
    """
    rules = [pattern_of(text).rule for text in at_least_one(patterns, "non-empty pattern")]
    listed = ", ".join(f"`{rule.pattern}`" for rule in rules)
    doubted = answer_to_doubts(undecided)

    def judge_line(line: Line) -> Reply | None:
        parsed = parse_line(line.text)
        strange = [*parsed.undecidable, *parsed.evaluates]
        if not strange and covers(rules, "Bash", {"command": line.text}, PathContext()) is not None:
            strange = list(find_unknown_options(parsed, rules))
        elif not strange:
            names = ", ".join(f"`{part.raw or part.text}`" for part in parsed.commands) or f"`{line.text}`"
            return deny(f"only {listed} may be run here, and nothing redirected to a file; not {names[:500]}")
        return _doubted(doubted, line.text, strange)

    async def judge(event: PreToolUse) -> Reply | None:
        return await judge_lines([line for line in shell_lines(event) if line.certain], judge_line)

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def containing(texts: Iterable[str], *, match: str = SHELL_TOOLS, name: str = "commands.containing") -> Hook:
    """Deny any line that contains one of these texts, wherever it stands.

    Looked for in the line as it is written, with white space and quotes taken out of the way, and in each of its
    commands. A text that the line only builds when it runs is not found: for that there is `block`.
    """
    words = at_least_one(texts, "non-empty text")

    def judge_line(line: Line) -> Reply | None:
        seen = list(_spellings(line.text))
        found = next((word for word in words if any(word in one for one in seen)), None)
        return None if found is None else deny(f"command contains forbidden pattern: {found}")

    async def judge(event: PreToolUse) -> Reply | None:
        return await judge_lines(shell_lines(event), judge_line)

    return make_hook((PreToolUse,), judge, match=match, name=name, priority=PRIORITY)


def _spellings(line: str) -> Iterator[str]:
    """A line as written, as it looks, and each command in it as it will run."""
    yield line
    yield " ".join(fold_confusables(line).split())
    for part in parse_line(line).commands:
        yield part.text
        yield " ".join((part.name, *part.words[1:]))


def judged(line: str, patterns: Sequence[GuardPattern], doubted: Doubted | None) -> Reply | None:
    """What a line's commands mean under the patterns: a deny that names the command, a doubt, or nothing.

    Without `doubted`, doubts are left to another guard, which knows more.
    """
    parsed = parse_line(line)
    doubts = [*parsed.undecidable, *parsed.code, *_runs_what_it_makes(parsed)]
    for part in parsed.commands:
        text = fold_confusables(part.text).lower()  # patterns whose program it does not mention are not looked at
        for pattern in patterns if 0 in part.unknown else [one for one in patterns if one.needle in text]:
            caught = matches_command(pattern, part)
            if caught is RuleMatch.YES:
                return deny(f"`{part.text[:200]}` is blocked by the pattern `{pattern.text}`{pattern.label}")
            if caught is RuleMatch.MAYBE:
                doubts.append(f"`{part.raw or part.text}` may be `{pattern.text}`, depending on what is expanded")
            elif _looks_like_match(pattern, part):
                doubts.append(f"`{part.text[:200]}` looks like `{pattern.text}`")
            elif _handed_on(pattern, part):
                doubts.append(f"`{part.name}` may run what it is given, which looks like `{pattern.text}`")
    return _doubted(doubted, line, doubts) if doubted else None


def _runs_what_it_makes(parsed: ShellLine) -> Iterator[str]:
    """A line that makes a file and runs it: it may hold any text, or be another program under a name of its own."""
    made = {path for part in parsed.commands for path in _made(part)} - {"."}
    for part in parsed.commands if made else ():
        reads_files = not part.wraps and (part.name in SHELLS or language_of(part.name))
        runs = part.words if reads_files else part.words[:1]
        for at, word in enumerate(runs):
            here = f"/{_bare(word)}"
            by_name = not at and "/" not in word  # looked for in the folders of PATH
            ends = (f"/{path}" for path in made if not by_name or path.rpartition("/")[0].endswith("bin"))
            if any(here.endswith(path) or path.endswith(here) for path in ends):
                yield f"`{part.text[:200]}` runs `{word}`, which this line makes"


def _made(part: SimpleCommand) -> Iterator[str]:
    """The files that a command makes of a text, of another file or of what it downloads."""
    yield from (_bare(each.target) for each in part.redirects if each.writes)
    if part.name in _MAKERS:
        yield from (_bare(path) for path in written_by(part))
    if part.name in ("curl", "wget"):  # the last part of an address may be the name of the file
        yield from (_bare(word.partition("?")[0].rpartition("/")[2]) for word in part.words[1:] if "/" in word)


def _bare(path: str) -> str:
    return posixpath.normpath(path.removeprefix(LATER)).lstrip("/")


def _looks_like_match(pattern: GuardPattern, part: SimpleCommand) -> bool:
    """Whether the command would be caught if its signs were what they look like, capitals apart."""
    if not part.words or (part.name.islower() and part.text.isascii()):
        return False
    words = tuple(fold_confusables(word) for word in part.words)
    words = (words[0].lower().strip(), *words[1:])
    if words == part.words:
        return False
    seen = msgspec.structs.replace(part, name=words[0].rsplit("/", 1)[-1], words=words, raw="")
    return matches_command(pattern, seen) is not RuleMatch.NO


def _handed_on(pattern: GuardPattern, part: SimpleCommand) -> bool:
    """Whether a program that may be a wrapper is given the words, or the text, of a forbidden command."""
    if part.wraps or part.name in _TEXT or len(part.words) < 2:
        return False
    for index, word in enumerate(part.words[1:], 1):
        if (" " in word or "=" in word) and pattern.mention.search(fold_confusables(word)):
            return True
        program = word.rsplit("/", 1)[-1]
        if index not in part.unknown and pattern.command.names(program):
            later = tuple(at - index for at in part.unknown if at > index)
            rest = msgspec.structs.replace(part, name=program, words=part.words[index:], unknown=later, raw="")
            if matches_command(pattern, rest) is not RuleMatch.NO:
                return True
    return False


def shell_lines(event: PreToolUse) -> list[Line]:
    """The shell lines that a call is given; of one that a guard has confined, the line inside."""
    if event.tool_name in _NAME_COMMANDS:
        return []
    return lines_of(sandboxing.without_confinement(event), runs=_SHELL.search(event.tool_name) is not None)


def _doubted(answer: Doubted, line: str, doubts: Iterable[str]) -> Reply | None:
    told = "; ".join(dict.fromkeys(doubts))[:2000]
    return answer(f"cannot tell what `{line[:200]}` would run: {told}") if told else None


def answer_to_doubts(undecided: str, option: str = "undecided") -> Doubted:
    """What is answered where it cannot be told: `ask` or `deny`, and nothing else."""
    if undecided not in ("ask", "deny"):
        raise HookError(f"{option} must be `ask` or `deny`, got `{undecided}`")
    return ask if undecided == "ask" else deny


def at_least_one(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """What a guard was given, one text or several; none, or an empty one, is refused."""
    words = (texts,) if isinstance(texts, str) else tuple(texts)
    if not all(words) or not words:
        raise HookError(f"give at least one {what}")
    return words
