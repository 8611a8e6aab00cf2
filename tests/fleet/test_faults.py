"""Hub, server, services and leaves are killed again and again, and nothing is lost, doubled or changed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fleet.faults import FAULTS, play


def test_every_record_reaches_the_hub_once(tmp_path: Path) -> None:
    """The whole run is `python -m tests.fleet.faults FOLDER` (20 machines, 100,000 records, 200 kills)."""
    report = play(tmp_path / "fleet", machines=2, records=1_000, kills=5, pace=4)

    assert report.wrong == []
    assert report.written == report.mirrored >= 1_000
    assert {report.kills[name] for name in FAULTS} == {1}
    assert report.events > report.by_service > 0
    assert re.search(r"record (\d+) is missing: found record", report.removed)
