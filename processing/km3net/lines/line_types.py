"""Lines on windows: their triggers, hits, PMTs and charge."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.km3net.hits.collections import MAX_HITS, MAX_TESTED
from hltnode.processing.km3net.lines.inputs import event, time_windows
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent

Hits = Annotated[int, Field(ge=0, le=MAX_HITS)]
Tested = Annotated[int, Field(ge=0, le=MAX_TESTED)]
Charge = Annotated[int, Field(ge=0, le=MAX_TESTED * 65_535)]


class Passthrough(EveryEvent):
    """Every sub-slice; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class WindowHits(LineType):
    """Sub-slices with a window of at least `min_hits` hits in at least `min_pmts` PMTs."""

    input = time_windows

    min_hits: Hits = 7
    min_pmts: Tested = 0

    def selects(self, candidate: Any) -> Any:
        return (candidate.hits >= self.min_hits) & (candidate.pmts >= self.min_pmts)


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class CausalWindow(LineType):
    """Sub-slices with a window in which light connects at least `min_causal_hits` hits."""

    input = time_windows

    min_causal_hits: Tested = 6

    def selects(self, candidate: Any) -> Any:
        return candidate.causal_hits >= self.min_causal_hits


@dataclass(frozen=True, kw_only=True, config=VALIDATED)
class ChargedWindow(LineType):
    """Sub-slices with a window whose hits have at least `min_charge` hundredths of a photoelectron."""

    input = time_windows

    min_charge: Charge = 2_000

    def selects(self, candidate: Any) -> Any:
        return candidate.charge >= self.min_charge
