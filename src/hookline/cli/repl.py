"""The agent on the command line: how a run is shown, what a person is asked, and one prompt after another."""

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import Any

from hookline.agent import PermissionQuestion
from hookline.agent.factory import AgentBundle, RunOptions
from hookline.agent.stream_json.output import HookReporter, Note
from hookline.cli.style import paint, width
from hookline.core.engine import Notice, Verdict
from hookline.core.files import private, private_folder, state_folder
from hookline.core.wire.json_text import write_lossy
from hookline.display import block, lines, one_line
from hookline.events import PreToolUse
from hookline.replies import EventFields, Reply, allow, deny

HELP = {
    "/help": "this list",
    "/clear": "forget the conversation and begin again",
    "/compact [WISHES]": "summarise the conversation, to make room",
    "/context": "how full the context window is",
    "/cost": "what the session has used so far",
    "/exit": "end the session, as Ctrl-D does",
    "@FILE": "in a prompt: attach the file",
    "Ctrl-C": "end the run; SessionEnd hooks still run",
    "↑ ↓": "earlier prompts",
}
MOST_REMEMBERED = 1000
MOST_LINES = 40
MOST_COMPARED = 1 << 20  # a larger file is not compared: the new text is shown by itself
LOUD = ("DENY", "STOP")
START_ONLY = frozenset({"SessionStart", "Setup"})
Write = Callable[[bytes], None]


async def permit(ask: PermissionQuestion) -> Reply:
    """Ask whether a call may be made; anything but yes or always is a no, and its words are the reason."""
    print(file=sys.stderr)
    for line in preview(ask.tool_name, ask.input):
        print(line, file=sys.stderr)
    for line in lines(ask.reason):
        print(f"  │ {line}", file=sys.stderr)
    said = (await read_line("  Allow? [y]es, [a]lways, or no and why: ") or "no").strip()
    if said.lower() in ("y", "yes"):
        return allow()
    if said.lower() in ("a", "always"):
        return allow() | Reply(specific=EventFields(updated_permissions=tuple(ask.suggestions)))
    return deny("the user said no" if said.lower() in ("n", "no") else f"the user said: {said}")


async def converse(made: AgentBundle) -> int:
    """One prompt after another, until the end of the input."""
    failed = False
    editor = LineEditor()
    await made.agent.start()
    while (line := await editor.read("> ")) is not None and (prompt := line.strip()) not in ("/exit", "/quit"):
        if prompt == "/help":  # what can be typed: our own commands, then the session's
            skills = made.agent.session.skills
            rows = {**HELP, **{f"/{name}": one.description or one.kind for name, one in skills.items()}}
            column = min(max(map(len, rows)), 30) + 2
            for name, about in rows.items():
                print(f"  {one_line(name):<{column}}{one_line(about, 90)}", file=sys.stderr)
        elif prompt:
            failed = (await made.agent.run(prompt, mentions=True)).is_error
            while (later := await made.agent.background()) is not None:
                failed = later.is_error
    return int(failed)


async def read_line(prompt: str) -> str | None:
    """One line from the terminal, without holding the agent up; None at the end of the input.

    The terminal is read only once it has a line, so that a caller that stops waiting leaves no thread behind that would
    take the next one, or keep the program from ending.
    """
    print(prompt, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline() or None


class LineEditor:
    """Reads prompts: arrows move and bring back earlier ones, which are kept in the user's state folder."""

    def __init__(self) -> None:
        self._readline = _readline()
        self._path = state_folder() / "prompts"
        if self._readline is not None:
            with suppress(OSError):
                self._readline.read_history_file(str(self._path))
            self._readline.set_history_length(MOST_REMEMBERED)
            _restore_terminal_at_exit()

    async def read(self, prompt: str) -> str | None:
        if self._readline is None:
            return await read_line(f"\n{prompt}")
        print(file=sys.stderr, flush=True)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str | None] = loop.create_future()
        # a thread of its own that is not waited for: Ctrl-C ends the program while it still reads
        threading.Thread(target=_ask, args=(prompt, loop, answer), name="prompt", daemon=True).start()
        line = await answer
        if line is not None and line.strip():
            with suppress(OSError):  # a prompt that cannot be kept is not a reason to lose it
                private_folder(self._path.parent)
                os.close(private(str(self._path), os.O_WRONLY | os.O_CREAT))
                self._readline.write_history_file(str(self._path))
        return line


def _ask(prompt: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[str | None]) -> None:
    line = None
    with suppress(EOFError, OSError, ValueError):
        line = input(prompt)
    with suppress(RuntimeError):  # the program has ended meanwhile
        loop.call_soon_threadsafe(lambda: None if answer.done() else answer.set_result(line))


def _readline() -> Any:
    """The module that edits lines, if this terminal can show it."""
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        with suppress(ImportError):
            import readline

            return readline
    return None


def _restore_terminal_at_exit() -> None:
    """A signal while a line is edited leaves the terminal as it was."""
    import termios

    with suppress(termios.error, OSError):
        before = termios.tcgetattr(sys.stdin.fileno())

        def restore() -> None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)

        atexit.register(restore)


def preview(tool: str, given: Mapping[str, Any]) -> list[str]:
    """A headline and the lines below it, safe to show; an input with anything else in it is shown as it is."""
    form = next((form for form, known in FORMS.items() if known[0] in given and set(given) <= set(known)), None)
    shown = form(given) if form else [one_line(write_lossy(given).decode())]
    more = 0 if form is _command else len(shown) - MOST_LINES  # what runs is shown whole: the end of it counts
    shown = shown if more <= 0 else [*shown[:MOST_LINES], f"… and {more} more lines"]
    return [f"{one_line(tool)} {shown[0]}", *shown[1:]]


