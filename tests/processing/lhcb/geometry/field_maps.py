"""Maps of a field, and the text of their files."""

from __future__ import annotations

import io

import numpy as np

from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.offline.field_map import FieldMap

Range = tuple[float, float, float]
"""First, last, step; mm."""


def field_map_of(
    magnet: Magnet,
    x: Range = (0.0, 4000.0, 100.0),
    y: Range = (0.0, 3000.0, 50.0),
    z: Range = (-1000.0, 10_000.0, 50.0),
) -> FieldMap:
    """The field of a magnet on a grid; by default one quarter of its cross-section."""
    axes = [np.arange(first, last + step / 2, step) for first, last, step in (x, y, z)]
    values = magnet.field(axes[0][:, None, None], axes[1][None, :, None], axes[2][None, None, :])
    return FieldMap((x[0], y[0], z[0]), (x[2], y[2], z[2]), values.astype(np.float32))


def points_of(field_map: FieldMap) -> np.ndarray:
    """x, y, z, Bx, By, Bz: f64[points, 6]."""
    grid = np.stack(np.meshgrid(*axes_of(field_map), indexing="ij"))
    return np.concatenate([grid, field_map.values]).reshape(6, -1).T.astype(np.float64)


def axes_of(field_map: FieldMap) -> list[np.ndarray]:
    shape = field_map.values.shape[1:]
    return [first + step * np.arange(n) for first, step, n in zip(field_map.first, field_map.step, shape, strict=True)]


def text_of(points: np.ndarray, header: str = "x y z Bx By Bz; mm, T") -> str:
    """The content of a file of the map."""
    file = io.StringIO()
    np.savetxt(file, points, fmt=["%.2f"] * 3 + ["%.6f"] * 3, header=header)
    return file.getvalue()
