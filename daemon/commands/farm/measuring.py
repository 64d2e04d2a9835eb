"""The measurement of `hltnode farm measure`: the times of batches in the engine of a chain."""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode import __version__
from hltnode.daemon.commands.common import thread_count
from hltnode.daemon.commands.events.event_processor import LIMITS, Setup
from hltnode.daemon.commands.progress import event_progress
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.daemon.farm_model.measurement import OCCUPANCIES, Measurement, point_of
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.event_files import DamageLog, read_all_tables
from hltnode.processing.framework.offline_runner import EncodedMep, MepEncoder, OfflineRunner
from hltnode.processing.offline.chain_tools import SampleRequest, installed_tools
from hltnode.processing.offline.named_samples import cached_sample
from hltnode.protocol.errors import MfpError
from hltnode.protocol.event_table import EventTable

MAX_SAMPLE = 8192
"""Events that are held in memory; more give no better distribution of their sizes."""
MAX_SAMPLE_BYTES = 1 << 30
MIN_SAMPLE = 3
MAX_BATCH_BYTES = 4 << 30
"""The largest slot of a node."""
MAX_SIZES = 20
MAX_EVENTS = 65_535
SEED = 1
SHORT_EVENTS, SHORT_SIZES, SHORT_BATCHES = 128, (64,), 10
"""A short measurement: simulated events, batch sizes, and batches."""


def parse_sizes(text: str) -> list[int]:
    """Batch sizes, such as 16,64,256. Raises ValueError."""
    names = [each.strip() for each in text.split(",")]
    if not all(name.isascii() and name.isdecimal() and len(name) < 9 for name in names):
        raise ValueError(f"--sizes {text!r}: expected numbers of events, such as 16,64,256")
    sizes = [int(name) for name in names]
    if sorted(set(sizes)) != sizes or not 1 <= sizes[0] <= sizes[-1] <= MAX_EVENTS or len(sizes) > MAX_SIZES:
        raise ValueError(f"--sizes {text!r}: expected at most {MAX_SIZES} ascending numbers from 1 to {MAX_EVENTS}")
    return sizes


def measured(
    files: Sequence[Path],
    setup: Setup,
    sizes: Sequence[int],
    batches: int,
    told: Callable[[str], None],
    damage: DamageLog,
) -> Measurement:
    """Measure the times of batches of events of files. Raises ValueError, EventFileError and BackendError.

    Each batch has events drawn at random. The time is that from its submission to its results, without the copy into
    the slot. Damaged events are left out and added to `damage`.
    """
    chain, configuration = setup.load()
    sample = _sample(files, damage)
    geometry = chain.with_sequence(configuration.sequence).load_geometry(setup.geometry)
    largest = sizes[-1]
    n_bytes = int(sample.nbytes().max()) * largest * 2
    if n_bytes > MAX_BATCH_BYTES:
        raise ValueError(
            f"--sizes: {largest} events of this sample need up to {n_bytes} bytes, a slot has at most "
            f"{MAX_BATCH_BYTES}: expected at most {max(1, largest * MAX_BATCH_BYTES // n_bytes)} events"
        )
    limits = chain.limits_for_files(
        replace(LIMITS, events=largest, events_per_mep=largest, input_bytes=max(LIMITS.input_bytes, n_bytes)),
        configuration,
    )
    backend = create_backend(setup.backend, chain.kernels, threads=setup.threads, device=setup.device)
    engine = chain.create_engine(backend, geometry, configuration, limits)
    try:
        runner = OfflineRunner(engine, workspaces=1)
        random = np.random.default_rng(SEED)
        points, n_accepted, n_events = [], 0, 0
        for occupancy, chosen in _thirds(sample).items():
            for size in sizes:
                told(f"{occupancy}, {size} events")
                seconds = []
                for is_first, mep in _meps(engine, sample, chosen, size, batches, random):
                    spent, accepted = _time_of(runner, mep)
                    if is_first:
                        continue
                    seconds.append(spent)
                    if occupancy == "all":
                        n_accepted, n_events = n_accepted + accepted, n_events + size
                mean_bytes = float(_payload(sample)[chosen].mean())
                points.append(point_of(occupancy, size, mean_bytes, seconds))
        return Measurement(
            hltnode=__version__,
            chain=chain.name,
            sequence=configuration.sequence or chain.default_sequence,
            tck=chain.document(configuration).name,
            back_end=backend.name,
            threads=backend.threads,
            machine=platform.processor() or platform.machine(),
            is_estimate=False,
            accepted=n_accepted / max(1, n_events),
            points=tuple(points),
        )
    finally:
        engine.close()


def measured_at_once(chain: str) -> Measurement:
    """A short measurement with simulated events of a chain, which are made once in the user's cache.

    Raises as `measured` does, and ValueError for a chain without a simulation.
    """
    tool = tool_of(installed_tools(chain), chain, "simulation")
    threads = thread_count(0)
    sample = tool.sample(SampleRequest(seed=SEED), tool.options())
    events = cached_sample(sample, SHORT_EVENTS, threads, event_progress)
    setup = Setup(
        chain=chain,
        trigger=None,
        sequence=None,
        geometry=None,
        backend="auto",
        threads=threads,
        device=0,
        encoding="auto",
    )
    return measured([events.path], setup, SHORT_SIZES, SHORT_BATCHES, lambda _: None, DamageLog())


def _sample(files: Sequence[Path], damage: DamageLog) -> EventTable:
    tables, n, n_bytes = [], 0, 0
    for table in read_all_tables(files, damage):
        tables.append(table[: MAX_SAMPLE - n])
        n += len(tables[-1])
        n_bytes += int(tables[-1].nbytes().sum())
        if n >= MAX_SAMPLE or n_bytes >= MAX_SAMPLE_BYTES:
            break
    if n < MIN_SAMPLE:
        raise ValueError(f"{files[0]}: expected at least {MIN_SAMPLE} events, found {n}")
    return EventTable.joined(tables)


def _payload(sample: EventTable) -> NDArray[np.float64]:
    """f64[events]: bytes of the banks of each event, without their headers."""
    event, rows = sample.banks()
    return np.bincount(event, weights=rows["size"], minlength=len(sample)).astype(np.float64)


def _thirds(sample: EventTable) -> dict[str, NDArray[np.intp]]:
    """The events of each occupancy: all, and the thirds by size in bytes."""
    by_size = np.argsort(_payload(sample), kind="stable")
    return dict(zip(OCCUPANCIES, (by_size, *np.array_split(by_size, 3)), strict=True))


def _meps(
    engine: Engine, sample: EventTable, chosen: NDArray[np.intp], size: int, batches: int, random: np.random.Generator
) -> Iterator[tuple[bool, EncodedMep]]:
    """MEPs of random events; the first one warms the back end."""
    encoder = MepEncoder(engine.chain)
    for number in range(batches + 1):
        try:
            yield number == 0, encoder.encode(sample.select(random.choice(chosen, size)))
        except MfpError as error:
            raise ValueError(
                f"the events cannot be mixed in one batch, so their times cannot be measured: {error}"
            ) from error


def _time_of(runner: OfflineRunner, mep: EncodedMep) -> tuple[float, int]:
    """The time of one batch in seconds, and its number of accepted events."""
    [workspace] = runner.workspaces
    runner.fill(workspace, [mep])
    begin = time.perf_counter()
    workspace.submit()
    workspace.wait()
    return time.perf_counter() - begin, int(np.count_nonzero(workspace.output.accepted))
