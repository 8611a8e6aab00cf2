"""A hook that is only evaluated: asked, recorded, and never counted."""

from __future__ import annotations

import pytest

from hookline import Hooks, Reply, ask, deny, rewrite, stop
from hookline.core.hooks import Hook
from hookline.errors import HookError
from hookline.events import PreToolUse
from hookline.settings import parse_hooks
from hookline.settings.hook_names import without_duplicates
from hookline.settings.sources import SettingsSource

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "ls"})


@pytest.mark.parametrize("order", ["sequential", "sequential/run_all", "parallel", "parallel/unanimous"])
@pytest.mark.parametrize("reply, word", [
    (deny("no"), "deny"), (ask("sure?"), "ask"), (stop("enough"), "stop"), (rewrite({"command": "rm"}), "rewrite"),
])  # fmt: skip
async def test_its_answer_is_noted_and_does_not_count(order: str, reply: Reply, word: str) -> None:
    seen = []
    hooks = Hooks(order=order)  # type: ignore[arg-type]

    @hooks.on(PreToolUse, mode="evaluate_only", priority=5)
    async def trial(event: PreToolUse) -> Reply:
        return reply

    @hooks.on(PreToolUse)
    async def after(event: PreToolUse) -> None:
        seen.append(event.tool_input["command"])

    verdict = await hooks.fire(CALL)
    assert (str(verdict.decision), verdict.stop, verdict.reply.input) == ("pass", False, None)
    assert seen == ["ls"]
    trial_outcome = next(one for one in verdict.outcomes if one.hook == "trial")
    assert trial_outcome.would == word
    assert f"would {word}" in verdict.explain()


async def test_one_that_fails_does_not_block() -> None:
    hooks = Hooks()

    @hooks.on(PreToolUse, mode="evaluate_only")
    async def trial(event: PreToolUse) -> None:
        raise RuntimeError("broken")

    verdict = await hooks.fire(CALL)
    assert not verdict.blocked
    assert [str(one.status) for one in verdict.outcomes] == ["failed"]


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(HookError, match="enforce"):
        Hooks().on(PreToolUse, mode="watch")(lambda event: None)  # type: ignore[call-overload]


def test_settings_have_it_and_an_entry_that_counts_wins() -> None:
    """The same hook in two files counts if either says so; a wrong word counts, too."""

    def parsed(**more: str) -> Hook:
        table = {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", **more}]}]}
        return parse_hooks(table, SettingsSource(kind="user", label="user")).hooks[0]

    assert parsed(mode="evaluate_only").mode == "evaluate_only"
    assert parsed(mode="off").mode == "enforce"
    twice = [parsed(mode="evaluate_only"), parsed()]
    assert [hook.mode for hook in without_duplicates(twice)[0]] == ["enforce"]
