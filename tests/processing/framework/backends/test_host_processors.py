"""The number of computing threads follows the limits of the control groups of this process."""

from pathlib import Path

import pytest

from hltnode.processing.framework.backends.host_processors import OTHER_THREADS, usable_processors


class Machine:
    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self.groups("0::/")

    def groups(self, *lines: str) -> None:
        (self.proc / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def write(self, name: str, text: str) -> None:
        path = self.cgroups / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def processors(self, affinity: int = 16) -> int:
        return usable_processors(self.proc, self.cgroups, affinity)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_limits_the_affinity_decides(machine: Machine) -> None:
    assert machine.processors(5) == 5
    machine.write("cpu.max", "max 100000")
    machine.write("pids.max", "max")
    assert machine.processors(5) == 5


@pytest.mark.parametrize(
    ("quota", "expected"), [("100000", 1), ("150000", 2), ("200000", 2), ("1000", 1), ("9900000", 16)]
)
def test_a_quota_counts_in_processors_rounded_up(machine: Machine, quota: str, expected: int) -> None:
    machine.groups("0::/user/job")
    machine.write("user/job/cpu.max", f"{quota} 100000")
    assert machine.processors() == expected


def test_the_smallest_quota_of_all_groups_above_counts(machine: Machine) -> None:
    machine.groups("0::/user/job")
    machine.write("user/job/cpu.max", "800000 100000")
    machine.write("user/cpu.max", "300000 100000")
    machine.write("cpu.max", "400000 100000")
    assert machine.processors() == 3


def test_the_first_version_of_control_groups_is_read_too(machine: Machine) -> None:
    machine.groups("4:cpu,cpuacct:/job", "7:pids:/job")
    machine.write("cpu/job/cpu.cfs_quota_us", "-1")
    machine.write("cpu/job/cpu.cfs_period_us", "100000")
    assert machine.processors() == 16
    machine.write("cpu/job/cpu.cfs_quota_us", "250000")
    assert machine.processors() == 3
    machine.write("pids/job/pids.max", str(OTHER_THREADS + 12))
    machine.write("pids/job/pids.current", "10")
    assert machine.processors() == 2


def test_a_limit_on_processes_leaves_room_for_other_threads_and_one_thread_always_runs(machine: Machine) -> None:
    machine.write("pids.max", str(OTHER_THREADS + 9))
    machine.write("pids.current", "5")
    assert machine.processors() == 4
    machine.write("pids.max", "10")
    assert machine.processors() == 1


def test_without_proc_the_affinity_decides(machine: Machine, tmp_path: Path) -> None:
    assert usable_processors(tmp_path / "missing", machine.cgroups, 3) == 3
