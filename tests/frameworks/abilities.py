"""What an adapter must be able to do, each as a check on the facts of real runs, and the table that is made of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.frameworks.plays import played
from tools.frameworks import ENVIRONMENTS, ROOT, is_ready

TABLE = ROOT / "docs" / "frameworks.md"
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Driven:
    """One way to run a framework's agents: in which environment, by which module of `drive/`, and what it is called."""

    name: str
    environment: str
    module: str
    mode: str

    @property
    def version(self) -> str:
        """The version that is installed there."""
        return ENVIRONMENTS[self.environment][0].partition("==")[2]

    @property
    def ready(self) -> bool:
        return is_ready(self.environment)


DRIVEN = (
    Driven("LangChain", "langchain", "langchain_sync", "invoke"),
    Driven("LangChain", "langchain", "langchain_async", "ainvoke"),
    Driven("LangChain", "langchain", "langchain_stream", "stream"),
    Driven("pydantic-ai", "pydantic-ai", "pydantic_ai_agent", "run_sync"),
    Driven("pydantic-ai", "pydantic-ai", "pydantic_ai_stream", "run_stream_events"),
    Driven("Strands", "strands", "strands_agent", "call"),
    Driven("Strands", "strands", "strands_stream", "stream_async"),
    Driven("Microsoft Agent Framework", "agent-framework", "agent_framework_run", "run"),
    Driven("Microsoft Agent Framework", "agent-framework", "agent_framework_stream", "stream"),
    Driven("Google ADK", "google-adk", "google_adk_runner", "run_async"),
    Driven("OpenAI Agents SDK", "openai-agents", "openai_agents_run", "run"),
    Driven("OpenAI Agents SDK", "openai-agents", "openai_agents_stream", "run_streamed"),
    Driven("CrewAI", "crewai", "crewai_crew", "text"),
    Driven("CrewAI", "crewai", "crewai_native", "native"),
)


def facts_of(driven: Driven) -> Facts:
    """Everything that `drive/` saw on this framework; one process plays all scenarios."""
    facts: Facts = played(driven.environment, driven.module)
    return facts


# -- checks -------------------------------------------------------------------------------------------------------


def names(facts: Facts) -> list[str]:
    return [event["event"] for event in facts["events"]]


def events(facts: Facts, name: str) -> list[dict[str, Any]]:
    return [event for event in facts["events"] if event["event"] == name]


def told(facts: Facts, text: str) -> bool:
    """Whether the model read `text` after its first turn."""
    return any(text in request for request in facts["requests"][1:])


def all_told(facts: Facts, *texts: str) -> bool:
    return min(told(facts, text) for text in texts)


def ended(facts: Facts, text: str) -> bool:
    """Whether whoever started the run was told `text`."""
    return text in facts["answer"] or text in facts["error"]


def refuses(all: Facts) -> bool:
    facts = all["deny"]
    return facts["calls"] == [] and told(facts, "REASON_X") and facts["answer"] == "done"


def fails_closed(all: Facts) -> bool:
    broken = ("hook_raises", "hook_hangs", "hook_hangs_in_a_thread", "hook_answers_nonsense", "hooks_are_closed")
    return all_of(all, broken, lambda facts: facts["calls"] == [])


def judges_each(all: Facts) -> bool:
    facts, hung, stopped = all["parallel"], all["parallel_hang"], all["parallel_stop"]
    changed, results = all["parallel_rewrite"], all["parallel_results"]
    told_all = all_told(facts, "REASON_X", "out:ls", "out:pwd") and all_told(results, "CTX_ls", "CTX_pwd")
    ran = [sorted(one["calls"]) for one in (facts, hung, stopped, changed)]
    return told_all and ran == [["ls", "pwd"], ["ls"], [], ["ls -la", "pwd -la"]] and len(stopped["requests"]) == 1


def rewrites(all: Facts) -> bool:
    facts, again = all["rewrite"], all["rewrite_judged_again"]
    ran = [event["tool_input"] for event in events(facts, "PostToolUse")]
    return facts["calls"] == ["ls -la"] and ran == [{"command": "ls -la"}] and again["calls"] == []


def replaces(all: Facts) -> bool:
    facts = all["replace_result"]
    return facts["calls"] == ["ls"] and told(facts, "REPLACED_X") and not told(facts, "out:ls")


def adds_context(all: Facts) -> bool:
    both = ("context_before", "context_after")
    return all_of(all, both, lambda facts: told(facts, "CTX_X") and told(facts, "out:ls"))


def gates_prompts(all: Facts) -> bool:
    denied = ("deny_prompt", "deny_some_prompts", "deny_session", "prompt_hook_raises")
    return all_of(all, denied, lambda facts: facts["requests"] == []) and ended(all["deny_prompt"], "REASON_X")


def adds_to_prompts(all: Facts) -> bool:
    return all_of(all, ("prompt_context", "session_context"), lambda facts: all_contain(facts["requests"], "CTX_X"))


