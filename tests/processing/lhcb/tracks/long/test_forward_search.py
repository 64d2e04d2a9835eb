"""The forward search: its kernels find the tracks of the oracle, on real and simulated events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector as SimulatedDetector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, TrackOrigin
from hltnode.processing.lhcb.tracks.long.parameters import LONG_TRACK_PARAMETERS, long_track_parameters
from hltnode.protocol.lhcb.truth_columns import decode_particle_columns
from tests.processing.framework.kernel_runner import run_algorithms, with_block_size
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.tracks.long.forward_chain import (
    FORWARD_ALGORITHMS,
    LONG_COLUMNS,
    ForwardChain,
    ForwardEvent,
    forward_chain,
    forward_constants,
)
from tests.processing.lhcb.tracks.long.forward_hypothesis_oracle import (
    WITHOUT_UT,
    Candidate,
    OracleHits,
    Settings,
    UtPart,
)
from tests.processing.lhcb.tracks.long.forward_oracle import forward_tracks
from tests.processing.lhcb.ut.ut_chain import Detector, limits_of
from tests.processing.lhcb.velo.velo_chain import real_events
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of, resources
from tests.ptx.occupancy import MULTIPROCESSORS
from tests.ptx.parser import Module, parse

NO_HIT = 0xFFFF
N_SIMULATED = 6
# Largest differences between single and double precision.
TOLERANCE = {"x": 2e-3, "y": 1e-2, "tx": 5e-6, "ty": 1e-5, "quality": 2e-2}
Constants = dict[str, NDArray[np.uint8]]


def run(mep: EncodedMep, constants: Constants) -> list[ForwardEvent]:
    return ForwardChain(constants, limits_of(mep)).run(mep)


def expected_tracks(event: ForwardEvent, constants: Constants) -> list[Candidate]:
    """The long tracks that the oracle finds from hits and VELO-UT tracks of the chain."""
    record = constants[long_track_parameters.name].view(LONG_TRACK_PARAMETERS.dtype)[0]
    hits = OracleHits(
        event.scifi["x"].astype(float), event.scifi["z"].astype(float), event.zone_offset.astype(np.int64)
    )
    tracks, ut_hits, velo = event.ut.tracks, event.ut.hits, event.ut.velo
    lines = {}
    for number in np.flatnonzero(velo.backward == 0).tolist():
        x, y, tx, ty = (float(velo.states[name][number]) for name in ("x", "y", "tx", "ty"))
        lines[number] = (x, y, tx, ty)
    ut_parts = {}
    for number, velo_track in enumerate(tracks["velo_track"].tolist()):
        layers = [layer for layer in range(4) if tracks["hits"][number][layer] != NO_HIT]
        chosen = tracks["hits"][number][layers]
        of_track = (ut_hits[name][chosen].astype(float) for name in ("x", "z", "weight"))
        ut_parts[velo_track] = UtPart(number, float(tracks["qop"][number]), layers, *of_track)
    return forward_tracks(record, hits, lines, ut_parts, Settings(), WITHOUT_UT, len(velo.backward))


def hits_of(track: Candidate) -> list[int]:
    return [track.hits.get(layer, NO_HIT) for layer in range(12)]


def compare(event: ForwardEvent, constants: Constants) -> tuple[int, int]:
    """Number of tracks, and number of tracks that differ; all others must be equal within TOLERANCE."""
    found = event.tracks
    expected = {track.velo_track: track for track in expected_tracks(event, constants)}
    numbers = found["velo_track"].tolist()
    assert numbers == sorted(numbers)
    hits = dict(zip(numbers, found["hits"].tolist(), strict=True))
    different = [n for n in hits.keys() | expected.keys() if n not in expected or hits.get(n) != hits_of(expected[n])]
    rows = [row for row, number in enumerate(numbers) if number not in different]
    same = [expected[numbers[row]] for row in rows]
    assert found["ut_track"][rows].tolist() == [track.ut_track & 0xFFFF for track in same]
    assert found["hit_count"][rows].tolist() == [len(track.hits) for track in same]
    np.testing.assert_allclose(found["qop"][rows], [track.qop for track in same], rtol=1e-5)
    for name, tolerance in TOLERANCE.items():
        np.testing.assert_allclose(found[name][rows], [getattr(track, name) for track in same], rtol=0, atol=tolerance)
    return len(numbers), len(different)


def assert_same(events: Sequence[ForwardEvent], constants: Constants, least: int) -> None:
    """Single and double precision decide alike, except if a hit lies on the edge of a window."""
    counts = np.array([compare(event, constants) for event in events])
    n_tracks, n_different = counts.sum(axis=0).tolist()
    assert n_tracks >= least
    assert n_different <= 0.01 * n_tracks


@cache
def simulated() -> tuple[EncodedMep, Constants, list[ForwardEvent]]:
    detector = SimulatedDetector.builtin()
    simulation = FullSimulation(detector, sample_source("minbias", 7.6, detector.velo.beamline))
    mep = encode_mep(forward_chain(), list(simulation.events(N_SIMULATED, 3)))
    constants = forward_constants(Detector.builtin(), SciFiGeometry.builtin())
    return mep, constants, run(mep, constants)


@cache
def real(shared: Path) -> tuple[EncodedMep, Constants, list[ForwardEvent]]:
    geometry = shared / "data" / "lhcb-geometry"
    mep = encode_mep(forward_chain(), real_events(shared, "retina"))
    constants = forward_constants(Detector.load(geometry), SciFiGeometry.load(geometry))
    return mep, constants, run(mep, constants)


def test_simulated_events_give_the_tracks_of_the_oracle() -> None:
    _, constants, events = simulated()
    assert_same(events, constants, 20)


@pytest.mark.physics
def test_real_events_give_the_tracks_of_the_oracle(shared: Path) -> None:
    _, constants, events = real(shared)
    assert_same(events, constants, 300)


@pytest.mark.physics
def test_long_particles_of_real_events_are_found_with_few_ghosts(shared: Path) -> None:
    mep, _, events = real(shared)
    particles = ParticleTable.of_events([decode_particle_columns(banks) for banks in mep.events])
    ids: list[NDArray[np.uint32]] = []
    of_event: list[int] = []
    for number, event in enumerate(events):
        for row, velo_track in enumerate(event.tracks["velo_track"]):
            scifi, ut = event.tracks["hits"][row], event.tracks["ut_hits"][row]
            parts = (event.ut.velo.ids[velo_track], event.scifi["id"][scifi[scifi != NO_HIT]])
            ids.append(np.concatenate((*parts, event.ut.hits["id"][ut[ut != NO_HIT]])).astype(np.uint32))
            of_event.append(number)
    tracks = TrackTable(np.array(of_event), np.concatenate(ids), np.array([len(row) for row in ids]))
    matches = match_tracks(tracks, particles)
    found = np.zeros(len(particles), dtype=bool)
    found[matches.particle] = True
    n_ghosts = len(tracks) - len(np.unique(matches.track))
    long = particles.is_long & ~particles.is_electron & particles.in_acceptance
    fast = long & (particles.p > 5000)
    assert n_ghosts <= 0.045 * len(tracks)
    assert found[long].sum() >= 0.79 * long.sum()
    assert found[fast].sum() >= 0.92 * fast.sum()
    assert found[fast & (particles.pt > 1000)].sum() >= 0.95 * (fast & (particles.pt > 1000)).sum()
    of_long = long[matches.particle]
    assert matches.purity[of_long].mean() > 0.99
    p = 1 / np.abs(np.concatenate([event.tracks["qop"] for event in events]).astype(float))
    deviation = p[matches.track] / particles.p[matches.particle] - 1
    assert np.quantile(np.abs(deviation[fast[matches.particle]]), 0.68) < 0.008


@cache
def device_code() -> Module:
    return parse(ptx_of(nvrtc_of(CUDA_VERSION), forward_chain().kernels, "90"))


def columns_of(mep: EncodedMep, constants: Constants) -> tuple[dict[str, NDArray[Any]], BatchLimits]:
    """Content of the columns that the algorithms read and write, from the chain."""
    chain = ForwardChain(constants, limits_of(mep))
    chain.run(mep)
    names = {column.name for algorithm in FORWARD_ALGORITHMS for column in algorithm.columns}
    fetch = chain.workspace.fetch
    return {
        name: constants[name] if name in constants else fetch(name)
        for name in sorted(names)
        if name != "batch.header" and "/" not in name
    }, chain.engine.limits


def assert_made_alike(made: dict[str, NDArray[Any]], content: dict[str, NDArray[Any]], n_events: int) -> None:
    """Check that the long tracks of two runs are equal bit by bit."""
    counts = made["long_tracks.count"][:n_events]
    assert counts.tolist() == content["long_tracks.count"][:n_events].tolist()
    assert counts.sum() > 20
    for name in LONG_COLUMNS:
        width = {"hits": 12, "ut_hits": 4}.get(name, 1)
        for event, n in enumerate(counts.tolist()):
            rows = slice(MAX_TRACKS_PER_EVENT * event * width, (MAX_TRACKS_PER_EVENT * event + n) * width)
            column = f"long_tracks.{name}"
            assert made[column][rows].tobytes() == content[column][rows].tobytes()


def inputs(content: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    written = {column.name for algorithm in FORWARD_ALGORITHMS for column in algorithm.writes}
    return {name: values for name, values in content.items() if name not in written}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
def test_tracks_do_not_depend_on_the_threads(block_size: int, backward: bool) -> None:
    mep, constants, _ = simulated()
    content, limits = columns_of(mep, constants)
    launch = with_block_size(block_size, backward=backward, kernels=forward_chain().kernels)
    made = run_algorithms(FORWARD_ALGORITHMS, inputs(content), mep.n_events, limits, launch)
    assert_made_alike(made, content, mep.n_events)


@pytest.mark.parametrize("block_size", [32, 64])
def test_device_code_finds_the_same_tracks(block_size: int) -> None:
    mep, constants, _ = simulated()
    content, limits = columns_of(mep, constants)
    machine = machine_of(device_code())
    launch = PtxLauncher(machine, block_size)
    made = run_algorithms(FORWARD_ALGORITHMS, inputs(content), mep.n_events, limits, launch, allocate=machine.allocate)
    assert_made_alike(made, content, mep.n_events)


@pytest.mark.timeout(300)
def test_eight_blocks_of_the_searches_fit_on_a_multiprocessor_without_spills() -> None:
    used = resources(nvrtc_of(CUDA_VERSION), "90", forward_chain().kernels)
    for algorithm in FORWARD_ALGORITHMS:
        of_kernel = used[algorithm.name]
        assert of_kernel.spill_stores == of_kernel.spill_loads == 0
        assert MULTIPROCESSORS["90"].occupancy(of_kernel, algorithm.block_size) >= 8 * algorithm.block_size / 2048


def test_tracks_of_the_forward_search_say_so() -> None:
    _, _, events = simulated()
    origins = np.concatenate([event.tracks["origin"] for event in events])
    assert set(origins.tolist()) == {TrackOrigin.FORWARD, TrackOrigin.FORWARD_NO_UT}
    for event in events:
        without = event.tracks["origin"] == TrackOrigin.FORWARD_NO_UT
        assert np.array_equal(without, event.tracks["ut_track"] == NO_HIT)
        assert np.array_equal(without, (event.tracks["ut_hits"] == NO_HIT).all(axis=1))
