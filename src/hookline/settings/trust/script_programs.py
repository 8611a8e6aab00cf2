"""Programs as trust sees them: which run files, which run none, and how scripts name their own folder. Tables only."""

from __future__ import annotations

import re

from hookline.core.shell.programs.table import lists, names

CODE = frozenset(
    [".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".ps1"]
)
"""What files of code are called."""

RECIPES = lists("recipe")
"""Commands that run what another file says, and that file."""
PLAIN = names("plain")
"""Programs that run none of the files they are given."""
WITH_PROGRAM_FILE = lists("program-file")
"""Programs that are given a file of code by an option."""
HOOKLINE_FILES = frozenset({"--hooks", "--settings"})
HOOKLINE_VERBS = frozenset({"answer", "audit", "check", "fire", "guard", "list", "pipe"})
"""Commands of ours that run no other files than these flags name, and the project's trusted hooks."""
HOOKLINE_FLAGS = re.compile(r"--(?:hooks|settings|dialect|event|json|scope|only)(?:=|$)|-j$")
CODE_OPTIONS = re.compile(
    r"curl (?:-\w*K|--config)|wget (?:--use-askpass|--config|-e|--execute)|terminal-notifier -execute|"
    r"(?:sort|split) --(?:compress|filter)"
)
"""Options of plain programs that run something."""
PLAIN_FLAGS = frozenset({"-w", "-T", "-s", "--no-warnings", "--trace-warnings", "--enable-source-maps", "--version"})
"""Flags of interpreters other than Python that load nothing."""
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
