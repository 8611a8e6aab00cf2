"""A policy bundle: signed, whole, and never anything outside its folder."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.errors import FleetError
from hookline.fleet.bundle import MANIFEST, SIGNATURE, pack, read_folder, unpack
from hookline.fleet.members import MachineKey, TeamKey, is_machine_key

KEY, OTHER = TeamKey(b"k" * 32), TeamKey(b"o" * 32)
FILES = {"hooks.py": b"hooks = None\n", "policies/a.cedar": b"permit();\n"}
WHOLE = pack(FILES, version=1, key=KEY)


def rezipped(data: bytes, **changes: bytes | None) -> bytes:
    """A bundle whose members were changed after it was signed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    members.update({name.replace("__", "/").replace("_DOT_", "."): value for name, value in changes.items()})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, value in members.items():
            if value is not None:
                archive.writestr(name, value)
    return made.getvalue()


def test_what_was_packed_comes_out() -> None:
    """Files, version, message."""
    bundle = unpack(pack(FILES, version=7, key=KEY, message="no force pushes"), public=KEY.public)

    assert (bundle.files, bundle.version, bundle.manifest.message) == (FILES, 7, "no force pushes")


def test_another_teams_bundle_is_refused() -> None:
    """The machine pins one key."""
    with pytest.raises(FleetError, match="not signed by this team's key"):
        unpack(pack(FILES, version=1, key=OTHER), public=KEY.public)


CHANGED = [
    ({"hooks_DOT_py": b"evil"}, "`hooks.py` in the bundle is not the file that was signed"),
    ({"hooks_DOT_py": None}, "the bundle lacks `hooks.py`"),
    ({"manifest_DOT_sig": None}, "the bundle is not signed; push it"),
    ({"manifest_DOT_sig": b"x" * 64}, "not signed by this team's key"),
    ({"manifest_DOT_sig": b""}, "not signed by this team's key"),
    ({"manifest_DOT_json": b"{}"}, "not signed by this team's key"),
]


@pytest.mark.parametrize("changes, problem", CHANGED)
def test_a_change_after_signing_is_found(changes: dict[str, bytes | None], problem: str) -> None:
    """Whatever is changed, taken out or put in."""
    with pytest.raises(FleetError, match=problem):
        unpack(rezipped(pack(FILES, version=1, key=KEY), **changes), public=KEY.public)


def test_a_member_that_the_manifest_does_not_name_is_never_unpacked(tmp_path: Path) -> None:
    """It is in the zip, and nowhere else."""
    bundle = unpack(rezipped(pack(FILES, version=1, key=KEY), extra_DOT_py=b"evil"), public=KEY.public)
    bundle.write(tmp_path / "policy")

    assert sorted(path.name for path in (tmp_path / "policy").rglob("*.*")) == ["a.cedar", "hooks.py"]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../b", "a//b", "a\\b", "x\n", "", ".", "a/./b"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    """Even when the team itself signed them."""
    with pytest.raises(FleetError, match="name"):
        unpack(pack({name: b"x"}, version=1, key=KEY), public=KEY.public)


@pytest.mark.parametrize("name", [MANIFEST, SIGNATURE])
def test_the_bundles_own_names_are_taken(name: str, tmp_path: Path) -> None:
    """A file of that name would stand in for the signature."""
    (tmp_path / name).write_bytes(b"{}")

    with pytest.raises(FleetError, match="taken by the bundle itself"):
        read_folder(tmp_path)


@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_message(data: bytes) -> None:
    """Nothing else is ever raised."""
    with pytest.raises(FleetError):
        unpack(data, public=KEY.public)


@given(st.data())
def test_a_damaged_bundle_is_refused_or_the_same(data: st.DataObject) -> None:
    """Any byte changed on the way: refused, or nothing that matters was changed."""
    at = data.draw(st.integers(0, len(WHOLE) - 1))
    damaged = WHOLE[:at] + bytes([WHOLE[at] ^ data.draw(st.integers(1, 255))]) + WHOLE[at + 1 :]
    with contextlib.suppress(FleetError):
        assert unpack(damaged, public=KEY.public).files == FILES


def test_a_link_in_the_folder_is_refused(tmp_path: Path) -> None:
    """Machines would not find what it leads to."""
    (tmp_path / "hooks.py").symlink_to("/etc/passwd")

    with pytest.raises(FleetError, match="this is a link"):
        read_folder(tmp_path)


def test_what_python_leaves_behind_is_not_part_of_the_policy(tmp_path: Path) -> None:
    """Byte code would otherwise run in place of what was signed."""
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "hooks.cpython-311.pyc").write_bytes(b"x")
    (tmp_path / "hooks.py").write_bytes(b"x")

    assert read_folder(tmp_path) == {"hooks.py": b"x"}


def test_a_key_is_made_once(tmp_path: Path) -> None:
    """A second start of the hub never replaces the key that machines pinned."""
    made = TeamKey.create(tmp_path / "team.key")

    assert TeamKey.load(tmp_path / "team.key").public == made.public
    assert (tmp_path / "team.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FleetError, match="there is a key already"):
        TeamKey.create(tmp_path / "team.key")


def test_a_machines_key_is_what_the_official_library_makes_of_its_seed() -> None:
    """NATS servers and we agree on the name of a machine."""
    import nkeys

    key = MachineKey.generate()

    assert nkeys.from_seed(key.seed.encode()).public_key.decode() == key.public
    assert is_machine_key(key.public)
    assert not is_machine_key(key.public[:-1] + ("A" if key.public[-1] != "A" else "B"))
