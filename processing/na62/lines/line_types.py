"""Lines on the number of rings, their radius and velocity, and on the missing mass."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.na62.detector_constants import NEUTRAL_PION_MASS
from hltnode.processing.na62.lines.inputs import event, rings
from hltnode.processing.na62.rich.collections import MAX_RINGS
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

Count = Annotated[int, Field(ge=0, le=MAX_RINGS)]
Millimetres = Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)]
Velocity = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
MassSquare = Annotated[float, Field(ge=-10.0, le=10.0, allow_inf_nan=False)]
Width = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class RingCount(LineType):
    """Events with `min_rings` to `max_rings` rings."""

    input = event

    min_rings: Count = 1
    max_rings: Count = MAX_RINGS

    def selects(self, candidate: Any) -> Any:
        return (candidate.n_rings >= self.min_rings) & (candidate.n_rings <= self.max_rings)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class RingRadius(LineType):
    """Events with a ring of `min_radius` to `max_radius` mm."""

    input = rings

    min_radius: Millimetres = 0.0
    max_radius: Millimetres = 1000.0

    def selects(self, candidate: Any) -> Any:
        return (candidate.radius >= self.min_radius) & (candidate.radius <= self.max_radius)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class RingVelocity(LineType):
    """Events with a ring whose velocity is `min_beta` to `max_beta` of that of light."""

    input = rings

    min_beta: Velocity = 0.0
    max_beta: Velocity = 1.0

    def selects(self, candidate: Any) -> Any:
        return (candidate.beta >= self.min_beta) & (candidate.beta <= self.max_beta)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class MissingMass(LineType):
    """Events with a ring of a pion whose missing mass squared is `min_mass2` to `max_mass2` (GeV/c2)^2."""

    input = rings

    min_mass2: MassSquare = -10.0
    max_mass2: MassSquare = 10.0

    def selects(self, candidate: Any) -> Any:
        return (candidate.missing_mass2_pion >= self.min_mass2) & (candidate.missing_mass2_pion <= self.max_mass2)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class PionAndNeutralPion(LineType):
    """Events with a ring that fits K -> pi pi0 and not K -> mu nu, by the missing masses.

    width: greatest distance of the square of the missing mass of a pion from that of a neutral pion, (GeV/c2)^2.
    muon_veto: the square of the missing mass of a muon, which is 0 with a neutrino, must be farther from 0.
    """

    input = rings

    width: Width = 0.02
    muon_veto: Width = 0.01

    def selects(self, candidate: Any) -> Any:
        off_pion = candidate.missing_mass2_pion - NEUTRAL_PION_MASS**2
        off_neutrino = candidate.missing_mass2_muon
        is_pion = (off_pion >= -self.width) & (off_pion <= self.width)
        return is_pion & ((off_neutrino > self.muon_veto) | (off_neutrino < -self.muon_veto))
