"""The configuration of a node: one TOML file, overridden by `HLTNODE_SECTION__KEY` in the environment.

The attribute docstrings below are the reference: `tools/generate_reference.py` writes them to
docs/reference/configuration.md.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from hltnode.daemon.common.endpoints import check_endpoint
from hltnode.daemon.common.vocabulary import (
    BackendChoice,
    CloseReason,
    EventSocketKind,
    FsyncPolicy,
    IncompletePolicy,
    LogFormat,
    MonitorContent,
    SlowConsumerPolicy,
)

ENV_PREFIX = "HLTNODE_"
ENV_DELIMITER = "__"

CREDENTIALS_PREFIX = "$CREDENTIALS_DIRECTORY/"

# What fits the address of a Unix socket.
MAX_UNIX_PATH = 107

KIB = 1024
MIB = 1024 * KIB


def _check_file_policy(policy: SlowConsumerPolicy) -> SlowConsumerPolicy:
    if policy is SlowConsumerPolicy.DROP_OLD:
        raise ValueError("expected wait or drop_new: what is in a file stays there")
    return policy


def _check_unix_path(path: Path) -> Path:
    if not path.is_absolute() or len(os.fsencode(path)) > MAX_UNIX_PATH:
        raise ValueError(f"expected an absolute path of at most {MAX_UNIX_PATH} bytes")
    return path


def _check_path(value: object) -> object:
    """An empty text would be the current folder."""
    if value == "":
        raise ValueError("expected a path")
    return value


def _check_sources(sources: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(sources)) != len(sources):
        raise ValueError("expected each source id once")
    return sources


Endpoint = Annotated[str, AfterValidator(check_endpoint)]
FilePath = Annotated[Path, BeforeValidator(_check_path)]
FilePolicy = Annotated[SlowConsumerPolicy, AfterValidator(_check_file_policy)]
SourceId = Annotated[int, Field(ge=0, le=0xFFFF)]


def variable_of(section: str, key: str) -> str:
    """The environment variable that overrides a key."""
    return f"{ENV_PREFIX}{section}{ENV_DELIMITER}{key}".upper()


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NodeSection(_Section):
    """Who this node is."""

    name: str = Field(default_factory=socket.gethostname, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """Name of the node in decisions, welcome messages, file names and logs; the host name if not set."""
    run: int = Field(default=0, ge=0, le=0xFFFFFFFF)
    """Run number; 0 takes the run of the first hello. A start command may name another one."""
    autostart: bool = True
    """Configure and start at once; if false, the node waits in state idle for `hltnode ctl configure` and `start`."""

    unhealthy_after_ms: int = Field(default=30_000, ge=100, le=3_600_000)
    """Time in milliseconds after which /healthz answers 503 when the disk refuses, or when MEPs are built and none is
    acknowledged. The node goes on trying."""


class NetworkSection(_Section):
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


class SharedMemorySection(_Section):
    """Feeders of this machine whose fragments are read from memory of theirs; only places of fragments are sent."""

    socket: Annotated[Path, AfterValidator(_check_unix_path)] | None = None
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


class LimitsSection(_Section):
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


class BuilderSection(_Section):
    """How fragments become MEPs."""

    min_feeders: int = Field(default=1, ge=1, le=4096)
    """Number of feeders that have to be connected before the node is ready and a run starts. Feeders that say that they
    share the sources of a run with others (`hltnode replay --sources`, `--part`, `--jobs`) are awaited beyond that."""
    max_feeders: int = Field(default=512, ge=1, le=4096)
    """The most feeders that may take part in a run; others are refused."""
    expected_sources: Annotated[tuple[SourceId, ...], Field(min_length=1), AfterValidator(_check_sources)] | None = None
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


class PipelineSection(_Section):
    """Slots, and the back end that computes their batches."""

    slots: int = Field(default=3, ge=2, le=64)
    """Number of slots: with three, one fills, one computes and one is gathered."""
    slot_bytes: int = Field(default=128 * MIB, ge=4 * KIB, le=16_384 * MIB)
    """Input buffer of one slot in bytes (pinned memory with CUDA)."""
    max_events: int = Field(default=4096, ge=1, le=1_048_576)
    """Most events in one batch; also the most events that a MEP may carry."""
    flush_deadline_us: int = Field(default=20_000, ge=50, le=60_000_000)
    """Time in microseconds from the first fragment in a slot until the slot is sealed even if it is not full; it is
    kept to the resolution of the kernel's timers."""
    backend: BackendChoice = BackendChoice.AUTO
    """auto takes CUDA, or the CPU where CuPy, the driver or a GPU is not there. A GPU that is there and cannot be used
    ends the start."""
    device: int = Field(default=0, ge=0, le=1023)
    """Which of several GPUs computes: its number in nvidia-smi, counted from 0 among those that CUDA_VISIBLE_DEVICES
    leaves. A node uses one GPU; several GPUs need a node each."""
    threads: int = Field(default=0, ge=0, le=1024)
    """Threads of the CPU back end; 0 takes one per core that the process may use."""


