"""Code in other languages that a line carries: interpreters, awk, editors, databases, make.

Such code may run any command, so it is named in `code`; a file of code is a note only, for its own rule to judge. Awk,
databases and pagers are asked about only when their text holds something that runs commands.
"""

import re
from collections.abc import Sequence

from hookline.core.shell.lexer import UNKNOWN
from hookline.core.shell.programs.table import CODE_MODULES, INTERPRETERS, SHARED, program, sed_flags
from hookline.core.shell.shell_line import Analysis, Invocation, Look, NestedCommand, Words, script

_CALLS = frozenset({"npm", "npx", "pnpm", "yarn"})
_SCRIPTED = frozenset({"npm", "pnpm", "yarn"})
_PACKAGE_RUN = frozenset({"exec", "x", "dlx", "explore"})
_ENVIRONMENT_RUN = frozenset({"run", "exec", "x", "tool", "shell", "--"})
_DIRECT = frozenset({"npx", "pnpx", "bunx", "uvx", "pipx"})


def _after_dashes(name: str, given: Invocation) -> Analysis:
    """Runners such as `uv run`, `npx`, `poetry run`, `docker exec`: what follows is a program of some environment."""
    words = given.words
    for at, (word, known) in enumerate(words[1:], 1):
        if name in _CALLS and word in ("-c", "--call"):
            return script(f"{name} -c", words[at + 1 : at + 2])
        if name in _CALLS and word.startswith("--call="):
            return script(f"{name} -c", [(word[7:], known)])
    if name in _DIRECT:
        index = next((i for i, (word, _) in enumerate(words[1:], 1) if not word.startswith("-") and word != "run"), 0)
        return Analysis((NestedCommand(name, words[index:]),)) if index else Analysis()
    starters = _PACKAGE_RUN if name in _SCRIPTED else _ENVIRONMENT_RUN
    index = next((i for i, (word, _) in enumerate(words[1:], 1) if word in starters), 0)
    if not index:
        return Analysis()
    rest = words[index + 1 :]
    if any(word.startswith("-") for word, _ in rest[:1]) or name in _CONTAINERS:
        runs = tuple(NestedCommand(f"{name} {words[index][0]}", rest[at:]) for at in _starts(rest))
        return Analysis(runs, notes=(f"`{name}` runs a command in another environment",))
    return Analysis((NestedCommand(f"{name} {words[index][0]}", rest),)) if rest else Analysis()


_CONTAINERS = frozenset({"docker", "podman", "kubectl", "nerdctl"})
_CONTAINER_VALUED = frozenset(SHARED["%CONTAINER-VALUED"])
_MOST_STARTS = 12


def _starts(words: Words) -> list[int]:
    """Where the command may start: at any word that is neither an option nor the value of one."""
    after = [index for index, (word, _) in enumerate(words[:-1], 1) if word in _CONTAINER_VALUED]
    return [index for index, (word, _) in enumerate(words) if word[:1] != "-" and index not in after][:_MOST_STARTS]


def _runs_by_option(name: str, words: Words) -> tuple[str, ...]:
    """Why an abbreviated option may run a program: `--compress-prog=x` is `--compress-program=x`."""
    options = program(name).runs
    for word, _ in words[1:]:
        given = word.partition("=")[0]
        if len(given) > 2 and given != "--checkpoint" and any(option.startswith(given) for option in options):
            return (f"`{name} {given}` runs a program",)
    return ()


SSH_RUNS = re.compile(r"(?i)proxycommand|localcommand")
_GIT_RUNS = re.compile(
    r"(?i)(?:^|=)\s*!|sshcommand|pager=|editor=|hookspath|fsmonitor|askpass|credential\.helper|ext::"
    r"|external=|textconv|filter\.|\.cmd=|\.tool|--upload-pack|--receive-pack|--exec=|--exec-path=|--open-files-in"
    r"|\.program=|alternaterefscommand|uploadpack|packobjectshook|smtpserver|proxycommand|gitproxy|diff\..*command"
)


def _git(name: str, given: Invocation) -> Analysis:
    words = given.words
    reasons = []
    texts = [word for word, _ in words[1:]]
    subcommand = next((word for word in texts if not word.startswith("-")), "")  # as far as plain words tell
    for index, word in enumerate(texts):
        value = texts[index + 1] if word in ("-c", "--config") and index + 1 < len(texts) else word
        opens = word.startswith("-O") and "grep" in texts
        uploads = word.startswith("-u") and subcommand in ("clone", "ls-remote", "fetch-pack")
        if opens or uploads or _GIT_RUNS.search(value):
            reasons.append("`git` is told to run a program by its configuration")
        if word in ("-x", "--exec") and "rebase" in texts:
            return script("git rebase --exec", words[index + 2 : index + 3])
        if word == "foreach" and "submodule" in texts:
            return script("git submodule foreach", [w for w in words[index + 2 :] if w[0] != "--recursive"])
        if word == "run" and "bisect" in texts:
            rest = words[index + 2 :]
            return Analysis((NestedCommand("git bisect run", rest),) if rest else ())
        if word in ("filter-branch", "difftool", "mergetool", "send-email"):
            reasons.append(f"`git {word}` runs other commands")
    return Analysis(undecidable=tuple(dict.fromkeys([*reasons, *_runs_by_option(name, words)])))


