"""A hub keeps going: whatever one machine sends, whatever is killed, and it ends loudly when it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.aio.msg import Msg

from hookline.errors import FleetError
from hookline.fleet.connection import SIGNATURE_HEADER, STATUS_BUCKET, Server, audit_of, end
from hookline.fleet.hub import Hub
from hookline.fleet.ledger import Mirror, Status, rows
from hookline.fleet.machine import Machine
from hookline.fleet.members import MachineKey, Member
from hookline.records.audit import AuditFile
from hookline.records.audit.chain import START
from tests.fleet.faults import free_port
from tests.fleet.test_enforce import POLICY, PUSH, READ, decided, put_in_force
from tests.fleet.test_enforce import enrolled as enrolled_here
from tests.fleet.test_hub import Connected, enrolled, in_force, row_of, talking, until, version_of


@asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[Hub]:
    hub = Hub(folder, server=Server(folder, port=free_port()), **options)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


async def publish(machine: Machine, block: bytes, **headers: str) -> None:
    """A block that a machine signs, whatever is in it."""
    key, name = MachineKey.load(machine.seed_path), machine.enrolment().machine
    client = await talking(machine)
    signed = {SIGNATURE_HEADER: key.sign(block).hex(), **headers}
    await client.jetstream().publish(audit_of(name), block, headers=signed, timeout=10)
    await client.close()


def record_with(value: bytes) -> bytes:
    body = b'{"seq":1,"prev":"%s","event":"PreToolUse","value":%s' % (START.encode(), value)
    return body + b',"hash":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()


def _broken(_: bytes) -> None:
    raise KeyError("nothing")


# -- what one machine sends ------------------------------------------------------------------------------------------


async def test_a_record_that_cannot_be_read_stops_no_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept and reported; a block that breaks the mirror itself is put aside."""
    async with running(tmp_path / "hub") as hub:
        odd, plain = await enrolled(hub, tmp_path / "odd"), await enrolled(hub, tmp_path / "plain")
        await publish(odd, record_with(b"[" * 2_000 + b"]" * 2_000))
        await until(lambda: bool(hub.folder.ledger.problems()))
        name = odd.enrolment().machine
        monkeypatch.setattr(hub.folder.ledger.mirror(name), "take", _broken)
        await publish(odd, b"anything")
        await until(lambda: len(hub.folder.ledger.problems()) == 2)
        AuditFile(tmp_path / "plain.jsonl").append([{"event": "PreToolUse"}])
        async with Connected(plain):
            await until(lambda: hub.folder.ledger.mirror(plain.enrolment().machine).last.seq == 1)

        first, second = (await row_of(hub, odd)).problems
        assert first == "record 1: the line was changed: it is not a record of this log"
        assert second == "block 2 of the stream cannot be mirrored and was put aside: KeyError: 'nothing'"
        assert (tmp_path / "hub" / "audit" / f"{name}.aside" / "2").read_bytes() == b"anything"


async def test_a_status_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A time without a zone, values nested too deep: the list of machines is shown all the same."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        name = machine.enrolment().machine
        said = {"machine": name, "name": "x", "hookline": "1", "time": "2026-11-18T00:00:00"}
        deep = msgspec.json.encode({**said, "time": "2026-11-18T00:00:00Z"})[:-1] + b',"hosts":[{"a":'
        for data in (msgspec.json.encode(said), deep + b"[" * 2_000 + b"]" * 2_000 + b"}]}"):
            client = await talking(machine)
            await client.jetstream().publish(f"$KV.{STATUS_BUCKET}.{name}", data)
            await client.close()
            row = await row_of(hub, machine)
            assert row.silent
            assert "what it says of itself cannot be read" in row.problems[0]


