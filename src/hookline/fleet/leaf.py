"""A machine's connection to the hub, beside the agents and never in their way: audit out, policy in, how it stands."""

import asyncio
import contextlib
import logging
import platform
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import AuditError, FleetError, extra
from hookline.fleet import connection as wire
from hookline.fleet.bundle import unpack
from hookline.fleet.enforce import check_in_process
from hookline.fleet.ledger import Status
from hookline.fleet.machine import CannotWrite, Current, Enrolment, Machine
from hookline.fleet.members import MachineKey, log_origin, read_token, verify
from hookline.hosts.install.survey import survey
from hookline.records.audit.chain import Link, link_of
from hookline.records.audit.checkpoint import Checkpoints
from hookline.records.audit.reader import Cursor, LogReader

with extra("a fleet", "fleet"):
    from nats.errors import Error as NatsError
    from nats.js import JetStreamContext

log: logging.Logger = logging.getLogger("hookline.fleet")
POLL_SECONDS = 0.5
STATUS_SECONDS = 30.0
RETRY_SECONDS = 5.0
MOST_BYTES = 256 << 10
MOST_LINES = 500
_AGENT_MINUTES = 10.0


async def join(
    url: str, token: str, *, machine: Machine | None = None, name: str = "", audit: str = "", **settings: Any
) -> Enrolment:
    """Enrol this machine: make a key, spend the token, check that the answer is the team's, keep it."""
    machine = machine or Machine()
    if machine.enrolled:
        known = machine.enrolment()
        raise FleetError(f"this machine is in a fleet already, as `{known.name}` at {known.hub}; leave it first")
    secret, team = read_token(token)
    key = MachineKey.generate()
    client = await wire.connect(url, inbox="_INBOX_join", user="join", password="join")  # noqa: S106 - a door, not a secret
    try:
        ask = {"secret": secret, "key": key.public, "name": name or platform.node() or "machine"}
        answer = (await client.request(wire.ENROL, msgspec.json.encode(ask), timeout=10)).data
    except (NatsError, TimeoutError):
        raise FleetError("the hub's server is there, but no hub answers; is `hookline fleet hub` running?") from None
    finally:
        await client.close()
    found = _checked_answer(answer, team, key)
    enrolment = Enrolment(machine=found, name=ask["name"], hub=url, team=team, audit=audit, **settings)
    machine.enrol(enrolment, key.seed)
    machine.heard()
    return enrolment


def _checked_answer(data: bytes, team: str, key: MachineKey) -> str:
    """The machine's id; an answer that the holder of the team's key has not signed for this key is refused."""
    try:
        said: dict[str, str] = msgspec.json.decode(data, type=dict[str, str])
        if "error" in said:
            raise FleetError(f"the hub refuses: {said['error']}")
        answer = said["answer"].encode()
        signed = verify(team, answer, bytes.fromhex(said["signature"]))
        inner: dict[str, str] = msgspec.json.decode(answer, type=dict[str, str])
    except (msgspec.DecodeError, KeyError, ValueError) as problem:
        raise FleetError(f"the hub's answer cannot be read: {problem}") from None
    if not signed or inner.get("key") != key.public:
        raise FleetError("the answer was not signed by the team that made this token; is this the right hub?")
    return inner["machine"]