class GeometrySection(_Section):
    """Description of the detector."""

    directory: FilePath | None = None
    """Directory with the geometry files of the chain; default: the description that is built into it."""


class TriggerSection(_Section):
    """What is computed and selected."""

    chain: str = Field(default="lhcb", min_length=1)
    """Which of the installed chains runs (entry points of the group `hltnode.chains`)."""
    file: FilePath | None = None
    """TOML file with sequence constants and lines; if not set, the built-in trigger configuration."""


class OutputSection(_Section):
    """Files of accepted events and of the error stream."""

    directory: FilePath = Path("output")
    """Directory of the MDF files; it is created if its parent exists."""
    max_file_bytes: int = Field(default=2048 * MIB, ge=64 * KIB)
    """A file is closed before it grows beyond this size in bytes; it becomes *.mdf when it cannot change any more."""
    max_file_events: int = Field(default=1_000_000, ge=1)
    """A file is closed after this many events."""
    fsync: FsyncPolicy = FsyncPolicy.FILE
    """When events and journal are forced to the disk; what a power cut may cost follows from it, a kill costs nothing.

    flush: before each acknowledgement; a power cut costs no acknowledged event. file: before a file gets its final
    name; a power cut may cost acknowledged events of the files that are *.mdf.part. never: the kernel decides; a power
    cut may cost or double any event, those in finished files included.
    """
    policy: FilePolicy = SlowConsumerPolicy.WAIT
    """Accepted events when a write fails: wait holds back the credits, drop_new drops and counts the events."""
    error_policy: FilePolicy = SlowConsumerPolicy.WAIT
    """The same for the error stream."""
    checksums: bool = False
    """Whether MDF records have a checksum; LHCb's own files have none."""
    queue_bytes: int = Field(default=256 * MIB, ge=MIB)
    """Kept events and decisions, in bytes, that may wait for the disk and the consumers; above it batches stay in their
    slots and the credits are held back."""


class DecisionsSection(_Section):
    """The decision stream, at `network.decisions`."""

    policy: SlowConsumerPolicy = SlowConsumerPolicy.DROP_NEW
    """Slow consumer policy: wait (a slow subscriber holds back the node), drop_new (new decisions are dropped after 50
    ms) or drop_old (the oldest are dropped)."""
    queue: int = Field(default=1000, ge=1, le=1_000_000)
    """Decisions kept per subscriber; with drop_old twice this number. One takes 4 bytes per event, and 4 more for each
    32 lines."""


class EventSocketSection(_Section):
    """Kept events on a socket."""

    endpoint: Endpoint | None = None
    """Socket that sends the events, in addition to the files; off if not set."""
    kind: EventSocketKind = EventSocketKind.PUSH
    """push: each event to one of the consumers; pub: all events to every subscriber (topic A accepted, E error)."""
    policy: SlowConsumerPolicy = SlowConsumerPolicy.WAIT
    """Slow consumer policy: wait (a slow consumer holds back the node), drop_new (new events are dropped) or drop_old
    (the oldest are dropped)."""
    queue: int = Field(default=64, ge=1, le=1_000_000)
    """Events kept per consumer; with drop_old twice this number."""


