"""A command hook that goes through the service sees, says and ends as one that runs by itself."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.cli.main import PRELOAD
from hookline.core.interpreter import hookline_argv
from hookline.processes.service.worker import is_pure
from tests.processes.service.conftest import GUARD, HOOKLINE, Desk, event, reason, until


def test_the_first_event_starts_the_service_and_is_answered_without_it(desk: Desk) -> None:
    """Nobody waits for a service to start."""
    assert desk.status() == {"running": False}
    assert "is blocked by the pattern `rm -rf *`" in reason(desk.guard())

    until(lambda: desk.status()["running"])


def test_from_then_on_the_service_answers(guest: Desk) -> None:
    """With the same words and the same exit code."""
    alone = guest.run_cold(*GUARD, stdin=event(command="rm -rf /"), HOOKLINE_SERVICE="0")
    guest.warm()
    before = guest.events()
    served = guest.run_cold(*GUARD, stdin=event(command="rm -rf /"))

    assert (served.stdout, served.stderr, served.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    assert guest.events() == before + 1


def test_the_variable_turns_it_off(desk: Desk) -> None:
    """`HOOKLINE_SERVICE=0`: no service is asked, and none is started."""
    for value in ("0", "off", "no", "false", "../elsewhere", "a/b", "x" * 41):
        assert reason(desk.guard(HOOKLINE_SERVICE=value))
    assert desk.status() == {"running": False}


def test_the_switch_turns_it_off_for_good(desk: Desk) -> None:
    """`hookline service off` ends it, and `on` brings it back."""
    desk.warm()
    assert desk.run("service", "off").returncode == 0
    assert reason(desk.guard())
    assert desk.status() == {"running": False}

    assert desk.run("service", "on").returncode == 0
    desk.warm()


SEES = """
import json, os, sys
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()

@hooks.on(PreToolUse)
def look(event):
    os.umask(mask := os.umask(0))
    seen = {"cwd": os.getcwd(), "env": dict(os.environ), "argv": sys.argv[1:], "mask": mask, "path": sys.path,
            "flags": list(sys.flags), "executable": sys.executable, "prefix": sys.prefix, "tty": sys.stdout.isatty()}
    return deny(json.dumps(seen))
"""


@pytest.mark.parametrize(
    "locale", [{}, {"LANG": "C.UTF-8"}, {"LC_ALL": "C"}, {"LC_CTYPE": "C.UTF-8", "PYTHONUTF8": "1"}]
)
def test_hooks_see_what_they_would_see_alone(guest: Desk, locale: dict[str, str]) -> None:
    """Folder, environment, arguments, umask, module path, interpreter, with any locale or none."""
    for name in [name for name in guest.env if name.startswith(("LC_", "LANG"))]:
        del guest.env[name]
    guest.env.update(locale)
    (guest.project / "hooks.py").write_text(SEES)
    words = ("pipe", "--hooks", "hooks.py")
    guest.warm(*words)
    sub = guest.project / "sub"
    sub.mkdir()
    (sub / "hooks.py").write_text(SEES)
    seen = []
    for switch in ("0", guest.name):
        guest.env["HOOKLINE_SERVICE"] = switch
        guest.project, old = sub, guest.project
        done = guest.run_cold(*words, stdin=event(command="ls"), EXTRA="line\nbreak", EMPTY="", PATH=os.environ["PATH"])
        guest.project = old
        told = json.loads(reason(done))
        told["env"].pop("HOOKLINE_SERVICE")
        seen.append(told)
    guest.env["HOOKLINE_SERVICE"] = guest.name

    assert seen[0] == seen[1]
    assert seen[1]["cwd"] == str(sub)
    assert (seen[1]["env"]["EXTRA"], seen[1]["env"]["EMPTY"]) == ("line\nbreak", "")


@pytest.mark.parametrize(
    "words", [("guard", "commands"), ("guard", "nothing"), ("pipe", "--nothing"), ("fire", "--json", "-")]
)
def test_a_command_line_that_is_wrong_fails_alike(guest: Desk, words: tuple[str, ...]) -> None:
    """Messages and exit codes are the command's own."""
    guest.warm()
    alone = guest.run(*words, stdin="[]", HOOKLINE_SERVICE="0")
    served = guest.run(*words, stdin="[]")

    assert (served.stdout, served.stderr, served.returncode) == (alone.stdout, alone.stderr, alone.returncode)
    assert alone.returncode != 0


def test_an_edited_hook_file_counts_from_the_next_event_on(guest: Desk) -> None:
    """Even when size and second of the change are the same."""
    file = guest.project / "hooks.py"
    text = (
        "from hookline import Hooks, deny\nhooks = Hooks()\n@hooks.on('PreToolUse')\ndef no(event): return deny('{}')\n"
    )
    words = ("pipe", "--hooks", "hooks.py")
    file.write_text(text.format("0"))
    guest.warm(*words)
    for number in range(1, 6):
        file.write_text(text.format(number))
        assert reason(guest.run(*words, stdin=event(command="ls"))) == str(number)


