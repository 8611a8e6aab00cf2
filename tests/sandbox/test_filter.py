"""The seccomp filter, carried out by hand: what it answers to every call there is, by number and argument."""

from __future__ import annotations

import struct

import pytest

from hookline.sandbox import syscalls

NUMBERS = range(1024)
ARGUMENTS = [
    (0,) * 6,
    ((1 << 64) - 1,) * 6,
    (1 << 32,) * 6,
    *((value,) * 6 for value in (1, 2, 5, 10, 16, 0x241, 0x10000000, 0x20000000)),
]
"""Nothing, everything, the upper half alone, and flags that calls have."""


def answer(code: bytes, number: int, arch: int, arguments: tuple[int, ...]) -> int:
    """What the kernel would do."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *arguments)
    program = list(struct.iter_unpack("HBBI", code))
    at = value = 0
    while True:
        operation, yes, no, operand = program[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif operation == 0x05:
            at += operand
        elif operation == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            at += yes if holds else no


def alone(block: list[syscalls.Instruction]) -> bytes:
    return b"".join(struct.pack("HBBI", *each) for each in block)


@pytest.mark.parametrize("machine", syscalls.MACHINES)
@pytest.mark.parametrize("network, signals, starts", [("all", True, True), ("tcp", True, True), ("none", False, False)])
def test_every_call_gets_the_answer_of_its_own_block(machine: str, network: str, signals: bool, starts: bool) -> None:
    """However the filter finds it; a call that nobody named passes."""
    arch, column = syscalls.MACHINES[machine]
    blocks = syscalls.blocks(machine, network=network, scoped_signals=signals, starts=starts)
    by_number = {syscalls.NUMBERS[name][column]: alone(block) for name, block in blocks.items()}
    code = syscalls.program(machine, network=network, scoped_signals=signals, starts=starts)
    asked = [(number, arguments) for number in NUMBERS for arguments in ARGUMENTS]
    passes = alone([(0x06, 0, 0, syscalls.ALLOW)])

    found = [answer(code, number, arch, arguments) for number, arguments in asked]
    expected = [answer(by_number.get(number, passes), number, arch, arguments) for number, arguments in asked]
    assert found == expected
    assert len(set(found)) > 2


@pytest.mark.parametrize("machine", syscalls.MACHINES)
def test_calls_of_another_architecture_end_the_program(machine: str) -> None:
    arch = syscalls.MACHINES[machine][0]
    code = syscalls.program(machine)

    assert {answer(code, number, arch ^ 1, ARGUMENTS[0]) for number in NUMBERS} == {syscalls.KILL}
