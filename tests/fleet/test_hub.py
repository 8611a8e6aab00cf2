"""A real hub and real machines: what somebody who does not play by the rules gets, and what nobody can help."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NoAnswer
from nats.js.errors import Error as StreamError

from hookline.errors import FleetError
from hookline.fleet import connection
from hookline.fleet.bundle import pack
from hookline.fleet.connection import (
    BUNDLE_BUCKET,
    POLICY_BUCKET,
    STATUS_BUCKET,
    TARGET,
    Server,
    audit_of,
    connect,
    end,
    inbox_of,
)
from hookline.fleet.hub import Hub
from hookline.fleet.leaf import Leaf, join
from hookline.fleet.ledger import MachineRow, Rollout
from hookline.fleet.machine import Machine
from hookline.fleet.members import MachineKey, TeamKey
from hookline.records.audit import AuditFile
from tests.fleet.faults import free_port

PATIENCE = 60.0
POLICY = b"""
from hookline import Hooks, deny
from hookline.events import PreToolUse

hooks = Hooks()


@hooks.on(PreToolUse)
def no(event):
    return deny("not here")
"""


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.05)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    made = Hub(tmp_path / "hub", server=Server(tmp_path / "hub", port=free_port()))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def enrolled(hub: Hub, folder: Path) -> Machine:
    machine = Machine(folder)
    log = folder.with_suffix(".jsonl")
    await join(
        hub.url, hub.folder.registry.token(hub.folder.key.public), machine=machine, name=folder.name, audit=str(log)
    )
    return machine


async def talking(machine: Machine) -> Client:
    """A machine's connection, in the hands of somebody who uses it as they like."""
    said = machine.enrolment()
    return await connect(said.hub, seed=machine.seed_path, inbox=inbox_of(said.machine))


class Connected:
    """A leaf that runs as long as the block."""

    def __init__(self, machine: Machine, **options: object) -> None:
        self.leaf = Leaf(machine, check=lambda folder: [], **options)  # type: ignore[arg-type]

    async def __aenter__(self) -> Leaf:
        self._task = asyncio.create_task(self.leaf.run())
        await until(lambda: hasattr(self.leaf, "_js"))
        return self.leaf

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def version_of(machine: Machine) -> int:
    current = machine.current()
    return current.version if current else 0


async def row_of(hub: Hub, machine: Machine) -> MachineRow:
    return next(row for row in await hub.admin.rows() if row.machine == machine.enrolment().machine)


async def in_force(hub: Hub, machine: Machine, version: int) -> None:
    """Until the hub has heard that a version is in force: the machine says so a moment after it is."""
    async with asyncio.timeout(PATIENCE):
        while (await row_of(hub, machine)).policy != version:  # noqa: ASYNC110 - the machine's word comes from elsewhere
            await asyncio.sleep(0.05)


# -- joining ---------------------------------------------------------------------------------------------------------


async def test_a_token_works_once(hub: Hub, tmp_path: Path) -> None:
    """The second machine is told what to do."""
    token = hub.folder.registry.token(hub.folder.key.public)
    await join(hub.url, token, machine=Machine(tmp_path / "one"))

    with pytest.raises(FleetError, match="unknown, used or too old; make a new one with `hookline fleet token`"):
        await join(hub.url, token, machine=Machine(tmp_path / "two"))
    assert not Machine(tmp_path / "two").enrolled


async def test_a_token_ends(hub: Hub, tmp_path: Path) -> None:
    """One that is too old is as good as none."""
    token = hub.folder.registry.token(hub.folder.key.public, hours=-0.001)

    with pytest.raises(FleetError, match="too old; make a new one"):
        await join(hub.url, token, machine=Machine(tmp_path / "one"))


async def test_another_teams_hub_is_not_believed(hub: Hub, tmp_path: Path) -> None:
    """It may know the token's secret; its answer is not signed by the team that made the token."""
    secret = hub.folder.registry.token(hub.folder.key.public).split(".")[1]
    ours = f"hl1.{secret}.{TeamKey(b'o' * 32).public}"

    with pytest.raises(FleetError, match="not signed by the team that made this token; is this the right hub"):
        await join(hub.url, ours, machine=Machine(tmp_path / "one"))
    assert not Machine(tmp_path / "one").enrolled


