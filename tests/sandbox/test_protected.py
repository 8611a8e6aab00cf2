"""Files that run later are not written from inside, whichever way is tried; what git does every day goes on."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

from hookline.guards.sandboxing import unavailable
from hookline.sandbox.policy import Policy
from hookline.sandbox.protected import MAKES, MAKES_FOLDER, MOVES, OPENS, REMOVES, ProtectedPaths
from hookline.sandbox.syscalls import MACHINES, NUMBERS
from tests.environ import clean_environ
from tests.sandbox.arena import LAUNCH
from tests.sandbox.protected_table import CALLS, HOOK, HOOKS, NAMES, SETUP, WORKS
from tests.sandbox.test_confine import NO_CALLS

PYTHON = "/usr/bin/python3"
AS_USER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
WHO = {"root": [], "a user": AS_USER} if os.geteuid() == 0 and shutil.which("setpriv") else {"a user": []}
NO_NAMESPACES = [PYTHON, "-c", NO_CALLS, str(NUMBERS["unshare"][MACHINES[os.uname().machine][1]]), "1"]
"""As in a container that allows none; nothing here needs one."""
pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be confined")


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that every user may use, outside of the temporary one."""
    folder = Path(mkdtemp(dir="/var/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def project(top: Path, who: str) -> Path:
    """A new repository, made unconfined by the user who will run the line."""
    folder = Path(mkdtemp(dir=top))
    if WHO[who] == AS_USER:
        os.chown(folder, 65534, 65534)
    subprocess.run([*WHO[who], "bash", "-c", SETUP], cwd=folder, env=environment(folder), check=True)
    return folder


def environment(folder: Path) -> dict[str, str]:
    return clean_environ(folder, PATH=f"{folder}/.venv/bin:{os.environ['PATH']}", H=HOOK, TMPDIR="/var/tmp")


def confined(
    folder: Path, who: str, line: str, *flags: str, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    words = [*WHO[who], *before, PYTHON, "-I", "-S", str(LAUNCH), "--write", str(folder), *flags]
    words += ["--", "bash", "-c", line]
    return subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)


def state(folder: Path) -> dict[str, object]:
    """What lies in the places that are protected: names, and what files hold."""
    names = (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes", ".claude",
             ".vscode", ".idea", ".cursor", ".mcp.json", ".envrc", "old-folder/.envrc", ".venv/bin", "protected",
             ".git/modules/x/config")  # fmt: skip
    found: dict[str, object] = {".git": (folder / ".git").is_dir() and not (folder / ".git").is_symlink()}
    for place in (folder, folder / "old-folder"):
        held = {path.name for path in place.iterdir()} if place.exists() else set()
        found[f"{place.name} is a repository"] = "HEAD" in held and ("commondir" in held or held >= {"objects", "refs"})
    for name in names:
        top = folder / name
        for path in [top, *sorted(top.rglob("*"))]:
            if path.is_file() and not path.name.endswith(".sample"):
                found[str(path.relative_to(folder))] = path.read_text()
    return found


@pytest.mark.parametrize("around", [[], NO_NAMESPACES], ids=["namespaces", "no namespaces"])
@pytest.mark.parametrize("who", WHO)
def test_no_way_leads_into_git_hooks(top: Path, who: str, around: list[str]) -> None:
    """By shells and by calls that shells do not make; no path, link, descriptor or open file does."""
    folder = project(top, who)
    before, open_ = state(folder), []
    for line in HOOKS:
        confined(folder, who, line, before=around)
        if state(folder) != before:
            open_.append(line)
            folder = project(top, who)
    done = confined(folder, who, f"python3 -c {shlex.quote(CALLS)}; echo tried", before=around)

    assert (open_, done.stdout) == ([], "tried\n")
    assert {path: held for path, held in state(folder).items() if path.startswith(".git/hooks")} == {}
    assert (folder / ".git/config").read_text() == "[user]\n\tname = x\n"  # by the last call, which may


@pytest.mark.parametrize("who", WHO)
def test_nothing_is_left_that_runs_later(top: Path, who: str) -> None:
    """Settings of agents and editors, of git, and programs that are found before others of their name."""
    folder = project(top, who)
    before, open_ = state(folder), []
    for line in NAMES:
        confined(folder, who, line, "--protect", str(folder / "protected"))
        if state(folder) != before:
            open_.append(line)
            folder = project(top, who)
            before = state(folder)

    assert open_ == []


@pytest.mark.parametrize("who", WHO)
def test_ordinary_work_goes_on(top: Path, who: str) -> None:
    folder = project(top, who)
    failed = {line: done.stderr for line in WORKS if (done := confined(folder, who, line)).returncode}

    assert failed == {}


def test_a_refusal_names_the_setting_and_what_to_add(top: Path) -> None:
    folder = project(top, who := next(iter(WHO)))
    refused = confined(folder, who, "git config core.fsmonitor x")
    allowed = confined(folder, who, "git config core.fsmonitor x", "--unprotect", str(folder / ".git/config"))

    said = f"hookline: refused to write `{folder}/.git/config`: `core.fsmonitor` has git run something"
    assert said in refused.stderr
    assert f"add `--unprotect {folder}/.git/config`" in refused.stderr
    assert (allowed.returncode, allowed.stderr) == (0, "")


JUDGED = (
    ("/p/.git", "hooks", MAKES_FOLDER, False), ("/p/.git/hooks", "pre-commit", OPENS, True),
    ("/p/.git/hooks", "x.sample", OPENS, False), ("/p/.git", "HEAD.lock", OPENS, False),
    ("/p/.git", "config", OPENS, True), ("/p/.git/refs/heads", "hooks", OPENS, False), ("/p", ".git", MOVES, True),
    ("/p", ".git", REMOVES, False), ("/p/s", ".git", MAKES, True), ("/p/s", ".git", MAKES_FOLDER, False),
    ("/p/s/.git/modules/m", "config", MAKES, True), ("/p/.git/worktrees/w", "commondir", OPENS, False),
    ("/p/.git", "commondir", OPENS, True), ("/p/.claude/plans", "a.md", OPENS, False), ("/p/.claude", "a", OPENS, True),
    ("/p/a/.Claude", "a", OPENS, True), ("/other/.claude", "a", OPENS, False), ("/p", "also", MOVES, True),
    ("/p/also/x", "y", OPENS, True), ("/p/x", "config", OPENS, False), ("/p", ".claude", MAKES_FOLDER, False),
    ("/p/free/.vscode", "x", OPENS, False), ("/p/.vscode", "x", REMOVES, True), ("/p/a/.vscode", "x", REMOVES, False),
)  # fmt: skip


def test_names_are_judged_by_where_they_lie() -> None:
    protected = ProtectedPaths(Policy(protect=("/p/also/x",), unprotect=("/p/free",)), ("/p",))

    found = [(folder, name, act, bool(protected.problem(folder, name, act))) for folder, name, act, _ in JUDGED]
    assert found == list(JUDGED)


OLD = (
    f"import sys; sys.path.insert(0, {str(LAUNCH.parents[2])!r})\n"
    "package = sys.modules['hookline'] = type(sys)('hookline')\n"
    "package.__path__ = [sys.path[0] + '/hookline']\n"
    "from hookline.sandbox import kernel, main\n"
    "kernel.waits_killable = lambda: False\n"
    "sys.exit(main.main(sys.argv[1:]))\n"
)
"""`hookline confine` on a kernel before 5.19, where the supervisor cannot make calls."""


def test_on_an_older_kernel_what_was_changed_is_put_back_and_said(top: Path) -> None:
    """What cannot be held is said, and `--hide` does not run where it cannot be."""
    who = next(iter(WHO))
    folder = project(top, who)
    (folder / ".env").write_text("TOKEN=1")
    before = state(folder)

    def confined(line: str, *flags: str) -> subprocess.CompletedProcess[str]:
        words = [PYTHON, "-I", "-c", OLD, "--write", str(folder), *flags, "--", "bash", "-c", line]
        return subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)

    changed = confined("echo x > $H; rm .claude/settings.json; ln -sf ../f .envrc; echo y > made; touch ../outside")
    hidden = confined("cat .env", "--hide", str(folder / ".env"))

    assert state(folder) == before
    assert (folder / "made").read_text() == "y\n"
    assert changed.stderr.count("put back when the line had ended") == 3
    assert "refused to write" in changed.stderr
    assert f"`{folder}/.env` can be read: it lies in a writable folder" in changed.stderr
    assert (hidden.returncode, "cannot be hidden before Linux 5.19" in hidden.stderr) == (125, True)


def test_a_pointer_to_another_repository_is_taken_back(top: Path) -> None:
    """Git takes its settings from where a file called `.git` leads; work trees and submodules have one."""
    who = next(iter(WHO))
    folder = project(top, who)
    (folder / "empty").mkdir()
    (folder / "tree").mkdir()
    if WHO[who]:
        os.chown(folder / "tree", 65534, 65534)
    evil = "git init -q evil && git -C evil config core.fsmonitor x"
    done = confined(
        folder, who, f"{evil}; echo 'gitdir: ../evil/.git' > empty/.git; git worktree add -q tree && echo made"
    )

    assert (done.stdout, (folder / "empty/.git").exists(), (folder / "tree/.git").exists()) == ("made\n", False, True)
    assert f"refused to leave `{folder}/empty/.git`: it leads git to settings that are not protected" in done.stderr


def test_what_settings_name_as_hooks_is_protected_too(top: Path) -> None:
    who = next(iter(WHO))
    folder = project(top, who)
    setup = "mkdir shared && git config core.hooksPath shared && git config include.path ../extra && touch extra"
    subprocess.run([*WHO[who], "bash", "-c", setup], cwd=folder, env=environment(folder), check=True)
    done = confined(folder, who, "echo x > shared/pre-commit; echo x >> extra; mv shared s2; echo fine > other")

    assert [path.name for path in (folder / "shared").iterdir()] == []
    assert (folder / "extra").read_text() == ""
    assert (done.stderr.count("refused to write"), (folder / "other").read_text()) == (3, "fine\n")


OURS = """
import os, sys
top = os.getppid()
def parent(pid): return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
supervisor = parent(os.getpid()) if sys.argv[1:] else top
opened = []
for pid in (supervisor, parent(supervisor)):
    for name in ("mem", "environ", "fd/2", "fd/5", "fd/6", "task/%d/mem" % pid, "root/etc/hostname", "oom_score_adj"):
        for flags in (os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_WRONLY):
            for path in (f"/proc/{pid}/{name}", f"/proc/self/../{pid}/{name}"):
                try: opened.append((path, os.open(path, flags)))
                except OSError: pass
for path in ("/proc/self/mem", "/proc/self/oom_score_adj", "/proc/thread-self/mem", "/proc/sys/kernel/core_pattern"):
    try: opened.append((path, os.open(path, os.O_RDWR)))
    except OSError: pass
print(opened)
"""


@pytest.mark.parametrize("who", WHO)
def test_the_supervisor_opens_nothing_of_its_own(top: Path, who: str) -> None:
    """What it opens in a line's name is the line's: `/proc/self` is not the supervisor, which could be written to."""
    folder = project(top, who)
    (folder / ".env").write_text("TOKEN=1")  # so that reads are made by the supervisor, too
    done = confined(folder, who, f"exec python3 -c {shlex.quote(OURS)}")

    assert done.stdout == "[]\n"


TERMINAL = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
os.write(terminal, b"typed\\n")
said = b""
try:
    while piece := os.read(terminal, 4096):
        said += piece
except OSError:
    pass
sys.stdout.write(said.decode().replace("\\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("secret", [False, True], ids=["writes", "reads, too"])
def test_the_terminal_is_the_caller_s_own(top: Path, secret: bool) -> None:
    """`/dev/tty` is opened by the supervisor, which has none."""
    folder = project(top, who := next(iter(WHO)))
    if secret:
        (folder / ".env").write_text("TOKEN=1")
    line = "echo out > /dev/tty; exec 3<> /dev/tty; read -r x <&3; echo got $x >&3; test -c $(tty < /dev/tty)"
    words = [*WHO[who], PYTHON, "-c", TERMINAL, PYTHON, "-I", "-S", str(LAUNCH), "--write", str(folder), "--"]
    done = subprocess.run(
        [*words, "bash", "-c", line], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )

    assert (done.returncode, "out\n" in done.stdout, "got typed\n" in done.stdout) == (0, True, True)


RACE = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
good, bad = b"okay/aaaaaaaaaaaaaaaa\\0", b".git/hooks/post-merge\\0"
path, stop = ctypes.create_string_buffer(good, len(good)), []
os.makedirs("okay"); hooks, okay = os.open(".git/hooks", os.O_RDONLY), os.open("okay", os.O_RDONLY)
os.dup2(okay, 200)
def swap_path():
    while not stop: ctypes.memmove(path, bad, len(bad)); ctypes.memmove(path, good, len(good))
def swap_folder():
    while not stop: os.dup2(hooks, 200); os.dup2(okay, 200)
threads = [threading.Thread(target=each) for each in (swap_path, swap_folder)]
for each in threads: each.start()
for _ in range(500):
    for at, name in ((-100, path), (200, b"post-merge")):
        fd = libc.openat(at, name, os.O_WRONLY | os.O_CREAT, 0o755)
        if fd >= 0: os.close(fd)
stop.append(1)
for each in threads: each.join()
print(os.path.exists(".git/hooks/post-merge"))
"""


@pytest.mark.parametrize("who", WHO)
def test_a_path_that_is_swapped_meanwhile_leads_nowhere_else(top: Path, who: str) -> None:
    """What was judged is what is used: 1,000 opens while threads swap the path and the folder."""
    done = confined(project(top, who), who, f"python3 -c {shlex.quote(RACE)}")

    assert done.stdout == "False\n"


def test_a_shell_s_start_up_files_are_protected_where_the_home_folder_may_be_written_to(top: Path) -> None:
    folder = project(top, who := next(iter(WHO)))  # which is the home folder, too
    done = confined(
        folder, who, "echo x >> .bashrc; mkdir -p .config/systemd/user; git config --global user.name b; echo y > z"
    )

    assert not any((folder / name).exists() for name in (".bashrc", ".config/systemd", ".gitconfig"))
    assert (done.stderr.count("is protected"), (folder / "z").read_text()) == (3, "y\n")


def test_a_submodule_can_be_added(top: Path) -> None:
    """Its settings say where its folder is, which is in the project."""
    folder = project(top, who := next(iter(WHO)))
    add = "git clone -q . other && git -c protocol.file.allow=always submodule --quiet add ./other inner"
    done = confined(folder, who, f"{add} && git -C inner log -1 --format=%s")

    assert (done.stdout, done.stderr) == ("1\n", "")
