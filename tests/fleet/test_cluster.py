"""A hub on a NATS server that is the team's own: it decides who may connect, from the file that the hub keeps."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.errors import FleetError
from hookline.fleet import connection
from hookline.fleet.connection import find_server
from hookline.fleet.hub import Hub
from tests.fleet.faults import free_port
from tests.fleet.test_hub import POLICY, Connected, enrolled, talking, until, version_of


class Cluster:
    """A server with a configuration as the how-to has it."""

    def __init__(self, folder: Path, users: Path) -> None:
        self.port, self._log = free_port(), folder / "log"
        folder.mkdir()
        users.parent.mkdir()
        users.write_text('{"users": [{"user": "nobody", "password": "yet"}]}')
        link = folder / "nats-users.json"
        link.symlink_to(users)
        config = folder / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream: {{ store_dir: "{folder}/store" }}\n'
            f'accounts {{\n  FLEET {{\n    jetstream: enabled\n    include "{link.name}"\n  }}\n}}\n'
        )
        self._process = subprocess.Popen([find_server(), "-c", str(config), "-l", str(self._log)])

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def ready(self) -> None:
        await until(lambda: self._log.exists() and "Server is ready" in self._log.read_text())

    async def reload(self) -> None:
        before = self._log.read_text().count("Reloaded server configuration")
        self._process.send_signal(signal.SIGHUP)
        await until(lambda: self._log.read_text().count("Reloaded server configuration") > before)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster", tmp_path / "hub" / "nats-users.json")
    yield made
    made.stop()


async def test_a_fleet_on_a_cluster_of_ones_own(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is let in, a machine joins, gets its policy and is revoked; each needs a reload, and says so."""
    await cluster.ready()
    hub = Hub(tmp_path / "hub", url=cluster.url)
    with monkeypatch.context() as patch:
        patch.setattr(connection, "IMPATIENCE", 2.0)
        with pytest.raises(FleetError, match=r"nats-users\.json: include that file .* and reload the server"):
            await hub.start()
    await cluster.reload()
    await hub.start()
    try:
        machine = await enrolled(hub, tmp_path / "laptop")
        await cluster.reload()
        async with Connected(machine):
            await hub.admin.push({"hooks.py": POLICY})
            await until(lambda: version_of(machine) == 1)
            hub.admin.revoke("laptop")
            await cluster.reload()
            await until(lambda: "was revoked" in machine.trouble())
        monkeypatch.setattr(connection, "IMPATIENCE", 2.0)
        with pytest.raises(FleetError):
            await talking(machine)
    finally:
        await hub.stop()
