"""Cost of the densest events, in executed basic blocks of the kernels (docs/physics/velo-tracking.md).

Tests count work instead of time, so that a slow machine fails no test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT, TOO_MANY_CLUSTERS
from hltnode.processing.lhcb.velo.decoding.cluster_limit import cluster_limit
from hltnode.processing.selection.trigger_chain import Constants
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu
from tests.processing.framework.work_counter import WorkCounter
from tests.processing.lhcb.dense_events import DENSE as WHOLE_DENSE
from tests.processing.lhcb.dense_events import TEN_TIMES, crossing
from tests.processing.lhcb.velo.dense_events import colliding_super_pixels, crowded_in_phi, noise, super_pixel_noise
from tests.processing.lhcb.velo.large_cluster_oracle import OracleTrack
from tests.processing.lhcb.velo.test_cpu_forms import bank_of
from tests.processing.lhcb.velo.test_large_clusters import Banks
from tests.processing.lhcb.velo.velo_chain import real_events

GEOMETRY = VeloGeometry.builtin()
CUTS = {
    name: int(algorithm.constants[0].value)
    for name in ("velo", "velo_simd", "velo_sparse_ccl")
    for algorithm in CHAIN.sequences[name].algorithms
    if algorithm.name == cluster_limit.name
}
"""The limits on clusters."""

MAX_EVENTS = 80
"""Maximum cost of any event, in units of a minimum-bias event."""
MAX_PER_BYTE = 6
"""Maximum cost per byte of any event, in units of the cost per byte of a minimum-bias event."""
MAX_OF_CUT_EVENT = 0.5
"""Maximum cost of an event above the limit on clusters, in units of a minimum-bias event."""
MAX_OF_DENSEST = 20
"""Maximum cost of any event in the whole HLT1, in units of the densest minimum-bias event."""
MAX_OF_DENSEST_BY_FORMS = 25
"""The same with CPU forms; 20.4 were measured with AVX2."""
WHOLE = {"hlt1_2026": True, "no_ut": False}
"""Sequences that together have all algorithms of the whole HLT1, and whether the common kernels run instead of their
CPU forms."""
MOST_PIXELS = 12_000
"""Pixels of an event at the limit on clusters."""
COUNT_ALL = {"min_pixels": 4, "min_hits": 1, "max_slope": 0.0136}
"""Cuts of `velo_large_clusters` that count every track along the beam."""
COPIES = 2
"""Copies of an event in a MEP: they share the fixed cost of the MFPs."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of an event: executed blocks per event and per byte; its flags."""

    event: float
    byte: float
    flags: EventFlag


class Costs:
    """A sequence that is built to count its work, without the work of the lines. `cut`: its limit on clusters.

    common: run no CPU form of a kernel.
    """

    def __init__(self, work: WorkCounter, sequence: str, geometry: Constants, *, common: bool = False) -> None:
        self._work = work
        self.cut = CUTS.get(sequence, CUTS["velo"])
        self._chain = CHAIN.with_sequence(sequence)
        engine = CHAIN.create_engine(
            CpuBackend(work.kernels, common=common),
            geometry,
            CHAIN.load_trigger(None, sequence),
            BatchLimits(events=16, meps=1, input_bytes=4 << 20, rows=1024),
        )
        self._workspace: Workspace = engine.create_workspace()

    def of(self, events: Sequence[Sequence[RawBank]]) -> Cost:
        """The mean over some events."""
        mep = encode_mep(self._chain, events)
        workspace = self._workspace
        workspace.input_data[: mep.data.nbytes] = mep.data
        workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
        self._work.take()
        workspace.submit()
        workspace.wait()
        executed = self._work.take()
        flags = EventFlag(int(np.bitwise_or.reduce(workspace.output.flags)))
        return Cost(executed / mep.n_events, executed / mep.data.nbytes, flags)


@pytest.fixture(scope="module")
def work() -> WorkCounter:
    return WorkCounter(CHAIN.kernels)


@pytest.fixture(scope="module", params=CUTS)
def costs(request: pytest.FixtureRequest, work: WorkCounter) -> Costs:
    """Of the VELO chains.

    Without AVX2, the common search by triplet runs, in which a basic block handles one hit instead of eight.
    """
    if not work.avx2:
        pytest.skip("this CPU has no AVX2")
    return Costs(work, request.param, geometry_constants(GEOMETRY))


@pytest.fixture(scope="module")
def real(costs: Costs, shared: Path) -> Cost:
    """The minimum-bias events as retina clusters."""
    return costs.of(real_events(shared, "retina"))


def simulated(nu: float, encoding: VeloEncoding) -> list[RawBank]:
    """A crossing of about nu collisions."""
    return next(simulate_events(1, seed=1, geometry=GEOMETRY, nu=nu, velo_banks=encoding))