async def test_a_hub_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where, and why."""
    monkeypatch.setattr(connection, "IMPATIENCE", 2.0)
    url = f"nats://127.0.0.1:{free_port()}"

    with pytest.raises(FleetError, match=f"{url}: cannot connect to the hub"):
        await join(url, f"hl1.x.{TeamKey(b'o' * 32).public}", machine=Machine(tmp_path / "one"))


# -- policy ----------------------------------------------------------------------------------------------------------


async def announce(hub: Hub, wanted: Rollout) -> None:
    """Set the target by hand, as somebody who has the server but not the team's key would."""
    bucket = await hub.admin.js.key_value(POLICY_BUCKET)
    await bucket.put(TARGET, msgspec.json.encode(wanted))


async def put_bundle(hub: Hub, version: int, data: bytes) -> str:
    import hashlib

    store = await hub.admin.js.object_store(BUNDLE_BUCKET)
    await store.put(str(version), data)
    return hashlib.sha256(data).hexdigest()


async def test_a_bundle_of_another_key_is_refused_and_the_hub_says_so(hub: Hub, tmp_path: Path) -> None:
    """Whoever has the server can put a bundle there; no machine takes it, and the last good one stays."""
    machine = await enrolled(hub, tmp_path / "laptop")
    async with Connected(machine) as leaf:
        await hub.admin.push({"hooks.py": POLICY})
        await in_force(hub, machine, 1)
        digest = await put_bundle(hub, 2, pack({"hooks.py": b""}, version=2, key=TeamKey(b"x" * 32)))
        await announce(hub, Rollout(version=2, digest=digest))
        await leaf.follow_policy()

        assert version_of(machine) == 1
        row = await row_of(hub, machine)
        assert row.problems == ("policy refused: version 2: the bundle is not signed by this team's key",)
        assert not row.ok


async def test_an_older_bundle_is_not_put_back(hub: Hub, tmp_path: Path) -> None:
    """It was signed once; the machine has gone on since."""
    machine = await enrolled(hub, tmp_path / "laptop")
    async with Connected(machine) as leaf:
        first = await hub.admin.push({"hooks.py": b"# weak\n" + POLICY})
        await in_force(hub, machine, 1)
        await hub.admin.push({"hooks.py": POLICY})
        await in_force(hub, machine, 2)
        await announce(hub, first)
        await leaf.follow_policy()

        assert version_of(machine) == 2
        [problem] = (await row_of(hub, machine)).problems
        assert "version 1, and version 2 is in force" in problem
        assert "run `hookline fleet rollback`, which signs it again" in problem


async def test_a_policy_that_was_changed_on_the_machine_is_fetched_again(hub: Hub, tmp_path: Path) -> None:
    """Every gate is denied until then; afterwards everything is as it was signed."""
    machine = await enrolled(hub, tmp_path / "laptop")
    async with Connected(machine) as leaf:
        await hub.admin.push({"hooks.py": POLICY})
        await until(lambda: version_of(machine) == 1)
        (machine.policy_folder(1) / "hooks.py").write_bytes(b"")
        with pytest.raises(FleetError, match="not the file that was signed"):
            machine.verified_policy()
        await leaf.follow_policy()

        policy = machine.verified_policy()
        assert policy is not None
        assert policy[1] == {"hooks.py": POLICY}


# -- machines --------------------------------------------------------------------------------------------------------


async def test_the_hub_cosigns_what_a_machine_signed(hub: Hub, tmp_path: Path) -> None:
    """A machine reports a checkpoint over its log, and the hub, which has the same records, adds its name."""
    machine = await enrolled(hub, tmp_path / "laptop")
    log = AuditFile(tmp_path / "laptop.jsonl")
    mirror = hub.folder.ledger.mirror(machine.enrolment().machine)
    async with Connected(machine) as leaf:
        log.append([{"event": "PreToolUse"}] * 3)
        await until(lambda: mirror.last.seq == 3)
        await leaf.report()
        await leaf.report()
        await until(mirror.cosigned_path.exists)

    assert mirror.cosigned_path.read_text().count("\n— ") == 2
    assert mirror.problems() == []


