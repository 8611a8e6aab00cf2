"""The tables of `tests/big.py` name files that are there."""

from tests.big import BIG, SLOWEST, is_big
from tests.pages import ROOT


def test_the_rows_lead_somewhere() -> None:
    """What is renamed would be run by `make test` again, and last."""
    rows = [path for paths in BIG.values() for path in paths]

    assert [path for path in (*rows, *SLOWEST) if not (ROOT / path).exists()] == []
    assert [path for path in SLOWEST if is_big(path)] == []
