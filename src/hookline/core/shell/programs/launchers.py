"""Programs that run other programs, as tables: one row each says which options it takes and where its command stands.

An option that a row does not know may take a value, and then the next word is not the command: such a line is
undecidable rather than misread.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Options(NamedTuple):
    """The options of a program: `-u:` takes a value, `-n` does not; `skip` words stand before the command."""

    flags: frozenset[str]
    valued: frozenset[str]
    skip: int = 0
    assignments: bool = False


def options_of(spec: str, *, skip: int = 0, assignments: bool = False) -> Options:
    """A row from its short form: words, each with a colon when it takes a value."""
    words = spec.split()
    return Options(
        frozenset(word for word in words if not word.endswith(":")),
        frozenset(word[:-1] for word in words if word.endswith(":")),
        skip,
        assignments,
    )


_SUDO = (
    "-A -b -B -E -e -H -i -k -K -l -n -P -S -s -V -v -N -u: -g: -h: -p: -C: -r: -t: -T: -U: -D: -R: -a: -c: --askpass "
    "--background --bell --preserve-env --edit --set-home --login --non-interactive --preserve-groups --stdin --shell "
    "--user: --group: --host: --prompt: --close-from: --chdir: --chroot: --role: --type: --command-timeout: "
    "--other-user:"
)
WRAPPERS: dict[str, Options] = {
    "sudo": options_of(_SUDO, assignments=True),
    "doas": options_of("-L -n -s -a: -C: -u:"),
    "pkexec": options_of("--disable-internal-agent --keep-cwd --user:"),
    "env": options_of(
        "-i -0 -v -u: -C: - --ignore-environment --null --debug --unset: --chdir: --block-signal --default-signal "
        "--ignore-signal --list-signal-handling",
        assignments=True,
    ),
    "nice": options_of("-n: --adjustment:"),
    "ionice": options_of("-t -c: -n: -p: --class: --classdata: --ignore"),
    "nohup": options_of(""),
    "time": options_of("-p -v -a -q -l -h -o: -f: --portability --verbose --append --quiet --output: --format:"),
    "timeout": options_of("-v -f -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:", skip=1),
    "gtimeout": options_of("-v -f -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:", skip=1),
    "command": options_of("-p"),
    "builtin": options_of(""),
    "exec": options_of("-c -l -a:"),
    "stdbuf": options_of("-i: -o: -e: --input: --output: --error:"),
    "setsid": options_of("-c -f -w --ctty --fork --wait"),
    "busybox": options_of(""),
    "toybox": options_of(""),
    "chroot": options_of("--skip-chdir --userspec: --groups:", skip=1),
    "unshare": options_of(
        "-m -u -i -n -p -U -C -T -f -r -c --mount --uts --ipc --net --pid --user --fork --map-root-user"
    ),
    "strace": options_of("-f -ff -c -C -q -t -tt -T -v -y -yy -e: -o: -s: -p: -u: -E: -P:"),
    "ltrace": options_of("-f -c -C -S -e: -o: -s: -n: -u:"),
    "chrt": options_of("-a -b -f -i -o -r -m -R --batch --fifo --idle --other --rr", skip=1),
    "taskset": options_of("-a -c --all-tasks --cpu-list", skip=1),
    "setarch": options_of("-R -v --addr-no-randomize --verbose", skip=1),
    "linux64": options_of("-R -v"),
    "linux32": options_of("-R -v"),
    "caffeinate": options_of("-d -i -m -s -u -t: -w:"),
    "unbuffer": options_of("-p"),
    "fakeroot": options_of("-u -l: -s: -i: -b: --"),
    "proxychains": options_of("-q -f:"),
    "proxychains4": options_of("-q -f:"),
    "torsocks": options_of("-i -u: -p:"),
    "entr": options_of("-a -c -d -n -p -r -s -z"),
    "dotenv": options_of("-f: -e:"),
    "prlimit": options_of(""),
    "cpulimit": options_of("-i -b -l: -c: -z"),
    "systemd-run": options_of(
        "-q -d -P -S -t -r -G --user --system --scope --pty --pipe --wait --quiet --no-block --collect -p: -u: -E: "
        "-M: -H: "
        "--unit: --property: --uid: --gid: --setenv: --slice: --working-directory:"
    ),
    "xargs": options_of(
        "-0 -r -t -p -x -o -a: -d: -E: -I: -L: -n: -P: -s: -R: -S: -J: --null --no-run-if-empty --verbose "
        "--interactive "
        "--exit --open-tty --arg-file: --delimiter: --max-lines: --max-args: --max-procs: --max-chars: --replace: "
        "--process-slot-var:"
    ),
    "flock": options_of(
        "-s -x -e -u -n -o -F -w: -E: --shared --exclusive --unlock --nonblock --close --no-fork --timeout: "
        "--conflict-exit-code: --verbose",
        skip=1,
    ),
}
"""Wrappers whose inner command is the rest of the words."""

TRANSPARENT = frozenset({"nice", "nohup", "time", "timeout", "command", "stdbuf", "builtin", "ionice"})
"""Wrappers that change how a command runs but not what it may do; an allow rule for the inner command covers them."""

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "rbash", "mksh", "fish", "csh", "tcsh"})
SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
INTERPRETERS: dict[str, str] = {
    "python": "-c", "pypy": "-c", "ipython": "-c", "jython": "-c", "micropython": "-c", "perl": "-e -E", "ruby": "-e",
    "jruby": "-e", "node": "-e --eval -p --print", "nodejs": "-e --eval -p --print", "ts-node": "-e -p --eval --print",
    "tsx": "-e -p --eval --print", "deno": "eval", "bun": "-e --eval -p --print", "php": "-r -B -R -E --run",
    "lua": "-e", "luajit": "-e", "osascript": "-e", "tclsh": "", "wish": "", "expect": "-c", "Rscript": "-e",
    "R": "-e", "octave": "--eval", "julia": "-e -E --eval --print", "groovy": "-e", "scala": "-e", "jshell": "",
    "ghc": "-e", "runghc": "", "guile": "-c", "racket": "-e --eval", "sbcl": "--eval", "clojure": "-e --eval",
    "elixir": "-e --eval", "erl": "-eval", "iex": "-e", "swift": "-e", "nu": "-c --commands", "elvish": "-c",
    "xonsh": "-c", "powershell": "-c", "cmd.exe": "/c /C", "powershell.exe": "-c", "bpftrace": "-e",
    "dtrace": "-n", "stap": "-e", "gjs": "-c", "pwsh": "-c",
}  # fmt: skip
"""Interpreters, and the options that carry code."""
INTERPRETER_VALUED = frozenset(
    {"-W", "-X", "-I", "-r", "-C", "-K", "-d", "-t", "-z", "-l", "-M", "-S", "--require", "--import", "--loader",
     "--experimental-loader", "--conditions", "--env-file", "--check-hash-based-pycs", "--config"}
)  # fmt: skip
CODE_MODULES = frozenset({"timeit", "code", "pdb", "trace", "IPython", "ptpython", "bdb", "cProfile", "profile"})
"""Modules of `python -m` that run code from their words."""
OWN_SYNTAX = frozenset({"fish", "csh", "tcsh"})
"""Shells with a syntax of their own: read as well as may be, and doubted."""
VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|php|node|ipython)[\d.]+[a-z]?")
LOADER = re.compile(r"ld(?:-linux.*|-musl.*|)\.so(?:\.\d+)?|ld-linux.*")
CODE_VARIABLES = re.compile(
    r"PATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|PS[0-4]|IFS|SHELLOPTS|BASHOPTS|BASH_FUNC.*|CDPATH|SHELL|GLOBIGNORE"
    r"|GIT_(?:SSH\w*|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR|ASKPASS|PROXY_COMMAND|CONFIG\w*|EXEC_PATH|TEMPLATE_DIR"
    r"|DIR|WORK_TREE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|TRACE\w*)"
    r"|HOME|XDG_CONFIG_(?:HOME|DIRS)|RIPGREP_CONFIG_PATH|LESS|MANOPT|GREP_OPTIONS|FZF_DEFAULT_(?:COMMAND|OPTS)"
    r"|\w*PAGER|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|TAR_OPTIONS|MAKEFLAGS"
    r"|PYTHON(?:PATH|STARTUP|HOME|INSPECT|BREAKPOINT)|PERL5(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|NODE_(?:OPTIONS|PATH)"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|GCONV_PATH|HOSTALIASES|CC|CXX|GOFLAGS"
)
SETS_BY_NAME = frozenset({"read", "unset", "mapfile", "readarray", "getopts", "wait", "let"})
"""Builtins whose words are names of variables that they set."""
EVALUATES_SUBSCRIPTS = frozenset(
    {"let", "printf", "test", "[", "unset", "read", "declare", "typeset", "export", "local", "readonly", "mapfile",
     "readarray", "wait", "getopts", "shift", "return", "exit", "ulimit"}
)  # fmt: skip


def sed_flags(script: str) -> list[str]:
    """What stands where the flags of a `s/…/…/` may stand; a bracket may shift them, so every later part counts."""
    found = re.search(r"s([^\w\s])", script)
    return re.sub(r"\\.", "", script[found.end() :]).split(found[1])[2:] if found else []
