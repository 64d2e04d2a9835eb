"""The order in which the read-out boards of the muon stations send strips and pads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.muon_read_out import pads_of_addresses, tiles_of_addresses
from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.banks.muon import ADDRESSES_OF_BANKS, batch_of, decode_muon, decode_muon_pads


def test_every_address_has_the_tile_of_the_real_read_out_table(geometry_files: Path) -> None:
    expected, found = MuonGeometry.load(geometry_files).tile_of_address, tiles_of_addresses()
    assert sum(map(len, expected)) == 19_968
    for bank, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"bank {bank}")


def test_every_strip_and_pad_has_one_address_and_one_pad_address() -> None:
    banks, geometry = tiles_of_addresses(), MuonGeometry.builtin()
    assert tuple(map(len, banks)) == ADDRESSES_OF_BANKS
    strips = np.concatenate(banks)
    strips = strips[strips != 0]
    directly_read = 2 * 4 * 3 * 12 * 8  # R1 of M4 and M5, both an x and a y "strip"
    n_cells = sum(len(xyz) for table in (geometry.x_strip, geometry.y_strip) for xyz in table.xyz) - directly_read
    assert len(np.unique(strips)) == len(strips) == n_cells
    pads = np.concatenate(pads_of_addresses())
    assert len(np.unique(pads)) == len(pads) == sum(48 * 8 * 3 * 16 // (1, 1, 4, 4)[station] for station in range(4))


def test_the_pads_of_the_real_banks_are_the_crossings_of_their_digits(real_events: list[list[RawBank]]) -> None:
    geometry, pad_of_address = MuonGeometry.builtin(), pads_of_addresses()
    n_pads = 0
    for event in real_events:
        hits, pads = geometry.hits(decode_muon(event)), decode_muon_pads(event)
        found = [int(pad_of_address[bank][address]) for bank, address in zip(pads.bank, pads.address, strict=True)]
        is_pad = hits.crossed | ((hits.station >= 2) & (hits.region == 0))
        assert sorted(found) == sorted(hits.tile[is_pad].tolist())
        n_pads += len(found)
    assert n_pads == 1575


def test_the_digits_of_the_real_banks_are_in_the_batches_of_their_boards(real_events: list[list[RawBank]]) -> None:
    n_digits = 0
    for event in real_events:
        digits = decode_muon(event)
        np.testing.assert_array_equal(batch_of(digits.bank, digits.address), digits.batch)
        n_digits += len(digits.bank)
    assert n_digits == 1685
