"""Sections on the node itself: its name, computing, pages, keys and logs.

`tools/generate_reference.py` writes the docstrings of the keys to docs/reference/configuration.md.
"""

import socket
from typing import Annotated

from pydantic import Field

from hltnode.daemon.common.vocabulary import BackendChoice, LogFormat
from hltnode.daemon.configuration.key_types import KIB, MIB, FilePath, SecretPath, Section


class NodeSection(Section):
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


class PipelineSection(Section):
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


class GeometrySection(Section):
    """Description of the detector."""

    directory: FilePath | None = None
    """Directory with the geometry files of the chain; default: the description that is built into it."""


class TriggerSection(Section):
    """What is computed and selected."""

    chain: str = Field(default="lhcb", min_length=1)
    """Which of the installed chains runs (entry points of the group `hltnode.chains`)."""
    file: FilePath | None = None
    """TOML file with sequence constants and lines; if not set, the built-in trigger configuration."""


class HttpSection(Section):
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


class SecuritySection(Section):
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


class LogSection(Section):
    """Log lines on standard error."""

    level: str = Field(default="info", pattern=r"^(debug|info|warning|error|critical)$")
    """debug, info, warning, error or critical."""
    format: LogFormat = LogFormat.JSON
    """json for production, console for a terminal."""
