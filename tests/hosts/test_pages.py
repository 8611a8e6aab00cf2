"""The pages about hosts say what the table says."""

import json

import pytest

from hookline.hosts.table import HOSTS
from tools.hosts.__main__ import DOCS, SEEN, matrix, page

RUN = "run `python -m tools.hosts`"


def test_the_matrix_is_current() -> None:
    """Generated, never edited."""
    assert (DOCS / "hosts.md").read_text() == matrix(json.loads(SEEN.read_text())), RUN


@pytest.mark.parametrize("name", HOSTS)
def test_the_page_of_a_host_is_current(name: str) -> None:
    """One page per host."""
    seen = json.loads(SEEN.read_text())
    assert (DOCS / "hosts" / f"{name}.md").read_text() == page(HOSTS[name], seen.get(name)), RUN


def test_every_measured_case_held() -> None:
    """What is shown as measured was seen to hold."""
    for name, row in json.loads(SEEN.read_text()).items():
        assert not [case for case, held in row["cases"].items() if held is False], name
        assert row["version"] == HOSTS[name].verified, name
