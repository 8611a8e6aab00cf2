"""The smallest policy that would have asked less, from what was recorded: from calls that ran, never refused ones."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hookline.core.hooks.condition import ARGUMENTS, EDITING, canonical, domain_of, harmless
from hookline.core.paths import absolute, inside
from hookline.core.shell import SimpleCommand
from hookline.core.shell.targets import join
from hookline.events import PreToolUse
from hookline.guards import learned_words as grammar
from hookline.guards.learned import CommandRule, LearnedPolicy, ToolRule, run_of, shows, written
from hookline.guards.permissions import decide
from hookline.guards.permissions.readonly_commands import WorkingFolders
from hookline.guards.permissions.rules import Rules
from hookline.guards.pure_code import code_of
from hookline.records.replay.compare import record_files
from hookline.records.replay.reader import calls, finished, is_within
from hookline.sandbox.places import read_table

_TEMPORARY = "/tmp"  # noqa: S108 - a folder that commands are seen to use
_SECRET_FILES = (".env*", "*.pem", "*.key", ".npmrc", ".netrc", ".pypirc")
_OUTPUT = frozenset({"-o", "--out", "--output", "--outfile"})
TWICE = 2
MOST_EXACT = 20  # whole commands that one rule lists; a program with more is used in too many ways to be learned


class Evidence(NamedTuple):
    """A call that ran: what it was, where, and on which day."""

    tool: str
    given: Mapping[str, Any]
    cwd: str
    day: str


class Lesson(NamedTuple):
    """What was learned: the policy, how many questions there were, and how many of them it would have spared."""

    policy: LearnedPolicy
    questions: int
    spared: int
    dropped: tuple[str, ...]
    """Rules that were not kept because they would have allowed an attack or something that was refused."""


def learn(
    ran: Sequence[Evidence], refused: Iterable[Evidence], *, project: str, home: str, least: int = 3,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    attacks: Iterable[Evidence] | None = None,
) -> Lesson:  # fmt: skip
    """Learn from the calls that ran; what was refused, and every attack (the shipped ones), stays asked about."""
    ran = [call._replace(cwd=absolute(call.cwd or ".", project, home)) for call in ran]
    questions = _those(ran, lambda call: is_question(call, project, home, rules))
    folders = WorkingFolders(project, (project,), home)
    parts = list(_rows(call for call in questions if _is_line(call.tool)))
    read = _read_folders(parts, folders, least)
    wider = WorkingFolders(project, (project, *read), home)
    write = _write_folders(parts, folders, least)
    asked = [row for row in parts if not (harmless(row[0]) or shows(row[0], row[1], wider))]
    policy = LearnedPolicy(
        read=tuple(_shown(folder, folders) for folder in read),
        look=tuple(_shown(folder, folders) for folder in _read_folders(parts, folders, least, names=True)),
        write=tuple(_shown(folder, folders) for folder in write),
        hosts=_hosts(questions, least),
        protect=_secret_files(project, ran),
        commands=tuple(_command_rules(asked, folders, least)),
        tools=tuple(_tool_rules(questions, folders, least)),
    )
    unwanted = [*refused, *(shipped_attacks(project) if attacks is None else attacks)]
    policy, dropped = _without_attacks(policy, unwanted, project, home)
    spared = _those(questions, lambda call: bool(policy.covering(call.tool, call.given, call.cwd, [project], home)))
    return Lesson(policy, len(questions), len(spared), dropped)


def _those(calls: Iterable[Evidence], judge: Callable[[Evidence], bool]) -> list[Evidence]:
    """The calls that are judged so; a log has the same ones again and again, which are looked at once."""
    known: dict[tuple[str, str, str], bool] = {}
    found: list[Evidence] = []
    for call in calls:
        key = call.tool, written(call.given), call.cwd
        if key not in known:
            known[key] = judge(call)
        found += [call] if known[key] else []
    return found


def gather(
    paths: Iterable[str | Path], since: datetime | None = None, until: datetime | None = None
) -> tuple[list[Evidence], list[Evidence]]:
    """The calls in logs and transcripts that ran, and those that were refused; of the rest it is not known."""
    ran: list[Evidence] = []
    refused: list[Evidence] = []
    for path in record_files(paths):
        done = finished(path)
        for call in calls(path):
            event = call.event
            if not isinstance(event, PreToolUse) or call.partial or not is_within(call.time, since, until):
                continue
            found = Evidence(event.tool_name, event.tool_input, event.cwd, call.time[:10])
            if call.decided == "deny" or call.rejected:
                refused.append(found)
            elif call.ran or (event.tool_use_id and event.tool_use_id in done):
                ran.append(found)
            elif call.decided == "ask":
                refused.append(found)
    since_then = {(call.tool, written(call.given)): call.day for call in sorted(ran, key=lambda call: call.day)}
    return ran, [call for call in refused if since_then.get((call.tool, written(call.given)), "") <= call.day]


def is_question(call: Evidence, project: str, home: str, rules: Rules) -> bool:
    """Whether a person is asked about a call where nothing but these rules decides."""
    found = decide(
        call.tool, call.given, rules=rules, cwd=call.cwd, dirs=[project], home=home, project_dir=project,
        read_only=canonical(call.tool) in ("Read", "Grep", "Glob", "LS"), edits=call.tool in EDITING,
    )  # fmt: skip
    return found.behaviour == "ask"


def shipped_attacks(project: str) -> list[Evidence]:
    """The attack lines that come with Hookline."""
    text = files("hookline.records").joinpath("attacks.txt").read_text("utf-8")
    return [Evidence("Bash", {"command": msgspec.json.decode(line)}, project, "") for line in text.splitlines() if line]


def _is_line(tool: str) -> bool:
    field = ARGUMENTS.get(canonical(tool))
    return field is not None and field.kind == "command"


Row = tuple[SimpleCommand, Sequence[str], int, str]
"""A command, the folders it may run in, how often it was seen, and the last day."""


def _rows(calls: Iterable[Evidence]) -> Iterator[Row]:
    days: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for call in calls:
        days[str(call.given.get("command")), call.cwd].append(call.day)
    for (line, cwd), seen in days.items():
        for part, bases in grammar.known_parts(line):
            yield part, [join(cwd, base) for base in bases], len(seen), max(seen)


def _read_folders(rows: Iterable[Row], folders: WorkingFolders, least: int, *, names: bool = False) -> list[str]:
    """Folders outside the project where commands only read (or tell names), seen with `least` different paths each."""
    anywhere = WorkingFolders(folders.cwd, ("/",), folders.home)
    seen: defaultdict[str, set[str]] = defaultdict(set)
    files: Counter[str] = Counter()
    for part, bases, number, _ in rows:
        if (names and part.name not in grammar.TELLS) or part.unknown or shows(part, bases, folders):
            continue
        if not shows(part, bases, anywhere):
            continue
        words = [word for word in part.words[1:] if grammar.kind_of(word) is grammar.PATH]
        places = (path for word in words for path in _places(word, bases, folders))
        for path in (path for path in places if not inside(path, folders.cwd)):
            files[path] += number
            for folder in _parents(path, folders.home, names=names):
                seen[folder].add(path)
    kept: list[str] = []
    secrets = [absolute(place.partition("=")[0], "/", folders.home) for place in read_table("secrets")]
    small = (path for path, number in files.items() if number >= least and any(_parents(path, folders.home)))
    known = [path for path in small if not grammar.SECRET_NAME.search(path)]
    for folder in sorted([*(folder for folder, paths in seen.items() if len(paths) >= least), *known], key=len):
        is_secret = any(inside(folder, place) or (inside(place, folder) and not names) for place in secrets)
        above = [other for other in kept if inside(folder, other)]
        is_kept = any(other[-1] != "/" or folder.count("/") == other.count("/") for other in above)
        if not is_secret and not is_kept:
            kept.append(folder)
    return kept


def _write_folders(rows: Iterable[Row], folders: WorkingFolders, least: int) -> list[str]:
    """To which files commands redirected what they show, `least` times each: a folder's, with one ending."""
    counted: Counter[str] = Counter()
    for part, bases, number, _ in rows:
        targets = [each.target for each in part.redirects if each.writes and each.known]
        for path in (path for target in targets for path in _places(target, bases, folders)):
            folder, ending = _top(path, folders), Path(path).suffix
            if folder and ending in grammar.DATA and not grammar.steers(path):
                counted[f"{folder}*{ending}" if folder.endswith("/") else f"{folder}/**/*{ending}"] += number
    return sorted(files for files, number in counted.items() if number >= least)


