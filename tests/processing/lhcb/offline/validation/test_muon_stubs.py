"""Stubs of the muon stations in the checker: stubs near long tracks, and the particles that count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.muon_stubs import StubTable
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from tests.processing.lhcb.offline.validation.test_long_checks import long_particle, long_tracks


def stubs(*rows: tuple[int, float, float, bool]) -> StubTable:
    """Stubs of (event, x, y, good)."""
    event, x, y, good = zip(*rows, strict=True)
    return StubTable(np.array(event), np.array(x, float), np.array(y, float), np.array(good, bool))


@pytest.mark.parametrize(
    ("stub", "near"),
    [
        ((1, 500.0, 700.0, True), True),
        ((1, 599.9, 700.0, True), True),
        ((1, 600.1, 700.0, True), False),
        ((1, 400.1, 700.0, True), True),
        ((1, 399.9, 700.0, True), False),
        ((1, 500.0, 899.9, True), True),
        ((1, 500.0, 900.1, True), False),
        ((0, 500.0, 700.0, True), False),
        ((1, 500.0, 700.0, False), False),
    ],
)
def test_a_good_stub_of_the_event_is_near_within_100_and_200_mm(
    stub: tuple[int, float, float, bool], near: bool
) -> None:
    event, x, y = np.array([1, 2]), np.array([500.0, 500.0]), np.array([700.0, 700.0])
    assert stubs(stub).near(event, x, y).tolist() == [near, False]


def test_stubs_of_kept_events_are_numbered_anew() -> None:
    kept = stubs((0, 1.0, 2.0, True), (1, 3.0, 4.0, False), (2, 5.0, 6.0, True)).of_kept_events(
        np.array([False, True, True])
    )
    assert kept.event.tolist() == [0, 1]
    assert (kept.x.tolist(), kept.y.tolist(), kept.good.tolist()) == ([3.0, 5.0], [4.0, 6.0], [False, True])


def test_muons_above_6_gev_through_all_stations_count() -> None:
    """Of five muons one is soft and one passes beside the stations; one of the others has no stub."""
    particles = [
        *(long_particle(i, pid=13, p=2e4) for i in (1, 2, 3)),
        long_particle(4, pid=-13, p=5999.0),
        *(long_particle(i, p=2e4) for i in (5, 6)),
    ]
    tracks = replace(
        long_tracks(1, 2, 3, 4, 5, 6),
        is_muon=np.zeros(6, bool),
        passes_muon_stations=np.array([True, True, False, True, True, True]),
        near_stub=np.array([True, False, True, True, True, False]),
    )
    found = stubs((0, 0.0, 0.0, True), (0, 9.0, 9.0, True), (1, 0.0, 0.0, False))
    checker = Checker()
    checker.add(ParticleTable.of_particles([particles]), {Stage.LONG: tracks}, stubs=found)
    assert checker.result()["muon"]["stubs"] == {
        "stubs": 3,
        "per_event": 3.0,
        "selected_events": 1.0,
        "muons": 2,
        "efficiency": 0.5,
        "others_near": 0.5,
    }
