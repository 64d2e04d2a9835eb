"""The state of a node: /status, the shorter answer to the status command, and the state in metrics."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from typing import Any

from hltnode.daemon.common.log import lines_lost, log_fails
from hltnode.daemon.event_building.accounting import accounting
from hltnode.daemon.machine.free_space import FreeSpace
from hltnode.daemon.machine.gpu_reader import GpuReader
from hltnode.daemon.monitoring.channel_monitor import ChannelReading
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.detector_conditions import ConditionReading
from hltnode.daemon.monitoring.metrics.collector import BuildInfo
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.run_feeders import MissingFeeder
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.processing.framework.memory_plan import SlotMemory
from hltnode.protocol.transport.run_control_messages import RunState

# /status without lists that grow with the site: a reply on the control socket must be small.
_SUMMARY = ("node", "session", "shadow_of", "combiner", "state", "run", "closing", "kept", "version", "chain", "tck",
            "accounting")  # fmt: skip
# Largest number of run numbers in the shorter answer.
SUMMARY_RUNS = 16
# Largest number of source ids shown for a MEP.
SHOWN_SOURCES = 32
# A combiner answers every second. The alert HltnodeCombinerSilent has the same time.
SILENT_SECONDS = 5.0
# Largest number of groups of channels shown, of each kind and finding.
SHOWN_CHANNELS = 32
# Most missing feeders shown.
SHOWN_MISSING = 64


def memory_status(memory: SlotMemory) -> dict[str, int]:
    """Bytes of a slot by kind: device, pinned, and per worker thread."""
    return {"device": memory.device, "pinned": memory.pinned, "thread": memory.thread}


def streaming_status(counters: Counters) -> dict[str, Any]:
    """Slices and windows of a streaming chain since the start of the node.

    dropped: slices by rule. late: sources that were most often late, with their slices. seconds: time of the detector.
    flagged: sub-slices by flag, without those that no flag has.
    """
    late = nlargest(SHOWN_SOURCES, ((of.late, source) for source, of in counters.sources.items() if of.late))
    return {
        **{str(count): n for count, n in counters.windows.items()},
        "dropped": {str(rule): n for rule, n in counters.slices_dropped.items()},
        "late_sources": [{"source": source, "slices": n} for n, source in late],
        "seconds": {str(time): ns / 1e9 for time, ns in counters.stream_ns.items()},
        "faults": {str(fault): n for fault, n in counters.window_faults.items()},
        "flagged": {name: n for name, n in counters.events_flagged.items() if n},
    }


class NodeStatus:
    """Reads the state of all parts on request, in the event loop."""

    def __init__(
        self,
        info: Callable[[], BuildInfo],
        session: str,
        counters: Counters,
        control: BuilderControl,
        run_state: Callable[[], RunState],
        silence: SilentSourceMonitor,
        memory: SlotMemory,
        free_space: FreeSpace,
        room: OutputQueue,
        clock: ReadingClock,
        gpu: GpuReader,
        conditions: Callable[[], Sequence[ConditionReading]],
        channels: Callable[[], Sequence[ChannelReading]],
        wall_s: Callable[[], float] = time.time,
        shadow_of: str | None = None,
        combiner: str | None = None,
    ) -> None:
        self._info = info
        self._session = session
        self._counters = counters
        self._control = control
        self._run_state = run_state
        self._silence = silence
        self._memory = memory
        self._free_space = free_space
        self._room = room
        self._clock = clock
        self._gpu = gpu
        self._conditions = conditions
        self._channels = channels
        self._wall_s = wall_s
        self._shadow_of = shadow_of
        self._combiner = combiner

    def state(self) -> NodeState:
        """The current state of the node, for metrics."""
        control, builder = self._control, self._control.builder
        now_ns = self._clock.now_ns
        current = control.registry.current
        active = current is not None and current.started and not builder.closed
        lost = control.lost_feeders(now_ns)
        silent = self._silence.silent if active else frozenset()
        return NodeState(
            run_state=self._run_state(),
            run=builder.run or 0,
            is_shadow=self._shadow_of is not None,
            run_active=active,
            sources=builder.sources,
            run_waits_seconds=control.waiting_seconds(now_ns),
            runs_kept=len(control.registry.kept),
            feeders_connected=control.registry.connected(now_ns),
            lost_feeders=[feeder.hello.feeder for feeder in lost],
            feeders_of_deserted_runs={
                run: [feeder.name for feeder in feeders] for run, feeders in control.deserted_runs(now_ns).items()
            },
            credits_outstanding=builder.window.outstanding,
            meps_open=len(builder.open),
            fragments_in_build=builder.fragments_in_build,
            output_filesystem=self._free_space.filesystem,
            output_free_bytes=math.nan if self._free_space.nbytes is None else self._free_space.nbytes,
            output_queue_bytes=self._room.nbytes,
            slots=builder.pool.by_state(),
            silent_sources=silent,
            sources_of_lost_feeders=silent.intersection(source for feeder in lost for source in feeder.hello.sources),
            log_lines_lost=lines_lost(),
            log_fails=log_fails(),
            gpu=self._gpu.readings,
            detector_conditions=self._conditions(),
            channels=self._channels(),
        )

    def full(self) -> dict[str, Any]:
        """Content of /status, without the health."""
        info, counters, builder = self._info(), self._counters, self._control.builder
        missing = self._missing_feeders()
        return {
            "node": info.node,
            "session": self._session,
            "shadow_of": self._shadow_of,
            "shadow_meps": None if self._shadow_of is None else self._shadow_meps(),
            "combiner": None if self._combiner is None else self._held_slices(),
            "state": self._run_state(),
            "run": builder.run,
            "closing": self._control.closing,
            "waits_for": self._control.waiting,
            "waits_seconds": round(self._control.waiting_seconds(self._clock.now_ns), 1),
            "kept": len(self._control.registry.kept),
            "kept_runs": self._control.kept_runs(self._clock.now_ns),
            "version": info.version,
            "backend": info.backend,
            "chain": info.chain,
            "tck": info.tck,
            "lines": list(counters.lines),
            "feeders": self._control.feeders(self._clock.now_ns),
            "n_missing_feeders": len(missing),
            "missing_feeders": [self._shown_missing(feeder) for feeder in missing[:SHOWN_MISSING]],
            "config_version": counters.operation.config_version,
            "sources": len(builder.sources),
            "silent_sources": sorted(self._silence.silent),
            "oldest_open_mep": self._oldest_open_mep(),
            "output_filesystem": self._free_space.filesystem,
            "output_free_bytes": self._free_space.nbytes,
            "output_queue_bytes": self._room.nbytes,
            "credits": builder.window.outstanding,
            "slot_bytes": memory_status(self._memory),
            "slots": {str(state): count for state, count in builder.pool.by_state().items()},
            "events": {
                "processed": counters.events_processed,
                "accepted": counters.events_accepted,
                "accepted_by_line": dict(zip(counters.lines, counters.line_accepts, strict=True)),
            },
            "objects": dict(counters.objects),
            "conditions": {each.name: _condition(each) for each in self._conditions()},
            "channels": {each.kind: _channels(each) for each in self._channels()},
            "error_banks": _error_banks(counters),
            "log_lines_lost": lines_lost(),
            "streaming": streaming_status(counters) if counters.is_streaming else None,
            "accounting": accounting(counters, builder),
        }

    def _shadow_meps(self) -> dict[str, Any]:
        shadow = self._counters.shadow
        return {"taken": shadow.meps, "lost": {str(reason): n for reason, n in shadow.lost.items()}}

    def _held_slices(self) -> dict[str, Any]:
        held = self._counters.held
        return {
            "endpoint": self._combiner,
            "session": held.combiner or None,
            "answers": bool(held.combiner) and held.silent_s < SILENT_SECONDS,
            "silent_seconds": round(held.silent_s, 1),
            "oldest_seconds": round(held.oldest_s, 1),
            "max_bytes": held.max_bytes,
            "held_bytes": held.held_bytes,
            "held_slices": held.held_slices,
            "slices": {str(end): n for end, n in held.slices.items()},
            "seeds_sent": held.seeds_sent,
            "windows_received": held.windows_received,
            "external_windows": held.external_windows,
            "faults": {str(fault): n for fault, n in held.faults.items()},
        }

    def _missing_feeders(self) -> list[MissingFeeder]:
        """Feeders that left with more to send, of the current run and of deserted kept runs."""
        now_ns, control = self._clock.now_ns, self._control
        current = control.registry.current
        missing = [
            MissingFeeder(0 if current is None else current.run, feeder.hello.feeder, now_ns - feeder.last_message_ns)
            for feeder in control.lost_feeders(now_ns)
        ]
        return missing + [feeder for feeders in control.deserted_runs(now_ns).values() for feeder in feeders]

    def _shown_missing(self, feeder: MissingFeeder) -> dict[str, Any]:
        silent_ns = feeder.silent_ns
        return {
            "run": feeder.run,
            "feeder": feeder.name or None,
            "since": None if silent_ns is None else _utc(self._wall_s() - silent_ns / 1e9),
            "silent_seconds": None if silent_ns is None else round(silent_ns / 1e9, 1),
        }

    def _oldest_open_mep(self) -> dict[str, Any] | None:
        builder = self._control.builder
        mep = min(builder.open.values(), key=lambda mep: mep.mep, default=None)
        if mep is None:
            return None
        missing = builder.missing(mep)
        return {"mep": mep.mep, "n_missing": len(missing), "missing": missing[:SHOWN_SOURCES]}

    def summary(self) -> dict[str, Any]:
        """The answer to the status command."""
        status = self.full()
        runs = list(islice(self._control.registry.kept, SUMMARY_RUNS))
        return {**{key: status[key] for key in _SUMMARY}, "kept_runs": runs}


def _utc(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(reading: ConditionReading) -> dict[str, Any]:
    return {
        "unit": reading.unit,
        "configured": reading.configured,
        "measured": reading.measured,
        "tolerance": reading.tolerance,
        "values": reading.values,
        "is_off": reading.is_off,
        "followed": reading.followed,
    }


def _channels(reading: ChannelReading) -> dict[str, Any]:
    found = reading.found
    return {
        "condition": reading.condition,
        "hits": reading.hits,
        "compared": found is not None,
        **{name: list(numbers[:SHOWN_CHANNELS]) for name, numbers in (found or {}).items()},
        **{f"n_{name}": len(numbers) for name, numbers in (found or {}).items()},
    }


def _error_banks(counters: Counters) -> dict[str, Any]:
    """The number of error banks of each type since the start, and the sources that sent most."""
    by_type: Counter[str] = Counter()
    found = list(counters.error_banks())
    for (name, _), n in found:
        by_type[name] += n
    most = nlargest(SHOWN_SOURCES, found, key=lambda each: each[1])
    return {
        "by_type": dict(by_type),
        "most": [{"type": name, "source": source, "banks": n} for (name, source), n in most],
    }