def _tar(name: str, given: Invocation) -> Analysis:
    """Archivers and copiers that are told to run a program by an option."""
    words = given.words
    risky = re.compile(
        r"--checkpoint-action|--to-command|--use-compress-program|--rsh|--info-script|--new-volume-script|-I.*|-F.*|-e|--rsync-path"
        r"|--unzip-command|-TT|--preprocess.*|--compress-program.*|--pre"
    )
    copies = name in ("scp", "sftp")
    if any(SSH_RUNS.search(word) or (copies and word.startswith("-S")) for word, _ in words):
        return Analysis(undecidable=(f"`{name}` runs the program in its options",))
    for index, (word, _) in enumerate(words[1:], 1):
        option, _, value = word.partition("=")
        if not risky.fullmatch(option) or (name in ("tar", "bsdtar", "gtar") and option == "-e"):
            continue
        text = value or (option[2:] if option[:2] in ("-I", "-F") else "")
        rest = [(text, words[index][1])] if text else words[index + 1 : index + 2]
        return script(f"{name} {option}", [(word.removeprefix("exec="), known) for word, known in rest])
    return Analysis(undecidable=_runs_by_option(name, words))


_SED_RUNS = re.compile(r"^\s*e\b|[\d$;{!/}]\s*e(?:\s|$)")
_SED_RUNS_FLAG = re.compile(r"[gpiImM0-9]*e[gpiImMw0-9]*(?:[\s;}]|$)")


def _sed(name: str, given: Invocation) -> Analysis:
    """GNU sed runs commands with `e`, and writes files with `w`."""
    words = given.words
    if any(word.startswith("<(") for word, _ in words[1:]):
        return Analysis(undecidable=(f"`{name}` runs a script that another command writes",))
    if not all(known for _, known in words[1:]):
        return Analysis(notes=(f"`{name}` runs a script that is known only when it runs",))
    if any(_SED_RUNS.search(word) or any(map(_SED_RUNS_FLAG.match, sed_flags(word))) for word, _ in words[1:]):
        return Analysis(undecidable=(f"`{name}` may run a command from its script",))
    return Analysis()


_VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|php|node|ipython)[\d.]+[a-z]?")
_VALUED = frozenset(SHARED["%INTERPRETER-VALUED"])
_VERSION = frozenset({"-V", "--version", "-v", "--help", "-h", "-version", "--test", "--watch"})


def language_of(name: str) -> str:
    """`python3.12` is python; empty when the program is not an interpreter."""
    versioned = _VERSIONED.fullmatch(name)
    language = versioned[1] if versioned else name
    return language if language in INTERPRETERS else ""


def interpreter(name: str, given: Invocation) -> Analysis:
    """Code on the command line or from the input may run anything; a file of code is noted."""
    flags = INTERPRETERS[language_of(name)]
    at, texts = 0, given.texts
    while at < len(texts) and texts[at].startswith("-") and texts[at] != "-":
        word = texts[at]
        if word == "-m" and at + 1 < len(texts) and texts[at + 1] not in CODE_MODULES:
            return Analysis(notes=(f"`{name}` runs the program `{texts[at + 1]}`",))
        if word == "-m" or (_carries(word, flags) and not (name == "perl" and _only_replaces(given, at))):
            return code(name)
        at += 2 if word in _VALUED else 1
    if at < len(texts) and (texts[at] in flags or not given.words[at + 1][1]):
        return code(name)
    if at < len(texts) and texts[at] != "-" and not texts[at].startswith(("/dev/", "/proc/")):
        return Analysis(notes=(f"`{name}` runs the program `{texts[at]}`",))
    if texts and all(word in _VERSION for word in texts):
        return Analysis()
    return code(name, ", which it reads from its input")


_REPLACES = re.compile(r"\s*(?:s|tr|y)([/|#,!])(?:(?!\1)[^@{}`\\\n]|\\.)*\1(?:(?!\1)[^@{}`\\\n]|\\.)*\1[gimsx]*;?\s*")


def _only_replaces(given: Invocation, at: int) -> bool:
    """`perl -pi -e 's/a/b/'`: code that can do nothing but replace text."""
    word, known = given.words[at + 2] if at + 2 < len(given.words) else ("", False)
    return known and re.fullmatch(r"-[pnlai0]*e", given.texts[at]) is not None and _REPLACES.fullmatch(word) is not None


def _carries(word: str, flags: Sequence[str]) -> bool:
    """Whether an option carries code: `-c`, `-Ic`, `-e…`, `--eval=…`."""
    return any(
        word == flag
        or (flag.startswith("--") and word.startswith(flag + "="))
        or (len(flag) == 2 and not word.startswith("--") and flag[1] in word[1:])
        for flag in flags
    )