async def test_a_revoked_machine_is_cut_off(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once; what it writes afterwards does not reach the hub, and it is told what to do."""
    machine = await enrolled(hub, tmp_path / "laptop")
    log = AuditFile(tmp_path / "laptop.jsonl")
    name = machine.enrolment().machine
    async with Connected(machine) as leaf:
        log.append([{"event": "PreToolUse"}])
        await until(lambda: hub.folder.ledger.mirror(name).last.seq == 1)
        hub.admin.revoke("laptop")
        await until(lambda: "was revoked" in machine.trouble())
        log.append([{"event": "PreToolUse"}])
        with pytest.raises(Exception, match=r"closed|reconnect|timeout"):
            await leaf.send(log.path)

    assert "run `hookline fleet leave`, then join with a new token" in machine.trouble()
    assert hub.folder.ledger.mirror(name).last.seq == 1
    monkeypatch.setattr(connection, "IMPATIENCE", 2.0)
    with pytest.raises(FleetError, match=r"does not let this machine in|cannot connect to the hub"):
        await talking(machine)
    assert [row.machine for row in await hub.admin.rows()] == []


async def test_a_machine_cannot_speak_for_another(hub: Hub, tmp_path: Path) -> None:
    """Its credentials name its own subjects; the server refuses every other."""
    mine, other = await enrolled(hub, tmp_path / "mine"), await enrolled(hub, tmp_path / "other")
    victim = other.enrolment().machine
    refused: list[str] = []
    said = mine.enrolment()
    client = await connect(said.hub, seed=mine.seed_path, inbox=inbox_of(said.machine), on_problem=refused.append)
    subjects = [
        audit_of(victim), f"$KV.{STATUS_BUCKET}.{victim}", f"$KV.{POLICY_BUCKET}.{TARGET}", "hookline.policy.changed",
        f"$O.{BUNDLE_BUCKET}.M.x", "$JS.API.STREAM.DELETE.HOOKLINE_AUDIT", "$JS.API.STREAM.PURGE.HOOKLINE_AUDIT",
        f"$JS.API.DIRECT.GET.HOOKLINE_AUDIT.{audit_of(victim)}", f"$JS.API.CONSUMER.CREATE.OBJ_{BUNDLE_BUCKET}.x.y",
    ]  # fmt: skip
    for subject in subjects:
        await client.publish(subject, b"{}", reply=f"{inbox_of(said.machine)}.x")
    for subject in (f"{inbox_of(victim)}.>", "hookline.audit.>", ">"):
        await client.subscribe(subject)
    await client.flush()
    await until(lambda: len(refused) >= len(subjects) + 3)
    await client.close()

    for subject in subjects:
        assert any(f'publish to "{subject}"'.lower() in one.lower() for one in refused), subject
    assert hub.folder.ledger.machines() == []


async def test_what_a_machine_did_not_sign_is_left_out(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server answers wherever it is told to; even so nobody gets a line into another's log, nor stops it."""
    mine, other = await enrolled(hub, tmp_path / "mine"), await enrolled(hub, tmp_path / "other")
    victim = other.enrolment().machine
    log = AuditFile(tmp_path / "other.jsonl")
    log.append([{"event": "PreToolUse"}])
    async with Connected(other):
        await until(lambda: hub.folder.ledger.mirror(victim).last.seq == 1)
        client = await talking(mine)
        with caplog.at_level(logging.WARNING, "hookline.fleet"):
            await client.publish("$JS.API.STREAM.NAMES", b"", reply=audit_of(victim))
            await until(lambda: "did not sign" in caplog.text)
        await client.close()
        log.append([{"event": "PreToolUse"}])
        await until(lambda: hub.folder.ledger.mirror(victim).last.seq == 2)

    assert hub.folder.ledger.problems() == []
    assert hub.folder.ledger.mirror(victim).path.read_bytes() == log.path.read_bytes()


async def test_what_a_joining_machine_may_do_is_join(hub: Hub) -> None:
    """The door is open to all; behind it there is one thing to ask for."""
    client = await connect(hub.url, inbox="_INBOX_join", user="join", password="join")
    with pytest.raises((NoAnswer, StreamError)):
        await client.jetstream(timeout=2).stream_info("HOOKLINE_AUDIT")
    await client.close()


@pytest.mark.parametrize("hours, where", [(1, "ahead of"), (-1, "behind")])
async def test_a_clock_that_is_off_is_shown_and_does_no_harm(hub: Hub, tmp_path: Path, hours: int, where: str) -> None:
    """The hub goes by its own clock: such a machine reports, gets policy, and is not taken for silent."""
    machine = await enrolled(hub, tmp_path / "laptop")
    async with Connected(machine) as leaf:
        await hub.admin.push({"hooks.py": POLICY})
        await in_force(hub, machine, 1)
        off = (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="milliseconds")
        status = msgspec.structs.replace(leaf.status(), time=off, received="2001-01-01T00:00:00+00:00")
        name = machine.enrolment().machine
        await leaf._js.publish(f"$KV.{STATUS_BUCKET}.{name}", msgspec.json.encode(status))
        row = await row_of(hub, machine)

    assert not row.silent
    [problem] = row.problems
    assert f"{where} the hub's; set it" in problem
    assert abs(int(problem.split()[3]) - 3600) < 120


@pytest.mark.parametrize("nonsense", [b"", b"{", b"[]", b'{"machine": 1}', b'{"machine":"m","name":"","time":"never"}'])
async def test_a_status_that_is_nonsense_counts_as_none(hub: Hub, tmp_path: Path, nonsense: bytes) -> None:
    """One machine cannot make the hub's list unreadable."""
    machine = await enrolled(hub, tmp_path / "laptop")
    name = machine.enrolment().machine
    client = await talking(machine)
    said = nonsense.replace(b'"machine":"m"', b'"machine":"%s"' % name.encode())
    await client.jetstream().publish(f"$KV.{STATUS_BUCKET}.{name}", said)
    await client.close()

    assert (await row_of(hub, machine)).silent


async def test_a_server_that_was_left_behind_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its folder's name, and however narrow the terminal."""
    monkeypatch.setenv("COLUMNS", "40")
    folder = tmp_path / ("long-" * 20)
    folder.mkdir()
    left = Server(folder, port=free_port())
    left.configure(MachineKey.generate().public, {})
    left.start()
    again = Server(folder, port=left.port)
    again.configure(MachineKey.generate().public, {})
    again.start()
    try:
        assert not left.running
        assert again.running
    finally:
        again.stop()


# -- no room left ----------------------------------------------------------------------------------------------------


def in_a_small_place(script: str, folder: Path, size: str) -> str:
    """Run a script with a folder that holds no more than `size`; skips where that cannot be made."""
    (folder / "small").mkdir()
    (folder / "script.py").write_text(textwrap.dedent(script))
    mount = f"mount -t tmpfs -o size={size} none {folder / 'small'}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("no namespace with a small file system can be made here")
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount} && exec {sys.executable} {folder / 'script.py'}"],
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_full_disk_on_a_machine_keeps_the_policy_in_force(tmp_path: Path) -> None:
    """And says what to do; once there is room, the same bundle is taken."""
    said = in_a_small_place(
        """
        from pathlib import Path
        from hookline.fleet.machine import CannotWrite
        from tests.fleet.test_enforce import POLICY, enrolled, put_in_force
        machine = enrolled(Path("small/fleet"))
        put_in_force(machine, {"hooks.py": POLICY})
        filler = Path("small/filler")
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        try:
            put_in_force(machine, {"hooks.py": POLICY, "big": b"y" * 100_000}, version=2)
        except CannotWrite as problem:
            print(problem)
        print(machine.current().version, machine.verified_policy()[0])
        machine.heard()
        filler.unlink()
        put_in_force(machine, {"hooks.py": POLICY, "big": b"y" * 100_000}, version=2)
        print(machine.current().version, machine.verified_policy()[0])
        """,
        tmp_path, "1m",
    )  # fmt: skip

    problem, before, after = said.splitlines()
    assert problem.endswith(
        "No space left on device; the policy in force stays; make room on this machine's disk, and it is tried again"
    )
    assert (before, after) == ("1 small/fleet/policies/1", "2 small/fleet/policies/2")


