"""`make hosts`: every host gets its line, what is wrong with one does not stop the others, Ctrl-C ends all of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.hosts.each import ROOT, HostOutcome, HostRunner, Steps, summary

HOLDS = json.dumps({"version": "1.0", "cases": {"deny": True, "rewrite": None}})
OPEN = json.dumps({"version": "1.0", "cases": {"deny": False}})
FAKES = {
    "good": Steps(["true"], ["echo", "4 passed"], ["echo", HOLDS]),
    "absent": Steps(["sh", "-c", "echo 'absent: needs npm'; exit 1"], ["false"], ["false"]),
    "open": Steps(["true"], ["echo", "4 passed"], ["echo", OPEN]),
    "failing": Steps(["true"], ["sh", "-c", "echo 'FAILED t.py::x - no'; echo '1 failed'; exit 1"], ["echo", HOLDS]),
    "mute": Steps(["true"], ["echo", "4 passed"], ["sh", "-c", "echo cannot start; exit 3"]),
}


def run(tmp_path: Path, *names: str) -> dict[str, HostOutcome]:
    return {one.name: one for one in HostRunner(FAKES.__getitem__, tmp_path).run(names)}


def test_whatever_is_wrong_with_one_host_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """Not to be had, not holding, failing in the battery, not even starting: each in its own words."""
    found = run(tmp_path, *FAKES)

    assert {name: one.problem for name, one in found.items()} == {
        "good": "",
        "absent": "needs npm",
        "open": "does not hold: deny",
        "failing": f"battery: FAILED t.py::x (see {tmp_path / 'failing-battery.log'})",
        "mute": "could not be measured: cannot start",
    }
    assert [name for name, one in found.items() if one.missing] == ["absent"]
    assert [name for name, one in found.items() if one.measured] == ["good", "open", "failing"]


def test_the_summary_says_how_many_hold_and_why_the_others_do_not(tmp_path: Path) -> None:
    """The last lines are what people read."""
    said = summary(list(run(tmp_path, "good", "absent", "open").values()), 125)

    assert said.splitlines() == ["", "1 of 3 agents hold (2 min)", "  absent: not tried: needs npm",
                                 "  open: does not hold: deny"]  # fmt: skip


SCRIPT = """
import sys
from pathlib import Path
from tools.hosts.each import HostRunner, Interrupted, Steps

hang = ["sh", "-c", ": > {folder}/pid-$$; echo up > {folder}/ready; exec sleep 600"]
try:
    HostRunner(lambda name: Steps(["true"], hang, ["true"]), Path("{folder}")).run(["one", "two", "three"])
except Interrupted:
    sys.exit(130)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_everything(sign: signal.Signals, tmp_path: Path) -> None:
    """What was started is gone, and nothing new is started."""
    os.mkfifo(tmp_path / "ready")
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(folder=tmp_path)], cwd=ROOT)
    (tmp_path / "ready").read_text()

    process.send_signal(sign)

    assert process.wait(60) == 130
    started = [path.name.removeprefix("pid-") for path in tmp_path.glob("pid-*")]
    assert [pid for pid in started if Path("/proc", pid).exists()] == []
    assert started
