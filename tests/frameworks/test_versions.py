"""An adapter refuses a framework that is missing, or whose version it was never tested with."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hookline.errors import MissingExtra, UnknownVersion
from hookline.frameworks import KNOWN, require
from tools.frameworks import ENVIRONMENTS, ROOT, is_ready, run_in

ADAPTERS = sorted(set(KNOWN))
PYPROJECT = (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("extra", ADAPTERS)
@pytest.mark.parametrize("found", ["0.0.1", "99.0", "nonsense"])
def test_an_unknown_version_is_named_with_the_known_ones(
    extra: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which version was found, which ones the adapter knows, and what to run."""
    monkeypatch.setattr("importlib.metadata.version", lambda package: found)

    with pytest.raises(UnknownVersion) as refused:
        require(extra)

    known = KNOWN[extra]
    assert str(refused.value) == (
        f"found `{known.package}` {found}, and its adapter knows {known.first} and later, below {known.below}; "
        f"run `pip install 'hookline[{extra}]'`"
    )


@pytest.mark.parametrize("found", ["1.4", "1.4.7", "1.9.0rc1", "1.99"])
def test_later_versions_of_the_same_series_are_known(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch or minor release does not lock anybody out."""
    monkeypatch.setattr("importlib.metadata.version", lambda package: found)

    assert require("langchain") == found


@pytest.mark.parametrize("extra", ADAPTERS)
def test_the_tested_version_is_known(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions that `make frameworks` installs are among those the adapters take, and so are the extras'."""
    [pin] = [one for one in ENVIRONMENTS[extra] if one.partition("==")[0].partition("[")[0] == KNOWN[extra].package]
    monkeypatch.setattr("importlib.metadata.version", lambda package: pin.partition("==")[2])

    assert require(extra) == pin.partition("==")[2]
    assert f'"{KNOWN[extra].package}>={KNOWN[extra].first},<{KNOWN[extra].below}"' in PYPROJECT


@pytest.mark.parametrize("extra", ADAPTERS)
def test_a_missing_framework_names_the_extra(extra: str, tmp_path: Path) -> None:
    """Importing an adapter without its framework says what to install."""
    module = extra.replace("-", "_")
    script = f"from hookline.frameworks import {module}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert MissingExtra.__name__ in done.stderr
    assert f"pip install 'hookline[{extra}]'" in done.stderr


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_everything_can_be_installed_beside_a_framework(name: str) -> None:
    """`hookline[all,crewai]` and its like: what a framework brought along is what our other extras take, too."""
    if not is_ready(name):
        pytest.skip(f"the environment `{name}` is not there; run `make frameworks`")
    script = "import json, importlib.metadata as m; print(json.dumps([(d.name, d.version) for d in m.distributions()]))"
    installed = {one.lower(): version for one, version in json.loads(run_in(name, "-c", script).stdout)}
    extras = tomllib.loads(PYPROJECT)["project"]["optional-dependencies"]
    names = extras["all"][0].partition("[")[2].rstrip("]").split(",")
    wanted = [Requirement(line) for one in names for line in extras[one] if not line.startswith("hookline")]

    for one in wanted:
        found = installed.get(one.name.lower())
        assert found is None or found in one.specifier, f"{one} is asked for, and {name} brings {found}"


def test_mcp_servers_say_which_version_they_need(tmp_path: Path) -> None:
    """CrewAI allows no `mcp` of version 2; our own agent's MCP servers need one."""
    if not is_ready("crewai"):
        pytest.skip("the environment `crewai` is not there; run `make frameworks`")
    script = (
        "import asyncio\nfrom hookline.agent.tools.mcp import McpServers, read_config\n"
        '[server] = McpServers(read_config(\'{"mcpServers": {"x": {"command": "true"}}}\')).servers.values()\n'
        "asyncio.run(server.connect())"
    )

    assert "MCP servers need `mcp` 2 or later, and 1." in run_in("crewai", "-c", script).stderr
