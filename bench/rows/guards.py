"""What a guard costs on ordinary commands. Every command is a new one, so that no cache of parsed lines helps."""

from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

from bench.harness import Measured, Row, at_most

ORDINARY = [
    "git status",
    "ls -la src/{n}",
    "pytest -q tests/test_{n}.py",
    "git commit -m 'change {n}: no rm -rf'",
    "grep -rn 'word{n}' src",
    "npm run build:{n}",
    "cat file{n}.txt | head -20",
    "cd dir{n} && make -j4",
    "python3 script{n}.py --flag",
    "find . -name '*{n}.py'",
    "docker ps -a --filter name=x{n}",
    "cargo test case_{n}",
    "mkdir -p out/{n} && cp a.txt out/{n}/",
    "echo {n} > log.txt",
    "sed -n '{n},20p' file",
    "curl -s localhost:80{n}/health",
]
BLOCKED = ["rm -rf *", "sudo *", "git push --force *", "dd *", "chmod -R 777 *"]
ROUNDS = 40
SLICES = 20
NUMBERS = count(1)
"""No two rows have a command in common, else the second would find what the first has parsed."""


def rows() -> Iterator[Row]:
    target = at_most(100, "µs")
    yield Row(
        "guards.commands", "commands.block with 5 patterns, an ordinary command never seen before", target, commands
    )
    yield Row("guards.paths", "paths.stay_inside, the same commands", target, paths)
    yield Row("guards.write", "paths.stay_inside, a Write in the project", target, writes)
    yield Row("guards.secrets", "secrets.block, the same commands", target, secrets)


async def commands() -> Measured:
    from hookline.guards import commands as guard

    return await _measured([guard.block(BLOCKED)], _line)


async def paths() -> Measured:
    from hookline.guards import paths as guard

    return await _measured(guard.stay_inside("/tmp"), _line)


async def writes() -> Measured:
    from hookline.guards import paths as guard

    return await _measured(
        guard.stay_inside("/tmp"), lambda n: ("Write", {"file_path": f"/tmp/a/b{n}.py", "content": "x"})
    )


async def secrets() -> Measured:
    from hookline.guards import secrets as guard

    return await _measured(guard.block(), _line)


def _line(n: int) -> tuple[str, dict[str, str]]:
    return "Bash", {"command": ORDINARY[n % len(ORDINARY)].replace("{n}", str(n))}


async def _measured(guards: list[Any], call: Callable[[int], tuple[str, dict[str, str]]]) -> Measured:
    """The median over single calls: what the guard adds to a hook set that has nothing to say.

    That of the quickest slice: these are times, not ratios, and the machine has slow moments.
    """
    bare, guarded = _fire([]), _fire(guards)
    added: list[float] = []
    times: list[float] = []
    for _ in range(SLICES):
        base: list[float] = []
        slice_: list[float] = []
        for _ in range(ROUNDS * len(ORDINARY)):
            number = next(NUMBERS)
            base.append(await _timed(bare, call(number)))
            slice_.append(await _timed(guarded, call(number)))
        added.append(median(slice_) - median(base))
        times += slice_
    slow = sorted(times)[int(len(times) * 0.95)]
    note = f"{median(added) * 1e6:.0f} in the median slice; p95 {slow * 1e6:.0f} µs, all of it"
    return Measured(min(added) * 1e6, note=note)


def _fire(guards: list[Any]) -> Callable[..., Awaitable[object]]:
    from hookline import Hooks
    from hookline.events import PreToolUse

    hooks = Hooks()
    for guard in guards:
        hooks.add(guard)

    async def fire(call: tuple[str, dict[str, str]]) -> object:
        tool, given = call
        return await hooks.fire(PreToolUse(session_id="s", cwd="/tmp", tool_name=tool, tool_input=given))

    return fire


async def _timed(fire: Callable[..., Awaitable[object]], call: tuple[str, dict[str, str]]) -> float:
    start = perf_counter()
    await fire(call)
    return perf_counter() - start
