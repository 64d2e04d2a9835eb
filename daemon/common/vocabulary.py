"""The closed sets of words that code, metrics, decisions and logs share.

A member's value is the label value in Prometheus, so code and metrics cannot drift apart. Words that a feeder receives
are part of the protocol: `hltnode.protocol.errors.RejectReason`, `hltnode.protocol.transport.refusals`.
"""

from enum import StrEnum, unique


@unique
class CloseReason(StrEnum):
    """Why a MEP was closed.

    overtaken: every missing source has delivered a younger MEP; evicted: no place was free while complete MEPs waited
    for this MEP.
    """

    COMPLETE = "complete"
    TIMEOUT = "timeout"
    OVERTAKEN = "overtaken"
    EVICTED = "evicted"
    END_OF_RUN = "end_of_run"


@unique
class RunEnd(StrEnum):
    """How a run ended on this node: confirmed by all its feeders, left and kept, or closed by an operator."""

    CONFIRMED = "confirmed"
    LEFT = "left"
    CLOSED = "closed"


@unique
class IncompletePolicy(StrEnum):
    """Treatment of an incomplete MEP: built and flagged, or all its events to the error stream."""

    BUILD = "build"
    ERROR = "error"


@unique
class SlotState(StrEnum):
    """The state of a slot; see docs/architecture.md.

    A back end takes copy to the device, kernels and copy back as one job: such a slot stays in `run` during the whole
    job.
    """

    FREE = "free"
    FILLING = "filling"
    SEALED = "sealed"
    RUN = "run"
    DONE = "done"


@unique
class Stage(StrEnum):
    """A timed part of a batch: copy to the device, kernels, copy back."""

    H2D = "h2d"
    KERNELS = "kernels"
    D2H = "d2h"


@unique
class ComputePart(StrEnum):
    """A part of the stage `compute` of a MEP."""

    H2D = "h2d"
    """Copy of the input to the device."""
    KERNELS = "kernels"
    D2H = "d2h"
    """Copy of the results to the host."""
    HOST = "host"
    """The rest: tables of the batch, hand-overs between threads, and the wait for other batches of the back end."""


@unique
class MepStage(StrEnum):
    """A stage of a MEP between its first fragment and the publication of its decision."""

    BUILD = "build"
    """From the first fragment until the MEP is closed."""
    SEAL = "seal"
    """Until the slot is sealed."""
    QUEUE = "queue"
    """Until the back end gets the batch."""
    COMPUTE = "compute"
    """Until the results are available."""
    GATHER = "gather"
    """Until the kept events are copied out of the slot."""
    WRITE = "write"
    """Until these events are written and noted in the journal. With decisions first: after `publish`, so it is no part
    of the latency."""
    PUBLISH = "publish"
    """Until the sockets have taken decisions and events."""


@unique
class EventStream(StrEnum):
    """A series of MDF files: events that a line accepted, and events that carry an `EventFlag`."""

    ACCEPTED = "accepted"
    ERROR = "error"


@unique
class OutputName(StrEnum):
    """An output over a socket."""

    DECISIONS = "decisions"
    EVENTS = "events"
    ERRORS = "errors"
    MONITOR = "monitor"


@unique
class SlowConsumerPolicy(StrEnum):
    """Reaction of an output to a slow consumer: hold the credits of the node, drop new messages, or drop the oldest."""

    WAIT = "wait"
    DROP_NEW = "drop_new"
    DROP_OLD = "drop_old"


@unique
class EventSocketKind(StrEnum):
    """How an output sends kept events: each to one consumer (push), or all to every subscriber (pub)."""

    PUSH = "push"
    PUB = "pub"


@unique
class MonitorContent(StrEnum):
    """Content of the monitoring sample."""

    DECISIONS = "decisions"
    EVENTS = "events"


@unique
class DropReason(StrEnum):
    """Why an output did not send a message."""

    SLOW_SUBSCRIBER = "slow_subscriber"


@unique
class WriteErrorKind(StrEnum):
    """Errors of the disk; in every case the writer keeps the events and tries again."""

    DISK_FULL = "disk_full"
    IO = "io"