async def test_one_machine_cannot_remove_what_others_said(tmp_path: Path) -> None:
    """A roll-up header would empty the whole bucket; nor is a status of any size kept."""
    async with running(tmp_path / "hub") as hub:
        one, other = await enrolled(hub, tmp_path / "one"), await enrolled(hub, tmp_path / "other")
        async with Connected(one):
            async with asyncio.timeout(60):
                while (await row_of(hub, one)).silent:  # noqa: ASYNC110 - its word comes from elsewhere
                    await asyncio.sleep(0.05)
        client = await talking(other)
        subject = f"$KV.{STATUS_BUCKET}.{other.enrolment().machine}"
        for data, headers in ((b"{}", {"Nats-Rollup": "all"}), (b"{}", {"Nats-Rollup": "sub"}), (b"x" * 100_000, {})):
            with pytest.raises(Exception, match=r"(?i)rollup|size"):
                await client.jetstream().publish(subject, data, headers=headers)
        await client.close()

        assert not (await row_of(hub, one)).silent


async def test_a_machine_that_floods_the_hub_is_cut_off_and_reported(tmp_path: Path) -> None:
    """With what it did not sign, or with more than its share; an administrator lets it in again."""
    async with running(tmp_path / "hub", quota=1_000_000) as hub:
        forger, busy = await enrolled(hub, tmp_path / "forger"), await enrolled(hub, tmp_path / "busy")
        client = await talking(forger)
        for _ in range(5):
            await client.publish(audit_of(forger.enrolment().machine), os.urandom(500_000))
        await client.flush()
        await until(lambda: hub.folder.registry.members()[forger.enrolment().machine].suspended != "")
        await client.close()
        AuditFile(tmp_path / "busy.jsonl").append({"event": "x", "pad": "y" * 60_000} for _ in range(30))
        async with Connected(busy):
            await until(lambda: hub.folder.registry.members()[busy.enrolment().machine].suspended != "")

        [problem] = (await row_of(hub, forger)).problems
        assert problem.startswith("cut off: it sends what it did not sign; `hookline fleet resume")
        [problem] = (await row_of(hub, busy)).problems
        assert problem.startswith("cut off: it sent more than 1,000,000 bytes of records within a day")
        hub.admin.resume("busy")
        assert (await row_of(hub, busy)).problems == ()


async def test_a_key_that_two_computers_use_is_found(tmp_path: Path) -> None:
    """As in copies of one image; their records do not fill the mirror again and again."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        name = machine.enrolment().machine
        shutil.copytree(tmp_path / "laptop", tmp_path / "copy")
        copy = Machine(tmp_path / "copy")
        said = msgspec.structs.replace(copy.enrolment(), audit=str(tmp_path / "copy.jsonl"))
        (tmp_path / "copy" / "machine.json").write_bytes(msgspec.json.encode(said))
        for log in ("laptop.jsonl", "copy.jsonl"):
            AuditFile(tmp_path / log).append({"event": "PreToolUse", "log": log} for _ in range(50))
        async with Connected(machine) as one, Connected(copy) as two:
            async with asyncio.timeout(60):
                while not hub.folder.registry.members()[name].suspended:
                    for leaf in (one, two):
                        with contextlib.suppress(Exception):  # it may be cut off by now
                            await leaf.report()
        lines = hub.folder.ledger.mirror(name).path.read_bytes().splitlines()

        problems = (await row_of(hub, machine)).problems
        assert any("two computers use its key" in problem for problem in problems)
        assert len(lines) <= 150


async def test_a_process_that_is_started_again_is_not_a_copy(tmp_path: Path) -> None:
    """Each has an instance of its own, and none comes back."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        name = machine.enrolment().machine
        for number in range(3):
            AuditFile(tmp_path / "laptop.jsonl").append([{"event": "PreToolUse"}])
            async with Connected(machine) as leaf:
                await leaf.report()
                await until(lambda seq=number + 1: hub.folder.ledger.mirror(name).last.seq == seq)  # type: ignore[misc]

        assert (await row_of(hub, machine)).problems == ()