def _places(word: str, bases: Sequence[str], folders: WorkingFolders) -> list[str]:
    return [absolute(join(base, word), folders.cwd, folders.home) for base in bases]


def _parents(path: str, home: str, *, names: bool = False) -> Iterator[str]:
    """The folders of a path that are small enough to be granted: two steps below home, three below the root."""
    if path.startswith(("/dev/", "/proc/", "/sys/", "/run/")):
        return
    if path.rpartition("/")[0] == _TEMPORARY:
        yield f"{_TEMPORARY}/"  # the files right in it
    base = home if inside(path, home) else ""
    steps = path[len(base) :].strip("/").split("/")
    hidden = max((at for at, step in enumerate(steps) if step.startswith(".")), default=-1)
    for end in range(max(2 if base else 3, hidden + 2) - names, len(steps) + 1):
        yield f"{base}/{'/'.join(steps[:end])}"


def _shown(path: str, folders: WorkingFolders) -> str:
    if inside(path, folders.cwd):
        relative = path[len(folders.cwd) :]
        return f".{relative}" if relative[:2] in ("", "/", "/*") else relative[1:]
    return f"~{path[len(folders.home) :]}" if inside(path, folders.home) else path


def _command_rules(rows: Iterable[Row], folders: WorkingFolders, least: int) -> Iterator[CommandRule]:
    heads: defaultdict[str, list[Row]] = defaultdict(list)
    wholes: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        part = row[0]
        words = grammar.head_of(part)
        unknown = (word.option for word in grammar.positions(part, len(words)) if word.is_unknown)
        is_code = code_of(part) is not None and part.words[1] != "-m"
        is_odd = part.stdin is not None or not part.words or is_code or not grammar.is_spelt_out(part)
        if is_odd or not all(grammar.is_prose(" ".join(words), option) for option in unknown):
            continue
        head = run_of(words, row[1], folders)
        (heads[grammar.family_of(head) or head] if head else wholes[part.name]).append(row)
    for run in [run for run in heads if run.count("/") > 1 and run.partition(" ")[2].startswith("./")]:
        heads[f"{run.rpartition('/')[0]}/"] += heads[run]  # scripts of one folder below the project
    rooms = _ran_in((row for head, found in heads.items() if grammar.is_at_home(head) for row in found), folders, least)
    for head, found in sorted(heads.items()):
        seen = sum(row[2] for row in found)
        varied = len({grammar.head_of(row[0])[1] for row in found}) if head.endswith("/") else seen
        if min(seen, varied) >= least:
            rule = _generalised(head, found, seen, folders, least)
            at = {*rule.at, *(rooms if grammar.is_at_home(head) else ())}
            yield msgspec.structs.replace(rule, at=tuple(sorted(at)))
    for name, found in sorted(wholes.items()):
        yield from _exact(name, found, folders, least)


