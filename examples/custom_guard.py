"""Write a guard of your own: a class whose marked methods are hooks. Its test is three lines.

    python examples/custom_guard.py     # fires some events
    pytest examples/custom_guard.py     # runs the tests at the end

This one lets no file be changed that the agent has not read in this session.
"""

import asyncio
from pathlib import Path

from hookline import Hooks, Reply, deny, hook
from hookline.events import PostToolUse, PreToolUse
from hookline.testing import assert_denied, assert_passed, fire_sync, write


class ReadFirst:
    """Every method marked with `@hook` is a hook; `self` is where they share what they know."""

    def __init__(self) -> None:
        self.read: set[Path] = set()

    @hook(PostToolUse, match="Read")
    async def note(self, event: PostToolUse) -> None:
        """Watch what did happen."""
        self.read.add(_file(event))

    @hook(PreToolUse, match="Write|Edit|MultiEdit", priority=50)
    async def judge(self, event: PreToolUse) -> Reply | None:
        """Say no, or say nothing: a hook that returns `None` leaves the decision to others."""
        file = _file(event)
        return deny(f"read `{file.name}` first") if file not in self.read and await _exists(file) else None


def _file(event: PreToolUse | PostToolUse) -> Path:
    """Where the path really leads: `..` and links are no way around the guard."""
    return Path(event.cwd, event.tool_input["file_path"]).resolve()


async def _exists(file: Path) -> bool:
    """Ask the disk in a thread: other hooks go on meanwhile."""
    return await asyncio.to_thread(file.exists)


async def main() -> None:
    hooks = Hooks()
    hooks.add(ReadFirst())
    project = str(Path(__file__).parent)
    name = Path(__file__).name
    print("not read yet:", await hooks.fire(write(name, cwd=project)))
    print("by a detour:", await hooks.fire(write(f"../{Path(project).name}/{name}", cwd=project)))
    await hooks.fire(PostToolUse(cwd=project, tool_name="Read", tool_input={"file_path": name}, tool_response="…"))
    print("read:", await hooks.fire(write(name, cwd=project)))
    print("new:", await hooks.fire(write("brand-new.txt", cwd=project)))


def test_what_was_not_read_is_not_changed() -> None:
    """The hook is fired without any agent."""
    assert_denied(fire_sync(ReadFirst(), write(__file__)), reason="first")


def test_a_new_file_may_be_written() -> None:
    """A guard that stops too much is switched off."""
    assert_passed(fire_sync(ReadFirst(), write(f"{__file__}.new")))


if __name__ == "__main__":
    asyncio.run(main())
