"""The calorimeter's kernels against the oracle, their cuts, and damaged banks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.calorimeter.collections import MAX_CLUSTERS_PER_EVENT
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS, NO_CELL, local_centres
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT, MISSING_DETECTOR
from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import VOID_ADC, EcalBoards, encode_ecal_boards, encode_ecal_cards
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import Launch, on_cpu, with_block_size
from tests.processing.lhcb.calorimeter.ecal_batches import (
    BUILTIN,
    CLUSTER_COLUMNS,
    EcalBatch,
    EcalEvent,
    board_banks,
    boards_of,
    card_banks,
    cards_of,
    encode_mep,
    random_adc,
    random_lines,
    with_boards,
)
from tests.processing.lhcb.calorimeter.ecal_oracle import (
    DEPTHS_OF_PHOTON,
    along_lines,
    clusters,
    energies,
)

BANK_ERROR = int(EventFlag.BANK_ERROR)
LIBRARY = KernelLibrary(CHAIN.kernels)
MANY = 400
"""Lines of an event."""


def full_batch() -> tuple[list[NDArray[np.int64]], EcalBatch]:
    """Events of different occupancy with tracks, and VELO tracks in other directions."""
    rng = np.random.default_rng(7)
    adc = [random_adc(rng, occupancy) for occupancy in (0.02, 0.3, 1.0)]
    tracks = [random_lines(rng, n) for n in (0, 150, 300)]
    velo = []
    for of_event in tracks:
        slopes = of_event[:, :2] / Z_END_SCIFI
        xyz = np.column_stack([rng.normal(0.0, 1.0, (len(of_event), 2)), rng.normal(0.0, 60.0, len(of_event))])
        velo.append(np.column_stack([xyz, slopes]).astype(np.float32).astype(float))
    tracks = [of_event.astype(np.float32).astype(float) for of_event in tracks]
    return adc, EcalBatch(encode_mep([card_banks(of_event) for of_event in adc]), tracks=tracks, velo=velo)


def stable(lines: NDArray[np.float64], adc: NDArray[np.int64], depths: tuple[float | None, ...]) -> NDArray[np.bool_]:
    """Lines whose cells do not change if they are shifted by 0.02 mm."""
    nominal, _ = along_lines(BUILTIN, adc, lines, depths)
    same = np.ones(len(lines), bool)
    for shift in ((0.02, 0.02), (-0.02, 0.02), (0.02, -0.02), (-0.02, -0.02)):
        same &= along_lines(BUILTIN, adc, lines + np.array((*shift, 0.0, 0.0)), depths)[0] == nominal
    return same


def test_cells_clusters_and_tracks_are_those_of_the_oracle() -> None:
    adc, batch = full_batch()
    for i, (of_event, event) in enumerate(zip(adc, batch.run(), strict=True)):
        assert (event.flags, event.n_cells) == (0, N_CELLS)
        np.testing.assert_array_equal(event.adc, of_event)
        assert event.max_adc == of_event.max() > 0
        assert event.energy == pytest.approx(energies(BUILTIN, of_event).sum(), rel=2e-6)
        assert event.energy_mev == pytest.approx(max(event.energy, 0.0), abs=1.0)
        expected = clusters(BUILTIN, of_event)
        for name in CLUSTER_COLUMNS:
            np.testing.assert_allclose(event.clusters[name], getattr(expected, name), rtol=4e-6, atol=2e-3)
        x, y, tx, ty, qop = batch.tracks[i].T
        lines = np.column_stack([x - Z_END_SCIFI * tx, y - Z_END_SCIFI * ty, tx, ty])
        energy, in_ecal = along_lines(BUILTIN, of_event, lines)
        same = stable(lines, of_event, (0.0, None, 0.25, 0.5, 0.75, 1.0))
        assert same.mean() > 0.95 if len(same) else True
        np.testing.assert_allclose(event.tracks["ecal_energy"][same], energy[same], rtol=1e-5, atol=0.01)
        np.testing.assert_array_equal(event.tracks["in_ecal"][same], in_ecal[same])
        np.testing.assert_allclose(event.tracks["eop"][same], (energy * np.abs(qop))[same], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(event.tracks["is_electron"], event.tracks["eop"] > 0.7)
        assert event.n_electrons == event.tracks["is_electron"].sum()
        vx, vy, vz, vtx, vty = batch.velo[i].T
        lines = np.column_stack([vx - vz * vtx, vy - vz * vty, vtx, vty])
        energy, _ = along_lines(BUILTIN, of_event, lines, DEPTHS_OF_PHOTON)
        et = energy * np.hypot(vtx, vty) / np.sqrt(1.0 + vtx**2 + vty**2)
        same = stable(lines, of_event, DEPTHS_OF_PHOTON) & (np.abs(et - 50.0) > 0.01)
        for name, values in (("brem_energy", energy), ("brem_et", et)):
            kept = np.where(et > 50.0, values, 0.0)
            np.testing.assert_allclose(event.tracks[name][same], kept[same], rtol=1e-5, atol=0.01)
        if len(et):
            assert 0.1 < (et > 50.0).mean() < 0.95
            assert 0 < event.n_electrons < len(et)


@pytest.mark.parametrize("block_size", [1, 32, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_blocks_of_any_size_give_the_same_bits(block_size: int, backward: bool) -> None:
    _, batch = full_batch()
    launch: Launch = with_block_size(block_size, backward=backward)
    for found, expected in zip(batch.run(launch, fill=0x55), batch.run(), strict=True):
        assert found.same_as(expected)


@pytest.mark.parametrize("version", [4, 5])
def test_boards_give_the_cells_of_cards(version: int) -> None:
    adc = random_adc(np.random.default_rng(version))
    (of_cards,) = EcalBatch(encode_mep([card_banks(adc)])).run()
    (of_boards,) = EcalBatch(encode_mep([board_banks(adc, version)]), with_boards()).run()
    assert of_boards.same_as(of_cards)
    # A source may also send its empty slots; here the first one of three.
    boards = boards_of(adc)
    last = boards.source == 62
    place = np.where(last, boards.place + 1, boards.place).astype(np.uint32)
    more = EcalBoards(
        np.append(boards.source, np.uint32(62)),
        np.append(place, np.uint32(0)),
        np.vstack([boards.adc, boards.adc[-1:]]),
    )
    banks = encode_ecal_boards(more, EcalVersion(version))
    (of_slots,) = EcalBatch(encode_mep([banks]), with_boards()).run()
    assert of_slots.same_as(of_cards)


def test_a_fibre_that_is_off_leaves_its_eight_cells_without_a_value() -> None:
    adc = random_adc(np.random.default_rng(3))
    boards = boards_of(adc)
    boards.adc[5, 16:24] = VOID_ADC
    (event,) = EcalBatch(encode_mep([encode_ecal_boards(boards, EcalVersion.LITTLE_ENDIAN)]), with_boards()).run()
    void = with_boards().cell_of_channel[5, 16:24]
    assert (event.flags, event.n_cells) == (0, N_CELLS - 8)
    adc[void] = VOID_ADC
    np.testing.assert_array_equal(event.adc, adc)
    np.testing.assert_array_equal(event.clusters["seed"], clusters(with_boards(), adc).seed)


@pytest.mark.parametrize("target", LIBRARY.targets)
def test_cpu_forms_give_the_bits_of_the_common_kernels(target: str) -> None:
    """Values of four and of twelve bits in any order, a chequered calorimeter, cells that were not read out, and lines
    in all directions."""
    rng = np.random.default_rng(29)
    cards = cards_of(random_adc(rng, 0.5, 400.0))
    cards.is_long[:] = rng.random(cards.is_long.shape) < np.linspace(0.0, 1.0, len(cards.is_long))[:, None]
    lines = np.column_stack(
        [rng.uniform(-4200, 4200, (MANY, 2)), rng.normal(0.0, 0.1, (MANY, 2)), rng.normal(0.0, 1e-4, MANY)]
    )
    lines[::50, :4] = rng.choice([np.nan, np.inf, -np.inf, 1e30], (len(lines[::50]), 4))
    events = [encode_ecal_cards(cards, n_sources=27), card_banks(chequered()), card_banks(chequered())[:20]]
    batch = EcalBatch(encode_mep(events), tracks=[lines, lines[:1], lines[:17]])
    common = batch.run(on_cpu(target, common=True))
    assert [len(event.clusters["seed"]) > 100 for event in common] == [True] * 3
    assert 0.2 * MANY < np.count_nonzero(common[0].tracks["ecal_energy"]) < 0.9 * MANY
    for found, expected in zip(batch.run(on_cpu(target)), common, strict=True):
        assert found.same_as(expected)


def test_sines_of_cells_are_those_at_the_shower_maximum() -> None:
    a, b, c, d = BUILTIN.planes[1].astype(float)
    x, y = BUILTIN.centre.astype(float).T
    z = -(a * x + b * y + d) / c
    np.testing.assert_allclose(BUILTIN.sines(), np.hypot(x, y) / np.sqrt(x * x + y * y + z * z), rtol=1e-6)
    assert BUILTIN.sines().dtype == np.float32


def test_the_centre_of_each_cell_is_in_the_cell() -> None:
    """Lines parallel to the beam through the centres: each meets one cell, whose energy tells its number."""
    adc = 100 + np.arange(N_CELLS) % 3001
    z_of_plane = -(BUILTIN.planes[1, 1] * BUILTIN.centre[:, 1] + BUILTIN.planes[1, 3]) / BUILTIN.planes[1, 2]
    assert z_of_plane == pytest.approx(12650.0, abs=15.0)
    centre = BUILTIN.centre.astype(float)
    lines = np.column_stack([centre, np.zeros((N_CELLS, 2)), np.full(N_CELLS, 1e-4)])
    parts = np.array_split(np.arange(N_CELLS), 6)
    batch = EcalBatch(encode_mep([card_banks(adc)] * 6), tracks=[lines[part] for part in parts])
    found = np.concatenate([event.tracks["ecal_energy"] for event in batch.run()])
    expected = BUILTIN.gain * (adc - np.float32(BUILTIN.pedestal))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # Energies of neighbours differ by far more.
    assert len(np.unique(np.round(expected, 1))) > 0.98 * N_CELLS


def test_lines_outside_and_through_the_hole_meet_no_cell() -> None:
    adc = np.full(N_CELLS, 1000)
    inside = [(31.9, 0.0), (-31.9, 0.0), (0.0, 25.9), (0.0, -25.9), (8.1 / 3, 0.0), (0.0, -2.1)]
    outside = [(32.1, 0.0), (-32.1, 0.0), (0.0, 26.1), (0.0, -26.1), (7.9 / 3, 0.0), (0.0, -1.9)]
    points = BUILTIN.module_size * np.array([*inside, *outside, (np.nan, 0.0), (np.inf, 0.0), (1e30, -1e30)])
    lines = np.column_stack([points, np.zeros((len(points), 2)), np.full(len(points), 1e-3)])
    (event,) = EcalBatch(encode_mep([card_banks(adc)]), tracks=[lines]).run()
    assert event.tracks["in_ecal"].tolist() == [1] * 6 + [0] * 9
    assert (event.tracks["ecal_energy"] > 0.0).tolist() == [True] * 6 + [False] * 9


CENTRE_CELL, BESIDE = 2040, 2041


@pytest.mark.parametrize(
    ("values", "seeds", "cells"),
    [
        ({CENTRE_CELL: 50}, [CENTRE_CELL], 1),
        ({CENTRE_CELL: 49}, [], 0),
        ({CENTRE_CELL: 60, BESIDE: 60}, [], 0),
        ({CENTRE_CELL: 60, BESIDE: 59}, [CENTRE_CELL], 2),
        ({CENTRE_CELL: 60, BESIDE: 11}, [CENTRE_CELL], 2),
        ({CENTRE_CELL: 60, BESIDE: 10}, [CENTRE_CELL], 1),
    ],
)
def test_a_seed_has_50_counts_and_more_than_its_neighbours(
    values: dict[int, int], seeds: list[int], cells: int
) -> None:
    adc = np.zeros(N_CELLS, int)
    adc[list(values)] = list(values.values())
    (event,) = EcalBatch(encode_mep([card_banks(adc)])).run()
    assert event.clusters["seed"].tolist() == seeds
    expected = energies(BUILTIN, adc)[list(values)[:cells]].sum()
    assert event.clusters["energy"].tolist() == ([pytest.approx(expected, rel=1e-6)] if seeds else [])


def test_a_cell_that_was_not_read_out_hides_no_seed() -> None:
    boards = boards_of(np.where(np.arange(N_CELLS) == CENTRE_CELL, 100, 0))
    cells = with_boards().cell_of_channel.reshape(-1, 8)
    fibres = boards.adc.reshape(-1, 8)
    neighbour = int(BUILTIN.neighbours[CENTRE_CELL][0])
    fibres[(cells == neighbour).any(axis=1) & ~(cells == CENTRE_CELL).any(axis=1)] = VOID_ADC
    (event,) = EcalBatch(encode_mep([encode_ecal_boards(boards, EcalVersion.LITTLE_ENDIAN)]), with_boards()).run()
    assert event.adc[neighbour] == VOID_ADC
    assert event.clusters["seed"].tolist() == [CENTRE_CELL]


def test_shared_clusters_have_the_energy_of_their_cells_once() -> None:
    adc = random_adc(np.random.default_rng(11), 0.5)
    (event,) = EcalBatch(encode_mep([card_banks(adc)])).run()
    own = BUILTIN.neighbours[event.clusters["seed"]].astype(int)
    cells = {*own[own != NO_CELL].tolist()}
    cells = {cell for cell in cells if adc[cell] > 10} | set(event.clusters["seed"].tolist())
    assert event.clusters["energy"].sum() == pytest.approx(energies(BUILTIN, adc)[list(cells)].sum(), rel=1e-6)
    (apart,) = EcalBatch(encode_mep([card_banks(adc)]), constants=(("share", 0),)).run()
    assert apart.clusters["energy"].sum() > 1.05 * event.clusters["energy"].sum()


def chequered() -> NDArray[np.int64]:
    """One cell in each block of two by two is larger than the others: as many seeds as possible."""
    size = np.repeat(BUILTIN.module_size / np.array([1.0, 2.0, 3.0]), [2688, 1792, 1536])
    place = np.floor(local_centres() / size[:, None]).astype(int)
    return np.where((place % 2 == 0).all(axis=1), 3839, 0)


def test_a_full_calorimeter_has_room_for_all_its_seeds() -> None:
    (event,) = EcalBatch(encode_mep([card_banks(chequered())])).run()
    assert event.flags == 0
    assert len(event.clusters["seed"]) == MAX_CLUSTERS_PER_EVENT == 1504
    np.testing.assert_array_equal(event.clusters["seed"], np.flatnonzero(chequered()))


def test_more_seeds_than_fit_flag_their_event_alone() -> None:
    alone = replace(BUILTIN, neighbours=np.full_like(BUILTIN.neighbours, NO_CELL))
    adc = np.zeros(N_CELLS, int)
    adc[::4] = 100
    crowded = adc.copy()
    crowded[1] = 100
    events = EcalBatch(encode_mep([card_banks(adc), card_banks(crowded)]), alone).run()
    assert [event.flags for event in events] == [0, EventFlag.OVERFLOW]
    assert [len(event.clusters["seed"]) for event in events] == [1504, 1504]
    assert events[1].clusters["seed"].tolist() == [0, 1, *range(4, N_CELLS - 4, 4)]


def test_energies_at_the_ends_of_the_range() -> None:
    events = EcalBatch(encode_mep([card_banks(np.full(N_CELLS, value)) for value in (-256, 0, 3839)])).run()
    assert [event.energy_mev for event in events[:2]] == [0, 0]
    assert [event.max_adc for event in events] == [0, 0, 3839]
    assert events[2].energy_mev == pytest.approx(events[2].energy, rel=1e-6)
    assert events[0].energy == pytest.approx(float(-256.4 * BUILTIN.gain.astype(float).sum()), rel=1e-6)


# Damage


def damaged_card(change: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]) -> list[RawBank]:
    """The banks of an event with another content of bank 3."""
    banks = card_banks(random_adc(np.random.default_rng(5)))
    words = change(np.frombuffer(banks[3].payload, "<u4").copy())
    return [*banks[:3], banks[3]._replace(payload=memoryview(words.astype("<u4").tobytes())), *banks[4:]]


def changed_header(bits: int) -> Callable[[NDArray[np.uint32]], NDArray[np.uint32]]:
    def change(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        words[0] ^= np.uint32(bits)
        return words

    return change


def assert_bank_3_is_left_out(event: EcalEvent) -> None:
    read = event.adc != VOID_ADC
    expected = np.ones(N_CELLS, bool)
    expected[BUILTIN.cell_of_channel[21:28]] = False
    np.testing.assert_array_equal(read, expected)
    assert event.flags == BANK_ERROR
    assert event.n_cells == N_CELLS - 7 * 32


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed_header(256 << 14), id="code that no card has"),
        pytest.param(changed_header((150 ^ 100) << 14), id="code below the first one"),
        pytest.param(changed_header(4 << 7), id="wrong length"),
        pytest.param(changed_header(64), id="more trigger words than it has"),
        pytest.param(lambda words: words[:-1], id="stream beyond the bank"),
        pytest.param(lambda words: np.append(words, 5), id="header without a card"),
    ],
)
def test_a_damaged_bank_has_no_cells_and_harms_no_other(
    change: Callable[[NDArray[np.uint32]], NDArray[np.uint32]],
) -> None:
    sound = card_banks(random_adc(np.random.default_rng(5)))
    events = EcalBatch(encode_mep([sound, damaged_card(change), sound])).run()
    assert_bank_3_is_left_out(events[1])
    assert events[0].same_as(events[2])
    assert (events[0].flags, events[0].n_cells) == (0, N_CELLS)


def test_a_card_that_comes_twice_gives_no_cell() -> None:
    cards = cards_of(random_adc(np.random.default_rng(5)))
    cards.code[40] = cards.code[3]
    (event,) = EcalBatch(encode_mep([encode_ecal_cards(cards)])).run()
    read = event.adc != VOID_ADC
    assert event.flags == BANK_ERROR
    assert (~read).nonzero()[0].tolist() == sorted(BUILTIN.cell_of_channel[[3, 40]].ravel().tolist())


def test_banks_of_other_versions_types_and_read_outs_are_refused() -> None:
    adc = random_adc(np.random.default_rng(5))
    for banks, geometry in (
        ([bank._replace(version=3) for bank in card_banks(adc)], BUILTIN),
        ([bank._replace(version=3) for bank in board_banks(adc)], with_boards()),
        ([bank._replace(version=6) for bank in board_banks(adc)], with_boards()),
        (card_banks(adc), with_boards()),
        (board_banks(adc), BUILTIN),
    ):
        (event,) = EcalBatch(encode_mep([banks]), geometry).run()
        assert (event.flags, event.n_cells, len(event.clusters["seed"])) == (BANK_ERROR, 0, 0)


@pytest.mark.parametrize("n_words", [2, 14, 26, 38, 40, 51])
def test_a_bank_of_boards_has_a_whole_number_of_them(n_words: int) -> None:
    banks = board_banks(random_adc(np.random.default_rng(5)))
    payload = bytes(banks[7].payload)[: 4 * n_words].ljust(4 * n_words, b"\0")
    banks[7] = banks[7]._replace(payload=memoryview(payload))
    (event,) = EcalBatch(encode_mep([banks]), with_boards()).run()
    assert (event.flags, event.n_cells) == (BANK_ERROR, N_CELLS - 96)


@pytest.mark.parametrize("source", [63, 255, 256, 2047])
def test_a_bank_of_a_source_without_boards_is_refused(source: int) -> None:
    banks = board_banks(random_adc(np.random.default_rng(5)))
    more = banks[0]._replace(source_id=11 << 11 | source)
    events = EcalBatch(encode_mep([[*banks, more]]), with_boards()).run()
    assert [(event.flags, event.n_cells) for event in events] == [(BANK_ERROR, N_CELLS)]


def test_an_event_without_banks_is_flagged_if_they_are_required() -> None:
    banks = card_banks(random_adc(np.random.default_rng(5)))
    for required in (1, 0):
        events = EcalBatch(encode_mep([banks, [], banks]), constants=(("required", required),)).run()
        assert [event.flags for event in events] == [0, required * MISSING_DETECTOR.mask, 0]
        assert [event.n_cells for event in events] == [N_CELLS, 0, N_CELLS]
        assert (events[1].energy, events[1].energy_mev, len(events[1].clusters["seed"])) == (0.0, 0, 0)


@pytest.mark.parametrize("mask", [GLOBAL_EVENT_CUT.mask, int(EventFlag.PREFILTERED)])
def test_an_event_that_is_not_reconstructed_is_not_read(mask: int) -> None:
    """Not even that its banks are broken or missing is found."""
    adc = chequered()
    for banks in (card_banks(adc), [], damaged_card(lambda words: words[:-1])):
        (event,) = EcalBatch(encode_mep([banks]), flags=EventFlag(mask)).run(fill=0x55)
        assert (event.flags, event.n_cells, event.energy, event.energy_mev, event.max_adc) == (mask, 0, 0.0, 0, 0)
        assert (event.adc == VOID_ADC).all()
        assert len(event.clusters["seed"]) == 0


def test_a_seed_has_energy() -> None:
    adc = np.zeros(N_CELLS, np.int64)
    adc[100], adc[200] = 5, 6
    (event,) = EcalBatch(
        encode_mep([card_banks(adc)]), replace(BUILTIN, pedestal=5.0), constants=(("min_seed_adc", 1),)
    ).run()
    assert event.clusters["seed"].tolist() == [200]
    assert event.clusters["energy"].tolist() == pytest.approx([BUILTIN.gain[200]])


@pytest.mark.parametrize("name", ["min_seed_adc", "min_neighbour_adc", "share"])
def test_constants_of_clusters_have_ranges(name: str) -> None:
    for value in {"min_seed_adc": (0, 4096), "min_neighbour_adc": (4096,), "share": (2,)}[name]:
        trigger = TriggerConfig.from_toml(f"[sequence.ecal_find_clusters]\n{name} = {value}\n", CHAIN.menu)
        with pytest.raises(TriggerConfigError, match=name):
            trigger.configure(CHAIN.with_sequence("hlt1_2026").sequence)
