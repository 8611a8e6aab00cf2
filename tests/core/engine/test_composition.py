"""A set's settings: composition profiles, who lifts an ask, evaluation only; identities of what was judged."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Decision, Hooks, Verdict, allow, ask, context, deny, rewrite, stop
from hookline.core.engine.composition import lifted
from hookline.errors import HookError
from hookline.events import PostToolUse, PreToolUse, SessionStart, UserPromptSubmit
from hookline.records.audit.log import AuditLog
from hookline.replies import Reply, replace_output
from hookline.testing import bash


def made(*answers: Any, **settings: Any) -> Hooks:
    hooks = Hooks(**settings)
    for number, answer in enumerate(answers):
        hooks.add(PreToolUse, lambda event, answer=answer: answer, name=f"h{number}")
    return hooks


def statuses(verdict: Verdict) -> list[str]:
    return [str(outcome.status) for outcome in verdict.outcomes]


# -- profiles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sequential", "sequential/first_deny"])
async def test_a_deny_ends_the_run(order: Any) -> None:
    """The rest are skipped: that is AGENT-HOOKS' first_deny."""
    verdict = await made(deny("no"), context("late"), order=order).fire(bash("ls"))

    assert (statuses(verdict), verdict.context) == (["ok", "skipped"], ())


async def test_run_all_asks_everybody() -> None:
    """After a deny or a stop, too; the strictest answer wins, and what the others add is kept."""
    verdict = await made(deny("no"), context("late"), stop("enough"), order="sequential/run_all").fire(bash("ls"))

    assert statuses(verdict) == ["ok", "ok", "ok"]
    assert (verdict.blocked, verdict.stop, verdict.context, verdict.decided_by) == (True, True, ("late",), "h0")


async def test_run_all_shows_each_hook_the_input_as_rewritten_so_far() -> None:
    """As every sequential order does."""
    seen = []
    hooks = made(rewrite({"command": "ls -l"}), order="sequential/run_all")
    hooks.add(PreToolUse, lambda event: seen.append(event.tool_input["command"]), name="last")

    verdict = await hooks.fire(bash("ls"))

    assert (seen, verdict.input) == (["ls -l"], {"command": "ls -l"})


@pytest.mark.parametrize(
    "answers, blocked",
    [
        ((allow("a"), allow("b")), False),
        ((allow("a"), None), False),
        ((None, None), False),
        ((allow("a"), ask("b")), True),
        ((allow("a"), rewrite({"command": "x"})), True),
        ((rewrite({"command": "x"}), rewrite({"command": "y"})), True),
        ((rewrite({"command": "x"}), rewrite({"command": "x"})), False),
        ((allow("a"), deny("b")), True),
    ],
)
async def test_unanimous_hooks_decide_the_same_or_it_is_a_deny(answers: tuple[Any, ...], blocked: bool) -> None:
    """Silence is not a vote; two different rewrites are a disagreement."""
    verdict = await made(*answers, order="parallel/unanimous").fire(bash("ls"))

    assert verdict.blocked is blocked


async def test_who_disagrees_is_named() -> None:
    """The reason says who said what."""
    verdict = await made(allow("a"), ask("b"), order="parallel/unanimous").fire(bash("ls"))

    assert verdict.reason == "the hooks disagree: `h0` says allow, `h1` says ask"


async def test_strictest_is_another_name_for_parallel() -> None:
    """And an unknown name is refused with the known ones."""
    assert Hooks(order="parallel/strictest").engine.order == "parallel"
    with pytest.raises(HookError, match=r"got `paralel`; did you mean `parallel`"):
        Hooks(order="paralel")  # type: ignore[arg-type]
    with pytest.raises(HookError, match="mode must be `enforce` or `evaluate_only`"):
        Hooks(mode="dry")  # type: ignore[arg-type]


# -- who lifts an ask -----------------------------------------------------------------------------------------------


async def later(verdict: Verdict) -> bool:
    await asyncio.sleep(0)
    return True


def fails(verdict: Verdict) -> bool:
    raise RuntimeError("the phone is dead")


@pytest.mark.parametrize(
    "on_ask, decision, reason",
    [
        (lambda verdict: verdict.reason == "why?", Decision.ALLOW, ""),
        (later, Decision.ALLOW, ""),
        (lambda verdict: allow("by me"), Decision.ALLOW, "by me"),
        (lambda verdict: False, Decision.DENY, "not approved: why?"),
        (lambda verdict: None, Decision.DENY, "not approved: why?"),
        (lambda verdict: deny("not today"), Decision.DENY, "not approved: not today"),
        (lambda verdict: 42, Decision.DENY, "not approved: why?"),
        (fails, Decision.DENY, "not approved: on_ask failed: RuntimeError: the phone is dead"),
    ],
)
async def test_somebody_lifts_an_ask_or_it_is_a_deny(on_ask: Any, decision: Decision, reason: str) -> None:
    """Whatever else the hooks said stays; the outcome is on record."""
    verdict = await made(ask("why?"), context("more"), on_ask=on_ask).fire(bash("ls"))

    assert (verdict.decision, verdict.reason, verdict.context) == (decision, reason, ("more",))
    assert verdict.decided_by == "on_ask"


