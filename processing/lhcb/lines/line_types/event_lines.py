"""Lines on whole events (docs/physics/selection-lines.md)."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Length
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import any_pv
from hltnode.processing.lhcb.lines.inputs.track_fields import velo_tracks
from hltnode.processing.selection.expressions.units import mm
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType
from hltnode.processing.selection.lines.passthrough import EveryEvent


class Passthrough(EveryEvent):
    """Every event; a prescale makes it a random sample."""

    input = event


@dataclass(frozen=True, config=VALIDATED)
class GecPassthrough(LineType):
    """Events that pass the global event cut."""

    input = event

    def selects(self, candidate: Any) -> Any:
        return candidate.passes_gec


@dataclass(frozen=True, config=VALIDATED)
class OdinEventType(LineType):
    """Events with at least one bit of `mask` (16 bits) in the ODIN event type; none without a readable ODIN bank."""

    input = event

    mask: Annotated[int, Field(ge=1, le=0xFFFF)] = 0xFFFF

    def selects(self, candidate: Any) -> Any:
        return candidate.has_odin & ((candidate.event_type & self.mask) != 0)


@dataclass(frozen=True, config=VALIDATED)
class OdinCrossingType(LineType):
    """Events of one type of bunch crossing: 0 no beam, 1 beam 1, 2 beam 2, 3 both."""

    input = event

    crossing: Annotated[int, Field(ge=0, le=3)] = 3

    def selects(self, candidate: Any) -> Any:
        return candidate.has_odin & (candidate.crossing_type == self.crossing)


@dataclass(frozen=True, config=VALIDATED)
class OdinOrbit(OdinEventType):
    """Events of an ODIN event type in one of `every` orbits."""

    every: Annotated[int, Field(ge=1, le=0xFFFFFFFF)] = 30
    remainder: Annotated[int, Field(ge=0, le=0xFFFFFFFF)] = 1

    def selects(self, candidate: Any) -> Any:
        return OdinEventType.selects(self, candidate) & (candidate.orbit % self.every == self.remainder)


@dataclass(frozen=True, config=VALIDATED)
class TaePassthrough(LineType):
    """The central crossing of several crossings read out together, for the time alignment of the detectors."""

    input = event

    min_half_window: Annotated[int, Field(ge=1, le=63)] = 1

    def selects(self, candidate: Any) -> Any:
        is_tae = candidate.is_tae_central & (candidate.tae_half_window >= self.min_half_window)
        return candidate.has_odin & is_tae


@dataclass(frozen=True, config=VALIDATED)
class PassthroughPv(LineType):
    """Events with a primary vertex in a range of z, by default that of the gas target."""

    input = event

    min_z: Length = -541.0
    max_z: Length = -341.0

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        return any_pv(lambda v: (v.z > self.min_z * mm) & (v.z < self.max_z * mm))


@dataclass(frozen=True, config=VALIDATED)
class BeamGas(LineType):
    """Events of one type of bunch crossing with a VELO track of many hits from the gas upstream of the detector."""

    input = event

    crossing: Annotated[int, Field(ge=0, le=3)] = 1
    min_hits: Annotated[int, Field(ge=3, le=26)] = 12
    min_z: Length = -550.0
    max_z: Length = -300.0

    def selects(self, candidate: Any) -> Any:
        from_gas = count_of(
            velo_tracks,
            lambda t: (t.n_hits >= self.min_hits) & (t.z > self.min_z * mm) & (t.z < self.max_z * mm),
        )
        return candidate.has_odin & (candidate.crossing_type == self.crossing) & (from_gas >= 1)
