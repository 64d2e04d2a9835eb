"""Sections on the input of a node: sockets, limits on peers, event building, the tap.

`tools/generate_reference.py` writes the docstrings of the keys to docs/reference/configuration.md.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from pydantic import Field

from hltnode.daemon.common.vocabulary import CloseReason, HeadRoomRule, IncompletePolicy
from hltnode.daemon.configuration.key_types import (
    KIB,
    MIB,
    Endpoint,
    FilePath,
    IpAddress,
    SecretPath,
    Section,
    SourceId,
    SourceIds,
    UdpEndpoint,
    UnixPath,
)
from hltnode.protocol.transport.requests import MAX_EVENTS


class NetworkSection(Section):
    """ZeroMQ sockets. SECURITY.md lists the rights of a client at each of them."""

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
    """Threads that copy fragments to their places and compute their CRC, including the thread of the event loop; about
    one per three gigabytes per second."""


class SharedMemorySection(Section):
    """Feeders of this machine that share memory with the node: only the places of fragments are sent."""

    socket: UnixPath | None = None
    """Unix socket at which feeders pass their memory (`hltnode replay --to shm:///PATH`); off if not set. By its
    permissions only the user of the node may connect."""
    group: str | None = Field(default=None, min_length=1)
    """Group whose members may also connect to the socket."""
    max_segments: int = Field(default=64, ge=1, le=4096)
    """Most feeders with shared memory at a time."""
    max_segment_bytes: int = Field(default=1024 * MIB, ge=4 * KIB, le=1_048_576 * MIB)
    """Largest memory of one feeder in bytes. It belongs to the feeder, and uses only addresses in the node."""

    @property
    def n_descriptors(self) -> int:
        """Most descriptors of feeders with shared memory: one for the connection, one for the memory."""
        return 0 if self.socket is None else 2 * self.max_segments


class UdpSender(Section):
    """A sender of datagrams."""

    address: IpAddress
    """Its IP address."""
    sources: SourceIds
    """The sources that it may send."""


class UdpSection(Section):
    """Datagrams of listed senders (docs/formats/udp-datagram.md), joined into MEPs. UDP has no keys: SECURITY.md."""

    endpoint: UdpEndpoint | None = None
    """Address of the sockets, such as udp://10.0.0.1:5560; off if not set."""
    senders: tuple[UdpSender, ...] = ()
    """The accepted senders, each with its address and sources; datagrams of others are refused."""
    sockets: int = Field(default=1, ge=1, le=16)
    """Sockets of the address, each with a thread; the kernel spreads the senders over them."""
    receive_bytes: int = Field(default=8 * MIB, ge=64 * KIB, le=1024 * MIB)
    """Receive buffer of each socket in bytes. Without a right (CAP_NET_ADMIN), at most net.core.rmem_max counts."""
    max_datagram_bytes: int = Field(default=4096, ge=128, le=65_507)
    """Largest datagram in bytes, with its header."""
    events_per_packet: int = Field(default=16, ge=1, le=4096)
    """Events of each packet; the last one of a burst may have fewer."""
    packets_per_mep: int = Field(default=16, ge=1, le=4096)
    """Packets of each source that become one fragment of a MEP."""
    open_meps: int = Field(default=32, ge=2, le=1024)
    """MEPs that are joined at a time; as many again may wait for the event builder."""
    flush_us: int = Field(default=10_000, ge=50, le=10_000_000)
    """Time in microseconds from the first packet of a MEP until it is closed without the missing ones. It must be
    longer than the time by which the sources send apart."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The sources of all senders, ascending."""
        return tuple(sorted({source for sender in self.senders for source in sender.sources}))

    def is_reached_from(self, sender: str) -> bool:
        """Whether the version of IP of a sender can reach the address of the sockets."""
        if self.endpoint is None:
            return False
        host = udp_address(self.endpoint)[0]
        takes_both = ip_address(host) == IPv6Address("::")
        return takes_both or packet_address(host).version == packet_address(sender).version

    @property
    def events_per_mep(self) -> int:
        """Events of a full MEP."""
        return self.packets_per_mep * self.events_per_packet


def packet_address(address: str) -> IPv4Address | IPv6Address:
    """The address in packets: ::ffff:a.b.c.d is that of an IPv4 packet."""
    parsed = ip_address(address)
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def udp_address(endpoint: str) -> tuple[str, int]:
    """IP address and port of an endpoint udp://ADDRESS:PORT; an IPv6 address is in brackets."""
    host, _, port = endpoint.removeprefix("udp://").rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


