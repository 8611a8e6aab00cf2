"""Programs as trust sees them: which run files, which run none, and how scripts name their own folder. Tables only."""

from __future__ import annotations

import re

CODE = frozenset(
    [".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".ps1"]
)
"""What files of code are called."""

RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
}
"""Commands that run what another file says, and that file."""

PLAIN = frozenset(
    {
        ":", "[", "[[", "afplay", "alias", "aplay", "basename", "break", "cal", "cat", "cd", "chmod", "chown",
        "cmp", "column", "comm", "command", "continue", "cp", "curl", "cut", "date", "declare", "df", "diff",
        "dirname", "du", "echo", "egrep", "exit", "expand", "export", "expr", "false", "fgrep", "fmt", "fold",
        "getopts", "grep", "groups", "hash", "head", "hookline", "hostname", "id", "jobs", "join", "jq", "kill",
        "less", "let", "link", "ln", "local", "logger", "ls", "md5sum", "mkdir", "mktemp", "more", "mv", "nl",
        "notify-send", "numfmt", "od", "open", "osascript", "paplay", "paste", "popd", "pr", "printenv",
        "printf", "pushd", "pwd", "read", "readlink", "readonly", "realpath", "return", "rev", "rm", "rmdir",
        "say", "seq", "set", "sha1sum", "sha256sum", "shasum", "shift", "shopt", "shuf", "sleep", "sort",
        "split", "stat", "stty", "sum", "tac", "tail", "tee", "terminal-notifier", "test", "times", "touch",
        "tr", "trap", "true", "truncate", "tsort", "tty", "type", "typeset", "ulimit", "umask", "uname",
        "unexpand", "uniq", "unset", "wait", "wc", "wget", "which", "whoami", "xdg-open", "yes",
    }
)  # fmt: skip
"""Programs that run none of the files they are given."""
WITH_PROGRAM_FILE = {
    "awk": ("-f",),
    "gawk": ("-f", "-i"),
    "mawk": ("-f",),
    "sed": ("-f",),
    "jq": ("-f", "--from-file"),
}
PYTHON_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})
OTHER_VALUED = frozenset(
    {"-r", "--require", "--import", "--loader", "-I", "-C", "-M", "--config", "--env-file", "-A", "--allow"}
)
HERE = re.compile(
    r"""\$\(\s*cd\s+["']?\$\(\s*dirname\s+(?:--\s+)?["']?(?:\$0|\$\{?BASH_SOURCE(?:\[0\])?\}?)["']?\s*\)["']?"""
    r"""\s*(?:>\s*/dev/null\s*(?:2>&1\s*)?)?&&\s*pwd(?:\s+-P)?\s*\)|\$\(\s*dirname\s+(?:--\s+)?["']?(?:\$0|\$\{0\}|"""
    r"""\$\{?BASH_SOURCE(?:\[0\])?\}?)["']?\s*\)|\$\{0%/\*\}|\$\{BASH_SOURCE(?:\[0\])?%/\*\}"""
)
"""How a shell script names the folder it lies in."""
INLINE_FILES = re.compile(r"require|import|load|open|exec|source|include|spawn|\./")

ANSWERED = re.compile(
    r"^`(?:\.|source)` runs the commands in |reads from its input$|^which (?:program|file) |is a program in a home|"
    r"`PATH=…` changes"
)
"""What the shell reader cannot tell, and this one has looked at itself or notes in its own words."""
