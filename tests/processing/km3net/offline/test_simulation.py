"""The simulated stream: rates, light of muons, and the same hits however the stream is made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hltnode.processing.km3net.detector_constants import CHERENKOV_COSINE, SPEED_OF_LIGHT, SUB_SLICE_NS
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.offline.simulation.muons import Muon, arrival_times, drawn_muon, expected_photoelectrons
from hltnode.processing.km3net.offline.simulation.sample import (
    TelescopeOptions,
    TelescopeSample,
    sub_slice_banks,
)
from hltnode.processing.km3net.offline.simulation.stream import Conditions, HitStream, source_of_pmts
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.stream_sample import SUB_SLICES_PER_BLOCK
from hltnode.protocol.km3net.hit_banks import HITS_VERSION, HitBankType, decode_hits, hits_of, muons_of
from hltnode.protocol.raw_data.mep import iter_meps
from hltnode.protocol.raw_data.mfp import events_of_mfps

TOWER = km3net_tower()
N = 200


def test_pmts_have_their_rates_and_adjacent_ones_their_coincidences() -> None:
    stream = HitStream(TOWER, Conditions(muon_rate=0.0, coincidences=20_000.0), 3)
    parts = [stream.hits(i)[0] for i in range(N)]
    seconds = N * SUB_SLICE_NS * 1e-9
    rates = np.bincount(np.concatenate(parts)["pmt"], minlength=84) / seconds
    assert (rates > 5e5).sum() == 2
    np.testing.assert_allclose(rates[rates < 5e5].mean(), 55_000 + 20_000, rtol=0.03)
    close = 0
    for hits in parts:
        apart = np.abs(hits["time"].astype(int)[:, None] - hits["time"])
        same = hits["pmt"][:, None] // 2 == hits["pmt"] // 2
        close += int((same & (hits["pmt"][:, None] < hits["pmt"]) & (apart < 15)).sum())
        assert hits["time"].max() < SUB_SLICE_NS
    # Pairs by accident add about a tenth.
    assert 0.9 < close / (42 * 20_000 * seconds) < 1.4


def test_light_arrives_when_the_cone_does() -> None:
    """On the track at the time of the muon; away from it, a little later than the point that emits the light."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        muon = drawn_muon(rng, 50.0)
        assert np.linalg.norm(muon.position) <= 50.0
        np.testing.assert_allclose(np.linalg.norm(muon.direction), 1.0)
        along = np.array([0.0, 30.0, -30.0])
        times, away = arrival_times(muon, muon.position + along[:, None] * muon.direction)
        np.testing.assert_allclose(times, along / SPEED_OF_LIGHT, atol=1e-4)
        np.testing.assert_allclose(away, 0.0, atol=1e-5)
        outwards = np.cross(muon.direction, [1.0, 0.0, 0.0])
        outwards /= np.linalg.norm(outwards)
        (time,), (far,) = arrival_times(muon, (muon.position + 40.0 * outwards)[None])
        sine = (1 - CHERENKOV_COSINE**2) ** 0.5
        emitted = -40.0 * CHERENKOV_COSINE / sine / SPEED_OF_LIGHT
        np.testing.assert_allclose(far, 40.0)
        np.testing.assert_allclose(time - emitted, 40.0 / sine * 1.3797 / SPEED_OF_LIGHT, rtol=1e-6)


def test_near_tracks_give_more_light_to_pmts_that_face_it() -> None:
    down = Muon(np.array([15.0, 0.0, 0.0]), np.array([0.0, 0.0, -1.0]))
    near = expected_photoelectrons(down, TOWER)
    far = expected_photoelectrons(replace(down, position=np.array([60.0, 0.0, 0.0])), TOWER)
    assert (near >= far).all()
    sideways = np.flatnonzero(TOWER.directions[:, 0] > 0.9)
    away = np.flatnonzero(TOWER.directions[:, 0] < -0.9)
    assert near[sideways].min() > near[away].max()


def test_any_part_of_the_stream_has_the_same_hits_and_muons_cross_borders() -> None:
    conditions = Conditions(muon_rate=100_000.0)
    whole = [HitStream(TOWER, conditions, 5).hits(i) for i in range(40)]
    stream = HitStream(TOWER, conditions, 5)
    for i in (7, 3, 11):
        for one, other in zip(stream.hits(i), whole[i], strict=True):
            np.testing.assert_array_equal(one, other)
    muons = np.concatenate([true for _, true in whole])
    assert (muons["last"] >= SUB_SLICE_NS).any()
    assert ((muons["first"] >= 0) & (muons["first"] < SUB_SLICE_NS)).all()
    quiet = HitStream(TOWER, replace(conditions, rate=0.0, bright_pmts=0, coincidences=0.0), 5)
    assert sum(len(quiet.hits(i)[0]) for i in range(1, 39)) <= muons["hits"].sum()


def test_files_have_a_bank_for_each_floor_in_the_order_of_pmts() -> None:
    sample = TelescopeSample(SampleRequest(seed=6, run=12), TelescopeOptions(muon_rate=50_000.0))
    banks = sub_slice_banks(sample, 3)
    assert [bank.type for bank in banks] == [HitBankType.HITS] * 14 + [HitBankType.TRUE_MUONS]
    assert {bank.version for bank in banks} == {HITS_VERSION}
    for floor, bank in enumerate(banks[:14]):
        hits = decode_hits(bank.payload)
        assert (source_of_pmts(TOWER)[hits["pmt"]] == floor).all()
        assert (np.diff(hits["pmt"].astype(np.int64) << 32 | hits["time"]) >= 0).all()
    assert muons_of(banks) is not None
    whole = sample.encode_records(0, 6)
    assert sample.encode_records(0, 4) + sample.encode_records(4, 2) == whole
    assert replace(sample, request=SampleRequest(seed=7, run=12)).encode_records(0, 6) != whole


def test_a_mep_repeats_the_sub_slices_of_its_neighbours_and_the_last_one_is_filled() -> None:
    core, n = SUB_SLICES_PER_BLOCK, SUB_SLICES_PER_BLOCK + 2
    sample = TelescopeSample(SampleRequest(seed=6, run=12, file_format="mep"), TelescopeOptions())
    blocks = list(sample.blocks(n, 1))
    assert [size for size, _ in blocks] == [core, 2]
    slices = []
    for number, (_, block) in enumerate(blocks):
        (mep,) = iter_meps(block)
        assert mep.mfps[1].event_id == number
        slices.append([hits_of(banks) for banks in events_of_mfps(mep.mfps)])
    assert [len(each) for each in slices] == [core + 2, core + 2]
    assert len(slices[0][0]) == 0
    for of, place, number in ((0, 1, 0), (0, core + 1, core), (1, 0, core - 1), (1, 1, core), (1, 2, core + 1)):
        np.testing.assert_array_equal(slices[of][place], hits_of(sub_slice_banks(sample, number)))
    assert not any(len(each) for each in slices[1][3:])
