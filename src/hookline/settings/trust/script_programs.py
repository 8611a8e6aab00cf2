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
        ":", "[", "[[", "afplay", "alias", "aplay", "basename", "break", "cal", "cat", "cd", "chmod",
        "chown", "cmp", "column", "comm", "command", "continue", "cp", "curl", "cut", "date", "declare",
        "df", "diff", "dirname", "du", "echo", "egrep", "exit", "expand", "export", "expr", "false",
        "fgrep", "fmt", "fold", "getopts", "grep", "groups", "hash", "head", "hostname", "id", "jobs",
        "join", "jq", "kill", "less", "let", "link", "ln", "local", "logger", "ls", "md5sum", "mkdir",
        "mktemp", "more", "mv", "nl", "notify-send", "numfmt", "od", "paplay", "paste", "popd", "pr",
        "printenv", "printf", "pushd", "pwd", "read", "readlink", "readonly", "realpath", "return", "rev",
        "rm", "rmdir", "say", "seq", "set", "sha1sum", "sha256sum", "shasum", "shift", "shopt", "shuf",
        "sleep", "sort", "stat", "stty", "sum", "tac", "tail", "tee", "terminal-notifier", "test", "times",
        "touch", "tr", "trap", "true", "truncate", "tsort", "tty", "type", "typeset", "ulimit", "umask",
        "uname", "unexpand", "uniq", "unset", "wait", "wc", "wget", "which", "whoami", "yes",
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
HOOKLINE_FILES = frozenset({"--hooks", "--settings"})
HOOKLINE_VERBS = frozenset({"answer", "audit", "check", "fire", "guard", "hosts", "list", "pipe", "report", "watch"})
"""Commands of ours that run no other files than these flags name, and the project's trusted hooks."""
CODE_VARIABLES = re.compile(
    r"(?:LD|DYLD|PYTHON|NODE|NPM|PERL|PERL5|RUBY|GIT|BASH|JAVA|LUA|PHP|HOOKLINE|DENO|BUN|AWK|GAWK|R|ZDOT)_?[A-Z0-9_%()]*|"
    r"ENV|SHELLOPTS|SHELL|IFS|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|LESSOPEN|LESSCLOSE|HOME|TMPDIR|CLASSPATH|PHPRC|"
    r"XDG_[A-Z_]*|JDK_[A-Z_]*|_JAVA_[A-Z_]*|BASH_FUNC_.*"
)
"""Variables that make programs take code, or settings that name code, from elsewhere."""
PLAIN_VARIABLES = frozenset(
    {"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "NODE_ENV",
     "PYTHONWARNINGS", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"}
)  # fmt: skip
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
