"""Vocabulary of the event builder: its limits, its stimuli (input), its effects (output), and the record of one MEP.

Stimuli and effects are named tuples. These are immutable and fast to create and unpack, which matters at a million
fragments per second.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon._native import MepFragments
from hltnode.daemon.common.vocabulary import CloseReason, HeadRoomRule, SlotState
from hltnode.protocol.errors import RejectReason


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderLimits:
    """Times in ns of the injected clock, the number of MEP ids in the ring of closed MEPs, and policies.

    ``mep_timeout_ns``: time that a MEP stays open after its last fragment if no feeder is awaited.
    ``feeder_timeout_ns``: time that a connected feeder is awaited that delivers nothing.
    ``overtaken_ns``: time that a MEP stays open after every missing source has sent a younger one. A fragment may be on
    its way a second time.
    ``evict_ns``: the same as ``mep_timeout_ns`` when no place is left.
    ``error_on``: close reasons whose MEPs go to the error stream.
    ``head_room``: the rule for MEPs of slots that are sealed while the buffers are full. ``thin_to_one_of``: the rule
    thin computes one of this number of such MEPs.
    ``seals_for_idle``: MEPs that are closed wait for no others while the back end has no batch. The free places of
    their slot, for which feeders may have credits, come back with the slot: only for input without credits.
    """

    mep_timeout_ns: int
    feeder_timeout_ns: int
    overtaken_ns: int
    evict_ns: int
    flush_deadline_ns: int
    closed_ring: int
    error_on: frozenset[CloseReason] = frozenset()
    head_room: HeadRoomRule = HeadRoomRule.KEEP
    thin_to_one_of: int = 2
    seals_for_idle: bool = False


class MepRecord:
    """One MEP in a slot, of a run with ``n_sources`` sources. Times are in ns of the injected clock.

    ``arrived``: the sources that have delivered, and the places of their fragments. Compiled code adds to it while the
    MEP is open.
    ``first_ns``, ``closed_ns``: times of the first fragment and of the close, by the clock of the effect executor.
    ``error_stream``: the policy of the close reason sends all events of the MEP to the error stream.
    ``sent_again``: feeders send this MEP out of the order of ids. It was opened after a younger MEP was complete, or
    after this MEP or a younger one found no place.
    ``ahead``: opened before an older MEP, by more than the time for which fragments may overtake each other.
    ``dropped_by``: the rule that drops the MEP, because the buffers were full when its slot was sealed.
    """

    __slots__ = (
        "_masked",
        "_sources",
        "ahead",
        "arrived",
        "close_reason",
        "closed_ns",
        "dropped_by",
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
        self.dropped_by: HeadRoomRule | None = None
        self.overtaken_ns: int | None = None
        self.missing: tuple[int, ...] = ()

    @property
    def n_fragments(self) -> int:
        """Number of fragments that have arrived."""
        return len(self.arrived)

    @property
    def last_ns(self) -> int:
        """Arrival time of the last fragment."""
        return self.arrived.last_ns

    @property
    def sources(self) -> int:
        """Bit mask of the sources whose fragments have arrived."""
        n = len(self.arrived)
        if n != self._masked:
            self._masked, self._sources = n, self.arrived.sources
        return self._sources

    @property
    def fragments(self) -> NDArray[np.int64]:
        """Source id, offset in the slot and size in bytes of each fragment, in order of arrival: a view i64[n, 3]."""
        return self.arrived.rows

    def __repr__(self) -> str:
        end = "open" if self.close_reason is None else str(self.close_reason)
        return (
            f"MepRecord(mep={self.mep}, slot={self.slot}, first_event={self.first_event}, n_events={self.n_events}, "
            f"opened_ns={self.opened_ns}, fragments={self.n_fragments}, missing={len(self.missing)}, {end})"
        )


@dataclass(slots=True)
class BatchTimes:
    """Times at which a batch left each stage, in monotonic ns. Each stage sets its own time.

    ``published_ns``: 0 until its decisions are sent, also if only some of them were sent before files and journal.
    """

    sealed_ns: int = 0
    begun_ns: int = 0
    computed_ns: int = 0
    gathered_ns: int = 0
    written_ns: int = 0
    published_ns: int = 0


class DirectTimes(NamedTuple):
    """When a MEP of datagrams was joined, computed and its decision sent, before it was built; monotonic ns."""

    joined_ns: int
    computed_ns: int
    sent_ns: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The MEPs of a sealed slot, all of one run. All MEPs below ``floor`` were acknowledged when it was sealed."""

    slot: int
    run: int
    meps: tuple[MepRecord, ...]
    floor: int = 0
    times: BatchTimes = field(default_factory=BatchTimes, compare=False, repr=False)
    direct: DirectTimes | None = None
    """Its only MEP was decided directly, so a direct workspace has its results."""

    @property
    def n_events(self) -> int:
        """Number of events of all MEPs."""
        return sum(mep.n_events for mep in self.meps)

    def __repr__(self) -> str:
        ids = [mep.mep for mep in self.meps]
        return f"Batch(slot={self.slot}, run={self.run}, meps={ids}, floor={self.floor})"