@unique
class QuarantineReason(StrEnum):
    """Why bytes of an event file, or a journal, are in quarantine.

    not_acknowledged: the journal does not name their MEPs; revoked: a feeder gave their MEPs to another node; damaged:
    the bytes differ from the written bytes, or other events of the same MEP do.
    """

    NOT_ACKNOWLEDGED = "not_acknowledged"
    REVOKED = "revoked"
    DAMAGED = "damaged"


@unique
class DeadTimeReason(StrEnum):
    """Why the node could not take data although feeders had data."""

    FEEDER = "feeder"
    """Every slot waits for fragments of a feeder that lags behind, and the back end has no slot."""
    COMPUTING = "computing"
    """The back end holds the slots."""
    DISK = "disk"
    """Gathered events wait for the disk, or the disk refuses them."""
    CONSUMER = "consumer"
    """Written events wait for the consumer of an output."""
    PAUSED = "paused"
    """An operator paused the run."""


@unique
class ErrorPlace(StrEnum):
    """The place of a contained error that no other counter covers."""

    LOOP = "loop"
    """A callback of the event loop; the node ends."""


@unique
class FsyncPolicy(StrEnum):
    """When written events are forced to the disk: at each flush, at the close of a file, or only by the kernel."""

    FLUSH = "flush"
    FILE = "file"
    NEVER = "never"


@unique
class BackendChoice(StrEnum):
    """The back end that runs the kernels; auto: CUDA if the machine has a GPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@unique
class DecisionThread(StrEnum):
    """A thread on the way of a decision, of which CPUs and priority can be set."""

    EVENT_LOOP = "event_loop"
    COMPUTE = "compute"
    RECEIVE = "receive"


@unique
class ThreadSetting(StrEnum):
    """A setting of a thread: its CPUs, or a real-time priority."""

    CPUS = "cpus"
    REALTIME = "realtime"


@unique
class CollectionMoment(StrEnum):
    """When the node ran Python's garbage collector: without a MEP, or because the last time is long ago."""

    IDLE = "idle"
    DUE = "due"


@unique
class LogFormat(StrEnum):
    """One JSON object per line for machines, or coloured text for a terminal."""

    JSON = "json"
    CONSOLE = "console"


@unique
class Outcome(StrEnum):
    """The outcome of a command or a reload."""

    OK = "ok"
    REFUSED = "refused"


@unique
class Endpoint(StrEnum):
    """A socket of the node that accepts connections."""

    DATA = "data"
    CONTROL = "control"
    DECISIONS = "decisions"
    EVENTS = "events"
    REQUESTS = "requests"
    HTTP = "http"
    COMBINER = "combiner"
    """The socket of `hltnode combine`, which is a process of its own."""


@unique
class ShadowLoss(StrEnum):
    """Why a shadow node has not decided on a MEP of the productive node."""

    SLOW = "slow"
    """The shadow or its connection was too slow: the tap dropped the MEP."""
    LATE = "late"
    """The productive node closed the MEP much later than the others."""
    REPEATED = "repeated"
    """The productive node was started again, and built a MEP that the shadow has had."""
    DAMAGED = "damaged"
    """A message that is no MEP, or a MEP that this node cannot hold."""
    FOREIGN = "foreign"
    """The MEP is for another chain, or has a source that the run of the shadow does not have."""
    REFUSED = "refused"
    """This node takes no MEPs of the run: see its log."""


