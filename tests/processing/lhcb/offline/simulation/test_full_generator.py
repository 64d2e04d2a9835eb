from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    label_clusters,
    retina_ids,
    superpixel_ids,
)
from hltnode.processing.lhcb.offline.simulation.velo_generator import CHUNK
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.scifi_links import decode_scifi_links
from hltnode.protocol.lhcb.banks.ut import decode_ut, decode_ut_charges
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.lhcb.lhcb_id import scifi_channel, ut_channel, velo_channel
from hltnode.protocol.lhcb.truth import McParticle, decode_particles, decode_vertices
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank

DETECTOR = Detector.builtin()


def simulation(
    sample: str = "minbias", nu: float = 7.6, versions: BankVersions | None = None, detector: Detector = DETECTOR
) -> FullSimulation:
    return FullSimulation(detector, sample_source(sample, nu, detector.velo.beamline), versions=versions)


def as_bytes(events: list[list[RawBank]]) -> list[list[tuple[int, int, int, bytes]]]:
    return [[(b.type, b.version, b.source_id, bytes(b.payload)) for b in banks] for banks in events]


@pytest.fixture(scope="module")
def sample() -> list[list[RawBank]]:
    return list(simulation().events(160, 11))


@pytest.fixture(scope="module")
def truth(sample: list[list[RawBank]]) -> list[list[McParticle]]:
    return [decode_particles(banks) for banks in sample]


def test_an_event_depends_on_seed_and_number_only() -> None:
    n = CHUNK + 4
    whole = as_bytes(list(simulation().events(n, 4)))
    again = simulation()
    pieces = [*again.events(3, 4), *again.events(n - 3, 4, first_event=3)]
    assert as_bytes(pieces) == whole
    assert as_bytes(list(simulation().events(2, 5))) != whole[:2]


def test_an_event_has_the_banks_of_all_detectors(sample: list[list[RawBank]]) -> None:
    kinds = [(bank.type, bank.version) for bank in sample[0]]
    assert kinds[0] == (BankType.ODIN, 7)
    for kind, n in (
        ((LhcbBankType.VP_RETINA_CLUSTER, 3), 208),
        ((LhcbBankType.UT, 3), 180),
        ((LhcbBankType.FT_CLUSTER, 5), 240),
        ((LhcbBankType.MUON, 2), 10),
        ((LhcbBankType.ECAL_PACKED, 2), 28),
        ((LhcbBankType.MC_ECAL, 1), 1),
        ((LhcbBankType.MC_VERTICES, 1), 1),
        ((LhcbBankType.MC_SAMPLE, 1), 1),
    ):
        assert kinds.count(kind) == n


@pytest.mark.parametrize(
    "versions",
    [
        BankVersions(),
        BankVersions(velo_version=4, ut_version=4),
        BankVersions(velo="superpixel"),
        BankVersions(velo="superpixel", velo_version=4),
        BankVersions(scifi_version=7),
        BankVersions.of_data_taking(),
    ],
)
def test_the_ids_of_truth_are_those_of_decoding(versions: BankVersions) -> None:
    for banks in simulation(versions=versions).events(4, 3):
        if versions.velo == "retina":
            velo = retina_ids(decode_retina_clusters(banks))
        else:
            sensor, col, row = (values.astype(np.int64) for values in decode_superpixels(banks).pixels())
            pixels = np.unique(sensor << 18 | col << 8 | row)
            velo = superpixel_ids(pixels, label_clusters(pixels))
        ut = DETECTOR.ut.hits(decode_ut(banks)).lhcb_id
        if versions.scifi_version == 5:
            scifi = DETECTOR.scifi.hits(decode_scifi(banks)).lhcb_id
        else:
            scifi = DETECTOR.scifi.link_hits(decode_scifi_links(banks)).lhcb_id
        particles = decode_particles(banks)
        for name, decoded, noise in (("velo_ids", velo, 0), ("ut_ids", ut, 60), ("scifi_ids", scifi, 400)):
            named = {hit for particle in particles for hit in getattr(particle, name)}
            assert named <= set(decoded.tolist()), name
            assert len(named) > 0.9 * (len(decoded) - noise), name
            for particle in particles:
                assert len(set(getattr(particle, name))) == len(getattr(particle, name))


