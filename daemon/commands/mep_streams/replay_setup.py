"""From the options of `hltnode replay` to its runs, their MEPs and their feeders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hltnode.client.fault_injection import FaultPlan
from hltnode.client.memory_socket import memory_path
from hltnode.client.shared_memory import SharedMemory
from hltnode.client.sockets import FeederKeys
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.input_name import name_of_sample
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_simulation, runs_of_files
from hltnode.daemon.replay.pacing import Rate
from hltnode.daemon.replay.replaying import Replay, ReplayState
from hltnode.daemon.replay.run_sequence import ReplayRuns
from hltnode.daemon.replay.site import MAX_FRAGMENT_BYTES, Site, make_identities
from hltnode.processing.selection.trigger_chain import installed_chain

if TYPE_CHECKING:
    from hltnode.processing.offline.chain_tools import SimulatedSample, Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Options of the command line; `repeat` is None for an endless replay, `inputs` is empty for simulated events."""

    inputs: tuple[Path, ...]
    n_simulated: int
    seed: int
    geometry: Path | None
    chain: str
    events_per_mep: int
    repeat: int | None
    run: int | None
    with_truth: bool
    to: tuple[str, ...]
    control: tuple[str, ...] | None
    keys: FeederKeys
    supervisor: str | None
    memory: Path | None
    name: str
    connections: int
    part: str | None
    rate: Rate
    max_pause_s: float
    faults: FaultPlan | None
    segment_bytes: int


def make_streams(options: ReplayOptions) -> list[MepStream]:
    """The MEPs of each run of the input. Raises FeedError, EventFileError, and errors of the geometry or the chain."""
    packing = Packing(
        events_per_mep=options.events_per_mep,
        max_fragment_bytes=MAX_FRAGMENT_BYTES,
        repeat=options.repeat,
        run=options.run,
        with_truth=options.with_truth,
        memory=_memory(options),
    )
    readout = installed_chain(options.chain).readout
    if options.inputs:
        streams = runs_of_files(options.inputs, readout, packing)
        if len(streams) > 1 and options.repeat is None:
            raise FeedError(
                f"--loop: the input has events of {len(streams)} runs, and the first one would never end: replay one "
                "run, give --repeat, or choose one number for all events (--run)"
            )
        return streams
    sample = _simulated_sample(options)
    stream = meps_of_simulation(lambda: sample.events(options.n_simulated), readout, packing, options.n_simulated)
    stream.input_name = name_of_sample(options.chain, options.seed, options.n_simulated, packing)
    return [stream]


def _simulated_sample(options: ReplayOptions) -> "SimulatedSample":
    # Local import: a replay of files needs no simulation.
    from hltnode.processing.offline.chain_tools import DEFAULT_RUN, SampleRequest, installed_tools

    simulation: Simulation[Any] = tool_of(installed_tools(options.chain), options.chain, "simulation")
    request = SampleRequest(seed=options.seed, run=options.run or DEFAULT_RUN, geometry=options.geometry)
    return simulation.sample(request, simulation.options())


def _memory(options: ReplayOptions) -> SharedMemory | None:
    """Shared memory for the fragments, if a node on this machine uses it."""
    is_shared = any(memory_path(endpoint) is not None for endpoint in options.to)
    return SharedMemory(options.segment_bytes) if is_shared else None


def make_site(options: ReplayOptions, runs: Sequence[int]) -> Site:
    """The nodes, and the role of this process. Raises FeedError for inconsistent options."""
    return Site.of(
        list(options.to),
        None if options.control is None else list(options.control),
        options.supervisor,
        options.part,
        options.memory,
        options.keys,
        runs,
    )


def make_replays(
    options: ReplayOptions,
    streams: Sequence[MepStream],
    show: Callable[[ReplayState], None],
    say: Callable[[str], None],
) -> ReplayRuns:
    site = make_site(options, [stream.run for stream in streams])
    replays = []
    for number, stream in enumerate(streams):
        identities = make_identities(
            stream, options.name, options.connections, options.part, options.chain, follows_run=number > 0
        )
        mine = [source for identity in identities for source in identity.sources]
        replays.append(
            Replay(
                stream if options.part is None else stream.of(mine),
                identities,
                site,
                options.rate,
                options.max_pause_s,
                options.faults,
                options.seed,
                ends_by_signal=options.repeat is None,
            )
        )
    finished = site.open_finished_runs(replays[0].identities[0]) if len(replays) > 1 else None
    return ReplayRuns(replays, show, say, finished)
