"""Pads from muon boards."""

import numpy as np

from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.muon_read_out import pads_of_addresses
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.response.muon_pads import PadFinder
from hltnode.protocol.lhcb.banks.muon import decode_muon, decode_muon_pads

NO_DIGITS = np.full((4, 4, 4, 96, 16, 2), -1)


def test_the_pads_in_simulated_banks_are_the_crossings_of_their_digits_as_in_real_ones() -> None:
    detector, pad_of_address = Detector.builtin(), pads_of_addresses()
    n_pads = 0
    for banks in FullSimulation(detector, sample_source("minbias", 7.6, detector.velo.beamline)).events(10, 4):
        hits, pads = detector.muon.hits(decode_muon(banks)), decode_muon_pads(banks)
        found = [int(pad_of_address[bank][address]) for bank, address in zip(pads.bank, pads.address, strict=True)]
        is_pad = hits.crossed | ((hits.station >= 2) & (hits.region == 0))
        assert sorted(found) == sorted(hits.tile[is_pad].tolist())
        n_pads += len(found)
    assert n_pads > 1000


def test_a_pad_needs_both_strips_in_the_same_event() -> None:
    x_strip, y_strip = 3 << 12 | 20, 3 << 12 | 7
    digits = NO_DIGITS.copy()
    # M2R1, quarter 3: the pad at the corner of the first sector, which is pad address 0 of bank 3.
    digits[0, 0, 3, 48, 0] = x_strip, y_strip
    finder = PadFinder(digits)
    assert finder.find(np.sort([5 << 16 | x_strip, 5 << 16 | y_strip, 6 << 16 | x_strip])).tolist() == [
        5 << 20 | 3 << 16
    ]
    assert finder.find(np.sort([5 << 16 | x_strip, 6 << 16 | y_strip])).tolist() == []
    assert finder.find(np.empty(0, np.int64)).tolist() == []


def test_strips_without_read_out_make_no_pads() -> None:
    geometry = MuonGeometry.builtin()
    codes = np.concatenate([bank << 12 | np.arange(len(tiles)) for bank, tiles in enumerate(geometry.tile_of_address)])
    assert len(PadFinder(NO_DIGITS).find(codes)) == 0
