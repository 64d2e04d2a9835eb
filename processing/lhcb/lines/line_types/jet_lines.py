"""Lines on jets (docs/physics/jets.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Momentum
from hltnode.processing.lhcb.lines.inputs.jet_fields import jets
from hltnode.processing.selection.expressions.units import GeV, MeV
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class ConeJet(LineType):
    """A jet above `min_pt`."""

    input = jets
    histograms = (Histogram("pt", lambda j: j.pt, 50, 0 * GeV, 200 * GeV, description="transverse momentum of jets"),)

    min_pt: Momentum = 15000.0

    def selects(self, candidate: Any) -> Any:
        return candidate.pt > self.min_pt * MeV


TYPES = (ConeJet,)
LINES = (
    ConeJet("Hlt1ConeJet15GeV", prescale=0.001),
    ConeJet("Hlt1ConeJet30GeV", min_pt=30000.0, prescale=0.05),
    ConeJet("Hlt1ConeJet50GeV", min_pt=50000.0, prescale=0.1),
    ConeJet("Hlt1ConeJet100GeV", min_pt=100000.0),
)
"""Those of the sequence with jets."""
