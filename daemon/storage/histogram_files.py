"""The histograms of each run as a ROOT file beside the events, written in a thread of its own.

During a run, `<prefix>_<run>_histograms.root.part` is replaced once per period. At the end of the run the file gets a
final name that was never used before, and never changes again. After a kill, the next session gives the last .part file
its final name. Errors are counted and logged; they never delay event data.
"""

import math
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.threads import end_thread
from hltnode.daemon.common.vocabulary import HistogramFileOutcome
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.storage.file_bytes import write_all
from hltnode.daemon.storage.output_directory import OutputDirectory, OutputError
from hltnode.daemon.storage.root_file import load_library, root_bytes
from hltnode.processing.framework.histograms import HistogramContent

SUFFIX, PART_SUFFIX = "_histograms.root", "_histograms.root.part"
LOG_INTERVAL_NS = 60_000_000_000
# uproot is loaded this long after the start: on a busy machine its import takes seconds, too long for start or stop.
LIBRARY_SECONDS = 5.0

log = get_logger("histogram_files")


class CountsOfRuns(Protocol):
    """Histogram contents by run (`hltnode.daemon.compute.histogram_tally.HistogramTally`); called from any thread."""

    @property
    def runs(self) -> tuple[int, ...]: ...
    def of_run(self, run: int, /) -> list[HistogramContent] | None: ...


class HistogramFiles:
    """Writes the files from `start` to `stop`.

    Args:
        prefix: start of every file name; names the node and its session.
        node: name of the node; earlier sessions have the same.
        period_s: seconds between two .part files of a run; 0: only one file, at the end of the run.
        about: returns the description of the node in a run, stored in its file.
    """

    def __init__(
        self,
        directory: Path,
        node: str,
        prefix: str,
        counts: CountsOfRuns,
        counters: WriterCounters,
        period_s: float,
        about: Callable[[int], dict[str, Any]],
        clock_ns: Callable[[], int],
    ) -> None:
        self._directory = OutputDirectory(directory)
        self._node = node
        self._prefix = prefix
        self._counts = counts
        self._counters = counters
        self._period_s = period_s
        self._about = about
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._in_part: dict[int, int] = {}
        """Number of entries in the .part file of each run, NaN entries included."""
        self._finished: dict[int, list[HistogramContent]] = {}
        """Summed content of the finished files of each run."""
        self._is_loaded = False
        self._queue: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hltnode-histograms", daemon=True)

    def load(self) -> None:
        """Load the library now. Its import delays all threads, so a node under a deadline calls it before `start`."""
        self._contained(load_library)
        self._is_loaded = True

    def start(self) -> None:
        """Start the thread, which first finishes the files of earlier sessions."""
        self._thread.start()

    def finish(self, run: int) -> None:
        """Write the file of a run whose events are all counted (or those of one part of it). Any thread."""
        self._queue.put(run)

    def stop(self, timeout_s: float) -> bool:
        """Finish the files of all runs and end the thread; False on timeout."""
        return end_thread(self._thread, self._queue, timeout_s)

    def _run(self) -> None:
        self._contained(self._take_over)
        while True:
            period_s = self._period_s or math.inf
            wait_s = period_s if self._is_loaded else min(period_s, LIBRARY_SECONDS)
            try:
                run = self._queue.get(timeout=None if wait_s == math.inf else wait_s)
            except queue.Empty:
                if not self._is_loaded:
                    self.load()
                    continue
                for going_on in self._counts.runs:
                    self._contained(self._write_part, going_on)
                continue
            for ended in self._counts.runs if run is None else (run,):
                self._contained(self._finish, ended)
            if run is None:
                self._directory.close()
                return

    def _contained(self, action: Callable[..., object], *arguments: object) -> None:
        """Run `action`; count and log its errors, because histograms must not stop a node."""
        try:
            action(*arguments)
        except Exception as error:
            self._counters.histogram_files[HistogramFileOutcome.FAILED] += 1
            if (left_out := self._limit.due("failed")) is not None:
                log.error("histograms_not_written", error=str(error), left_out=left_out, exc_info=True)

    def _take_over(self) -> None:
        """Give final names to the .part files of earlier sessions of the node."""
        for name in self._directory.names():
            if name.startswith(f"{self._node}_") and name.endswith(PART_SUFFIX) and not name.startswith(self._prefix):
                final = self._free_name(name.removesuffix(PART_SUFFIX))
                self._directory.rename(name, final)
                log.warning("histograms_taken_over", path=final)

    def _free_name(self, stem: str) -> str:
        names = set(self._directory.names())
        candidates = (f"{stem}_histograms{f'_{n}' if n > 1 else ''}.root" for n in range(1, len(names) + 2))
        return next(name for name in candidates if name not in names)

    def _stem(self, run: int) -> str:
        return f"{self._prefix}_{run:010d}"

    def _write_part(self, run: int) -> None:
        _, unwritten = self._contents(run)
        if (n := _entries(unwritten)) == self._in_part.get(run, 0):
            return
        self._write(run, unwritten)
        self._in_part[run] = n

    def _contents(self, run: int) -> tuple[list[HistogramContent], list[HistogramContent]]:
        """The content of a run, and the part of it that is in no finished file."""
        contents = self._counts.of_run(run) or []
        finished = self._finished.get(run)
        if finished is None:
            return contents, contents
        pairs = zip(contents, finished, strict=True)
        return contents, [HistogramContent(now.shape, now.counts - before.counts) for now, before in pairs]

    def _write(self, run: int, contents: Sequence[HistogramContent]) -> None:
        """Replace the .part file of a run."""
        data = root_bytes(contents, {**self._about(run), "run": run})
        new = self._stem(run) + SUFFIX + ".new"
        descriptor = self._directory.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(descriptor, data)
        except OSError as error:
            raise OutputError(self._directory.path / new, error) from error
        finally:
            os.close(descriptor)
        self._directory.rename(new, self._stem(run) + PART_SUFFIX)
        self._counters.histogram_files[HistogramFileOutcome.WRITTEN] += 1

    def _finish(self, run: int) -> None:
        contents, unwritten = self._contents(run)
        if not _entries(unwritten):
            return
        self._write(run, unwritten)
        name = self._free_name(self._stem(run))
        self._directory.rename(self._stem(run) + PART_SUFFIX, name)
        self._directory.sync()
        self._finished[run] = contents
        self._in_part.pop(run, None)
        for forgotten in self._finished.keys() - set(self._counts.runs):
            del self._finished[forgotten]
        log.info("histograms_written", path=name, run=run)


def _entries(contents: Sequence[HistogramContent]) -> int:
    return sum(int(content.counts.sum()) for content in contents)
