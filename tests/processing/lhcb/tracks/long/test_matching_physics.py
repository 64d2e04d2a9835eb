"""Seeding and matching alone on the seven real events, compared with the oracle and with the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.tracks.matching.seeding_tables import SeedingTables
from tests.processing.lhcb.tracks.long.matching_chain import MatchedEvent, hits_of, run_matching
from tests.processing.lhcb.tracks.long.real_events import RealEvent, counted, real_events
from tests.processing.lhcb.tracks.long.seeding_oracle import Detector, matches, seeds
from tests.processing.lhcb.tracks.long.toy_events import halves_of, lines_of, ut_hits_of

pytestmark = pytest.mark.physics

Sample = tuple[list[RealEvent], SeedingTables, list[MatchedEvent]]


@pytest.fixture(scope="module")
def sample(shared: Path) -> Sample:
    events, tables = real_events(shared)
    return events, tables, run_matching([event.given for event in events], tables)


def test_seeds_and_tracks_of_the_real_events_equal_those_of_the_oracle(sample: Sample) -> None:
    events, tables, found = sample
    detector = Detector(tables.layer_z, tables.dx_dy, tables.dz_dy)
    for event, of_event in zip(events[1:], found[1:], strict=True):  # The first event takes as long as all others.
        expected = seeds(detector, halves_of(event.given))
        numbers = [[number for _, number in seed.hits] for seed in expected]
        assert [hits_of(row) for row in of_event.seeds["hits"]] == numbers
        matched = matches(expected, lines_of(event.given), ut_hits_of(event.given))
        assert of_event.tracks["velo_track"].tolist() == list(matched)
        assert [hits_of(row) for row in of_event.tracks["hits"]] == [numbers[seed] for seed in matched.values()]


def test_long_tracks_of_the_real_events_are_found(sample: Sample) -> None:
    events, _, found = sample
    counts = counted(events, found)
    assert all(of_event.flags == 0 for of_event in found)
    long, long_p5 = counts.category("long"), counts.category("long_p5")
    assert (long.reconstructible, long_p5.reconstructible) == (374, 244)
    assert long.reconstructed >= 290
    assert long_p5.reconstructed >= 216
    assert counts.category("long_p5_pt1").reconstructed >= 45
    assert counts.ghosts <= 0.05 * counts.tracks
    assert long.clones == 0
    assert (long.hit_purity or 0.0) > 0.99
    assert (long.hit_efficiency or 0.0) > 0.98


def test_the_momentum_is_right_within_a_per_cent(sample: Sample) -> None:
    events, _, found = sample
    ratios = []
    for event, of_event in zip(events, found, strict=True):
        owners: dict[int, list[int]] = {}
        values = event.particles.values
        n_ids = event.particles.n_scifi_ids
        for particle, ids in enumerate(np.split(event.particles.scifi_ids, np.cumsum(n_ids)[:-1])):
            for number in ids:
                owners.setdefault(int(number) & 0x0FFFFFFF, []).append(particle)
        for qop, row in zip(of_event.tracks["qop"], of_event.tracks["hits"], strict=True):
            hits = [int(number) & 0x0FFFFFFF for number in event.scifi_ids[hits_of(row)]]
            votes = [particle for number in hits for particle in owners.get(number, ())]
            if not votes:
                continue
            particle = max(set(votes), key=votes.count)
            if values["p"][particle] > 5e3 and values["is_long"][particle] and votes.count(particle) > 0.9 * len(hits):
                pid = int(values["pid"][particle])
                charge = np.sign(pid) * (1 if abs(pid) > 100 else -1)
                ratios.append(charge / (float(qop) * float(values["p"][particle])))
    deviations = np.array(ratios) - 1.0
    assert len(deviations) > 200
    assert np.percentile(np.abs(deviations), 68) < 0.0095
    assert abs(np.median(deviations)) < 0.003
