"""The inputs of lines: the event and its rings, with velocity and missing mass."""

from typing import Any

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.na62.detector_constants import (
    FOCAL_LENGTH,
    INDEX_SQUARE,
    KAON_MASS,
    KAON_MOMENTUM,
    MUON_MASS,
    PION_MASS,
)
from hltnode.processing.na62.rich.collections import event_number, hit_count, ring, ring_count
from hltnode.processing.na62.rich.collections import rings as ring_collection
from hltnode.processing.na62.rich.flags import (
    BAD_PMT,
    BAD_RICH_BANK,
    NO_CIRCLE,
    NO_RICH,
    TOO_MANY_RICH_HITS,
    TOO_MANY_RINGS,
)
from hltnode.processing.selection.expressions.functions import maximum, sqrt
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input

MIN_INVERSE_GAMMA_SQUARE = 1e-7
"""A ring that is larger than that of light speed has this value, 1/gamma^2 of a pion of 440 GeV/c."""
KAON_ENERGY = (KAON_MOMENTUM**2 + KAON_MASS**2) ** 0.5


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda event: (event.flags & mask) != 0, text)


def inverse_gamma_square(radius: Any) -> Any:
    """1 - beta^2 of the ring of a radius in mm, without the difference of two numbers near 1.

    cos(angle) = 1 / (n beta) gives 1 - beta^2 = (n^2 - 1 - n^2 s) / (n^2 - n^2 s) with s = sin^2(angle).
    """
    sine_square = radius * radius / (FOCAL_LENGTH**2 + radius * radius)
    excess = (INDEX_SQUARE - 1.0) - INDEX_SQUARE * sine_square
    return maximum(excess / (1.0 + excess), MIN_INVERSE_GAMMA_SQUARE)


def momentum(radius: Any, mass: float) -> Any:
    """GeV/c of a particle of this mass whose ring has this radius."""
    over = inverse_gamma_square(radius)
    return mass * sqrt((1.0 - over) / over)


def missing_mass_square(radius: Any, x: Any, y: Any, mass: float) -> Any:
    """(GeV/c2)^2: square of the difference of the momenta of the kaon and of a particle of this mass.

    E E' - p p' is written as (m^2 p'^2 + m'^2 p^2 + m^2 m'^2) / (E E' + p p'), which loses no digits.
    """
    p = momentum(radius, mass)
    energy = sqrt(p * p + mass**2)
    tangent_square = (x * x + y * y) / FOCAL_LENGTH**2
    one_minus_cosine = tangent_square / (1.0 + tangent_square + sqrt(1.0 + tangent_square))
    products = KAON_MASS**2 * p * p + (mass**2 * KAON_MOMENTUM**2 + mass**2 * KAON_MASS**2)
    parallel = products / (KAON_ENERGY * energy + KAON_MOMENTUM * p)
    return (KAON_MASS**2 + mass**2) - 2.0 * (parallel + KAON_MOMENTUM * p * one_minus_cosine)


event = Input(
    "events",
    "the event as a whole",
    {
        "n_hits": ColumnField(hit_count, "hits of photomultipliers"),
        "n_rings": ColumnField(ring_count, "rings"),
        "number": ColumnField(event_number, "number of the event in the run, low 32 bits", element=0),
        "number_high": ColumnField(event_number, "number of the event in the run, high 32 bits", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        "no_rich": _flagged(NO_RICH.mask, "true without a bank of the RICH"),
        "bad_bank": _flagged(BAD_RICH_BANK.mask, "true if the bank contradicts itself"),
        "too_many_hits": _flagged(TOO_MANY_RICH_HITS.mask, "true with more than 64 hits"),
        "bad_pmt": _flagged(BAD_PMT.mask, "true if a hit has the number of no photomultiplier"),
        "no_circle": _flagged(NO_CIRCLE.mask, "true if the single-ring fit has no result"),
        "too_many_rings": _flagged(TOO_MANY_RINGS.mask, "true if the event may have more rings than those of the list"),
    },
)

rings = Input(
    "rings",
    "rings of the event",
    {
        "x": ColumnField(ring, "x of the centre in mm", member="x"),
        "y": ColumnField(ring, "y of the centre in mm", member="y"),
        "radius": ColumnField(ring, "radius in mm", member="radius"),
        "hits": ColumnField(ring, "hits of the ring", member="hits"),
        "chi2": ColumnField(ring, "sum of squared distances of its hits, in units of the resolution", member="chi2"),
        "beta": DerivedField(lambda one: sqrt(1.0 - inverse_gamma_square(one.radius)), "velocity in units of c"),
        "inverse_gamma2": DerivedField(lambda one: inverse_gamma_square(one.radius), "1 minus the square of beta"),
        "momentum_pion": DerivedField(lambda one: momentum(one.radius, PION_MASS), "GeV/c, if it is a pion"),
        "momentum_muon": DerivedField(lambda one: momentum(one.radius, MUON_MASS), "GeV/c, if it is a muon"),
        "missing_mass2_pion": DerivedField(
            lambda one: missing_mass_square(one.radius, one.x, one.y, PION_MASS),
            "square of the missing mass in (GeV/c2)^2, if it is a pion of a kaon of 75 GeV/c",
        ),
        "missing_mass2_muon": DerivedField(
            lambda one: missing_mass_square(one.radius, one.x, one.y, MUON_MASS),
            "square of the missing mass in (GeV/c2)^2, if it is a muon of a kaon of 75 GeV/c",
        ),
    },
    collection=ring_collection,
    count=ring_count,
)

INPUTS = {"event": event, "rings": rings}
EVENT_WORDS = (event.candidate().number, event.candidate().number_high)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = (
    *("event.*", "rings.x", "rings.y", "rings.radius", "rings.hits", "rings.chi2", "rings.beta"),
    *("rings.missing_mass2_pion", "rings.missing_mass2_muon", "decisions.accepted"),
)
