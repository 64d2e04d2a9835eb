"""Runs a sequence of a chain, by default HLT1, on the CPU back end, with the time of each kernel."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN
from benchmarks.measure import Stopwatch, Throughput
from hltnode.processing.framework.backends.cpu import CpuBackend, CpuQueue
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner
from hltnode.processing.selection.configuration.overrides import Override
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import TriggerChain


class ProfiledSequence:
    """A sequence by name, with its default lines, on a number of threads; None: the default sequence. `overrides`:
    constants.

    `trigger`: the configuration instead of the default one. `common`: without the CPU forms of kernels.
    """

    def __init__(
        self,
        name: str | None,
        geometry: Path | None,
        limits: BatchLimits,
        threads: int = 1,
        overrides: tuple[Override, ...] = (),
        trigger: TriggerConfig | None = None,
        chain: TriggerChain = CHAIN,
        common: bool = False,
    ) -> None:
        configured = trigger or chain.load_trigger(None, name)
        self.engine = chain.create_engine(
            CpuBackend(chain.kernels, threads=threads, common=common),
            chain.with_sequence(name).load_geometry(geometry),
            replace(configured, overrides=(*configured.overrides, *overrides)),
            limits,
        )
        self.runner = OfflineRunner(self.engine)

    def throughput(self, meps: Iterable[EncodedMep]) -> Throughput:
        """Events per second, and processor time of the whole process per event."""
        watch = Stopwatch()
        return watch.throughput(sum(batch.workspace.n_events for batch in self.runner.run(meps)))

    def microseconds_per_kernel(self, meps: Iterable[EncodedMep]) -> dict[str, float]:
        """Processor time of each kernel per event."""
        queues = [workspace.queue for workspace in self.runner.workspaces]
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = True
        events = sum(batch.workspace.n_events for batch in self.runner.run(meps))
        total: dict[str, float] = {}
        for queue in queues:
            assert isinstance(queue, CpuQueue)
            queue.profile = False
            for name, seconds in queue.take_profile().items():
                total[name] = total.get(name, 0.0) + seconds
        return {name: seconds / events * 1e6 for name, seconds in total.items()}
