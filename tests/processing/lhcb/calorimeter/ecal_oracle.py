"""The calorimeter in plain NumPy and double precision: cells, clusters, electrons.

Written from the definitions of docs/physics/calorimeter.md, independently of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC, EcalBoards, EcalCards

NONE = -1


def adc_of_cards(geometry: EcalGeometry, cards: EcalCards) -> NDArray[np.int64]:
    """i64[6016]: VOID_ADC for a cell that no card has."""
    adc = np.full(N_CELLS, VOID_ADC)
    cells = geometry.cell_of_channel[cards.code.astype(int) - geometry.code_offset]
    adc[cells[cells != NO_CELL]] = cards.adc[cells != NO_CELL]
    return adc


def adc_of_boards(geometry: EcalGeometry, boards: EcalBoards) -> NDArray[np.int64]:
    """The same for boards of the slots with a card."""
    adc = np.full(N_CELLS, VOID_ADC)
    cards = geometry.slot_cards()
    for source, place, values in zip(boards.source.tolist(), boards.place.tolist(), boards.adc, strict=True):
        card = int(cards[source, place])
        adc[geometry.cell_of_channel[card]] = values
    return adc


def energies(geometry: EcalGeometry, adc: NDArray[np.int64]) -> NDArray[np.float64]:
    """MeV of each cell; 0 for a cell that was not read out."""
    return np.where(adc == VOID_ADC, 0.0, geometry.gain.astype(float) * (adc - np.float32(geometry.pedestal)))


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Clusters by ascending seed: mm, MeV."""

    seed: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    energy: NDArray[np.float64]
    et: NDArray[np.float64]
    e19: NDArray[np.float64]


def clusters(
    geometry: EcalGeometry, adc: NDArray[np.int64], *, share: bool = True, seed_adc: int = 50, neighbour_adc: int = 10
) -> Clusters:
    """Local maxima with their neighbours, as one matrix of seeds and cells."""
    with_void = np.append(adc, VOID_ADC)
    neighbours = np.where(geometry.neighbours == NO_CELL, N_CELLS, geometry.neighbours.astype(int))
    is_seed = (adc >= seed_adc) & (adc > with_void[neighbours].max(axis=1))
    seed = np.flatnonzero(is_seed)
    energy = energies(geometry, adc)
    touches = np.zeros((len(seed), N_CELLS + 1))
    touches[np.arange(len(seed))[:, None], neighbours[seed]] = 1.0
    touches = touches[:, :N_CELLS]
    part = touches * energy[seed][:, None]
    weight = touches if not share else np.divide(part, part.sum(axis=0), out=touches * 0.0, where=touches > 0)
    weight[:, adc <= neighbour_adc] = 0.0
    # A seed is in its own cluster alone.
    weight[np.arange(len(seed)), seed] = 1.0
    shared = weight * energy
    total = shared.sum(axis=1)
    x, y = (shared @ geometry.centre[:, axis].astype(float) / total for axis in (0, 1))
    radius = np.hypot(x, y)
    return Clusters(seed, x, y, total, total * radius / np.hypot(radius, 12650.0), energy[seed] / total)


