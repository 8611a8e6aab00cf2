"""What the hub knows of every machine: its audit log, which policy it should have, what it says, how the whole stands.

The mirror of a machine is an audit log like any other: `hookline audit verify`, `replay` and the console read it.
A block is written, put on the disk, and only then acknowledged to the stream; one that comes again changes nothing.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import msgspec

from hookline.core.files import locked, private_folder, write_atomically
from hookline.core.wire.json_text import read_object
from hookline.errors import AuditError
from hookline.fleet.members import Member, TeamKey, timestamp, vkey_of, witness_name
from hookline.records.audit.chain import Head, Link, follow, lines_of, link_of
from hookline.records.audit.checkpoint import LogTree, TreeHead, signature_line, verified_note
from hookline.records.audit.log_file import append_durably, last_line, last_line_in

_MOST_ASIDE = 100
_AT_ONCE = 10  # so many records may still name the policy before: they were judged while another one came
SILENT_SECONDS = 120.0
SKEW_SECONDS = 300.0
MOST_STATUS = 1 << 16  # a larger one is not taken


class ChainProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a machine's chain does not hold."""

    machine: str
    record: int
    problem: str
    found: str

    @property
    def text(self) -> str:
        return f"record {self.record}: {self.problem}" if self.record else self.problem

    def __str__(self) -> str:
        return f"{self.machine}: {self.text}"


class Mirror:
    """One machine's log at the hub."""

    def __init__(self, folder: Path, machine: str) -> None:
        self.machine = machine
        self.path: Path = folder / f"{machine}.jsonl"
        self.problems_path: Path = folder / f"{machine}.problems.jsonl"
        self.cosigned_path: Path = folder / f"{machine}.jsonl.checkpoint"
        self._last: Link | None = None
        self._hashes: set[str] | None = None
        self._policy: tuple[int, int] | None = None  # the highest version that a record named, and the first that did

    @property
    def last(self) -> Link:
        return _end_of(self.path) if self._last is None else self._last

    def take(self, block: bytes) -> list[ChainProblem]:
        """Write a block's new lines, to the disk; what does not follow is a problem, and kept all the same."""
        if self._last is None:
            self._last = _end_of(self.path, cut=True)
        if not (fresh := self._after([line + b"\n" for line in block.split(b"\n") if line])):
            return []
        found: list[ChainProblem] = []
        last = self.last
        for line, (link, problem) in zip(fresh, follow(fresh, last), strict=True):
            problems = (problem, self._step_back(line, link.seq))
            found += [self._problem(one, link.seq) for one in problems if one is not None]
            last = link
        self._note(*found)
        self._last = self._hashes = None  # should writing fail half-way, the torn end is cut off before the next block
        with locked(self.path.with_name(self.path.name + ".head")) as head:
            append_durably(self.path, b"".join(fresh))
            Head().at(last).write(head, None)
        self._last = last
        return found

    def _note(self, *problems: ChainProblem) -> None:
        if problems:
            append_durably(self.problems_path, b"".join(msgspec.json.encode(one) + b"\n" for one in problems))

    def _problem(self, problem: str, record: int = 0) -> ChainProblem:
        return ChainProblem(machine=self.machine, record=record, problem=problem, found=timestamp())

    def _after(self, lines: list[bytes]) -> list[bytes]:
        """The lines of a block that are not in the mirror yet.

        A block that comes once more, because its machine did not hear the acknowledgement, has none. One that is older
        than the mirror and not in it is a chain that began again: it is kept, and `follow` says what is wrong.
        """
        for index, line in enumerate(lines):
            if link_of(line) == self.last:
                return lines[index + 1 :]
        ends = link_of(lines[-1]) if lines else None
        return [] if ends is not None and ends.seq < self.last.seq and self.holds(ends) else lines

    def holds(self, link: Link) -> bool:
        if link == self.last:
            return True
        if self._hashes is None:
            self._hashes = set()  # shortened: they are looked up, not trusted
            if self.path.exists():
                with self.path.open("rb") as file:
                    links = map(link_of, lines_of(file, self.path.stat().st_size))
                    self._hashes = {one.hash[:16] for one in links if one is not None}
        return link.hash[:16] in self._hashes

    def _step_back(self, line: bytes, record: int) -> str | None:
        """What is wrong if a record names an older policy than those before it, beyond what came at the same time."""
        version = _policy_of(line)
        highest, since = self._policy or ((_policy_of(last_line_in(self.path)) if self.path.exists() else 0) or 0, 0)
        if version is None or version >= highest:
            self._policy = (highest, since) if version in (None, highest) else (version, record)
            return None
        if version and record - since <= _AT_ONCE:
            return None
        self._policy = version, record  # one step back is one problem
        return f"judged with policy {version}, after policy {highest} was in force: the machine went back"

    def witness(self, checkpoint: str, key: str, witness: TeamKey) -> ChainProblem | None:
        """Cosign a machine's checkpoint if it is over the records that are here; a machine that signs two logs is told.

        The newest cosigned one is in `cosigned_path`. One that is ahead of the mirror is left for later.
        """
        try:
            text = verified_note(checkpoint, vkey_of(self.machine, key))
            head = TreeHead.parse(text)
            if self.cosigned_path.exists() and TreeHead.parse(self.cosigned_path.read_text()).size >= head.size:
                return None
            if LogTree(self.path).grow([head], up_to=head.size).size < head.size:
                return None
        except AuditError as why:
            problem = self._problem(f"a checkpoint cannot be cosigned: {why}")
            if problem.problem not in {one.problem for one in self.problems()}:
                self._note(problem)
            return problem
        line = signature_line(witness_name(witness), witness, text, int(time.time()))
        write_atomically(self.cosigned_path, (checkpoint + line).encode(), durable=True)
        return None

    def put_aside(self, block: bytes, place: int, why: str) -> ChainProblem:
        """Keep a block that cannot be mirrored beside the mirror, and note that."""
        aside = self.path.with_name(f"{self.machine}.aside")
        aside.mkdir(0o700, exist_ok=True)
        if sum(1 for _ in aside.iterdir()) < _MOST_ASIDE:
            write_atomically(aside / str(place), block)
        problem = self._problem(f"block {place} of the stream cannot be mirrored and was put aside: {why}")
        self._note(problem)
        return problem

    def problems(self) -> list[ChainProblem]:
        try:
            data = self.problems_path.read_bytes()
        except FileNotFoundError:
            return []
        return [msgspec.json.decode(line, type=ChainProblem) for line in data.splitlines() if line]