@pytest.mark.parametrize("answer", [deny("no"), allow("yes"), None])
async def test_nobody_is_asked_about_anything_else(answer: Reply | None) -> None:
    """A deny cannot be lifted."""
    verdict = await made(answer, on_ask=fails).fire(bash("ls"))

    assert verdict.decision is (Decision.PASS if answer is None else answer.decision)


async def test_a_deadline_bounds_whoever_is_asked() -> None:
    """Nobody there: a deny, in time."""

    async def never(verdict: Verdict) -> bool:
        await asyncio.Event().wait()
        return True

    verdict = await lifted(await made(ask("why?")).fire(bash("ls")), never, 0.0)

    assert (verdict.blocked, verdict.reason) == (True, "not approved: no answer came in time")


# -- evaluation only ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer", [deny("no"), ask("why?"), stop("enough"), rewrite({"command": "x"}), context("c"), 42, fails]
)
async def test_nothing_counts_in_a_set_that_only_evaluates(answer: Any) -> None:
    """The verdict says nothing, and keeps what it would have said."""
    hooks = Hooks(mode="evaluate_only", on_ask=fails)
    hooks.add(PreToolUse, answer if callable(answer) else lambda event: answer, name="h")
    enforced = Hooks()
    enforced.add(PreToolUse, answer if callable(answer) else lambda event: answer, name="h")

    verdict, counts = await hooks.fire(bash("ls")), await enforced.fire(bash("ls"))

    assert (verdict.reply, verdict.blocked, verdict.input) == (Reply(), False, {"command": "ls"})
    assert verdict.evaluated == counts.reply
    assert str(verdict) == str(counts).replace(f"→ {counts.word}", f"→ {counts.word} (only evaluated)")


async def test_the_record_says_that_it_was_not_enforced(tmp_path: Path) -> None:
    """The decision is there, and that it did not count; `fire --json` has both, too."""
    hooks = made(deny("no"), mode="evaluate_only")
    log = AuditLog(tmp_path / "audit.jsonl", sync="line", redact=str)
    hooks.observe(log, inline=True)

    verdict = await hooks.fire(bash("ls"))

    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert (line["decision"], line["by"], line["blocked"], line["enforced"]) == ("deny", "h0", False, False)
    assert verdict.to_dict()["evaluated"] == {"blocked": True, "reason": "no", "decided_by": "h0", "word": "DENY"}


# -- identities -----------------------------------------------------------------------------------------------------


async def test_what_was_judged_and_what_ran_have_identities() -> None:
    """The same call has the same one, however its keys are ordered; a refused one let nothing through."""
    same = await made(None).fire(PreToolUse(tool_name="X", tool_input={"b": 1, "a": [2]}))
    again = await made(None).fire(PreToolUse(tool_name="X", tool_input={"a": [2], "b": 1}))
    changed = await made(rewrite({"a": 1})).fire(PreToolUse(tool_name="X", tool_input={"a": [2], "b": 1}))
    refused = await made(deny("no")).fire(bash("ls"))

    assert same.input_identity == same.enforced_identity == again.input_identity == changed.input_identity
    assert same.input_identity.startswith("sha256:")
    assert changed.enforced_identity not in ("", changed.input_identity)
    assert (refused.enforced_identity, refused.input_identity != "") == ("", True)


async def test_results_and_prompts_have_identities_and_a_start_has_none() -> None:
    """A replaced result is what is let through."""
    hooks = Hooks()
    hooks.add(PostToolUse, lambda event: replace_output("new"), name="replace")
    result = await hooks.fire(PostToolUse(tool_name="X", tool_input={}, tool_response="old"))
    prompt = await hooks.fire(UserPromptSubmit(prompt="hi"))
    start = await hooks.fire(SessionStart())

    assert result.input_identity != result.enforced_identity
    assert prompt.input_identity == prompt.enforced_identity != ""
    assert (start.input_identity, start.enforced_identity) == ("", "")


async def test_a_log_can_have_the_identities(tmp_path: Path) -> None:
    """`AuditLog(identities=True)`."""
    hooks = made(rewrite({"command": "ls -l"}))
    hooks.observe(AuditLog(tmp_path / "audit.jsonl", sync="line", identities=True), inline=True)

    verdict = await hooks.fire(bash("ls"))

    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert (line["input_identity"], line["enforced_identity"]) == (verdict.input_identity, verdict.enforced_identity)
