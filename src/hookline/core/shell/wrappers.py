"""What a command runs in turn: the command it wraps, the script it is handed, code in another language."""

import re
from collections.abc import Iterable
from itertools import pairwise

from hookline.core.shell.lexer import UNKNOWN
from hookline.core.shell.programs.languages import LANGUAGES, SSH_RUNS, TOOLS, interpreter, language_of
from hookline.core.shell.programs.table import CODE_VARIABLES, SHELL_VALUED, SHELLS, names, options_in, program, values
from hookline.core.shell.shell_line import Analysis, Invocation, Look, NestedCommand, SimpleCommand, Words, script

_LOADER = re.compile(r"ld(?:-linux.*|-musl.*|)\.so(?:\.\d+)?|ld-linux.*")
_LOOK, _WRAPS, _SUBSCRIPTS, _SETS = values("look"), names("wraps"), names("subscripts"), names("sets")


def find_nested_commands(command: SimpleCommand, stdin: str | None) -> Analysis:
    """What else a command runs: the command it wraps, the script it is handed, code in another language."""
    undecidable = _changing_later(name for name, _ in command.assignments)
    if not command.words:
        return Analysis(undecidable=tuple(undecidable))
    unknown, shown = frozenset(command.unknown), command.words[0][:60]
    words = [(word, index not in unknown) for index, word in enumerate(command.words)]
    if not words[0][1]:
        return Analysis(undecidable=(*undecidable, f"which program `{shown}` names is known only when it runs"))
    name = command.name
    if name not in ("[", "[[") and any(char in name for char in "*?["):
        return Analysis(undecidable=(*undecidable, f"`{shown}` depends on the files there are"))
    if "~" in command.words[0][:1]:
        undecidable.append(f"`{shown}` is a program in a home directory")
    fed = "|" if command.after in ("|", "|&") else "<" if any(each.op == "<" for each in command.redirects) else ""
    inside = _by_name(name, Invocation(words, stdin, fed))
    undecidable += inside.undecidable
    # a literal such as `a[$(rm x)]` is run when a builtin takes it for the name of a variable
    if name in _SUBSCRIPTS and any("[" in word and ("$(" in word or "`" in word) for word, _ in words[1:]):
        undecidable.append(f"`{name}` may run the command in a subscript")
    return inside._replace(undecidable=(*undecidable, *_named(name, words)))


def _changing_later(variables: Iterable[str], sign: str = "") -> list[str]:
    """Why setting these variables matters, a line for each that chooses code; `sign` may stand behind a name."""
    chosen = [name for name in variables if CODE_VARIABLES.fullmatch(name.removesuffix(sign))]
    return [f"`{name}=…` changes what later commands run" for name in chosen]


def _by_name(name: str, given: Invocation) -> Analysis:
    words, stdin, fed = given
    if name == "ssh" and (fed or stdin == UNKNOWN):
        unsure = f"`{name}` may run commands that it reads from its input"
        return Analysis(undecidable=(unsure,), notes=_ssh(name, given).notes)
    if name in SHELLS:
        inside = _shell(name, given)
        own = name in names("own-syntax")  # read as well as may be, and doubted
        return inside._replace(code=(f"`{name}` reads a syntax of its own",)) if own else inside
    if _LOADER.fullmatch(name):
        return Analysis((NestedCommand(name, words[1:]),)) if len(words) > 1 else Analysis()
    if name in _LOOK:
        return LOOKS[_LOOK[name]](name, given)
    if name in _WRAPS:
        return _wrapper(name, given)
    return interpreter(name, given) if language_of(name) else Analysis()


def _named(name: str, words: Words) -> Iterable[str]:
    """Builtins that set a variable by its bare name: `read PATH`, `printf -v PATH …`, `let PATH=1`."""
    texts = [word for word, _ in words[1:]]
    if name == "printf":
        texts = [text[2:] or after for text, after in pairwise([*texts, ""]) if text[:2] == "-v"]
    elif name not in _SETS:
        return
    for variable in (found for text in texts for found in re.findall(r"(?<!\w)[A-Za-z_]\w*", text)):
        if CODE_VARIABLES.fullmatch(variable):
            yield f"`{name}` sets `{variable}`, which changes what later commands run"


def _unsure(name: str) -> Analysis:
    return Analysis(undecidable=(f"which command `{name}` runs cannot be told from its options",))


