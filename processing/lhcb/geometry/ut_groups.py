"""Sectors of the UT in the order of its hits: groups of equal x in each layer, ascending in y inside a group."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY, N_LAYERS, N_SECTORS
from hltnode.processing.lhcb.geometry.ut import LAYER_OFFSETS, UtGeometry
from hltnode.protocol.lhcb.banks.ut import N_STRIPS
from hltnode.protocol.lhcb.lhcb_id import ut_lhcb_id

MAX_GROUPS = 127
NO_SECTOR = 0xFFFF
# Sectors whose first strips differ by less in x form a column (mm).
SAME_X = 2.0

# Look-up of groups by x at y = 0 and of sectors by y: bins of equal width (mm), the first one from -half.
N_X_BINS, X_BIN, X_HALF = 128, 16.0, 1024.0
N_Y_BINS, Y_BIN, Y_HALF = 96, 16.0, 768.0

BACKWARDS = 1 << 16
DESCENDING = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class UtSectorGroups:
    """The order of sectors, and their positions.

    sectors i64[1048]: the sector (0..1047 of the geometry) at each place. first_sector: the place of the first sector
    of each group, and the end. first_group[5]: the first group of each layer, and the end. By place, mm: x, y f64[1048,
    2] (least and largest value on the sector; x of strips at y = 0). x_of_group f64[groups, 2]: the smallest value of a
    group and all later ones of the layer, and the largest of a group and all earlier ones, so that both ascend.
    """

    geometry: UtGeometry
    sectors: NDArray[np.int64]
    first_sector: NDArray[np.int64]
    first_group: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    x_of_group: NDArray[np.float64]

    @classmethod
    def of(cls, geometry: UtGeometry) -> Self:
        """Raises GeometryError if there are too many groups, or if the sectors of a group overlap too much: no order of
        hits then ascends in both ends of their strips."""
        groups: list[NDArray[np.int64]] = []
        first_group = [0]
        for begin, end in pairwise(LAYER_OFFSETS):
            groups += _groups_of_layer(geometry, begin, end)
            first_group.append(len(groups))
        if len(groups) > MAX_GROUPS:
            raise GeometryError(f"UT: {len(groups)} groups of sectors, at most {MAX_GROUPS} are possible")
        sectors = np.concatenate(groups)
        lower, upper = _ends_of_strips(geometry, sectors)
        first_sector = np.cumsum([0, *map(len, groups)])
        for begin, end in pairwise(first_sector):
            for ends in (lower[begin:end], upper[begin:end]):
                if (ends[1:].min(axis=1) < ends[:-1].max(axis=1)).any():
                    raise GeometryError(f"UT: sectors of the group of {sectors[begin]} are in no order by both ends")
        first_x = geometry.p0[sectors, 0].astype(np.float64)
        last_x = first_x + N_STRIPS * geometry.dp0di[sectors, 0].astype(np.float64)
        x = np.stack([np.minimum(first_x, last_x), np.maximum(first_x, last_x)], axis=1)
        return cls(
            geometry=geometry,
            sectors=sectors,
            first_sector=first_sector,
            first_group=np.array(first_group),
            x=x,
            y=np.stack([lower.min(axis=1), upper.max(axis=1)], axis=1),
            x_of_group=_intervals_of_groups(x, first_sector, first_group),
        )

    @property
    def n_groups(self) -> int:
        return len(self.first_sector) - 1

    def place_of_lane(self) -> NDArray[np.uint16]:
        """The place of the sector that each lane (6 board + lane) reads, u16[1440]; NO_SECTOR without one."""
        place = np.empty(N_SECTORS, np.int64)
        place[self.sectors] = np.arange(N_SECTORS)
        sector = self.geometry.sector_of_lane
        return np.where(sector >= 0, place[sector], NO_SECTOR).astype(np.uint16)

    def descending(self) -> NDArray[np.bool_]:
        """By place: true if y of the ends, or x for strips parallel to y, falls along the strips."""
        step = self.geometry.dp0di[self.sectors]
        falls: NDArray[np.bool_] = np.where(step[:, 1] != 0, step[:, 1] < 0, step[:, 0] < 0)
        return falls

    def x_bins(self) -> NDArray[np.uint8]:
        """u8[4, 128]: the first group of a layer that reaches beyond the lower edge of each bin of x."""
        edges = X_BIN * np.arange(N_X_BINS) - X_HALF
        edges[0] = -np.inf
        bins = np.empty((N_LAYERS, N_X_BINS), np.uint8)
        for layer in range(N_LAYERS):
            begin, end = self.first_group[layer : layer + 2]
            bins[layer] = begin + np.searchsorted(self.x_of_group[begin:end, 1], edges)
        return bins

    def y_bins(self) -> NDArray[np.uint8]:
        """u8[127, 96, 2]: for each bin of y the first sector, counted in its group, that reaches above the lower edge,
        and behind the last one that reaches below the upper edge."""
        edges = Y_BIN * np.arange(N_Y_BINS + 1) - Y_HALF
        # Values outside belong to the bins at the ends.
        edges[0], edges[-1] = -np.inf, np.inf
        bins = np.zeros((MAX_GROUPS, N_Y_BINS, 2), np.uint8)
        for group in range(self.n_groups):
            begin, end = self.first_sector[group : group + 2]
            bins[group, :, 0] = np.searchsorted(self.y[begin:end, 1], edges[:-1])
            bins[group, :, 1] = np.searchsorted(self.y[begin:end, 0], edges[1:], side="right")
        return bins

    def layer_z(self) -> NDArray[np.float64]:
        """f64[4, 2]: the middle in z of the sectors of each layer, and their largest distance from it (mm)."""
        z = np.abs(self.geometry.p0[:, 2].astype(np.float64))
        far = z + N_STRIPS * self.geometry.dp0di[:, 2].astype(np.float64)
        low = np.minimum.reduceat(np.minimum(z, far), LAYER_OFFSETS[:-1])
        high = np.maximum.reduceat(np.maximum(z, far), LAYER_OFFSETS[:-1])
        return np.stack([0.5 * (low + high), 0.5 * (high - low)], axis=1)

    def to_bytes(self) -> bytes:
        """For the kernels: the fields of the record ut_geometry (ut/collections.py), in its order."""
        geometry, sectors = self.geometry, self.sectors
        p0, step = geometry.p0[sectors], geometry.dp0di[sectors]
        weight = 12.0 / geometry.pitch[sectors].astype(np.float64) ** 2
        strips = np.column_stack([p0[:, 0], p0[:, 1], np.abs(p0[:, 2]), step, geometry.dy[sectors], weight])
        lane = geometry.lane_of_sector()[sectors]
        channel = np.where(lane >= 0, geometry.channel_of_lane[lane], 0).astype(np.uint32)
        numbering = geometry.first_strip[sectors].astype(np.uint32)
        numbering |= np.where(p0[:, 2] < 0, BACKWARDS, 0).astype(np.uint32)
        numbering |= np.where(self.descending(), DESCENDING, 0).astype(np.uint32)
        none = (0, MAX_GROUPS - self.n_groups)
        z = self.layer_z()
        parts: tuple[tuple[NDArray[np.generic], str], ...] = (
            (strips, "<f4"),
            (np.pad(self.x_of_group, (none, (0, 0)), constant_values=np.inf), "<f4"),
            (z[:, 0], "<f4"),
            (z[:, 1], "<f4"),
            (np.array(DX_DY), "<f4"),
            (ut_lhcb_id(channel), "<u4"),
            (numbering, "<u4"),
            (self.first_group[:-1], "<u4"),
            (np.array([self.n_groups]), "<u4"),
            (np.pad(self.first_sector, none, mode="edge"), "<u2"),
            (self.place_of_lane(), "<u2"),
            (self.x_bins(), "u1"),
            (self.y_bins(), "u1"),
        )
        return b"".join(np.ascontiguousarray(values, dtype=dtype).tobytes() for values, dtype in parts)


def _groups_of_layer(geometry: UtGeometry, begin: int, end: int) -> list[NDArray[np.int64]]:
    """The sectors of each group of a layer, from below; groups from small to large x of the first strip."""
    by_x = begin + np.argsort(geometry.p0[begin:end, 0], kind="stable")
    groups: list[list[int]] = []
    for sector in by_x.tolist():
        if not groups or geometry.p0[sector, 0] - geometry.p0[groups[-1][0], 0] > SAME_X:
            groups.append([])
        groups[-1].append(sector)
    ordered = []
    for group in groups:
        members = np.array(group, np.int64)
        lower, _ = _ends_of_strips(geometry, members)
        ordered.append(members[np.argsort(lower.min(axis=1), kind="stable")])
    return ordered


def _intervals_of_groups(
    x: NDArray[np.float64], first_sector: NDArray[np.int64], first_group: list[int]
) -> NDArray[np.float64]:
    low = np.minimum.reduceat(x[:, 0], first_sector[:-1])
    high = np.maximum.reduceat(x[:, 1], first_sector[:-1])
    for begin, end in pairwise(first_group):
        low[begin:end] = np.minimum.accumulate(low[begin:end][::-1])[::-1]
        high[begin:end] = np.maximum.accumulate(high[begin:end])
    return np.stack([low, high], axis=1)


def _ends_of_strips(
    geometry: UtGeometry, sectors: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends in y of the first strip and of the place behind the last one, f64[n, 2] each."""
    first = geometry.p0[sectors, 1].astype(np.float64)
    along = np.stack([first, first + N_STRIPS * geometry.dp0di[sectors, 1].astype(np.float64)], axis=1)
    height = geometry.dy[sectors].astype(np.float64)[:, None]
    return np.minimum(along, along + height), np.maximum(along, along + height)
