"""A writing process is killed repeatedly while another process collects the finished files."""

import multiprocessing
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.daemon.storage.sessions import JOURNAL, doubled, events_of, kept, names
from tests.daemon.storage.writer_process import write_meps

pytestmark = pytest.mark.process

MEPS = 2000
KILLS = 12


class Collector(threading.Thread):
    """Collects finished files as soon as it sees them."""

    def __init__(self, directory: Path, taken: Path) -> None:
        super().__init__()
        self._directory = directory
        self._taken = taken
        self.stopping = threading.Event()
        self.twice: list[str] = []

    def run(self) -> None:
        while not self.stopping.wait(0.001):
            self.take()

    def take(self) -> None:
        for path in self._directory.glob("*.mdf"):
            if (self._taken / path.name).exists():
                self.twice.append(path.name)
            path.rename(self._taken / path.name)


@pytest.mark.parametrize("supervised", [False, True], ids=["", "supervised"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_with_collected_files_and_killed_writers_each_event_exists_once(
    tmp_path: Path, seed: int, supervised: bool
) -> None:
    directory, taken = tmp_path / "out", tmp_path / "taken"
    directory.mkdir()
    taken.mkdir()
    rng = random.Random(seed)
    # Forked from a process that has imported everything, so that a start takes milliseconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.daemon.storage.writer_process"])
    collector = Collector(directory, taken)
    collector.start()
    kills = session = 0
    try:
        while True:
            session += 1
            ready = context.Event()
            writer = context.Process(
                target=write_meps, args=(directory, f"s{session}", MEPS, ready), kwargs={"supervised": supervised}
            )
            writer.start()
            if rng.random() < 0.8:
                # Else it is killed while it starts, recovery included.
                ready.wait(20)
            time.sleep(rng.uniform(0.0, 0.1))
            if session <= KILLS:
                writer.kill()
            writer.join()
            if writer.exitcode == 0:
                break
            assert writer.exitcode == -signal.SIGKILL
            kills += 1
    finally:
        collector.stopping.set()
        collector.join()
    collector.take()
    print(f"seed {seed}: {kills} kills, {len(names(taken))} files collected")
    assert kills >= 5
    assert collector.twice == []
    events = kept(taken)
    assert doubled(events) == []
    assert events == events_of(range(MEPS))
    assert [name for name in names(directory) if name != "quarantine"] == [JOURNAL]