class StartRun(NamedTuple):
    """Start a run: its number, the readout sources of each MEP, the first MEP id, the most events of a MEP.

    ``done``: (first, last) ranges of MEP ids that an earlier session of the node has finished.
    ``revoked``: ranges of MEP ids that are assigned to another node.
    """

    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int
    done: tuple[tuple[int, int], ...] = ()
    revoked: tuple[tuple[int, int], ...] = ()


class AwaitedFeeder(NamedTuple):
    """A connected feeder: its sources, and the last MEP that it has announced, None before the announcement."""

    sources: tuple[int, ...]
    last_mep: int | None


class AwaitFeeders(NamedTuple):
    """Set the connected feeders. Sources of none of them are not awaited."""

    feeders: tuple[AwaitedFeeder, ...]


class FragmentArrived(NamedTuple):
    """A fragment with a valid frame and a valid MFP; size of the MFP in bytes.

    The receiver calls `EventBuilder.place_for` and `EventBuilder.fragment_copied` instead of sending this stimulus: it
    validates a frame while it copies it.
    """

    run: int
    source: int
    mep: int
    size: int
    first_event: int
    n_events: int


class FrameDamaged(NamedTuple):
    """A frame with a readable header and damaged content. ``resend``: the fragment is needed and must be sent again."""

    reason: RejectReason
    source: int
    mep: int
    resend: bool


class Tick(NamedTuple):
    """Check the deadlines."""


class AcknowledgedBelow(NamedTuple):
    """The feeders have an acknowledgement for each MEP below this id, from this node or from another one."""

    below: int


class SlotAdvanced(NamedTuple):
    """The pipeline reports a new state of a slot: RUN when the back end has the batch, later DONE."""

    slot: int
    state: SlotState


class SlotFreed(NamedTuple):
    """The kept data of a batch were copied out of its slot: the slot can fill again."""

    slot: int


class MepsAcknowledged(NamedTuple):
    """These built MEPs, by id, are about to be acknowledged; a revoked one among them needs no acknowledgement."""

    meps: tuple[int, ...]


class Drain(NamedTuple):
    """Grant no more credits. MEPs for granted credits may still come."""


class Resume(NamedTuple):
    """Grant credits again, after a Drain without an EndRun."""


class SetTimes(NamedTuple):
    """Set other deadlines (ns). They hold for open MEPs at once, and for slots from their next first MEP."""

    mep_timeout_ns: int
    flush_deadline_ns: int


class EndRun(NamedTuple):
    """Open no MEP until a run starts. Fragments of new MEPs are refused, and sent again to the next session."""


class CloseOpen(NamedTuple):
    """Close every open MEP with the reason end_of_run, and seal every slot that holds MEPs."""


class Abandon(NamedTuple):
    """Drop every open MEP and count it as abandoned. Feeders keep the MEPs, which are not acknowledged."""


class RevokeMeps(NamedTuple):
    """Another node gets these MEPs: drop the open ones, and refuse further fragments.

    ``meps`` are (first, last) ranges.
    """

    meps: tuple[tuple[int, int], ...]


class ReturnMeps(NamedTuple):
    """Accept these revoked MEPs, (first, last) ranges, again: they are assigned to this node again."""

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
    """Copy the MFP to this offset (bytes) of this slot, before the next effects are carried out.

    `EventBuilder.fragment_copied` reads the other fields: size in bytes and source of the MFP, and the MEP. The first
    fragment opens the MEP.
    """

    slot: int
    offset: int
    size: int
    source: int
    record: MepRecord


class Reject(NamedTuple):
    """Refuse a fragment. ``run`` is the run of the fragment, which may differ from the current one.

    ``resend``: sending the fragment again can help.
    """

    run: int
    reason: RejectReason
    source: int
    mep: int
    resend: bool


class CloseMep(NamedTuple):
    """A MEP is closed. The record holds the reason and the missing sources."""

    record: MepRecord


class SealSlot(NamedTuple):
    """Submit this batch to the pipeline."""

    batch: Batch


class GrantCredit(NamedTuple):
    """Announce the number of MEPs that each feeder of the run may have unacknowledged at this node."""

    run: int
    meps: int


Effect = Place | Reject | CloseMep | SealSlot | GrantCredit