class Ledger:
    """The mirrors of all machines."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path = private_folder(folder)
        self._mirrors: dict[str, Mirror] = {}

    def mirror(self, machine: str) -> Mirror:
        return self._mirrors.setdefault(machine, Mirror(self.folder, machine))

    def machines(self) -> list[str]:
        return sorted(path.name.removesuffix(".jsonl") for path in logs_below(self.folder))

    def problems(self) -> list[ChainProblem]:
        return [problem for machine in self.machines() for problem in self.mirror(machine).problems()]


def logs_below(folder: Path) -> list[Path]:
    """The mirrors in a hub's folder of logs."""
    return [path for path in folder.glob("*.jsonl") if not path.name.endswith(".problems.jsonl")]


def _policy_of(line: bytes) -> int | None:
    policy = (read_object(line) or {}).get("policy")
    return policy if isinstance(policy, int) else None


def _end_of(path: Path, *, cut: bool = False) -> Link:
    """The last whole record; the writer cuts a torn end off, which was never acknowledged; others only look."""
    if not path.exists():
        return Link()
    with path.open("r+b" if cut else "rb") as file:
        size = path.stat().st_size
        line, torn = last_line(file.fileno(), size)
        if torn and cut:
            file.truncate(size - torn)
        return link_of(line) or Link()


