"""Whatever happens to the service, every event is answered, and no gate is opened by it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

import hookline
from hookline.processes.fork_server import Stamps
from hookline.processes.service import address, control, frames
from tests.processes.service.conftest import GUARD, HOOKLINE, Desk, event, reason, until

BLOCKED = "is blocked by the pattern `rm -rf *`"


@contextlib.contextmanager
def impostor(desk: Desk, code: str, first: str = "", bound: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Another process at the service's socket, which does something else with every connection `c`."""
    desk.socket.parent.mkdir(mode=0o700, exist_ok=True)
    script = f"""
import socket, sys, time
{first}
s = socket.socket(socket.AF_UNIX)
s.bind({str(desk.socket)!r})
{bound}
s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept()
    {code}
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
    finally:
        process.kill()
        process.communicate()
        desk.socket.unlink(missing_ok=True)


def frame(kind: bytes, payload: bytes) -> str:
    return repr(frames.frame(kind, payload))


GARBAGE = {
    "closes": "c.close()",
    "half a frame": f"c.send({frame(b'a', b'1234')}[:3]); c.close()",
    "another frame": f"c.send({frame(b'j', b'{}')})",
    "a frame of 4 GB": r"c.send(b'a\xff\xff\xff\xff')",
    "text": "c.send(b'HTTP/1.1 200 OK\\r\\n\\r\\n' * 9)",
    "declines": f"c.send({frame(b'n', b'another version')})",
    "accepts, then closes": f"c.send({frame(b'a', bytes(4))}); c.close()",
    "starts, then closes": f"c.send({frame(b'a', bytes(4))} + {frame(b's', bytes(4))}); c.close()",
    "starts, then ends badly": f"c.send({frame(b'a', bytes(4))} + {frame(b's', bytes(4))} + {frame(b'e', b'')})",
}


@pytest.mark.parametrize("code", GARBAGE.values(), ids=GARBAGE)
def test_a_service_that_answers_garbage_is_not_listened_to(desk: Desk, code: str) -> None:
    """The event is answered without it."""
    with impostor(desk, code):
        assert BLOCKED in reason(desk.guard())


@pytest.mark.parametrize("sent", ["b''", frame(b"a", bytes(4)), f"{frame(b'a', bytes(4))} + {frame(b's', bytes(4))}"])
def test_a_service_that_hangs_is_not_waited_for(desk: Desk, sent: str) -> None:
    """Wherever it stops: the host's own timeout, which would let the call pass, is not reached."""
    with impostor(desk, f"c.send({sent}); globals().setdefault('kept', []).append(c)"):
        begun = time.monotonic()
        assert BLOCKED in reason(desk.guard())
        assert time.monotonic() - begun < 60


def test_an_event_that_was_read_and_not_answered_is_read_again(desk: Desk) -> None:
    """Stdin is handed over as a file; whoever dies with it has read some of it."""
    handed = "next(found for found in iter(lambda: c.recvmsg(1 << 20, 64)[1], None) if found)"
    consume = f"os.read(int.from_bytes({handed}[0][2][:4], sys.byteorder), 1 << 20); c.close()"
    with impostor(desk, consume, "import os"):
        assert BLOCKED in reason(desk.guard())


def test_a_stale_socket_is_replaced(desk: Desk) -> None:
    """A killed service leaves its file behind."""
    desk.warm()
    os.kill(desk.status()["pid"], signal.SIGKILL)
    until(lambda: not desk.status()["running"])
    assert desk.socket.exists()

    assert BLOCKED in reason(desk.guard())
    desk.warm()


