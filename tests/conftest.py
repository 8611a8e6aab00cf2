"""What all tests share: the contract's folder, and a lock that lets `serial` tests run alone."""

import compileall
import contextlib
import gc
import json
import math
import os
import shutil
import signal
import socketserver
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.big import BIG, SLOWEST, is_big

# A busy machine is not a failure: no example has a deadline.
settings.register_profile("hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookline")

# Many images set this; thousands of processes would then compile, each for itself, what they import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A `python3` that is a script (pyenv's) runs a dozen programs before it becomes the interpreter, thousands of times.
_python = shutil.which("python3")
if _python and os.name != "nt" and Path(_python).read_bytes().startswith(b"#!"):
    os.environ["PATH"] = os.pathsep.join((f"{sys.base_prefix}/bin", os.environ["PATH"]))

# A script's background job ignores Ctrl-C, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A server of the standard library looks twice a second whether it is to end; hundreds of tests end one.
socketserver.BaseServer.serve_forever.__defaults__ = (0.02,)

# Command hooks under test answer by themselves; with HOOKLINE_TEST_SERVICE=NAME a service of that name answers them.
os.environ["HOOKLINE_SERVICE"] = os.environ.get("HOOKLINE_TEST_SERVICE", "0")

SECONDS = "test-seconds.json"
_spent: defaultdict[str, float] = defaultdict(float)

# The plugin that users get. `-p no:hookline` in pyproject keeps pytest from loading it by its entry point, which would
# import the package before coverage is measured.
pytest_plugins = ["hookline.testing.plugin", "hookline.testing.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--big` runs what `make test` leaves out; `--all` runs everything."""
    parser.addoption("--big", action="store_true", help="only the tests in tests/big.py")
    parser.addoption("--all", action="store_true", help="all tests, also those in tests/big.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what was not asked for before it is imported; a path named on the command line was asked for."""
    if config.getoption("--all") or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    named = [(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args]
    if config.args_source is pytest.Config.ArgsSource.ARGS and any(
        collection_path.is_relative_to(path) for path in named if path != config.rootpath / "tests"
    ):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if is_big(path) != config.getoption("--big") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out."""
    if not config.getoption("--all") and not config.getoption("--big") and config.args_source.name != "ARGS":
        terminalreporter.write_line(f"left out: {'; '.join(BIG)}. `make test-all` runs them, too.")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package once: confined lines run where nothing can be written, so Python would do it for each."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compileall.compile_dir(config.rootpath / "src", quiet=1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave the thousands of tests to no garbage collection: they stay, and each round would look at all of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each worker begins a folder at another file: side by side, all would compile the same ones in a fresh clone."""
    report = yield
    if "PYTEST_XDIST_WORKER" in os.environ and isinstance(collector, pytest.Dir):
        number, count = os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"), os.environ["PYTEST_XDIST_WORKER_COUNT"]
        first = len(report.result) * int(number) // int(count)
        report.result = report.result[first:] + report.result[:first]
    return report


def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: most tests wait for a process or a socket more than they compute."""
    return 3 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers take the slowest files of the last run first: a slow file taken last runs alone.

    A file that is new may be slow; of such files, those with few tests are the slow ones.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        size = Counter(item.path for item in items)
        known, new = _seconds(config), math.inf
        if not known:
            known, new = {file: float(rank) for rank, file in enumerate(reversed(SLOWEST), 1)}, 0.0
        items.sort(key=lambda item: (-known.get(item.nodeid.partition("::")[0], new), size[item.path], item.path))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up how long each file takes."""
    _spent[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep for the next run how long the files of this one took."""
    from hookline.core.files import write_atomically

    if "PYTEST_XDIST_WORKER" not in os.environ and session.config.getoption("dist", "no") != "no":
        seconds = {**_seconds(session.config), **{file: round(spent, 1) for file, spent in _spent.items()}}
        (folder := session.config.rootpath / ".cache").mkdir(exist_ok=True)
        write_atomically(folder / SECONDS, json.dumps(seconds, indent=0).encode())


def _seconds(config: pytest.Config) -> dict[str, float]:
    file = config.rootpath / ".cache" / SECONDS
    known: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    return known


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home is a folder of this run's own: what a user keeps there changes no test, and no test leaves a trace in it."""
    from hookline.hosts.install.survey import lab
    from hookline.hosts.table import HOSTS

    home = tmp_path_factory.mktemp("home")
    (home / ".cache").mkdir()
    (home / ".cache" / "hookline-hosts").symlink_to(lab())  # the agent CLIs: too large to fetch for each run
    moved = {f"XDG_{name}_HOME" for name in ("CACHE", "CONFIG", "DATA", "STATE")}
    moved |= {host.config.home_env for host in HOSTS.values()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in moved - {""}:
            patch.delenv(name, raising=False)
        yield home


@pytest.fixture(scope="session")
def contract() -> Path:
    """The folder of the recorded contract: events.json, cases/, expected/."""
    return Path(__file__).parent / "contract"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test marked `serial` runs while no other worker runs one."""
    with _turn(item.config.rootpath / ".cache", alone=item.get_closest_marker("serial") is not None):
        return (yield)


@contextlib.contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ or os.name == "nt":  # one process, or no flock: nothing to arrange
        yield
        return
    import fcntl

    folder.mkdir(exist_ok=True)
    with (folder / "tests.lock").open("w") as lock, (folder / "tests.queue").open("w") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)  # who waits to be alone is not overtaken
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # said aloud: a forked child may still hold the file open