def _command(given: Mapping[str, Any]) -> list[str]:
    told = one_line(str(given.get("description") or ""))
    return [f"({told})" if told else "", *(f"$ {line}" for line in lines(str(given.get("command", ""))))]


def _edit(given: Mapping[str, Any]) -> list[str]:
    every = "  (every occurrence)" if given.get("replace_all") else ""
    diff = _diff(str(given.get("old_string", "")), str(given.get("new_string", "")))
    return [one_line(str(given.get("file_path", ""))) + every, *diff]


def _write(given: Mapping[str, Any]) -> list[str]:
    path, old = Path(str(given.get("file_path", ""))), None
    with suppress(OSError, UnicodeDecodeError):
        if path.is_file() and path.stat().st_size <= MOST_COMPARED:
            old = path.read_text("utf-8")
    kind = "  (new file)" if old is None and not path.exists() else ""
    return [one_line(str(path)) + kind, *_diff(old or "", str(given.get("content", "")))]


def _notebook(given: Mapping[str, Any]) -> list[str]:
    cell = f"  {given.get('edit_mode', 'replace')} {given.get('cell_id') or 'a cell'}"
    return [one_line(str(given.get("notebook_path", "")) + cell), *_diff("", str(given.get("new_source", "")))]


FORMS: dict[Callable[[Mapping[str, Any]], list[str]], tuple[str, ...]] = {  # which arguments each shows, telling first
    _command: ("command", "description", "timeout", "run_in_background"),
    _edit: ("old_string", "new_string", "file_path", "replace_all"),
    _write: ("content", "file_path"),
    _notebook: ("new_source", "notebook_path", "cell_id", "cell_type", "edit_mode"),
    lambda given: [one_line(str(given["url"])), *lines(str(given.get("prompt", "")))]: ("url", "prompt"),
}


def _diff(old: str, new: str) -> list[str]:
    changed = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2))[2:]
    shown = [one for line in changed if line != changed[0] for one in lines(line)]
    return [paint(line, {"+": "green", "-": "red"}.get(line[:1], "dim"), sys.stderr) for line in shown]


def shown_on(made: AgentBundle, options: RunOptions, write: Write) -> None:
    """Show the run in the form that was asked for; what programs read goes to `write`."""
    output, form = made.agent.output, options.output_format
    if form == "text":
        output.listeners.append(_Text())
        made.hooks.observe(_explain if options.verbose else _denied, inline=True)
        return

    def send(note: Note) -> None:
        if form == "stream-json" or note["type"] == "result":
            write(write_lossy(note) + b"\n")

    output.listeners.append(send)
    if form == "json":
        return
    output.partial = options.include_partial_messages
    if options.session_mirror:  # every line of a transcript, for hosts that keep sessions elsewhere
        made.agent.mirror = lambda path, line: send({"type": "transcript_mirror", "filePath": path, "entries": [line]})
    only = None if options.include_hook_events else START_ONLY
    made.hooks.observe(HookReporter(output, made.hooks, only), inline=True)
    if not options.driven:
        made.write_init_message()


class _Text:
    """Words on stdout as they come, everything else on stderr."""

    def __init__(self) -> None:
        self._message, self._said = "", ""  # the message that was shown last, and its words

    def __call__(self, note: Note) -> None:
        kind, subtype = note["type"], note.get("subtype")
        if kind == "assistant" and note.get("parent_tool_use_id") is None:
            if note["message"]["id"] != self._message:
                self._message, self._said = note["message"]["id"], ""
            for part in note["message"]["content"]:
                if part["type"] == "text":
                    self._said += part["text"]
                    print(block(part["text"]), flush=True)
                elif part["type"] == "tool_use":
                    print(f"→ {one_line(part['name'])} {_short(part['input'])}", file=sys.stderr, flush=True)
        elif kind == "system" and subtype == "permission_denied":
            _loudly("DENY", str(note.get("tool_name") or ""), note.get("tool_input"), str(note.get("message") or ""))
        elif kind == "system" and subtype == "informational":
            print(block(note.get("content") or note.get("message") or ""), file=sys.stderr, flush=True)
        elif kind == "result":
            self._result(note)

    def _result(self, note: Note) -> None:
        if note["subtype"] != "success":
            print(block("; ".join(note.get("errors") or [note["subtype"]])), file=sys.stderr, flush=True)
        elif note["terminal_reason"] != "completed" and note.get("result") not in ("", None, self._said):
            print(block(note["result"]), flush=True)  # a refusal, say: no word of the model's


def _short(given: object) -> str:
    return one_line(write_lossy(given).decode(), 118)


def _denied(notice: Notice) -> None:
    """A call that hooks refuse or stop: the loudest line of the run."""
    if not isinstance(notice, Verdict) or notice.word not in LOUD or not isinstance(notice.event, PreToolUse):
        return
    names = ", ".join(dict.fromkeys(one.hook for one in notice.outcomes if one.decision is notice.decision))
    why = f"{notice.reason or 'no reason given'} ({names})" if names else notice.reason
    _loudly(notice.word, notice.event.tool_name, notice.event.tool_input, why)


def _loudly(word: str, tool: str, given: object, why: str) -> None:
    """One line that stands out, below the call that it is about."""
    about = one_line(f"{tool} {_short(given)}", 80) if given else one_line(tool)
    mark = paint(paint(f"✗ {word}", "bold", sys.stderr), "red", sys.stderr)
    print(f"{mark} {about}: {paint(one_line(why), 'red', sys.stderr)}", file=sys.stderr, flush=True)


def _explain(notice: Notice) -> None:
    if isinstance(notice, Verdict) and notice.outcomes:
        print(notice.explain(width(sys.stderr)), file=sys.stderr, flush=True)
