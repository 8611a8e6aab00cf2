"""The words of a command and their kinds: what a learned rule names of it, and what may vary."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

import msgspec

from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import Redirect, SimpleCommand, parse_line
from hookline.core.shell.programs import table
from hookline.core.shell.programs.table import CODE_VARIABLES, names
from hookline.core.shell.targets import join, placed
from hookline.guards.permissions.readonly_commands import FORMS, find_files
from hookline.guards.pure_code import code_of, files_read

_LINES = Path(__file__).with_name("learned_words.txt").read_text("utf-8").splitlines()
_ROWS = [line.split(" => ") for line in _LINES]
_NAMED = [line.partition(" := ") for line in _LINES if " := " in line]
_PATTERNS = {name: re.compile("".join(text for other, _, text in _NAMED if other == name)) for name, _, _ in _NAMED}
SECRET_NAME, _STEERS, _FAMILIES = _PATTERNS["SECRET_NAME"], _PATTERNS["STEERS"], _PATTERNS["FAMILIES"]
_FETCHES, _GIVES_CODE, _NO_MATTER = _PATTERNS["FETCHES"], _PATTERNS["GIVES_CODE"], _PATTERNS["NO_MATTER"]
_GETS, _AWK_ACTS, _SQL_SHOWS, _SQL_ACTS = (_PATTERNS[name] for name in ("GETS", "AWK_ACTS", "SQL_SHOWS", "SQL_ACTS"))
NUMBER, NAME, PATH, SCRIPT, TEXT, ID, URL = "NUMBER", "NAME", "PATH", "SCRIPT", "TEXT", "ID", "URL"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?[a-zA-Z%]{0,2}")
_PATH = re.compile(r"(?!-)(?=.*/|[.~])[\w./~+,%-]+|[\w-]+\.[a-z]\w{0,4}")
_ADDRESS_LIKE = re.compile(r"[\w-]+(?:\.[\w-]+)+/")  # `github.com/owner/name` is not a file, though it looks like one
_NAME = re.compile(r"[A-Za-z_^(][\w.,|^$*()-]*|(?:not )?[\w.]+(?: (?:and|or)(?: not)? [\w.]+)+")
_ID = re.compile(r"(?=.*\d)[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DATA = frozenset(_PATTERNS["DATA"].pattern.split())
"""Endings of files that are read and not run."""
KINDS = frozenset({NUMBER, NAME, PATH, SCRIPT, TEXT, ID, URL})
_URL = re.compile(r"((?:https?://)?(?:localhost|127\.0\.0\.1)(?::\d+)?)(?:[/?][\w./?=&%:,+~-]*)?")
"""An address on this machine: what is said to it goes nowhere else."""
_TEXTS = {line.partition(" <- ")[0]: tuple(line.partition(" <- ")[2].split()) for line in _LINES if " <- " in line}
"""Options whose value is prose, whatever it says."""
_HERE_DOCUMENT = re.compile(r"\$\(cat <<-?[ ]?(['\"])(\w+)\1\n.*\n\s*\2\s*\)", re.DOTALL)
_EXPANDS = re.compile(r"[$`…]|<\(|>\(")
_BARE = re.compile(r"(?<!['\"\\])~")
_PLAIN = re.compile(r"[\w./~:@+,-]+")
_RECURSIVE = re.compile(r"-\w*[rR]\w*|--recursive")
# Programs that show what a script picks, and which scripts do nothing but show.
SCRIPTS = {
    "sed": lambda text: all(_PATTERNS["SED"].fullmatch(one.strip()) for one in re.split(r"[;\n]+", text.strip())),
    "awk": lambda text: not _AWK_ACTS.search(text.replace("||", "")),
    "sqlite3": lambda text: bool(_SQL_SHOWS.fullmatch(text)) and not _SQL_ACTS.search(text),
}
SCRIPTS["sed -i"] = SCRIPTS["sed"]
SHOWING = {"sed": _PATTERNS["SED_FLAGS"], "awk": _PATTERNS["AWK_FLAGS"], "sqlite3": _PATTERNS["SQL_FLAGS"]}
SHOWS = "SHOWS"
"""Subcommands that only show something: a rule is for all of a program's, `gh SHOWS`."""
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n$`'\"\\]+?)\s*(?:;|\n)\s*do\b")
_LISTS = frozenset({"find", "ls", "fd"})
TELLS = frozenset({"find", "ls", "du", "stat", "readlink", "realpath", "test", "["})  # names and sizes, no content
_UNPLAIN = re.compile(r"`|\$[({']|<<|(?:^|[\s;&|(){}<>])#")  # with these, a quote may not be where it seems to be
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_CARRIES = frozenset({"cat", "head", "tail", "grep", "ls", "sort", "uniq", "wc", "cut", "curl"})
"""What these hand on comes from files or a server, where others may make up any text."""
_FILTERS = re.compile(r"-[EFinruvwx\d]+")
_PASSES_ON = {"head": 0, "tail": 0, "sort": 0, "uniq": 0, "grep": 1}
"""Filters that hand on some of the lines that they read, and how many words they have then besides `_FILTERS`."""
_MOST_TURNS = 32
INDEXES = frozenset({"git add", "git rm --cached", "git restore --staged"})
"""What they are told is which files the next commit takes: any of the project may be named, unless it holds secrets."""
WIDE = INDEXES | {"mkdir"}
"""Seen on one file of the project, they may be told any."""
_FILE = re.compile(r"[\w./~+,%=()'&][\w ./~+,%=()'&@-]*", re.ASCII)
_WHOLE_FOLDERS = re.compile(r"-\w*[rRa]\w*|--(?:recursive|archive)")
_SETTING = re.compile(r"(\w+=)(?:\d+|true|false)")
_TEST_ID = re.compile(r"[\w./-]+\.py(?:::\w+)+(?:\[[\w. -]*\])?")
_OWN_CODE = re.compile(r"\.|(?:\./)?[A-Za-z_][\w-]*(?:/[A-Za-z_][\w-]*)*/?")
_NEVER = re.compile(r"(?!)")
_FREE = tuple((re.compile(row[0]), re.compile(row[1])) for row in _ROWS if len(row) == 2)
"""Commands, and the words that change only how much they show or which of the tests run."""
_ACTIVATES = re.compile(r"`(?:source|\.)` runs the commands in `[\w./~-]*\bv?env/bin/activate`")
"""What is not known of a line that enters a virtual environment; that part is learned as a whole, or not at all."""
_PYTHON = re.compile(r"`python3?` runs code in another language(?:, which it reads from its input)?")
_INSTALLED = re.compile(r"/usr/bin/|/bin/|(?:\./)?(?:(?:\.?venv|env)/bin/|node_modules/\.bin/)")
_PACKAGES = re.compile(r"(?:npm|pnpm|yarn|cargo|pip3?) SHOWS"), re.compile(r"(?:@[\w.-]+/)?\w[\w.-]*(?:@[\w.^~-]+)?")
_GO_PACKAGES = re.compile("go SHOWS"), re.compile(r"\w[\w-]*(?:\.[\w-]+)*(?:/[\w-]+(?:\.[\w-]+)*)*")
CHECKS = frozenset({("node", "--check"), ("node", "-c"), ("bash", "-n"), ("sh", "-n"), ("php", "-l")})
"""These look at the syntax of a file, and do not run it."""


class Position(msgspec.Struct, frozen=True):
    """One word of a command, with the option it follows, if that option may take it as its value."""

    text: str
    option: str = ""
    is_glob: bool = False
    is_unknown: bool = False
    is_script: bool = False
    is_path: bool = False  # whatever it looks like


def known_parts(line: str) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """The commands of a line with their folders, if all that it runs is known; none if not.

    `D=docs; ls $D` is `ls docs`: a variable that the line itself sets, once and to a plain word, is that word. In a
    loop over plain words it is each of them. `git -C DIR` runs in that folder.
    """
    parsed = parse_line(line)
    plain_parts = [_plainly(part) for part in parsed.commands]
    if parsed.evaluates or not all(map(_ACTIVATES.fullmatch, parsed.undecidable)):
        return
    pythons = [part for part in plain_parts if parsed.code and part.name.startswith("python")]
    if not all(map(_PYTHON.fullmatch, parsed.code)) or None in [files_read(code_of(part)) for part in pythons]:
        return
    settled: dict[str, str] = {}
    turns = _turns(line, parsed.commands)
    commands: list[SimpleCommand] = []
    for at, part in enumerate(parts := _fed(line, plain_parts)):
        if not part.words and not (part.loops or part.scope or part.redirects):
            plain = {name: value for name, value in part.assignments if _PLAIN.fullmatch(value) and name not in settled}
            settled = {name: value for name, value in settled.items() if name not in dict(part.assignments)} | plain
        if part.name in names("sets"):
            commands.append(part)
        elif part.loops:
            commands += _each_turn(part, turns)
        elif part.via and part.unknown:
            commands.append(_given_files(part, parts[:at]))
        else:
            commands.append(_filled_in(part, settled))
    for part, bases in placed(msgspec.structs.replace(parsed, commands=tuple(commands))):
        if part.words[:2] == ("git", "-C") and len(part.words) > 3 and not {1, 2} & {*part.unknown, *part.globs}:
            shift = {"unknown": tuple(at - 2 for at in part.unknown), "globs": tuple(at - 2 for at in part.globs)}
            there = [join(base, part.words[2]) for base in bases]
            yield msgspec.structs.replace(part, words=("git", *part.words[3:]), **shift), there
        else:
            yield part, bases


def _plainly(part: SimpleCommand) -> SimpleCommand:
    """A command without the folder where it is installed, and `tee FILE` as `cat > FILE`."""
    words = part.words
    if not words or 0 in (*part.unknown, *part.globs):
        return part
    if words[0] != part.name and _INSTALLED.fullmatch(words[0].removesuffix(part.name)):
        is_tool = part.name not in FORMS and table.tags_of(part.name) <= {"text", "other-o"}
        is_known = words[0][0] == "/" or is_tool or part.name in ("python", "python3")
        return msgspec.structs.replace(part, words=(part.name, *words[1:])) if is_known else part
    files = [word for word in words[1:] if word != "-a"]
    if words[0] != "tee" or part.unknown or part.globs or any(word.startswith("-") for word in files):
        return part
    redirects = (*part.redirects, *(Redirect(">", file) for file in files))
    return msgspec.structs.replace(part, name="cat", words=("cat",), redirects=redirects)


def _fed(line: str, commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """The commands, each with what is piped into it as one more redirection."""
    parts: list[SimpleCommand] = []
    feeds: list[str] = []
    for text, ends in [(p.stdin, each.target) for p in commands for each in p.redirects if p.stdin and each.op == "<<"]:
        body = rf"<<[ ]?'{re.escape(ends)}'([^\n|]*)\n{re.escape(text or '')}\n{re.escape(ends)}(?=\n|$)"
        line = re.sub(body, r"\1", line, count=1)  # one for each: a text that looks like it may be what runs
    grouped = _PATTERNS["GROUPED"].search(line if _UNPLAIN.search(line) else _QUOTED.sub("x", line)) is not None
    for part in commands:
        if part.after in ("|", "|&"):
            feeds = feeds or ["?"]  # a here-document: its command is listed when its text has been read
        elif not grouped:
            feeds = []
        fed = Redirect("|", " ".join(feeds), known=False)
        parts.append(_ending(msgspec.structs.replace(part, redirects=(*part.redirects, fed)) if feeds else part))
        carries = part.name in _CARRIES and part.stdin is None
        text = "" if part.stdin is None else " <<"
        feeds += [] if part.wraps else [part.name if carries else f"{whole(part)}{text}"]
    return parts


def _ending(part: SimpleCommand) -> SimpleCommand:
    """`lsof -ti:3000 | xargs kill` and `kill $(lsof -ti:3000)` as `kill :3000`, whichever signal it is."""
    fed = [f"$({each.target})" for each in part.redirects if each.op == "|" and part.via[-1:] == ("xargs",)]
    port = _PATTERNS["ON_PORT"].fullmatch((fed or part.words or [""])[-1])
    is_kill = part.words[:1] == ("kill",) and {*part.words[1:-1]} <= {"-9", "-15", "-KILL", "-TERM"}
    if port is None or not is_kill or part.loops or part.unknown != (len(part.words) - 1,):
        return part
    redirects = tuple(each for each in part.redirects if each.op != "|")
    return msgspec.structs.replace(part, words=("kill", f":{port[1]}"), unknown=(), redirects=redirects)


def _turns(line: str, commands: Sequence[SimpleCommand]) -> dict[str, list[str]]:
    """The words that each loop of a line goes through, by its variable, which nothing else in the line may set."""
    found: dict[str, list[str]] = {}
    for name, text in _LOOP.findall(line):
        words, others = text.split(), re.sub(rf"\$(?:{name}\b|{{{name}\b(?!:?=))|\s-{name}\b", "", line)
        plain = len(words) <= _MOST_TURNS and all(re.fullmatch(r"[\w./*@+,-]+", word) for word in words)
        if plain and len(re.findall(rf"\b{name}\b", others)) == 1:
            found[name] = words
    return {} if any(part.name in names("sets") for part in commands) else found


def _each_turn(part: SimpleCommand, turns: Mapping[str, list[str]]) -> Iterator[SimpleCommand]:
    """A command in a loop, once with each of the loop's words."""
    name = next((name for name in turns if re.search(rf"\$(?:{name}\b|{{{name}}})", part.text)), None)
    if name is None:
        yield part
        return
    others = {other: words for other, words in turns.items() if other != name}
    for value in turns[name]:
        globs = {*part.globs, *(at for at in part.unknown if "*" in value)}
        filled = msgspec.structs.replace(_filled_in(part, {name: value}), globs=tuple(sorted(globs)))
        yield from _each_turn(filled, others)


def _given_files(part: SimpleCommand, before: Sequence[SimpleCommand]) -> SimpleCommand:
    """A command that `find -exec`, or `xargs` behind a listing of files, runs: on what lies below the folders listed.

    Of commands that only read alone: the files may be hidden, or lie deep.
    """
    if part.name not in names("reads") and part.name not in SHOWING:
        return part
    at = len(before) - 1  # the wrapper itself
    while part.via[-1] == "xargs" and at > 0 and before[at].after == "|" and before[at].name not in _LISTS:
        at -= 1
        if before[at].name not in _LISTS and not _passes_on(before[at]):
            return part
    lister = before[at]
    if lister.name not in _LISTS or lister.unknown or {"-printf", "-fprintf"} & set(lister.words):
        return part
    named = [word for word in lister.words[1:] if lister.name == "ls" and word[:1] != "-"]
    listed = find_files(lister.words[1:], runs=True) if lister.name == "find" else named
    if listed is None or len(listed) > 1:
        return part
    folder = (listed or ["."])[0]
    words = [folder if index in part.unknown and word in ("{}", "…") else word for index, word in enumerate(part.words)]
    left = tuple(index for index in part.unknown if words[index] == part.words[index])
    globs = tuple(sorted({*part.globs, *part.unknown}))
    words += ["."] if named else []  # `ls DIR` tells names without their folder, `ls DIR/*` with it
    return msgspec.structs.replace(part, words=tuple(words), unknown=left, globs=globs)


def _passes_on(part: SimpleCommand) -> bool:
    """Whether a command is a filter that reads nothing but what is piped into it."""
    words = [word for word in part.words[1:] if not _FILTERS.fullmatch(word) and not word.isdigit()]
    reads_more = part.unknown or part.globs or part.stdin is not None or any(each.op == "<" for each in part.redirects)
    return not reads_more and len(words) <= _PASSES_ON.get(part.name, -1)


def _filled_in(part: SimpleCommand, settled: Mapping[str, str]) -> SimpleCommand:
    words, unknown = list(part.words), []
    for at in part.unknown:
        words[at] = fill(words[at], settled.get, EITHER)
        if _EXPANDS.search(words[at]):
            unknown.append(at)
    if len(unknown) == len(part.unknown):
        return part
    name = words[0].rpartition("/")[2] if 0 not in unknown else ""
    return msgspec.structs.replace(part, name=name, words=tuple(words), unknown=tuple(unknown))


def head_of(part: SimpleCommand) -> tuple[str, ...]:
    """The program and subcommand (`go test`, `python -m pytest`) of a command whose other words may vary, else nothing.

    A program with a row in the table of programs is one that runs, writes or opens something: of those only the ones
    that carry out a project's tasks may vary.
    """
    words = part.words
    if not words or 0 in part.globs or any(_is_steering(*given) for given in part.assignments):
        return ()
    if part.name != words[0]:  # a program of the project
        return words[: 1 + _leading_names(words[1:2])] if kind_of(words[0]) is PATH else ()
    if part.name in table.INTERPRETERS or part.name in table.SHELLS:
        return () if {1, 2} & {*part.globs, *part.unknown} else words[: _interpreted(words)]
    if family := _FAMILIES.match(f"{' '.join(words[:4])} "):
        return words[: family[0].count(" ") + 1]
    if " ".join(words[:3]) in INDEXES:
        return words[:3]
    if part.name in _HEADS:
        return words[: _HEADS[part.name](words, [word for word in words[1:] if word.startswith("-")])]
    tags = table.tags_of(part.name)
    if tags <= {"text", "other-o", "plain"}:
        return words[:1] if tags else words[: 1 + _leading_names(words[1:2])]
    is_task = "task" in tags or table.values("look").get(part.name) == "environment"
    steps = _leading_names(words[1:3]) if is_task and words[:2] != ("go", "run") else 0  # which is given code
    return words[: 1 + steps] if steps else ()


def _is_steering(name: str, value: str) -> bool:
    """Whether a variable may have a program run something else than what the project holds."""
    return CODE_VARIABLES.fullmatch(name) is not None and (name != "PYTHONPATH" or not _OWN_CODE.fullmatch(value))


def family_of(run: str) -> str:
    """The program of a subcommand that only shows something, as a rule for all of those names it."""
    return f"{run.partition(' ')[0]} {SHOWS}" if _FAMILIES.fullmatch(run) else ""


def _interpreted(words: Sequence[str]) -> int:
    """How many words say what an interpreter runs: a module, or a file; none where it is given code."""
    if words[1:2] == ("-m",):
        return 3 if len(words) > 2 and words[2] not in table.CODE_MODULES and words[2][:1] != "-" else 0
    return 2 if len(words) > 1 and kind_of(words[1]) is PATH else 0


def _of_curl(words: Sequence[str], options: Sequence[str]) -> int:
    values = [(word, after) for word, after in pairwise([*words, ""]) if word[:1] == "-"]
    outputs = {after for word, after in values if word == "-o"}
    sent = [after for word, after in values if word in _TEXTS["curl"]]
    said = {after for word, after in values if re.fullmatch(r"-[mwoHXd]|--\w[\w-]*", word)}
    is_local = all(word in said or _URL.fullmatch(word) for word in words[1:] if word[:1] != "-")
    is_safe = not sent or (is_local and not any(text.startswith("@") for text in sent))
    return int(all(map(_GETS.fullmatch, options)) and outputs <= {os.devnull} and is_safe)


def _of_sed(words: Sequence[str], options: Sequence[str]) -> int:
    """`sed -i SCRIPT FILE`, where the script only edits: `1e/bin/id` and `w.git/x` look like paths."""
    script = next((word for word in words[1:] if word and not word.startswith("-")), "")
    edits = words[1:2] == ("-i",) and all(map(SHOWING["sed"].fullmatch, options[1:]))
    return 2 * (edits and SCRIPTS["sed"](script))


_HEADS: dict[str, Callable[[Sequence[str], Sequence[str]], int]] = {
    "curl": _of_curl,
    "sed": _of_sed,
    **dict.fromkeys(("awk", "sqlite3"), lambda words, options: 0),
    "chmod": lambda words, options: 2 * (words[1:2] == ("+x",)),
    "rm": lambda words, options: not any(map(_RECURSIVE.fullmatch, options)),
    "cp": lambda words, options: not any(map(_WHOLE_FOLDERS.fullmatch, options)),
    **dict.fromkeys(("mkdir", "touch", "mv", "rmdir"), lambda words, options: 1),
}  # fmt: skip
"""Programs that fetch or change files: how many words are their head; none where they may do more, or only read."""


def _leading_names(words: Sequence[str]) -> int:
    """How many of these words name what the program is to do: `run build` of npm, `pr view` of gh."""
    plain = [re.fullmatch(r"[a-z][a-z0-9:-]*", word) is not None for word in words]
    return plain.index(False) if False in plain else len(plain)


def is_spelt_out(part: SimpleCommand) -> bool:
    """Whether each word that an expansion makes is the text of a here-document: `"$(cat <<'EOF' … EOF)"`."""
    words = [part.words[at] for at in part.unknown]
    return all(f'"{word}"' in part.raw and _HERE_DOCUMENT.fullmatch(word) for word in words)


def whole(part: SimpleCommand) -> str:
    """A command as an exact rule has it: what is set before it, its words, what it is fed and where it writes."""
    files = [f"{each.op}{shlex.quote(each.target)}" for each in part.redirects if each.writes or each.op in ("<", "|")]
    expanded = {*part.globs, *(at for at, word in enumerate(part.words) if word[:1] == "~" and _BARE.search(part.raw))}
    words = [word if at in expanded else shlex.quote(word) for at, word in enumerate(part.words)]
    return " ".join([*(shlex.quote(f"{name}={value}") for name, value in part.assignments), *words, *files])


def positions(part: SimpleCommand, start: int, options: Sequence[str] = ()) -> Iterator[Position]:
    """The words behind the head, `--name=value` as two; a word behind an option is its value, unless it is a flag.

    What does no harm, whatever else is given, is left out: `CI=1`, the `-v` of a test runner, the `-p` of mkdir.
    """
    given = (f"{name}={value}" for name, value in part.assignments)
    yield from (Position(text) for text in given if not _NO_MATTER.fullmatch(text))
    yield from (Position(f"| {each.target}") for each in part.redirects if each.op == "|")
    run = " ".join(part.words[:start])
    takes_files, is_free = takes_only_files(run), _free_options(run)
    before, sends = "", part.name == "curl" and bool({"-X", "--request", *_TEXTS["curl"]} & set(part.words))
    script = next((at for at, word in enumerate(part.words) if at and word and word[0] != "-"), 0)
    for at, given_word in enumerate(part.words[start:], start):
        word = given_word.partition("::")[0] if _TEST_ID.fullmatch(given_word) else given_word
        option, sign, value = word.partition("=")
        if word in ("--help", "--version") or (is_free(word) and (word[:1] == "-" or not before)):
            before = ""
        elif word.startswith("-") and sign:
            yield Position(option)
            yield Position(value, option, at in part.globs, at in part.unknown)
            before = ""
        elif word.startswith("-") and len(word) > 1:
            yield Position(word, is_unknown=at in part.unknown)
            before = "" if takes_files else word
        else:
            if sends and _URL.fullmatch(word):
                before = "-X"
            has_value = before == "-X" or any(known.startswith(f"{before} ") for known in options)
            is_flag = before in options and not has_value
            is_script = at == script
            is_file = takes_files and not (is_script and run in SCRIPTS) and _is_file(word, run)
            yield Position(word, "" if is_flag else before, at in part.globs, at in part.unknown, is_script, is_file)
            before = ""


def takes_only_files(run: str) -> bool:
    """Whether a command does something to the files that it names, and nothing else: where it runs does not matter."""
    return run in names("edits") or run in INDEXES or run == "sed -i"


def _is_file(word: str, run: str) -> bool:
    """Whether a word of such a command is a file; what is removed or moved has to look like one, or be in a folder."""
    return _FILE.fullmatch(word) is not None and (run not in ("rm", "rmdir", "mv") or kind_of(word) is PATH)


def _free_options(run: str) -> Callable[[str], bool]:
    """Which words a command may always be given."""
    if run in names("edits"):
        row = table.program(run)
        return lambda word: word[:1] == "-" and word[1:] not in ("", "-") and _is_flag(word, row)
    free = next((free for runs, free in _FREE if runs.fullmatch(run)), _NEVER)
    return lambda word: free.fullmatch(word) is not None


def _is_flag(word: str, row: table.Program) -> bool:
    taken = table.known([word], row)
    return taken is not None and not taken.files


def kind_of(word: str, run: str = "") -> str | None:
    """What a word is by its looks: a number, a path, a name, a script of `run`; None when it is none of these."""
    if run in SCRIPTS and SCRIPTS[run](word):
        return SCRIPT
    if _NUMBER.fullmatch(word):
        return NUMBER
    if any(runs.fullmatch(run) and packages.fullmatch(word) for runs, packages in (_PACKAGES, _GO_PACKAGES)):
        return NAME
    if setting := _SETTING.fullmatch(word):
        return f"{setting[1]}{NUMBER}"
    if run == "curl" and _URL.fullmatch(word):
        return URL
    if _ID.fullmatch(word):
        return ID
    if _PATH.fullmatch(word) and not _ADDRESS_LIKE.match(word):
        return PATH
    pattern = word.replace("/", "") if "|" in word and ".." not in word else word  # `-run 'TestA/one|TestB'`
    return NAME if _NAME.fullmatch(pattern) else None


def origin_of(address: str, option: str = "") -> str:
    """The host and port of an address, as a rule names them: `http://localhost:3000/`, with `-X` if it is sent to."""
    match = _URL.fullmatch(address)
    return f"{'-X ' if option == '-X' else ''}{match[1]}/" if match else ""


def is_prose(run: str, option: str) -> bool:
    """Whether an option of a command is given prose."""
    return option in _TEXTS.get(run, _TEXTS.get(" ".join(run.split()[:2]), ()))


def may_vary(run: str, option: str = "") -> bool:
    """Whether what a command is given, or gives to an option, may be anything of its kind."""
    return not (_FETCHES.fullmatch(run) or _GIVES_CODE.fullmatch(option))


def is_at_home(run: str) -> bool:
    """Whether a program does the same in every folder of the project in which others of its kind run.

    A runner of tasks does what that folder's recipe says, and git sends to that folder's remotes.
    """
    program = run.partition(" ")[0]
    is_tool = program in ("go", "cargo") or not {"recipe", "task", "changes"} & table.tags_of(program)
    return is_tool and not _FETCHES.fullmatch(run)


def makes_code(part: SimpleCommand) -> bool:
    """Whether a copy has another ending than the file, so that a text becomes a script."""
    files = [word for word in part.words[1 + (part.name == "git") :] if not word.startswith("-")]
    target, ending = files[-1:], PurePath(*files[-1:]).suffix
    is_folder = not target or target[0].endswith(("/", "..")) or target[0] == "."
    return not is_folder and ending not in DATA and any(PurePath(file).suffix != ending for file in files[:-1])


def only_shows(part: SimpleCommand) -> bool:
    """Whether a subcommand shows what numbers and names it is given stand for, and takes no option."""
    head = head_of(part)
    is_plain = not (part.unknown or part.globs or part.assignments) and bool(family_of(" ".join(head)))
    return is_plain and all(kind_of(word) in (NUMBER, NAME, ID) for word in part.words[len(head) :])


def steers(path: str) -> bool:
    """Whether a file says what a tool runs, or what an agent is told, so that no rule for many files is for it."""
    return _STEERS.search(path) is not None