def test_flags_follow_the_definitions(truth: list[list[McParticle]]) -> None:
    for particle in (one for event in truth[:30] for one in event):
        modules = velo_channel(np.array(particle.velo_ids, np.uint32))[0] // 4
        ut_layers = set(ut_channel(np.array(particle.ut_ids, np.uint32)).layer.tolist())
        channel = scifi_channel(np.array(particle.scifi_ids, np.uint32))
        layers = set(zip(channel.station.tolist(), channel.layer.tolist(), strict=True))
        has_scifi = all(
            any((station, layer) in layers for layer in pair) for station in (1, 2, 3) for pair in ((0, 3), (1, 2))
        )
        assert particle.has_velo == (len(set(modules.tolist())) >= 3)
        assert particle.has_ut == (bool(ut_layers & {0, 3}) and bool(ut_layers & {1, 2}))
        assert particle.has_scifi == has_scifi
        assert particle.is_long == (particle.has_velo and particle.has_scifi)
        assert particle.is_down == (particle.has_ut and particle.has_scifi)


def test_keys_are_distinct_and_mothers_with_hits_are_found_by_them(truth: list[list[McParticle]]) -> None:
    n_found = 0
    for event in truth[:50]:
        by_key = {particle.key: particle for particle in event}
        assert len(by_key) == len(event)
        for particle in event:
            if particle.mother_key in by_key:
                assert by_key[particle.mother_key].pid == particle.mother_pid
                n_found += 1
    assert n_found > 100


def test_scifi_hits_of_fast_particles_lie_on_smooth_curves(truth: list[list[McParticle]]) -> None:
    x_layers = {(station, layer) for station in (1, 2, 3) for layer in (0, 3)}
    residuals = []
    for particle in (one for event in truth for one in event):
        if not (particle.is_long and particle.p > 10_000 and abs(particle.pid) != 11):
            continue
        ids = np.array(particle.scifi_ids, np.uint32)
        channel = scifi_channel(ids)
        chosen = [pair in x_layers for pair in zip(channel.station.tolist(), channel.layer.tolist(), strict=True)]
        hits = DETECTOR.scifi.positions(ids[chosen] & np.uint32(0x0FFF_FFFF), *np.zeros((2, sum(chosen)), np.uint32))
        if len(hits.x) >= 6:
            z = (hits.z - 8520.0) / 1000.0
            residuals.append(hits.x - np.polyval(np.polyfit(z, hits.x, 2), z))
    spread = np.abs(np.concatenate(residuals))
    assert len(spread) > 2000
    assert np.median(spread) < 0.15  # without the fraction the position is known to a channel of 0.25 mm
    assert (spread < 0.6).mean() > 0.985


def test_ut_hits_of_fast_particles_lie_near_the_straight_line_from_their_origin(truth: list[list[McParticle]]) -> None:
    x_distance, y_inside = [], []
    lane = DETECTOR.ut.lane_of_sector()
    sector_of_channel = {int(DETECTOR.ut.channel_of_lane[lane[s]]): s for s in range(len(lane)) if lane[s] >= 0}
    for particle in (one for event in truth for one in event):
        if not (particle.is_long and particle.p > 20_000 and abs(particle.pid) != 11):
            continue
        slope = 1 / np.sinh(particle.eta)
        for hit in particle.ut_ids:
            sector = sector_of_channel[hit & 0x0FFF_FE00]
            p0, step = DETECTOR.ut.p0[sector].astype(float), DETECTOR.ut.dp0di[sector].astype(float)
            z = abs(p0[2])
            x = particle.vertex_x + slope * np.cos(particle.phi) * (z - particle.vertex_z)
            y = particle.vertex_y + slope * np.sin(particle.phi) * (z - particle.vertex_z)
            dx_dy = (0.0, 0.08748867, -0.0874886, 0.0)[(hit >> 18) & 3]
            x_distance.append(p0[0] + step[0] * (hit & 0x1FF) + dx_dy * y - x)
            y_inside.append(p0[1] - 3 < y < p0[1] + DETECTOR.ut.dy[sector] + 3)
    distance = np.abs(x_distance)
    assert len(distance) > 500
    assert np.median(distance) < 1.5
    assert np.percentile(distance, 95) < 4.0
    assert np.mean(y_inside) > 0.98


