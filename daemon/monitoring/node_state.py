"""The state of a node at one moment, as its metrics show it; a copy, whose values belong to other parts of the node."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.monitoring.gpu_metrics import GpuReadings
from hltnode.protocol.transport.run_control_messages import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The defaults are those of a node that has just been made; ``run`` is 0 before the first feeder."""

    run_state: RunState = RunState.IDLE
    run: int = 0
    run_active: bool = False
    """The feeders of the run have come, and its end has not."""
    sources: Sequence[int] = ()
    """The sources of the run while it is active."""
    runs_kept: int = 0
    """Runs that are not over, beside the current one: their feeders have not confirmed everything."""
    feeders_connected: int = 0
    lost_feeders: Sequence[str] = ()
    """Names of the feeders of the active run that had more to send and have gone or fallen silent."""
    credits_outstanding: int = 0
    """MEPs allowed and not yet opened."""
    meps_open: int = 0
    fragments_in_build: int = 0
    """Fragments of the MEPs that are open."""
    output_free_bytes: float = math.nan
    """Free space where the event files are; NaN if it cannot be read."""
    output_queue_bytes: int = 0
    """What is gathered of batches and not yet acknowledged."""
    slots: Mapping[SlotState, int] = field(default_factory=lambda: dict.fromkeys(SlotState, 0))
    silent_sources: frozenset[int] = frozenset()
    """Sources of the active run that have not delivered for `builder.silent_source_ms` while others did."""
    sources_of_lost_feeders: frozenset[int] = frozenset()
    """Those of them whose feeder is lost."""
    gpu: GpuReadings | None = None
    """What the driver says of the GPU that computes; None without one, or if it cannot be read."""
