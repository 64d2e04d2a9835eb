"""Vocabulary of the event builder: its limits, stimuli that go in, effects that come out, the record of one MEP.

Stimuli and effects are named tuples: immutable, and quick to make and unpack, which counts at a million fragments
per second.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.protocol.errors import RejectReason


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderLimits:
    """Times in ns of the injected clock, the number of MEP ids that are kept apart, and policies.

    ``overtaken_ns``: so long a MEP stays open after every missing source has delivered a younger one, because a
    fragment may be on its way a second time. ``evict_ns``: so old a MEP must be to give way to others. ``error_on``:
    reasons whose MEPs go to the error stream.
    """

    mep_timeout_ns: int
    overtaken_ns: int
    evict_ns: int
    flush_deadline_ns: int
    closed_ring: int
    error_on: frozenset[CloseReason] = frozenset()


class MepRecord:
    """One MEP in a slot: who has delivered, and where the fragments lie.

    ``fragments`` holds (source id, offset in the slot, size in bytes) in the order of arrival; ``sources`` is a bit
    mask over the expected sources of the run; times are in ns of the injected clock. ``error_stream`` says that the
    policy of its close reason takes all its events to the error stream.
    """

    __slots__ = (
        "bytes",
        "close_reason",
        "closed_ns",
        "deadline_ns",
        "error_stream",
        "first_event",
        "fragments",
        "mep",
        "missing",
        "n_events",
        "opened_ns",
        "overtaken_ns",
        "slot",
        "sources",
    )

    def __init__(
        self, *, mep: int, slot: int, first_event: int, n_events: int, opened_ns: int, deadline_ns: int
    ) -> None:
        self.mep = mep
        self.slot = slot
        self.first_event = first_event
        self.n_events = n_events
        self.opened_ns = opened_ns
        self.closed_ns = 0
        self.deadline_ns = deadline_ns
        self.sources = 0
        self.bytes = 0
        self.fragments: list[tuple[int, int, int]] = []
        self.close_reason: CloseReason | None = None
        self.error_stream = False
        self.overtaken_ns: int | None = None
        self.missing: tuple[int, ...] = ()


class StartRun(NamedTuple):
    """A run begins: its number, the readout sources of every MEP, the first MEP id, the largest events per MEP.

    ``done`` are (first, last) ranges of MEP ids that an earlier session of the node has finished.
    """

    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int
    done: tuple[tuple[int, int], ...] = ()


class FragmentArrived(NamedTuple):
    """A fragment whose frame and MFP are sound; size of the MFP in bytes."""

    run: int
    source: int
    mep: int
    size: int
    first_event: int
    n_events: int


class Tick(NamedTuple):
    """Time has passed: look at the deadlines."""


class AcknowledgedBelow(NamedTuple):
    """The feeders have acknowledgements for all MEPs below this id, from this node or another one."""

    below: int


class SlotFreed(NamedTuple):
    """The pipeline has given a slot back."""

    slot: int


class Drain(NamedTuple):
    """Grant no more credits; what was granted may still come."""


class Resume(NamedTuple):
    """Grant credits again after a Drain that nothing has followed."""


class SetTimes(NamedTuple):
    """Other deadlines (ns) for MEPs and slots that are opened from now on."""

    mep_timeout_ns: int
    flush_deadline_ns: int


class EndRun(NamedTuple):
    """Open no MEP any more until a run starts: what still comes is refused and sent again to the next session."""


class CloseOpen(NamedTuple):
    """Close every open MEP now with end_of_run and seal every slot that holds something."""


class Abandon(NamedTuple):
    """Drop every open MEP, counted as abandoned: the feeders keep them, since they are not acknowledged."""


class RevokeMeps(NamedTuple):
    """These MEPs went to another node: what is open of them is dropped, and they may come again one day."""

    meps: tuple[int, ...]


Stimulus = (
    StartRun
    | FragmentArrived
    | Tick
    | AcknowledgedBelow
    | SlotFreed
    | Drain
    | Resume
    | SetTimes
    | EndRun
    | CloseOpen
    | Abandon
    | RevokeMeps
)


class Place(NamedTuple):
    """Copy the MFP to this offset (bytes) of this slot, before the effects that follow are carried out."""

    slot: int
    offset: int


class Reject(NamedTuple):
    """The fragment is not used; ``resend`` says whether sending it again can help."""

    reason: RejectReason
    source: int
    mep: int
    resend: bool


class CloseMep(NamedTuple):
    """A MEP is closed; the record says why and which sources were missing."""

    record: MepRecord


class SealSlot(NamedTuple):
    """Hand this slot to the pipeline."""

    slot: int


class GrantCredit(NamedTuple):
    """Feeders may have so many MEPs unacknowledged at this node."""

    meps: int


Effect = Place | Reject | CloseMep | SealSlot | GrantCredit
