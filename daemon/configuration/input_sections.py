"""Sections on the input of a node: sockets, limits on peers, event building, the tap.

`tools/generate_reference.py` writes the docstrings of the keys to docs/reference/configuration.md.
"""

from pydantic import Field

from hltnode.daemon.common.vocabulary import CloseReason, IncompletePolicy
from hltnode.daemon.configuration.key_types import KIB, MIB, Endpoint, Section, SourceIds, UnixPath


class NetworkSection(Section):
    """ZeroMQ sockets. SECURITY.md lists what each of them trusts."""

    data: Endpoint = "tcp://127.0.0.1:5555"
    """PULL socket that receives the fragments."""
    control: Endpoint = "tcp://127.0.0.1:5556"
    """ROUTER socket for hello, credits, acknowledgements and end of run."""
    decisions: Endpoint = "tcp://127.0.0.1:5557"
    """XPUB socket that sends the decisions."""
    max_frame_bytes: int = Field(default=16 * MIB, ge=KIB, le=1024 * MIB)
    """Largest fragment (transport header and MFP) in bytes; a longer frame closes its connection."""
    io_threads: int = Field(default=1, ge=1, le=16)
    """ZeroMQ input/output threads; about one per gigabyte per second."""
    copy_threads: int = Field(default=1, ge=1, le=16)
    """Threads that copy fragments to their places and compute their CRC, that of the event loop among them; about one
    per three gigabytes per second."""


class SharedMemorySection(Section):
    """Feeders of this machine whose fragments are read from memory of theirs; only places of fragments are sent."""

    socket: UnixPath | None = None
    """Unix socket at which feeders hand their memory over (`hltnode replay --to shm:///PATH`); off if not set. Its
    permissions say who may connect: the user of the node."""
    group: str | None = Field(default=None, min_length=1)
    """Group whose members may connect to the socket, too."""
    max_segments: int = Field(default=64, ge=1, le=4096)
    """The most feeders with shared memory at a time."""
    max_segment_bytes: int = Field(default=1024 * MIB, ge=4 * KIB, le=1_048_576 * MIB)
    """Largest memory of one feeder in bytes. It is the feeder's, and takes only addresses here."""

    @property
    def n_descriptors(self) -> int:
        """The most descriptors that feeders with shared memory take: of the connection, and of the memory."""
        return 0 if self.socket is None else 2 * self.max_segments


class LimitsSection(Section):
    """What peers may take of the node, in all and each. SECURITY.md says what is bounded by what."""

    connections: int = Field(default=1024, ge=16, le=65_536)
    """Connections to one socket, at least `builder.min_feeders`. A full one refuses the address that has the most."""
    connections_per_address: int = Field(default=128, ge=1, le=65_536)
    """Connections of one address (of a /64 network with IPv6) to one socket."""
    connections_of_this_machine: int = Field(default=512, ge=1, le=65_536)
    """The same for the loopback."""
    unfinished_bytes: int | None = Field(default=None, ge=MIB)
    """Bytes of unfinished and waiting frames on all data connections together; above this the connections that hold
    most are closed. Default: `pipeline.slots` × `pipeline.slot_bytes` and 64 MiB, more than the credits allow."""
    unfinished_seconds: float = Field(default=10.0, ge=0.1, le=3600.0)
    """Time in seconds for one frame or message above 64 KiB to arrive whole; then its connection is closed."""
    idle_seconds: float = Field(default=3600.0, ge=1.0, le=1e6)
    """Time in seconds without a frame after which a data connection is closed; a feeder connects again by itself."""
    http_connections: int = Field(default=32, ge=8, le=1024)
    """HTTP connections at a time; a quarter of them is kept for this machine."""
    http_connections_per_address: int = Field(default=8, ge=1, le=1024)
    """HTTP connections of one other address at a time."""


class BuilderSection(Section):
    """How fragments become MEPs."""

    min_feeders: int = Field(default=1, ge=1, le=4096)
    """Number of feeders that have to be connected before the node is ready and a run starts. Feeders that say that they
    share the sources of a run with others (`hltnode replay --sources`, `--part`, `--jobs`) are awaited beyond that."""
    max_feeders: int = Field(default=512, ge=1, le=4096)
    """The most feeders that may take part in a run; others are refused."""
    expected_sources: SourceIds | None = None
    """Source ids that make a MEP complete; if not set, the sources that the feeders announce."""
    mep_timeout_ms: int = Field(default=750, ge=1, le=600_000)
    """Time in milliseconds from the last fragment of a MEP until it is closed without the missing ones, if none of them
    can be awaited: their feeders are not connected, or have sent a younger MEP."""
    feeder_timeout_ms: int = Field(default=10_000, ge=1, le=3_600_000)
    """Time in milliseconds for which MEPs wait for a connected feeder that is behind the others and sends nothing.
    Until then the credits hold back the others (dead time, reason feeder)."""
    max_mep_bytes: int = Field(default=32 * MIB, ge=4 * KIB, le=4096 * MIB)
    """Largest MEP in bytes (sum of its MFPs); this much of a slot is reserved when a MEP is opened."""
    silent_source_ms: int = Field(default=5000, ge=100, le=3_600_000)
    """A source is reported as silent after sending nothing for this many milliseconds while others send; one that waits
    for credits is not."""
    overtaken_after_ms: int = Field(default=250, ge=1, le=600_000)
    """Time in milliseconds for which a MEP stays open after all its missing sources have sent a later one.
    Longer than it takes to send a damaged fragment again."""
    evict_after_ms: int = Field(default=400, ge=1, le=600_000)
    """The same as mep_timeout_ms, in milliseconds, when no slot has room and complete MEPs wait for this one."""
    on_timeout: IncompletePolicy = IncompletePolicy.BUILD
    """MEPs closed by timeout: build decides on the received fragments and flags the events as incomplete; error sends
    all events of the MEP to the error stream."""
    on_overtaken: IncompletePolicy = IncompletePolicy.BUILD
    """The same for MEPs that all missing sources have overtaken."""
    on_evicted: IncompletePolicy = IncompletePolicy.BUILD
    """The same for evicted MEPs."""
    on_end_of_run: IncompletePolicy = IncompletePolicy.BUILD
    """The same for MEPs that were incomplete when the run ended."""
    closed_ring: int = Field(default=65_536, ge=16, le=16_777_216)
    """Number of MEP ids, from the oldest unacknowledged one, that are distinguished as open, duplicate or late."""

    def error_on(self) -> frozenset[CloseReason]:
        """The close reasons whose MEPs go to the error stream."""
        policies = {
            CloseReason.TIMEOUT: self.on_timeout,
            CloseReason.OVERTAKEN: self.on_overtaken,
            CloseReason.EVICTED: self.on_evicted,
            CloseReason.END_OF_RUN: self.on_end_of_run,
        }
        return frozenset(reason for reason, policy in policies.items() if policy is IncompletePolicy.ERROR)


class TapSection(Section):
    """The tap: publishes the fragments that the node takes, for `hltnode record`. It never holds the node up."""

    endpoint: Endpoint | None = None
    """Socket of the tap (XPUB); off if not set."""
    buffer_bytes: int = Field(default=64 * MIB, ge=MIB, le=65_536 * MIB)
    """Bytes of fragments that wait for a slow recorder; MEPs that come beyond that are dropped from the recording."""
