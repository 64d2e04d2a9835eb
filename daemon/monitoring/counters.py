"""The counters of a node, as plain integers.

Current states (run, connections, slots) are in `NodeState`, which reads them from their owners.

The hot path adds to these attributes (44 ns) instead of calling the Prometheus client (300-1100 ns). At each scrape,
the collector in `monitoring.metrics.collector` gets a `snapshot` of them. Only the event loop writes them; results of
the pipeline thread reach the counters through the loop.

Every label value that is known in advance has an entry from the start, so that its rate is 0 instead of missing.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon._native import SourceTable
from hltnode.daemon.common.vocabulary import (
    CloseReason,
    CollectionMoment,
    ComputePart,
    DeadTimeReason,
    DecisionThread,
    DropReason,
    ErrorPlace,
    EventStream,
    HeadRoomRule,
    HeldEnd,
    HistogramFileOutcome,
    MepStage,
    OutputName,
    QuarantineReason,
    SeedFault,
    ShadowLoss,
    Stage,
    StreamTime,
    ThreadSetting,
    UdpRefusal,
    WindowCount,
    WindowFault,
    WriteErrorKind,
)
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.processing.framework.flags import FlagTable
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.refusals import HelloRefusal, MessageRefusal
from hltnode.protocol.transport.requests import RequestRefusal
from hltnode.protocol.transport.shared_memory import MemoryRefusal

# 50 us to 1 s: a small batch on a GPU up to a full slot on one core.
STAGE_BOUNDS = (50e-6, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0)
# 50 us to 10 s: from one hand-over between threads to a MEP that waits for a feeder. Finer up to 50 ms, so that a
# quantile, which is interpolated in a bucket, tells 0.5 from 0.7 ms.
MEP_BOUNDS = (
    *(50e-6, 70e-6, 1e-4, 1.5e-4, 2e-4, 3e-4, 4e-4, 5e-4, 7e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3),
    *(1e-2, 1.5e-2, 2e-2, 3e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
)
# 1 ms to 5 s: flush deadline plus computing time.
END_TO_END_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def _events_per_bit(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Rows of u32[n, words] in which each bit is set: i64[32 * words].

    A row becomes one byte per bit, and eight of these are added as one 64-bit number; 255 rows do not overflow a byte.
    """
    n_rows, n_words = words.shape
    bits = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(n_rows, 32 * n_words)
    blocks = np.add.reduceat(bits.view(np.uint64), np.arange(0, n_rows, 255), axis=0)
    total: NDArray[np.int64] = blocks.view(np.uint8).sum(axis=0, dtype=np.int64)
    return total


