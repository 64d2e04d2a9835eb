"""Simulated events for the whole chain: banks of VELO, UT, SciFi, calorimeter and muon stations with truth.

An event depends on (seed, event id) and the settings alone. Events are made in chunks, whose particles are moved
together.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.luminosity.collections import ODIN_LUMI
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import (
    BankVersions,
    MuonEncoder,
    SciFiEncoder,
    ut_banks,
    with_batches,
    with_readout_id,
)
from hltnode.processing.lhcb.offline.simulation.banks.ecal_encoding import EcalEncoder
from hltnode.processing.lhcb.offline.simulation.banks.truth_banks import HitLists, ecal_truth_of_chunk, truth_of_chunk
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import velo_banks_of
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.generation.filling import Filling
from hltnode.processing.lhcb.offline.simulation.generation.sources import Source
from hltnode.processing.lhcb.offline.simulation.response.ecal_response import Arrivals, EcalResponse
from hltnode.processing.lhcb.offline.simulation.response.muon_response import MuonResponse
from hltnode.processing.lhcb.offline.simulation.response.plume_response import plume_banks
from hltnode.processing.lhcb.offline.simulation.response.scifi_response import SciFiResponse
from hltnode.processing.lhcb.offline.simulation.response.strip_clusters import Crossings, links
from hltnode.processing.lhcb.offline.simulation.response.ut_response import N_LAYERS as N_UT_LAYERS
from hltnode.processing.lhcb.offline.simulation.response.ut_response import UtResponse
from hltnode.processing.lhcb.offline.simulation.response.velo_response import FiredPixels, VeloResponse
from hltnode.processing.lhcb.offline.simulation.transport.calorimeter_particles import (
    charged_arrivals,
    neutral_arrivals,
    radiated_photons,
)
from hltnode.processing.lhcb.offline.simulation.transport.downstream_particles import (
    background,
    decay_muons,
    ends_in_flight,
    flights_of,
    interaction_products,
    knock_on_electrons,
)
from hltnode.processing.lhcb.offline.simulation.transport.propagation import (
    LAST_Z,
    Flights,
    LayerStates,
    Propagation,
    Radiation,
)
from hltnode.processing.lhcb.offline.simulation.velo_generator import (
    CHUNK,
    DEFAULT_RUN,
    check_request,
    crossing_bank,
    odin_bank,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.table import ParticleTable
from hltnode.protocol.raw_data.odin import CrossingType
from hltnode.protocol.raw_data.raw_bank import RawBank

_MUON = 13
_ECAL_STREAM = 21
"""The calorimeter draws from generators of its own, so that the other detectors do not depend on it."""


class FullSimulation:
    """Simulates the events of a source in a detector; makes any events in any order that the source allows."""

    def __init__(
        self,
        detector: Detector,
        source: Source,
        *,
        run: int = DEFAULT_RUN,
        versions: BankVersions | None = None,
        luminosity: bool = False,
    ) -> None:
        """`source` makes the collisions of the events. luminosity: events that ODIN marks for luminosity, in crossings
        of all types, with a bank of PLUME. Raises ValueError for versions that the geometry cannot read."""
        self._source = source
        self._luminosity = luminosity
        self._versions = versions or BankVersions()
        self._run = run
        self._velo = VeloResponse(detector.velo, VeloField.of(detector.magnet))
        self._ut = UtResponse(detector.ut, self._versions.ut_version)
        self._scifi = SciFiResponse(detector.scifi)
        self._ecal = EcalResponse(detector.ecal)
        self._ecal_encoder = EcalEncoder(detector.ecal, self._versions.ecal_version)
        self._muon = MuonResponse(with_batches(detector.muon))
        self._scifi_encoder = SciFiEncoder(detector.scifi, self._versions.scifi_version)
        self._muon_encoder = MuonEncoder(detector.muon, self._versions.muon_version)
        self._layer_z = np.concatenate([self._ut.layer_z, self._scifi.layer_z])
        self._propagation = Propagation(detector.magnet, self._layer_z)

    def events(self, n: int, seed: int, *, first_event: int = 0) -> Iterator[list[RawBank]]:
        """Banks of events first_event ... first_event + n - 1: ODIN v7, VELO, UT, SciFi, muon, ECAL, truth (32
        to 35).

        Raises ValueError, before the first event, for a negative number or seed.
        """
        check_request(n, seed, first_event)
        return self._chunks(range(first_event, first_event + n), seed)

    def _chunks(self, event_ids: range, seed: int) -> Iterator[list[RawBank]]:
        for start in range(0, len(event_ids), CHUNK):
            yield from self._chunk(event_ids[start : start + CHUNK], seed)

    def _chunk(self, event_ids: range, seed: int) -> Iterator[list[RawBank]]:
        generators = [np.random.default_rng((seed, event_id)) for event_id in event_ids]
        random = EventRandom(generators)
        collisions = self._source(random, event_ids)
        filling = Filling.of(event_ids, seed) if self._luminosity else None
        if filling is not None:
            collisions = filling.collisions(collisions)
        table = ParticleTable(len(generators))
        for number, one in enumerate(collisions):
            table.add(np.full(len(one.particles), number), one.particles)
        fired = self._velo.fire(random, table.event, table.particles)
        velo_banks, velo_ids, velo_cluster = self._velo_banks(fired, len(generators))
        n_charged = np.array([len(one.collision) for one in collisions])
        behind = table.add(*background(random, n_charged, [one.positions for one in collisions]))
        of_velo = (fired.kick, fired.kick_z, fired.energy_loss)
        changes = tuple(np.concatenate([values, np.zeros((len(behind), *values.shape[1:]))]) for values in of_velo)
        flown = self._propagate(random, table, changes)

        event, key, particles, place = table.by_event()
        flights = flown.flights
        ut = self._ut.respond(random, Crossings.of(flown.states, flights.event, 0, N_UT_LAYERS))
        scifi = self._scifi.respond(
            random, Crossings.of(flown.states, flights.event, N_UT_LAYERS, self._propagation.n_layers), flights
        )
        arrived = np.flatnonzero(flights.z >= LAST_Z)
        arrived = arrived[np.argsort(flights.event[arrived], kind="stable")]
        is_muon = (np.abs(particles.pid[place[flown.row]]) == _MUON) | flown.decays_late
        muon = self._muon.respond(random, flights.take(arrived), is_muon[arrived], n_charged)
        own = EventRandom([np.random.default_rng((seed, event_id, _ECAL_STREAM)) for event_id in event_ids])
        front = self._ecal.front_z
        arrivals = Arrivals.join(
            [
                charged_arrivals(
                    flights.take(arrived),
                    place[flown.row[arrived]],
                    particles.pid[place[flown.row[arrived]]],
                    is_muon[arrived],
                    front,
                ),
                radiated_photons(own, flown.radiation, front),
                neutral_arrivals(own, collisions, front),
            ]
        )
        ecal = self._ecal.respond(own, arrivals, n_charged)
        ecal_truth = ecal_truth_of_chunk(arrivals, ecal, self._ecal.maximum_z - front, key, len(generators))

        velo_particle, velo_hit = links(fired.particle, velo_cluster, len(velo_ids))
        truth = truth_of_chunk(
            event,
            key,
            particles,
            collisions,
            HitLists(place[velo_particle], velo_ids[velo_hit]),
            HitLists(place[flown.row[ut.particle]], ut.lhcb_id),
            HitLists(place[flown.row[scifi.particle]], scifi.lhcb_id),
        )
        n = len(generators)
        banks = zip(
            velo_banks,
            ut_banks(ut, self._versions.ut_version, n),
            self._scifi_encoder.banks(scifi, n),
            self._muon_encoder.banks(muon, n),
            self._ecal_encoder.banks(ecal.adc),
            truth,
            ecal_truth,
            strict=True,
        )
        types = [one.crossing_type for one in collisions]
        odin = self._odin_banks(event_ids, generators, types, filling)
        plume: list[list[RawBank]] = [[] for _ in generators]
        if filling is not None:
            n_collisions = np.array([len(one.positions) for one in collisions], np.int64)
            plume = [[bank] for bank in plume_banks(filling, n_collisions)]
        for of_event, of_plume, parts in zip(odin, plume, banks, strict=True):
            event_banks = [of_event, *of_plume, *itertools.chain.from_iterable(parts)]
            yield [with_readout_id(bank) for bank in event_banks] if self._versions.readout_ids else event_banks

    def _odin_banks(
        self,
        event_ids: range,
        generators: list[np.random.Generator],
        types: list[CrossingType],
        filling: Filling | None,
    ) -> Iterator[RawBank]:
        for number, (event_id, rng, crossing_type) in enumerate(zip(event_ids, generators, types, strict=True)):
            if filling is None:
                yield odin_bank(rng, self._run, event_id, crossing_type)
            else:
                bunch, crossing = int(filling.bunch[number]), int(filling.crossing[number])
                yield crossing_bank(self._run, event_id, bunch, crossing, ODIN_LUMI)

    def _velo_banks(
        self, fired: FiredPixels, n_events: int
    ) -> tuple[list[list[RawBank]], NDArray[np.uint32], Int64Array]:
        return velo_banks_of(fired, n_events, self._versions.velo, self._versions.velo_bank_version)

    def _propagate(self, random: EventRandom, table: ParticleTable, changes: tuple[Float64Array, ...]) -> "_Flown":
        """Move all particles through the detector, and those that they produce on their way (added to the table).

        `changes` in the VELO: kick, kick_z and energy_loss as flights_of takes them.
        """
        rows, flights = flights_of(table.event, table.particles, *changes)
        in_order = np.argsort(flights.event, kind="stable")
        rows, flights = rows[in_order], flights.take(in_order)
        decays, interacts = ends_in_flight(random, flights, table.particles.pid[rows])
        radiation = Radiation()
        states = self._propagation.propagate(random, flights, radiation=radiation)
        stopped = (flights.z >= flights.z_end) & (flights.z < LAST_Z)
        flown, key = table.particles.take(rows), table.key[rows]
        born = [table.add(*knock_on_electrons(random, flights, states, self._layer_z, flown, key))]
        for which, products in ((decays & stopped, decay_muons), (interacts & stopped, interaction_products)):
            born.append(table.add(*products(random, flights.take(which), flown.take(which), key[which])))
        new = np.concatenate(born)
        new = new[np.argsort(table.event[new], kind="stable")]
        none = np.zeros((len(new), 2))
        chosen, daughters = flights_of(table.event[new], table.particles.take(new), none, none, none[:, 0])
        daughter_states = self._propagation.propagate(random, daughters, radiation=radiation)
        late = np.concatenate([decays & ~stopped, np.zeros(len(daughters), dtype=bool)])
        return _Flown(
            row=np.concatenate([rows, new[chosen]]),
            flights=Flights.join([flights, daughters]),
            states=(states, daughter_states),
            decays_late=late,
            radiation=radiation,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Flown:
    """Finished flights: rows in the table, where they ended, and whether they decay to a muon before the muon stations;
    the layers that they crossed, first those of the particles from the start, then of those produced on the way; the
    photons that electrons radiated."""

    row: Int64Array
    flights: Flights
    states: tuple[LayerStates, LayerStates]
    decays_late: Mask
    radiation: Radiation
