"""Vocabulary of the event builder: its limits, stimuli that go in, effects that come out, the record of one MEP.

Stimuli and effects are named tuples: immutable, and quick to make and unpack, which counts at a million fragments
per second.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon._native import MepFragments
from hltnode.daemon.common.vocabulary import CloseReason, SlotState
from hltnode.protocol.errors import RejectReason


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderLimits:
    """Times in ns of the injected clock, the number of MEP ids that are kept apart, and policies.

    ``mep_timeout_ns``: how long a MEP stays open after its last fragment when no feeder is awaited that may send more.
    ``feeder_timeout_ns``: how long a connected feeder that delivers nothing is awaited. ``overtaken_ns``: how long a
    MEP stays open after every missing source has delivered a younger one, because a fragment may be on its way a second
    time. ``evict_ns``: the same as ``mep_timeout_ns`` when no place is left. ``error_on``: reasons whose MEPs go to the
    error stream.
    """

    mep_timeout_ns: int
    feeder_timeout_ns: int
    overtaken_ns: int
    evict_ns: int
    flush_deadline_ns: int
    closed_ring: int
    error_on: frozenset[CloseReason] = frozenset()


class MepRecord:
    """One MEP in a slot, of a run with ``n_sources`` sources.

    ``arrived`` says which sources have delivered and where their fragments lie; compiled code adds to it while the MEP
    is open. Times are in ns of the injected clock, ``first_ns`` (of the first fragment) and ``closed_ns`` in ns of the
    clock of who carries out the CloseMep. ``error_stream`` says that the policy of its close reason takes all its
    events to the error stream. ``sent_again``: opened after a younger MEP was complete, or after one that is not older
    found no place, so feeders send it out of the order of ids. ``ahead``: opened before an older one.
    """

    __slots__ = (
        "_masked",
        "_sources",
        "ahead",
        "arrived",
        "close_reason",
        "closed_ns",
        "error_stream",
        "first_event",
        "first_ns",
        "mep",
        "missing",
        "n_events",
        "opened_ns",
        "overtaken_ns",
        "sent_again",
        "slot",
    )

    def __init__(
        self,
        *,
        mep: int,
        slot: int,
        first_event: int,
        n_events: int,
        opened_ns: int,
        n_sources: int,
        sent_again: bool = False,
    ) -> None:
        self.mep = mep
        self.slot = slot
        self.first_event = first_event
        self.n_events = n_events
        self.opened_ns = opened_ns
        self.arrived = MepFragments(n_sources)
        self.arrived.last_ns = opened_ns
        self.first_ns = opened_ns
        self.closed_ns = 0
        self.sent_again = sent_again
        self.ahead = False
        self._masked = self._sources = 0
        self.close_reason: CloseReason | None = None
        self.error_stream = False
        self.overtaken_ns: int | None = None
        self.missing: tuple[int, ...] = ()

    @property
    def n_fragments(self) -> int:
        """Fragments that have come."""
        return len(self.arrived)

    @property
    def last_ns(self) -> int:
        """When the last of them has come."""
        return self.arrived.last_ns

    @property
    def sources(self) -> int:
        """Bit mask over the sources of the run: those that have come."""
        n = len(self.arrived)
        if n != self._masked:
            self._masked, self._sources = n, self.arrived.sources
        return self._sources

    @property
    def fragments(self) -> NDArray[np.int64]:
        """Source id, offset in the slot and size in bytes of each, in the order of arrival: a view i64[n, 3]."""
        return self.arrived.rows

    def __repr__(self) -> str:
        end = "open" if self.close_reason is None else str(self.close_reason)
        return (
            f"MepRecord(mep={self.mep}, slot={self.slot}, first_event={self.first_event}, n_events={self.n_events}, "
            f"opened_ns={self.opened_ns}, fragments={self.n_fragments}, missing={len(self.missing)}, {end})"
        )


@dataclass(slots=True)
class BatchTimes:
    """When a batch went from one stage to the next, in monotonic ns: set by who hands it on."""

    sealed_ns: int = 0
    begun_ns: int = 0
    computed_ns: int = 0
    gathered_ns: int = 0
    written_ns: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """The MEPs of a sealed slot, of one run; below ``floor`` every MEP was acknowledged when the slot was sealed."""

    slot: int
    run: int
    meps: tuple[MepRecord, ...]
    floor: int = 0
    times: BatchTimes = field(default_factory=BatchTimes, compare=False, repr=False)

    @property
    def n_events(self) -> int:
        """Events of all its MEPs."""
        return sum(mep.n_events for mep in self.meps)

    def __repr__(self) -> str:
        ids = [mep.mep for mep in self.meps]
        return f"Batch(slot={self.slot}, run={self.run}, meps={ids}, floor={self.floor})"


class StartRun(NamedTuple):
    """A run begins: its number, the readout sources of every MEP, the first MEP id, the largest events per MEP.

    ``done`` are (first, last) ranges of MEP ids that an earlier session of the node has finished, ``revoked`` those
    that are assigned to another node.
    """

    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int
    done: tuple[tuple[int, int], ...] = ()
    revoked: tuple[tuple[int, int], ...] = ()


class AwaitedFeeder(NamedTuple):
    """A connected feeder: the sources that it sends, and the last MEP of its run, None before it has announced it."""

    sources: tuple[int, ...]
    last_mep: int | None


class AwaitFeeders(NamedTuple):
    """These are the connected feeders from now on; nothing is awaited from sources that none of them sends."""

    feeders: tuple[AwaitedFeeder, ...]


class FragmentArrived(NamedTuple):
    """A fragment whose frame and MFP are sound; size of the MFP in bytes.

    The receiver takes the two steps by `EventBuilder.place_for` and `EventBuilder.fragment_copied`, because it learns
    only while it copies whether a frame is sound.
    """

    run: int
    source: int
    mep: int
    size: int
    first_event: int
    n_events: int


class FrameDamaged(NamedTuple):
    """A frame whose header could be read and whose content is damaged; ``resend``: it may arrive whole next time."""

    reason: RejectReason
    source: int
    mep: int
    resend: bool


class Tick(NamedTuple):
    """Time has passed: check the deadlines."""


class AcknowledgedBelow(NamedTuple):
    """The feeders have acknowledgements for all MEPs below this id, from this node or another one."""

    below: int


class SlotAdvanced(NamedTuple):
    """The pipeline reports how far it is with a slot: RUN when its batch was handed to the back end, then DONE."""

    slot: int
    state: SlotState


class SlotFreed(NamedTuple):
    """What is kept of the batch of a slot is gathered: the slot can fill again."""

    slot: int


class MepsAcknowledged(NamedTuple):
    """MEPs that were in slots, by id, are about to be acknowledged, or need not be: they were revoked."""

    meps: tuple[int, ...]


class Drain(NamedTuple):
    """Grant no more credits; what was granted may still come."""


class Resume(NamedTuple):
    """Grant credits again after a Drain that nothing has followed."""


class SetTimes(NamedTuple):
    """Other deadlines (ns): for MEPs at once, for slots that are opened from now on."""

    mep_timeout_ns: int
    flush_deadline_ns: int


class EndRun(NamedTuple):
    """Open no MEP any more until a run starts: what still comes is refused and sent again to the next session."""


class CloseOpen(NamedTuple):
    """Close every open MEP now with end_of_run and seal every slot that holds something."""


class Abandon(NamedTuple):
    """Drop every open MEP, counted as abandoned: the feeders keep them, since they are not acknowledged."""


class RevokeMeps(NamedTuple):
    """These MEPs are assigned to another node: those that are open are dropped, and what still comes is refused.

    ``meps`` are (first, last) ranges.
    """

    meps: tuple[tuple[int, int], ...]


class ReturnMeps(NamedTuple):
    """These MEPs, (first, last) ranges, were assigned to another node and are assigned to this one again."""

    meps: tuple[tuple[int, int], ...]


Stimulus = (
    StartRun
    | AwaitFeeders
    | FragmentArrived
    | FrameDamaged
    | Tick
    | AcknowledgedBelow
    | SlotAdvanced
    | SlotFreed
    | MepsAcknowledged
    | Drain
    | Resume
    | SetTimes
    | EndRun
    | CloseOpen
    | Abandon
    | RevokeMeps
    | ReturnMeps
)


class Place(NamedTuple):
    """Copy the MFP to this offset (bytes) of this slot, before the effects that follow are carried out.

    The rest is for `EventBuilder.fragment_copied`: size in bytes and source of the MFP, and the MEP, which the fragment
    opens if nothing of it is there yet.
    """

    slot: int
    offset: int
    size: int
    source: int
    record: MepRecord


class Reject(NamedTuple):
    """The fragment is not used; ``run`` is that of the fragment, which may be another than the current one.

    ``resend`` says whether sending it again can help.
    """

    run: int
    reason: RejectReason
    source: int
    mep: int
    resend: bool


class CloseMep(NamedTuple):
    """A MEP is closed; the record says why and which sources were missing."""

    record: MepRecord


class SealSlot(NamedTuple):
    """Hand this batch to the pipeline."""

    batch: Batch


class GrantCredit(NamedTuple):
    """The feeders of the run may have this number of MEPs unacknowledged at this node."""

    run: int
    meps: int


Effect = Place | Reject | CloseMep | SealSlot | GrantCredit