async def four_mirrored(log: AuditFile, folder: Path) -> tuple[Machine, Mirror]:
    """A machine, and the hub's mirror of its log, once four records have come over one by one."""
    async with running(folder / "hub") as hub:
        machine = await enrolled(hub, folder / "laptop")
        mirror = hub.folder.ledger.mirror(machine.enrolment().machine)
        async with Connected(machine):
            for number in range(4):
                log.append([{"event": "PreToolUse"}])
                await until(lambda seq=number + 1: mirror.last.seq == seq)  # type: ignore[misc]
    return machine, mirror


async def test_a_mirror_that_is_older_than_the_stream_is_filled_again(tmp_path: Path) -> None:
    """Restored from a back-up, or lost: the stream has what it lacks."""
    log = AuditFile(tmp_path / "laptop.jsonl")
    machine, mirror = await four_mirrored(log, tmp_path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    for kept in (0, 1, 3):
        mirror.path.write_bytes(b"".join(lines[:kept]))
        mirror.path.with_name(mirror.path.name + ".head").unlink(missing_ok=True)
        async with running(tmp_path / "hub") as hub:
            again = hub.folder.ledger.mirror(machine.enrolment().machine)
            await until(lambda again=again: again.last.seq == 4)  # type: ignore[misc]
            assert hub.folder.ledger.problems() == []
        assert mirror.path.read_bytes() == log.path.read_bytes()
        assert AuditFile(mirror.path).verify() == []


@pytest.mark.parametrize("kept", [0, 1, 3])
async def test_a_mirror_is_filled_again_also_where_its_last_block_was_not_acknowledged(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader goes on with that block, which follows nothing that the mirror still has."""
    acknowledge = Msg.ack

    async def forgets_the_last(message: Msg) -> None:
        if message.metadata.sequence.stream != 4:
            await acknowledge(message)

    log = AuditFile(tmp_path / "laptop.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(Msg, "ack", forgets_the_last)
        machine, mirror = await four_mirrored(log, tmp_path)
    mirror.path.write_bytes(b"".join(log.path.read_bytes().splitlines(keepends=True)[:kept]))
    mirror.path.with_name(mirror.path.name + ".head").unlink()
    async with running(tmp_path / "hub") as hub:
        again = hub.folder.ledger.mirror(machine.enrolment().machine)
        await until(lambda: again.last.seq == 4)
        assert hub.folder.ledger.problems() == []
    assert mirror.path.read_bytes() == log.path.read_bytes()


# -- what is killed --------------------------------------------------------------------------------------------------


async def test_a_hub_whose_server_or_task_ends_says_so(tmp_path: Path) -> None:
    """It does not go on as if it mirrored."""
    async with running(tmp_path / "hub") as hub:
        assert hub.server is not None
        hub.server.kill()
        with pytest.raises(FleetError, match="nats-server has ended"):
            await asyncio.wait_for(hub.run(), 60)
    async with running(tmp_path / "hub") as hub:
        await end(hub._tasks[0])
        with pytest.raises(FleetError, match="a part of the hub has ended"):
            await asyncio.wait_for(hub.run(), 60)


KILLED_PUSH = """
import asyncio, os, signal, sys
from pathlib import Path
from nats.aio.client import Client
from hookline.fleet.administrator import Administrator

async def main(folder, after):
    admin = await Administrator.connect(folder)
    sent, publish = [0], Client.publish

    async def counted(self, subject, *args, **options):
        if subject.startswith(("$O.", "$KV.")):
            if sent[0] == after:
                await self.flush()
                os.kill(int((folder / "nats.pid").read_text()), signal.SIGKILL)
                os._exit(9)
            sent[0] += 1
        await publish(self, subject, *args, **options)

    Client.publish = counted
    await admin.push({"hooks.py": Path(sys.argv[3]).read_bytes(), "big": os.urandom(300_000)})

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


async def test_a_push_that_is_cut_short_changes_nothing(tmp_path: Path) -> None:
    """Wherever hub and server are killed: a machine has the policy before or the one after, and the next push works."""
    (tmp_path / "push.py").write_text(KILLED_PUSH)
    (tmp_path / "hooks.py").write_bytes(POLICY)
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        port = hub.server.port if hub.server else 0
    push = [sys.executable, str(tmp_path / "push.py"), str(tmp_path / "hub")]
    for after in range(6):
        hub = Hub(tmp_path / "hub", server=Server(tmp_path / "hub", port=port))
        await hub.start()
        before = await hub.admin.rollout()
        words = [*push, str(after), str(tmp_path / "hooks.py")]
        ran = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=120, check=False)
        whole = ran.returncode == 0
        assert whole or ran.returncode == 9, ran.stderr
        await hub.stop()
        async with running_at(tmp_path / "hub", port) as hub:
            assert whole or await hub.admin.rollout() == before
            wanted = await hub.admin.push({"hooks.py": POLICY})
            async with Connected(machine):
                await in_force(hub, machine, wanted.version)
            assert (await row_of(hub, machine)).problems == ()
        if whole:
            break
    assert version_of(machine) >= 4


@asynccontextmanager
async def running_at(folder: Path, port: int) -> AsyncIterator[Hub]:
    hub = Hub(folder, server=Server(folder, port=port))
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


async def test_a_machine_that_is_killed_while_it_applies_a_policy_has_one(tmp_path: Path) -> None:
    """After every step on the disk: the one before, the one after, or every gate closed; never none."""
    step, killed = 0, True
    while killed:
        folder = tmp_path / str(step)
        machine = enrolled_here(folder)
        put_in_force(machine, {"hooks.py": POLICY})
        killed = _is_killed_at(step, machine)
        decision, by = await decided(machine, PUSH)
        assert (decision, by) in (("deny", "fleet/no_push"), ("deny", "fleet.policy")), step
        put_in_force(machine, {"hooks.py": POLICY, "sub/more.py": b""}, version=3)
        assert await decided(machine, PUSH) == ("deny", "fleet/no_push"), step
        assert (await decided(machine, READ))[0] == "pass", step
        step += 1
    assert step > 10


def _is_killed_at(step: int, machine: Machine) -> bool:
    """Apply a policy in a process that is killed at its `step`-th deed on the disk; whether it was."""
    child = os.fork()
    if not child:
        try:
            left = [step]

            def count(event: str, _: object) -> None:
                if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "os.truncate"):
                    left[0] -= 1
                    if left[0] < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            put_in_force(machine, {"hooks.py": POLICY, "sub/more.py": b""}, version=2)
        except BaseException:  # the parent sees the code
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