@pytest.mark.parametrize("size, why", [(20_000_000, "is blocked by the pattern"), (50_000_000, "cannot judge this")])
def test_a_large_event_is_no_burden(guest: Desk, size: int, why: str) -> None:
    """20 MB of input reach the hook whole; 50 MB are more than a hook is given, and blocked."""
    file = guest.base / "event.json"
    file.write_text(event(command="rm -rf /", pad="x" * size))
    guest.warm()
    before = guest.events()
    with file.open("rb") as stdin:  # a pipe is slow on a busy machine, and the service waits for no client that long
        done = subprocess.run(
            [*HOOKLINE, *GUARD], cwd=guest.project, env=guest.env, stdin=stdin, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip

    assert why in reason(done)
    assert guest.events() == before + 1


def test_lines_that_keep_coming_are_answered_one_by_one(guest: Desk) -> None:
    """`pipe` for a stream is not for the service: the first answer comes before the second line is written."""
    (guest.project / "hooks.py").write_text("from hookline import Hooks\nhooks = Hooks()\n")
    guest.warm("pipe", "--hooks", "hooks.py")
    with guest.start("pipe", "--hooks", "hooks.py") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(event(command=f"echo {number}").encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {}
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("words", [GUARD, ("pipe", "--hooks", "hooks.py")])
def test_answers_can_be_written_to_a_file(guest: Desk, words: tuple[str, ...]) -> None:
    """With or without the service."""
    (guest.project / "hooks.py").write_text("from hookline import Hooks\nhooks = Hooks()\n")
    guest.warm(*words)
    for switch in ("0", guest.name):
        with (guest.base / "out").open("wb") as out:
            subprocess.run(
                [*HOOKLINE, *words], cwd=guest.project, env={**guest.env, "HOOKLINE_SERVICE": switch}, stdout=out,
                input=event(command="ls").encode(), check=True,
            )  # fmt: skip
        assert (guest.base / "out").read_text() == "{}\n"


def test_fire_reads_stdin_only_if_no_event_is_named(guest: Desk) -> None:
    """An open stdin that never ends holds up nobody who did not ask for it."""
    guest.warm()
    with guest.start("fire", "PreToolUse", "--tool", "Bash", "--input", "{}", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["decision"] == "pass"
        process.kill()
    done = guest.run("fire", "--json", stdin=event(command="ls"))

    assert (json.loads(done.stdout)["event"], done.returncode) == ("PreToolUse", 0)


def test_no_descriptor_of_the_agent_stays_open(desk: Desk) -> None:
    """The service outlives the agent that started it, and must not keep its pipes from ending."""
    inlet, outlet = os.pipe()
    with subprocess.Popen(
        [*HOOKLINE, *GUARD], cwd=desk.project, env=desk.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, pass_fds=(outlet,),
    ):  # fmt: skip
        os.close(outlet)
    until(lambda: desk.status()["running"])

    assert os.read(inlet, 1) == b""
    os.close(inlet)


@pytest.mark.parametrize("name", PRELOAD)
def test_what_workers_import_ahead_exists(name: str) -> None:
    """A name that was moved would cost every event its import."""
    assert importlib.util.find_spec(name)


def test_what_the_client_imports_is_next_to_nothing(desk: Desk) -> None:
    """Its imports are every command hook's cost."""
    desk.warm(PYTHONPROFILEIMPORTTIME="1")
    done = desk.run(*GUARD, stdin=event(command="ls"), PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    ours = {name for name in imported if name.startswith("hookline")}

    assert ours == {
        "hookline", "hookline.core", "hookline.core.interpreter", "hookline.processes", "hookline.processes.service",
        "hookline.processes.service.address", "hookline.processes.service.client", "hookline.processes.service.frames",
    }  # fmt: skip
    assert imported & {"asyncio", "json", "msgspec", "pathlib", "re", "socket", "subprocess", "typing"} == set()


@pytest.mark.parametrize("columns", [80, 120])
def test_the_status_fits_the_terminal(desk: Desk, columns: int) -> None:
    """What runs, since when, how many events, p50 and p95, which files, memory; of a long path, its end."""
    place = desk.project / "a-folder-with-a-rather-long-name" / "and-another-one-below-it-that-is-as-long"
    place.mkdir(parents=True)
    (place / "hooks.py").write_text("from hookline import Hooks\nhooks = Hooks()\n")
    desk.warm("pipe", "--hooks", str(place / "hooks.py"))
    shown = desk.run("service", "status", COLUMNS=str(columns)).stdout.splitlines()
    [hook_set] = [line for line in shown if line.endswith("below-it-that-is-as-long/hooks.py")]

    assert max(map(len, shown)) <= max(columns, len(f"  socket   {desk.socket}"))
    assert hook_set.count(" ms") == 2
    assert [line.split()[0] for line in shown[1:5] if line] == ["socket", "events", "memory"]


def test_the_status_shows_the_hook_sets_that_fit(desk: Desk) -> None:
    """Those with most events, and how many more there are; `--all` and JSON have every one."""
    desk.warm()
    for number in range(12):
        desk.run("guard", "commands", "--block", f"mv {number}", stdin=event(command="ls"))
    assert desk.events() >= 13  # the last one, too, has been counted
    shown = desk.run("service", "status", COLUMNS="80", LINES="20").stdout.splitlines()
    known = [line for line in desk.run("service", "status", "--all").stdout.splitlines() if "guard commands" in line]
    [rest] = [line for line in shown if "more (`--all` shows them)" in line]

    assert len(shown) == 19
    assert len(known) == len(desk.status()["hook_sets"]) == 13
    assert [line for line in shown if "guard commands" in line] == known[: 13 - int(rest.split()[2])]
    assert int(rest.split()[0]) == int(rest.split()[2])  # each was asked once


@pytest.mark.parametrize("begun", [b"", b'{"hook_event_name": "PreToolUse", '])
def test_an_input_that_never_ends_is_denied_in_time(guest: Desk, begun: bytes) -> None:
    """`answer` keeps its deadline with the service as without it, and nobody waits for the rest of the event."""
    (guest.project / "hooks.py").write_text("from hookline import Hooks\nhooks = Hooks()\n")
    guest.warm()
    words = ("answer", "codex", "--hooks", "hooks.py", "--event", "PreToolUse", "--deadline", "2")
    with guest.start(*words) as process:
        assert process.stdin is not None
        process.stdin.write(begun)
        process.stdin.flush()
        assert process.stdout is not None
        said = process.stdout.read()
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []

    assert b'"permissionDecision":"deny"' in said
    assert psutil.wait_procs(below, timeout=60)[1] == []


def test_the_temporary_folder_is_the_systems(guest: Desk) -> None:
    """A variable does not move it: a project could set one for the hooks that judge it."""
    guard = ("guard", "paths", "--root", str(guest.project), "--temporary")
    outside = Path("/usr")
    payload = json.loads(event()) | {"tool_name": "Write", "tool_input": {"file_path": str(outside / "x")}}
    guest.warm(*guard, stdin=json.dumps(payload), TMPDIR=str(outside))

    assert "outside" in reason(guest.run(*guard, stdin=json.dumps(payload), TMPDIR=str(outside)))


def test_an_isolated_client_is_answered_by_an_isolated_worker(guest: Desk) -> None:
    """What `install` and `init` write starts Python with `-I`; a worker that was started otherwise would decline."""
    argv = [*hookline_argv(), *GUARD]
    before = guest.events()

    def answered() -> bool:
        subprocess.run(argv, env=guest.env, cwd=guest.project, input=event(command="ls"), text=True, check=True)
        return guest.events() > before

    until(answered)


SPY = """
import _socket, os, sys

class Spy(_socket.socket):
    def connect(self, place):
        _socket.socket = Spy.__base__
        os.write(2, b"imported" if "hookline.processes.service.client" in sys.modules else b"first")
        super().connect(place)

_socket.socket = Spy
from hookline.__main__ import main
main()
"""


def test_the_service_is_called_before_the_rest_is_imported(guest: Desk) -> None:
    """It compares its files while the client imports what it asks with."""
    argv = [sys.executable, "-I", "-c", SPY, *GUARD]
    done = subprocess.run(argv, env=guest.env, cwd=guest.project, input=event(command="ls"), capture_output=True,
                          text=True, check=True)  # fmt: skip

    assert done.stderr == "first"


def test_a_call_that_asks_nothing_does_no_harm(guest: Desk) -> None:
    """A command line that turns out to be another one leaves the service as it was."""
    before = guest.events()
    for words in (("guard", "--help"), ("fire", "Stop"), ("guard", "commands", "--block", "x", "--lines")):
        guest.run_cold(*words)

    assert guest.events() == before
    assert guest.status()["running"]


def test_only_a_guard_that_leaves_nothing_behind_is_followed_in_its_process() -> None:
    """Guards that count write to the disk; other commands run hooks of the user's."""
    pure = ["guard", "paths", "--also", "/x y"]
    others = (["guard"], ["guard", "budget"], ["guard", "rate"], ["guard", "paths", "--lines"], ["pipe", "paths"], [""])

    assert is_pure(pure)
    assert not any(map(is_pure, others))