def strip_options(words: Words, name: str) -> Words | None:
    """The words after the options of a wrapper; None when an option is not known."""
    at, row = 1, program(name)
    while at < len(words):
        word, known = words[at]
        if not known:
            return None
        if row.assignments and re.match(r"[A-Za-z_]\w*=", word):
            at += 1
        elif word == "--":
            at += 1
            break
        elif not word.startswith("-"):
            break
        else:
            options = options_in(word, row)  # none in a dash alone
            more = options[-1][2] if options else 0
            valued = word.startswith("--") and word.partition("=")[0] in row.options  # if it takes one or not
            if more < 0 and not valued and not re.fullmatch(r"-\+?\d+", word):  # `nice -10`
                return None
            at += 1 + max(more, 0)
    while row.assignments and at < len(words) and re.match(r"[A-Za-z_]\w*=", words[at][0]):
        at += 1
    return words[at + row.skip :]


def _wrapper(name: str, given: Invocation) -> Analysis:
    words = given.words
    inner = strip_options(words, name)
    if inner is None:
        return _unsure(name)
    own = words[1 : len(words) - len(inner)]
    codes = _changing_later(word.split("=")[0] for word, _ in own if "=" in word)
    return Analysis((NestedCommand(name, inner, stdin=given.stdin),) if inner else (), tuple(codes))


def _sudo(name: str, given: Invocation) -> Analysis:
    inside = _wrapper(name, given)
    if not inside.runs and any(re.fullmatch(r"-\w*[si]\w*|--shell|--login", word) for word in given.texts):
        return Analysis(undecidable=(f"`{name}` starts a shell that reads its input",))
    return inside


def _shell(name: str, given: Invocation) -> Analysis:
    words = given.words
    at, takes_text = 1, False
    while at < len(words) and words[at][1] and words[at][0][:1] in ("-", "+") and words[at][0] not in ("-", "--"):
        word = words[at][0]
        if word in ("--version", "--help"):
            return Analysis()
        takes_text = takes_text or bool(re.fullmatch(r"[-+]\w*c\w*|--command", word))
        at += 2 if word in SHELL_VALUED else 1
    at += at < len(words) and words[at][0] in ("-", "--")
    if takes_text:
        return script(f"{name} -c", words[at : at + 1], name) if at < len(words) else Analysis()
    if at < len(words) and not words[at][1]:
        return Analysis(undecidable=(f"which file `{name}` runs is known only when it runs",))
    reads_input = any(re.fullmatch(r"-\w*s\w*", word) for word, _ in words[1:])
    if at < len(words) and not words[at][0].startswith(("/dev/", "/proc/")) and not reads_input:
        return Analysis(notes=(f"`{name}` runs the script `{words[at][0]}`",))
    if given.stdin is None or given.stdin == UNKNOWN:
        return Analysis(undecidable=(f"`{name}` runs commands that it reads from its input",))
    return Analysis((NestedCommand(f"{name} <<", [], given.stdin, shell=name),))


def _eval(name: str, given: Invocation) -> Analysis:
    rest = given.words[2:] if given.texts[:1] == ["--"] else given.words[1:]
    return script(name, rest) if rest else Analysis()


def _alias(name: str, given: Invocation) -> Analysis:
    bodies = [(word.split("=", 1)[1], known) for word, known in given.words[1:] if "=" in word]
    if not bodies:
        return Analysis()
    inside = [script("alias", [body]) for body in bodies]
    reasons = (reason for each in inside for reason in each.undecidable)
    runs = tuple(inner for each in inside for inner in each.runs)
    return Analysis(runs, ("`alias` changes what a later word means", *reasons))


def _trap(name: str, given: Invocation) -> Analysis:
    rest = [word for word in given.words[1:] if word[0] not in ("-p", "-l", "--", "-lp")]
    return script("trap", rest[:1]) if len(rest) > 1 and rest[0][0] != "-" else Analysis()


def _find(name: str, given: Invocation) -> Analysis:
    """`find … -exec command {} ;`, several times perhaps."""
    words = given.words
    runs: list[NestedCommand] = []
    index = 1
    while index < len(words):
        flag, _ = words[index]
        index += 1
        if flag not in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            continue
        inner: Words = []
        while index < len(words) and words[index][0] not in (";", "+"):
            word, known = words[index]
            inner.append((word, known and "{}" not in word))
            index += 1
        if inner:
            runs.append(NestedCommand(f"{name} {flag}", inner))
    unsure = () if all(known for _, known in words) else (f"`{name}` takes options that are known only when it runs",)
    return Analysis(tuple(runs), unsure)


def _env(name: str, given: Invocation) -> Analysis:
    words = given.words
    for index, (word, _) in enumerate(words[1:], 1):
        if re.fullmatch(r"-\w*S|--split-string", word):
            return script("env -S", words[index + 1 :])
        if found := re.match(r"-\w*S(.+)|--split-string=(.*)", word, re.DOTALL):
            return script("env -S", [(found[1] or found[2], words[index][1]), *words[index + 1 :]])
        if not word.startswith("-") and "=" not in word:
            break
    return _wrapper(name, given)


_REPLACE = re.compile(r"-[Ii](.*)|-J(.*)|--replace(?:=(.*))?", re.DOTALL)


