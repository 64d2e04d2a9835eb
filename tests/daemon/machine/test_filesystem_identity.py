"""Nodes that share a file system name it alike, and others do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.daemon.machine.filesystem_identity import filesystem_identity

MOUNTS = r"""
21 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
40 21 9:0 / /data rw - xfs /dev/md0 rw
41 40 0:47 / /data/remote rw shared:7 master:3 - nfs4 farm-nfs:/events rw,vers=4.2
42 21 0:50 / /scratch rw - tmpfs tmpfs rw,size=1024k
43 21 0:51 / /scratch rw - tmpfs tmpfs rw,size=2048k
44 21 8:17 / /with\040blank rw - ext4 /dev/sdb1 rw
""".strip()


@pytest.fixture
def kernel(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "mounts").write_text(MOUNTS)
    (tmp_path / "boot").write_text("3f2a77c1-90aa-4c5e-b8a1-0123456789ab\n")
    return {"mounts": tmp_path / "mounts", "boot_id": tmp_path / "boot"}


@pytest.mark.parametrize(
    ("directory", "identity"),
    [
        ("/var/lib/hltnode", "/dev/nvme0n1p2@3f2a77c1"),
        ("/var/lib/hltnode1", "/dev/nvme0n1p2@3f2a77c1"),
        ("/data/out", "/dev/md0@3f2a77c1"),
        ("/database", "/dev/nvme0n1p2@3f2a77c1"),
        ("/data/remote/a", "farm-nfs:/events"),
        ("/scratch/out", "tmpfs 0.51@3f2a77c1"),
        ("/with blank/out", "/dev/sdb1@3f2a77c1"),
    ],
)
def test_the_innermost_mount_names_the_file_system(kernel: dict[str, Path], directory: str, identity: str) -> None:
    assert filesystem_identity(Path(directory), **kernel) == identity


def test_the_same_device_of_two_machines_is_two_file_systems_but_that_of_a_server_is_one(
    kernel: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("00000000-90aa-4c5e-b8a1-0123456789ab\n")
    other = {**kernel, "boot_id": tmp_path / "other"}
    for directory, shared in ((Path("/data"), False), (Path("/data/remote"), True)):
        assert (filesystem_identity(directory, **kernel) == filesystem_identity(directory, **other)) is shared


def test_without_the_table_of_mounts_the_directory_stands_for_its_file_system(kernel: dict[str, Path]) -> None:
    missing = {**kernel, "mounts": Path("/proc/nothing")}
    assert filesystem_identity(Path("/data/out"), **missing) == "/data/out"
    kernel["mounts"].write_text("")
    assert filesystem_identity(Path("/data/out"), **kernel) == "/data/out@3f2a77c1"


def test_two_directories_of_this_machine_have_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert filesystem_identity(tmp_path / "a") == filesystem_identity(tmp_path)