def test_a_full_disk_at_the_hub_loses_nothing(tmp_path: Path) -> None:
    """A block that did not fit is not half there; once there is room, it follows."""
    said = in_a_small_place(
        """
        from pathlib import Path
        from hookline.records.audit import AuditFile
        from hookline.fleet.connection import advice
        from hookline.fleet.ledger import Ledger
        AuditFile("audit.jsonl").append({"event": "PreToolUse", "pad": "x" * 3000} for _ in range(200))
        lines = Path("audit.jsonl").read_bytes().splitlines(keepends=True)
        mirror = Ledger(Path("small/hub")).mirror("m1")
        mirror.take(b"".join(lines[:50]))
        filler = Path("small/filler")
        filler.write_bytes(b"x" * 300_000)
        try:
            mirror.take(b"".join(lines[50:]))
        except OSError as problem:
            print(advice(problem))
        filler.unlink()
        print(mirror.take(b"".join(lines[50:])))
        print(mirror.path.read_bytes() == Path("audit.jsonl").read_bytes(), AuditFile(mirror.path).verify())
        """,
        tmp_path, "900k",
    )  # fmt: skip

    assert said.splitlines() == [
        "No space left on device; make room on the hub's disk: machines keep what is not acknowledged",
        "[]",
        "True []",
    ]