class EventsSection(EventSocketSection):
    """Accepted events on a socket: header and MDF record per message."""


class ErrorsSection(EventSocketSection):
    """The error stream, events that carry a flag, on a socket: header and MDF record per message."""


class MonitorSection(_Section):
    """A sample for monitoring on a PUB socket; what a monitor cannot take at once is dropped."""

    endpoint: Endpoint | None = None
    """Socket that sends the sample; off if not set."""
    content: MonitorContent = MonitorContent.DECISIONS
    """decisions, or events (accepted and error stream)."""
    fraction: float = Field(default=0.01, gt=0.0, le=1.0)
    """Fraction of the decisions or events that are sampled."""
    max_rate: float = Field(default=100.0, gt=0.0, le=1e6)
    """Largest number of messages per second."""


class TapSection(_Section):
    """The tap: publishes the fragments that the node takes, for `hltnode record`. It never holds the node up."""

    endpoint: Endpoint | None = None
    """Socket of the tap (XPUB); off if not set."""
    buffer_bytes: int = Field(default=64 * MIB, ge=MIB, le=65_536 * MIB)
    """Bytes of fragments that wait for a slow recorder; MEPs that come beyond that are dropped from the recording."""


class HistogramsSection(_Section):
    """Monitoring histograms: what the node does with those that the trigger configuration declares."""

    buckets: int = Field(default=50, ge=0, le=100)
    """The most buckets that a histogram has in /metrics, adjacent bins together; 0 leaves histograms out of it.
    /histograms and files have all bins."""
    file_period_s: float = Field(default=60.0, ge=0.0, le=86_400.0)
    """Time in seconds from one file of a run that goes on to the next; 0: a file at the end of the run alone."""