def test_the_magnet_bends_the_charges_apart_and_back_with_the_other_polarity() -> None:
    def mean_bend(polarity: float) -> float:
        detector = DETECTOR.with_polarity(polarity)
        bends = []
        for banks in simulation(detector=detector, sample="z", nu=1.0).events(40, 2):
            for particle in decode_particles(banks):
                if particle.is_long and particle.p > 5000:
                    hits = detector.scifi.positions(
                        np.array(particle.scifi_ids, np.uint32) & np.uint32(0x0FFF_FFFF),
                        *np.zeros((2, len(particle.scifi_ids)), np.uint32),
                    )
                    straight = np.cos(particle.phi) / np.sinh(particle.eta) * hits.z
                    bends.append(particle.charge * particle.p * np.median(hits.x - straight))
        return float(np.mean(bends))

    down, up = mean_bend(-1.0), mean_bend(1.0)
    # 1.2 GeV of kick at 5.2 m move x at 8.5 m by 4 m GeV.
    assert down > 2e6
    assert up < -2e6


def test_muons_of_z_reach_the_last_station_and_pions_do_not() -> None:
    n_muons = n_seen = 0
    for banks in simulation("z", nu=0.0).events(60, 8):
        hits = DETECTOR.muon.hits(decode_muon(banks))
        for particle in decode_particles(banks):
            if not (particle.from_signal and particle.is_long):
                continue
            n_muons += 1
            last = hits.station == 3
            slope_y = np.sin(particle.phi) / np.sinh(particle.eta)
            n_seen += bool((np.abs(hits.y[last] - slope_y * hits.z[last]) < 60 + hits.dy[last]).any())
    assert n_muons > 50
    assert n_seen > 0.85 * n_muons


@pytest.mark.parametrize(
    ("sample", "n_daughters", "head", "flag"),
    [("bjpsik", 3, 521, "from_b"), ("bsphiphi", 4, 531, "from_b"), ("d2kpi", 2, 421, "from_c"), ("z", 2, 23, "")],
)
def test_signal_samples_have_one_decay_in_each_event(sample: str, n_daughters: int, head: int, flag: str) -> None:
    n_long = n_signal = 0
    for banks in simulation(sample, nu=2.0).events(16, 6):
        signal = [particle for particle in decode_particles(banks) if particle.from_signal]
        assert 1 <= len(signal) <= n_daughters
        n_signal += len(signal)
        n_long += sum(particle.is_long for particle in signal)
        if flag:
            assert all(getattr(particle, flag) for particle in signal)
            assert {abs(particle.dom_pid) for particle in signal} == {head}
            assert len({particle.dom_key for particle in signal}) == 1
        else:
            assert {particle.mother_pid for particle in signal} == {head}
        (vertices,) = (bank for bank in banks if bank.type == LhcbBankType.MC_VERTICES)
        assert any(vertex.n_tracks for vertex in decode_vertices(vertices))
    assert n_signal > 0.9 * 16 * n_daughters
    assert n_long > 0.45 * n_signal


def test_a_crossing_without_collisions_is_still_an_event() -> None:
    for banks in simulation(nu=0.0).events(3, 1):
        assert decode_particles(banks) == []
        assert 0 < len(decode_ut(banks).board) < 110
        assert 0 < len(decode_scifi(banks).bank) < 540


def test_crowded_events_fit_the_banks() -> None:
    (banks,) = simulation(nu=60.0).events(1, 1)
    assert len(decode_scifi(banks).bank) > 10_000
    assert len(decode_particles(banks)) > 4000


@pytest.mark.parametrize("bad", [{"n": -1}, {"seed": -1}, {"first_event": -1}])
def test_impossible_requests_are_refused_before_the_first_event(bad: dict[str, int]) -> None:
    arguments = {"n": 1, "seed": 1, "first_event": 0} | bad
    with pytest.raises(ValueError, match="must not be negative"):
        simulation().events(arguments["n"], arguments["seed"], first_event=arguments["first_event"])


def test_versions_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(ValueError, match=r"retina banks of version 2: \(3, 4\) can be written"):
        BankVersions(velo_version=2)
    with pytest.raises(ValueError, match="UT banks of version 5"):
        BankVersions(ut_version=5)


