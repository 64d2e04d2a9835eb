"""Composites of LHCb: candidates of two inputs with mass, vertex and flight (docs/physics/composites.md)."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from hltnode.processing.lhcb.lines.inputs.combined import Combined, Covariance, Part
from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.units import Quantity
from hltnode.processing.selection.lines.composite import Composite, Numbers
from hltnode.processing.selection.lines.inputs import DerivedField, FieldOf, Input

MassOf = Quantity | Callable[[Any], Any]
"""A mass, or a function of the candidate that gives it, such as `lambda v: v.m_kpi`."""
DEFAULT_BOUND = 128


def composite(
    name: str,
    first: Input,
    second: Input,
    *,
    masses: tuple[MassOf, MassOf],
    where: Callable[[Any, Any, Combined], Any],
    decays_at_first: bool = False,
    bound: int = DEFAULT_BOUND,
    numbers: Numbers | None = None,
    description: str = "",
) -> Composite:
    """The composite of two inputs, without common tracks.

    masses: hypotheses for both parts. where: the condition on a pair, with the candidates and their Combined, which has
    mass, pt, doca, chi2, fd, ip and dira; the conditions that it joins by `&` are tested in their order, so cheap ones
    come first. decays_at_first: the vertex of the first part is that of the decay, which the second part leaves, as
    for a third track; otherwise both parts are lines that meet there. bound: most candidates of an event. numbers: more
    numbers of a candidate, as functions of both parts.

    Raises LineError, which gives the name and the fault.
    """
    if not isinstance(masses, tuple) or len(masses) != 2:
        raise LineError(f"composite {name}: masses: a mass for each of two parts is expected, not {masses!r}")

    more = {} if numbers is None else numbers
    if not isinstance(more, Mapping):
        raise LineError(f"composite {name}: numbers: functions and descriptions by name are expected, not {numbers!r}")

    # One for each pair: the condition and the numbers share the vertex fit, whose recording takes most of the time.
    @lru_cache(maxsize=1)
    def combined(a: Any, b: Any) -> Combined:
        return Combined(Part(a, masses[0]), Part(b, masses[1]), decays_at_first)

    def value(function: Callable[[Combined], Any]) -> Callable[[Any, Any], Any]:
        return lambda a, b: function(combined(a, b))

    own: Numbers = {
        "mass": (value(lambda both: both.mass), "invariant mass"),
        "px": (value(lambda both: both.px), "momentum"),
        "py": (value(lambda both: both.py), "momentum"),
        "pz": (value(lambda both: both.pz), "momentum"),
        "pt": (value(lambda both: both.pt), "transverse momentum"),
        "x": (value(lambda both: both.vertex.x), "position"),
        "y": (value(lambda both: both.vertex.y), "position"),
        "z": (value(lambda both: both.vertex.z), "position"),
        "chi2": (value(lambda both: both.chi2), "chi2 that the second part adds to the vertex"),
        "doca": (value(lambda both: both.doca), "smallest distance of the parts"),
        "fd": (value(lambda both: both.fd), "distance of flight; NaN without a primary vertex"),
        "ip": (value(lambda both: both.ip), "impact parameter of the flight; NaN without a primary vertex"),
        "dira": (value(lambda both: both.dira), "cosine of the angle between flight and momentum"),
        **{f"{key}_": (value(_covariance(i)), "covariance") for i, key in enumerate(Covariance._fields)},
    }
    fields: dict[str, FieldOf] = {
        "p": DerivedField(lambda c: (c.px * c.px + c.py * c.py + c.pz * c.pz) ** 0.5, "momentum"),
        "pv": DerivedField(lambda c: c.first.pv, "the primary vertex of its first part"),
        "has_pv": DerivedField(lambda c: c.first.has_pv, "true if there is a pv"),
    }
    if taken := [key for key in more if key in own or key in fields]:
        raise LineError(f"composite {name}: numbers: each composite has {', '.join(taken)} already")
    return Composite(
        name,
        first,
        second,
        where=lambda a, b: where(a, b, combined(a, b)),
        numbers={**own, **more},
        bound=bound,
        description=description,
        fields=fields,
    )


def mass_of(a: Any, b: Any, masses: tuple[MassOf, MassOf]) -> Any:
    """The invariant mass of two candidates under other hypotheses, MeV."""
    return Combined(Part(a, masses[0]), Part(b, masses[1]), decays_at_first=False).mass


def _covariance(number: int) -> Callable[[Combined], Any]:
    return lambda both: both.covariance[number]
