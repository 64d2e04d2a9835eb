"""Simulated events for the VELO chain: ODIN, VELO and truth banks, as from a readout of real collisions.

An event depends on (seed, event id) alone: any range of events can be made by any process, in any batches.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry.ideal_velo import SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import DEFAULT_VERSIONS, VeloEncoding, velo_banks_of
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions, generate
from hltnode.processing.lhcb.offline.simulation.generation.mixtures import ENRICHED
from hltnode.processing.lhcb.offline.simulation.generation.sources import check_nu
from hltnode.processing.lhcb.offline.simulation.response.strip_clusters import links
from hltnode.processing.lhcb.offline.simulation.response.velo_response import VeloResponse
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.processing.offline.sorting import distinct
from hltnode.protocol.lhcb.lhcb_id import velo_channel
from hltnode.protocol.lhcb.truth import McVertex, encode_vertices
from hltnode.protocol.lhcb.truth_columns import encode_particle_columns
from hltnode.protocol.raw_data.odin import CrossingType, Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

# Events that are made together: enough for long vectors, few enough for the memory.
CHUNK = 16

# Mean number of collisions of a crossing in the minimum-bias samples of the upgrade (docs/physics/detector.md).
DEFAULT_NU = 7.6
DEFAULT_RUN = 1

# A particle counts as seen by the VELO with hits in at least this number of modules (docs/physics/validation.md).
MIN_MODULES = 3

# Collisions with at least this number of tracks count as primary vertices (docs/physics/validation.md).
_MIN_TRACKS_OF_PV = 4

# Long particles: the fraction of the seen ones with 2 < eta < 5 that also cross UT and SciFi, rising with momentum
# (MeV); the shape follows the velo-truth minbias set.
_LONG_ETA = (1.9, 4.95)
_LONG_PLATEAU, _LONG_P_MIDDLE, _LONG_P_WIDTH = 0.77, 2100.0, 300.0

# Clock of the simulated run: crossings of a filled LHC ring.
_BUNCHES, _CROSSING_NS = 3564, 25
_FIRST_GPS_US = 1_400_000_000_000_000


def simulate_events(
    n: int,
    seed: int,
    *,
    geometry: VeloGeometry,
    nu: float = DEFAULT_NU,
    enrich: bool = False,
    velo_banks: VeloEncoding = "retina",
    run: int = DEFAULT_RUN,
    first_event: int = 0,
) -> Iterator[list[RawBank]]:
    """Banks of events first_event ... first_event + n - 1: ODIN v7, 208 VELO banks, truth (32 to 34).

    enrich: draw rare kinds of events more often, with weights.

    Raises ValueError, before the first event, for a negative number of events, seed or nu, or one that is not finite.
    """
    check_request(n, seed, first_event)
    check_nu(nu)
    return _events(
        range(first_event, first_event + n),
        seed,
        VeloResponse(geometry, VeloField.of(Magnet.builtin())),
        partial(generate, nu=nu, beamline=geometry.beamline, mixture=ENRICHED if enrich else None),
        velo_banks,
        run,
    )


def check_request(n: int, seed: int, first_event: int) -> None:
    """Raises ValueError for a negative number of events, seed or first event."""
    if n < 0 or seed < 0 or first_event < 0:
        raise ValueError(f"n = {n}, seed = {seed} and first_event = {first_event} must not be negative")


def _events(
    event_ids: range,
    seed: int,
    response: VeloResponse,
    source: Callable[[EventRandom], list[SimulatedCollisions]],
    velo_banks: VeloEncoding,
    run: int,
) -> Iterator[list[RawBank]]:
    for start in range(0, len(event_ids), CHUNK):
        ids_of_chunk = event_ids[start : start + CHUNK]
        generators = [np.random.default_rng((seed, event_id)) for event_id in ids_of_chunk]
        random = EventRandom(generators)
        collisions = source(random)
        particles = ParticleColumns.join([one.particles for one in collisions])
        event = np.repeat(np.arange(len(collisions)), [len(one.particles) for one in collisions])
        fired = response.fire(random, event, particles)
        banks, ids, cluster = velo_banks_of(fired, len(collisions), velo_banks, DEFAULT_VERSIONS[velo_banks])
        # One row per particle and cluster, by rising particle.
        owner, hit = links(fired.particle, cluster, len(ids))
        first = np.searchsorted(event, np.arange(len(collisions) + 1)).tolist()
        hits = np.searchsorted(owner, first).tolist()
        for number, (event_id, rng) in enumerate(zip(ids_of_chunk, generators, strict=True)):
            of_event = slice(hits[number], hits[number + 1])
            truth = _truth_banks(rng, collisions[number], owner[of_event] - first[number], ids[hit[of_event]])
            yield [odin_bank(rng, run, event_id), *banks[number], *truth]


def odin_bank(
    rng: np.random.Generator, run: int, event_id: int, crossing_type: CrossingType = CrossingType.BEAM_BEAM
) -> RawBank:
    """The ODIN bank (version 7) of an event in a random bunch crossing of a type."""
    return crossing_bank(run, event_id, int(rng.integers(0, _BUNCHES)), crossing_type)


def crossing_bank(
    run: int, event_id: int, bunch: int, crossing: int = CrossingType.BEAM_BEAM, event_type: int = 0
) -> RawBank:
    """The ODIN bank (version 7) of an event in a bunch crossing."""
    return encode_odin(
        Odin(
            run=run,
            event_id=event_id,
            event_type=event_type,
            gps_time_us=_FIRST_GPS_US + event_id * _BUNCHES * _CROSSING_NS // 1000,
            bunch_id=bunch,
            crossing_type=crossing,
            orbit=event_id & 0xFFFFFFFF,
        )
    )


def _truth_banks(
    rng: np.random.Generator, event: SimulatedCollisions, owner: Int64Array, ids: NDArray[np.uint32]
) -> list[RawBank]:
    """Truth of the particles that made a cluster, by rising `owner`, and of all collisions."""
    n_ids = np.bincount(owner, minlength=len(event.particles))
    has_velo = n_modules(owner, ids, len(event.particles)) >= MIN_MODULES
    seen = np.flatnonzero(n_ids)
    particles = event.particles.take(seen)
    is_long = has_velo[seen] & _reaches_scifi(rng, particles.eta, particles.p)
    columns: dict[str, ArrayLike] = {
        **particles.truth(seen),
        "is_long": is_long,
        "is_down": is_long,
        "has_velo": has_velo[seen],
        "has_ut": is_long,
        "has_scifi": is_long,
    }
    vertices = collision_vertices(event, has_velo)
    columns["n_pvs"] = n_visible(vertices)
    return [
        *encode_particle_columns(columns, ids, n_ids[seen]),
        encode_vertices(vertices),
        event.truth,
    ]


def collision_vertices(event: SimulatedCollisions, has_velo: Mask) -> list[McVertex]:
    """The collisions with their tracks: as in LHCb's samples, the particles straight from it that the VELO sees."""
    n_tracks = np.bincount(
        event.collision[has_velo[: len(event.collision)]],
        minlength=len(event.positions),
    ).tolist()
    return [McVertex(n, *place) for n, place in zip(n_tracks, event.positions.tolist(), strict=True)]


def n_visible(vertices: list[McVertex]) -> int:
    """How many vertices have the four tracks that a primary vertex needs."""
    return sum(vertex.n_tracks >= _MIN_TRACKS_OF_PV for vertex in vertices)


def n_modules(owner: Int64Array, ids: NDArray[np.uint32], n_particles: int) -> Int64Array:
    """Number of modules in which each particle has clusters."""
    module = velo_channel(ids)[0].astype(np.int64) // SENSORS_PER_MODULE
    in_module = distinct(owner << 6 | module)
    return np.bincount(in_module >> 6, minlength=n_particles)


def _reaches_scifi(rng: np.random.Generator, eta: Float64Array, p: Float64Array) -> Mask:
    chance = _LONG_PLATEAU / (1 + np.exp(-np.clip((p - _LONG_P_MIDDLE) / _LONG_P_WIDTH, -30, 30)))
    low, high = _LONG_ETA
    reaches: Mask = (eta > low) & (eta < high) & (rng.random(len(p)) < chance)
    return reaches
