"""Input that cannot be read: each kind gets an error that says where and what to do; nothing else is ever raised."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.core.wire import claude
from hookline.core.wire.dialects import DIALECTS
from hookline.errors import EventError, HooklineError, ReplyError
from hookline.events import CATALOG, PreToolUse, Stop
from hookline.replies import NOTHING

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000  # too deep for the parser's own stack, whatever its limit
BELOW_THE_LIMIT_OF_JSON = b'{"a":' * 300 + b"[]" + b"}" * 300

BAD: list[tuple[bytes | str, str]] = [
    (b"", "there is nothing to read; write a JSON object"),
    (b" \n", "there is nothing to read; write a JSON object"),
    (b"hello", "not JSON: invalid character at line 1, column 1"),
    (b'{"a": 1,\n "b" 2}', "not JSON: expected ':' at line 2, column 6"),
    (b'{"a": 1', "not JSON: it ends too early"),
    (b"{} x", "not JSON: trailing characters at line 1, column 4"),
    (b'{"a": 1e999}', "not JSON: number out of range"),
    (b"\xef\xbb\xbf{}", "it begins with a byte order mark; send UTF-8 without one"),
    (b"[1]", "expected a JSON object, got an array; write `{…}`"),
    (b'"x"', "expected a JSON object, got a string; write `{…}`"),
    (b"true", "expected a JSON object, got a boolean; write `{…}`"),
    (b"null", "expected a JSON object, got null; write `{…}`"),
    (b"1.5", "expected a JSON object, got a number; write `{…}`"),
    (DEEP, "nested too deep; at most 200 levels are read"),
    (BELOW_THE_LIMIT_OF_JSON, "nested too deep; at most 200 levels are read"),
    (b'{"a": 1, "a": 2}', "key `a` is given twice; keep one"),
    (b'{"x": {"b": ":", "\\u0062": 2}}', "key `b` is given twice; keep one"),
    (b'{"n": ' + b"9" * 5000 + b"}", "not JSON: integer value out of range"),
    (b'{"a": "\xff"}', "invalid UTF-8 at line 1, column 8; send UTF-8"),
    (b'{\n"\xc3\x28": 1}', "invalid UTF-8 at line 2, column 2; send UTF-8"),
    (b'{"a": "\\ud800"}', "a lone surrogate at line 1, column 8; send valid Unicode"),
    (b'{"a": "\\\\\\udc00"}', "a lone surrogate at line 1, column 10; send valid Unicode"),
    ('{"a": "\ud800"}', "a lone surrogate at character 7; send valid Unicode"),
    (b" " * 50_000_000, "50,000,000 bytes is more than 33,554,432; send the large part as a file path"),
]  # fmt: skip
IDS = [problem[:40] + str(number) for number, (_, problem) in enumerate(BAD)]


@pytest.mark.parametrize("data, problem", BAD, ids=IDS)
def test_an_event_that_cannot_be_read_says_where_and_what_to_do(data: bytes | str, problem: str) -> None:
    """One exact message for each kind of bad input."""
    with pytest.raises(EventError) as raised:
        claude.decode_event(data)

    assert str(raised.value) == f"event: {problem}"


@pytest.mark.parametrize("data, problem", BAD[2:-1], ids=IDS[2:-1])
@pytest.mark.parametrize("name", DIALECTS)
def test_an_answer_that_cannot_be_read_says_the_same(name: str, data: bytes | str, problem: str) -> None:
    """Answers are read as carefully as events, in every dialect."""
    with pytest.raises(ReplyError) as raised:
        DIALECTS[name].decode_reply(data, "Stop")

    assert str(raised.value) == f"reply to Stop: {problem}"


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("data", [b"", " \n", b"{}", {}])
def test_no_answer_says_nothing(name: str, data: bytes | str | dict[str, Any]) -> None:
    """A hook that prints nothing has nothing to say."""
    assert DIALECTS[name].decode_reply(data, "PreToolUse") is NOTHING


def test_what_is_neither_text_nor_a_mapping_is_refused() -> None:
    """A value of another type is named, not guessed at."""
    with pytest.raises(EventError) as raised:
        claude.decode_event(3)  # type: ignore[arg-type]

    assert str(raised.value) == "event: expected JSON or a mapping, got `int`"


def test_a_mapping_that_is_no_dict_is_read_like_one() -> None:
    """Whatever a host keeps its objects in."""
    from types import MappingProxyType

    payload = MappingProxyType({"hook_event_name": "PreToolUse", "tool_name": "Bash"})

    assert claude.decode_event(payload) == PreToolUse(tool_name="Bash")


def test_colons_and_quotes_inside_strings_are_no_keys() -> None:
    """Text that looks like keys does not count as keys."""
    tool_input = {"command": 'echo "a": "b" \\" : {', "x:": "\\", "y": ['"z":']}
    payload = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": tool_input}

    assert claude.decode_event(json.dumps(payload)) == PreToolUse(tool_name="Bash", tool_input=tool_input)


def test_nesting_up_to_the_limit_is_read() -> None:
    """200 levels are enough for anybody, and all of them arrive."""
    value: Any = 1
    for _ in range(197):
        value = [value]
    payload = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"a": value}}

    assert claude.decode_event(json.dumps(payload)) == PreToolUse(tool_name="Bash", tool_input={"a": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["hook_event_name", "event", "type", "tool_name", "tool_input", "cwd", "decision", "reason", "continue", "async",
     "asyncTimeout", "hookSpecificOutput", "hookEventName", "permissionDecision", "updatedInput", "behavior", "action",
     "watchPaths", "timestamp", "extra", "continue_execution", "stop_reason", "hookline.extra", "hookline.timestamp"]
)  # fmt: skip
words = st.sampled_from([*CATALOG, "pre_tool_use", "hook_event", "hook_response", "block", "approve", "allow", "deny"])
likely: st.SearchStrategy[Any] = st.recursive(
    words | json_values, lambda inner: st.dictionaries(keys, inner, max_size=5), max_leaves=12
)


@given(st.binary() | st.text(st.characters()) | likely)
@example({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"a": "\ud800"}})
@example({"event": "\ud800"})
def test_whatever_comes_in_only_our_own_errors_come_out(data: Any) -> None:
    """Arbitrary bytes, text and objects, in every dialect, as event and as answer."""
    for dialect in DIALECTS.values():
        for read in (dialect.decode_event, lambda data, d=dialect: d.decode_reply(data, "PreToolUse")):
            with contextlib.suppress(HooklineError):
                read(data)


@given(likely, st.sampled_from(sorted(CATALOG)))
def test_what_can_be_read_can_be_written_again(data: Any, name: str) -> None:
    """An answer that was understood can be sent on, or there is a named reason why not."""
    for dialect in DIALECTS.values():
        try:
            reply = dialect.decode_reply(data, name)
            again = dialect.decode_reply(dialect.encode_reply(reply, name), name)
        except HooklineError:
            continue
        assert again == reply


@given(st.binary())
def test_a_trusted_line_raises_only_our_own_errors(raw: bytes) -> None:
    """The fast way is as safe as the careful one."""
    for data in (raw, b'{"hook_event_name":"Stop"' + raw, b'{"hook_event_name":"' + raw):
        with contextlib.suppress(HooklineError):
            claude.trusted_reader(Stop)(data)


def test_bytes_that_are_not_text_are_refused() -> None:
    """In an event and in an answer."""
    with pytest.raises(EventError, match="UTF-8"):
        claude.decode_event(b'{"hook_event_name":"Stop","cwd":"\xff"}')
