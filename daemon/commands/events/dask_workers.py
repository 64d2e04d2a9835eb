"""A sample on the workers of a Dask cluster, with the results of one machine.

The sample is divided into ranges of events. A worker reads the events of its ranges, so it needs the files under the
same path, and the same version of hltnode. It checks that it has the same trigger configuration and geometry. The
scheduler gives the range of a dead worker to another worker. Results are merged in the order of the sample; the number
of ranges in flight bounds the memory of this process.
"""

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hltnode.daemon.commands.common import thread_count
from hltnode.daemon.commands.events.event_processor import EVENTS_PER_MEP, EventProcessor, Setup, hash_of
from hltnode.daemon.commands.events.sample_results import PartResult
from hltnode.processing.framework.event_files import DamageLog
from hltnode.processing.framework.event_ranges import EventRange, event_ranges
from hltnode.processing.framework.histograms import HistogramShape
from hltnode.processing.framework.installation import extra_hint

if TYPE_CHECKING:
    from distributed import Client

EVENTS_PER_RANGE = 4 * EVENTS_PER_MEP
"""0.1 s to 1 s of a core: long compared to the overhead of a task, short enough that a dead worker costs little.

Whole MEPs, so that events are packed as on one machine."""

RANGES_PER_THREAD = 4
"""Ranges in flight per worker thread: enough that no thread waits while results are merged in order."""

CONNECT_SECONDS = 30.0
LOOK_SECONDS = 3.0
LOCAL = "local:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Properties of a worker that its results depend on; they must equal those of this machine."""

    version: str
    tck: int
    geometry: str
    """Hash of the constants of the detector."""
    histograms: tuple[HistogramShape, ...]


@contextmanager
def dask_client(scheduler: str) -> "Iterator[Client]":
    """A client of a scheduler with workers.

    scheduler: its address, or `local:N` for N worker processes that end with the client. Raises ValueError.
    """
    if find_spec("distributed") is None:
        raise _missing()
    from distributed import Client, LocalCluster
    from distributed.comm.core import connect

    async def look() -> None:
        comm = await connect(address, timeout=LOOK_SECONDS)
        await comm.close()

    with _no_longer_than_needed(scheduler, LocalCluster) as (address, n_workers):
        try:
            # Check the address first: a client without a scheduler delays the exit of the process by a minute.
            asyncio.run(look())
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(f"{scheduler}: no Dask scheduler answers: {error}") from error
        with client:
            try:
                client.wait_for_workers(n_workers, timeout=CONNECT_SECONDS)
            except TimeoutError as error:
                raise ValueError(
                    f"{scheduler}: the scheduler has no worker: start some (dask worker {scheduler} --nthreads 1)"
                ) from error
            yield client


@contextmanager
def workers_with_kernels(scheduler: str, setup: Setup) -> "Iterator[Client]":
    """The client of `dask_client`, whose workers have the compiled lines of a setup. This machine compiles them while
    the workers start. Raises ValueError, BackendError."""
    if find_spec("distributed") is None:
        raise _missing()
    from hltnode.daemon.commands.events.worker_kernels import compiled_kernels, provided_kernels

    with ThreadPoolExecutor(1, thread_name_prefix="hltnode-compile") as pool:
        compiling = pool.submit(compiled_kernels, setup)
        with dask_client(scheduler) as client, provided_kernels(client, compiling.result()):
            yield client


def _missing() -> ValueError:
    return ValueError(f"--dask needs distributed: {extra_hint('dask')}")


@contextmanager
def _no_longer_than_needed(scheduler: str, cluster_type: Any) -> Iterator[tuple[str, int]]:
    """Address of the scheduler and number of workers to wait for; starts and ends the workers of `local:N`."""
    if not scheduler.startswith(LOCAL):
        yield scheduler, 1
        return
    number = scheduler.removeprefix(LOCAL)
    if not number.isdigit() or int(number) == 0:
        raise ValueError(f"--dask {scheduler}: expected local:N with the number of worker processes")
    with cluster_type(
        n_workers=int(number),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        # The limits of its batches already bound the memory of an engine.
        memory_limit=None,
    ) as local:
        yield local.scheduler_address, int(number)