@unique
class ConnectionEvent(StrEnum):
    """Events about peers from a ZeroMQ socket monitor."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    ACCEPT_FAILED = "accept_failed"
    """No descriptor is free for connections; counted at each check, up to ten times a second."""
    HANDSHAKE_CUT = "handshake_cut"
    """The connection ended before the handshake: the peer uses another protocol, or it ended."""
    HANDSHAKE_PROTOCOL = "handshake_protocol"
    """The peer uses another security mechanism, or another server key."""
    HANDSHAKE_REFUSED = "handshake_refused"
    """The key of the peer is not on the allow-list."""


@unique
class ConnectionRefusal(StrEnum):
    """Why the node ended a connection."""

    SOCKET_FULL = "socket_full"
    """The socket has reached its limit of connections, and this address has most of them."""
    ADDRESS_FULL = "address_full"
    """The address has reached its limit of connections."""
    UNFINISHED = "unfinished"
    """Its unfinished and queued messages take more memory than the limit."""
    STALLED = "stalled"
    """It did not finish a message in time."""
    IDLE = "idle"
    """It sent no message for too long."""
    MALFORMED = "malformed"
    """It sent a message of far too many parts."""
    UNPERMITTED = "unpermitted"
    """It sent only frames without the token of a feeder, for seconds."""
    FLOOD = "flood"
    """It kept sending more control messages than any feeder."""
    UNEXPECTED_INPUT = "unexpected_input"
    """It sent more to an output than subscriptions need."""
    TOO_OFTEN = "too_often"
    """Its address opens more connections in a time than any correct peer."""
    ADDRESS_REFUSED = "address_refused"
    """Its address is refused for some seconds, because of what earlier connections have sent."""
    UNKNOWN_REFUSED = "unknown_refused"
    """Addresses without a connection of some age are refused: many addresses misuse their connections, or the process
    has grown too much by input of peers."""


@unique
class LoginFailure(StrEnum):
    """Why a peer or a command was refused.

    wrong_role: a known key on a socket that its role does not use; commands_off: an HTTP command to a node without a
    token; too_many: an HTTP command above a limit of attempts; foreign_page: an HTTP command from the page of another
    site in a browser.
    """

    UNKNOWN_KEY = "unknown_key"
    WRONG_ROLE = "wrong_role"
    NOT_A_FEEDER = "not_a_feeder"
    COMMANDS_OFF = "commands_off"
    NO_TOKEN = "no_token"
    WRONG_TOKEN = "wrong_token"
    NOT_AN_OPERATOR = "not_an_operator"
    TOO_MANY = "too_many"
    FOREIGN_PAGE = "foreign_page"


@unique
class Role(StrEnum):
    """Rights of a key: send data, give commands, or receive decisions and events."""

    FEEDER = "feeder"
    OPERATOR = "operator"
    CONSUMER = "consumer"


SOCKET_ENDPOINTS = (Endpoint.DATA, Endpoint.CONTROL, Endpoint.DECISIONS, Endpoint.EVENTS, Endpoint.REQUESTS)


@unique
class OutsideRange(StrEnum):
    """Position of a value outside all bins of a histogram."""

    UNDERFLOW = "underflow"
    OVERFLOW = "overflow"
    NOT_A_NUMBER = "not_a_number"


@unique
class HistogramFileOutcome(StrEnum):
    """The outcome of writing a histogram file."""

    WRITTEN = "written"
    FAILED = "failed"


@unique
class UdpRefusal(StrEnum):
    """Reasons to refuse a datagram, in the order of `Refused` in daemon/udp/packet_joiner.h.

    unknown_sender: its address is in no entry of udp.senders; bad_size: it is longer than allowed, or has another
    length than announced; bad_mfp: its MFP is damaged or cannot be written; foreign_source: not a source of its sender;
    foreign_run: not the run that the node takes; other_burst: its burst begins while another one is being received;
    late: its MEP is closed; ahead: it is more MEPs ahead than are joined at a time; mismatch: it disagrees with its MEP
    in events, bank version or padding; no_room: all memory of the intake waits for the event builder.
    """

    UNKNOWN_SENDER = "unknown_sender"
    TRUNCATED = "truncated"
    BAD_MAGIC = "bad_magic"
    BAD_VERSION = "bad_version"
    BAD_SIZE = "bad_size"
    MALFORMED = "malformed"
    BAD_MFP = "bad_mfp"
    FOREIGN_SOURCE = "foreign_source"
    FOREIGN_RUN = "foreign_run"
    OTHER_BURST = "other_burst"
    LATE = "late"
    DUPLICATE = "duplicate"
    AHEAD = "ahead"
    MISMATCH = "mismatch"
    NO_ROOM = "no_room"


@unique
class HeadRoomRule(StrEnum):
    """What happens to time slices while the buffers are full.

    keep: feeders wait. thin: one of a number of slices is computed, the others are dropped. drop: all are dropped.
    """

    KEEP = "keep"
    THIN = "thin"
    DROP = "drop"


@unique
class StreamTime(StrEnum):
    """Time of the detector that passed through a node of a streaming chain, margins not counted.

    taken: of all slices. late: of those that were closed by their deadline without a source. dropped: of those that a
    rule dropped. kept: of the records of windows; records of neighbouring slices may overlap.
    """

    TAKEN = "taken"
    LATE = "late"
    DROPPED = "dropped"
    KEPT = "kept"


@unique
class WindowCount(StrEnum):
    """What a node counts of the windows of a streaming chain.

    slices, slice_bytes: time slices and the bytes of their MFPs. late_slices: those that were closed by their deadline
    without a source. windows: windows that are kept, before overlapping
    ones are merged. records, hits, bytes: their records, the hits in these, and their bytes.
    """

    SLICES = "slices"
    SLICE_BYTES = "slice_bytes"
    LATE_SLICES = "late_slices"
    WINDOWS = "windows"
    RECORDS = "records"
    HITS = "hits"
    BYTES = "bytes"


@unique
class WindowFault(StrEnum):
    """Windows that are not kept as their chain wants.

    out_of_slice: begins in a margin, in a slice whose times do not fit 62 bits, or in one with another number of
    sub-slices than the first of the run. empty: ends where it begins, or before. cut_off: a record of a window that
    reaches beyond the margin. hit_outside: a hit outside of its sub-slice, as often as a window meets it. bytes_left:
    bytes of a fragment that are no whole hit, in the same way. message_too_large: a decision message without its
    windows.
    """

    OUT_OF_SLICE = "out_of_slice"
    EMPTY = "empty"
    CUT_OFF = "cut_off"
    HIT_OUTSIDE = "hit_outside"
    BYTES_LEFT = "bytes_left"
    MESSAGE_TOO_LARGE = "message_too_large"


@unique
class SilencePolicy(StrEnum):
    """Windows of a slice for which the combiner has not answered: those of the node itself, or none."""

    KEEP = "keep"
    DROP = "drop"


@unique
class HeldEnd(StrEnum):
    """How the batch of a held slice left: with the windows of the combiner, without them after `combiner.timeout_ms`,
    or because its memory was needed."""

    JOINED = "joined"
    TIMEOUT = "timeout"
    NO_ROOM = "no_room"


@unique
class SeedFault(StrEnum):
    """What a node and its combiner could not do.

    unsent: a message with seeds that could not be sent now. refused: a message that the combiner refused. bad_message:
    a message of the combiner that cannot be read. not_waiting: windows of a slice that does not wait for them.
    bad_window: a window that does not fit its slice. whole_slice: a slice with more seeds than a message holds; it is
    kept as a whole if the combiner confirms it. external: an external window above the limit.
    """

    UNSENT = "unsent"
    REFUSED = "refused"
    BAD_MESSAGE = "bad_message"
    NOT_WAITING = "not_waiting"
    BAD_WINDOW = "bad_window"
    WHOLE_SLICE = "whole_slice"
    EXTERNAL = "external"


@unique
class CombinerRefusal(StrEnum):
    """Why a combiner refused a message.

    malformed: it cannot be read, or has more parts than one. not_permitted: the key or the machine of its sender may
    not send it. not_joined: seeds before `join`. name_taken: another connected node has joined under this name. full:
    as many nodes as possible have joined. contradiction: seeds of slices that are cut in another way. external: an
    external window that cannot be kept.
    """

    MALFORMED = "malformed"
    NOT_PERMITTED = "not_permitted"
    NOT_JOINED = "not_joined"
    NAME_TAKEN = "name_taken"
    FULL = "full"
    CONTRADICTION = "contradiction"
    EXTERNAL = "external"


@unique
class CombinedSlice(StrEnum):
    """How a combiner decided a slice: with the seeds of all nodes, without some after its waiting time, or early
    because its memory was needed."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    NO_ROOM = "no_room"
