"""Handling of MEPs that were being computed when an earlier session of the node ended.

A MEP can end the node: a kernel crashes on it, or hangs until the watchdog acts. Such a MEP is not acknowledged, so its
feeders send it again to the next session, which would end in the same way. The journal records the MEPs that the back
end has. MEPs that it had when a session ended count as interrupted. An interrupted MEP is computed alone: if the node
ends again, this MEP was the cause. After MAX_INTERRUPTIONS it is not computed any more.

MEPs of datagrams are not sent again, so nothing has to be known about each of them. Only their ids must not be used
again, and these are recorded ahead, for many MEPs at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.protocol.transport.mep_ranges import as_ranges

MAX_INTERRUPTIONS = 2
"""Largest number of sessions that may end on a MEP. The first may have another cause; in the second it was alone."""

RESERVED_MEPS = 256
"""MEP ids of a run of datagrams that are recorded at once. Two records take 90 us on a busy machine; a session that
joins the run after this one leaves out up to this number of ids."""

log = get_logger("interruptions")


class ComputingLog(Protocol):
    """Records the MEPs of the back end for the next session (`hltnode.daemon.storage.journal.Journal`).

    Called from any thread; never raises.
    """

    def begin_batch(self, run: int, meps: Sequence[tuple[int, int]], /) -> None:
        """The back end gets these MEPs, inclusive ranges."""

    def end_batch(self, run: int, meps: Sequence[tuple[int, int]], /) -> None:
        """The back end has returned these MEPs."""

    def reserve(self, run: int, below: int, /) -> None:
        """No other session may use the ids of this run below `below` for other events."""

    def begun_below(self, run: int, /) -> int:
        """The end of the ids of a run that no other session uses, as recorded."""

    def interrupted(self, run: int, /) -> Mapping[int, int]:
        """MEP id -> number of sessions that ended while the back end had the MEP."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """MEPs of a batch that are computed together; `alone`: while the back end has no other MEP."""

    batch: Batch
    meps: tuple[MepRecord, ...]
    alone: bool = False


class Interruptions:
    """Divides batches by the earlier interruptions of their MEPs, and records the MEPs being computed.

    Args:
        comes_once: whether no session gets the MEPs of a run again.
    """

    def __init__(self, computing: ComputingLog, comes_once: Callable[[int], bool] = lambda _run: False) -> None:
        self._computing = computing
        self._comes_once = comes_once
        self._reserves = False
        """The MEPs of the run come once: their ids are reserved."""
        self._reserved_below = 0
        self._run: int | None = None
        self._interrupted: Mapping[int, int] = {}

    def divide(self, batch: Batch) -> tuple[list[Part], tuple[MepRecord, ...]]:
        """The parts of a batch in order of computation, and the MEPs that must not be computed.

        Those that a rule drops are in neither.
        """
        if batch.run != self._run:
            self._run = batch.run
            self._interrupted = self._computing.interrupted(batch.run)
            self._reserves = self._comes_once(batch.run)
            self._reserved_below = 0
        times = self._interrupted
        meps = tuple(mep for mep in batch.meps if mep.dropped_by is None)
        if not times:
            return [Part(batch, meps)] if meps else [], ()
        together = tuple(mep for mep in meps if mep.mep not in times)
        interrupted_meps = [mep for mep in meps if 0 < times.get(mep.mep, 0) < MAX_INTERRUPTIONS]
        left_out = tuple(mep for mep in meps if times.get(mep.mep, 0) >= MAX_INTERRUPTIONS)
        if interrupted_meps:
            log.warning("meps_computed_alone", run=batch.run, meps=as_ranges(mep.mep for mep in interrupted_meps))
        for mep in left_out:
            log.critical("mep_not_processed", run=batch.run, mep=mep.mep, events=mep.n_events, sessions=times[mep.mep])
        parts = [Part(batch, together)] if together else []
        return [*parts, *(Part(batch, (mep,), alone=True) for mep in interrupted_meps)], left_out

    def begin(self, part: Part) -> None:
        """Called before the back end gets a part."""
        run = part.batch.run
        if not self._reserves:
            self._computing.begin_batch(run, _ranges(part))
        elif (last := max(mep.mep for mep in part.meps)) >= self._reserved_below:
            self._computing.reserve(run, last + RESERVED_MEPS)
            # A record that could not be written is tried again with the next part.
            self._reserved_below = self._computing.begun_below(run)

    def end(self, part: Part) -> None:
        """Called after the back end returned a part."""
        if not self._reserves:
            self._computing.end_batch(part.batch.run, _ranges(part))


def _ranges(part: Part) -> Sequence[tuple[int, int]]:
    return as_ranges(mep.mep for mep in part.meps)
