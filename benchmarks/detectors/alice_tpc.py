"""Tracks of the chain `alice_tpc`: processor time for a cluster of one thread, over events of 10^4 to 4 million
clusters, and the finder of neighbours against scipy.

Events are simulated lead collisions with fewer or more particles; a central one is the largest. They are made once,
in a minute of a core, and kept under build/benchmarks. `cKDTree.query_ball_point` gets the clusters of some slices of
the central event and finds those in the windows of each cluster, two rows above and below, in trees that are made
before. The finder of the chain also compares the slopes of all pairs.

The published times are 0.21 us for a cluster on all cores of an Intel Core i7-965, and 807.5 ms for a central event
(D. Rohr, "ALICE TPC Online Tracking on GPU based on Kalman Filter", diploma thesis, Heidelberg, 2010, tables 9.21 and
9.31).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Result, compare, in_turn
from benchmarks.profile import ProfiledSequence
from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.tpc_geometry import builtin_geometry
from hltnode.processing.alice.offline.simulation.events import simulated_event
from hltnode.processing.alice.offline.simulation.sample import SHAPES, SOURCES, SampleName, banks_of
from hltnode.processing.alice.tpc.seeds.find_neighbours import find_neighbours
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.protocol.alice.tpc_banks import (
    N_ROWS,
    TpcBankType,
    banks_of_clusters,
    decode_clusters,
    places_of_clusters,
    slice_of_source,
)
from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

FOLDER = Path(__file__).resolve().parents[2] / "build" / "benchmarks"
SEED = 1
SIZES = (10_000, 50_000, 250_000, 1_000_000, 4_000_000)
"""Clusters of the events, nearly; the last one is central."""
CLUSTERS = 2_000_000
"""Clusters of all events of a size in one measurement."""
SLICES = (3, 21)
SMALL_EVENTS = 64
BATCHES = (1, 2, 4, 8, 16, 32, 64)
"""Simulated pp events, and how many of them are in a batch."""
TURNS = 3
FORMS = (
    *("tpc_find_neighbours", "tpc_construct_tracklets", "tpc_select_tracks"),
    *("tpc_describe_segments", "tpc_fit_merged_tracks", "tpc_count_v0s"),
)
TARGETS = {"neighbours": 20.0, "threads": 1.8, "forms": 2.0}
MOST_US_PER_CLUSTER = 0.5
MOST_EXPONENT = 1.1

Points = NDArray[np.float64]


def run(_: Path) -> Iterator[Result]:
    """Medians over turns in which all that is compared ran."""
    events = {size: event_of_size(size) for size in SIZES}
    central = events[SIZES[-1]]
    yield from _over_sizes(events)
    yield from _over_batches(small_events())
    yield from _forms_and_threads(central)
    yield _neighbours([bank for bank in central if slice_of_source(bank.source_id) in SLICES])


def summary(results: Sequence[Result]) -> dict[str, object]:
    """The main figures by the names of the report."""
    by_name = {result.name: result for result in results}
    return {
        "neighbours_ratio": by_name["neighbours"].ratio,
        "threads_ratio": by_name["two threads"].ratio,
        "us_per_cluster": by_name["central event"].value,
        "exponent": by_name["exponent"].value,
        "forms": {name: by_name[f"form of {name}"].ratio for name in FORMS},
    }


def event_of_size(size: int) -> list[RawBank]:
    """The banks of clusters of a simulated lead collision with nearly this number of clusters.

    They come from the fewest sources whose banks hold them.
    """
    path = FOLDER / f"tpc_{size}_seed{SEED}.mdf"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        shape = SHAPES[SampleName.CENTRAL]
        shape = replace(shape, primaries=shape.primaries * size / SIZES[-1], collisions=0.0)
        event = simulated_event(np.random.default_rng((SEED, size)), shape, builtin_geometry())
        unfinished = path.with_suffix(".unfinished")
        for sources in SOURCES:
            try:
                banks = banks_of(event, sources)
            except BankError:
                continue
            break
        written = [bank for bank in banks if bank.type == TpcBankType.CLUSTERS]
        unfinished.write_bytes(encode_record(encode_banks(written), run=1))
        unfinished.rename(path)
    (banks,) = read_events(path)
    return banks_of_clusters(banks)


def small_events() -> list[list[RawBank]]:
    """The banks of clusters of simulated pp events."""
    path = FOLDER / f"tpc_pp_seed{SEED}.mdf"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            for number in range(SMALL_EVENTS):
                rng = np.random.default_rng((SEED, number))
                event = simulated_event(rng, SHAPES[SampleName.PP], builtin_geometry())
                banks = [bank for bank in banks_of(event, SOURCES[0]) if bank.type == TpcBankType.CLUSTERS]
                file.write(encode_record(encode_banks(banks), run=1))
        unfinished.rename(path)
    return [banks_of_clusters(banks) for banks in read_events(path)]


def batches_of(events: Sequence[list[RawBank]], size: int) -> list[EncodedMep]:
    """The events in batches of a size, each batch one MEP."""
    return [encode_mep(CHAIN, events[first : first + size], first) for first in range(0, len(events), size)]


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The power of the size with which the time grows: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _clusters_of(banks: Sequence[RawBank]) -> int:
    return sum(len(decode_clusters(bank.payload)) for bank in banks)


def _sequence(mep: EncodedMep, threads: int = 1, common: bool = False) -> ProfiledSequence:
    return _sequence_of([mep], threads, common)


def _sequence_of(meps: Sequence[EncodedMep], threads: int = 1, common: bool = False) -> ProfiledSequence:
    """A sequence for batches of any one of the MEPs."""
    limits = BatchLimits(
        events=max(mep.n_events for mep in meps),
        meps=1,
        input_bytes=-(-max(mep.data.nbytes for mep in meps) // 8) * 8,
        rows=max(len(mep.fragments) for mep in meps),
    )
    return ProfiledSequence(None, None, limits, threads=threads, chain=CHAIN, common=common)


def _over_sizes(events: dict[int, list[RawBank]]) -> Iterator[Result]:
    counts = [_clusters_of(banks) for banks in events.values()]
    meps = [encode_mep(CHAIN, [banks]) for banks in events.values()]
    sequences = [_sequence(mep) for mep in meps]
    of_kernels: list[list[dict[str, float]]] = [[] for _ in meps]
    for _turn in range(TURNS):
        for n, mep, sequence, found in zip(counts, meps, sequences, of_kernels, strict=True):
            found.append(sequence.microseconds_per_kernel([mep] * max(1, CLUSTERS // n)))
    medians = [float(np.median([sum(turn.values()) for turn in found])) for found in of_kernels]
    for n, microseconds in zip(counts, medians, strict=True):
        name = "central event" if n == counts[-1] else f"{n:,} clusters"
        target = 1.0 if n == counts[-1] else None
        per_cluster = microseconds / n
        yield Result(name, per_cluster, "us/cluster", "target of a cluster", MOST_US_PER_CLUSTER / per_cluster, target)
    for name in of_kernels[-1][0]:
        of_kernel = float(np.median([turn[name] for turn in of_kernels[-1]]))
        yield Result(f"  {name}", 1e3 * of_kernel / counts[-1], "ns/cluster", "all kernels", of_kernel / medians[-1])
    power = exponent(counts, medians)
    yield Result("exponent", power, "", "target", MOST_EXPONENT / power, 1.0)


def _over_batches(events: Sequence[list[RawBank]]) -> Iterator[Result]:
    n = sum(map(_clusters_of, events))
    meps = [batches_of(events, size) for size in BATCHES]
    sequences = [_sequence_of(of_size) for of_size in meps]
    turns = [
        [sum(sequence.microseconds_per_kernel(of_size).values()) * len(events) / n for of_size, sequence in pairs]
        for pairs in [list(zip(meps, sequences, strict=True))] * TURNS
    ]
    medians = np.median(turns, axis=0).tolist()
    for size, per_cluster in zip(BATCHES, medians, strict=True):
        name = f"pp, {size} event{'s' if size > 1 else ''} a batch"
        yield Result(name, per_cluster, "us/cluster", "one event a batch", medians[0] / per_cluster)


def _forms_and_threads(banks: Sequence[RawBank]) -> Iterator[Result]:
    mep = encode_mep(CHAIN, [banks])
    one, two, common = _sequence(mep), _sequence(mep, threads=2), _sequence(mep, common=True)
    alone, together = in_turn([partial(one.throughput, [mep]), partial(two.throughput, [mep])], TURNS)
    threads = compare(alone, together)
    yield Result("two threads", threads.second.per_second, "events/s", "one thread", threads.ratio, TARGETS["threads"])
    turns = [
        {name: common_us / form[name] for name, common_us in of_common.items() if name in FORMS}
        for form, of_common in (
            (one.microseconds_per_kernel([mep]), common.microseconds_per_kernel([mep])) for _ in range(TURNS)
        )
    ]
    for name in FORMS:
        ratio = float(np.median([turn[name] for turn in turns]))
        yield Result(f"form of {name}", ratio, "", "common kernel", ratio, TARGETS["forms"])


def _neighbours(banks: Sequence[RawBank]) -> Result:
    clusters = [
        [decode_clusters(bank.payload) for bank in banks if slice_of_source(bank.source_id) == number]
        for number in SLICES
    ]
    slices = [rows_of(np.concatenate(of_slice)) for of_slice in clusters]
    n = sum(len(row) for rows in slices for row in rows)
    mep = encode_mep(CHAIN, [banks])
    sequence = _sequence(mep)
    turns = [
        (1e-6 * sequence.microseconds_per_kernel([mep])[find_neighbours.kernel], sum(map(seconds_of_scipy, slices)))
        for _ in range(TURNS)
    ]
    ratio = float(np.median([scipy / ours for ours, scipy in turns]))
    ours = float(np.median([ours for ours, _ in turns]))
    baseline = "cKDTree.query_ball_point"
    return Result("neighbours", 1e9 * ours / n, "ns/cluster", baseline, ratio, TARGETS["neighbours"])


def rows_of(clusters: NDArray[np.void]) -> list[Points]:
    """y and z of the clusters of each row, f64[clusters][2] in cm."""
    places = np.column_stack(places_of_clusters(clusters))
    return [places[clusters["row"] == row] for row in range(N_ROWS)]


def windows(row: int, other: int) -> tuple[float, NDArray[np.float64]]:
    """The ratio of x of another row to that of a row, and half of the widths of a window there in y and z (cm)."""
    constants = {each.name: each.value for each in find_neighbours.constants}
    x = builtin_geometry().row_x
    slopes = np.array([constants["slope_y"], constants["slope_z"]])
    return float(x[other] / x[row]), slopes * abs(float(x[other] - x[row])) + constants["margin"]


def seconds_of_scipy(rows: Sequence[Points]) -> float:
    """Processor time in which scipy finds the clusters in all windows of a slice."""
    from scipy.spatial import cKDTree

    queries = []
    for row in range(2, N_ROWS - 2):
        for other in (row - 2, row + 2):
            ratio, half = windows(row, other)
            # A window is a square of side 2 in units of half of its widths.
            queries.append((cKDTree(rows[other] / half), rows[row] * ratio / half))
    before = time.process_time()
    for tree, centres in queries:
        tree.query_ball_point(centres, 1.0, p=np.inf, workers=1)
    return time.process_time() - before
