"""The response of the calorimeter: energy over cells, resolution, noise, and its banks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ecal import BOARDS_VERSION, CARDS_VERSION, EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS, N_CELLS
from hltnode.processing.lhcb.offline.simulation.banks.ecal_encoding import EcalEncoder
from hltnode.processing.lhcb.offline.simulation.response.ecal_response import (
    CONSTANT_TERM,
    NOISE,
    SAMPLING_TERM,
    Arrivals,
    EcalResponse,
    EcalResult,
    ShowerKind,
)
from hltnode.processing.lhcb.offline.validation.likeness.calorimeter import ecal_adc
from hltnode.processing.offline.event_random import EventRandom
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import MAX_ADC

GEOMETRY = EcalGeometry.builtin()
RESPONSE = EcalResponse(GEOMETRY)
# Cells in the middle of the outer, middle and inner region.
CELLS = (1500, 3500, 5000)


def respond(
    cells: NDArray[np.int64], kind: ShowerKind, pid: int, energy: float, *, offset: float = 0.0, n_charged: int = 0
) -> EcalResult:
    """One particle along the beam in each event, in the middle of a cell, shifted in x."""
    n = len(cells)
    x, y = GEOMETRY.centre[cells].T.astype(float)
    none = np.zeros(n)
    arrivals = Arrivals(
        *(np.arange(n), np.full(n, int(kind)), np.full(n, pid), np.full(n, -1)),
        *(x + offset, y, none, none, np.full(n, energy)),
    )
    random = EventRandom([np.random.default_rng((7, i)) for i in range(n)])
    return RESPONSE.respond(random, arrivals, np.full(n, n_charged))


def energies(result: EcalResult) -> NDArray[np.float64]:
    found: NDArray[np.float64] = GEOMETRY.gain * (result.adc - GEOMETRY.pedestal).astype(float)
    return found


def near(cell: int) -> NDArray[np.int64]:
    """The cell and its neighbours."""
    return np.append(GEOMETRY.neighbours[cell][GEOMETRY.neighbours[cell] < N_CELLS], cell).astype(np.int64)


@pytest.mark.parametrize("cell", CELLS)
def test_the_energy_of_a_photon_is_in_its_cell_and_the_neighbours(cell: int) -> None:
    n, energy = 100, 10_000.0
    found = energies(respond(np.full(n, cell), ShowerKind.ELECTROMAGNETIC, 22, energy))
    seed, all_near = found[:, cell], found[:, near(cell)].sum(axis=1)
    assert 0.6 * energy < seed.mean() < 0.97 * energy
    assert seed.mean() < all_near.mean() <= 1.01 * energy
    assert all_near.mean() > 0.85 * energy
    expected = np.hypot(SAMPLING_TERM / np.sqrt(energy / 1000.0), CONSTANT_TERM)
    assert found.sum(axis=1).std() > 0.0
    assert all_near.std() / all_near.mean() == pytest.approx(expected, rel=0.3)


def test_energy_moves_to_the_neighbour_with_the_place_of_the_photon() -> None:
    cell, left = 5000, 4999
    assert GEOMETRY.centre[cell, 0] - GEOMETRY.centre[left, 0] == pytest.approx(GEOMETRY.module_size / 3, rel=1e-4)
    parts = []
    for offset in (0.0, -10.0, -19.0):
        found = energies(respond(np.full(20, cell), ShowerKind.ELECTROMAGNETIC, 22, 2e4, offset=offset)).mean(axis=0)
        parts.append(found[left] / (found[left] + found[cell]))
    assert parts == sorted(parts)
    assert parts[0] < 0.12
    # The last place that is tabulated is 1.3 mm from the border.
    assert 0.35 < parts[2] < 0.5


def test_showers_at_the_border_of_two_regions_keep_their_energy() -> None:
    border = [cell for cell in range(*FIRST_CELLS[2:]) if (GEOMETRY.neighbours[cell] < FIRST_CELLS[2]).any()]
    found = energies(respond(np.array(border), ShowerKind.ELECTROMAGNETIC, 22, 3e4))
    near_sums = [found[i, near(cell)].sum() for i, cell in enumerate(border)]
    inside = energies(respond(np.full(50, 5000), ShowerKind.ELECTROMAGNETIC, 22, 3e4))[:, near(5000)].sum(axis=1)
    assert np.mean(near_sums) == pytest.approx(inside.mean(), rel=0.04)


def test_muons_ionise_and_hadrons_leave_a_part_of_their_energy() -> None:
    muons = respond(np.full(300, 5000), ShowerKind.MUON, 13, 2e4).visible
    assert 250 < np.median(muons) < 350
    hadrons = respond(np.full(600, 5000), ShowerKind.HADRON, 211, 2e4).visible
    assert 0.3 < (hadrons < 500).mean() < 0.5
    assert 0.2 < hadrons.mean() / 2e4 < 0.45
    assert hadrons.max() < 1.1 * 2e4
    # Without charge there is no ionisation.
    neutral = respond(np.full(300, 5000), ShowerKind.HADRON, 2112, 2e4).visible
    assert (neutral == 0.0).any()


def test_a_calorimeter_without_particles_has_noise_around_the_pedestal() -> None:
    adc = respond(np.zeros(8, np.int64), ShowerKind.ELECTROMAGNETIC, 22, 0.0).adc
    assert adc.mean() == pytest.approx(GEOMETRY.pedestal, abs=0.03)
    assert adc.std() == pytest.approx(np.hypot(NOISE, np.sqrt(1 / 12)), rel=0.03)
    with_soft = respond(np.zeros(8, np.int64), ShowerKind.ELECTROMAGNETIC, 22, 0.0, n_charged=300).adc
    assert with_soft.mean() > adc.mean() + 0.2


def test_energy_beyond_the_calorimeter_is_lost_and_a_cell_has_a_largest_value() -> None:
    outside = respond(np.full(3, 5000), ShowerKind.ELECTROMAGNETIC, 22, 1e5, offset=-20_000.0)
    assert not outside.is_inside.any()
    assert outside.adc.max() < 10
    full = respond(np.full(3, 5000), ShowerKind.ELECTROMAGNETIC, 22, 1e7)
    assert full.is_inside.all()
    assert full.adc.max() == MAX_ADC


def test_the_cell_of_a_centre_is_its_own_and_there_is_none_outside() -> None:
    z = -(GEOMETRY.to_local[2, 1] * GEOMETRY.centre[:, 1] + GEOMETRY.to_local[2, 3]) / GEOMETRY.to_local[2, 2]
    x, y = GEOMETRY.centre.T.astype(float)
    place = GEOMETRY.to_frame(x, y, z.astype(float))
    assert GEOMETRY.cells_of(*place).tolist() == list(range(N_CELLS))
    unit = GEOMETRY.module_size
    x, y = np.array([(32.01, 0.0), (-32.01, 0.0), (0.0, 26.01), (0.0, -26.01), (0.0, 0.0), (2.6, 1.9)]).T * unit
    assert GEOMETRY.cells_of(x, y).tolist() == [N_CELLS] * 6
    x, y = np.array([(31.99, 0.0), (0.0, 25.99), (2.7, 0.0), (0.0, 2.01)]).T * unit
    assert (GEOMETRY.cells_of(x, y) < N_CELLS).all()


@pytest.mark.parametrize("version", list(EcalVersion))
def test_banks_give_the_values_of_the_cells_back(version: EcalVersion) -> None:
    adc = np.random.default_rng(3).integers(-200, 3000, (3, N_CELLS)).astype(np.int16)
    adc[:, ::2] %= 7
    events = EcalEncoder(GEOMETRY, version).banks(adc)
    kind = LhcbBankType.ECAL_PACKED if version == EcalVersion.CARDS else LhcbBankType.CALO
    for banks, expected in zip(events, adc, strict=True):
        assert {(bank.type, bank.version) for bank in banks} == {(kind, version)}
        found = ecal_adc(banks, GEOMETRY)
        assert found is not None
        np.testing.assert_array_equal(found, expected)


def test_banks_that_the_geometry_cannot_read_are_not_written() -> None:
    cards = EcalGeometry(**{name: getattr(GEOMETRY, name) for name in EcalGeometry.__slots__} | {
        "read_out": CARDS_VERSION, "boards": None, "board_cards": None,
    })  # fmt: skip
    EcalEncoder(cards, EcalVersion.CARDS)
    with pytest.raises(ValueError, match="the geometry has no boards"):
        EcalEncoder(cards, EcalVersion.LITTLE_ENDIAN)
    boards = EcalGeometry(
        **{name: getattr(GEOMETRY, name) for name in EcalGeometry.__slots__} | {"read_out": BOARDS_VERSION}
    )
    EcalEncoder(boards, EcalVersion.BIG_ENDIAN)
    with pytest.raises(ValueError, match="the geometry has no cards"):
        EcalEncoder(boards, EcalVersion.CARDS)
