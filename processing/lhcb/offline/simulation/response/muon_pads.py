"""The pads that the read-out boards of the muon stations find among the digits of an event."""

import numpy as np

from hltnode.processing.lhcb.geometry.muon import MuonTiles
from hltnode.processing.lhcb.geometry.muon_read_out import pads_of_addresses
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.banks.muon import MAX_ADDRESS, N_BANKS

_N_CODES = N_BANKS * (MAX_ADDRESS + 1)


class PadFinder:
    """Finds the pads whose two strips, or whose own channels, have digits.

    Digits have codes bank << 12 | address, pads bank << 16 | pad address.
    """

    def __init__(self, digits_of_pad: Int64Array) -> None:
        """`digits_of_pad` i64[station, region, quarter, x, y, 2]: codes of a pad's x and y strip, -1 where not read."""
        addresses = pads_of_addresses()
        tiles = MuonTiles.of_ids(np.concatenate(addresses))
        code = np.concatenate([bank << 16 | np.arange(len(pads)) for bank, pads in enumerate(addresses)])
        x_strip, y_strip = digits_of_pad[tiles.station, tiles.region, tiles.quarter, tiles.x, tiles.y].T
        order = np.argsort(x_strip, kind="stable")
        self._pad, self._y_strip = code[order], y_strip[order]
        # The pads of an x strip are first, first + 1, ...; y strips have none here.
        bounds = np.searchsorted(x_strip[order], np.arange(_N_CODES + 1))
        self._first, self._n = bounds[:-1], np.diff(bounds)

    def find(self, digits: Int64Array) -> Int64Array:
        """Pads of events, event << 20 | code, from digits, event << 16 | code; both are sorted."""
        code = digits & 0xFFFF
        n = self._n[code]
        row = np.repeat(np.arange(len(digits)), n)
        pad = self._first[code][row] + np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n)
        event = digits[row] >> 16
        crossing = event << 16 | self._y_strip[pad]
        at = np.minimum(np.searchsorted(digits, crossing), max(len(digits) - 1, 0))
        found: Int64Array = np.sort((event << 20 | self._pad[pad])[digits[at] == crossing])
        return found
