"""Collisions that are no proton-proton collisions of both beams: of a beam with gas, and of light ions.

No physics generator: the spectra of proton-proton collisions, moved along the beam. Units: mm, MeV.
"""

from dataclasses import dataclass, replace

import numpy as np

from hltnode.processing.lhcb.geometry.velo import BeamLine
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SIGMA_XY, SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.generation.material_products import interactions, knock_on_electrons
from hltnode.processing.lhcb.offline.simulation.generation.spectra import (
    MUON,
    PROMPT_FRACTIONS,
    PROMPT_PIDS,
    PT_SPREAD,
    NewParticles,
    choice_of,
    counted,
    log_normal,
    signs,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.offline.particles.columns import ParticleColumns
from hltnode.protocol.raw_data.odin import CrossingType

GAS_CELL_Z = (-541.0, -341.0)
"""The storage cell of the gas target SMOG2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollisionKind:
    """One more collision of an event.

    z: range of its position, uniform. beams: crossings where it is the only collision. with_both: it is also in every
    second crossing of both beams, besides proton collisions. mean: number of charged particles over all angles,
    spread exponentially; least: the smallest number. middle, width: of the pseudorapidity towards the beam's direction.
    centrality: the range of the fraction of collisions that are more central, uniform; `mean` then is the number of
    particles of the most central collision, which falls exponentially with the fraction.
    """

    z: tuple[float, float]
    beams: tuple[CrossingType, ...]
    with_both: bool = False
    mean: float
    least: int = 0
    middle: float
    width: float
    centrality: tuple[float, float] | None = None


# A proton of 7 TeV on a nucleon at rest: sqrt(s) = 115 GeV, and the middle of the rapidities is at 4.8.
_MIDDLE, _WIDTH, _PT_MEDIAN = 4.4, 1.8, 330.0
SMOG2 = CollisionKind(
    z=GAS_CELL_Z, beams=(CrossingType.BEAM_1,), with_both=True, mean=20.0, least=2, middle=_MIDDLE, width=_WIDTH
)
BEAM_GAS = CollisionKind(
    z=(-1500.0, 1500.0),
    beams=(CrossingType.BEAM_1, CrossingType.BEAM_2),
    mean=25.0,
    least=2,
    middle=_MIDDLE,
    width=_WIDTH,
)
LIGHT_ION = CollisionKind(
    z=(-100.0, 100.0), beams=(CrossingType.BEAM_BEAM,), mean=500.0, least=2, middle=0.0, width=3.2
)
"""Oxygen on oxygen: up to some thousand charged particles."""
LEAD_LEAD = CollisionKind(
    z=(-100.0, 100.0),
    beams=(CrossingType.BEAM_BEAM,),
    mean=24_500.0,
    least=2,
    middle=0.0,
    width=3.2,
    centrality=(0.4, 1.0),
)
"""Lead on lead, from 40 % on: the truth of more central collisions exceeds a raw bank. 21,400 charged particles at 0 to
5 % and 230 at 80 to 90 % are measured (ALICE, Phys. Lett. B 772 (2017) 567, 5.02 TeV)."""
_CENTRALITY_FALL = 5.5
"""ln(21,400 / 230) over the distance of the middles of both ranges, 0.825."""


def crossing_of(kind: CollisionKind, event_id: int) -> CrossingType:
    """The crossing of an event: the kinds of crossings take turns."""
    crossings: tuple[CrossingType, ...] = kind.beams
    if kind.with_both:
        crossings += (CrossingType.BEAM_BEAM,)
    return crossings[event_id % len(crossings)]


def with_collision(
    random: EventRandom,
    kind: CollisionKind,
    crossings: list[CrossingType],
    beamline: BeamLine,
    events: list[SimulatedCollisions],
    name: str,
) -> list[SimulatedCollisions]:
    """The events with one more collision of a kind each; in crossings of `kind.beams` it is the only one."""
    n_events = len(random)
    every = np.arange(n_events)
    low, high = kind.z
    z = low + (high - low) * random.uniform(every)
    positions = np.column_stack([random.normal(every, 2) * SIGMA_XY, z])
    positions[:, :2] += beamline.at(z)
    multiplicity = np.maximum(random.poisson_by_row(every, kind.mean * _share_of_mean(random, kind)), kind.least)
    source = np.repeat(every, multiplicity)
    backward = np.array([crossing is CrossingType.BEAM_2 for crossing in crossings])
    particles = _prompt(random, source, positions[source], kind, np.where(backward, -1.0, 1.0)[source])
    prompt = NewParticles(source, particles)
    alone = np.array([crossing in kind.beams for crossing in crossings])
    nothing = np.zeros(0, np.int64)
    earlier = [
        replace(one, positions=one.positions[:0], particles=one.particles.take(nothing), collision=one.collision[:0])
        if is_alone
        else one
        for one, is_alone in zip(events, alone.tolist(), strict=True)
    ]
    # A mother's key is her number among the prompt particles of the event.
    key = counted(multiplicity) + np.array([len(one.collision) for one in earlier])[source]
    more = [knock_on_electrons(random, prompt, key), interactions(random, prompt, key)]
    return [
        _event(
            one,
            CollisionRow(positions[i], particles.take(source == i)),
            [of.particles.take(of.event == i) for of in more],
            name,
            crossings[i],
        )
        for i, one in enumerate(earlier)
    ]


def _share_of_mean(random: EventRandom, kind: CollisionKind) -> Float64Array:
    """The expected number of particles of each collision over `kind.mean`, f64[events]."""
    every = np.arange(len(random))
    if kind.centrality is None:
        return random.exponential(every)
    low, high = kind.centrality
    return np.asarray(np.exp(-_CENTRALITY_FALL * (low + (high - low) * random.uniform(every))))


@dataclass(frozen=True, slots=True, eq=False)
class CollisionRow:
    """Position f64[3] of a collision, and the particles that come straight from it."""

    position: Float64Array
    prompt: ParticleColumns


def _event(
    one: SimulatedCollisions,
    collision: CollisionRow,
    more: list[ParticleColumns],
    name: str,
    crossing: CrossingType,
) -> SimulatedCollisions:
    """The event with the collision: first the particles that come straight from collisions, then the others."""
    n = len(one.collision)
    straight, others = one.particles.take(np.arange(n)), one.particles.take(np.arange(n, len(one.particles)))
    return replace(
        one,
        positions=np.vstack([one.positions, collision.position]),
        particles=ParticleColumns.join([straight, collision.prompt, others, *more]),
        collision=np.append(one.collision, np.full(len(collision.prompt), len(one.positions))),
        kind=name,
        crossing_type=crossing,
    )


def _prompt(
    random: EventRandom, event: Int64Array, origin: Float64Array, kind: CollisionKind, direction: Float64Array
) -> ParticleColumns:
    """Particles straight from collisions; `direction` is the sign of z in which their beam flies."""
    eta = direction * (kind.middle + kind.width * random.normal(event))
    pt = log_normal(random, event, _PT_MEDIAN, PT_SPREAD)
    phi = np.pi * (2.0 * random.uniform(event) - 1.0)
    momentum = np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(np.clip(eta, -8.0, 8.0))])
    charge = signs(random, event)
    pid = choice_of(random, event, PROMPT_PIDS, PROMPT_FRACTIONS) * charge
    return ParticleColumns.of(origin, momentum, np.where(np.abs(pid) == MUON, -pid, pid), charge)