class Histogram:
    """Counts of values between ascending bounds; the last entry of `counts` is for values above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value`; a value equal to a bound counts below it, like `le` of Prometheus."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


@dataclass(slots=True)
class OutputCounters:
    """One output over a socket."""

    sent: int = 0
    dropped: dict[DropReason, int] = field(default_factory=lambda: dict.fromkeys(DropReason, 0))
    blocked: int = 0
    """Attempts that a full queue or a missing consumer refused (EAGAIN)."""
    queued: int = 0
    """Messages kept for a slow consumer (policy drop_old)."""
    subscribers: int = 0
    """Subscriptions; only known for the decision stream."""


@dataclass(slots=True)
class TapCounters:
    """The tap of the input."""

    meps: int = 0
    """MEPs that were closed and published."""
    dropped: int = 0
    """MEPs with a dropped fragment, because the recorder was slow."""
    subscribers: int = 0


@dataclass(slots=True)
class ShadowCounters:
    """The input of a shadow node."""

    meps: int = 0
    """MEPs taken from the tap of the productive node."""
    lost: dict[ShadowLoss, int] = field(default_factory=lambda: dict.fromkeys(ShadowLoss, 0))


@dataclass(slots=True)
class HeldCounters:
    """Slices that wait for a combiner."""

    seeds_sent: int = 0
    """Seeds, without those that were sent again."""
    windows_received: int = 0
    external_windows: int = 0
    held_bytes: int = 0
    """Now, with the batches that left but are not gathered yet."""
    held_slices: int = 0
    """Now."""
    max_bytes: int = 0
    """combiner.max_bytes; 0 without a combiner."""
    oldest_s: float = 0.0
    """How long the oldest batch is held now."""
    silent_s: float = 0.0
    """Time since the last message of the combiner, or since the start."""
    slices: dict[HeldEnd, int] = field(default_factory=lambda: dict.fromkeys(HeldEnd, 0))
    faults: dict[SeedFault, int] = field(default_factory=lambda: dict.fromkeys(SeedFault, 0))
    combiner: str = ""
    """Session of the combiner that answered last; empty before."""


@dataclass(slots=True)
class SharedMemoryCounters:
    """Shared memory of feeders on the same machine."""

    segments: int = 0
    """Currently mapped segments."""
    bytes: int = 0
    """Bytes of these segments."""
    range_messages: int = 0
    left: int = 0
    """Segments of feeders that ended without detaching them."""
    refused: dict[MemoryRefusal, int] = field(default_factory=lambda: dict.fromkeys(MemoryRefusal, 0))


@dataclass(slots=True)
class UdpCounters:
    """The UDP intake, as compiled code has counted it at the last reading."""

    datagrams: int = 0
    """Datagrams that were joined into MEPs."""
    bytes: int = 0
    """Bytes of these datagrams."""
    meps: int = 0
    """MEPs that were closed by the intake, complete or not."""
    meps_lost: int = 0
    """MEPs of which no datagram came, while earlier and later ones did."""
    discarded: int = 0
    """Datagrams that were taken and not built: of a run that the node did not accept, or left when it stopped."""
    dropped: int = 0
    """Datagrams that the kernel dropped, because the receive buffer of a socket was full."""
    bursts: int = 0
    """Bursts that have ended."""
    refused: dict[UdpRefusal, int] = field(default_factory=lambda: dict.fromkeys(UdpRefusal, 0))
    missing: dict[int, int] = field(default_factory=dict)
    """Datagrams of each source that had not come when their MEP was closed."""


@dataclass(slots=True)
class RequestCounters:
    """Requests of clients, which belong to no run. Only the thread of the request socket writes them."""

    answered: int = 0
    refused: dict[RequestRefusal, int] = field(default_factory=lambda: dict.fromkeys(RequestRefusal, 0))
    cancelled: int = 0
    """Dropped at the wish of their client, or because it has gone."""
    undelivered: int = 0
    """Answers and refusals whose client has gone or does not read."""
    events: int = 0
    """Events of answered requests."""
    batches: int = 0
    waiting: int = 0
    """Requests that wait now."""
    seconds: Histogram = field(default_factory=lambda: Histogram(STAGE_BOUNDS))
    """From the arrival of a request to its answer."""


@dataclass(slots=True)
class StreamCounters:
    """One series of MDF files."""

    events: int = 0
    bytes: int = 0
    files: int = 0
    """Files closed and renamed to their final name."""
    dropped: int = 0
    """Events that the policy of the stream dropped because the disk refused them."""


@dataclass(slots=True)
class WriterCounters:
    """Accepted events and the error stream on their way to the disk."""

    streams: dict[EventStream, StreamCounters] = field(
        default_factory=lambda: {stream: StreamCounters() for stream in EventStream}
    )
    errors: dict[WriteErrorKind, int] = field(default_factory=lambda: dict.fromkeys(WriteErrorKind, 0))
    pending_bytes: int = 0
    """Bytes that were taken but not yet written."""
    quarantined_events: dict[QuarantineReason, int] = field(default_factory=lambda: dict.fromkeys(QuarantineReason, 0))
    """Events that were moved from .part files to quarantine."""
    quarantined_files: dict[QuarantineReason, int] = field(default_factory=lambda: dict.fromkeys(QuarantineReason, 0))
    missing_events: int = 0
    """Acknowledged events that are in the journal but in no file."""
    out_of_reach_meps: int = 0
    """Revoked MEPs whose events are or may be in a finished file."""
    journal_damage: int = 0
    """Places where the journal was unreadable at a start."""
    histogram_files: dict[HistogramFileOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(HistogramFileOutcome, 0)
    )
    power_cuts: int = 0
    """1 if the last session did not end in order and the machine was down since."""


@dataclass(slots=True)
class Counters:
    """All counters of one node; times are in seconds unless the name ends in `_ns`."""

    # Receiver
    fragments_received: int = 0
    """Frames received from the data socket and from shared memory, including rejected frames."""
    fragment_bytes_received: int = 0
    fragments_built: int = 0
    """Fragments of MEPs that were closed and built, complete or not."""
    fragments_lost_in_drop: int = 0
    """Fragments of MEPs that a policy dropped."""
    fragments_abandoned: int = 0
    """Fragments of MEPs that were open when a stop was forced; they are not acknowledged."""
    fragments_rejected: dict[RejectReason, int] = field(default_factory=lambda: dict.fromkeys(RejectReason, 0))
    sources: SourceTable = field(default_factory=SourceTable)
    """Counters by source id; only expected sources have an entry, so that hostile input cannot grow the table."""
    error_types: dict[int, str] = field(default_factory=dict)
    """Names of the types of error banks, in the order of `SourceCounters.error_banks`."""

    # Control
    control_messages_received: int = 0
    control_messages_rejected: int = 0
    hellos_refused: dict[HelloRefusal, int] = field(default_factory=lambda: dict.fromkeys(HelloRefusal, 0))
    """Refused hellos among these messages."""
    messages_refused: dict[MessageRefusal, int] = field(default_factory=lambda: dict.fromkeys(MessageRefusal, 0))
    """Other messages among these."""
    control_messages_unsent: int = 0
    """Messages to feeders that were gone or did not read; the next hello of the feeder makes up for them."""
    credits_granted: int = 0
    """MEPs that the feeders were allowed to send, summed over all increases of the limit."""
    meps_acknowledged: int = 0
    nacks_sent: int = 0
    tap: TapCounters = field(default_factory=TapCounters)
    mep_tap: TapCounters = field(default_factory=TapCounters)
    shadow: ShadowCounters = field(default_factory=ShadowCounters)
    held: HeldCounters = field(default_factory=HeldCounters)
    shared_memory: SharedMemoryCounters = field(default_factory=SharedMemoryCounters)
    udp: UdpCounters = field(default_factory=UdpCounters)
    requests: RequestCounters = field(default_factory=RequestCounters)

    # Event builder
    meps_opened: int = 0
    meps_abandoned: int = 0
    meps_sealed: int = 0
    """MEPs that the back end gets, or that earlier sessions of the node ended on."""
    is_streaming: bool = False
    """The MEPs are time slices."""
    slices_dropped: dict[HeadRoomRule, int] = field(
        default_factory=lambda: dict.fromkeys((HeadRoomRule.THIN, HeadRoomRule.DROP), 0)
    )
    """Time slices that a rule dropped, because the buffers were full."""
    meps_closed: dict[CloseReason, int] = field(default_factory=lambda: dict.fromkeys(CloseReason, 0))
    accounting_broken: int = 0
    """Accounting checks that found a fragment or MEP in no class: a defect of the node."""

    # Pipeline
    batches: int = 0
    stages: dict[Stage, Histogram] = field(default_factory=lambda: {stage: Histogram(STAGE_BOUNDS) for stage in Stage})
    mep_stages: dict[MepStage, Histogram] = field(
        default_factory=lambda: {stage: Histogram(MEP_BOUNDS) for stage in MepStage}
    )
    mep_compute: dict[ComputePart, Histogram] = field(
        default_factory=lambda: {part: Histogram(MEP_BOUNDS) for part in ComputePart}
    )
    mep_latency: Histogram = field(default_factory=lambda: Histogram(MEP_BOUNDS))
    """From the first fragment of a MEP until its decision is sent."""
    end_to_end: Histogram = field(default_factory=lambda: Histogram(END_TO_END_BOUNDS))
    """From the close of a MEP until its decision is sent."""
    backend_errors: int = 0
    meps_not_processed: int = 0
    """MEPs sent to the error stream without computation, because earlier sessions of the node ended while computing
    them."""
    dead_time: dict[DeadTimeReason, float] = field(default_factory=lambda: dict.fromkeys(DeadTimeReason, 0.0))

    # Decisions
    lines: tuple[str, ...] = ()
    """Names of the selection lines in the order of their bits; set by `set_lines`."""
    events_processed: int = 0
    events_accepted: int = 0
    flag_masks: dict[str, int] = field(default_factory=lambda: dict(FlagTable().masks))
    """The flag word of each flag by name; `set_flags` adds the flags of the chain."""
    events_flagged: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FlagTable().masks, 0))
    line_accepts: list[int] = field(default_factory=list)
    candidates_left_out: int = 0
    """Selected candidates that did not fit in the reports of their events."""
    lists_left_out: int = 0
    """Output lists that did not fit in the decision messages of their MEPs."""
    late_decisions: int = 0
    """Decisions that were sent after their deadline."""
    decisions_first: int = 0
    """Decisions that were sent before files and journal."""
    decisions_directly: int = 0
    """Those of them that threads sent which receive datagrams."""
    windows: dict[WindowCount, int] = field(default_factory=lambda: dict.fromkeys(WindowCount, 0))
    """Windows of time of a streaming chain."""
    window_faults: dict[WindowFault, int] = field(default_factory=lambda: dict.fromkeys(WindowFault, 0))
    stream_ns: dict[StreamTime, int] = field(default_factory=lambda: dict.fromkeys(StreamTime, 0))
    """Time of the detector that passed through a streaming chain."""
    objects: dict[str, int] = field(default_factory=dict)
    """Objects found in events, by collection; the chain declares the collections, see `set_collections`."""

    # Outputs
    outputs: dict[OutputName, OutputCounters] = field(
        default_factory=lambda: {name: OutputCounters() for name in OutputName}
    )
    writer: WriterCounters = field(default_factory=WriterCounters)
    events_not_stored: dict[EventStream, int] = field(default_factory=lambda: dict.fromkeys(EventStream, 0))
    """Kept events of the series that no files are written of."""

    # The process
    operation: OperationCounters = field(default_factory=OperationCounters)
    thread_settings: dict[tuple[DecisionThread, ThreadSetting], bool] = field(default_factory=dict)
    """Whether the system took the configured CPUs and priority of each thread on the way of a decision."""
    collections: dict[CollectionMoment, int] = field(default_factory=lambda: dict.fromkeys(CollectionMoment, 0))
    """Runs of Python's garbage collector with `latency.quiet_collector`."""
    loop_lag: float = 0.0
    """Delay of the last timer of the event loop."""
    loop_lag_max: float = 0.0
    loop_stalls: int = 0
    """Delays above `periodic_tasks.LOOP_STALL_SECONDS`."""
    exceptions: dict[ErrorPlace, int] = field(default_factory=lambda: dict.fromkeys(ErrorPlace, 0))
    """Contained errors by part of the node."""

    def expect_sources(self, sources: Iterable[int]) -> None:
        """Create an entry for each source id; existing entries keep their counts."""
        self.sources.expect(tuple(sources))

    def set_lines(self, names: Iterable[str]) -> None:
        """Name the selection lines; bit i % 32 of an event's word i // 32 is the i-th name."""
        self.lines = tuple(names)
        self.line_accepts = [0] * len(self.lines)

    def set_collections(self, names: Iterable[str]) -> None:
        """Name the collections whose objects are counted."""
        self.objects = dict.fromkeys(names, 0)

    def set_error_types(self, names: Mapping[int, str]) -> None:
        """Name the types of error banks that are counted."""
        self.error_types = dict(names)
        self.sources.set_error_types(tuple(names))

    def error_banks(self) -> Iterator[tuple[tuple[str, int], int]]:
        """Names of the type and source of the error banks received, and their numbers; without zeros."""
        for source, entry in self.sources.items():
            for name, n in zip(self.error_types.values(), entry.error_banks, strict=False):
                if n:
                    yield (name, source), n

    def set_flags(self, flags: FlagTable) -> None:
        """Name the flags of events that are counted."""
        self.flag_masks = dict(flags.masks)
        self.events_flagged = dict.fromkeys(flags.masks, 0)

    def count_objects(self, objects: Mapping[str, int]) -> None:
        """Count the objects found in the events of a batch, by collection."""
        for name, n in objects.items():
            self.objects[name] += n

    def count_batch(self, accepted: NDArray[np.uint8], lines: NDArray[np.uint32], flags: NDArray[np.uint32]) -> None:
        """Count the decisions of a batch: accepted u8[n], lines u32[n, words] (one bit per line), flags u32[n]."""
        self.batches += 1
        self.events_processed += len(accepted)
        self.events_accepted += int(np.count_nonzero(accepted))
        fired = _events_per_bit(lines).tolist()[: len(self.lines)]
        self.line_accepts = [before + new for before, new in zip(self.line_accepts, fired, strict=True)]
        if flags.any():
            for name, mask in self.flag_masks.items():
                self.events_flagged[name] += int(np.count_nonzero(flags & np.uint32(mask)))

    def count_exception(self, where: ErrorPlace) -> None:
        """Count a contained error."""
        self.exceptions[where] += 1

    @property
    def decisions(self) -> OutputCounters:
        """The decision stream."""
        return self.outputs[OutputName.DECISIONS]
