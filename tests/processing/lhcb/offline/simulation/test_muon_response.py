"""Hits of particles in the muon stations."""

import numpy as np

from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonGeometry
from hltnode.processing.lhcb.offline.simulation.response.muon_response import MuonResponse
from hltnode.processing.lhcb.offline.simulation.transport.propagation import Flights
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.banks.muon import MuonDigits

GEOMETRY = MuonGeometry.builtin()


def straight_muons(n: int) -> Flights:
    """Muons of 100 GeV from the collisions, one per event, with slopes inside all stations; behind the SciFi."""
    rng = np.random.default_rng(4)
    tx, ty = rng.uniform(0.04, 0.2, (2, n)) * rng.choice((-1, 1), (2, n))
    z, columns = np.full(n, 9500.0), np.ones((5, n))
    p, charge, mass, z_end = columns[0] * 1e5, columns[1], columns[2] * 105.66, columns[3] * 20_000
    return Flights(np.arange(n), tx * z, ty * z, z, tx, ty, p, charge, mass, z_end)


def test_a_muon_of_high_momentum_has_a_hit_in_99_of_100_stations() -> None:
    n = 1000
    random = EventRandom([np.random.default_rng(seed) for seed in range(n)])
    flights = straight_muons(n)
    result = MuonResponse(GEOMETRY).respond(random, flights, np.ones(n, bool), np.zeros(n, np.int64))
    seen = np.zeros((n, N_STATIONS), dtype=bool)
    bounds = np.searchsorted(result.event, np.arange(n + 1))
    for event in range(n):
        of = slice(bounds[event], bounds[event + 1])
        digits = MuonDigits(*(getattr(result.digits, name)[of] for name in MuonDigits.__slots__))
        hits = GEOMETRY.hits(digits)
        line = np.stack([flights.tx[event] * hits.z, flights.ty[event] * hits.z])
        near = (np.abs(hits.x - line[0]) < 60 + hits.dx) & (np.abs(hits.y - line[1]) < 60 + hits.dy)
        # A strip without its partner is a hit of the whole strip, too long to identify a muon of this momentum.
        seen[event, hits.station[near & (hits.dx < 200) & (hits.dy < 200)]] = True
    assert (seen.mean(axis=0) > 0.98).all(), seen.mean(axis=0)
    assert seen.mean() < 1
