"""What is known about programs that run others, besides their rows: values of options, modules, variables."""

from __future__ import annotations

import re

from hookline.core.shell.programs.table import lists, names

SHELLS = names("shell")
SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
INTERPRETERS = lists("code")
"""Interpreters, and the options that carry code."""
INTERPRETER_VALUED = frozenset(
    {"-W", "-X", "-I", "-r", "-C", "-K", "-d", "-t", "-z", "-l", "-M", "-S", "--require", "--import", "--loader",
     "--experimental-loader", "--conditions", "--env-file", "--check-hash-based-pycs", "--config"}
)  # fmt: skip
CODE_MODULES = frozenset({"timeit", "code", "pdb", "trace", "IPython", "ptpython", "bdb", "cProfile", "profile"})
"""Modules of `python -m` that run code from their words."""
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


def sed_flags(script: str) -> list[str]:
    """What stands where the flags of a `s/…/…/` may stand; a bracket may shift them, so every later part counts."""
    found = re.search(r"s([^\w\s])", script)
    return re.sub(r"\\.", "", script[found.end() :]).split(found[1])[2:] if found else []
