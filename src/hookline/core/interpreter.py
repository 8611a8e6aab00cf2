"""How Hookline starts itself, and what a gate takes from its environment: nothing that could change its answer.

A project can set variables for the hooks that judge it: `env` in a settings file, a `.env`, an `.envrc`. So the
commands that `install` and `init` write start Python isolated (`-I`), and a gate that was started so drops every
variable that chooses code, folders or switches, before it reads anything. Those that the user had set when the entry
was written are in the entry itself (`-X hookline.NAME=VALUE`), where no environment reaches them. What the system's
loader and C library read (`LD_PRELOAD`, `GCONV_PATH`) acts before any program runs; only the host can keep that away.
"""

# ruff: noqa: PTH100, PTH110, PTH118, PTH120 - every command hook imports this, and `pathlib` costs a third of it

import os
import sys

ISOLATED = ("-I", "-X", "utf8")
"""Nothing from PYTHON… variables, the working folder or the user's own packages; text is UTF-8 in every locale."""
HEEDED = ("PYTHONEXECUTABLE", "__PYVENV_LAUNCHER__")
"""What CPython 3.11 to 3.13 heeds in spite of `-I`: it runs the `sitecustomize` of the environment that they name."""
GATES = frozenset({"answer", "guard", "pipe", "mcp"})  # the commands whose answer decides whether a tool runs
GIVEN: dict[str, str] = {}  # what a gate was started with, for the server behind `hookline mcp`, which is not one
PACKAGES: str = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder that holds this package."""
LASTING = (
    "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME",
    "KIMI_CODE_HOME", "VIBE_HOME", "HOOKLINE_MANAGED_SETTINGS", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Variables of the user's that an entry keeps as they were when it was written, besides HOME where it was moved."""
PROJECT, SET_BY = "CLAUDE_PROJECT_DIR", ("claude", "gemini", "qwen", "copilot", "grok", "droid")
"""The variable for the project's folder, and the hosts that set it for their hooks, whatever it was before."""
TEMPORARY = ("TMPDIR", "TEMP", "TMP")
SYSTEM = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin"
"""Where a project's entries look for `hookline` after `~/.local/bin`, whatever PATH and HOME say."""
_STARTUP = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR", "PYTHONWARNINGS",
            "COVERAGE_PROCESS_START")  # fmt: skip
"""What chooses code while Python starts without `-I`, as the script that pip writes does."""
_KEPT = {"HOOKLINE_SERVICE", "HOOKLINE_PROVE", "HOOKLINE_HOOK_ID"}
"""Of ours: a service's name, looked up in a folder of this user alone; a proof's file, checked; a process's marker."""
_NAMES = frozenset({
    *LASTING, *TEMPORARY, *HEEDED, "HOME", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS",
    "PS4", "GCONV_PATH", "LOCPATH", "NLSPATH", "GLIBC_TUNABLES", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
})  # fmt: skip
_PREFIXES = (
    "PYTHON", "HOOKLINE_", "XDG_", "LD_", "DYLD_", "MALLOC_", "BASH_FUNC_", "GIT_", "OPENSSL_", "SSL_", "NODE_", "RUBY",
    "PERL", "LUA_", "COVERAGE_", "SETUPTOOLS_", "CONDA_", "UV_", "PIP_", "npm_config_", "NPM_CONFIG_",
)  # fmt: skip
"""What makes Python, a shell, git, TLS or an interpreter that a hook starts run or read something else."""
_MARK, _SHARED = "hookline.", "HOOKLINE_SHARED"


def python_argv(
    code: str, *arguments: str, options: tuple[str, ...] = ISOLATED, python: str = "", home: str = PACKAGES
) -> list[str]:
    """Start this interpreter on code that imports from this very package; `sys.argv[1:]` are the arguments."""
    boot = f"import sys; sys.path.append(sys.argv.pop(1)); {code}"
    return [python or sys.executable, *options, "-c", boot, home, *arguments]


def hookline_argv(*words: str) -> list[str]:
    """Start `hookline WORDS` from anywhere: isolated, and every path whole."""
    import site

    script = os.path.join(os.path.dirname(sys.executable), "hookline")
    if site.getusersitepackages() == PACKAGES or not os.access(script, os.X_OK):  # `-I` does not look there
        script = os.path.join(PACKAGES, "hookline", "__main__.py")
    return [sys.executable, *ISOLATED, script, *words]