class LimitsSection(Section):
    """Limits on the connections and memory of peers, each and in total. SECURITY.md explains them."""

    connections: int = Field(default=1024, ge=16, le=65_536)
    """Most connections to one socket, at least `builder.min_feeders`. A full socket refuses the address with the most
    connections."""
    connections_per_address: int = Field(default=128, ge=1, le=65_536)
    """Most connections of one address (of a /64 network with IPv6) to one socket."""
    connections_of_this_machine: int = Field(default=512, ge=1, le=65_536)
    """The same for the loopback."""
    unfinished_bytes: int | None = Field(default=None, ge=MIB)
    """Most bytes of unfinished and waiting frames on all data connections. Above it the connections with the most bytes
    are closed. Default: `pipeline.slots` × `pipeline.slot_bytes` plus 64 MiB, more than the credits allow."""
    unfinished_seconds: float = Field(default=10.0, ge=0.1, le=3600.0)
    """Time in seconds for one frame or message above 64 KiB to arrive completely. After it the connection is closed."""
    idle_seconds: float = Field(default=3600.0, ge=1.0, le=1e6)
    """Time in seconds without a frame after which a data connection is closed. A feeder reconnects automatically."""
    http_connections: int = Field(default=32, ge=8, le=1024)
    """Most HTTP connections at a time; a quarter of them is reserved for this machine."""
    http_connections_per_address: int = Field(default=8, ge=1, le=1024)
    """Most HTTP connections of one other address at a time."""


class BuilderSection(Section):
    """Event building: deadlines and limits of MEPs."""

    min_feeders: int = Field(default=1, ge=1, le=4096)
    """Number of connected feeders that the node needs to be ready and to start a run. If feeders announce that more
    feeders share the sources of a run (`hltnode replay --sources`, `--part`, `--jobs`), the node waits for all of
    them."""
    max_feeders: int = Field(default=512, ge=1, le=4096)
    """Most feeders of a run; others are refused."""
    expected_sources: SourceIds | None = None
    """Source ids of a complete MEP; if not set, the sources that the feeders announce."""
    mep_timeout_ms: int = Field(default=750, ge=1, le=600_000)
    """Time in milliseconds from the last fragment of a MEP until the MEP is closed incomplete. It applies if no feeder
    of a missing source is awaited: the feeders are not connected, or have sent a younger MEP."""
    feeder_timeout_ms: int = Field(default=10_000, ge=1, le=3_600_000)
    """Time in milliseconds for which MEPs wait for a connected feeder that is behind the others and sends nothing.
    Meanwhile the credits hold back the others (dead time with reason feeder)."""
    max_mep_bytes: int = Field(default=32 * MIB, ge=4 * KIB, le=4096 * MIB)
    """Largest MEP in bytes (sum of its MFPs). An open MEP reserves this much of a slot."""
    silent_source_ms: int = Field(default=5000, ge=100, le=3_600_000)
    """Time in milliseconds without fragments after which a source is reported as silent while others send. A source
    that waits for credits is not silent."""
    overtaken_after_ms: int = Field(default=250, ge=1, le=600_000)
    """Time in milliseconds for which a MEP stays open after all its missing sources have sent a later MEP. It must be
    longer than the repeat of a damaged fragment takes."""
    evict_after_ms: int = Field(default=400, ge=1, le=600_000)
    """The same as `mep_timeout_ms`, when no slot has a place and complete MEPs wait for this one."""
    on_timeout: IncompletePolicy = IncompletePolicy.BUILD
    """MEPs closed by timeout: build decides with the received fragments and flags the events as incomplete; error sends
    all events of the MEP to the error stream."""
    on_overtaken: IncompletePolicy = IncompletePolicy.BUILD
    """The same for MEPs whose missing sources have all sent a later MEP."""
    on_evicted: IncompletePolicy = IncompletePolicy.BUILD
    """The same for evicted MEPs."""
    on_end_of_run: IncompletePolicy = IncompletePolicy.BUILD
    """The same for MEPs that were incomplete when the run ended."""
    closed_ring: int = Field(default=65_536, ge=16, le=16_777_216)
    """Number of MEP ids, from the oldest unacknowledged one, that the node tells apart as open, duplicate or late. It
    refuses later ones for the time being. Several nodes count the same ids, and a lost node can hold them for 9 s: then
    expect at least 9 times the MEPs of the whole farm in one second."""

    def error_on(self) -> frozenset[CloseReason]:
        """The close reasons whose MEPs go to the error stream."""
        policies = {
            CloseReason.TIMEOUT: self.on_timeout,
            CloseReason.OVERTAKEN: self.on_overtaken,
            CloseReason.EVICTED: self.on_evicted,
            CloseReason.END_OF_RUN: self.on_end_of_run,
        }
        return frozenset(reason for reason, policy in policies.items() if policy is IncompletePolicy.ERROR)


