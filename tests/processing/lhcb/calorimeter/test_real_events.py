"""The calorimeter in the seven real events: known sums, the oracle, and electrons by truth."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.calorimeter.collections import MAX_CLUSTERS_PER_EVENT, MAX_PHOTON_PAIRS_PER_EVENT
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, Z_END_SCIFI
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ecal import decode_ecal_cards
from hltnode.protocol.lhcb.truth import McParticle, decode_particles
from tests.processing.lhcb.calorimeter.ecal_batches import EcalBatch, real_events
from tests.processing.lhcb.calorimeter.ecal_batches import encode_mep as encode_ecal
from tests.processing.lhcb.calorimeter.ecal_oracle import adc_of_cards, along_lines, clusters, energies, photon_pairs
from tests.processing.lhcb.whole_chain import reference_of

ORIENTATION = 3 << 26
SUMS = (2190.2, 544.4, 873.8, 818.2, 1251.2, 335.4, 912.0)
SEEDS = (190, 60, 94, 75, 102, 31, 74)
NEUTRAL = (45, 12, 27, 21, 21, 5, 23)
GREATEST = (2670.8, 1296.7, 1556.2, 1814.0, 3316.7, 1621.5, 3027.1)
TRANSVERSE = (129_778.6, 29_004.1, 52_887.1, 44_312.1, 70_753.1, 14_878.8, 51_234.1)
HADRONS = (211, 321, 2212)


@pytest.fixture(scope="module")
def geometry(shared: Path) -> EcalGeometry:
    return EcalGeometry.load(shared / "data/lhcb-geometry")


@pytest.mark.physics
def test_the_known_sums_seeds_and_clusters_are_found(shared: Path, geometry: EcalGeometry) -> None:
    batch = EcalBatch(encode_ecal(real_events(shared)), geometry, constants=(("share", 0),))
    events = batch.run()
    assert [event.flags for event in events] == [0] * 7
    assert [event.n_cells for event in events] == [6016] * 7
    assert [round(event.energy / 1000.0, 1) for event in events] == list(SUMS)
    assert [round(event.energy_mev / 1000.0, 1) for event in events] == list(SUMS)
    assert [len(event.clusters["seed"]) for event in events] == list(SEEDS)
    neutral = [(event.clusters["et"] > 400.0) & (event.clusters["e19"] > 0.6) for event in events]
    assert [int(of_event.sum()) for of_event in neutral] == list(NEUTRAL)
    np.testing.assert_allclose([event.clusters["et"].max() for event in events], GREATEST, atol=0.06)
    np.testing.assert_allclose([event.clusters["et"].sum() for event in events], TRANSVERSE, rtol=2e-6)


def test_cells_and_clusters_are_those_of_the_oracle(shared: Path, geometry: EcalGeometry) -> None:
    events = real_events(shared)
    for share in (True, False):
        found = EcalBatch(encode_ecal(events), geometry, constants=(("share", int(share)),)).run()
        for banks, event in zip(events, found, strict=True):
            adc = adc_of_cards(geometry, decode_ecal_cards(banks))
            np.testing.assert_array_equal(event.adc, adc)
            assert event.energy == pytest.approx(energies(geometry, adc).sum(), rel=2e-6)
            expected = clusters(geometry, adc, share=share)
            for name in ("seed", "x", "y", "energy", "et", "e19"):
                np.testing.assert_allclose(event.clusters[name], getattr(expected, name), rtol=2e-6, atol=2e-3)


@cache
def columns_of(shared: Path) -> dict[str, bytes]:
    """All columns of the sequence."""
    mep = encode_mep(CHAIN.with_sequence("hlt1_2026"), real_events(shared), encoding="retina")
    return reference_of(mep, shared / "data/lhcb-geometry", "hlt1_2026").made


def tracks_with_truth(
    columns: dict[str, NDArray[Any]], event: int, particles: list[McParticle]
) -> list[tuple[int, McParticle]]:
    """(place of a long track, particle) where the particle has 70 % of the hits in the VELO and in the SciFi."""
    first = {name: int(columns[f"{name}.offset"][event]) for name in ("velo_clusters", "scifi_hits")}
    found = []
    for i in range(int(columns["long_tracks.count"][event])):
        place = event * MAX_TRACKS_PER_EVENT + i
        velo = first["velo_clusters"] // 2 + int(columns["long_tracks.velo_track"][place])
        hits = columns["velo_tracks.hits"].reshape(-1, MAX_HITS_PER_TRACK)[velo]
        hits = hits[: columns["velo_tracks.hit_count"][velo]].astype(int) + first["velo_clusters"]
        in_velo = set((columns["velo_hits.id"][hits] & ~np.uint32(ORIENTATION)).tolist())
        hits = columns["long_tracks.hits"].reshape(-1, 12)[place]
        in_scifi = set(columns["scifi_hits.id"][hits[hits != 0xFFFF].astype(int) + first["scifi_hits"]].tolist())
        for particle in particles:
            of_velo = {value & ~ORIENTATION for value in particle.velo_ids}
            if len(in_scifi & set(particle.scifi_ids)) >= 0.7 * len(in_scifi) and (
                len(in_velo & of_velo) >= 0.7 * len(in_velo)
            ):
                found.append((place, particle))
                break
    return found


@pytest.mark.physics
def test_electrons_have_their_momentum_as_energy_and_hadrons_little(shared: Path) -> None:
    sequence = CHAIN.sequences["hlt1_2026"].algorithms
    made = columns_of(shared)
    columns = {c.name: np.frombuffer(made[c.name], c.dtype) for c in sequence.columns if c.name in made}
    eop: dict[str, list[float]] = {"electrons": [], "hadrons": []}
    assert columns["events.electrons"][:7].sum() == columns["long_tracks.is_electron"].sum()
    for event, banks in enumerate(real_events(shared)):
        particles = decode_particles([bank for bank in banks if bank.type == LhcbBankType.MC_TRACKS])
        for place, particle in tracks_with_truth(columns, event, particles):
            kind = "electrons" if abs(particle.pid) == 11 else "hadrons" if abs(particle.pid) in HADRONS else ""
            if kind and columns["long_tracks.in_ecal"][place]:
                eop[kind].append(float(columns["long_tracks.eop"][place]))
    assert {kind: (len(values), sum(value > 0.7 for value in values)) for kind, values in eop.items()} == {
        "electrons": (16, 14),
        "hadrons": (304, 17),
    }
    assert np.median(eop["electrons"]) == pytest.approx(0.893, abs=0.01)
    assert np.median(eop["hadrons"]) == pytest.approx(0.178, abs=0.01)


def test_tracks_of_the_whole_sequence_have_the_energies_of_the_oracle(shared: Path, geometry: EcalGeometry) -> None:
    sequence = CHAIN.sequences["hlt1_2026"].algorithms
    made = columns_of(shared)
    columns = {c.name: np.frombuffer(made[c.name], c.dtype) for c in sequence.columns if c.name in made}
    n_equal = n = 0
    for event, banks in enumerate(real_events(shared)):
        adc = adc_of_cards(geometry, decode_ecal_cards(banks))
        first = event * MAX_TRACKS_PER_EVENT
        own = slice(first, first + int(columns["long_tracks.count"][event]))
        x, y, tx, ty = (columns[f"long_tracks.{name}"][own].astype(float) for name in ("x", "y", "tx", "ty"))
        lines = np.column_stack([x - Z_END_SCIFI * tx, y - Z_END_SCIFI * ty, tx, ty])
        energy, in_ecal = along_lines(geometry, adc, lines)
        equal = np.isclose(columns["long_tracks.ecal_energy"][own], energy, rtol=1e-5, atol=0.1)
        n_equal += int((equal & (columns["long_tracks.in_ecal"][own] == in_ecal)).sum())
        n += len(x)
    # A line within rounding of the border of two cells may get the other one.
    assert n == 382
    assert n_equal >= n - 1


def test_pairs_of_the_whole_sequence_are_those_of_the_oracle(shared: Path) -> None:
    sequence = CHAIN.sequences["hlt1_2026"].algorithms
    made = columns_of(shared)
    columns = {c.name: np.frombuffer(made[c.name], c.dtype) for c in sequence.columns if c.name in made}
    for event in range(7):
        first = event * MAX_CLUSTERS_PER_EVENT
        own = slice(first, first + int(columns["ecal_clusters.count"][event]))
        clusters = np.array([columns[f"ecal_clusters.{name}"][own] for name in ("x", "y", "energy", "et", "e19")]).T
        expected = photon_pairs(clusters.astype(float))
        first = event * MAX_PHOTON_PAIRS_PER_EVENT
        own = slice(first, first + int(columns["photon_pairs.count"][event]))
        np.testing.assert_array_equal(columns["photon_pairs.clusters"].reshape(-1, 2)[own], expected["clusters"])
        for name in ("mass", "pt", "eta"):
            np.testing.assert_allclose(columns[f"photon_pairs.{name}"][own], expected[name], rtol=2e-5, atol=2e-2)
    assert columns["photon_pairs.count"][:7].tolist() == [1225, 78, 378, 190, 276, 15, 276]
    assert columns["dielectrons.count"][:7].tolist() == [21, 0, 0, 15, 19, 0, 1]
