"""The closed sets of words that code, metrics, decisions and logs share.

A member's value is the label value in Prometheus, so the two cannot drift apart. What is sent to the feeder, too, is in
the protocol: `hltnode.protocol.errors.RejectReason`, `hltnode.protocol.transport.refusals`.
"""

from enum import StrEnum, unique


@unique
class CloseReason(StrEnum):
    """Why a MEP was closed.

    overtaken: every source that is missing has delivered a younger MEP; evicted: no place was free, and complete MEPs
    waited for this one.
    """

    COMPLETE = "complete"
    TIMEOUT = "timeout"
    OVERTAKEN = "overtaken"
    EVICTED = "evicted"
    END_OF_RUN = "end_of_run"


@unique
class RunEnd(StrEnum):
    """How a run ended here: confirmed by each of its feeders, left and kept, or closed by an operator."""

    CONFIRMED = "confirmed"
    LEFT = "left"
    CLOSED = "closed"


@unique
class IncompletePolicy(StrEnum):
    """What becomes of an incomplete MEP: built and flagged, or all its events to the error stream."""

    BUILD = "build"
    ERROR = "error"


@unique
class SlotState(StrEnum):
    """Where a slot is on its way; see docs/architecture.md.

    A back end takes copy to the device, kernels and copy back as one job: such a slot is in `run` all that time.
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
class MepStage(StrEnum):
    """A part of the way of a MEP, from its first fragment until its decision is published."""

    BUILD = "build"
    """From its first fragment until it is closed."""
    SEAL = "seal"
    """Until its slot is sealed."""
    QUEUE = "queue"
    """Until the back end gets its batch."""
    COMPUTE = "compute"
    """Until the results are there."""
    GATHER = "gather"
    """Until what is kept is taken out of the slot."""
    WRITE = "write"
    """Until that is written, and noted in the journal."""
    PUBLISH = "publish"
    """Until decisions and events are with the sockets."""


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
    """What an output does when its consumer is slow: hold the node's credits, drop the new, or drop the oldest."""

    WAIT = "wait"
    DROP_NEW = "drop_new"
    DROP_OLD = "drop_old"


@unique
class EventSocketKind(StrEnum):
    """How kept events leave: each to one consumer (push), or all to every subscriber (pub)."""

    PUSH = "push"
    PUB = "pub"


@unique
class MonitorContent(StrEnum):
    """What the monitoring sample consists of."""

    DECISIONS = "decisions"
    EVENTS = "events"


@unique
class DropReason(StrEnum):
    """Why a message of an output was not sent."""

    SLOW_SUBSCRIBER = "slow_subscriber"


@unique
class WriteErrorKind(StrEnum):
    """What went wrong on the disk; the writer keeps the events and tries again in every case."""

    DISK_FULL = "disk_full"
    IO = "io"


@unique
class QuarantineReason(StrEnum):
    """Why bytes of an event file, or a journal, lie in quarantine.

    not_acknowledged: the journal does not say whose they are; revoked: a feeder gave their MEPs to another node;
    damaged: they are not what was written, or belong to a MEP of which other events are not.
    """

    NOT_ACKNOWLEDGED = "not_acknowledged"
    REVOKED = "revoked"
    DAMAGED = "damaged"


@unique
class DeadTimeReason(StrEnum):
    """Why the node could not take data although feeders had data."""

    FEEDER = "feeder"
    """Every slot waits for fragments of a feeder that is behind the others, and none is with the back end."""
    COMPUTING = "computing"
    """The back end has the slots."""
    DISK = "disk"
    """What is gathered waits for the disk, or the disk refuses."""
    CONSUMER = "consumer"
    """What is written waits for the consumer of an output."""
    PAUSED = "paused"
    """An operator has paused the run."""


@unique
class ErrorPlace(StrEnum):
    """Where an error was contained that nothing else counts."""

    LOOP = "loop"
    """A callback of the event loop; the node ends."""


@unique
class FsyncPolicy(StrEnum):
    """When written events are forced to the disk: at each flush, when a file is closed, or by the kernel alone."""

    FLUSH = "flush"
    FILE = "file"
    NEVER = "never"


@unique
class BackendChoice(StrEnum):
    """Which back end runs the kernels; auto takes CUDA where a GPU is there."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@unique
class LogFormat(StrEnum):
    """One JSON object per line for machines, or coloured text for a terminal."""

    JSON = "json"
    CONSOLE = "console"


@unique
class Outcome(StrEnum):
    """What became of a command or a reload."""

    OK = "ok"
    REFUSED = "refused"


@unique
class Endpoint(StrEnum):
    """A socket of the node that others connect to."""

    DATA = "data"
    CONTROL = "control"
    DECISIONS = "decisions"
    EVENTS = "events"
    HTTP = "http"


@unique
class ConnectionEvent(StrEnum):
    """What a ZeroMQ socket monitor reports about peers."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    ACCEPT_FAILED = "accept_failed"
    HANDSHAKE_CUT = "handshake_cut"
    """The connection ended before the handshake did: a peer with another protocol, or one that ended."""
    HANDSHAKE_PROTOCOL = "handshake_protocol"
    """The peer does not use our mechanism, or encrypts for another server key."""
    HANDSHAKE_REFUSED = "handshake_refused"
    """The key of the peer is not on the allow-list."""


@unique
class ConnectionRefusal(StrEnum):
    """Why the node has ended a connection."""

    SOCKET_FULL = "socket_full"
    """The socket has as many connections as it may, and this address most of them."""
    ADDRESS_FULL = "address_full"
    """Too many connections of one address."""
    UNFINISHED = "unfinished"
    """It holds more memory with messages that are unfinished or queued than it may."""
    STALLED = "stalled"
    """Its message was not finished in time."""
    IDLE = "idle"
    """It has sent no message for too long."""
    MALFORMED = "malformed"
    """It has sent a message of far too many parts."""
    UNEXPECTED_INPUT = "unexpected_input"
    """It has sent more to an output than subscriptions need."""


@unique
class LoginFailure(StrEnum):
    """Why a peer or a command was refused.

    wrong_role: a known key on a socket that its role does not use; commands_off: a command over HTTP to a node that
    has no token.
    """

    UNKNOWN_KEY = "unknown_key"
    WRONG_ROLE = "wrong_role"
    NOT_A_FEEDER = "not_a_feeder"
    COMMANDS_OFF = "commands_off"
    NO_TOKEN = "no_token"
    WRONG_TOKEN = "wrong_token"
    NOT_AN_OPERATOR = "not_an_operator"


@unique
class Role(StrEnum):
    """What the owner of a key may do: send data, give commands, or receive decisions and events."""

    FEEDER = "feeder"
    OPERATOR = "operator"
    CONSUMER = "consumer"


SOCKET_ENDPOINTS = (Endpoint.DATA, Endpoint.CONTROL, Endpoint.DECISIONS, Endpoint.EVENTS)


@unique
class OutsideRange(StrEnum):
    """Where a value is that belongs in no bin of a histogram."""

    UNDERFLOW = "underflow"
    OVERFLOW = "overflow"
    NOT_A_NUMBER = "not_a_number"


@unique
class HistogramFileOutcome(StrEnum):
    """What became of a file of histograms."""

    WRITTEN = "written"
    FAILED = "failed"
