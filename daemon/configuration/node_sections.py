"""Sections on the node itself: its name, computing, pages, keys and logs.

`tools/generate_reference.py` writes the docstrings of the keys to docs/reference/configuration.md.
"""

import re
import socket
from typing import Annotated

from pydantic import Field

from hltnode.daemon.common.vocabulary import BackendChoice, LogFormat
from hltnode.daemon.configuration.key_types import (
    KIB,
    MIB,
    Cpus,
    FilePath,
    HttpAddress,
    HttpAddresses,
    SecretPath,
    Section,
)

MAX_NAME = 63


def default_name(host: str | None = None) -> str:
    """The host name as the name of a node: at most 63 characters of those allowed; "node" if none are left."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname() if host is None else host)
    return re.sub(r"^[^A-Za-z0-9]+", "", text)[:MAX_NAME].rstrip("-._") or "node"


class NodeSection(Section):
    """Identity and start of the node."""

    name: str = Field(default_factory=default_name, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """Name of the node in decisions, welcome messages, file names and logs; the host name if not set."""
    run: int = Field(default=0, ge=0, le=0xFFFFFFFF)
    """Run number; 0 accepts the run of the first hello. A start command may name another run."""
    autostart: bool = True
    """Configure and start at once. If false, the node waits in state idle for `hltnode ctl configure` and `start`."""

    unhealthy_after_ms: int = Field(default=30_000, ge=100, le=3_600_000)
    """Time in milliseconds after which /healthz answers 503 if the disk refuses writes, or if built MEPs are not
    acknowledged. The node continues to retry."""


class PipelineSection(Section):
    """Slots, and the back end that computes their batches."""

    slots: int = Field(default=3, ge=2, le=64)
    """Number of slots: with three, one fills, one computes and one is gathered."""
    slot_bytes: int = Field(default=128 * MIB, ge=4 * KIB, le=16_384 * MIB)
    """Input buffer of one slot in bytes (pinned memory with CUDA)."""
    max_events: int = Field(default=4096, ge=1, le=1_048_576)
    """Most events of a batch, and of a MEP."""
    max_events_per_mep: int = Field(default=0, ge=0, le=65_535)
    """Most events of a MEP; 0: as many as of a batch. A small number saves memory: a slot has 8 bytes for each fragment
    that its 65,536 MFPs can have, or that its bytes can hold if these are fewer."""
    flush_deadline_us: int = Field(default=20_000, ge=50, le=60_000_000)
    """Time in microseconds from the first fragment in a slot until the slot is sealed, even if it is not full. Its
    precision is that of the kernel's timers."""
    backend: BackendChoice = BackendChoice.AUTO
    """auto uses CUDA, or the CPU if CuPy, the driver or a GPU is missing. If a present GPU cannot be used, the start
    fails."""
    device: int = Field(default=0, ge=-1, le=1023)
    """Number of the GPU in nvidia-smi, counted from 0 among those in CUDA_VISIBLE_DEVICES; -1: the GPU with the most
    free memory at the start. A node uses one GPU; several GPUs need a node each. Several nodes may share a GPU."""
    device_memory_bytes: int = Field(default=0, ge=0, le=1_048_576 * MIB)
    """Most memory of the GPU in bytes that the node allocates, for a GPU that several nodes share; 0: no bound. The
    start fails if the slots need more. The CUDA context and the code of the kernels come on top."""
    threads: int = Field(default=0, ge=0, le=1024)
    """Threads of the CPU back end; 0 uses one per core of the process."""