def shell_command(argv: list[str]) -> str:
    """The line by which a shell starts this, whatever its environment says."""
    from shlex import join

    return f"{' '.join(f'{name}=' for name in HEEDED)} {join(argv)}"


def shared_command() -> str:
    """The words by which a shell finds and starts `hookline` on any machine, for a file that a team shares.

    Its place is not the environment's: the account's own `~/.local/bin`, where pipx and uv put it, or the system's.
    """
    clear = " ".join([*(f"{name}=" for name in (*HEEDED, *_STARTUP)), f"{_SHARED}=1"])
    home = '$(eval echo "~$(/usr/bin/id -un)")'
    return f'hookline=$(PATH="{home}/.local/bin:{SYSTEM}" command -v hookline) && {clear} "$hookline"'


def shared_program() -> str:
    """What that finds here, or nothing."""
    from shutil import which

    return which("hookline", path=f"{os.path.join(account_home(), '.local', 'bin')}:{SYSTEM}") or ""


def launch_argv() -> list[str]:
    """Start `hookline confine` without `site` and the rest of Hookline, which need not be read for it."""
    return [sys.executable, *ISOLATED, "-S", os.path.join(PACKAGES, "hookline", "sandbox", "launch.py")]


def entry_argv() -> list[str]:
    """The same for a host's configuration: with the user's folders as they are now, however the host is started."""
    moved = ("HOME",) if os.environ.get("HOME") != account_home() else ()
    lasting = [f"{_MARK}{name}={os.environ[name]}" for name in (*moved, *LASTING) if os.environ.get(name)]
    *python, script = hookline_argv()
    return [*python, *(word for option in lasting for word in ("-X", option)), script]


def account_home() -> str:
    """The home folder that the system has for this user, or nothing."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def temporary_folder() -> str:
    """The system's temporary folder, whatever the environment says."""
    if sys.platform == "darwin":
        try:
            return (os.confstr(65537) or "/tmp").rstrip("/")  # noqa: S108 - _CS_DARWIN_USER_TEMP_DIR
        except (OSError, ValueError):
            pass
    return "/tmp"  # noqa: S108 - the system's, as meant


def shield(words: list[str]) -> None:
    """Before a gate runs: what of its environment could change the answer is gone, or is the entry's own.

    No variable switches a gate off; the file `off_switch` does. A gate that was started without `-I` keeps its folders,
    as Python itself has taken the environment's word by then; a shared entry, which cannot say `-I`, starts again.
    """
    if not words or words[0] not in GATES:
        return
    GIVEN.update(os.environ)
    if not sys.flags.isolated and os.environ.get(_SHARED):
        os.execv(sys.executable, hookline_argv(*words))  # noqa: S606 - this very program
    if sys.flags.isolated:
        _isolate(os.environ)
    foreign = words[0] == "answer" and words[1:2] != [] and words[1] not in SET_BY
    for name in (*TEMPORARY, "HOOKLINE_ENABLED", *((PROJECT,) if foreign else ())):
        os.environ.pop(name, None)
    if sys.platform == "darwin":
        os.environ["TMPDIR"] = temporary_folder()
    if os.path.exists(off_switch()):
        os.environ["HOOKLINE_ENABLED"] = "0"


def _isolate(environ: "os._Environ[str]") -> None:
    for name in {name for name in environ if name in _NAMES or name.startswith(_PREFIXES)} - _KEPT:
        del environ[name]
    if os.name == "posix":
        environ["HOME"] = account_home() or "/"
    for option, value in sys._xoptions.items():  # noqa: SLF001 - the documented place of `-X NAME=VALUE`
        if option.startswith(_MARK) and isinstance(value, str):
            environ[option.removeprefix(_MARK)] = value
    if "PATH" in environ:
        environ["PATH"] = os.pathsep.join(filter(os.path.isabs, environ["PATH"].split(os.pathsep)))


def off_switch() -> str:
    """The file whose existence switches this user's hooks off in every gate; its place is not the environment's."""
    home = str(sys._xoptions.get(f"{_MARK}HOME") or account_home() or "/")  # noqa: SLF001 - see above
    return os.path.join(home, ".config", "hookline", "hooks.off")
