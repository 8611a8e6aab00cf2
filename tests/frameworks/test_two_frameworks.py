"""Agents of two frameworks in one program, governed by one set of hooks."""

import re

import pytest

from tests.frameworks.plays import played
from tools.frameworks import is_ready


def test_two_frameworks_share_one_log_one_page_and_one_explanation() -> None:
    """One audit log, one metrics page and one `explain()` cover both agents."""
    if not is_ready("pydantic-ai"):
        pytest.skip("the environment `pydantic-ai` is not there; run `make frameworks`")
    facts = played("pydantic-ai", "two_frameworks")["one_set_of_hooks"]

    assert facts["calls"] == {"langchain": ["ls"], "pydantic-ai": ["ls"]}
    tools = [row for row in facts["audit"] if row["event"] == "PreToolUse"]
    assert [row["decision"] for row in tools] == ["deny", "pass", "deny", "pass"]
    assert len({row["run"] for row in tools}) == 2
    [denied] = re.findall(r'^hookline_verdicts_total\{.*decision="deny".*\} (\S+)$', facts["metrics"], re.MULTILINE)
    assert float(denied) == 2
    assert [text.splitlines()[0] for text in facts["explained"]] == [facts["explained"][0].splitlines()[0]] * 2
    assert all("no_rm" in text and "never" in text for text in facts["explained"])
