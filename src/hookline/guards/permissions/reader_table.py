"""The programs that read, and the options with which they do nothing else: one row each.

A program that is not here, or an option that its row does not list, may do anything. Left out on purpose: options that
write (`sort -o`, `tree -o`), run programs (`sort --compress-program`, `rg --pre`, `fd -x`, `diff --paginate`), change
something (`date --set`, `file -p`), or read files whose names stand in another file (`wc --files0-from`).
"""

from __future__ import annotations

import re

from hookline.guards.permissions.options import ReadOnlyOptions, row

HARMLESS = frozenset(
    """
    echo true false : pwd whoami uname id which type seq expr basename dirname arch nproc groups tty logname
    """.split()  # noqa: SIM905 - a column of quotes would not read better
)
"""Programs that look at no file and change nothing, whatever they are told."""

_DIGITS = "-0123456789"
_GREP = row(
    f"{_DIGITS} -EFGPivwxycLloqsbHhnTZaUzrRI -e: -f@ -m: -A: -B: -C: -d: -D: --extended-regexp --fixed-strings "
    "--basic-regexp --perl-regexp --regexp: --file@ --ignore-case --no-ignore-case --invert-match --word-regexp "
    "--line-regexp --count --color? --colour? --files-without-match --files-with-matches --max-count: --only-matching "
    "--quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: --line-number --initial-tab "
    "--null --after-context: --before-context: --context: --group-separator: --no-group-separator --text "
    "--binary-files: --devices: --directories: --exclude: --exclude-from@ --exclude-dir: --include: --recursive "
    "--dereference-recursive --line-buffered --null-data",
    "pattern",
    no_pattern="-e -f --regexp --file",
)
_SUMS = row("-bctwz --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn")

