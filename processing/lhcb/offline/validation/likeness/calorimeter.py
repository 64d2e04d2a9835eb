"""Cells, clusters and E/p in the calorimeter, for the likeness of samples: the definitions of the kernels, without
shared cells (docs/physics/calorimeter.md)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.calorimeter.find_clusters import find_clusters
from hltnode.processing.lhcb.geometry.ecal import NO_CARD, EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL, SHOWER_MAXIMUM_Z
from hltnode.processing.lhcb.offline.validation.checker.particles import ELECTRON, MUON
from hltnode.processing.lhcb.offline.validation.likeness.long_particles import LongParticles
from hltnode.processing.lhcb.offline.validation.likeness.tracking import Values
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC, decode_ecal_boards, decode_ecal_cards
from hltnode.protocol.lhcb.truth_columns import McParticleColumns
from hltnode.protocol.raw_data.raw_bank import RawBank

_LIMITS = {constant.name: constant.value for constant in find_clusters.constants}
_SEED, _NEIGHBOUR = _LIMITS["min_seed_adc"], _LIMITS["min_neighbour_adc"]
_PHOTON_ET, _PHOTON_E19 = 400.0, 0.6
_PARTS = (0.25, 0.5, 0.75)
_BEHIND_SCIFI = 9410.0


def ecal_adc(banks: Sequence[RawBank], geometry: EcalGeometry) -> NDArray[np.int64] | None:
    """The ADC value of each cell, i64[6016], VOID_ADC for cells that were not read out.

    None for an event with cards or boards that the geometry does not have: it is that of another read-out. Raises
    EcalBankError.
    """
    adc = np.full(N_CELLS + 1, VOID_ADC, np.int64)
    if any(bank.type == LhcbBankType.ECAL_PACKED for bank in banks):
        cards = decode_ecal_cards(banks)
        card, values = cards.code.astype(np.int64) - geometry.code_offset, cards.adc
    else:
        boards = decode_ecal_boards(banks)
        slots = geometry.slot_cards()
        # The place of a board in its bank counts the slots that have one.
        order = np.argsort(slots == NO_CARD, axis=1, kind="stable")
        card = slots[boards.source, order[boards.source, boards.place]].astype(np.int64)
        values = boards.adc
    if len(card) and not (card.min() >= 0 and card.max() < len(geometry.cell_of_channel)):
        return None
    cells = geometry.cell_of_channel[card].astype(np.int64)
    adc[np.where(cells == NO_CELL, N_CELLS, cells)] = values
    return adc[:N_CELLS]


def ecal_values(adc: NDArray[np.int64], geometry: EcalGeometry) -> Values:
    """Numbers of cells and clusters of an event, and values for each cluster."""
    read = adc != VOID_ADC
    energy = np.append(np.where(read, geometry.gain * (adc - geometry.pedestal), 0.0), 0.0)
    around = np.where(geometry.neighbours == NO_CELL, N_CELLS, geometry.neighbours).astype(np.int64)
    counts = np.append(adc, VOID_ADC)
    seed = np.flatnonzero((adc >= _SEED) & (adc[:, None] > counts[around]).all(axis=1))
    of_neighbours = np.where(counts[around[seed]] > _NEIGHBOUR, energy[around[seed]], 0.0)
    total = energy[seed] + of_neighbours.sum(axis=1)
    centre = np.append(geometry.centre.astype(np.float64), np.zeros((1, 2)), axis=0)
    shift = (of_neighbours[:, :, None] * (centre[around[seed]] - centre[seed][:, None])).sum(axis=1)
    radius = np.hypot(*(centre[seed] + shift / total[:, None]).T)
    et = total * radius / np.hypot(radius, SHOWER_MAXIMUM_Z)
    e19 = energy[seed] / total
    return {
        "ecal_energy": np.array([energy.sum() / 1000.0]),
        "ecal_cells_above_10": np.array([float((adc > _NEIGHBOUR).sum())]),
        "ecal_cells_above_50": np.array([float((adc >= _SEED).sum())]),
        "ecal_clusters": np.array([float(len(seed))]),
        "ecal_photons": np.array([float(((et > _PHOTON_ET) & (e19 > _PHOTON_E19)).sum())]),
        "ecal_cluster_et": et / 1000.0,
        "ecal_e19": e19,
    }


def hadron_values(
    long: LongParticles, particles: McParticleColumns, adc: NDArray[np.int64], geometry: EcalGeometry
) -> Values:
    """E/p of long hadrons whose line behind the magnet crosses the calorimeter; p is the true one."""
    kind = np.abs(particles.values["pid"][long.row])
    cells = _crossed_cells(long, geometry)
    eop = _energy_of(cells, adc, geometry) / long.p
    return {"ecal_hadron_eop": eop[(cells[:, 0] < N_CELLS) & (kind != ELECTRON) & (kind != MUON)]}


def electron_values(electrons: LongParticles, adc: NDArray[np.int64], geometry: EcalGeometry) -> Values:
    """The number of long electrons, and of those that cross the calorimeter their true p in GeV, E/p of the cells along
    the line and of the shower around it, and the part of the largest cell in the energy of the shower."""
    cells = _crossed_cells(electrons, geometry)
    inside = cells[:, 0] < N_CELLS
    cells, p = cells[inside], electrons.p[inside]
    around = np.where(geometry.neighbours == NO_CELL, N_CELLS, geometry.neighbours).astype(np.int64)
    members = np.column_stack([cells[:, 0], around[cells[:, 0]]])
    shower = _energy_of(members, adc, geometry)
    largest = _energies(adc, geometry)[members].max(axis=1, initial=0.0)
    return {
        "ecal_electrons": np.array([float(inside.sum())]),
        "ecal_electron_p": p / 1000.0,
        "ecal_electron_eop": _energy_of(cells, adc, geometry) / p,
        "ecal_electron_shower_eop": shower / p,
        "ecal_electron_peak": largest[shower > 0.0] / shower[shower > 0.0],
    }


def _crossed_cells(long: LongParticles, geometry: EcalGeometry) -> Int64Array:
    """i64[n, 6]: the cells that the lines cross at six depths, the first one at the shower maximum; N_CELLS outside."""
    x, y, tx, ty = long.behind(_BEHIND_SCIFI)
    known = np.isfinite(x + y + tx + ty)
    x, y = x - _BEHIND_SCIFI * tx, y - _BEHIND_SCIFI * ty
    front, maximum, back = (
        -(a * x + b * y + d) / (a * tx + b * ty + c) for a, b, c, d in geometry.planes.astype(np.float64)
    )
    depths = [maximum, front, *(front + part * (back - front) for part in _PARTS), back]
    return np.stack([_cells(geometry, x + z * tx, y + z * ty, z, known) for z in depths], axis=1)


def _energies(adc: NDArray[np.int64], geometry: EcalGeometry) -> Float64Array:
    """MeV of each cell, 0 for one that was not read out, and 0 for none."""
    energy: Float64Array = np.append(np.where(adc != VOID_ADC, geometry.gain * (adc - geometry.pedestal), 0.0), 0.0)
    return energy


def _energy_of(cells: Int64Array, adc: NDArray[np.int64], geometry: EcalGeometry) -> Float64Array:
    """MeV of rows of cells i64[n, m], each cell once, those below 0 left out."""
    ordered = np.sort(cells, axis=1)
    first = np.ones(ordered.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    energy: Float64Array = (np.maximum(_energies(adc, geometry)[ordered], 0.0) * first).sum(axis=1)
    return energy


def _cells(
    geometry: EcalGeometry, x: Float64Array, y: Float64Array, z: Float64Array, known: NDArray[np.bool_]
) -> Int64Array:
    """The cells of places, N_CELLS where they are not known."""
    cells: Int64Array = np.full(len(x), N_CELLS)
    cells[known] = geometry.cells_of(*geometry.to_frame(x[known], y[known], z[known]))
    return cells