# -- keys and clocks -------------------------------------------------------------------------------------------------


async def test_a_hub_with_a_new_key_of_its_own_is_the_same_hub(tmp_path: Path) -> None:
    """Machines know the team's key, not the hub's."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        port = hub.server.port if hub.server else 0
    for name in ("hub.seed",):
        (tmp_path / "hub" / name).unlink()
    async with running_at(tmp_path / "hub", port) as hub, Connected(machine):
        await hub.admin.push({"hooks.py": POLICY})
        await in_force(hub, machine, 1)


async def test_a_new_team_key_is_not_believed_until_the_machine_joins_again(tmp_path: Path) -> None:
    """The last good policy stays, and the hub says why; after joining again the new one is taken."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        port = hub.server.port if hub.server else 0
        async with Connected(machine):
            await hub.admin.push({"hooks.py": POLICY})
            await in_force(hub, machine, 1)
    (tmp_path / "hub" / "team.key").unlink()
    async with running_at(tmp_path / "hub", port) as hub:
        async with Connected(machine) as leaf:
            await hub.admin.push({"hooks.py": b"# new\n" + POLICY})
            await leaf.follow_policy()
            assert version_of(machine) == 1
            assert "not signed by this team's key" in (await row_of(hub, machine)).problems[0]
        hub.admin.revoke("laptop")
        shutil.rmtree(machine.folder)
        again = await enrolled(hub, tmp_path / "laptop")
        async with Connected(again):
            await in_force(hub, again, 2)


