"""VELO raw banks to sorted hits in slow and simple code: retina clusters word by word, super-pixels pixel by pixel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.raw_data.raw_bank import RawBank

Pixel = tuple[int, int]
"""Column and row on a sensor."""

NORTH_AND_EAST = ((0, 1), (1, 1), (1, 0), (1, -1))
NEIGHBOURS = tuple((c, r) for c in (-1, 0, 1) for r in (-1, 0, 1) if (c, r) != (0, 0))


@dataclass(frozen=True, slots=True, order=True)
class Cluster:
    """A cluster: sensor, pixel of its centre, offset from it (in pixels), whether the id encodes the offset."""

    sensor: int
    column: int
    row: int
    fraction_x: float
    fraction_y: float
    oriented: bool

    @property
    def lhcb_id(self) -> int:
        beyond = (self.fraction_x != 0) << 27 | (self.fraction_y != 0) << 26 if self.oriented else 0
        return 2 << 28 | beyond | self.sensor << 18 | self.column << 8 | self.row


def retina(banks: Sequence[RawBank]) -> list[Cluster]:
    """The clusters of VPRetinaCluster banks; words of 0 are fillers."""
    clusters = decode_retina_clusters([bank for bank in banks if bank.type == LhcbBankType.VP_RETINA_CLUSTER])
    unit = 2.0**-clusters.fraction_bits
    columns = (clusters.sensor, clusters.column, clusters.row, clusters.fraction_x, clusters.fraction_y)
    return [
        Cluster(sensor, column, row, fx * unit, fy * unit, True)
        for sensor, column, row, fx, fy in zip(*(values.tolist() for values in columns), strict=True)
        if column or row or fx or fy
    ]


def super_pixels(banks: Iterable[RawBank]) -> list[Cluster]:
    """The clusters of VP banks by the masks of docs/physics/velo-clustering.md."""
    return _clusters(banks, masked_clusters)


def connected_super_pixels(banks: Iterable[RawBank]) -> list[Cluster]:
    """The clusters of VP banks as 8-connected components; pixels that are marked as isolated touch no others."""
    return _clusters(banks, connected_components)


def _clusters(banks: Iterable[RawBank], clusters_of: Callable[[set[Pixel]], Iterator[set[Pixel]]]) -> list[Cluster]:
    isolated, lit = lit_pixels(banks)
    clusters = [_centre(sensor, component) for sensor, pixels in isolated for component in connected_components(pixels)]
    for sensor, pixels in lit.items():
        clusters += [_centre(sensor, cluster) for cluster in clusters_of(pixels)]
    return clusters


def lit_pixels(banks: Iterable[RawBank]) -> tuple[list[tuple[int, set[Pixel]]], dict[int, set[Pixel]]]:
    """Sensor and pixels of each super-pixel marked as isolated, and the other lit pixels of each sensor."""
    found = decode_superpixels(bank for bank in banks if bank.type == LhcbBankType.VP)
    isolated: list[tuple[int, set[Pixel]]] = []
    lit: dict[int, set[Pixel]] = {}
    for sensor, column, row, pattern, alone in zip(
        *(v.tolist() for v in (found.sensor, found.column, found.row, found.pattern, found.isolated)), strict=True
    ):
        pixels = {(2 * column + bit // 4, 4 * row + bit % 4) for bit in range(8) if pattern >> bit & 1}
        if alone:
            isolated.append((sensor, pixels))
        else:
            lit.setdefault(sensor, set()).update(pixels)
    return isolated, lit


def connected_components(pixels: set[Pixel]) -> Iterator[set[Pixel]]:
    """The 8-connected components of the lit pixels."""
    left = set(pixels)
    while left:
        component = grow({left.pop()}, pixels)
        left -= component
        yield component


def grow(cluster: set[Pixel], lit: set[Pixel]) -> set[Pixel]:
    """All pixels that are connected with the cluster through lit pixels."""
    edge = set(cluster)
    while edge:
        edge = {(c + dc, r + dr) for c, r in edge for dc, dr in NEIGHBOURS} & lit - cluster
        cluster = cluster | edge
    return cluster


def window_of(candidate: Pixel) -> tuple[range, range]:
    """Columns and rows of the 3 by 4 super-pixels around the candidate of a cluster."""
    west, south = 2 * (candidate[0] // 2 - 1), 4 * (candidate[1] // 4 - 2)
    return range(west, west + 6), range(south, south + 16)


def masked_clusters(lit: set[Pixel]) -> Iterator[set[Pixel]]:
    """The clusters of lit pixels, each cut by the window of its candidate."""
    for column, row in sorted(lit):
        if any((column + dc, row + dr) in lit for dc, dr in NORTH_AND_EAST):
            continue
        columns, rows = window_of((column, row))
        window = {(c, r) for c, r in lit if c in columns and r in rows}
        cluster = grow({(column, row)}, window)
        if max(cluster) == (column, row):
            yield cluster


def _centre(sensor: int, pixels: set[Pixel]) -> Cluster:
    n = len(pixels)
    columns, rows = sum(c for c, _ in pixels), sum(r for _, r in pixels)
    return Cluster(sensor, columns // n, rows // n, (columns % n) / n, (rows % n) / n, False)


def sorted_hits(
    clusters: Sequence[Cluster], geometry: VeloGeometry
) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.int64]]:
    """(LHCbIDs, positions [n, 3] in mm, offset of each module pair), sorted by module pair, phi and id.

    Hits are sorted by the exact azimuth. The kernel's azimuth has steps of 2 pi / 2^16 and an error of 2e-6 rad, so
    closer neighbours may be in reverse order.
    """
    if not clusters:
        return np.empty(0, np.uint32), np.empty((0, 3)), np.zeros(27, np.int64)
    sensor, column, row = (np.array([getattr(c, name) for c in clusters]) for name in ("sensor", "column", "row"))
    fx, fy = (np.array([getattr(c, name) for c in clusters]) for name in ("fraction_x", "fraction_y"))
    position = geometry.local_to_global(sensor, column, row, fx, fy)
    ids = np.array([c.lhcb_id for c in clusters], dtype=np.uint32)
    pair = sensor // 8
    order = np.lexsort((ids, np.arctan2(position[:, 1], position[:, 0]), pair))
    return ids[order], position[order], np.searchsorted(pair[order], np.arange(27))
