"""Lines on the whole event for beam-gas imaging and for beams of ions (docs/physics/selection-lines.md)."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import MIN_PV_Z, Count, Distance, Length, Momentum
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import velo_tracks
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

Number = Annotated[int, Field(ge=0, le=0xFFFF)]
"""A number of objects that may be 0."""


@dataclass(frozen=True, config=VALIDATED)
class BeamGasImaging(LineType):
    """Events with many VELO tracks that come close to the beam in a range of z.

    A vertex of a beam with the residual gas makes them, anywhere along the beam. `beam_x`, `beam_y` (mm): position of
    the beam.
    """

    input = event

    min_tracks: Count = 10
    max_distance: Distance = 3.0
    min_z: Length = -3000.0
    max_z: Length = 3000.0
    beam_x: Length = 0.0
    beam_y: Length = 0.0

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        def near(t: Any) -> Any:
            x, y = t.x - self.beam_x * mm, t.y - self.beam_y * mm
            close = x * x + y * y < self.max_distance**2 * mm * mm
            return close & (t.z > self.min_z * mm) & (t.z < self.max_z * mm)

        return count_of(velo_tracks, near) >= self.min_tracks


@dataclass(frozen=True, config=VALIDATED)
class HeavyIon(LineType):
    """Events with a range of numbers of VELO tracks, of primary vertices of both beams, and of those in the gas.

    `border_z` (mm) parts both regions of z.
    """

    input = event

    min_velo_tracks: Number = 0
    max_velo_tracks: Number = 0xFFFF
    min_pvs: Number = 0
    max_pvs: Number = 0xFFFF
    min_gas_pvs: Number = 0
    max_gas_pvs: Number = 0xFFFF
    border_z: Length = MIN_PV_Z

    def selects(self, candidate: Any) -> Any:
        e = candidate
        of_beams = count_of(primary_vertices, lambda v: v.z > self.border_z * mm)
        in_gas = count_of(primary_vertices, lambda v: v.z <= self.border_z * mm)
        return (
            (e.n_velo_tracks >= self.min_velo_tracks)
            & (e.n_velo_tracks <= self.max_velo_tracks)
            & (of_beams >= self.min_pvs)
            & (of_beams <= self.max_pvs)
            & (in_gas >= self.min_gas_pvs)
            & (in_gas <= self.max_gas_pvs)
        )


@dataclass(frozen=True, config=VALIDATED)
class HeavyIonEnergy(HeavyIon):
    """Events as those of HeavyIon, in a range of the energy in the calorimeter.

    Peripheral collisions, in which only photons of the ions interact, leave little energy.
    """

    min_energy: Momentum = 0.0
    max_energy: Momentum = 1e8

    def selects(self, candidate: Any) -> Any:
        e = candidate
        energy = (e.ecal_energy >= self.min_energy * MeV) & (e.ecal_energy <= self.max_energy * MeV)
        return HeavyIon.selects(self, candidate) & energy
