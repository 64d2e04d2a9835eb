"""Available memory of the host, from made-up /proc and control group files."""

from pathlib import Path

import pytest

from hltnode.processing.framework.backends.host_memory import available_bytes

MIB = 1 << 20


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def a_machine(folder: Path, available_mib: int, groups: str) -> tuple[Path, Path]:
    write(
        folder / "proc" / "meminfo", f"MemTotal: 99999999 kB\nMemAvailable: {available_mib * 1024} kB\nHugePages: 0\n"
    )
    write(folder / "proc" / "self" / "cgroup", groups)
    return folder / "proc", folder / "cgroup"


def limit_group(folder: Path, limit: str, used_mib: int, inactive_mib: int) -> None:
    write(folder / "memory.max", limit)
    write(folder / "memory.current", str(used_mib * MIB))
    write(folder / "memory.stat", f"anon 5\ninactive_file {inactive_mib * MIB}\n")


def test_without_limits_it_is_what_the_machine_has(tmp_path: Path) -> None:
    assert available_bytes(*a_machine(tmp_path, 700, "0::/\n")) == 700 * MIB


def test_the_tightest_group_from_the_process_to_the_root_counts(tmp_path: Path) -> None:
    proc, groups = a_machine(tmp_path, 700, "0::/farm/node\n")
    limit_group(groups / "farm" / "node", "max", 10, 0)
    assert available_bytes(proc, groups) == 700 * MIB
    limit_group(groups / "farm", str(500 * MIB), 300, 100)
    assert available_bytes(proc, groups) == 300 * MIB
    limit_group(groups / "farm" / "node", str(250 * MIB), 200, 0)
    assert available_bytes(proc, groups) == 50 * MIB


def test_a_group_above_its_limit_leaves_nothing(tmp_path: Path) -> None:
    proc, groups = a_machine(tmp_path, 700, "0::/farm\n")
    limit_group(groups / "farm", str(100 * MIB), 120, 0)
    assert available_bytes(proc, groups) == 0


def test_the_memory_controller_of_the_first_version_is_obeyed(tmp_path: Path) -> None:
    proc, groups = a_machine(tmp_path, 700, "4:memory:/farm\n1:cpu:/farm\n0::/\n")
    folder = groups / "memory" / "farm"
    write(folder / "memory.limit_in_bytes", str(400 * MIB))
    write(folder / "memory.usage_in_bytes", str(350 * MIB))
    write(folder / "memory.stat", f"total_inactive_file {20 * MIB}\n")
    assert available_bytes(proc, groups) == 70 * MIB


def test_a_meminfo_that_does_not_say_what_is_available_is_named(tmp_path: Path) -> None:
    proc, groups = a_machine(tmp_path, 700, "0::/\n")
    write(proc / "meminfo", "MemTotal: 5 kB\n")
    with pytest.raises(ValueError, match="meminfo does not give the available memory"):
        available_bytes(proc, groups)
