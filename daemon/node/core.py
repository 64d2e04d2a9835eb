"""The base of a node, which its other parts use: no socket, no file, no thread."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.conditions_of_runs import ConditionsOfRuns
from hltnode.daemon.compute.direct_results import DirectResults
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.compute.histogram_tally import HistogramTally
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotPool
from hltnode.daemon.machine.free_space import FreeSpace
from hltnode.daemon.machine.gpu_reader import GpuReader
from hltnode.daemon.machine.quiet_collector import QuietCollector
from hltnode.daemon.machine.systemd import Notifier
from hltnode.daemon.machine.thread_scheduling import ThreadScheduling
from hltnode.daemon.monitoring.channel_monitor import ChannelMonitor, ChannelReading
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.detector_conditions import ConditionReading, DetectorConditions
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.metrics.collector import BuildInfo
from hltnode.daemon.monitoring.status_page.rates import RateWindow
from hltnode.daemon.node.sizing import builder_limits, decides_directly, max_events_per_mep, slot_limits
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.processing.selection.followed_conditions import FollowedConditions


class NodeCore:
    """Configuration, engine and workspaces, counters, clocks, event builder, slots, and the registry of feeders."""

    def __init__(
        self,
        config: NodeConfig,
        engine: Engine,
        *,
        backend: str,
        gpu: int | None,
        version: str,
        clock_ns: Callable[[], int],
        followed: FollowedConditions | None = None,
        request_engine: Engine | None = None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.request_engine = request_engine
        self.clock_ns = clock_ns
        self.counters = Counters()
        self.counters.operation.last_reload_s = time.time()
        self.counters.set_lines(engine.lines)
        self.counters.set_collections(engine.collections)
        self.counters.set_flags(engine.flags)
        self.counters.is_streaming = engine.streaming is not None
        self.counters.set_error_types(engine.error_types)
        self.session = secrets.token_hex(8)
        # A shadow has one feeder, in this process.
        self.is_shadow = config.shadow.of is not None
        least = 1 if self.is_shadow else config.builder.min_feeders
        self.clock = ReadingClock(clock_ns)
        now_ns = self.clock.now_ns
        self.health = Health(
            loop_tick_ns=now_ns,
            pipeline_tick_ns=now_ns,
            feeders_expected=least,
            unhealthy_after_ns=config.node.unhealthy_after_ms * 1_000_000,
            configured=True,
        )
        pool = SlotPool(config.pipeline.slots, slot_limits(config))
        self.builder = EventBuilder(pool, builder_limits(config), self.counters)
        self._info = BuildInfo(
            version=version,
            node=config.node.name,
            backend=backend,
            chain=config.trigger.chain,
            tck=f"0x{engine.tck:08X}",
        )
        self.workspaces = [engine.create_workspace() for _ in pool.slots]
        self.direct = DirectResults(engine.create_direct_workspace()) if decides_directly(config, gpu) else None
        self.buffers = [workspace.input_data.data for workspace in self.workspaces]
        self.detector_conditions = DetectorConditions(engine.measured, engine.histograms)
        self.channels = ChannelMonitor(engine.channels, engine.histograms)
        self.tally = HistogramTally(
            engine.histograms,
            [*self.workspaces, *(() if self.direct is None else (self.direct,))],
            clock_ns,
            self._count,
        )
        self.conditions_of_runs = ConditionsOfRuns(engine, followed, self.detector_conditions, self.tally)
        self.conditions_of_runs.followers.append(lambda constants, _measured, _tck: self.channels.use(constants))
        self.notifier = Notifier()
        self.silence = SilentSourceMonitor(
            self.builder, self.counters, silent_ns=config.builder.silent_source_ms * 1_000_000, clock_ns=clock_ns
        )
        self.registry = FeederRegistry(
            node=config.node.name,
            chain=self._info.chain,
            run=config.node.run,
            min_feeders=least,
            max_feeders=config.builder.max_feeders,
            sources=config.builder.expected_sources,
            max_events_per_mep=max_events_per_mep(config, len(engine.lines)),
            admit=self.conditions_of_runs.admit,
        )
        self.acknowledgements = Acknowledgements()
        self.rates = RateWindow(self.counters)
        self.room = OutputQueue(config.output.queue_bytes)
        self.free_space = FreeSpace(config.output.directory)
        self.scheduling = ThreadScheduling(
            config.latency.cpus, config.latency.realtime_priority, self.counters.thread_settings
        )
        self.collector = QuietCollector(now_ns, self.counters.collections) if config.latency.quiet_collector else None
        self.gpu = GpuReader(gpu)

    @property
    def info(self) -> BuildInfo:
        """Version, node, back end, chain, and the TCK in use."""
        return replace(self._info, tck=f"0x{self.engine.tck:08X}")

    @property
    def file_name(self) -> str:
        """First part of the names of this node's files. That of a shadow differs from the productive node's."""
        return f"{self.config.node.name}-shadow" if self.is_shadow else self.config.node.name

    def _count(self, run: int, counts: NDArray[np.uint32]) -> None:
        self.detector_conditions.add(run, counts)
        self.channels.add(run, counts)

    def channel_readings(self) -> Sequence[ChannelReading]:
        """The groups of channels that differ from their neighbours, with the hits of all batches that are done."""
        self.tally.collect()
        return self.channels.readings()

    def condition_readings(self) -> Sequence[ConditionReading]:
        """The measured numbers of the detector, with the values of all batches that are done."""
        self.tally.collect()
        return self.detector_conditions.readings()

    def about(self, run: int | None) -> dict[str, str]:
        """Description of the node in the histogram pages and files of a run."""
        return {
            "node": self.config.node.name,
            "session": self.session,
            "chain": self._info.chain,
            "tck": f"0x{self.conditions_of_runs.tck_of(run):08X}",
        }
