"""A simulated power cut removes only data that were not forced to the disk."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak.content import EVENTS_PER_MEP
from tests.soak.power_cut import CutReport, cut_power
from tests.soak.recorder import ForcedRecorder
from tests.soak.records import Event
from tests.soak.test_verdict import RUN, record

SEEDS = range(40)


class Disk:
    """The output of a node, written like a node does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "output"
        self.output.mkdir(parents=True)
        self.fsync = ForcedRecorder(root).wrap(os.fsync)

    def append(self, name: str, data: bytes, *, force: bool = False) -> None:
        """Append to a file."""
        with (self.output / name).open("ab") as file:
            file.write(data)
            file.flush()
            if force:
                self.fsync(file.fileno())

    def force_names(self) -> None:
        """Force the directory to the disk."""
        descriptor = os.open(self.output, os.O_RDONLY)
        self.fsync(descriptor)
        os.close(descriptor)

    def cut(self, seed: int, collected: tuple[str, ...] = ()) -> CutReport:
        return cut_power(self.root, collected, random.Random(seed))

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.output.iterdir()}


MakeDisk = Callable[[int], Disk]


@pytest.fixture
def disk(tmp_path: Path) -> MakeDisk:
    return lambda number: Disk(tmp_path / str(number))


def test_bytes_that_were_forced_survive_each_cut_and_later_ones_may_be_lost(disk: MakeDisk) -> None:
    lengths = set()
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.mdf.part", b"s" * 100, force=True)
        each.force_names()
        each.append("x.mdf.part", b"u" * 100)
        each.cut(seed)
        left = each.files()["x.mdf.part"]
        assert left[:100] == b"s" * 100
        assert set(left[100:]) <= {ord("u"), 0}
        lengths.add(len(left))
    assert min(lengths) == 100
    assert len(lengths) > 5


def test_a_name_that_was_not_forced_may_be_lost_with_its_file(disk: MakeDisk) -> None:
    survived = []
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.mdf.part", b"s", force=True)
        each.cut(seed)
        survived.append("x.mdf.part" in each.files())
    assert len(set(survived)) == 2


def test_a_rename_that_was_not_forced_may_be_undone(disk: MakeDisk) -> None:
    outcomes = set()
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.mdf.part", b"s", force=True)
        each.force_names()
        (each.output / "x.mdf.part").rename(each.output / "x.mdf")
        report = each.cut(seed)
        [(name, data)] = each.files().items()
        assert data == b"s"
        assert report.unnamed == ({"x.mdf"} if name == "x.mdf.part" else set())
        outcomes.add(name)
    assert outcomes == {"x.mdf", "x.mdf.part"}


def test_a_rename_that_was_forced_is_never_undone(disk: MakeDisk) -> None:
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.mdf.part", b"s", force=True)
        each.force_names()
        (each.output / "x.mdf.part").rename(each.output / "x.mdf")
        each.force_names()
        each.cut(seed)
        assert each.files() == {"x.mdf": b"s"}


def test_a_file_that_was_removed_and_not_forced_may_be_there_again(disk: MakeDisk) -> None:
    outcomes = set()
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.journal", b"old", force=True)
        each.force_names()
        each.append("new", b"newer", force=True)
        (each.output / "new").rename(each.output / "x.journal")
        each.cut(seed)
        outcomes.add(each.files()["x.journal"])
    assert outcomes == {b"old", b"newer"}


def test_a_file_that_was_collected_does_not_come_back(disk: MakeDisk, tmp_path: Path) -> None:
    for seed in SEEDS:
        each = disk(seed)
        each.append("x.mdf.part", b"s", force=True)
        each.force_names()
        (each.output / "x.mdf.part").rename(each.output / "x.mdf")
        (each.output / "x.mdf").rename(tmp_path / f"collected{seed}")
        each.cut(seed, collected=("x.mdf",))
        assert each.files() == {}


def test_the_events_of_a_file_are_open_until_its_final_name_is_forced(disk: MakeDisk) -> None:
    each = disk(0)
    each.append("open.mdf.part", bytes(record(RUN, 1)), force=True)
    each.append("named.mdf", bytes(record(RUN, 2)), force=True)
    each.force_names()
    each.append("renamed.mdf", bytes(record(RUN, EVENTS_PER_MEP)), force=True)
    assert each.cut(0).open_events == {Event(RUN, 1), Event(RUN, EVENTS_PER_MEP)}


def test_a_directory_that_has_another_name_for_some_time_is_recorded_as_the_output(disk: MakeDisk) -> None:
    for seed in SEEDS:
        each = disk(seed)
        away = each.output.rename(each.root / "output.away")
        with (away / "x.mdf").open("wb") as file:
            file.write(b"s")
            file.flush()
            each.fsync(file.fileno())
        descriptor = os.open(away, os.O_RDONLY)
        each.fsync(descriptor)
        os.close(descriptor)
        away.rename(each.output)
        each.cut(seed)
        assert each.files() == {"x.mdf": b"s"}
