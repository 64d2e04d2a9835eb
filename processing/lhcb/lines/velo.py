"""Lines on VELO tracks (docs/physics/selection-lines.md)."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.kinds import LineKind
from hltnode.processing.selection.line import VALIDATED, Line

Millimetres = Annotated[float, Field(ge=0.0, le=1e4)]
Tracks = Annotated[int, Field(ge=1, le=0xFFFF)]


@dataclass(frozen=True, config=VALIDATED)
class VeloMicroBias(Line):
    """Events with at least `min_tracks` VELO tracks."""

    kind: ClassVar[LineKind] = LineKind.VELO_MICRO_BIAS

    min_tracks: Tracks = 1

    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        return (np.uint32(self.min_tracks),)


@dataclass(frozen=True, config=VALIDATED)
class NDisplacedVeloTracks(Line):
    """Events with at least `min_tracks` displaced VELO tracks.

    A track is displaced if it flies forward and if its impact parameter to the nearest primary vertex (the one with the
    smallest) lies between `min_ip` and `max_ip` (mm) and is significant: IP chi2 above `min_ip_chi2`. The cuts keep one
    simulated minimum-bias event in five. `max_ip` takes out most tracks from strange decays and from material.
    """

    kind: ClassVar[LineKind] = LineKind.N_DISPLACED_VELO_TRACKS

    min_tracks: Tracks = 3
    min_ip: Millimetres = 0.5
    max_ip: Millimetres = 1.5
    min_ip_chi2: Annotated[float, Field(ge=0.0, le=1e9)] = 400.0

    def parameters(self) -> tuple[np.uint32 | np.float32, ...]:
        return (
            np.uint32(self.min_tracks),
            np.float32(self.min_ip),
            np.float32(self.max_ip),
            np.float32(self.min_ip_chi2),
        )