def code(name: str, where: str = "") -> Analysis:
    """Code in another language, which may run anything."""
    reason = f"`{name}` runs code in another language{where}"
    return Analysis(notes=(reason,), code=(reason,))


_AWK_REGEX = re.compile(r'(^\s*!?|~\s*|&&\s*!?|\|\|\s*!?|\}\s*)/[^/"\\\n]*/')
_AWK_RUNS = re.compile(r"system|\||@|getline\s*$")
_AWK_VALUED = frozenset({"-F", "-v", "--field-separator", "--assign"})


def awk(name: str, given: Invocation) -> Analysis:
    """Awk runs commands by `system` and pipes only; text without them is as harmless as sed's."""
    note = (f"`{name}` runs code in another language",)
    texts, known = given.texts, [known for _, known in given.words[1:]]
    at = 0
    while at < len(texts) and texts[at].startswith("-") and texts[at] != "--":
        if not known[at] or re.match(r"-[^Fv-]|--(?!version|posix|csv|re-interval|field|assign)", texts[at]):
            file = re.match(r"-f|--file", texts[at]) and not re.search(
                r"(?:^| )-f ?(?:-|/dev/|<\(|\$)", " ".join(texts)
            )
            return Analysis(notes=note) if file else code(name)
        at += 2 if texts[at] in _AWK_VALUED else 1
    at += texts[at : at + 1] == ["--"]
    if at >= len(texts):
        return Analysis()
    runs = not known[at] or _AWK_RUNS.search(_AWK_REGEX.sub(r"\1", texts[at]).replace("||", ""))
    return code(name) if runs else Analysis(notes=note)


def _when(pattern: str, *, quiet: str = "") -> Look:
    """A program whose words or input hold something that runs commands, as the pattern tells."""
    risky = re.compile(pattern)
    harmless = re.compile(quiet) if quiet else None

    def look(name: str, given: Invocation) -> Analysis:
        words = [word for word in given.texts if not (harmless and harmless.fullmatch(word))]
        unread = given.stdin == UNKNOWN or (given.fed == "|" and given.stdin is None)
        piped = any(word.startswith("<(") for word in given.texts)
        if unread or piped or any(risky.search(text) for text in (*words, given.stdin or "")):
            return code(name)
        unknown = not all(known for _, known in given.words)
        return Analysis(notes=(f"`{name}` is given text that is known only when it runs",)) if unknown else Analysis()

    return look


def quietly(look: Look) -> Look:
    """The same for a program that does not read commands from its input."""
    return lambda name, given: look(name, given._replace(stdin=None, fed=""))


_SQLITE = r"(?:^|\n|\s)\.[a-z]\w*(?![\w/-])|load_extension|edit\s*\(|writefile|^-cmd$"
_SQLITE_QUIET = r"\.mode \w+|\.tables|\.schema.*|\.headers \w+|\.dump.*"

TOOLS: dict[str, Look] = {"git": _git, "sed": _sed, "environment": _after_dashes, "tar": _tar}
LANGUAGES: dict[str, Look] = {
    "awk": awk,
    "editor": _when(r"^(?:-c.*|--cmd.*|-es?|-s|-S.*|--command.*|\+(?!\d*$|/).*)$|!"),
    "ed": _when(r"!|(?:^|\n)[^\n]*[wW]q?\s*\S"),
    "emacs": quietly(_when(r"^-{1,2}(?:eval|execute|e|l|load|f|funcall|script|x|batch)(?:=|$)")),
    "debugger": quietly(_when(r"^-{1,2}(?:ex|x|eval|o|O|s|S|k|args|command|source|one-line|batch)")),
    "sqlite3": _when(_SQLITE, quiet=_SQLITE_QUIET),
    "psql": _when(r"\\[!gosiwe]|\\copy|(?i:\bprogram\b)|^-v.*|^--set.*|`"),
    "mysql": _when(r"(?:^|[;\n\s])(?:system|source|pager|edit|\\[.eP])\b|\\!|--pager"),
    "transfer": _when(r"!|^-[ceb]$|(?i:proxycommand|localcommand)|^-S|system|^-D$"),
    "sockets": quietly(_when(r"(?i)^-[a-z]*[ec]$|exec|system:|shell:|^-e.|^-c.")),
    "pager": quietly(_when(r"^\+.*[!|]|^-P|^--pager|^-k.|^--lesskey|^-H|^--html")),
    "make": quietly(_when(r"^--eval|^-E|^\.?SHELL|^-f-|^/dev/|^--shell|\$[({](?:shell|eval)|!=|^-$")),
    "split": quietly(_when(r"^--filter")),
    "m4": _when(r"syscmd|esyscmd|^-$|^/dev/"),
}  # programs with a language of their own, by their tag `look`, and when its text may run commands
