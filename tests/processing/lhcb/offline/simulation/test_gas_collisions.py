"""Samples of collisions with gas and of light ions: their crossings, their places, and the vertices that are found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import Z_AXIS
from hltnode.processing.lhcb.lines.line_types.event_lines import PassthroughPv
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import McVertex, decode_vertices
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import CrossingType, decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.given_columns import velo_columns

BEAM_1, BEAM_2, BOTH = CrossingType.BEAM_1, CrossingType.BEAM_2, CrossingType.BEAM_BEAM


@cache
def collisions(sample: Sample, n: int = 60, nu: float = 2.0) -> list[SimulatedCollisions]:
    random = EventRandom([np.random.default_rng((1, i)) for i in range(n)])
    return sample_source(sample, nu, Z_AXIS)(random, range(n))


@pytest.mark.parametrize(
    ("sample", "crossings", "low", "high"),
    [
        (Sample.SMOG2, (BEAM_1, BOTH), -541.0, -341.0),
        (Sample.BEAM_GAS, (BEAM_1, BEAM_2), -1500.0, 1500.0),
        (Sample.LIGHT_ION, (BOTH,), -100.0, 100.0),
        (Sample.PBPB, (BOTH,), -100.0, 100.0),
    ],
)
def test_each_event_has_one_collision_of_the_kind_in_its_crossing(
    sample: Sample, crossings: tuple[CrossingType, ...], low: float, high: float
) -> None:
    events = collisions(sample)
    assert [event.crossing_type for event in events] == [crossings[i % len(crossings)] for i in range(len(events))]
    z = np.array([event.positions[-1, 2] for event in events])
    assert low < z.min() < low + 0.2 * (high - low)
    assert high - 0.2 * (high - low) < z.max() < high
    n_protons = np.array([len(event.positions) - 1 for event in events])
    alone = np.array([event.crossing_type is not BOTH or sample in (Sample.LIGHT_ION, Sample.PBPB) for event in events])
    assert not n_protons[alone].any()
    assert sample is not Sample.SMOG2 or 1.0 < n_protons[~alone].mean() < 3.0
    assert {event.kind for event in events} == {sample.value}


@pytest.mark.parametrize("sample", [Sample.SMOG2, Sample.LIGHT_ION])
def test_particles_of_a_collision_start_there_and_others_name_their_mother(sample: Sample) -> None:
    for event in collisions(sample):
        n = len(event.collision)
        origins = event.positions[event.collision]
        np.testing.assert_array_equal(event.particles.origin[:n], origins)
        assert not event.particles.mother[:n].any()
        rest = event.particles.take(np.arange(n, len(event.particles)))
        named = np.flatnonzero((rest.mother_key >= 0) & (rest.mother_key < n))
        np.testing.assert_array_equal(event.particles.pid[rest.mother_key[named]], rest.mother[named])
    assert sum(len(event.collision) for event in collisions(sample)) > 500


def test_beams_fly_in_their_directions_and_ions_in_both() -> None:
    def forward(event: SimulatedCollisions) -> NDArray[np.bool_]:
        own = event.collision == len(event.positions) - 1
        pz = event.particles.momentum[: len(own), 2][own]
        forwards: NDArray[np.bool_] = pz > 0
        return forwards

    events = collisions(Sample.BEAM_GAS)
    assert np.concatenate([forward(event) for event in events[0::2]]).mean() > 0.97
    assert np.concatenate([forward(event) for event in events[1::2]]).mean() < 0.03
    assert 0.4 < np.concatenate([forward(event) for event in collisions(Sample.LIGHT_ION)]).mean() < 0.6
    sizes = [len(event.collision) for event in collisions(Sample.LIGHT_ION)]
    assert 250 < np.mean(sizes) < 900 < max(sizes)


def test_lead_ions_are_as_large_as_their_centrality_says() -> None:
    """24,500 exp(-5.5 c) particles for the fraction c of more central collisions, 0.4 to 1."""
    sizes = np.sort([len(event.collision) for event in collisions(Sample.PBPB)])
    assert 60 < sizes[0] < 150
    assert 2300 < sizes[-1] < 2900
    fraction = 1.0 - 0.6 * (np.arange(60) + 0.5) / 60
    assert np.abs(np.log(sizes / (24_500 * np.exp(-5.5 * fraction)))).max() < 0.5


def test_an_event_does_not_depend_on_those_made_with_it() -> None:
    source = sample_source(Sample.SMOG2, 2.0, Z_AXIS)
    (alone,) = source(EventRandom([np.random.default_rng((1, 7))]), [7])
    np.testing.assert_array_equal(alone.particles.momentum, collisions(Sample.SMOG2)[7].particles.momentum)
    assert alone.crossing_type is BOTH


def test_only_minimum_bias_can_be_enriched() -> None:
    with pytest.raises(ValueError, match="sample smog2: only minimum bias can be enriched"):
        sample_source(Sample.SMOG2, 1.0, Z_AXIS, enrich=True)


@cache
def smog2_events() -> list[list[RawBank]]:
    detector = Detector.builtin()
    return list(FullSimulation(detector, sample_source(Sample.SMOG2, 7.6, detector.velo.beamline)).events(32, 1))


def truth_of(banks: list[RawBank]) -> list[McVertex]:
    return decode_vertices(next(bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES))


@pytest.mark.physics
def test_vertices_in_the_gas_are_found_once_and_told_from_those_of_both_beams() -> None:
    """95 % of the gas vertices with 5 tracks, none twice, and no vertex of both beams twice."""
    events = smog2_events()
    odin = [decode_odin(next(bank for bank in banks if bank.type == BankType.ODIN)) for banks in events]
    assert [one.crossing_type for one in odin] == [BEAM_1, BOTH] * 16
    columns, _ = velo_columns(events, Detector.builtin().velo)
    pvs = columns["pvs.vertex"].reshape(len(columns["pvs.count"]), -1)
    n_gas = n_found = n_protons = 0
    for i, banks in enumerate(events):
        found = pvs["z"][i, : columns["pvs.count"][i]]
        in_gas = found[(found > -541.0) & (found < -341.0)]
        (gas,) = [vertex for vertex in truth_of(banks) if vertex.z < -300.0]
        assert np.abs(in_gas - gas.z).max(initial=0.0) < 10.0
        assert len(in_gas) <= 1
        n_gas += gas.n_tracks >= 5
        n_found += gas.n_tracks >= 5 and len(in_gas) == 1
        # Proton collisions have sigma 63 mm in z, and each vertex is found at most once.
        of_protons = np.array([vertex.z for vertex in truth_of(banks) if vertex.z > -300.0])
        others = found[found > -341.0]
        nearest = [int(np.abs(of_protons - z).argmin()) for z in others]
        assert len(set(nearest)) == len(nearest)
        n_protons += len(others)
    assert n_gas > 22
    assert n_found >= 0.95 * n_gas
    assert n_protons > 40


@pytest.mark.physics
def test_lines_on_the_gas_and_on_both_beams_select_their_own_vertices() -> None:
    lines = (PassthroughPv("Gas"), PassthroughPv("Beams", min_z=-341.0, max_z=1000.0))
    trigger = TriggerConfig(tuple(line.line() for line in lines), sequence="velo")
    chain = CHAIN.with_sequence("velo")
    events = smog2_events()
    limits = BatchLimits(events=len(events), input_bytes=64 << 20)
    engine = CHAIN.create_engine(CpuBackend(CHAIN.kernels), chain.load_geometry(None), trigger, limits)
    [batch] = OfflineRunner(engine).run(encode_meps(chain, events, len(events)))
    words = batch.workspace.output.lines.copy()
    engine.close()
    decided = words.reshape(len(events), -1)[:, 0]
    in_gas, of_beams = (decided & 1) != 0, (decided & 2) != 0
    many = np.array([min(v.n_tracks for v in truth_of(banks) if v.z < -300.0) >= 5 for banks in events])
    assert in_gas[many].mean() >= 0.95
    # Crossings of beam 1 alone have no vertex of both beams; nearly all others have one.
    assert not of_beams[0::2].any()
    assert of_beams[1::2].mean() > 0.9
