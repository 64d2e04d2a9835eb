"""What the long tracking knows of magnet and material, for `hltnode parametrise`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from hltnode.processing.lhcb.geometry.field_map_file import read_field_map
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation.accuracy import accuracy_text
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters
from hltnode.processing.lhcb.parametrisation.parametrise import parametrise


@dataclass(frozen=True, slots=True, kw_only=True)
class ParametrisationOptions:
    """The options of `hltnode parametrise` that LHCb has of its own."""

    field: Annotated[
        Path | None,
        typer.Option(
            "--field",
            metavar="FILE",
            help="Map of the field: lines of x y z Bx By Bz, mm and T; the built-in field if not given.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LhcbParameters:
    """Polynomials for the flight of particles through the magnet."""

    parameters: LongTrackParameters

    @property
    def accuracy(self) -> str:
        """How well the polynomials agree with flights."""
        return accuracy_text(self.parameters.accuracy)

    def as_json(self) -> str:
        """The content of the file."""
        return self.parameters.as_json()

    def differences(self, other: "LhcbParameters") -> list[str]:
        """The names of the values in which other parameters differ."""
        return list(self.parameters.differences(other.parameters))


class LhcbParametrisation:
    """Flies particles through the magnetic field. The polarity is that of the geometry, else that of the map."""

    options = ParametrisationOptions
    file_name = PARAMETERS_FILE

    def load(self, folder: Path) -> LhcbParameters:
        """The parameters of a folder. Raises GeometryError, which names the file."""
        return LhcbParameters(LongTrackParameters.load(folder))

    def compute(self, geometry: Path | None, options: ParametrisationOptions) -> LhcbParameters:
        """The parameters of a geometry and a field. Raises GeometryError, which names the file."""
        if geometry is None:
            scifi, magnet = SciFiGeometry.builtin(), Magnet.builtin()
        else:
            scifi, magnet = SciFiGeometry.load(geometry), Magnet.load(geometry)
        if options.field is not None:
            mapped = read_field_map(options.field)
            magnet = mapped if geometry is None else replace(mapped, polarity=magnet.polarity)
        return LhcbParameters(parametrise(scifi, magnet))