class LatencySection(Section):
    """Decisions under a deadline, for a detector that waits for the answer. By default everything is off. With any of
    these keys, the library of histogram files is loaded before the first run instead of during it."""

    decisions_first: bool = False
    """Send the decisions of a batch before its events are copied and the journal has its MEPs. A MEP that was decided
    before a kill may be decided again, unless it came as datagrams. It needs `output.streams` without "accepted".
    Batches with an incomplete MEP or an error keep the usual order, because a second decision on them may differ."""
    deadline_us: int = Field(default=0, ge=0, le=60_000_000)
    """Time in microseconds from the first fragment of a MEP to its decision. A later decision is sent all the same; its
    message has the field `late`, and `hltnode_late_decisions_total` counts it. 0: no deadline."""
    serial: bool = False
    """Compute one batch at a time: the next one starts after the decisions of the one before are sent. On a CPU the
    compute thread runs the kernels itself, which saves two hand-overs between threads. With `udp.endpoint`, MEPs that
    are complete wait for no others while nothing is computed: `pipeline.flush_deadline_us` is then the longest wait.
    With `decisions_first` and one back end thread (`pipeline.threads`), too, the thread that receives the last datagram
    of such a MEP computes it and sends its decision.
    Without `serial`, the transfers and kernels of several batches overlap, which gives a higher rate."""
    cpus: Cpus | None = None
    """CPUs for the event loop and the compute thread: [2, 3]. The threads of the CPU back end keep all CPUs of the
    process; with `serial` the compute thread also runs kernels. Threads that receive datagrams get them if they decide
    MEPs. If not set, no thread is pinned."""
    realtime_priority: int = Field(default=0, ge=0, le=99)
    """Priority of these threads in the real-time class SCHED_FIFO; 0: the normal class. If the system refuses it,
    the node logs a warning and runs without."""
    quiet_collector: bool = False
    """Switch off the automatic runs of Python's garbage collector. The node then collects while it has no MEP, and at
    the latest after 60 s."""

    @property
    def is_asked(self) -> bool:
        """Whether any key asks for short latencies."""
        return self != LatencySection()


class GeometrySection(Section):
    """Description of the detector."""

    directory: FilePath | None = None
    """Directory with the geometry files of the chain; default: its built-in geometry."""


class ConditionsSection(Section):
    """The conditions of the runs: positions of the detector, beam, magnet, masked channels."""

    folder: FilePath | None = None
    """Folder with the conditions of each run (conditions.toml); a run without conditions is refused. Read at the start
    and at each reload. If not set, every run has the conditions of the geometry and of the trigger configuration."""


class TriggerSection(Section):
    """The chain, and its trigger configuration."""

    chain: str = Field(default="lhcb", min_length=1)
    """Name of the installed chain that runs (an entry point of the group `hltnode.chains`)."""
    file: FilePath | None = None
    """TOML file with sequence constants and lines; if not set, the built-in trigger configuration."""
    follow_conditions: bool = False
    """Take the conditions that a run has measured, such as the position of the beam, for the next run. Its TCK changes
    with them. Each node measures for itself, so nodes that share a run would decide with different keys."""


class HttpSection(Section):
    """The status page, /farm, /metrics, /histograms, /history, /overview, /healthz, /readyz, /status and /control."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on. The pages need no password and the token is not encrypted: use only localhost."""
    port: int = Field(default=9105, ge=0, le=65_535)
    """TCP port; 0 takes a free one."""
    host_names: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Host names under which the pages answer, in addition to localhost and addresses. Set them if a proxy passes on
    its own name. If not set, the pages answer under all names, unless the node listens only on this machine."""
    event_picture_s: float = Field(default=10.0, ge=0.0, le=3600.0)
    """Time in seconds between two accepted events that are drawn for the status page while it is open; 0: no event is
    drawn."""
    farm_nodes: HttpAddresses | None = None
    """HTTP addresses of the nodes of the farm, for the page /farm: ["http://node-1:9105", "http://node-2:9105"]. This
    node reads their /overview while a browser shows the page. If not set, there is no such page."""
    documentation: HttpAddress | None = None
    """Address of the documentation (build/site of `make docs`), to which the pages link. If not set, there is no
    link."""


class SecuritySection(Section):
    """Keys and tokens, always in files. A path may begin with $CREDENTIALS_DIRECTORY/ (systemd's LoadCredential=)."""

    server_key: SecretPath | None = None
    """Secret key file of this node (`hltnode keys create`). If set, all sockets except data accept only CURVE."""
    feeders: SecretPath | None = None
    """Directory with the public keys (*.key) of the feeders: they may connect to control and data, and send data."""
    operators: SecretPath | None = None
    """Directory with the public keys of operators: they may give commands on control, and receive all outputs."""
    consumers: SecretPath | None = None
    """Directory with the public keys of consumers: they may receive decisions and events, and ask at
    the request socket (`requests.endpoint`), and nothing else."""
    encrypt_data: bool = False
    """CURVE on the data socket as well; one stream is then limited to about 8 Gbit/s."""
    http_token_file: SecretPath | None = None
    """File with the token that POST /control/... needs. Without it HTTP accepts no commands."""


class LogSection(Section):
    """Log lines on standard error."""

    level: str = Field(default="info", pattern=r"^(debug|info|warning|error|critical)$")
    """debug, info, warning, error or critical."""
    format: LogFormat = LogFormat.JSON
    """json for production, console for a terminal."""
