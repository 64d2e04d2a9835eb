"""Lines on photons and on the cells of the calorimeter (docs/physics/selection-lines.md)."""

from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Momentum
from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import photon_pairs
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.selection.expressions.units import MeV
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


@dataclass(frozen=True, config=VALIDATED)
class DiPhotonMass(LineType):
    """Two photons in a range of mass."""

    input = photon_pairs

    min_mass: Momentum = 3000.0
    max_mass: Momentum = 7000.0
    min_pt: Momentum = 0.0
    min_et: Momentum = 200.0
    min_sum_et: Momentum = 400.0
    min_e19: Fraction = 0.6

    def selects(self, candidate: Any) -> Any:
        v = candidate
        return (
            (v.mass > self.min_mass * MeV)
            & (v.mass < self.max_mass * MeV)
            & (v.pt >= self.min_pt * MeV)
            & (v.min_et > self.min_et * MeV)
            & (v.sum_et > self.min_sum_et * MeV)
            & (v.min_e19 > self.min_e19)
        )


@dataclass(frozen=True, config=VALIDATED)
class Pi02GammaGamma(LineType):
    """A neutral pion to two photons in an event with few primary vertices, for the calibration of the calorimeter.

    Its pt is above `min_pt_slope` (10 - pseudorapidity).
    """

    input = photon_pairs
    histograms = (
        Histogram("mass", lambda v: v.mass, 50, 50 * MeV, 300 * MeV, description="neutral pion to two photons"),
    )
    regions: ClassVar[tuple[str, str] | None] = None
    """The regions of both photons; None: any."""

    min_mass: Momentum = 50.0
    max_mass: Momentum = 300.0
    min_et: Momentum = 400.0
    min_e19: Fraction = 0.7
    min_pt_slope: Momentum = 200.0
    max_pvs: Annotated[int, Field(ge=0, le=0xFFFF)] = 1

    def selects(self, candidate: Any) -> Any:
        v = candidate
        selected = (
            (v.mass > self.min_mass * MeV)
            & (v.mass < self.max_mass * MeV)
            & (v.min_et > self.min_et * MeV)
            & (v.min_e19 > self.min_e19)
            & (v.pt > self.min_pt_slope * MeV * (10.0 - v.eta))
            & (count_of(primary_vertices) <= self.max_pvs)
        )
        if self.regions is None:
            return selected
        one, other = (f"is_{region}" for region in self.regions)
        in_regions = getattr(v.first, one) & getattr(v.second, other)
        return selected & (in_regions | (getattr(v.first, other) & getattr(v.second, one)))


class Pi02GammaGammaOuter(Pi02GammaGamma):
    """A neutral pion to two photons in the outer region."""

    regions = ("outer", "outer")


class Pi02GammaGammaMiddle(Pi02GammaGamma):
    """A neutral pion to two photons in the middle region."""

    regions = ("middle", "middle")


class Pi02GammaGammaInner(Pi02GammaGamma):
    """A neutral pion to two photons in the inner region."""

    regions = ("inner", "inner")


class Pi02GammaGammaMiddleOuterMixed(Pi02GammaGamma):
    """A neutral pion to a photon in the middle and one in the outer region."""

    regions = ("middle", "outer")


class Pi02GammaGammaMiddleInnerMixed(Pi02GammaGamma):
    """A neutral pion to a photon in the middle and one in the inner region."""

    regions = ("middle", "inner")


@dataclass(frozen=True, config=VALIDATED)
class CaloDigitsMinADC(LineType):
    """Events with a cell of the calorimeter of at least `min_adc` counts."""

    input = event

    min_adc: Annotated[int, Field(ge=1, le=0xFFFF)] = 500

    def selects(self, candidate: Any) -> Any:
        return candidate.ecal_max_adc >= self.min_adc