def cell_of(geometry: EcalGeometry, point: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cell of each point f64[n, 3], NONE outside, by the formulas of the format (docs/physics/calorimeter.md)."""
    matrix = geometry.to_local.astype(float)
    x, y = point[:, 0], point @ matrix[1, :3] + matrix[1, 3]
    m = np.float64(geometry.module_size)
    third = m / 3.0
    is_outside = (np.abs(x) >= 32 * m) | (np.abs(y) >= 26 * m) | ((np.abs(x) < 3 * m - third) & (np.abs(y) < 2 * m))
    is_outer = (np.abs(x) >= 16 * m) | (np.abs(y) >= 10 * m)
    is_middle = ~is_outer & ((np.abs(x) >= 8 * m) | (np.abs(y) >= 6 * m))
    size = np.where(is_outer, m, np.where(is_middle, m / 2.0, third))
    fx, fy = np.floor(x / size).astype(int), np.floor(y / size).astype(int)
    outer = [fx + 32 + 64 * (fy + 26), fx + 32 + 64 * (fy - 10) + 1664]
    outer += [fx + 32 + 32 * (fy + 10) + 1024, fx - 16 + 32 * (fy + 10) + 1040]
    middle = [fx + 32 + 64 * (fy + 20) + 2688, fx + 32 + 64 * (fy - 12) + 3968]
    middle += [fx + 32 + 32 * (fy + 12) + 3200, fx - 16 + 32 * (fy + 12) + 3216]
    inner = [fx + 24 + 48 * (fy + 18) + 4480, fx + 24 + 48 * (fy - 6) + 5440]
    inner += [fx + 24 + 32 * (fy + 6) + 5056, fx - 8 + 32 * (fy + 6) + 5072]

    def of_region(numbers: list[NDArray[np.int64]], half_x: float, half_y: float) -> NDArray[np.int64]:
        below, above, left, right = numbers
        return np.where(y < -half_y, below, np.where(y > half_y, above, np.where(x < -half_x, left, right)))

    found = np.where(
        is_outer,
        of_region(outer, 16 * m, 10 * m),
        np.where(is_middle, of_region(middle, 8 * m, 6 * m), of_region(inner, 3 * m - third, 2 * m)),
    )
    return np.where(is_outside, NONE, found)


DEPTHS_OF_TRACK = (0.0, None, 0.25, 0.5, 0.75, 1.0)
"""Parts of the way from the front to the back; None: the plane of the shower maximum."""
DEPTHS_OF_PHOTON = (0.0, None, 0.5, 1.0)


def along_lines(
    geometry: EcalGeometry,
    adc: NDArray[np.int64],
    lines: NDArray[np.float64],
    depths: tuple[float | None, ...] = DEPTHS_OF_TRACK,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Energy (MeV) of the cells along each line f64[n, 4] = x, y at z = 0, tx, ty, and whether it crosses a cell that
    was read out at the shower maximum."""
    energy, was_read = energies(geometry, adc), adc != VOID_ADC
    planes = geometry.planes.astype(float)
    start = np.column_stack([lines[:, :2], np.zeros(len(lines))])
    direction = np.column_stack([lines[:, 2:], np.ones(len(lines))])
    at = -(start @ planes[:, :3].T + planes[:, 3]) / (direction @ planes[:, :3].T)
    front, maximum, back = at.T
    z = [maximum if depth is None else front + depth * (back - front) for depth in depths]
    cells = np.column_stack([cell_of(geometry, start + direction * of_depth[:, None]) for of_depth in z])
    sums = [sum(max(energy[cell], 0.0) for cell in set(row.tolist()) - {NONE}) for row in cells]
    return np.array(sums), (cells[:, 1] != NONE) & was_read[cells[:, 1]]


def showers(
    geometry: EcalGeometry, adc: NDArray[np.int64], lines: NDArray[np.float64]
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """The cell of each line f64[n, 4] (as above) at the shower maximum, NO_CELL if it was not read out, and the shower
    around it: energy in MeV, the rest in widths of the cell, all 0 without energy."""
    planes = geometry.planes.astype(float)
    start = np.column_stack([lines[:, :2], np.zeros(len(lines))])
    direction = np.column_stack([lines[:, 2:], np.ones(len(lines))])
    z = -(start @ planes[1, :3] + planes[1, 3]) / (direction @ planes[1, :3])
    point = start + direction * z[:, None]
    energy, centre = energies(geometry, adc), geometry.centre.astype(float)
    cells = cell_of(geometry, point)
    names = ("energy", "dx", "dy", "spread_x", "spread_y", "peak")
    found = {f"shower_{name}": np.zeros(len(lines)) for name in names}
    for i, cell in enumerate(cells.tolist()):
        if cell == NONE or adc[cell] == VOID_ADC:
            cells[i] = NO_CELL
            continue
        members = np.array([cell, *geometry.neighbours[cell][geometry.neighbours[cell] != NO_CELL].tolist()])
        members = members[energy[members] > 0.0]
        if not len(members):
            continue
        width = float(geometry.module_size) / (1 if cell < 2688 else 2 if cell < 4480 else 3)
        weight = energy[members] / energy[members].sum()
        mean = weight @ centre[members]
        spread = np.sqrt(weight @ (centre[members] - mean) ** 2)
        values = [energy[members].sum(), *((mean - point[i, :2]) / width), *(spread / width), weight.max()]
        for name, value in zip(names, values, strict=True):
            found[f"shower_{name}"][i] = value
    return cells, found


def photon_pairs(
    clusters: NDArray[np.float64], min_et: float = 400.0, min_e19: float = 0.6
) -> dict[str, NDArray[np.float64]]:
    """All pairs of photons among clusters f64[n, 5]: x, y, energy, transverse energy, E19.

    `clusters` i64[m, 2] and f64[m] `mass`, `pt` in MeV, `eta`, by four-momenta.
    """
    good = np.flatnonzero((clusters[:, 3] > min_et) & (clusters[:, 4] > np.float32(min_e19)))
    x, y, energy = clusters[good, :3].T
    direction = np.column_stack([x, y, np.full(len(good), 12650.0)])
    momenta = np.column_stack([energy, energy[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None]])
    first, second = np.triu_indices(len(good), 1)
    _, px, py, pz = (momenta[first] + momenta[second]).T
    cosine = np.clip((momenta[first, 1:] * momenta[second, 1:]).sum(axis=1) / (energy[first] * energy[second]), -1, 1)
    pt = np.hypot(px, py)
    return {
        "clusters": np.column_stack([good[first], good[second]]),
        "mass": np.sqrt(2.0 * energy[first] * energy[second] * (1.0 - cosine)),
        "pt": pt,
        "eta": np.arcsinh(pz / pt),
    }
