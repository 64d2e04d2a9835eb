"""The state of a node at one moment, for its metrics: a copy of values that other parts of the node own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.monitoring.channel_monitor import ChannelReading
from hltnode.daemon.monitoring.detector_conditions import ConditionReading
from hltnode.daemon.monitoring.metrics.gpu import GpuReadings
from hltnode.protocol.transport.run_control_messages import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The defaults describe a new node; ``run`` is 0 before the first feeder."""

    run_state: RunState = RunState.IDLE
    run: int = 0
    is_shadow: bool = False
    """The node decides on the MEPs of another one, and counts for nothing."""
    run_active: bool = False
    """All feeders of the run have connected, and the run has not ended."""
    sources: Sequence[int] = ()
    """The sources of the run that is active or was the last one."""
    run_waits_seconds: float = 0.0
    """Time for which the current run has lacked feeders; 0 if it lacks none."""
    runs_kept: int = 0
    """Earlier runs that are not over: their feeders have not confirmed everything."""
    feeders_connected: int = 0
    lost_feeders: Sequence[str] = ()
    """Names of the feeders of the current run that disconnected or fell silent before the end of their data."""
    feeders_of_deserted_runs: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The same of each kept run without a connected feeder; an empty name stands for feeders that are not known."""
    credits_outstanding: int = 0
    """MEPs that feeders may send and that are not yet open."""
    meps_open: int = 0
    fragments_in_build: int = 0
    """Fragments of open MEPs."""
    output_filesystem: str = ""
    """Identity of the file system of the event files; nodes that share it have the same."""
    output_free_bytes: float = math.nan
    """Free space of the file system of the event files; NaN if it cannot be read."""
    output_queue_bytes: int = 0
    """Bytes gathered from batches and not yet acknowledged."""
    slots: Mapping[SlotState, int] = field(default_factory=lambda: dict.fromkeys(SlotState, 0))
    silent_sources: frozenset[int] = frozenset()
    """Sources of the active run that did not deliver for `builder.silent_source_ms` while others did."""
    sources_of_lost_feeders: frozenset[int] = frozenset()
    """Silent sources of lost feeders."""
    log_lines_lost: int = 0
    """Lines of the log that were not written."""
    log_fails: bool = False
    """Whether the last line of the log was lost."""
    gpu: GpuReadings | None = None
    """Readings of the GPU that computes; None without a GPU, or if they cannot be read."""
    detector_conditions: Sequence[ConditionReading] = ()
    """Numbers of the detector that histograms measure."""
    channels: Sequence[ChannelReading] = ()
    """Groups of channels whose hits differ from those of their neighbours."""
