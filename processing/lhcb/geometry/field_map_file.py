"""Reads maps of the magnetic field (docs/formats/field-map.md)."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP, Magnet, bending_power
from hltnode.processing.offline.field_map import FieldMap
from hltnode.processing.offline.field_map_file import FieldMapError, read_map, require_reach

_FIRST_Z, _LAST_Z = 0.0, 9500.0
# Region of tracks, mm: x, y, and z from the collisions to the end of the SciFi.
_REACH = ((-3200.0, 3200.0), (-2500.0, 2500.0), (_FIRST_Z, _LAST_Z))
# T m, along the axis; the dipole of LHCb has 4.
_LEAST_BENDING, _MOST_BENDING = 1.0, 10.0


def read_field_map(path: Path) -> Magnet:
    """A magnet with the field and the polarity of a map.

    Raises GeometryError, which names the file and what is wrong.
    """
    try:
        found: FieldMap = read_map(path)
        require_reach(path, found, _REACH)
    except FieldMapError as error:
        raise GeometryError(str(error)) from error
    bending = bending_power(found.field, _FIRST_Z, _LAST_Z)
    if not _LEAST_BENDING <= abs(bending) <= _MOST_BENDING:
        raise GeometryError(
            f"{path}: By along the z axis sums up to {bending:.3g} T m; {_LEAST_BENDING:g} to {_MOST_BENDING:g} of"
            " either sign are possible: are the columns x, y, z in mm and Bx, By, Bz in T?"
        )
    polarity = UP if bending > 0.0 else DOWN
    return Magnet(polarity, replace(found, values=(polarity * found.values).astype(np.float32)))