@pytest.mark.parametrize("victim", ["service", "worker"])
def test_an_event_under_way_is_judged_once_whoever_is_killed(desk: Desk, victim: str) -> None:
    """Once begun, an event needs nobody: it is neither lost nor judged, counted and recorded a second time."""
    (desk.project / "hooks.py").write_text(SLOW)
    (desk.project / "go").touch()
    words = ("pipe", "--hooks", "hooks.py")
    desk.warm(*words)
    for name in ("go", "asked"):
        (desk.project / name).unlink()
    with desk.start(*words) as process:
        assert process.stdin is not None
        process.stdin.write(event(command="ls").encode())
        process.stdin.close()
        until((desk.project / "asked").exists)
        status = desk.status()
        os.kill(status["pid"] if victim == "service" else status["workers"][0]["pid"], signal.SIGKILL)
        (desk.project / "go").touch()
        assert process.stdout is not None
        assert b"slow no" in process.stdout.read()
    assert (desk.project / "asked").read_text() == "once "


SLOW = """
import pathlib, time
from hookline import Hooks, deny
hooks = Hooks()
place = pathlib.Path(__file__).parent

@hooks.on("PreToolUse", timeout=60)
def slow(event):
    with (place / "asked").open("a") as asked:
        asked.write("once ")
    while not (place / "go").exists():
        time.sleep(0.01)
    return deny("slow no")
"""


@pytest.mark.parametrize("which", ["service", "worker", "spare"])
def test_a_stopped_process_of_the_service_holds_nobody_up(desk: Desk, which: str) -> None:
    """It is ended, and the next events find a new one."""
    desk.warm()
    status = desk.status()
    worker = psutil.Process(status["workers"][0]["pid"])
    until(worker.children)
    victim = {"service": status["pid"], "worker": worker.pid, "spare": worker.children()[0].pid}[which]
    os.kill(victim, signal.SIGSTOP)
    try:
        assert BLOCKED in reason(desk.guard())
        assert BLOCKED in reason(desk.guard())
        until(lambda: BLOCKED in reason(desk.guard()) and desk.status()["running"])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


def test_two_hundred_clients_at_once(guest: Desk) -> None:
    """All are answered, with or without the service."""
    guest.warm()
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda _: reason(guest.guard()), range(int(os.environ.get("HOOKLINE_CLIENTS", "60")))))

    assert all(BLOCKED in one for one in found)


def test_many_first_clients_start_one_service(desk: Desk) -> None:
    """They race for the lock; who does not get it answers by itself."""
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: reason(desk.guard()), range(12)))
    until(lambda: desk.status()["running"])
    services = [one.pid for one in psutil.process_iter(["cmdline"]) if desk.name in (one.info["cmdline"] or [])]

    assert all(BLOCKED in one for one in found)
    assert services == [desk.status()["pid"]]


def test_a_client_that_is_killed_ends_its_hook(guest: Desk) -> None:
    """And what the hook has started; the worker goes on."""
    (guest.project / "hooks.py").write_text(STARTS_SLEEP)
    words = ("pipe", "--hooks", "hooks.py")
    guest.warm(*words)
    pids = guest.project / "pids"
    (guest.project / "sleep").touch()
    process = guest.start(*words)
    with process:
        assert process.stdin is not None
        process.stdin.write(event(command="ls").encode())
        process.stdin.close()
        until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        process.kill()
    hook, child = map(int, pids.read_text().split())

    until(lambda: not psutil.pid_exists(hook) and not psutil.pid_exists(child))
    (guest.project / "sleep").unlink()
    assert reason(guest.run(*words, stdin=event(command="ls"))) == "no"


STARTS_SLEEP = """
import os, pathlib, subprocess
from hookline import Hooks, deny
hooks = Hooks()
place = pathlib.Path(__file__).parent

@hooks.on("PreToolUse", timeout=600)
def wait(event):
    if (place / "sleep").exists():
        child = subprocess.Popen(["sleep", "600"])
        (place / "pids").write_text(f"{os.getpid()} {child.pid}\\n")
        child.wait()
    return deny("no")
"""

HOOKS = {
    "prints": "print('hello'); os.system('echo from a shell')",
    "forks": "os.fork() or os._exit(0)",
    "changes the folder": "os.chdir('/')",
    "changes the environment": "os.environ.clear()",
    "raises": "raise ValueError('oh')",
    "exits": "sys.exit(0)",
    "leaves": "os._exit(0)",
    "crashes": "os.kill(os.getpid(), 11)",
    "closes everything": "os.closerange(0, 3)",
}


