"""The output thread: writes the kept events of gathered batches, then passes them on.

While the disk fails, the batch waits. The output queue and the slots fill up, credits run out and the feeders wait: no
event is lost.
"""

import queue
import threading
import time
from collections.abc import Callable, Collection
from functools import partial

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.output.requests import (
    Confirmed,
    FinishFiles,
    InputKnown,
    KeepTck,
    Request,
    RevokeEvents,
    Supervised,
)
from hltnode.daemon.storage.event_store import EventStore
from hltnode.daemon.storage.output_directory import OutputError
from hltnode.protocol.transport.feeder_messages import Revoked
from hltnode.protocol.transport.mep_ranges import as_ranges

# A full disk seldom gets room within a second; more frequent retries would only count more write errors.
RETRY_SECONDS = 1.0
# Without batches nothing else notices that the journal, the lock or the directory was replaced. Three calls of stat.
CHECK_SECONDS = 5.0

log = get_logger("output_stage")


class OutputStage:
    """Writes the kept events of batches and executes requests.

    Args:
        done: called in the output thread with each written batch; its decisions may be sent and its MEPs acknowledged.
        events_revoked: called in the output thread with the receipt of an executed request.
        crashed: called in the output thread with an unexpected exception.
        streams: the series of events that go to files.
    """

    def __init__(
        self,
        store: EventStore,
        done: Callable[[GatheredBatch], None],
        events_revoked: Callable[[tuple[bytes, Revoked]], None],
        crashed: Callable[[BaseException], None],
        *,
        streams: Collection[EventStream] = tuple(EventStream),
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._streams = frozenset(streams)
        self._store = store
        self._done = done
        self._events_revoked = events_revoked
        self._revoked: set[tuple[int, int]] = set()
        self._crashed = crashed
        self._clock_ns = clock_ns
        self._queue: queue.SimpleQueue[GatheredBatch | Request | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hltnode-output", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, item: GatheredBatch | Request) -> None:
        """Queue a batch or a request; any thread."""
        self._queue.put(item)

    def stop(self, timeout_s: float) -> bool:
        """Write all queued items, finish the files and end the thread; False if some could not be written."""
        if not self._thread.is_alive():
            return True
        self._queue.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._stopping.set()
            self._thread.join(timeout_s)
        return not self._stopping.is_set()

    def _run(self) -> None:
        try:
            while (item := self._next()) is not None:
                self._take(item)
            self._retry(self._store.close)
            left = self._store.abandon()
            if left:
                log.critical("events_not_written", bytes=left)
        except BaseException as error:
            self._crashed(error)
            raise

    def _next(self) -> GatheredBatch | Request | None:
        """The next item; the files of the node are checked while there is none."""
        while True:
            try:
                return self._queue.get(timeout=CHECK_SECONDS)
            except queue.Empty:
                self._store.check_files()

    def _take(self, item: GatheredBatch | Request) -> None:
        match item:
            case FinishFiles():
                self._finish_run(item)
            case KeepTck():
                self._retry(partial(self._store.keep_tck, item.document))
            case Supervised():
                self._store.supervise(item.run)
            case InputKnown():
                self._store.name_input(item.run, item.name)
            case Confirmed():
                self._retry(partial(self._store.confirm, item.run, item.below))
            case RevokeEvents():
                self._revoke_events(item)
            case _:
                self._write(item)

    def _write(self, gathered: GatheredBatch) -> None:
        batch = gathered.computed.batch
        meps = [mep.mep for mep in batch.meps]
        revoked = self._revoked.intersection((batch.run, mep) for mep in meps)
        if revoked:
            self._revoked -= revoked
            gone = {mep for _, mep in revoked}
            meps = [mep for mep in meps if mep not in gone]
            gathered = gathered.without(gone)
        for stream, blocks in gathered.events.items():
            for block in blocks if stream in self._streams else ():
                self._store.append(stream, block)
        self._store.journal.content.acknowledged_below(batch.run, batch.floor)
        if self._retry(partial(self._store.commit, batch.run, as_ranges(meps))):
            batch.times.written_ns = self._clock_ns()
            self._done(gathered)
            self._retry(self._store.finish_files)

    def _finish_run(self, item: FinishFiles) -> None:
        finish = self._store.end_run if item.run_ended else self._store.leave_run
        self._retry(partial(finish, item.summary["run"]))
        self._retry(partial(self._store.write_summary, item.summary))

    def _revoke_events(self, request: RevokeEvents) -> None:
        """Remove the events of revoked MEPs from the files, and skip revoked MEPs that are not written yet.

        A MEP may have been written after the request was made, but before its acknowledgement. That MEP is in the files
        and must not be skipped if it is sent to this node again.
        """
        written = self._store.journal.content.finished_of(request.run, request.in_node)
        self._revoked |= {(request.run, mep) for mep in request.in_node - written}
        if self._retry(partial(self._store.revoke, request.run, request.meps)):
            self._events_revoked(request.receipt)

    def _retry(self, write: Callable[[], object]) -> bool:
        """Retry until `write` succeeds; False if the node stops first."""
        while True:
            try:
                write()
            except OutputError:
                if self._stopping.wait(RETRY_SECONDS):
                    return False
            else:
                return True