def processed_ranges(
    client: "Client", files: Sequence[Path], setup: Setup, damage: DamageLog, *, accepted: bool
) -> Iterator[PartResult]:
    """The results of all events of some files that can be read, in the order of the files; the faults of the others
    are added to `damage`, in the same order.

    Raises EventFileError for a file, ValueError for a worker that differs from this machine, or for a range that killed
    several workers.
    """
    from distributed import KilledWorker

    expected, setup = expected_of(setup), _as_workers_find_it(setup, client)
    ranges = event_ranges([path.absolute() for path in files], EVENTS_PER_RANGE)
    name = f"hltnode-process-{uuid4().hex}"
    pending: deque[tuple[EventRange, Any]] = deque()

    def submit(n: int) -> None:
        for part in islice(ranges, n):
            arguments = (expected, setup, part, accepted)
            pending.append((part, client.submit(process_range, *arguments, key=f"{name}-{part.first}", pure=False)))

    try:
        submit(RANGES_PER_THREAD * max(1, sum(client.nthreads().values())))
        while pending:
            part, future = pending[0]
            try:
                results, damage_of_range = future.result()
            except KilledWorker as error:
                last = part.first + part.n_events - 1
                raise ValueError(
                    f"events {part.first} to {last}: each worker that processed them died: {error}"
                ) from error
            pending.popleft()
            future.release()
            submit(1)
            damage.extend(damage_of_range)
            yield from results
    finally:
        # After Ctrl-C or an error, workers must stop the remaining tasks.
        client.cancel([future for _, future in pending], force=True)


def expected_of(setup: Setup) -> Expected:
    """The properties of this machine that a worker must share, for a setup."""
    chain, configuration = setup.load()
    return Expected(
        version=version("hltnode"),
        tck=chain.document(configuration).tck,
        geometry=hash_of(chain.with_sequence(configuration.sequence).load_geometry(setup.geometry)),
        histograms=tuple(histogram.shape for histogram in chain.filled_histograms(configuration)),
    )


def _as_workers_find_it(setup: Setup, client: "Client") -> Setup:
    """The setup with absolute paths; the workers on one machine share its cores."""
    threads = setup.threads
    if not threads:
        hosts = [worker["host"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
        threads = max(1, thread_count(0) // len(hosts)) if set(hosts) == {"127.0.0.1"} else 0
    return replace(
        setup,
        threads=threads,
        trigger=setup.trigger and setup.trigger.absolute(),
        geometry=setup.geometry and setup.geometry.absolute(),
    )


# A worker process uses one engine for all its ranges.
_processors: dict[tuple[Expected, Setup], EventProcessor] = {}
_one_range_at_a_time = threading.Lock()


def process_range(
    expected: Expected, setup: Setup, part: EventRange, accepted: bool
) -> tuple[list[PartResult], DamageLog]:
    """The results and the damage of a range, in a worker. Raises ValueError, which names the worker, if its properties
    differ."""
    from distributed import get_worker

    worker = get_worker().address
    with _one_range_at_a_time:
        processor = _processors.get((expected, setup))
        if processor is None:
            processor = checked_processor(expected, replace(setup, threads=thread_count(setup.threads)), worker)
            for former in _processors.values():
                former.close()
            _processors.clear()
            _processors[expected, setup] = processor
        damage = DamageLog()
        results = processor.process(part.read(damage), first_event_id=part.first, accepted=accepted)
        return [replace(result, worker=worker) for result in results], damage


def checked_processor(expected: Expected, setup: Setup, worker: str) -> EventProcessor:
    """An event processor with the expected properties. Raises ValueError, which names the worker."""
    processor = EventProcessor(setup)
    engine = processor.engine
    has = Expected(
        version=version("hltnode"), tck=engine.tck, geometry=processor.geometry_hash, histograms=engine.histograms
    )
    for what, mine, wanted in (
        ("hltnode", has.version, expected.version),
        ("TCK", f"0x{has.tck:08X}", f"0x{expected.tck:08X}"),
        ("geometry", has.geometry, expected.geometry),
        ("histograms", has.histograms, expected.histograms),
    ):
        if mine != wanted:
            processor.close()
            raise ValueError(
                f"worker {worker} on {socket.gethostname()}: different {what}"
                + ("" if what == "histograms" else f", {mine} instead of {wanted}")
            )
    return processor