@pytest.mark.parametrize("line", HOOKS.values(), ids=HOOKS)
def test_a_hook_that_misbehaves_harms_only_itself(guest: Desk, line: str) -> None:
    """The call is denied as it is without the service; its neighbours do not notice."""
    (guest.project / "hooks.py").write_text(
        "import os, sys\nfrom hookline import Hooks, deny\nhooks = Hooks()\n"
        f"@hooks.on('PreToolUse')\ndef bad(event):\n    {line}\n    return deny('no')\n"
    )
    words = ("pipe", "--hooks", "hooks.py")
    guest.warm()
    alone = guest.run(*words, stdin=event(command="ls"), HOOKLINE_SERVICE="0")
    served = guest.run(*words, stdin=event(command="ls"))

    assert (served.stdout, served.returncode) == (alone.stdout, alone.returncode)
    assert "deny" in served.stdout or "block" in served.stdout
    before = guest.events()
    assert BLOCKED in reason(guest.guard())
    assert guest.events() == before + 1


def test_a_hook_file_that_does_not_import_denies(guest: Desk) -> None:
    """And says why."""
    (guest.project / "hooks.py").write_text("import nonsense_module\n")
    guest.warm()
    for switch in ("0", guest.name):
        done = guest.run("pipe", "--hooks", "hooks.py", stdin=event(command="ls"), HOOKLINE_SERVICE=switch)
        assert '"decision":"block"' in done.stdout
        assert "No module named 'nonsense_module'" in done.stdout + done.stderr


def test_an_upgraded_hookline_answers_the_next_event(desk: Desk) -> None:
    """A package that is replaced in place: no event is answered by the old one."""
    site = desk.base / "site"
    shutil.copytree(Path(str(hookline.__file__)).parent, site / "hookline")  # with its byte code, which stays valid
    desk.env["PYTHONPATH"] = str(site)
    desk.warm()
    answered = site / "hookline" / "cli" / "commands" / "guard.py"
    text = answered.read_text()
    for number in range(3):
        newly = f"read(), codec); codec.problem = 'upgraded {number}'" + " " * number  # byte code is told by its length
        answered.write_text(text.replace("read(), codec)", newly))
        assert f"upgraded {number}" in reason(desk.guard())
    protocol = site / "hookline" / "processes" / "service" / "frames.py"
    newer = protocol.read_text().replace(f"PROTOCOL = {frames.PROTOCOL}", f"PROTOCOL = {frames.PROTOCOL + 1}")
    protocol.write_text(newer)
    assert "upgraded 2" in reason(desk.guard())
    until(lambda: not desk.status()["running"] or desk.status().get("events") == 0)
    desk.warm()


def test_a_project_cannot_choose_the_service(desk: Desk) -> None:
    """Variables that its settings may set lead nowhere else."""
    place = desk.base / "evil"
    place.mkdir(mode=0o700)
    with impostor(desk, "c.close()"):
        for name in ("XDG_RUNTIME_DIR", "TMPDIR", "TMP", "HOME"):
            (place / "hookline").mkdir(exist_ok=True, mode=0o700)
            done = desk.run("service", "status", "--json", **{name: str(place)})
            assert done.returncode == 3
    desk.warm()
    assert desk.status()["socket"] == str(desk.socket)
    for name in ("XDG_RUNTIME_DIR", "TMPDIR", "TMP"):
        assert desk.run("service", "status", **{name: str(place)}).returncode == 0


def test_the_socket_lies_in_a_private_folder(guest: Desk) -> None:
    """0700, and the socket, lock and log are the user's alone."""
    guest.warm()
    modes = {
        path.name.partition(".")[2]: path.stat().st_mode & 0o077 for path in guest.socket.parent.glob(f"{guest.name}.*")
    }

    assert address.is_private(str(guest.socket.parent))
    assert modes == {"sock": 0, "inbox.sock": 0, "lock": 0, "log": 0}