class StreamingSection(Section):
    """Time slices, for a chain of a detector without a trigger signal: head-room and clocks. Other chains refuse keys
    that differ from their defaults."""

    head_room: HeadRoomRule = HeadRoomRule.KEEP
    """Rule for slices that come while every slot waits for the back end or is in it: keep, feeders wait; thin, one of
    `streaming.thin_to_one_of` slices is computed; drop, none is. Dropped slices are acknowledged, flagged and
    counted."""
    thin_to_one_of: int = Field(default=2, ge=2, le=1_000_000)
    """With the rule thin, the node computes one of this number of slices that come while the buffers are full."""
    clock_offsets_ns: dict[SourceId, int] | None = None
    """Time in ns that is added to the hits of a source before they are sorted, by source id: a source whose clock is
    late by 40 ns has 40. The chain bounds it. If not set, all clocks are right."""


class RequestsSection(Section):
    """The request socket: clients send events and get what the node would decide. They belong to no run, and are not
    written, published or counted as events of the node. Requests of several clients share a batch."""

    endpoint: Endpoint | None = None
    """ROUTER socket for requests; off if not set."""
    max_events: int = Field(default=256, ge=1, le=MAX_EVENTS)
    """Most events of a request, and of a batch of requests."""
    max_bytes: int = Field(default=16 * MIB, ge=4 * KIB, le=1024 * MIB)
    """Most bytes of a request, and of a batch of requests; a longer message closes its connection."""
    queue: int = Field(default=1024, ge=1, le=65_536)
    """Most requests that wait. In a full queue the client that holds most loses its newest request (busy)."""
    queue_bytes: int = Field(default=64 * MIB, ge=4 * KIB, le=65_536 * MIB)
    """Most bytes of waiting requests, at least `requests.max_bytes`."""
    queue_per_client: int = Field(default=64, ge=1, le=65_536)
    """Most waiting requests of one client. As many answers, at least 64, wait for a client that does not read; further
    ones are dropped and counted."""
    max_list_bytes: int = Field(default=MIB, ge=0, le=16 * MIB)
    """Most bytes of the output lists of an answer; a list that does not fit is left out and marked."""
    timeout_ms: int = Field(default=10_000, ge=1, le=3_600_000)
    """Longest time in milliseconds that a request waits for its batch; a client may name a shorter one."""


class TapSection(Section):
    """The tap: it publishes the accepted fragments for `hltnode record`, and never delays the node."""

    endpoint: Endpoint | None = None
    """Socket of the tap (XPUB); off if not set."""
    buffer_bytes: int = Field(default=64 * MIB, ge=MIB, le=65_536 * MIB)
    """Most bytes of fragments that wait for a slow recorder. Above it MEPs are missing in the recording. The same for
    MEPs that wait for a slow shadow node."""
    meps_endpoint: Endpoint | None = None
    """Socket that publishes whole MEPs (XPUB) for shadow nodes (`shadow.of`); off if not set. Each MEP is copied once
    while a shadow is connected."""
    meps_prescale: int = Field(default=1, ge=1, le=1_000_000)
    """Shadow nodes get one MEP of this number: those whose id is a multiple of it."""


class ShadowSection(Section):
    """Shadow mode: the node decides on the MEPs of another node, and counts for nothing. It takes no feeders, writes no
    event files, and publishes its decisions under the topic shadow/NAME."""

    of: Endpoint | None = None
    """Tap of whole MEPs of the productive node (its `tap.meps_endpoint`). If not set, this node is a productive one."""
    server_key: FilePath | None = None
    """Public key of the productive node (NAME.key), if that uses CURVE."""
    key_file: SecretPath | None = None
    """Own secret key (NAME.key_secret), which the productive node has among its consumers."""