def _exact(name: str, rows: Sequence[Row], folders: WorkingFolders, least: int) -> Iterator[CommandRule]:
    """A rule for the whole commands that were seen `least` times."""
    counted: Counter[str] = Counter()
    for part, _, number, _ in rows:
        counted[grammar.whole(part)] += number
    exact = tuple(sorted(text for text, number in counted.items() if number >= least))
    if 0 < len(exact) <= MOST_EXACT:
        kept = [row for row in rows if grammar.whole(row[0]) in exact]
        seen, last = sum(row[2] for row in kept), max(row[3] for row in kept)
        yield CommandRule(name, at=_ran_in(kept, folders, least), exact=exact, seen=seen, last=last)


def _generalised(head: str, rows: Sequence[Row], seen: int, folders: WorkingFolders, least: int) -> CommandRule:
    """One rule for a program and subcommand: words that were seen twice, and kinds where `least` values differ."""
    flags = [text for row in rows for text in _flags(row[0], len(grammar.head_of(row[0])))]
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    paths: defaultdict[str, set[str]] = defaultdict(set)
    valued: set[str] = set()
    files: set[str] = set()
    for part, bases, number, _ in rows:
        for word in grammar.positions(part, len(grammar.head_of(part)), flags):
            is_path = word.is_path or (grammar.kind_of(word.text) is grammar.PATH and word.text != os.devnull)
            varies = is_path and (word.is_path or grammar.may_vary(head, word.option))
            files |= {word.text} if word.is_path else set()
            for where in _places(word.text, bases, folders) if varies else ():
                paths[_top(where, folders)].add(where)
            valued |= {f"{word.option} {grammar.PATH}"} if varies and word.option else set()
            if not is_path or _inside(word.text, bases, folders):
                counted[word.option][word.text] += number
    found = [folder for folder, there in paths.items() if folder and len(there) >= min(least, TWICE)]
    found = _widened(found, paths, head, folders, least)
    for words in (words for option, words in counted.items() if grammar.may_vary(head, option)):
        for text in [text for text in words if text in files or grammar.kind_of(text) is grammar.PATH]:
            top = _top(absolute(text, folders.cwd, folders.home), folders)
            if top in found or (top and folders.cwd in found and inside(top, folders.cwd)):
                del words[text]  # its folder says so already
    named = [*valued, *(text for option, words in counted.items() for text in _named(head, option, words, least))]
    return CommandRule(
        head,
        tuple(sorted(text for text in named if text.startswith("-"))),
        tuple(sorted(text for text in named if not text.startswith("-"))),
        tuple(sorted(_shown(folder, folders) for folder in found)),
        _ran_in(rows, folders, least),
        seen=seen,
        last=max(row[3] for row in rows),
    )