class Leaf:
    """The connection of one enrolled machine; `run` goes on until it is cancelled."""

    def __init__(
        self,
        machine: Machine | None = None,
        *,
        hosts: Callable[[], list[dict[str, Any]]] = list,
        check: Callable[[Path], list[str]] = check_in_process,
    ) -> None:
        self.machine: Machine = machine or Machine()
        self.enrolment: Enrolment = self.machine.enrolment()
        self._hosts = hosts
        self._check = check
        self._refused: tuple[str, str] = ("", "")
        self._cursor: Cursor | None = None
        self._sent: Link = Link()
        self._sequence = 0
        self._checkpoint = ""
        self._changed = asyncio.Event()
        self._js: JetStreamContext
        self._key = MachineKey.load(self.machine.seed_path)
        self._instance = secrets.token_hex(8)  # not kept: a copy of this machine has another

    async def run(self) -> None:
        while True:
            await self._run_once()
            await asyncio.sleep(RETRY_SECONDS)

    async def _run_once(self) -> None:
        """Until the client gives up, as it does when the server no longer lets this machine in."""
        me = self.enrolment.machine
        closed = asyncio.Event()

        async def on_closed() -> None:
            closed.set()

        async def on_back() -> None:
            self._cursor = None  # what the hub has is asked again: an acknowledgement may have been lost
            self._changed.set()

        async def on_announcement(_: Any) -> None:
            self._changed.set()

        async def status_loop() -> None:
            while True:
                with contextlib.suppress(Exception):  # the connection is away; the next one will say
                    await self.report()
                await asyncio.sleep(STATUS_SECONDS)

        client = await wire.connect(
            self.enrolment.hub, seed=self.machine.seed_path, inbox=wire.inbox_of(me), name=me, patient=True,
            reconnected_cb=on_back, on_problem=self.machine.note_trouble, closed_cb=on_closed,
        )  # fmt: skip
        self._js, self._cursor = client.jetstream(), None
        loops = [self._policy_loop(), self._audit_loop(), status_loop(), closed.wait()]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            await client.subscribe(wire.ANNOUNCE, cb=on_announcement)
            await tasks[-1]
        finally:
            await wire.end(*tasks)
            with contextlib.suppress(Exception):
                await client.close()

    async def _audit_loop(self) -> None:
        if not self.enrolment.audit:
            return
        log_path = Path(self.enrolment.audit)
        while True:
            try:
                sent = await self.send(log_path)
            except Exception as problem:  # noqa: BLE001 - whatever it was: ask the hub where it stands, and go on
                log.info("the audit log is not sent now: %s", problem)
                self._cursor, sent = None, 0
            if not sent:
                await asyncio.sleep(POLL_SECONDS)

    async def send(self, log_path: Path) -> int:
        """Send what the hub does not have; how many blocks it has taken.

        The log itself is the spool: what was not sent yet is what comes after the last record that the hub has, or all
        of it where the log does not hold that record any more; then the hub sees the gap.
        """
        reader, subject = LogReader(log_path), wire.audit_of(self.enrolment.machine)
        if self._cursor is None:
            self._sent, self._sequence = await wire.last_block(self._js, self.enrolment.machine)
            self._cursor = await asyncio.to_thread(reader.find, self._sent) or Cursor()
        sent = 0  # a week offline does not lie in memory at once
        few = islice(reader.batches(self._cursor, most_bytes=MOST_BYTES, most_lines=MOST_LINES), 16)
        for block in await asyncio.to_thread(list, few):
            last = link_of(block.lines[-1]) or Link(hash="")
            headers = {
                "Nats-Msg-Id": f"{self.enrolment.machine}.{last.hash}",  # machines made from one image begin alike
                "Nats-Expected-Last-Subject-Sequence": str(self._sequence),  # taken only if it follows what the hub has
                wire.SIGNATURE_HEADER: self._key.sign(block.data).hex(),
                wire.INSTANCE_HEADER: self._instance,
            }
            ack = await self._js.publish(subject, block.data, timeout=10, stream=wire.AUDIT_STREAM, headers=headers)
            self._sequence, self._cursor, self._sent = ack.seq, block.cursor, last
            self.machine.heard()
            sent += 1
        return sent

    async def _policy_loop(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self.follow_policy()
                self.machine.heard()
            except Exception as problem:  # noqa: BLE001 - the policy in force stays, and the hub is told why
                log.warning("the policy cannot be brought up to date: %s", problem)
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), STATUS_SECONDS)

    async def follow_policy(self) -> Current | None:
        """Bring this machine to the version it should have; what is in force afterwards."""
        rollout = await wire.read_rollout(self._js)
        number, digest = rollout.wanted(self.enrolment.machine) if rollout else (0, "")
        current = await asyncio.to_thread(self._usable)
        if not number or (current is not None and current.digest == digest) or self._refused[0] == digest:
            return current
        try:
            await self._put_in_force(number, digest)
            self._refused = ("", "")
        except CannotWrite as problem:  # not the bundle's fault: it is tried again
            self._refused = ("", f"version {number}: {problem}")
        except FleetError as problem:
            self._refused = (digest, f"version {number}: {problem}")
        if self._refused[1]:
            log.warning("the policy in force stays: %s", self._refused[1])
        await self.report()
        return self._usable()

    def _usable(self) -> Current | None:
        """The policy in force; none if what is on the disk is not what was signed: then the hub's is fetched again."""
        try:
            current = self.machine.current()
            self.machine.verified_policy()
        except FleetError as problem:
            log.warning("the policy is fetched again: %s", problem)
            return None
        return current

    async def _put_in_force(self, version: int, digest: str) -> None:
        bundle = unpack(await wire.fetch(self._js, wire.BUNDLE_BUCKET, str(version)), public=self.enrolment.team)
        if bundle.version != version or bundle.digest != digest:
            raise FleetError(f"the hub sent another bundle than it announced (version {bundle.version})")
        if problems := await asyncio.to_thread(lambda: self._check(self.machine.stage(bundle))):
            raise FleetError("; ".join(problems[:3]))
        await asyncio.to_thread(self.machine.put_in_force, bundle)

    async def report(self) -> Status:
        status = await asyncio.to_thread(self.status)
        await asyncio.to_thread(self._sign_log)
        subject = f"$KV.{wire.STATUS_BUCKET}.{self.enrolment.machine}"
        await self._js.publish(subject, msgspec.json.encode(status), timeout=10)
        return status

    def _sign_log(self) -> None:
        """A checkpoint for the next report: the hub has the records by then, and can compare."""
        if self.enrolment.audit and Path(self.enrolment.audit).exists():
            try:
                origin = log_origin(self.enrolment.machine)
                self._checkpoint = Checkpoints(self.enrolment.audit, self._key, origin=origin).update()
            except AuditError as problem:
                log.warning("%s", problem)

    def status(self) -> Status:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Status(
            machine=self.enrolment.machine, name=self.enrolment.name, time=now, hookline=version("hookline"),
            policy=self.machine.version_in_force(), refused=self._refused[1], audit_seq=self._sent.seq,
            checkpoint=self._checkpoint, instance=self._instance, hosts=self._hosts(),
        )  # fmt: skip


def agents() -> list[dict[str, Any]]:
    """Every agent that is installed, or whose files ask Hookline; a look costs a process for each of them."""
    return _agents(int(time.monotonic() / 60 / _AGENT_MINUTES))


@lru_cache(1)
def _agents(_: int) -> list[dict[str, Any]]:
    """In a few words each; a proof counts for its version, or where no binary is found for the one it names."""
    found = []
    for row in survey():
        if row.version or row.hooked:
            proven = row.proven or (not row.version and row.proof is not None and row.proof.holds)
            said = {"host": row.host.name, "version": row.version, "hooked": list(row.hooked)}
            found.append({**said, "proven": proven, "proof": msgspec.to_builtins(row.proof)})
    return found
