"""Compacting: a conversation that has nothing new in it stays as it is, and no model is asked."""

from __future__ import annotations

from pathlib import Path

from hookline import Command, Hooks
from hookline.events import PostCompact
from tests.agent.driving import agent_on, recorded, requests_of

AROUND = ("PreCompact", "SubagentStop", "SessionStart", "PostCompact")


async def test_what_nobody_has_added_to_is_not_summarised(tmp_path: Path) -> None:
    """PreCompact is told, as in Claude Code (`compact_twice`, `events_compact_empty`); nothing else happens."""
    hooks = Hooks()
    seen = recorded(hooks)
    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SHORT</summary>"}]}}
    async with agent_on(tmp_path, "hello", hooks=hooks, lanes=lanes) as agent:
        texts, events, asked = [], [], []
        for prompt in ("/compact", "hi", "/compact", "/compact"):
            before, requests = len(seen), len(requests_of(agent))
            texts.append((await agent.run(prompt)).text.partition("\n")[0])
            events.append([name for name in seen[before:] if name in AROUND])
            asked.append(len(requests_of(agent)) - requests)

    assert texts == ["There is nothing to compact.", "hello", "Compacted", "There is nothing to compact."]
    assert events == [["SessionStart", "PreCompact"], [], list(AROUND), ["PreCompact"]]
    assert asked == [0, 1, 1, 0]


async def test_a_summary_costs_what_an_answer_costs(tmp_path: Path) -> None:
    """It counts for the budget, and is listed with the model that wrote it."""
    async with agent_on(tmp_path, "hello", "<summary>SHORT</summary>") as agent:
        results = [await agent.run(prompt) for prompt in ("hi", "/compact")]

    assert [next(iter(result.model_usage.values()))["inputTokens"] for result in results] == [10, 20]


async def test_what_a_hook_says_after_a_compaction_reaches_the_model(tmp_path: Path) -> None:
    """As in Claude Code, with the output of `/compact`: also the reason of a block, which blocks nothing there."""
    said = """printf '{"decision": "block", "reason": "PCBLOCK"}'"""
    hooks = Hooks()
    hooks.add(PostCompact, Command(command=said), name="judge")
    hooks.add(PostCompact, Command(command="echo PCTEXT"), name="text")
    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SHORT</summary>"}]}}
    async with agent_on(tmp_path, "hello", "on", hooks=hooks, lanes=lanes) as agent:
        for prompt in ("hi", "/compact", "go on"):
            await agent.run(prompt)
        asked = str(requests_of(agent)[-1].messages)

    assert [word in asked for word in ("PCBLOCK", "PCTEXT")] == [True, True]
