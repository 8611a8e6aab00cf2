"""What has to hold besides a row's options for a program to do nothing but read."""

from __future__ import annotations

import re

FORMS: dict[str, str] = {
    "cal": r"[\d ]*",
    "command": r"-[vV]( [\w.+-]+)+",
    "docker": r"(ps|images)( -[aq]+| --all)*|inspect( \w[\w.-]*)+|logs( \w[\w.-]*)",
    "free": r"(-[bkmght]+( -[bkmght]+)*)?",
    "git": r"branch( -[arv]+| --(all|remotes|list|show-current|sort=\S+)| --(no-)?(merged|contains)( \w\S*)?)*"
    r"|tag( (-l|--list|--sort=\S+|--contains \w\S*))*|remote( (-v|--verbose))?|stash list|stash show( -p| --stat)*"
    r"|config --get [\w.-]+|reflog( show)?( -n \d+)?|for-each-ref( refs/\S*)*|worktree list( --porcelain)?|--version",
    "help": r"\w*",
    "history": r"\d*",
    "hostname": r"(-[fisdAI]+)?",
    "ifconfig": r"\w*",
    "ip": r"addr",
    "locale": r"(-[am])?",
    "lsof": r"(-[inPt]+( :\d+)?)?",
    "netstat": r"(-[anltursi]+( -[anltursi]+)*)?",
    "node": r"-v|--version",
    "numfmt": r"(--(to|from)=\w+ )*[\d.]+\w?",
    "pgrep": r"(-[lafx]+ )*[\w.]+",
    "ps": r"((-[a-zA-DF-Z]+|[axu]+|\d+)( (-[a-zA-DF-Z]+|[axu]+|\d+))*)?",
    "python": r"--version",
    "python3": r"--version",
    "sed": r"-n (\d+|\$)(,(\+?\d+|\$))?p( \w\S*)+",
    "sleep": r"[\d.]+[smh]?",
    "ss": r"(-[tulpnar46]+( -[tulpnar46]+)*)?",
    "tput": r"cols|lines|colors|bold|sgr0",
    "uptime": r"(-[ps]+)?",
    "users": r"",
}
"""Programs that read when they are called like this, by what follows their name."""

_FIND_FLAGS = frozenset(
    """
    -H -L -P -O0 -O1 -O2 -O3 -empty -readable -writable -executable -depth -d -xdev -mount -prune -print -print0
    -ls -quit -not ! -a -and -o -or ( ) , -true -false -follow -daystart -noleaf -nouser -nogroup -warn -nowarn
    -ignore_readdir_race -noignore_readdir_race
    """.split()  # noqa: SIM905 - a column of quotes would not read better
)
_FIND_TEXTS = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin
    -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -printf -lname
    -ilname -fstype -used
    """.split()  # noqa: SIM905 - a column of quotes would not read better
)
_FIND_FILES = re.compile(r"-(?:newer|anewer|cnewer|samefile|newer[aBcm][aBcm])")


def find_files(words: list[str]) -> list[str] | None:
    """The folders that `find` goes through and the files it compares with; None when it may do more than look."""
    files: list[str] = []
    at, started = 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if word in _FIND_FLAGS:
            started = started or word not in ("-H", "-L", "-P")
        elif word in _FIND_TEXTS or _FIND_FILES.fullmatch(word):
            started = True
            if at == len(words):
                return None
            files += [words[at]] if word not in _FIND_TEXTS else []
            at += 1
        elif word.startswith("-") or started:
            return None
        else:
            files.append(word)
    return files


_COUNTS_INTO = re.compile(r"%[-+ #0-9.*$'hlLjzt]*n")
_FETCHES = re.compile(r"\b(?:import|include|env)\b|\$ENV")


def prints_only(words: list[str]) -> bool:
    """Whether `printf` is given a format that sets no variable; `-v` and `%n` do, and run what is in a subscript."""
    return bool(words) and not words[0].startswith("-") and not _COUNTS_INTO.search(words[0])


def shows_date(operands: tuple[str, ...]) -> bool:
    """Whether `date` is given formats only: a bare number sets the clock."""
    return all(word.startswith("+") for word in operands)


def filters_only(operands: tuple[str, ...]) -> bool:
    """Whether a jq filter reads no further files, and not the environment."""
    return not (operands and _FETCHES.search(operands[0]))


def compares_only(words: list[str]) -> bool:
    """Whether `test` looks at no variable by its name: a subscript in the name may run a command."""
    return not any(word in ("-v", "-R") for word in words)


def asks_gpg(options: tuple[tuple[str, str], ...]) -> bool:
    """Whether a format shows signatures: `%G?` runs the program that the configuration names for it."""
    return any(name in ("--format", "--pretty") and "%G" in value for name, value in options)