def _widened(found: list[str], seen: Iterable[str], head: str, folders: WorkingFolders, least: int) -> list[str]:
    """These folders, or the project where `least` of them lie in it; what removes files stays where it was seen."""
    is_wide = head in grammar.WIDE
    within = [folder for folder in (seen if is_wide else found) if folder and inside(folder, folders.cwd)]
    if len(within) < (1 if is_wide else max(least, TWICE)) or head in ("rm", "rmdir", "mv"):
        return found
    return [folders.cwd, *(folder for folder in found if not inside(folder, folders.cwd))]


def _named(head: str, option: str, words: Counter[str], least: int) -> Iterator[str]:
    """What a rule names of the words that follow an option, or none: the words themselves, or their kind."""
    prefix = f"{option} " if option else ""
    if option and grammar.is_prose(head, option):
        yield f"{prefix}{grammar.TEXT}"
        return
    kinds: defaultdict[str | None, list[str]] = defaultdict(list)
    for text in words.keys() - grammar.KINDS:
        kinds["option" if text.startswith("-") and not option else grammar.kind_of(text, head)].append(text)
    for kind, texts in kinds.items():
        if head in grammar.SCRIPTS and kind in (None, grammar.NAME):
            yield from (text for text in texts if not text and not option)  # `sed -i ''`
            continue
        if kind == grammar.URL:
            origins: Counter[str] = Counter()
            for text in texts:
                origins[grammar.origin_of(text, option)] += words[text]
            yield from (origin for origin, number in origins.items() if number >= least)
            continue
        is_named = (option and option not in _OUTPUT) or head.endswith(grammar.SHOWS)
        varies = kind == grammar.ID or (kind == grammar.NAME and is_named)
        may = grammar.may_vary(head, option if kind == grammar.NAME else "")
        if may and (kind in (grammar.NUMBER, grammar.SCRIPT) or (varies and len(texts) >= least)):
            yield f"{prefix}{kind}"
            continue
        yield from (f"{prefix}{text}" for text in texts if words[text] >= TWICE)


def _ran_in(rows: Iterable[Row], folders: WorkingFolders, least: int) -> tuple[str, ...]:
    """Folders that these commands ran in, `least` times each: of the project the first below it, where it is below."""
    counted: Counter[str] = Counter()
    for _, bases, number, _ in rows:
        for path in _places(".", bases, folders):
            is_named = inside(path, folders.cwd) or any(_parents(path, folders.home))
            counted[_top(f"{path}/.", folders) if inside(path, folders.cwd) else path] += number * is_named
    return tuple(sorted(_shown(path, folders) for path, n in counted.items() if path and n >= least))