class HttpSection(_Section):
    """The status page, /metrics, /histograms, /healthz, /readyz, /status and /control."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on. The pages need no password and the token is not encrypted: use only localhost."""
    port: int = Field(default=9105, ge=0, le=65_535)
    """TCP port; 0 takes a free one."""
    host_names: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Names besides localhost and addresses to which the pages answer, if a proxy passes on the name by which it was
    asked. If none is set, all names are answered to unless the node listens on this machine only."""
    event_picture_s: float = Field(default=10.0, ge=0.0, le=3600.0)
    """Time in seconds from one accepted event that is drawn for the status page, while somebody looks at it, to the
    next one; 0: no event is drawn."""


def _expand_credentials(value: object) -> object:
    """systemd puts the secrets of a service in a directory of its own, named by this variable."""
    _check_path(value)
    if not isinstance(value, str) or not value.startswith(CREDENTIALS_PREFIX):
        return value
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    if not directory:
        raise ValueError("expected the variable CREDENTIALS_DIRECTORY, which systemd sets for LoadCredential=")
    return str(Path(directory) / value.removeprefix(CREDENTIALS_PREFIX))


SecretPath = Annotated[Path, BeforeValidator(_expand_credentials)]


class SecuritySection(_Section):
    """Keys and tokens, always in files. A path may begin with $CREDENTIALS_DIRECTORY/ (systemd's LoadCredential=)."""

    server_key: SecretPath | None = None
    """Secret key file of this node (`hltnode keys create`). If set, all sockets but data speak CURVE only."""
    feeders: SecretPath | None = None
    """Directory with the public keys (*.key) of the feeders: they may connect to control and data, and send data."""
    operators: SecretPath | None = None
    """Directory with the public keys of operators: they may give commands on control, and receive all outputs."""
    consumers: SecretPath | None = None
    """Directory with the public keys of consumers: they may receive decisions and events, and nothing else."""
    encrypt_data: bool = False
    """CURVE on the data socket as well; one stream is then limited to about 8 Gbit/s."""
    http_token_file: SecretPath | None = None
    """File with the token that POST /control/... needs; without it HTTP takes no commands."""


class LogSection(_Section):
    """Log lines on standard error."""

    level: str = Field(default="info", pattern=r"^(debug|info|warning|error|critical)$")
    """debug, info, warning, error or critical."""
    format: LogFormat = LogFormat.JSON
    """json for production, console for a terminal."""


class NodeConfig(BaseSettings):
    """All settings of a node at its start. Immutable; unknown keys are errors."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
        case_sensitive=False,
        frozen=True,
        extra="forbid",
    )

    node: NodeSection = Field(default_factory=NodeSection)
    network: NetworkSection = Field(default_factory=NetworkSection)
    shared_memory: SharedMemorySection = Field(default_factory=SharedMemorySection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    builder: BuilderSection = Field(default_factory=BuilderSection)
    pipeline: PipelineSection = Field(default_factory=PipelineSection)
    geometry: GeometrySection = Field(default_factory=GeometrySection)
    trigger: TriggerSection = Field(default_factory=TriggerSection)
    output: OutputSection = Field(default_factory=OutputSection)
    decisions: DecisionsSection = Field(default_factory=DecisionsSection)
    events: EventsSection = Field(default_factory=EventsSection)
    errors: ErrorsSection = Field(default_factory=ErrorsSection)
    monitor: MonitorSection = Field(default_factory=MonitorSection)
    tap: TapSection = Field(default_factory=TapSection)
    histograms: HistogramsSection = Field(default_factory=HistogramsSection)
    http: HttpSection = Field(default_factory=HttpSection)
    security: SecuritySection = Field(default_factory=SecuritySection)
    log: LogSection = Field(default_factory=LogSection)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment overrides the file, which is given as keyword arguments."""
        return env_settings, init_settings

    @property
    def n_sockets(self) -> int:
        """Number of sockets that peers may connect to, HTTP aside."""
        return len(self.endpoints())

    def endpoints(self) -> dict[str, str]:
        """The endpoints that the node binds, by their keys."""
        found = {f"network.{key}": str(getattr(self.network, key)) for key in ("data", "control", "decisions")}
        for section in ("events", "errors", "monitor", "tap"):
            endpoint = getattr(self, section).endpoint
            if endpoint is not None:
                found[f"{section}.endpoint"] = endpoint
        return found

    @model_validator(mode="after")
    def _sections_fit(self) -> Self:
        """Raises ValueError with a line for each problem."""
        problems = [*self._sizes(), *self._feeders(), *self._keys()]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _sizes(self) -> Iterator[str]:
        if self.network.max_frame_bytes > self.builder.max_mep_bytes:
            yield "network.max_frame_bytes: expected at most builder.max_mep_bytes: a MFP is part of a MEP"
        if self.builder.max_mep_bytes > self.pipeline.slot_bytes:
            yield "builder.max_mep_bytes: expected at most pipeline.slot_bytes: a slot holds whole MEPs"
        keys: dict[str, str] = {}
        for key, endpoint in self.endpoints().items():
            if not _is_wildcard(endpoint) and (first := keys.setdefault(endpoint, key)) != key:
                yield f"{key}: expected another endpoint than that of {first}, not {endpoint!r}"

    def _feeders(self) -> Iterator[str]:
        if self.builder.min_feeders > self.builder.max_feeders:
            yield "builder.max_feeders: expected at least builder.min_feeders"
        if self.builder.min_feeders > self.limits.connections:
            yield "limits.connections: expected at least builder.min_feeders: each has one to every socket"
        unfinished = self.limits.unfinished_bytes
        if unfinished is not None and unfinished < self.network.max_frame_bytes:
            yield "limits.unfinished_bytes: expected at least network.max_frame_bytes"

    def _keys(self) -> Iterator[str]:
        security = self.security
        if security.server_key is not None and security.feeders is None:
            yield "security.feeders: expected with security.server_key: without it nobody can feed"
        need_one = [key for key in ("feeders", "operators", "consumers", "encrypt_data") if getattr(security, key)]
        if security.server_key is None and need_one:
            yield f"security.server_key: expected with {' and '.join(f'security.{key}' for key in need_one)}"


def _is_wildcard(endpoint: str) -> bool:
    return endpoint.startswith("tcp://") and endpoint.rpartition(":")[2] in ("*", "0")