READERS: dict[str, ReadOnlyOptions] = {
    "ls": row(
        "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size: "
        "--ignore-backups --color? --directory --dired --classify? --file-type --format: --full-time "
        "--group-directories-first --no-group --human-readable --si --dereference-command-line --hide: --hyperlink? "
        "--indicator-style: --inode --ignore: --kibibytes --dereference --numeric-uid-gid --literal "
        "--hide-control-chars --show-control-chars --quote-name --quoting-style: --reverse --recursive --size --sort: "
        "--time: --time-style: --tabsize: --width: --context --zero"
    ),
    "cat": row("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
               "--show-nonprinting"),
    "head": row(f"{_DIGITS} -qvz -c: -n: --bytes: --lines: --quiet --silent --verbose --zero-terminated"),
    "tail": row(
        f"{_DIGITS} -fFqvz -c: -n: -s: --bytes: --lines: --follow? --max-unchanged-stats: --pid: --quiet --silent "
        "--retry --sleep-interval: --verbose --zero-terminated"
    ),
    "wc": row("-cmlLw --bytes --chars --lines --max-line-length --words --total:"),
    "stat": row("-Lft -c: --dereference --file-system --format: --printf: --terse --cached:"),
    "du": row(
        "-abcDhHklLmPsSx0 -d: -t: -B: --all --apparent-size --bytes --total --dereference-args --max-depth: "
        "--human-readable --inodes --si --count-links --dereference --no-dereference --separate-dirs --summarize "
        "--threshold: --time? --time-style: --one-file-system --block-size: --null --exclude:"
    ),
    "df": row(
        "-ahHiklPTv -B: -t: -x: --all --block-size: --human-readable --si --inodes --local --no-sync --output? "
        "--portability --print-type --type: --exclude-type: --total"
    ),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rg": row(
        "-FiSsvwxclonNHIhuUPLabpq0. -e: -f@ -g: -t: -T: -A: -B: -C: -m: -d: -j: -M: -r: -E: --fixed-strings "
        "--ignore-case --smart-case --case-sensitive --invert-match --word-regexp --line-regexp --count "
        "--count-matches --files-with-matches --files-without-match --only-matching --line-number --no-line-number "
        "--column --with-filename --no-filename --hidden --no-hidden --no-ignore --no-ignore-vcs --unrestricted "
        "--multiline --multiline-dotall --pcre2 --follow --text --byte-offset --pretty --quiet --null --regexp: "
        "--file@ --glob: --iglob: --type: --type-not: --after-context: --before-context: --context: --max-count: "
        "--max-depth: --threads: --max-columns: --replace: --encoding: --files --type-list --sort: --sortr: --stats "
        "--trim --vimgrep --json --heading --no-heading --color: --colors: --passthru --no-messages --no-config "
        "--one-file-system --max-filesize: --context-separator: --debug",
        "pattern",
        no_pattern="-e -f --regexp --file --files --type-list",
    ),
    "diff": row(
        f"{_DIGITS} -abBcdeEfHiNnpPqrstTuwy -C: -U: -W: -x: -F: -I: -X@ -S: -L: --text --ignore-space-change "
        "--ignore-blank-lines --context? --minimal --ed --ignore-tab-expansion --speed-large-files --ignore-case "
        "--new-file --rcs --show-c-function --unidirectional-new-file --brief --recursive --report-identical-files "
        "--expand-tabs --initial-tab --unified? --ignore-all-space --ignore-trailing-space --side-by-side --width: "
        "--left-column --suppress-common-lines --strip-trailing-cr --exclude: --exclude-from@ --ignore-matching-lines: "
        "--show-function-line: --label: --color? --no-dereference --normal --tabsize: --horizon-lines: "
        "--ignore-file-name-case",
        most=2,
    ),
    "cmp": row("-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent"),
    "comm": row("-123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated"),
    "cut": row("-nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited "
               "--output-delimiter: --zero-terminated"),
    "tr": row("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "text"),
    "nl": row("-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-width: "
              "--number-separator: --starting-line-number: --line-increment:"),
    "realpath": row("-eEmLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet "
                    "--relative-to@ --relative-base@ --strip --no-symlinks --zero"),
    "readlink": row("-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet "
                    "--silent --verbose --zero"),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"), _SUMS),
    "cksum": row("", "files"),
    "strings": row(f"{_DIGITS} -adfow -n: -t: -e: -s: --all --data --print-file-name --bytes: --radix: --encoding: "
                   "--include-all-whitespace --output-separator:"),
    "od": row("-abcdfilosxv -A: -j: -N: -S: -t: -w? --address-radix: --skip-bytes: --read-bytes: --strings? --format: "
              "--output-duplicates --width? --endian:"),
    "hexdump": row("-bcCdovx -n: -s: -L? --one-byte-octal --canonical --length: --skip: --no-squeezing"),
    "xxd": row("-abeEipu -c: -g: -l: -s: -o: -n:", most=1),
    "column": row("-tnxeJLdr -s: -o: -c: -N: -R: -H: -T: -W: -O: --table --separator: --output-separator: "
                  "--output-width: --table-columns: --table-right: --table-hide: --json --fillrows --keep-empty-lines"),
    "jq": row(
        "-rcnsSeajRMC --raw-output --raw-output0 --compact-output --null-input --slurp --sort-keys --exit-status "
        "--ascii-output --join-output --raw-input --monochrome-output --color-output --tab --indent: --arg:: "
        "--argjson:: --stream --seq",
        "pattern",
    ),
    "tac": row("-br -s: --before --regex --separator:"),
    "rev": row("-0 --zero"),
    "fold": row(f"{_DIGITS} -bs -w: --bytes --spaces --width:"),
    "paste": row("-sz -d: --delimiters: --serial --zero-terminated"),
    "join": row("-iz -a: -e: -j: -o: -t: -v: -1: -2: --check-order --nocheck-order --header --ignore-case "
                "--zero-terminated", most=2),
    "tree": row(
        "-adfilxpsughDFqNQrtvUcCnASJX -L: -P: -I: --du --si --dirsfirst --filesfirst --noreport --prune --gitignore "
        "--matchdirs --ignore-case --inodes --device --sort: --filelimit: --charset: --timefmt: --metafirst"
    ),
    "file": row("-biIkLhNnrsv0 -F: -e: --brief --mime --mime-type --mime-encoding --extension --keep-going "
                "--dereference --no-dereference --no-pad --no-buffer --raw --special-files --print0 --separator: "
                "--version"),
    "sort": row(
        "-bdfgiMhnRrVcCusmz -k: -t: -S: --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort "
        "--reverse --sort: --version-sort --batch-size: --check? --debug --key: --merge --buffer-size: --stable "
        "--field-separator: --parallel: --unique --zero-terminated"
    ),
    "base64": row("-dDi -w: --decode --ignore-garbage --wrap:", most=1),
    "base32": row("-di -w: --decode --ignore-garbage --wrap:", most=1),
    "tsort": row("", most=1),
    "expand": row("-i -t: --initial --tabs:"),
    "unexpand": row("-a -t: --all --first-only --tabs:"),
    "fmt": row(f"{_DIGITS} -cstu -g: -p: -w: --crown-margin --split-only --tagged-paragraph --uniform-spacing --goal: "
               "--prefix: --width:"),
    "pr": row(f"{_DIGITS} -acdfFJmrtTv -h: -l: -w: -W: -D: -N: -o: -n? -s? -S? --length: --omit-header --width: "
              "--header: --double-space --merge --across --columns:"),
    "uniq": row("-cdDuiz -f: -s: -w: --count --repeated --all-repeated? --skip-fields: --group? --ignore-case "
                "--skip-chars: --unique --zero-terminated --check-chars:", most=1),
    "shuf": row("-erz -n: -i: --echo --head-count: --input-range: --repeat --zero-terminated"),
    "fd": row(
        "-HIusigFaLp0q1 -d: -t: -e: -E: -S: -c: --hidden --no-ignore --no-ignore-vcs --unrestricted --case-sensitive "
        "--ignore-case --glob --regex --fixed-strings --absolute-path --follow --full-path --print0 --max-depth: "
        "--min-depth: --exact-depth: --type: --extension: --exclude: --size: --changed-within: --changed-before: "
        "--color: --max-results: --quiet --prune",
        "pattern",
    ),
    "date": row("-uR -I? -d: -r@ --date: --utc --universal --rfc-email --rfc-3339: --iso-8601? --reference@", "text"),
}  # fmt: skip
"""Program → the options with which it only reads."""

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
