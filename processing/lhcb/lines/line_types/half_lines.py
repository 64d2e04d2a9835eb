"""Lines on primary vertices of the VELO halves (docs/physics/velo-halves.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Positive
from hltnode.processing.lhcb.lines.inputs.half_fields import half_pairs
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class VeloHalvesVertex(LineType):
    """A collision that both halves of the VELO see, each with `min_tracks` tracks (sum of weights) at its vertex."""

    input = half_pairs

    min_tracks: Positive = 4.0

    def selects(self, candidate: Any) -> Any:
        return candidate.n_tracks >= self.min_tracks


TYPES = (VeloHalvesVertex,)
LINES = (VeloHalvesVertex("Hlt1VeloHalvesVertex", postscale=0.001),)
"""Those of the sequence `velo_halves`. The postscale is chosen here."""
