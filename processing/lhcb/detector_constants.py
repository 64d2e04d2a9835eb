"""The detector constants of the sequences: from the geometry files of a folder, or of the built-in detector."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.calorimeter.collections import ecal_geometry
from hltnode.processing.lhcb.calorimeter.electron_network import ElectronNetwork, electron_network
from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.magnet import POLARITY_FILE, Magnet
from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.muon_cells import MuonCells
from hltnode.processing.lhcb.geometry.muon_fields import FieldsOfInterest
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.scifi_mats import mat_table, read_out_table, sipm_table
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.ut_groups import UtSectorGroups
from hltnode.processing.lhcb.geometry.ut_tables import UtTables
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.geometry.velo_field import VeloField
from hltnode.processing.lhcb.luminosity.collections import lumi_scales, scales_table
from hltnode.processing.lhcb.muon.collections import muon_field_of_interest, muon_geometry
from hltnode.processing.lhcb.muon.muon_network import MuonNetwork, muon_network
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters, ParametersError
from hltnode.processing.lhcb.scifi.collections import scifi_mats, scifi_read_out, scifi_sipms
from hltnode.processing.lhcb.secondary_vertices.downstream.field import v0_field, v0_field_record
from hltnode.processing.lhcb.tracks.downstream.field import downstream_field, field_record
from hltnode.processing.lhcb.tracks.downstream.ghost_network import DownstreamNetwork, downstream_network
from hltnode.processing.lhcb.tracks.kalman.collections import velo_field
from hltnode.processing.lhcb.tracks.kalman.ghost_network import GhostNetwork, ghost_network
from hltnode.processing.lhcb.tracks.long.parameters import long_track_parameters, record_of
from hltnode.processing.lhcb.tracks.matching.seeding_tables import SeedingTables, seeding_tables
from hltnode.processing.lhcb.ut.collections import ut_geometry, ut_tables
from hltnode.processing.lhcb.velo.collections import retina_sizes, velo_geometry
from hltnode.processing.lhcb.velo.decoding.retina_sizes import retina_size_table

Directory = Path | None
"""A folder of geometry files; None: the built-in detector."""


def _velo(directory: Directory) -> VeloGeometry:
    return VeloGeometry.builtin() if directory is None else VeloGeometry.load(directory)


def _ut(directory: Directory) -> UtGeometry:
    return UtGeometry.builtin() if directory is None else UtGeometry.load(directory)


def _ut_tables(directory: Directory) -> UtTables:
    return UtTables.builtin() if directory is None else UtTables.load(directory)


def _scifi(directory: Directory) -> SciFiGeometry:
    return SciFiGeometry.builtin() if directory is None else SciFiGeometry.load(directory)


def _magnet(directory: Directory) -> Magnet:
    return Magnet.builtin() if directory is None else Magnet.load(directory)


def _muon(directory: Directory) -> MuonGeometry:
    return MuonGeometry.builtin() if directory is None else MuonGeometry.load(directory)


def _ecal(directory: Directory) -> EcalGeometry:
    return EcalGeometry.builtin() if directory is None else EcalGeometry.load(directory)


def _fields_of_interest(directory: Directory) -> FieldsOfInterest:
    return FieldsOfInterest.builtin() if directory is None else FieldsOfInterest.load(directory)


def _parameters(directory: Directory) -> LongTrackParameters:
    """Returns those of the built-in field if the folder has none; they are the same for both polarities."""
    polarity = _magnet(directory).polarity
    if directory is None or not (directory / PARAMETERS_FILE).exists():
        return replace(LongTrackParameters.builtin(), polarity=polarity)
    found = LongTrackParameters.load(directory)
    if found.polarity != polarity:
        raise ParametersError(
            f"{directory / PARAMETERS_FILE}: is for the polarity {found.polarity:g} of the magnet, that of "
            f"{POLARITY_FILE} is {polarity:g}: compute it again (hltnode parametrise)"
        )
    return found


def _bytes(content: bytes | NDArray[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(content if isinstance(content, bytes) else content.tobytes(), dtype=np.uint8)


Read = Callable[[Directory], NDArray[np.uint8]]


def _builtin_once(read: Read) -> Read:
    """Reads a folder each time, and computes the constants of the built-in detector once: together they take 0.6 s.

    Arrays over `bytes` are read-only, so that no caller can change them.
    """
    builtin = cache(lambda: read(None))
    return lambda directory: builtin() if directory is None else read(directory)


_READ: Mapping[str, Read] = {
    velo_geometry.name: lambda directory: _bytes(_velo(directory).to_bytes()),
    retina_sizes.name: lambda _: _bytes(retina_size_table()),
    ut_geometry.name: lambda directory: _bytes(UtSectorGroups.of(_ut(directory)).to_bytes()),
    ut_tables.name: lambda directory: _bytes(_ut_tables(directory).to_bytes(_magnet(directory).polarity)),
    scifi_mats.name: lambda directory: _bytes(mat_table(_scifi(directory))),
    scifi_read_out.name: lambda directory: _bytes(read_out_table(_scifi(directory))),
    scifi_sipms.name: lambda directory: _bytes(sipm_table(_scifi(directory))),
    long_track_parameters.name: lambda directory: _bytes(record_of(_parameters(directory), _scifi(directory))),
    seeding_tables.name: lambda directory: _bytes(SeedingTables.of(_scifi(directory), _magnet(directory)).to_bytes()),
    ghost_network.name: lambda directory: _bytes(GhostNetwork.load_or_builtin(directory).to_bytes()),
    downstream_field.name: lambda directory: _bytes(field_record(_parameters(directory))),
    downstream_network.name: lambda directory: _bytes(DownstreamNetwork.load_or_builtin(directory).to_bytes()),
    velo_field.name: lambda directory: _bytes(VeloField.of(_magnet(directory)).to_bytes()),
    v0_field.name: lambda directory: _bytes(v0_field_record(_magnet(directory))),
    lumi_scales.name: lambda _: _bytes(scales_table()),
    muon_network.name: lambda _: _bytes(MuonNetwork.builtin().to_bytes()),
    electron_network.name: lambda _: _bytes(ElectronNetwork.builtin().to_bytes()),
    ecal_geometry.name: lambda directory: _bytes(_ecal(directory).to_bytes()),
    muon_geometry.name: lambda directory: _bytes(MuonCells.of(_muon(directory)).to_bytes()),
    muon_field_of_interest.name: lambda directory: _bytes(_fields_of_interest(directory).to_bytes()),
}

DETECTOR_CONSTANTS: Mapping[str, Read] = {name: _builtin_once(read) for name, read in _READ.items()}
"""By column. Each raises GeometryError, which names the file, if the file is missing or invalid."""