def test_a_folder_that_is_not_private_is_not_used(tmp_path: Path) -> None:
    """Open to others, a link, a file, or nothing at all."""
    for name, mode in (("open", 0o755), ("group", 0o750), ("mine", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "file").touch(mode=0o600)

    private = [
        name for name in ("open", "group", "mine", "link", "file", "none") if address.is_private(str(tmp_path / name))
    ]
    assert private == ["mine"]


CONFINED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[1:]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="`no_new_privs` is Linux's")
def test_a_confined_process_is_not_answered_from_outside(guest: Desk) -> None:
    """Its hook file would otherwise run without its confinement."""
    guest.warm()
    before = guest.status()
    done = subprocess.run(
        [sys.executable, "-c", CONFINED, "hookline", *GUARD], cwd=guest.project, env=guest.env, capture_output=True,
        input=event(command="rm -rf /").encode(), check=False,
    )  # fmt: skip

    assert BLOCKED in done.stdout.decode()
    assert guest.events() == before["events"]


@pytest.mark.skipif(sys.platform != "linux", reason="`no_new_privs` is Linux's")
def test_a_confined_service_is_not_believed(desk: Desk) -> None:
    """A tool in a sandbox could put one there."""
    answer = f"{frame(b'a', bytes(4))} + {frame(b's', bytes(4))} + {frame(b'e', bytes(20))}"
    approve = f"globals().setdefault('kept', []).append(c); c.send({answer})"
    with impostor(desk, approve):
        assert reason(desk.guard()) == ""  # one that is as free as we are could do worse than that
    confine = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)"
    with impostor(desk, approve, confine):
        assert BLOCKED in reason(desk.guard())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_socket_of_somebody_else_is_not_believed(desk: Desk) -> None:
    """However it came into our folder: who listens there is asked of the system."""
    answer = f"{frame(b'a', bytes(4))} + {frame(b's', bytes(4))} + {frame(b'e', bytes(20))}"
    approve = f"globals().setdefault('kept', []).append(c); c.send({answer})"
    with impostor(desk, approve, "import os", bound="os.setuid(65534)"):
        assert BLOCKED in reason(desk.guard())
        assert desk.run("service", "status").returncode == 3


def test_a_clock_that_was_set_back_delays_nothing(desk: Desk) -> None:
    """A lock from the future is not one of the last second, and files from the future are still compared."""
    desk.warm()
    os.kill(desk.status()["pid"], signal.SIGKILL)
    until(lambda: not desk.status()["running"])
    lock = desk.socket.with_suffix(".lock")
    ahead = time.time() + 86_400
    os.utime(lock, (ahead, ahead))

    until(lambda: BLOCKED in reason(desk.guard()) and desk.status()["running"])  # what was killed may hold its lock yet


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_files_are_compared_whatever_the_clock_says(tmp_path: Path, jump: float) -> None:
    """Stamps taken after the clock was set back or forward: an unchanged file may be believed, a changed one never."""
    file = tmp_path / "hooks.py"
    file.write_text("a = 1\n")
    stamps = Stamps([str(file)], time.time() + jump)
    before = stamps.fresh()
    file.write_text("a = 2\n")

    assert not stamps.fresh()
    assert before is (jump > 0)  # set back: the file seems to have changed after it was read


def unshared(script: str, *argv: str) -> list[str]:
    return ["unshare", "-m", "sh", "-c", script, "sh", *argv]


def can_unshare() -> bool:
    return subprocess.run(unshared("mount -t tmpfs tmpfs /mnt"), capture_output=True, check=False).returncode == 0


def test_a_service_that_is_only_starting_can_be_stopped(desk: Desk) -> None:
    """It holds the lock and does not listen yet."""
    for _ in range(3):
        assert BLOCKED in reason(desk.guard())
        assert desk.run("service", "stop").returncode == 0
        assert not desk.socket.exists()


