"""Stubs of the muon stations alone: the kernel against the oracle, each window, common hits, and bounds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.muon import MuonGeometry, MuonHits
from hltnode.processing.lhcb.muon.collections import (
    MAX_STUBS_PER_EVENT,
    STATION_STRIDE,
    muon_hit_offset,
    muon_types,
)
from hltnode.processing.lhcb.muon.find_stubs import find_stubs
from hltnode.processing.lhcb.raw_data.raw_data_types import raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.subdetectors import SubDetector
from tests.processing.framework.chain_builder import build_chain
from tests.processing.framework.given_columns import given_columns
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.framework.session_folders import session_folder
from tests.processing.lhcb.muon.muon_oracle import sorted_hits
from tests.processing.lhcb.muon.muon_samples import BUILTIN, banks_of, random_digits, simulated_events
from tests.processing.lhcb.muon.stub_oracle import HALF_WIDTH_X, HALF_WIDTH_Y, Stub, margin_of, stubs_of
from tests.processing.lhcb.muon.test_hits import real_events

Z = (15_270.0, 16_470.0, 17_670.0, 18_870.0)
LIMITS = BatchLimits(events=1, meps=1, input_bytes=1 << 20, rows=1)
STUB_COLUMNS = ("hits", "x", "y", "tx", "ty", "chi2_x", "chi2_y")
N_STUBS_OF_REAL_EVENTS = 5
CLOSE = 0.01
"""mm: decisions that are nearer to their limits may differ in single precision."""

Hit = tuple[float, float, float]
"""x, y (mm), half size."""


@functools.cache
def stub_chain() -> Chain:
    """The kernel alone, compiled for the tests of this process."""
    folder = session_folder("hltnode-muon-stubs-")
    chain = Chain(
        name="stubs",
        sequence=AlgorithmSequence(
            (
                given_columns(
                    "given_muon_hits",
                    (muon_hit_offset, *find_stubs.named_reads),
                    folder,
                ),
                find_stubs,
            )
        ),
        kernels=KernelSources("generated/stub_chain_kernels.h", (PROCESSING, folder), str(folder / "stub_chain.so")),
        source=folder / "stub_chain.py",
        readout=LHCB_READOUT,
        subdetectors=frozenset({SubDetector.MUON_A, SubDetector.MUON_C}),
        types=(raw_data_types, muon_types),
    )
    build_chain(chain)
    return chain


def muon_hits(stations: Sequence[Sequence[Hit]], region: int = 0) -> MuonHits:
    """Hits of M2 to M5, all in one region."""
    station = np.repeat(np.arange(4), [len(hits) for hits in stations])
    x, y, size = np.array([hit for hits in stations for hit in hits], float).reshape(-1, 3).T
    nothing = np.zeros(len(station), np.int64)
    return MuonHits(
        x=x,
        y=y,
        z=np.array(Z)[station],
        dx=size,
        dy=size,
        time=nothing,
        time_difference=nothing,
        station=station,
        region=nothing + region,
        crossed=np.ones(len(station), bool),
        tile=np.full(len(station), region << 14, np.uint32),
    )


@dataclass(frozen=True)
class Found:
    flags: EventFlag
    stubs: dict[str, NDArray[Any]]

    @property
    def hits(self) -> list[list[int]]:
        """Of each stub, M2 to M5."""
        found: list[list[int]] = self.stubs["hits"].tolist()
        return found


def find(hits: MuonHits, launch: Launch | None = None, fill: int = 0xA5) -> Found:
    """Run the kernel alone."""
    offset = np.searchsorted(hits.station, np.arange(STATION_STRIDE))
    given = {
        "muon_hits.offset": np.array([0, len(hits.x)]),
        "muon_hits.station_offset": offset,
        "events.flags": np.zeros(1),
        **{f"muon_hits.{name}": getattr(hits, name) for name in ("x", "y", "z", "dx", "dy", "tile")},
    }
    launch = launch or on_cpu(kernels=stub_chain().kernels)
    columns = run_algorithms((find_stubs,), given, 1, LIMITS, launch, fill=fill)
    n = int(columns["muon_stubs.count"][0])
    stubs = {name: columns[f"muon_stubs.{name}"] for name in STUB_COLUMNS}
    stubs["hits"] = stubs["hits"].reshape(-1, 4)
    return Found(EventFlag(int(columns["events.flags"][0])), {name: column[:n] for name, column in stubs.items()})


def assert_stubs(found: dict[str, NDArray[Any]], expected: Sequence[Stub]) -> None:
    assert found["hits"].tolist() == [list(stub.hits) for stub in expected]
    for name, atol in (("x", 0.02), ("y", 0.02), ("tx", 2e-6), ("ty", 2e-6), ("chi2_x", 1e-4), ("chi2_y", 1e-4)):
        numbers = [getattr(stub, name) for stub in expected]
        np.testing.assert_allclose(found[name], numbers, rtol=1e-3, atol=atol, err_msg=name)


def line(x: float, y: float, size: float = 10.0, shift: Hit = (0.0, 0.0, 0.0)) -> list[list[Hit]]:
    """One hit in each station on the line from the origin through (x, y) in M5; that of M4 is shifted."""
    of_station = [[(x * z / Z[3], y * z / Z[3], size)] for z in Z]
    at_x, at_y, size = of_station[2][0]
    of_station[2] = [(at_x + shift[0], at_y + shift[1], size + shift[2])]
    return of_station


def together(*lines: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
    return [[hit for one in lines for hit in one[station]] for station in range(4)]


def test_stubs_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    n_stubs = 0
    for banks in real_events(shared):
        hits = sorted_hits(geometry, decode_muon(banks))
        expected = stubs_of(hits)
        n_stubs += len(expected)
        assert_stubs(find(hits).stubs, expected)
    assert n_stubs == N_STUBS_OF_REAL_EVENTS


def test_stubs_of_simulated_and_random_hits_are_those_of_the_oracle() -> None:
    rng = np.random.default_rng(21)
    events = [*simulated_events(40, "bjpsik", 5), *(banks_of(random_digits(rng, n)) for n in (300, 900, 1800))]
    n_compared = n_stubs = 0
    for banks in events:
        hits = sorted_hits(BUILTIN, decode_muon(banks))
        if margin_of(hits) < CLOSE:
            continue
        n_compared += 1
        expected = stubs_of(hits)
        n_stubs += len(expected)
        assert_stubs(find(hits).stubs, expected)
    assert n_compared > 25
    assert n_stubs > 50


def test_a_straight_line_of_four_hits_is_a_stub() -> None:
    found = find(muon_hits(line(1200.0, -800.0)))
    assert found.hits == [[0, 1, 2, 3]]
    assert found.stubs["x"][0] == pytest.approx(1200.0 * Z[0] / Z[3], abs=0.01)
    assert found.stubs["y"][0] == pytest.approx(-800.0 * Z[0] / Z[3], abs=0.01)
    assert found.stubs["tx"][0] == pytest.approx(1200.0 / Z[3], abs=1e-6)
    assert found.stubs["ty"][0] == pytest.approx(-800.0 / Z[3], abs=1e-6)
    assert found.stubs["chi2_x"][0] < 1e-4
    assert found.flags == EventFlag(0)


@pytest.mark.parametrize("station", range(4))
def test_a_station_without_a_hit_has_no_stub(station: int) -> None:
    stations = line(1200.0, -800.0)
    stations[station] = []
    assert find(muon_hits(stations)).hits == []


def test_the_chi2_is_that_of_twice_the_half_sizes_per_degree_of_freedom() -> None:
    stations = line(1200.0, -800.0, shift=(6.0, 3.0, 0.0))
    # A line follows the third of four hits at equal distances by 0.3 of its shift d: 0.7 d^2 are left.
    hits = muon_hits(stations)
    (expected,) = stubs_of(hits)
    found = find(hits).stubs
    assert expected.chi2_x == pytest.approx(0.7 * 6.0**2 / 20.0**2 / 2)
    assert found["chi2_x"][0] == pytest.approx(expected.chi2_x, rel=1e-3)
    assert found["chi2_y"][0] == pytest.approx(expected.chi2_x / 4, rel=1e-3)


@pytest.mark.parametrize("region", range(4))
@pytest.mark.parametrize("station", range(3))
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_each_window_ends_at_its_half_width(region: int, station: int, axis: int, sign: float) -> None:
    """The seed lies on the line to the origin; windows of M3 and M2 are around the line of the last two hits."""
    half_width = (HALF_WIDTH_X, HALF_WIDTH_Y)[axis][station, region]
    for outside in (False, True):
        shift = sign * (half_width + (0.5 if outside else -0.5))
        stations = line(3000.0, 2000.0, size=1000.0)
        place = list(stations[station][0])
        place[axis] += shift
        stations[station] = [(place[0], place[1], 1000.0)]
        if station == 2:
            # The line of the shifted hit in M4: hits of M3 and M2 lie on it.
            for before in (1, 0):
                at = list(stations[before][0])
                at[axis] += shift * (3 - before)
                stations[before] = [(at[0], at[1], 1000.0)]
        elif station == 1:
            at = list(stations[0][0])
            at[axis] += shift * 2
            stations[0] = [(at[0], at[1], 1000.0)]
        found = find(muon_hits(stations, region))
        assert len(found.hits) == (0 if outside else 1), (half_width, outside)


def test_the_nearest_hit_of_a_window_is_taken_and_of_equal_ones_the_first() -> None:
    stations = line(1200.0, -800.0)
    x, y, size = stations[0][0]
    stations[0] = [(x + 9.0, y, size), (x, y - 8.0, size), (x, y + 8.0, size), (x + 90.0, y + 1.0, size)]
    assert find(muon_hits(stations)).hits == [[1, 4, 5, 6]]


def test_hits_behind_the_station_are_not_taken() -> None:
    """A hit of the next station at the place of the window is loaded with those of the station on a CPU."""
    stations = line(1200.0, -800.0)
    x, y, size = stations[0][0]
    stations[0] = [(x + 50.0, y, size)]
    stations[1].append((x, y, size))
    assert find(muon_hits(stations)).hits == [[0, 1, 3, 4]]


def test_of_stubs_with_a_common_hit_the_one_with_the_smaller_chi2_stays() -> None:
    straight, bent = line(1200.0, -800.0), line(1200.0, -800.0, shift=(6.0, 0.0, 0.0))
    for first, second, kept in ((straight, bent, 0), (bent, straight, 1)):
        stations = together(first, second)
        stations[0], stations[1] = stations[0][:1], stations[1][:1]
        # Each seed in M5 is nearest to its own hit in M4.
        for i, of_line in enumerate((first, second)):
            x, y, size = of_line[3][0]
            moved = 0.0 if of_line is straight else 6.0
            stations[3][i] = (x + moved * Z[3] / Z[2], y, size)
        found = find(muon_hits(stations))
        assert found.hits == [[0, 1, 2 + kept, 4 + kept]]


@pytest.mark.parametrize("shared_station", [0, 1, 2])
def test_a_hit_in_any_station_is_used_once(shared_station: int) -> None:
    """Two lines 40 mm apart in M5; one of them lacks its own hit in a station."""
    one, other = line(1200.0, -800.0), line(1240.0, -800.0)
    stations = together(one, other)
    assert find(muon_hits(stations)).hits == [[0, 2, 4, 6], [1, 3, 5, 7]]
    del stations[shared_station][1]
    found = find(muon_hits(stations))
    assert len(found.hits) == 1
    assert stubs_of(muon_hits(stations))[0].hits == tuple(found.hits[0])


def test_of_stubs_with_equal_chi2_the_first_stays() -> None:
    stations = together(line(1200.0, -800.0), line(1200.0, -800.0))
    for station in range(3):
        del stations[station][1]
    found = find(muon_hits(stations))
    assert found.hits == [[0, 1, 2, 3]]


def test_a_hit_without_a_size_is_in_no_stub() -> None:
    stations = line(1200.0, -800.0, shift=(3.0, 3.0, -10.0))
    assert find(muon_hits(stations)).hits == []


def lines_apart(n: int) -> list[list[Hit]]:
    """Lines that share no hit and are outside of each other's windows."""
    return together(*(line(-4000.0 + 500.0 * (i % 17), -4000.0 + 400.0 * (i // 17)) for i in range(n)))


def test_an_event_with_more_stubs_than_places_is_flagged_and_keeps_the_first() -> None:
    full = find(muon_hits(lines_apart(MAX_STUBS_PER_EVENT)))
    assert full.flags == EventFlag(0)
    assert len(full.hits) == MAX_STUBS_PER_EVENT
    more = find(muon_hits(lines_apart(MAX_STUBS_PER_EVENT + 1)))
    assert more.flags == EventFlag.OVERFLOW
    n = MAX_STUBS_PER_EVENT + 1
    assert more.hits == [[i, n + i, 2 * n + i, 3 * n + i] for i in range(MAX_STUBS_PER_EVENT)]


def test_the_common_kernel_and_every_block_size_find_the_same_stubs() -> None:
    rng = np.random.default_rng(23)
    events = [banks_of(random_digits(rng, 1500)), *simulated_events(40, "bjpsik", 5)[:6]]
    kernels = stub_chain().kernels
    for banks in events:
        hits = sorted_hits(BUILTIN, decode_muon(banks))
        expected = find(hits)
        launches = (on_cpu(kernels=kernels, common=True), *(with_block_size(n, kernels=kernels) for n in (1, 32, 100)))
        for launch in launches:
            found = find(hits, launch, fill=0xFF)
            assert found.flags == expected.flags
            for name in STUB_COLUMNS:
                assert found.stubs[name].tobytes() == expected.stubs[name].tobytes(), name