async def test_a_machine_whose_disk_is_full_tells_the_hub(hub: Hub, tmp_path: Path) -> None:
    """It is not taken for a bad bundle: the same one is tried again."""
    machine = await enrolled(hub, tmp_path / "laptop")
    blocker = machine.folder / "policies"
    blocker.write_bytes(b"")  # nothing can be put below it, as on a disk that takes nothing
    async with Connected(machine) as leaf:
        await hub.admin.push({"hooks.py": POLICY})
        await leaf.follow_policy()
        [problem] = (await row_of(hub, machine)).problems
        blocker.unlink()
        await leaf.follow_policy()

    assert "make room on this machine's disk, and it is tried again" in problem
    assert version_of(machine) == 1


# -- no hub ----------------------------------------------------------------------------------------------------------


async def test_an_interrupted_reader_goes_on_in_order(hub: Hub, tmp_path: Path) -> None:
    """Blocks that a reader was handed and did not finish come before what follows them."""
    machine = await enrolled(hub, tmp_path / "laptop")
    name, log = machine.enrolment().machine, AuditFile(tmp_path / "laptop.jsonl")
    await end(*hub._tasks)
    async with Connected(machine) as leaf:
        for number in range(6):
            log.append([{"event": "PreToolUse", "number": number}])
            await until(lambda seq=number + 1: leaf.status().audit_seq == seq)  # type: ignore[misc]
        pull = await hub.mirroring.subscribe()
        [first, *_] = await pull.fetch(3, timeout=10)
        await hub.mirroring.take(first)
        await first.ack_sync()
        await pull.unsubscribe()
        again = asyncio.create_task(hub.mirroring.run())
        await until(lambda: hub.folder.ledger.mirror(name).last.seq == 6)
        await end(again)

    assert hub.folder.ledger.problems() == []
    assert hub.folder.ledger.mirror(name).path.read_bytes() == log.path.read_bytes()


def test_a_tool_call_never_opens_a_connection(tmp_path: Path) -> None:
    """Python says so itself: judging on an enrolled machine, no socket leaves the machine, hub or no hub."""
    from tests.fleet.test_enforce import POLICY as NO_PUSH
    from tests.fleet.test_enforce import PUSH, enrolled, put_in_force

    machine = enrolled(tmp_path / "state" / "hookline" / "fleet", audit=str(tmp_path / "audit.jsonl"))
    put_in_force(machine, {"hooks.py": NO_PUSH})
    watch = """
        import sys
        opened = []
        def seen(event, arguments):
            if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
                sys.stderr.write(f"NETWORK {event} {arguments[1:]}\\n")
        sys.addaudithook(seen)
        from hookline.cli.main import main
        raise SystemExit(main(sys.argv[1:]))
        """
    (tmp_path / "watch.py").write_text(textwrap.dedent(watch))
    event = {
        "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "", "cwd": str(tmp_path),
        "tool_name": PUSH.tool_name, "tool_input": {"command": "git push"},
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "watch.py"), "guard", "commands", "--block", "sudo *"],
        input=json.dumps(event), capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip

    assert "the team pushes through CI" in ran.stdout + ran.stderr
    assert "NETWORK" not in ran.stderr


async def test_machines_made_from_one_image_are_both_mirrored(hub: Hub, tmp_path: Path) -> None:
    """Their logs begin with the same records, and the server takes neither for the other's, sent twice."""
    for name in ("one", "two"):
        AuditFile(tmp_path / f"{name}.jsonl").append([{"event": "PreToolUse"}])
    machines = [await enrolled(hub, tmp_path / name) for name in ("one", "two")]
    async with Connected(machines[0]), Connected(machines[1]):
        for machine in machines:
            name = machine.enrolment().machine
            await until(lambda name=name: hub.folder.ledger.mirror(name).last.seq == 1)  # type: ignore[misc]

    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


async def test_nobody_is_turned_away_while_the_server_reads_its_users_anew(hub: Hub) -> None:
    """JetStream answers nobody for a moment then; an administrator's command must not fail for it."""
    assert hub.server is not None
    for _ in range(100):
        hub.server.reload()
        for _ in range(5):
            await hub.admin.rollout()