def keeps_going(all: Facts) -> bool:
    facts = all["keep_going"]
    return told(facts, "GO_X") and facts["calls"] == ["ls"] and facts["answer"].endswith("done2")


def answers_again(all: Facts) -> bool:
    facts = all["keep_going"]
    return told(facts, "GO_X") and (facts["calls"], facts["answer"]) == ([], "done")


def stops(all: Facts) -> bool:
    before, after = all["stop_before_tool"], all["stop_after_tool"]
    once = len(before["requests"]) == len(after["requests"]) == 1
    return (
        once
        and (before["calls"], after["calls"]) == ([], ["ls"])
        and ended(before, "STOP_X")
        and ended(after, "STOP_X")
    )


def asks(all: Facts) -> bool:
    silent = all_of(all, ("ask_nobody", "ask_no", "ask_fails"), lambda facts: facts["calls"] == [])
    return silent and all["ask_yes"]["calls"] == ["ls"] and told(all["ask_no"], "NOT_TODAY")


def knows_sessions(all: Facts) -> bool:
    facts = all["session"]
    order = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    sessions = {event.get("session_id") for event in facts["events"]}
    return names(facts) == order and len(sessions) == 1 and "" not in sessions


def knows_subagents(all: Facts) -> bool:
    facts, denied = all["subagent"], all["deny_subagent"]
    [start], [end] = events(facts, "SubagentStart"), events(facts, "SubagentStop")
    inside = [event for event in events(facts, "PreToolUse") if event["tool_name"] == "shell"]
    same = {start["agent_id"], end["agent_id"], *(event["agent_id"] for event in inside)}
    return len(same) == 1 and facts["calls"] == ["ls"] and denied["calls"] == []


def all_of(all: Facts, scenarios: tuple[str, ...], check: Callable[[Facts], bool]) -> bool:
    return min(check(all[name]) for name in scenarios)


def all_contain(requests: list[str], text: str) -> bool:
    return bool(requests) and min(text in request for request in requests)


ABILITIES: dict[str, Callable[[Facts], bool]] = {
    "refuse a tool call, with the reason told to the model": refuses,
    "a hook that raises, hangs or answers nonsense denies": fails_closed,
    "calls made at once are judged one by one": judges_each,
    "rewrite a call's arguments, judged again before it runs": rewrites,
    "replace a tool's result": replaces,
    "add context to a tool's result": adds_context,
    "refuse a prompt before the model sees it": gates_prompts,
    "add context to a prompt": adds_to_prompts,
    "send the agent back to work": keeps_going,
    "stop the agent": stops,
    "ask a person (`on_ask=`), deny without an answer": asks,
    "session start and end": knows_sessions,
    "subagent start and end": knows_subagents,
}
"""What the table has a row for."""

ENDINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "a run that ends early ends its session, once": {
        "agent-framework": ("cancelled_while_the_model_thinks", "cancelled_while_the_model_thinks_streamed"),
        "pydantic-ai": ("cancelled_while_the_model_thinks",),
        "crewai": ("cancelled", "cancelled_alone"),
        "google-adk": ("cancelled_in_a_tool", "cancelled_in_a_hook", "cancelled_while_the_model_thinks"),
        "langchain": ("cancelled", "cancelled_in_a_hook", "recursion_limit", "recursion_limit_async", "stream_left"),
        "openai-agents": (
            "max_turns", "max_turns_streamed", "cancelled_in_a_tool", "cancelled_in_a_tool_streamed",
            "cancelled_in_a_hook", "cancelled_while_the_model_thinks", "tool_raises",
        ),
        "strands": ("cancelled_in_a_hook", "cancelled_while_the_model_thinks"),
    },
    "a model or tool that is tried again does not end it": {
        "langchain": ("tool_retried", "model_retried"),
        "openai-agents": ("model_retried", "model_retried_streamed"),
    },
    "a run without a last answer in words stops": {
        "google-adk": ("loop",),
        "openai-agents": ("stop_on_first_tool", "stop_on_first_tool_streamed"),
        "pydantic-ai": ("output_arguments", "output_model", "output_text", "output_tool"),
        "strands": ("structured_output", "structured_output_streamed"),
    },
    "an MCP server's error is a failure of the tool": {
        "google-adk": ("mcp_error",), "openai-agents": ("mcp_error",), "strands": ("mcp_error",),
    },
}  # fmt: skip
"""Row of the second table → framework → the cases of `drive/odd_…` that show it."""

EARLY, AGAIN, WORDLESS, MCP_ERROR = ENDINGS

LESS = {("send the agent back to work", "crewai_native"): answers_again}
"""Where one way to run a framework can do less, which a note below the table says: what it does instead."""


def able(name: str, driven: Driven) -> bool:
    """Whether what the table says was seen."""
    return LESS.get((name, driven.module), ABILITIES[name])(facts_of(driven))