async def test_a_clock_that_goes_back_hides_nothing(tmp_path: Path) -> None:
    """How long ago the hub was heard is not known then, so the policy is stale; at the hub, the machine is silent."""
    machine = enrolled_here(tmp_path, stale_hours=2, when_stale="deny")
    put_in_force(machine, {"hooks.py": POLICY})
    ahead = (datetime.now(UTC) + timedelta(days=30)).timestamp()
    os.utime(tmp_path / "contact", (ahead, ahead))
    assert (await decided(machine, READ))[0] == "deny"
    machine.heard()
    assert (await decided(machine, READ))[0] == "pass"

    now = datetime.now(UTC)
    later = (now + timedelta(hours=1)).isoformat()
    member = Member(machine="m1", name="x", key="", enrolled="")
    status = Status(machine="m1", name="x", time=later, hookline="", received=later)
    [row] = rows({"m1": member}, {"m1": status}, rollout=None, records={}, breaks=[], now=now)
    assert row.silent


async def test_a_hub_whose_clock_went_back_takes_records_and_policies(tmp_path: Path) -> None:
    """Chains and versions count, not times."""
    async with running(tmp_path / "hub") as hub:
        machine = await enrolled(hub, tmp_path / "laptop")
        log = AuditFile(tmp_path / "laptop.jsonl")
        log.append({"event": "PreToolUse", "time": f"2026-11-18T0{9 - hour}:00:00+00:00"} for hour in range(5))
        async with Connected(machine):
            await hub.admin.push({"hooks.py": POLICY})
            await in_force(hub, machine, 1)
            await until(lambda: hub.folder.ledger.mirror(machine.enrolment().machine).last.seq == 5)
        assert (await row_of(hub, machine)).problems == ()


def test_a_full_disk_at_the_hubs_server_loses_nothing(tmp_path: Path) -> None:
    """Machines keep what the server does not take; once there is room, it follows."""
    from tests.fleet.test_hub import in_a_small_place

    said = in_a_small_place(
        """
        import asyncio
        from pathlib import Path
        from hookline.fleet.hub import Hub
        from hookline.fleet.leaf import Leaf, join
        from hookline.fleet.machine import Machine
        from hookline.fleet.connection import Server
        from hookline.records.audit import AuditFile
        from tests.fleet.test_hub import Connected, free_port, until

        async def main():
            folder = Path("small/hub").absolute()
            hub = Hub(folder, server=Server(folder, port=free_port()))
            await hub.start()
            machine = Machine(Path("fleet").absolute())
            token = hub.folder.registry.token(hub.folder.key.public)
            await join(hub.url, token, machine=machine, name="x", audit=str(Path("audit.jsonl").absolute()))
            mirror = hub.folder.ledger.mirror(machine.enrolment().machine)
            AuditFile("audit.jsonl").append([{"event": "PreToolUse"}])
            async with Connected(machine) as leaf:
                await until(lambda: mirror.last.seq == 1)
                filler = Path("small/filler")
                with filler.open("wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(b"x" * 4096)
                    except OSError:
                        pass
                AuditFile("audit.jsonl").append({"event": "PreToolUse", "pad": "x" * 3000} for _ in range(200))
                try:
                    await leaf.send(Path("audit.jsonl"))
                    print("sent")
                except Exception as problem:
                    print("refused")
                filler.unlink()
                await until(lambda: mirror.last.seq == 201)
            print(mirror.path.read_bytes() == Path("audit.jsonl").read_bytes(), hub.folder.ledger.problems())
            await hub.stop()

        asyncio.run(main())
        """,
        tmp_path, "16m",
    )  # fmt: skip

    assert said.splitlines()[-1] == "True []"
