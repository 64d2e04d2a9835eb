"""What the node tells of itself: /status, and the shorter answer to the status command."""

from collections.abc import Callable
from typing import Any

from hltnode.daemon.event_building.accounting import accounting
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.metrics import BuildInfo
from hltnode.daemon.readout.feeder_protocol import RunCoordinator
from hltnode.daemon.readout.silent_sources import SourceSilence
from hltnode.processing.framework.memory_plan import SlotMemory

# /status without the lists that grow with the site: a reply on the control socket is small.
_SUMMARY = ("node", "session", "state", "run", "version", "tck", "accounting")


def memory_status(memory: SlotMemory) -> dict[str, int]:
    """Bytes of a slot by kind: device, pinned, and those of each worker thread."""
    return {"device": memory.device, "pinned": memory.pinned, "thread": memory.thread}


class NodeStatus:
    """Reads the parts of a node when somebody asks; in the event loop's thread."""

    def __init__(
        self,
        info: BuildInfo,
        session: str,
        counters: Counters,
        coordinator: RunCoordinator,
        silence: SourceSilence,
        memory: SlotMemory,
        clock_ns: Callable[[], int],
    ) -> None:
        self._info = info
        self._session = session
        self._counters = counters
        self._coordinator = coordinator
        self._silence = silence
        self._memory = memory
        self._clock_ns = clock_ns

    def full(self) -> dict[str, Any]:
        """What /status shows besides the health."""
        info, counters, builder = self._info, self._counters, self._coordinator.builder
        return {
            "node": info.node,
            "session": self._session,
            "state": counters.operation.state,
            "run": builder.run,
            "version": info.version,
            "backend": info.backend,
            "tck": info.tck,
            "lines": list(counters.lines),
            "feeders": self._coordinator.feeders(self._clock_ns()),
            "config_version": counters.operation.config_version,
            "sources": len(builder.sources),
            "silent_sources": self._silence.silent,
            "credits": builder.window.outstanding,
            "slot_bytes": memory_status(self._memory),
            "slots": {str(state): count for state, count in builder.pool.by_state().items()},
            "events": {
                "processed": counters.events_processed,
                "accepted": counters.events_accepted,
                "accepted_by_line": dict(zip(counters.lines, counters.line_accepts, strict=True)),
            },
            "accounting": accounting(counters, builder),
        }

    def summary(self) -> dict[str, Any]:
        """What the status command tells."""
        status = self.full()
        return {key: status[key] for key in _SUMMARY}
