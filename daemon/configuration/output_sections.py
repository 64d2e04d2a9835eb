"""Sections on the output of a node: files, decisions, events and samples on sockets, histograms.

`tools/generate_reference.py` writes the docstrings of the keys to docs/reference/configuration.md.
"""

from pathlib import Path

from pydantic import Field

from hltnode.daemon.common.vocabulary import (
    EventSocketKind,
    EventStream,
    FsyncPolicy,
    MonitorContent,
    SilencePolicy,
    SlowConsumerPolicy,
)
from hltnode.daemon.configuration.key_types import (
    KIB,
    MIB,
    Endpoint,
    EventStreams,
    FilePath,
    FilePolicy,
    ListNames,
    SecretPath,
    Section,
)
from hltnode.protocol.transport.decisions import MAX_MEPS_OF_GROUP


class OutputSection(Section):
    """Files of accepted events and of the error stream."""

    directory: FilePath = Path("output")
    """Directory of the MDF files. It is created if its parent exists."""
    streams: EventStreams = tuple(EventStream)
    """The series of files that are written: accepted, error. The kept events of a series that is left out are counted
    (`hltnode_events_not_stored_total`), but no file has them."""
    max_file_bytes: int = Field(default=2048 * MIB, ge=64 * KIB)
    """Largest size of a file in bytes. A closed file becomes *.mdf when it can no longer change."""
    max_file_events: int = Field(default=1_000_000, ge=1)
    """Most events of a file."""
    fsync: FsyncPolicy = FsyncPolicy.FILE
    """When events and journal are forced to the disk. It decides which events a power cut may cost; a kill costs none.

    flush: before each acknowledgement; a power cut costs no acknowledged event. file: before a file gets its final
    name; a power cut may cost acknowledged events of the files that are *.mdf.part. never: the kernel decides; a power
    cut may cost or double any event, those in finished files included.
    """
    policy: FilePolicy = SlowConsumerPolicy.WAIT
    """Accepted events when a write fails: wait holds back the credits, drop_new drops and counts the events."""
    error_policy: FilePolicy = SlowConsumerPolicy.WAIT
    """The same for the error stream."""
    checksums: bool = False
    """Write a checksum into MDF records; LHCb's own files have none."""
    queue_bytes: int = Field(default=256 * MIB, ge=MIB)
    """Most bytes of kept events and decisions that wait for the disk and the consumers. Above it batches stay in their
    slots and no credits are granted."""
    lists: ListNames = ()
    """Output lists of the chain that kept events carry, each in banks of a type of its own."""


class DecisionsSection(Section):
    """The decision stream, at `network.decisions`."""

    policy: SlowConsumerPolicy = SlowConsumerPolicy.DROP_NEW
    """Slow consumer policy: wait (a slow subscriber holds back the node), drop_new (new decisions are dropped after
    `drop_after_ms`) or drop_old (the oldest are dropped)."""
    drop_after_ms: int = Field(default=50, ge=0, le=10_000)
    """With drop_new: time in milliseconds for which the decisions of a batch wait for a slow subscriber before they are
    dropped. The slots wait as long. The default is more than twice the default flush deadline, which is longer than a
    working subscriber needs."""
    queue: int = Field(default=1000, ge=1, le=1_000_000)
    """Most decisions queued per subscriber; with drop_old twice this number. A decision takes 4 bytes per event, and 4
    more for each 32 lines; its lists come on top."""
    lists: ListNames = ()
    """Output lists of the chain that decision messages carry, for all events of their MEPs."""
    max_list_bytes: int = Field(default=MIB, ge=KIB, le=8 * MIB)
    """Most bytes of the lists of a message. A list that does not fit is left out as a whole, marked and counted."""
    meps_per_message: int = Field(default=1, ge=1, le=MAX_MEPS_OF_GROUP)
    """Most MEPs whose decisions leave in one message. Above 1, complete MEPs of a batch share messages; none waits
    longer for that, because a batch is decided as a whole (`pipeline.flush_deadline_us`). For small MEPs, of some ten
    events; without `decisions.lists`."""


class CombinerSection(Section):
    """Seed and window mode of a streaming chain: the node sends its windows as seeds to a combiner (`hltnode combine`),
    holds its slices in memory, and writes the windows of the answer."""

    endpoint: Endpoint | None = None
    """Socket of the combiner; if not set, the node keeps its own windows at once."""
    hold_ms: int = Field(default=0, ge=0, le=600_000)
    """Shortest time in milliseconds that a slice is held. External windows may come as late."""
    timeout_ms: int = Field(default=5_000, ge=10, le=600_000)
    """Longest time in milliseconds that a slice waits for the combiner; at least `hold_ms`. Above the waiting time of
    the combiner."""
    max_bytes: int = Field(default=1024 * MIB, ge=MIB)
    """Most bytes of held slices: raw data, results, seeds and answers. Above it the oldest leave early, with the known
    windows. The queues of the socket take up to 192 MiB more."""
    silent: SilencePolicy = SilencePolicy.KEEP
    """Windows of a slice without an answer: keep (those of the node itself) or drop (none). External windows are always
    kept."""
    server_key: FilePath | None = None
    """Public key of the combiner (NAME.key), if that uses CURVE."""
    key_file: SecretPath | None = None
    """Own secret key (NAME.key_secret), which the combiner has among its nodes."""


class EventSocketSection(Section):
    """Kept events on a socket."""

    endpoint: Endpoint | None = None
    """Socket that sends the events, in addition to the files; off if not set."""
    kind: EventSocketKind = EventSocketKind.PUSH
    """push: each event to one of the consumers; pub: all events to every subscriber (topic A accepted, E error)."""
    policy: SlowConsumerPolicy = SlowConsumerPolicy.WAIT
    """Slow consumer policy: wait (a slow consumer holds back the node), drop_new (new events are dropped) or drop_old
    (the oldest are dropped)."""
    queue: int = Field(default=64, ge=1, le=1_000_000)
    """Most events queued per consumer; with drop_old twice this number."""


class EventsSection(EventSocketSection):
    """Accepted events on a socket: header and MDF record per message."""


class ErrorsSection(EventSocketSection):
    """The error stream, events that carry a flag, on a socket: header and MDF record per message."""


class MonitorSection(Section):
    """A sample for monitoring on a PUB socket. Messages that a monitor cannot receive at once are dropped."""

    endpoint: Endpoint | None = None
    """Socket that sends the sample; off if not set."""
    content: MonitorContent = MonitorContent.DECISIONS
    """decisions, or events (accepted and error stream)."""
    fraction: float = Field(default=0.01, gt=0.0, le=1.0)
    """Fraction of the decisions or events that are sampled."""
    max_rate: float = Field(default=100.0, gt=0.0, le=1e6)
    """Largest number of messages per second."""


class HistogramsSection(Section):
    """Monitoring histograms, which the trigger configuration declares: their metrics and files."""

    buckets: int = Field(default=50, ge=0, le=100)
    """Most buckets of a histogram in /metrics, where adjacent bins are merged; 0 leaves histograms out. /histograms and
    files have all bins."""
    file_period_s: float = Field(default=60.0, ge=0.0, le=86_400.0)
    """Time in seconds between two files of an active run; 0: only one file, at the end of the run."""
