"""An adapter refuses a framework that is missing, or whose version it was never tested with."""

import subprocess
import sys
from pathlib import Path

import pytest

from hookline.errors import MissingExtra, UnknownVersion
from hookline.frameworks import versions
from hookline.frameworks.versions import KNOWN, require
from tools.frameworks import ENVIRONMENTS, ROOT

ADAPTERS = sorted(set(KNOWN))
PYPROJECT = (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("extra", ADAPTERS)
@pytest.mark.parametrize("found", ["0.0.1", "99.0", "nonsense"])
def test_an_unknown_version_is_named_with_the_known_ones(
    extra: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which version was found, which ones the adapter knows, and what to run."""
    monkeypatch.setattr(versions, "version", lambda package: found)

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
    monkeypatch.setattr(versions, "version", lambda package: found)

    assert require("langchain") == found


@pytest.mark.parametrize("extra", ADAPTERS)
def test_the_tested_version_is_known(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions that `make frameworks` installs are among those the adapters take, and so are the extras'."""
    [pin] = [one for one in ENVIRONMENTS[extra] if one.partition("==")[0].partition("[")[0] == KNOWN[extra].package]
    monkeypatch.setattr(versions, "version", lambda package: pin.partition("==")[2])

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
