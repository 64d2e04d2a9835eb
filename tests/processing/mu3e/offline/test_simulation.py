"""The simulated stream: rates, truth, and the same hits however the stream is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.mu3e.detector_constants import SUB_SLICE_NS
from hltnode.processing.mu3e.geometry.sensor_table import SOURCES, sensors, source_of_sensors
from hltnode.processing.mu3e.offline.simulation.sample import (
    PixelOptions,
    PixelSample,
    SampleName,
    sub_slice_banks,
)
from hltnode.processing.mu3e.offline.simulation.stream import CHUNK, Conditions, HitStream, SubSlice
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.mu3e.hit_banks import (
    NO_PARTICLE,
    PIXELS,
    DecayKind,
    HitBankType,
    bank_order,
    hits_of,
    true_decays_of,
    true_ids_of,
    true_particles_of,
)
from hltnode.protocol.raw_data.mep import iter_meps
from hltnode.protocol.raw_data.mfp import events_of_mfps

N = CHUNK + 6
QUIET = Conditions(muon_rate=1e7, noise=0.0, bhabha=0.0)


def made(conditions: Conditions, seed: int = 3, n: int = N) -> list[SubSlice]:
    """The first n sub-slices of a stream."""
    stream = HitStream(conditions, seed)
    return [stream.sub_slice(i) for i in range(n)]


def test_muons_and_noise_have_their_rates() -> None:
    slices = made(Conditions(muon_rate=2e7))
    seconds = N * SUB_SLICE_NS * 1e-9
    decays = sum(len(each.decays) for each in slices)
    assert abs(decays - 2e7 * seconds) < 5 * (2e7 * seconds) ** 0.5
    noise = sum(int((ids == NO_PARTICLE).sum()) for each in slices for ids in each.ids)
    expected = len(sensors()) * PIXELS**2 * seconds
    assert abs(noise - expected) < 5 * expected**0.5


def test_every_hit_of_a_particle_is_in_the_stream_and_names_it() -> None:
    slices = made(replace(QUIET, efficiency=1.0))
    ids = np.concatenate([of for each in slices for of in each.ids])
    particles = np.concatenate([each.particles for each in slices])
    assert len(np.unique(particles["id"])) == len(particles)
    # Hits of the first and the last particles may lie before and behind the sub-slices that were made.
    inner = particles[20:-20]
    counts = dict(zip(*np.unique(ids, return_counts=True), strict=True))
    assert [counts.get(number, 0) for number in inner["id"]] == inner["hits"].tolist()
    assert inner["hits"].max() > 4


def test_hits_follow_the_decay_of_their_particle_and_may_cross_a_border() -> None:
    slices = made(QUIET)
    start = {
        int(number): i * SUB_SLICE_NS + float(time)
        for i, each in enumerate(slices)
        for number, time in zip(each.particles["id"], each.particles["time"], strict=True)
    }
    delays, crossing = [], 0
    for i, each in enumerate(slices):
        for hits, ids in zip(each.hits, each.ids, strict=True):
            for time, number in zip(hits["time"].tolist(), ids.tolist(), strict=True):
                if number in start:
                    delays.append(i * SUB_SLICE_NS + time - start[number])
                    crossing += start[number] < i * SUB_SLICE_NS
    # Five deviations of 3 ns before, 60 ns of flight behind.
    assert min(delays) > -16
    assert max(delays) < 76
    assert crossing > 0


def test_hits_that_are_early_cross_the_border_of_a_chunk_too() -> None:
    *_, last, first = made(Conditions(noise=0.0, muon_rate=3e8), n=CHUNK + 1)
    early = np.isin(np.concatenate(last.ids), first.particles["id"])
    assert early.any()
    assert np.concatenate(last.hits)["time"][early].min() > SUB_SLICE_NS - 16


def test_sub_slices_have_hits_by_source_in_the_order_of_banks() -> None:
    for each in made(Conditions(), n=3):
        assert len(each.hits) == SOURCES
        for source, hits in enumerate(each.hits):
            assert (source_of_sensors()[hits["sensor"]] == source).all()
            assert (bank_order(hits) == np.arange(len(hits))).all()
            assert hits["time"].max(initial=0) < SUB_SLICE_NS
            assert max(hits["column"].max(initial=0), hits["row"].max(initial=0)) < PIXELS


def test_truth_of_particles_agrees_with_their_decays_and_hits() -> None:
    slices = made(replace(QUIET, wanted=DecayKind.SIGNAL, spacing=2, efficiency=1.0))
    layer_of, station_of = sensors()["layer"], sensors()["station"]
    sensors_of: dict[int, list[int]] = {}
    for each in slices:
        for hits, ids in zip(each.hits, each.ids, strict=True):
            for sensor, number in zip(hits["sensor"].tolist(), ids.tolist(), strict=True):
                sensors_of.setdefault(number, []).append(sensor)
    for i, each in enumerate(slices[:-1]):
        signal = each.decays[each.decays["kind"] == DecayKind.SIGNAL]
        assert len(signal) == (i % 2 == 0)
        for decay in each.decays:
            of = each.particles[each.particles["decay"] == decay["id"]]
            assert len(of) == decay["particles"] == (3 if decay["kind"] == DecayKind.SIGNAL else 1)
            assert of["charge"].sum() == 1
            assert (of["vertex"] == decay["vertex"]).all()
            assert (of["time"] == decay["time"]).all()
        for particle in each.particles if i else ():
            crossed = np.array(sensors_of.get(int(particle["id"]), []), int)
            bits = int(np.bitwise_or.reduce(1 << layer_of[crossed[station_of[crossed] == 0]].astype(int), initial=0))
            # On the way back a particle may meet a layer that it has missed, but never the reverse.
            assert int(particle["layers"]) & ~bits == 0
            outward = len(crossed) - int(particle["recurls"])
            # At most two sensors of each of four layers.
            assert bin(particle["layers"]).count("1") <= outward <= 8
            assert particle["recurls"] <= len(crossed) == particle["hits"]


def test_an_inefficient_detector_loses_hits() -> None:
    full, half = (
        sum(len(hits) for each in made(replace(QUIET, efficiency=efficiency)) for hits in each.hits)
        for efficiency in (1.0, 0.5)
    )
    assert abs(half - full / 2) < 5 * (full / 4) ** 0.5 + 1
    assert sum(len(h) for each in made(replace(QUIET, efficiency=0.0), n=3) for h in each.hits) == 0


def test_bhabha_pairs_are_a_fraction_of_the_decays() -> None:
    kinds = np.concatenate([each.decays["kind"] for each in made(replace(QUIET, muon_rate=1e8, bhabha=0.1))])
    assert set(np.unique(kinds).tolist()) == {DecayKind.MICHEL, DecayKind.BHABHA}
    fraction = (kinds == DecayKind.BHABHA).mean()
    assert abs(fraction - 0.1) < 5 * (0.09 / len(kinds)) ** 0.5


def test_any_part_of_the_stream_has_the_same_hits() -> None:
    conditions = replace(QUIET, noise=1.0)
    whole = made(conditions, 5)
    stream = HitStream(conditions, 5)
    for i in (CHUNK, CHUNK - 1, 7, 0):
        again = stream.sub_slice(i)
        for one, other in zip(again.hits + again.ids, whole[i].hits + whole[i].ids, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(again.particles, whole[i].particles)


def test_files_have_the_banks_of_all_sources_and_the_truth() -> None:
    sample = PixelSample(SampleRequest(seed=6, run=12), PixelOptions(sample=SampleName.CONVERSION, spacing=1))
    banks = sub_slice_banks(sample, 3)
    assert [bank.type for bank in banks] == (
        [HitBankType.HITS] * SOURCES
        + [HitBankType.TRUE_IDS] * SOURCES
        + [HitBankType.TRUE_PARTICLES, HitBankType.TRUE_DECAYS]
    )
    assert len(hits_of(banks)) == len(true_ids_of(banks)) > 100
    particles, decays = true_particles_of(banks), true_decays_of(banks)
    assert particles is not None
    assert decays is not None
    assert (decays["kind"] == DecayKind.CONVERSION).sum() == 1
    assert len(particles) == decays["particles"].sum()
    whole = sample.encode_records(0, 6)
    assert sample.encode_records(0, 4) + sample.encode_records(4, 2) == whole
    assert replace(sample, request=SampleRequest(seed=7, run=12)).encode_records(0, 6) != whole


def test_a_mep_repeats_the_sub_slices_of_its_neighbours_and_the_last_one_is_filled() -> None:
    sample = PixelSample(SampleRequest(seed=6, run=12, file_format="mep"), PixelOptions(muon_rate=1e7))
    slices = []
    for number in (0, 1):
        (mep,) = iter_meps(sample.encode_slice(number, 4, 6))
        assert mep.mfps[1].event_id == number
        slices.append([hits_of(banks) for banks in events_of_mfps(mep.mfps)])
    assert [len(each) for each in slices] == [6, 6]
    assert len(slices[0][0]) == 0
    for of, place, number in ((0, 1, 0), (0, 5, 4), (1, 0, 3), (1, 1, 4), (1, 2, 5)):
        np.testing.assert_array_equal(slices[of][place], hits_of(sub_slice_banks(sample, number)))
    assert not any(len(each) for each in slices[1][3:])


def test_a_geometry_is_refused_as_the_detector_is_built_in() -> None:
    sample = PixelSample(SampleRequest(seed=6, geometry=Path("elsewhere")), PixelOptions())
    with pytest.raises(ValueError, match="elsewhere: the detector of the chain mu3e is built in"):
        next(sample.blocks(3, 1))


def test_more_particles_than_a_sub_slice_has_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="particles in a sub-slice, at most 1024 have ids"):
        made(Conditions(muon_rate=2e9, bhabha=1.0), n=1)