DENSE_IN_THE_UT = WHOLE_DENSE["forward tracks, all of it in the UT"]
DENSE: dict[str, Callable[[int], list[RawBank]]] = {
    "simulated": lambda cut: simulated(cut // 273, "retina"),
    "simulated super-pixels": lambda cut: simulated(cut // 327, "superpixel"),
    "noise": lambda cut: noise(cut),
    "super-pixel noise": lambda cut: super_pixel_noise(cut),
    "super-pixel noise, none isolated": lambda cut: super_pixel_noise(cut, isolated=False),
    "in 10 bins of phi": lambda cut: crowded_in_phi(7_000, 10, GEOMETRY),
    "in 20 bins of phi": lambda cut: crowded_in_phi(14_000, 20, GEOMETRY),
    "in 40 bins of phi": lambda cut: crowded_in_phi(cut, 40, GEOMETRY),
    "in 60 bins of phi": lambda cut: crowded_in_phi(cut, 60, GEOMETRY),
    "colliding super-pixels": lambda cut: colliding_super_pixels(cut, cut // 48, 24),
}  # fmt: skip
REFUSED: dict[str, Callable[[int], list[RawBank]]] = {
    "in one bin of phi": lambda cut: crowded_in_phi(6_000, 1, GEOMETRY),
    "in 6 bins of phi": lambda cut: crowded_in_phi(cut, 6, GEOMETRY),
    "super-pixels in one place": lambda cut: colliding_super_pixels(cut),
    "super-pixels in many full stretches": lambda cut: colliding_super_pixels(cut, cut // 64, 64),
}


@pytest.mark.parametrize("name", DENSE)
def test_the_densest_events_that_are_reconstructed_cost_a_bounded_number_of_real_ones(
    costs: Costs, real: Cost, name: str
) -> None:
    cost = costs.of([DENSE[name](costs.cut)])
    print(f"{name}: {cost.event / real.event:.1f} real events, {cost.byte / real.byte:.2f} by byte")
    # More than 32 primary vertices are an overflow too; these events still have clusters and tracks.
    assert cost.flags & ~EventFlag.OVERFLOW == 0
    assert 8 < cost.event / real.event < MAX_EVENTS
    assert cost.byte / real.byte < MAX_PER_BYTE


@pytest.mark.parametrize("name", REFUSED)
def test_an_event_that_crowds_one_place_is_flagged_before_it_costs_more(costs: Costs, real: Cost, name: str) -> None:
    cost = costs.of([REFUSED[name](costs.cut)])
    print(f"{name}: {cost.event / real.event:.1f} real events, {cost.byte / real.byte:.2f} by byte")
    assert cost.flags == EventFlag.OVERFLOW
    assert cost.event / real.event < MAX_EVENTS
    assert cost.byte / real.byte < MAX_PER_BYTE


@pytest.mark.parametrize("make", [noise, super_pixel_noise])
def test_an_event_above_the_limit_on_clusters_costs_less_than_a_real_one(
    costs: Costs, real: Cost, make: Callable[[int], list[RawBank]]
) -> None:
    cost = costs.of([make(65_312)])
    print(f"{make.__name__}: {cost.event / real.event:.2f} real events")
    assert cost.flags == TOO_MANY_CLUSTERS.mask
    assert cost.event < MAX_OF_CUT_EVENT * real.event


def hits_on_sensors(n_sensors: int, n: int) -> tuple[Banks, NDArray[np.uint32]]:
    """Super-pixels of one pixel on some sensors, none beside another, and the ids of their hits, sensor by sensor."""
    of_sensor = n // n_sensors
    place = np.random.default_rng(1).choice(192 * 32, of_sensor, replace=False).astype(np.uint32)
    column, row = 2 * (place // 32), 2 * (place % 32)
    words = (1 | row << 8 | column << 14).astype(np.uint32)
    sensors = range(0, n_sensors)
    banks = [bank_of(LhcbBankType.VP, 2, sensor, words) for sensor in sensors]
    ids = [2 << 28 | sensor << 18 | 2 * column << 8 | 4 * row for sensor in sensors]
    return Banks([banks]), np.concatenate(ids).astype(np.uint32)


def cost_of_sizes(work: WorkCounter, n_sensors: int, n: int, of_sensor: int = MOST_PIXELS) -> float:
    """Cost of `velo_large_clusters` by pixel, with at most `of_sensor` hits of each sensor on counted tracks."""
    banks, ids = hits_on_sensors(n_sensors, n)
    own = n // n_sensors
    hits = [first + i for first in range(0, len(ids), own) for i in range(min(own, of_sensor))]
    tracks = [OracleTrack(tuple(hits[first : first + 5]), 0.0, 0.0, backward=False) for first in range(0, len(hits), 5)]
    work.take()
    ((pixels, _),) = banks.run([ids], [tracks], COUNT_ALL, on_cpu(kernels=work.kernels))
    assert [pixels[hit] for hit in hits] == [1] * len(hits)
    return work.take() / n


@pytest.mark.parametrize("n_sensors", [5, 26])
def test_sizes_of_clusters_cost_the_same_for_each_pixel_on_few_and_on_many_sensors(
    work: WorkCounter, n_sensors: int
) -> None:
    """Without cells each hit reads all words of its sensor: 30 times the cost on 5 sensors."""
    spread = cost_of_sizes(work, 200, MOST_PIXELS)
    for n, of_sensor in ((MOST_PIXELS, MOST_PIXELS), (MOST_PIXELS, 8), (MOST_PIXELS // 2, MOST_PIXELS)):
        crowded = cost_of_sizes(work, n_sensors, n, of_sensor)
        print(f"{n} pixels on {n_sensors} sensors: {crowded:.0f} by pixel; on 200: {spread:.0f}")
        assert crowded < 1.5 * spread


def test_words_of_one_place_cost_no_more_than_a_crowded_sensor(work: WorkCounter) -> None:
    """Damaged banks of one super-pixel, 2,400 copies on each sensor, of which a hit reads 64 at most."""
    spread = cost_of_sizes(work, 200, MOST_PIXELS)
    words = np.full(MOST_PIXELS // 5, 1 | 10 << 8 | 50 << 14 | 1 << 31, np.uint32)
    banks = Banks([[bank_of(LhcbBankType.VP, 2, sensor, words) for sensor in range(5)]])
    ids = np.repeat(2 << 28 | np.arange(5, dtype=np.uint32) << np.uint32(18) | 100 << 8 | 40, len(words))
    tracks = [OracleTrack(tuple(range(i, i + 5)), 0.0, 0.0, backward=False) for i in range(0, len(ids), 5)]
    work.take()
    banks.run([ids.astype(np.uint32)], [tracks], COUNT_ALL, on_cpu(kernels=work.kernels))
    cost = work.take() / MOST_PIXELS
    print(f"words of one place: {cost:.0f} by pixel; spread: {spread:.0f}")
    assert cost < 8 * spread  # 4.8 were measured


@dataclass(frozen=True, slots=True)
class WholeHlt1:
    """A sequence in the built-in detector, and the cost of the densest real event in its own detector."""

    costs: Costs
    densest: float

    def ratio(self, event: Sequence[RawBank]) -> tuple[float, EventFlag]:
        """Cost in units of the densest real event, and flags."""
        cost = self.costs.of([event] * COPIES)
        return cost.event / self.densest, cost.flags


def whole_hlt1(work: WorkCounter, shared: Path, sequence: str, *, common: bool) -> WholeHlt1:
    chain = CHAIN.with_sequence(sequence)
    (sample,) = (shared / "data" / "lhcb-minbias-mdf").glob("*retina3*.mdf")
    real = Costs(work, sequence, chain.load_geometry(shared / "data" / "lhcb-geometry"), common=common)
    densest = max(real.of([event] * COPIES).event for event in read_events(sample))
    return WholeHlt1(Costs(work, sequence, chain.load_geometry(None), common=common), densest)


@pytest.fixture(scope="module", params=WHOLE)
def whole(request: pytest.FixtureRequest, work: WorkCounter, shared: Path) -> WholeHlt1:
    return whole_hlt1(work, shared, request.param, common=WHOLE[request.param])


@pytest.mark.expensive("builds every kernel once more, to count the blocks of whole sequences")
@pytest.mark.parametrize("name", WHOLE_DENSE)
def test_the_whole_of_hlt1_takes_no_event_that_costs_more_than_twenty_of_the_densest_real_one(
    whole: WholeHlt1, name: str
) -> None:
    ratio, flags = whole.ratio(WHOLE_DENSE[name]())
    print(f"{name}: {ratio:.2f} of the densest real event, {flags!r}")
    # The events pass the cuts: one of many collections overflows, and the event keeps the others.
    assert flags & (GLOBAL_EVENT_CUT.mask | TOO_MANY_CLUSTERS.mask | EventFlag.BANK_ERROR) == 0
    assert ratio < MAX_OF_DENSEST


def test_the_cpu_forms_take_the_densest_event_in_the_ut_for_25_of_the_densest_real_one(
    work: WorkCounter, shared: Path
) -> None:
    """Vectors make real events cheaper than this one. `no_ut` runs the other CPU forms."""
    ratio, _ = whole_hlt1(work, shared, "forward_then_matching", common=False).ratio(DENSE_IN_THE_UT())
    assert ratio < MAX_OF_DENSEST_BY_FORMS


def test_an_event_that_the_global_event_cut_takes_costs_less_than_a_real_one(whole: WholeHlt1) -> None:
    ratio, flags = whole.ratio(crossing(TEN_TIMES))
    assert flags & GLOBAL_EVENT_CUT.mask
    assert ratio < MAX_OF_CUT_EVENT
