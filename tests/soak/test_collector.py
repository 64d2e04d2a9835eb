"""The collector detects a finished file that changes, disappears or comes back."""

from pathlib import Path

import pytest

from tests.soak.collector import Collector


@pytest.fixture
def output(tmp_path: Path) -> Path:
    output = tmp_path / "output"
    output.mkdir()
    (output / "x.mdf").write_bytes(b"first")
    return output


@pytest.fixture
def collector(tmp_path: Path, output: Path) -> Collector:
    return Collector(tmp_path / "collected", {"a": output}, seed=1)


def test_finished_files_are_moved_whole(collector: Collector, output: Path) -> None:
    (output / "y.mdf.part").write_bytes(b"open")
    collector.collect(1.0)
    assert [path.name for path in output.iterdir()] == ["y.mdf.part"]
    assert (collector.place("a") / "x.mdf").read_bytes() == b"first"
    assert collector.check() == []


def test_a_finished_file_that_is_written_again_is_a_problem(collector: Collector, output: Path) -> None:
    collector.collect(0.0)
    (output / "x.mdf").write_bytes(b"first and more")
    collector.collect(0.0)
    assert "x.mdf was written again" in collector.check()[0]


def test_bytes_that_change_in_place_are_a_problem(collector: Collector, output: Path) -> None:
    collector.collect(0.0)
    with (output / "x.mdf").open("r+b") as file:
        file.write(b"FIRST")
    assert "x.mdf has changed" in collector.check()[0]


def test_a_file_that_is_written_to_after_it_was_taken_is_a_problem(collector: Collector, output: Path) -> None:
    with (output / "x.mdf").open("ab") as still_open:
        collector.collect(1.0)
        still_open.write(b" and more")
    assert "x.mdf has changed" in collector.check()[0]


def test_a_finished_file_that_is_gone_is_a_problem(collector: Collector, output: Path) -> None:
    collector.collect(0.0)
    (output / "x.mdf").unlink()
    assert "x.mdf was finished and is gone" in collector.check()[0]


def test_a_final_name_that_a_power_cut_has_undone_is_no_problem(collector: Collector, output: Path) -> None:
    collector.collect(0.0)
    (output / "x.mdf").rename(output / "x.mdf.part")
    collector.forget("a", {"x.mdf"})
    assert collector.check() == []


def test_a_file_that_comes_back_as_it_was_taken_is_counted_and_not_kept_twice(
    collector: Collector, output: Path
) -> None:
    collector.collect(1.0)
    (output / "x.mdf").write_bytes(b"first")
    collector.collect(1.0)
    assert collector.taken_again == 1
    assert list(output.iterdir()) == []
    assert collector.check() == []


def test_a_file_that_comes_back_with_other_bytes_is_a_problem(collector: Collector, output: Path) -> None:
    collector.collect(1.0)
    (output / "x.mdf").write_bytes(b"other")
    collector.collect(1.0)
    assert "is there again with other bytes" in collector.check()[0]