# -- which policy: a rollout goes to a share of the fleet first, then to all -------------------------------------------
#
# Whether a machine is among the first is a function of its name and the version, so every machine knows by itself, and
# another version tries itself on others.


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted state: `version` for the first `share` of the machines, `stable` for the rest."""

    version: int
    digest: str
    share: float = 1.0
    stable: int = 0
    stable_digest: str = ""
    message: str = ""
    started: str = ""

    @property
    def complete(self) -> bool:
        return self.share >= 1.0

    def widened(self, share: float) -> Self:
        """The same version for more machines; it never becomes fewer."""
        return msgspec.structs.replace(self, share=max(self.share, share))

    def wanted(self, machine: str) -> tuple[int, str]:
        """The version and digest that a machine should have; version 0 is none."""
        place = int.from_bytes(hashlib.sha256(f"{self.version}:{machine}".encode()).digest()[:8], "big") / (1 << 64)
        if self.complete or place < self.share:
            return self.version, self.digest
        return self.stable, self.stable_digest


def first(rollout: Rollout | None, version: int, digest: str, share: float, **about: str) -> Rollout:
    """A new rollout: what is stable so far is what the last one had brought to everybody."""
    done = rollout is None or rollout.complete
    before = rollout or Rollout(version=0, digest="")
    stable = (before.version, before.digest) if done else (before.stable, before.stable_digest)
    return Rollout(version=version, digest=digest, share=share, stable=stable[0], stable_digest=stable[1], **about)


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's word on itself."""

    machine: str
    name: str
    time: str
    hookline: str
    policy: int = 0
    refused: str = ""  # why the wanted policy is not in force, if it is not
    audit_seq: int = 0
    checkpoint: str = ""  # a checkpoint over its audit log, for the hub to compare and to cosign
    instance: str = ""  # which process of the machine says this
    hosts: list[dict[str, Any]] = []  # which agents are installed there, hooked or not, proven or not
    received: str = ""  # when the server took it, by the server's clock; set at the hub, whatever the machine says


def read_status(machine: str, data: bytes, received: datetime | None) -> Status | None:
    """What a machine said, with the time when the server took it; `None` for what cannot be read, whatever it is."""
    try:
        status = msgspec.json.decode(data, type=Status)
        said = datetime.fromisoformat(status.time)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    if status.machine != machine or said.tzinfo is None:
        return None
    return msgspec.structs.replace(status, received=received.isoformat(timespec="milliseconds") if received else "")


class MachineRow(msgspec.Struct, frozen=True):
    """One machine, as the hub sees it."""

    machine: str
    name: str
    wanted: int
    records: int
    seen: str = ""
    silent: bool = True
    policy: int = 0
    problems: tuple[str, ...] = ()
    agents: tuple[dict[str, Any], ...] = ()

    @property
    def hooked(self) -> int:
        """How many of its agents ask Hookline."""
        return sum(bool(agent.get("hooked")) for agent in self.agents)

    @property
    def proven(self) -> int:
        """On how many of them `hookline prove` has seen it hold."""
        return sum(bool(agent.get("proven")) for agent in self.agents)

    @property
    def ok(self) -> bool:
        """Whether it reports, has the policy it should have, and its chain holds."""
        return not self.silent and self.policy == self.wanted and not self.problems


def rows(
    members: Mapping[str, Member],
    statuses: Mapping[str, Status | None],
    *,
    rollout: Rollout | None,
    records: Mapping[str, int],
    breaks: Sequence[ChainProblem],
    now: datetime,
) -> list[MachineRow]:
    """The fleet, machines that need attention first."""
    made = []
    for member in members.values():
        if member.revoked:
            continue
        own = [one.text for one in breaks if one.machine == member.machine]
        if member.suspended:
            own.append(f"cut off: {member.suspended}; `hookline fleet resume {member.machine}` lets it in again")
        if member.machine in statuses and statuses[member.machine] is None:
            own.append("what it says of itself cannot be read; is its Hookline newer than the hub's?")
        wanted = rollout.wanted(member.machine)[0] if rollout else 0
        row = MachineRow(member.machine, member.name, wanted, records.get(member.machine, 0), problems=tuple(own))
        status = statuses.get(member.machine)
        made.append(row if status is None else _heard(row, status, now))
    return sorted(made, key=lambda row: (row.ok, row.name))


def _heard(row: MachineRow, status: Status, now: datetime) -> MachineRow:
    """What a machine has said of itself, added to what is known without."""
    seen, problems = status.received or status.time, list(row.problems)
    received = datetime.fromisoformat(seen)  # by the hub's clock
    ahead = (datetime.fromisoformat(status.time) - received).total_seconds()
    if status.refused:
        problems.append(f"policy refused: {status.refused}")
    if abs(ahead) > SKEW_SECONDS:
        where = "ahead of" if ahead > 0 else "behind"
        problems.append(f"its clock is {abs(ahead):.0f} s {where} the hub's; set it, or times in its records are off")
    silent = abs((now - received).total_seconds()) > SILENT_SECONDS
    more = {"seen": seen, "silent": silent, "policy": status.policy, "agents": tuple(status.hosts)}
    return msgspec.structs.replace(row, **more, problems=tuple(problems))