def _xargs(name: str, given: Invocation) -> Analysis:
    words = given.words
    inner = strip_options(words, name)
    if not inner:
        return _unsure(name) if inner is None else Analysis()
    holes, options = ["{}"], words[1 : len(words) - len(inner)]  # what it replaces by what it reads
    for index, (word, _) in enumerate(options):
        if found := _REPLACE.fullmatch(word):
            attached = found[1] or found[2] or found[3]
            holes.append(attached or (options[index + 1][0] if index + 1 < len(options) else "{}"))
    filled = ((word, known and not any(hole in word for hole in holes)) for word, known in inner)
    appended = [] if len(holes) > 1 else [("…", False)]
    return Analysis((NestedCommand(name, [*filled, *appended]),))


def _parallel(name: str, given: Invocation) -> Analysis:
    rest = [word for word in given.words[1:] if not word[0].startswith("-")]
    inner = rest[: next((i for i, (word, _) in enumerate(rest) if word.startswith(":::")), len(rest))]
    unsure = (f"`{name}` builds commands from its input",)
    if not inner or not all(known for _, known in inner):
        return Analysis(undecidable=unsure)
    return script(name, inner)._replace(undecidable=unsure)


def _watch(name: str, given: Invocation) -> Analysis:
    inner = strip_options(given.words, name)
    if not inner:
        return _unsure(name) if inner is None else Analysis()
    return script(name, inner, "sh")


def _ssh(name: str, given: Invocation) -> Analysis:
    inner = strip_options(given.words, name)
    note = (f"`{name}` runs commands on another machine",)
    risky = (f"`{name}` runs the command in its options",) * any(map(SSH_RUNS.search, given.texts))
    if inner is None:
        return Analysis(undecidable=(*_unsure(name).undecidable, *risky), notes=note)
    if not inner and given.stdin is not None:
        return Analysis((NestedCommand(f"{name} <<", [], given.stdin),), risky, note)
    if not inner:
        return Analysis(undecidable=risky, notes=note)
    return script(name, inner)._replace(notes=note) if not risky else Analysis(undecidable=risky, notes=note)


def _dash_c(name: str, given: Invocation) -> Analysis:
    """`su -c TEXT`, `script -c TEXT`, `flock FILE -c TEXT`, `runuser -c TEXT`: a text for a shell."""
    words = given.words
    for index, (word, _) in enumerate(words[1:], 1):
        if re.fullmatch(r"-\w*c|--command|--session-command|--run", word):
            return script(f"{name} -c", words[index + 1 : index + 2])
        if word.startswith(("--command=", "--session-command=")):
            return script(f"{name} -c", [(word.split("=", 1)[1], words[index][1])])
    if name == "flock":
        return _wrapper(name, given)
    return Analysis(undecidable=(f"`{name}` starts a shell or a program that its words do not name plainly",))


def _says(reason: str) -> Look:
    """A program of which nothing more can be told; `{name}` and `{words}` are its own."""
    return lambda name, given: Analysis(undecidable=(reason.format(name=name, words=" ".join(given.texts)),))


def _hash(name: str, given: Invocation) -> Analysis:
    risky = {"hash": "-p", "enable": "-f", "bind": "-x", "set": "", "shopt": ""}.get(name, "-C")
    if risky and any(word == risky or (word.startswith(risky) and len(word) > 2) for word in given.texts):
        return Analysis(undecidable=(f"`{name} {risky}` makes a later word run something else",))
    return Analysis()


def _declare(name: str, given: Invocation) -> Analysis:
    words = given.words
    reasons = _changing_later((word.split("=")[0] for word, _ in words[1:] if "=" in word), sign="+")
    if name in ("declare", "typeset", "local") and any(re.fullmatch(r"-\w*n\w*", word) for word, _ in words[1:]):
        reasons.append(f"`{name} -n` gives a variable a second name")
    if not all(known or "=" in word for word, known in words[1:]):
        reasons.append(f"which variable `{name}` sets is known only when it runs")
    return Analysis(undecidable=tuple(reasons))


LOOKS: dict[str, Look] = {
    "alias": _alias,
    "command": lambda name, given: Analysis() if given.texts[:1] in (["-v"], ["-V"]) else _wrapper(name, given),
    "dash-c": _dash_c,
    "declare": _declare,
    "env": _env,
    "eval": _eval,
    "find": _find,
    "hash": _hash,
    "later": _says("`{name}` runs commands later or elsewhere, which its words do not show"),
    "parallel": _parallel,
    "source": _says("`{name}` runs the commands in `{words}`"),
    "ssh": _ssh,
    "sudo": _sudo,
    "trap": _trap,
    "watch": _watch,
    "xargs": _xargs,
    **TOOLS,
    **LANGUAGES,
}  # how to look inside a program, by its tag `look`
