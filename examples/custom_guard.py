"""Write a guard of your own: a class whose marked methods are hooks. Its test is three lines.

    python examples/custom_guard.py     # fires some events
    pytest examples/custom_guard.py     # runs the tests at the end

This one protects branches: no `git push` to `main`, and no force-push to any branch.
"""

import asyncio

from hookline import Hooks, Reply, deny, hook, message
from hookline.events import PostToolUse, PreToolUse
from hookline.testing import assert_denied, assert_passed, bash, fire_sync


class ProtectBranches:
    """Every method marked with `@hook` is a hook; `self` is where they share what they know."""

    def __init__(self, *branches: str) -> None:
        self.branches = branches
        self.pushes = 0

    @hook(PreToolUse, when="Bash(git push *)", priority=50)
    async def judge(self, event: PreToolUse) -> Reply | None:
        """Say no, or say nothing: a hook that returns `None` leaves the decision to others."""
        words = event.tool_input["command"].split()
        if "--force" in words or "-f" in words:
            return deny("force-pushing rewrites what others have pulled")
        targets = [word.rpartition(":")[2] for word in words]  # `HEAD:main` pushes to main, too
        protected = [branch for branch in self.branches if branch in targets]
        return deny(f"`{protected[0]}` is protected; push a branch and open a pull request") if protected else None

    @hook(PostToolUse, when="Bash(git push *)")
    async def count(self, event: PostToolUse) -> Reply:
        """Watch what did happen."""
        self.pushes += 1
        return message(f"{self.pushes} pushes so far")


async def main() -> None:
    hooks = Hooks()
    hooks.add(ProtectBranches("main", "release"))
    for command in ("git push origin HEAD:main", "git push --force", "git push origin fix-typo", "git status"):
        print(f"{command:26}", await hooks.fire(bash(command)))


def test_main_is_protected() -> None:
    """The hook is fired without any agent."""
    assert_denied(fire_sync(ProtectBranches("main"), bash("git push origin main")), reason="pull request")


def test_other_branches_are_not() -> None:
    """A guard that stops too much is switched off."""
    assert_passed(fire_sync(ProtectBranches("main"), bash("git push origin fix-typo")))


if __name__ == "__main__":
    asyncio.run(main())