def _inside(word: str, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether a path lies in the project, and no part of it is hidden."""
    places = _places(word, bases, folders)
    return bool(places) and all(
        inside(path, folders.cwd) and "/." not in path[len(folders.cwd) :].replace("/...", "") for path in places
    )


def _flags(part: SimpleCommand, start: int) -> list[str]:
    """Options that take no value: another option follows, or nothing."""
    last = [word for word, after in pairwise([*part.words[start:], "-"]) if after.startswith("-")]
    return [word for word in last if word.startswith("-") and len(word) > 1 and "=" not in word]


def _top(path: str, folders: WorkingFolders) -> str:
    """The folder that a path stands for: the first one below the project, or its parent elsewhere; none if hidden."""
    if inside(path, folders.cwd):
        first, _, rest = path[len(folders.cwd) :].strip("/").partition("/")
        return "" if first[:1] in ("", ".") else f"{folders.cwd}/{first if rest else ''}"
    parent = path.rpartition("/")[0]
    if parent == _TEMPORARY:
        return f"{parent}/"
    small = next(_parents(path, folders.home), "")
    return parent if small and inside(parent, small) and not inside(folders.cwd, parent) else ""


def _tool_rules(calls: Iterable[Evidence], folders: WorkingFolders, least: int) -> Iterator[ToolRule]:
    found: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for call in calls:
        if not _is_line(call.tool):
            key, text = _main_argument(call, folders)
            found[call.tool, key].append((text, call.day))
    for (tool, key), rows in sorted(found.items()):
        counted = Counter(text for text, _ in rows)
        kept = tuple(sorted(text for text, number in counted.items() if text and number >= least))
        if kept:
            last = max(day for text, day in rows if text in kept)
            fields = {"tool": tool, key: kept, "seen": sum(counted[text] for text in kept), "last": last}
            yield msgspec.convert(fields, ToolRule)


def _main_argument(call: Evidence, folders: WorkingFolders) -> tuple[str, str]:
    """What a rule would name of a call: the folder of its path, the host of its address, or the whole input."""
    field = ARGUMENTS.get(canonical(call.tool))
    value = str(call.given.get(field.name, "")) if field else ""
    if field and field.kind == "domain":
        return "hosts", domain_of(value)
    if field and field.kind in ("path", "folder"):
        path = absolute(value, call.cwd, folders.home)
        top = _top(path, folders) if inside(path, folders.cwd) else ""
        return "folders", _shown(top, folders) if top else ""
    return "inputs", written(call.given)


def _hosts(calls: Iterable[Evidence], least: int) -> tuple[str, ...]:
    counted: Counter[str] = Counter()
    for call in calls:
        texts = [word for part, _ in grammar.known_parts(str(call.given.get("command", ""))) for word in part.words]
        hosts = {domain_of(text) for text in (*texts, str(call.given.get("url", ""))) if "://" in text}
        counted.update(host for host in hosts if host)
    return tuple(sorted(host for host, number in counted.items() if number >= least))


def _secret_files(project: str, ran: Iterable[Evidence]) -> tuple[str, ...]:
    """Files at the top of the project that hold secrets by their name and that no call has named."""
    named = {os.path.basename(str(value)) for call in ran for value in call.given.values()}  # noqa: PTH119 - a text
    found = (path.name for pattern in _SECRET_FILES for path in Path(project).glob(pattern))
    return tuple(sorted({name for name in found if name not in named}))


def _without_attacks(
    policy: LearnedPolicy, attacks: Iterable[Evidence], project: str, home: str
) -> tuple[LearnedPolicy, tuple[str, ...]]:
    """The policy without the rules that take part in allowing one of these calls, and what was dropped."""
    dropped: list[str] = []
    for call in attacks:
        while used := policy.covering(call.tool, call.given, call.cwd, [project], home):
            gone = [rule for rule in used if rule is not policy]
            kind = "look" if policy.look else "read"
            if not gone and not getattr(policy, kind):
                break  # it only reads, and only in the project: no rule lets it pass, and none can be dropped
            if not gone:
                policy, dropped = msgspec.structs.replace(policy, **{kind: ()}), [*dropped, kind]
                continue
            rules = {kind: tuple(r for r in getattr(policy, kind) if r not in gone) for kind in ("commands", "tools")}
            policy = msgspec.structs.replace(policy, **rules)
            dropped += [rule.run if isinstance(rule, CommandRule) else rule.tool for rule in gone]
    return policy, tuple(dropped)