@pytest.mark.skipif(not shutil.which("unshare") or not can_unshare(), reason="needs mount namespaces")
@pytest.mark.parametrize("mount", ["size=4k,nr_inodes=1", "ro", "ro,home"])
def test_where_nothing_can_be_written_events_are_answered_all_the_same(desk: Desk, mount: str) -> None:
    """A full disk, a read-only system, a read-only home: no harm."""
    home = mount.endswith(",home")
    folder = Path(desk.env["HOME"]) if home else desk.socket.parent.parent  # where the service would make its own
    if Path(sys.prefix).is_relative_to(folder):
        pytest.skip(f"this checkout lies below {folder}, which is empty then")
    script = (
        f"mount -t tmpfs tmpfs /mnt && mkdir /mnt/k && mount --bind {desk.base} /mnt/k && "
        f"mount -t tmpfs -o {mount.removesuffix(',home')} tmpfs {folder} && cd /mnt/k/proj && "
        f'{{ "$@"; code=$?; {sys.executable} -m hookline service stop > /dev/null; exit $code; }}'
    )
    done = subprocess.run(
        unshared(script, *HOOKLINE, *GUARD), cwd=desk.project, env=desk.env, capture_output=True,
        input=event(command="rm -rf /").encode(), check=False,
    )  # fmt: skip

    assert BLOCKED in done.stdout.decode(), done.stderr.decode()


def test_a_connection_that_says_nothing_or_nonsense_is_dropped(guest: Desk) -> None:
    """And the service goes on."""
    guest.warm()
    for sent in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n" * 3,
        frames.MAGIC + b"\0\1r\xff\xff\xff\xff",
        frames.head(frames.RUN, b"x"),
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(guest.socket))
            connection.sendall(sent)
            connection.settimeout(30)
            with contextlib.suppress(ConnectionResetError):
                while sent and connection.recv(4096):
                    pass
    before = guest.events()
    assert BLOCKED in reason(guest.guard())
    assert guest.events() == before + 1


def test_a_link_in_place_of_the_folder_leads_the_service_nowhere(tmp_path: Path) -> None:
    """Its log, its lock and its socket stay in the folder it began in, wherever that was moved."""
    folder, moved, target = tmp_path / "sockets", tmp_path / "moved", tmp_path / "target"
    for made in (folder, target):
        made.mkdir(mode=0o700)
    for name in ("moving.lock", "moving.sock"):
        (target / name).touch()
    (folder / "moving.lock").touch()
    script = f"""
import os
from hookline.processes.service import address, server
address.folder = lambda: {str(folder)!r}
server.main("moving", os.open("/dev/null", os.O_RDONLY), "")
"""
    with subprocess.Popen([sys.executable, "-c", script], env={"HOOKLINE_SERVICE": "moving"}) as service:
        try:
            until((folder / "moving.sock").exists)
            folder.rename(moved)
            folder.symlink_to(target)
        finally:
            service.terminate()
    assert {file.name for file in target.iterdir()} == {"moving.lock", "moving.sock"}
    assert [file.name for file in moved.iterdir()] == ["moving.log"]
    assert "ended" in (moved / "moving.log").read_text()


def test_a_service_does_not_start_in_a_linked_folder(tmp_path: Path) -> None:
    (target := tmp_path / "target").mkdir(mode=0o700)
    (folder := tmp_path / "sockets").symlink_to(target)
    script = f"""
from hookline.processes.service import address, server
address.folder = lambda: {str(folder)!r}
server.main("linked", 0, "")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "not a private folder of this user" in ran.stderr
    assert not any(target.iterdir())


def test_a_folder_that_is_swapped_after_it_was_looked_at_gets_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is made in the folder that was checked, not in what stands in its place a moment later."""
    (target := tmp_path / "target").mkdir(mode=0o700)
    (folder := tmp_path / "sockets").symlink_to(target)
    (loose := tmp_path / "loose").mkdir(mode=0o755)
    monkeypatch.setattr(address, "is_private", lambda path: True)
    for swapped in (folder, loose):
        monkeypatch.setattr(address, "folder", lambda swapped=swapped: str(swapped))
        with pytest.raises(OSError, match=r"sockets|loose"):
            control.take_lock("swapped")

    assert [*target.iterdir(), *loose.iterdir()] == []