# -- the table ----------------------------------------------------------------------------------------------------

REFUSE_PROMPT, GO_ON, STOP = "refuse a prompt before the model sees it", "send the agent back to work", "stop the agent"
INSTEAD = {
    (REFUSE_PROMPT, "openai-agents"): "The run ends with `InputGuardrailTripwireTriggered`, which carries the reason.",
    (REFUSE_PROMPT, "crewai"): "`kickoff()` raises `HookAborted` with the reason.",
    (GO_ON, "pydantic-ai"): "Not with `run_stream`, which ends at the first text; `run_stream_events` and `iter` can.",
    (GO_ON, "openai-agents"): "Needs an agent with a `Model` object. With a model's name, the run ends with a warning.",
    (GO_ON, "crewai"): "With native tool calls the agent answers again, but cannot call tools to do so.",
    (STOP, "crewai"): "`kickoff()` raises `HookAborted` with the reason.",
    (
        STOP,
        "pydantic-ai",
    ): "An agent whose output is not text ends with `RunStopped`; a refused prompt, with `RunRefused`.",
}
"""What a reader should know beside the tick: how the framework shows it."""


def table() -> str:
    """The page `docs/frameworks.md`, from what was seen just now."""
    columns = list({driven.environment: driven for driven in DRIVEN}.values())
    head = "| | " + " | ".join(f"{driven.name} {driven.version}" for driven in columns) + " |"
    line = "|---|" + ":-:|" * len(columns)
    rows = [_row(name, [_cell(name, column) for column in columns]) for name in ABILITIES]
    ends = [_row(name, [_ways(cases, column) for column in columns]) for name, cases in ENDINGS.items()]
    notes = [f"{number}. {text}" for number, text in enumerate(INSTEAD.values(), 1)]
    return "\n".join([_OPENING, head, line, *rows, "", *notes, _MIDDLE, head, line, *ends, _CLOSING, *_wrapped()])


_OPENING = """# Which framework can do what

Every tick was seen by a test: the framework's real package, in this version, with a scripted model in place of a paid
one (`make test` runs them all; `python -m tests.frameworks.abilities` writes this page). Below each tick stand the
modes in which it was seen: LangChain's `invoke`, `ainvoke` and `stream`; pydantic-ai's `run_sync` and
`run_stream_events`; a Strands agent called and with `stream_async`; Microsoft's `run` without and with streaming
(`stream`); ADK's `run_async`; OpenAI's `Runner.run` and `run_streamed`; CrewAI with tool calls in text, one a turn,
and with native ones.
"""
_MIDDLE = """
## How runs end

Cases that were tried on single frameworks, each in the modes that are named; an empty cell was not tried.
"""
_CLOSING = """
Where a tool fails, CrewAI hands the error on as a result: hooks see `PostToolUse` there, not `PostToolUseFailure`. In
every framework a hook's `ask` is a deny unless the adapter was given `on_ask=`, and an agent may have several sets of
hooks.
"""


WRAPPED = {
    "llama-index": "LlamaIndex", "agno": "Agno", "haystack": "Haystack", "ag2": "AG2",
    "semantic-kernel": "Semantic Kernel", "smolagents": "smolagents", "dspy": "DSPy",
}  # fmt: skip
"""Frameworks without an adapter, whose tools are functions that `wrap_tool` wraps."""


def _wrapped() -> list[str]:
    lines = [
        "## Through `wrap_tool`", "",
        "No adapter: the functions that the framework is given are wrapped. Its page runs in the tests.", "",
        "| | refuse a call, with the reason told to the model | rewrite, replace, ask | prompts, sessions, stop |",
        "|---|:-:|:-:|:-:|",
    ]  # fmt: skip
    for environment, name in WRAPPED.items():
        version = ENVIRONMENTS[environment][0].partition("==")[2]
        lines.append(f"| [{name}](how-to/frameworks/{environment}.md) {version} | ✔ | ✔ as for any function | – |")
    return [*lines, ""]


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def _cell(name: str, column: Driven) -> str:
    """A tick, with the modes in which the ability was seen in full; a note says what is less in the others."""
    ways = [way for way in DRIVEN if way.environment == column.environment]
    modes = [way.mode for way in ways if (name, way.module) not in LESS and able(name, way)]
    key = (name, column.environment)
    note = f" <sup>{list(INSTEAD).index(key) + 1}</sup>" if key in INSTEAD else ""
    return f"✔{note}<br>{', '.join(modes)}" if modes else f"–{note}"


def _ways(cases: Mapping[str, tuple[str, ...]], column: Driven) -> str:
    """What was tried, in words."""
    names = [name.removeprefix("output_").replace("_", " ") for name in cases.get(column.environment, ())]
    return f"✔<br>{', '.join(names)}" if names else ""


if __name__ == "__main__":
    TABLE.write_text(table())
