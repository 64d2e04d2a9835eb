"""Histograms in ROOT files: read by hist and uproot, times of writing, and earlier files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import uproot

from hltnode.daemon.common.vocabulary import HistogramFileOutcome
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage import histogram_files
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.daemon.storage.root_file import read_root, root_bytes
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape

SHAPE = HistogramShape(
    name="ks_mass", bins=4, low=490.0, high=510.0, unit="MeV", description="two pions", line="Hlt1Ks"
)
COUNTS = np.array([7, 1, 5, 6, 2, 9, 3], np.uint64)
"""Below, four bins, above, NaN."""


def content(times: int = 1) -> HistogramContent:
    return HistogramContent(SHAPE, COUNTS * np.uint64(times))


def test_hist_and_uproot_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "h.root"
    path.write_bytes(root_bytes([content()], {"run": 12}))
    with uproot.open(path) as file:
        histogram = file["ks_mass"].to_hist()
        title = file["ks_mass"].title
    assert histogram.values(flow=True).tolist() == COUNTS[:-1].tolist()
    assert histogram.axes[0].edges.tolist() == [490.0, 495.0, 500.0, 505.0, 510.0]
    assert (histogram.axes[0].label, title) == ("ks_mass [MeV]", "two pions")
    (again,) = read_root(path)
    assert (again.shape, again.counts.tolist()) == (SHAPE, COUNTS.tolist())


def test_a_foreign_file_is_reported_by_name(tmp_path: Path) -> None:
    for name, data in (("text.root", b"not ROOT, but text that is long enough to be read as a header" * 9),):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=f"{name}: cannot read histograms written by hltnode"):
            read_root(tmp_path / name)
    with pytest.raises(ValueError, match=r"none\.root: cannot read histograms"):
        read_root(tmp_path / "none.root")


class Counts:
    """The counts of runs, as a test sets them."""

    def __init__(self) -> None:
        self.contents: dict[int, HistogramContent] = {}

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(self.contents)

    def of_run(self, run: int) -> list[HistogramContent] | None:
        return [self.contents[run]] if run in self.contents else None


class Files:
    def __init__(self, folder: Path, period_s: float = 0.0, session: str = "s2") -> None:
        self.folder = folder
        self.counts = Counts()
        self.counters = WriterCounters()
        self.files = HistogramFiles(
            folder, "n", f"n_{session}", self.counts, self.counters, period_s, lambda _run: {}, time.monotonic_ns
        )

    def entries(self) -> dict[str, int]:
        return {path.name: read_root(path)[0].entries for path in sorted(self.folder.iterdir())}

    def stop(self) -> None:
        assert self.files.stop(20.0)


ENTRIES = int(COUNTS[:-1].sum())


def test_each_run_has_a_file_at_its_end_and_later_events_another_one(tmp_path: Path) -> None:
    node = Files(tmp_path)
    node.files.start()
    node.counts.contents = {7: content(), 8: content(2)}
    node.files.finish(7)
    while not list(tmp_path.glob("*.root")):
        time.sleep(0.01)
    node.counts.contents[7] = content(4)
    node.stop()
    assert node.entries() == {
        "n_s2_0000000007_histograms.root": ENTRIES,
        "n_s2_0000000007_histograms_2.root": 3 * ENTRIES,
        "n_s2_0000000008_histograms.root": 2 * ENTRIES,
    }
    assert node.counters.histogram_files == {HistogramFileOutcome.WRITTEN: 3, HistogramFileOutcome.FAILED: 0}


def test_the_file_of_an_active_run_is_replaced_and_a_later_session_finishes_it(tmp_path: Path) -> None:
    node = Files(tmp_path, period_s=0.01, session="s1")
    node.counts.contents = {7: content()}
    node.files.start()
    part = tmp_path / "n_s1_0000000007_histograms.root.part"
    while not part.exists():
        time.sleep(0.01)
    assert [path.name for path in tmp_path.iterdir()] == [part.name]
    node.counts.contents = {}  # as if it were killed: nothing gets a final name
    node.stop()
    later = Files(tmp_path)
    later.files.start()
    later.stop()
    assert later.entries() == {"n_s1_0000000007_histograms.root": ENTRIES}


def test_the_library_is_loaded_before_there_is_anything_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = threading.Event()
    monkeypatch.setattr(histogram_files, "LIBRARY_SECONDS", 0.01)
    monkeypatch.setattr(histogram_files, "load_library", loaded.set)
    node = Files(tmp_path)
    node.files.start()
    assert loaded.wait(30.0)
    node.counts.contents = {7: content()}
    node.stop()
    assert node.entries() == {"n_s2_0000000007_histograms.root": ENTRIES}


def test_a_library_that_was_loaded_before_the_start_is_not_loaded_during_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its import would hold the interpreter for a second."""
    loads: list[str] = []
    monkeypatch.setattr(histogram_files, "LIBRARY_SECONDS", 0.01)
    monkeypatch.setattr(histogram_files, "load_library", lambda: loads.append(threading.current_thread().name))
    node = Files(tmp_path)
    node.files.load()
    node.files.start()
    time.sleep(0.1)
    node.stop()
    assert loads == [threading.current_thread().name]


def test_a_disk_that_refuses_is_counted_and_ends_nothing(tmp_path: Path) -> None:
    node = Files(tmp_path / "out")
    node.counts.contents = {7: content()}
    (tmp_path / "out" / "n_s2_0000000007_histograms.root.new").mkdir()
    node.files.start()
    node.files.finish(7)
    while not node.counters.histogram_files[HistogramFileOutcome.FAILED]:
        time.sleep(0.01)
    (tmp_path / "out" / "n_s2_0000000007_histograms.root.new").rmdir()
    node.stop()
    assert node.entries() == {"n_s2_0000000007_histograms.root": ENTRIES}