def test_one_scifi_hit_in_thirteen_is_of_a_cluster_wider_than_eight_channels(sample: list[list[RawBank]]) -> None:
    sizes = np.concatenate([decode_scifi(banks).pseudo_size for banks in sample])
    assert 0.06 < (sizes == 0).mean() < 0.09
    assert 0.10 < (sizes > 4).mean() < 0.16


def test_half_of_the_ut_hits_are_far_from_the_beam(sample: list[list[RawBank]]) -> None:
    x = np.concatenate([DETECTOR.ut.hits(decode_ut(banks)).x for banks in sample])
    assert 125 < np.median(np.abs(x)) < 190


def test_wide_ut_clusters_come_in_pieces_of_four_strips(sample: list[list[RawBank]]) -> None:
    n_strips = np.concatenate([decode_ut_charges(banks).n_strips for banks in sample])
    assert n_strips.max() == 4
    assert (n_strips == 4).mean() > 0.02


def test_muon_background_thins_out_within_a_region(sample: list[list[RawBank]]) -> None:
    hits = [DETECTOR.muon.hits(decode_muon(banks)) for banks in sample]
    for region, (inner, outer) in {1: (600, 1400), 2: (1200, 2800)}.items():
        radius = np.concatenate([np.hypot(of.x, of.y)[(of.station == 0) & (of.region == region)] for of in hits])
        # If spread evenly over the pads, the median would be 0.51.
        assert inner < np.median(radius) < inner + 0.46 * (outer - inner)
    in_r1 = [(of.station == 0) & (of.region == 0) for of in hits]
    x, y = (
        np.concatenate([np.abs(v[w]) for v, w in zip(values, in_r1, strict=True)])
        for values in ([of.x for of in hits], [of.y for of in hits])
    )
    # If spread evenly, both would be equal; in the real events they are 436 and 172 mm.
    assert 350 < np.median(x) < 500
    assert 140 < np.median(y) < 250


def test_knock_on_electrons_behind_the_velo_have_their_mother(truth: list[list[McParticle]]) -> None:
    n_named = n_electrons = 0
    for event in truth[:60]:
        by_key = {particle.key: particle for particle in event}
        for electron in event:
            if abs(electron.pid) == 11 and electron.vertex_z > 7700:
                n_electrons += 1
                mother = by_key.get(electron.mother_key)
                n_named += mother is not None and mother.charge != 0
    assert 0.2 < n_named / n_electrons < 0.5


@pytest.mark.physics
def test_simulated_events_look_like_the_real_ones_to_the_decoders(shared: Path, sample: list[list[RawBank]]) -> None:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    real = [list(record.banks()) for record in iter_records(path.read_bytes())]
    real_detector = Detector.load(shared / "data" / "lhcb-geometry")

    def means(events: list[list[RawBank]], detector: Detector) -> dict[str, float]:
        counts = {
            "VELO clusters": [len(decode_retina_clusters(banks).sensor) for banks in events],
            "UT hits": [len(decode_ut(banks).board) for banks in events],
            "SciFi hits": [len(decode_scifi(banks).bank) for banks in events],
            "muon hits": [len(detector.muon.hits(decode_muon(banks)).x) for banks in events],
        }
        for bank_type in (LhcbBankType.VP_RETINA_CLUSTER, LhcbBankType.UT, LhcbBankType.FT_CLUSTER, LhcbBankType.MUON):
            sizes = [sum(len(bank.payload) for bank in banks if bank.type == bank_type) for banks in events]
            counts[f"bytes of {bank_type.name}"] = sizes
        return {name: float(np.mean(values)) for name, values in counts.items()}

    expected = means(real, real_detector)
    assert means(sample, DETECTOR) == pytest.approx(expected, rel=0.15)


@pytest.mark.physics
def test_the_loaded_geometry_can_be_used_as_well(shared: Path) -> None:
    detector = Detector.load(shared / "data" / "lhcb-geometry")
    for banks in simulation(detector=detector).events(2, 3):
        ut = set(detector.ut.hits(decode_ut(banks)).lhcb_id.tolist())
        scifi = set(detector.scifi.hits(decode_scifi(banks)).lhcb_id.tolist())
        for particle in decode_particles(banks):
            assert set(particle.ut_ids) <= ut
            assert set(particle.scifi_ids) <= scifi
