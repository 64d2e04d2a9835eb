"""Banks of the calorimeter from the ADC values of its cells."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ecal import BOARDS_VERSION, CARDS_VERSION, NO_CARD, EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import NO_CELL
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import by_event
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import EcalBoards, EcalCards, encode_ecal_boards, encode_ecal_cards
from hltnode.protocol.raw_data.raw_bank import RawBank

_SOURCES_OF_CARDS = 28


class EcalEncoder:
    """Writes the calorimeter's banks of a geometry. Raises ValueError if it has no read-out of this version."""

    def __init__(self, geometry: EcalGeometry, version: EcalVersion) -> None:
        needed, name = (CARDS_VERSION, "cards") if version == EcalVersion.CARDS else (BOARDS_VERSION, "boards")
        if geometry.read_out & needed != needed:
            raise ValueError(f"banks of the calorimeter of version {version}: the geometry has no {name}")
        self._version = version
        self._code_offset = geometry.code_offset
        slots = geometry.slot_cards()
        if version == EcalVersion.CARDS:
            self._card = np.flatnonzero(geometry.connected)
            self._source = np.arange(len(self._card)) * _SOURCES_OF_CARDS // len(self._card)
            self._place = np.zeros_like(self._source)
        else:
            self._source, slot = np.nonzero(slots != NO_CARD)
            self._card = slots[self._source, slot].astype(np.int64)
            # A bank holds the boards of its source without the empty slots.
            self._place = (np.cumsum(slots != NO_CARD, axis=1) - 1)[self._source, slot]
        self._cells = geometry.cell_of_channel[self._card].astype(np.int64)

    def banks(self, adc: NDArray[np.int16]) -> list[list[RawBank]]:
        """The banks of events, whose cells have the values i16[n_events, 6016]; channels without a cell have 0."""
        n_events, n_cards = len(adc), len(self._card)
        # One more cell for channels without one.
        with_none = np.append(adc, np.zeros((n_events, 1), np.int16), axis=1)
        values = with_none[:, np.where(self._cells == NO_CELL, -1, self._cells)].reshape(-1, self._cells.shape[1])
        event = np.repeat(np.arange(n_events), n_cards)
        source, place = (np.tile(of_card, n_events).astype(np.uint32) for of_card in (self._source, self._place))
        if self._version != EcalVersion.CARDS:
            boards = EcalBoards(source, place, values)
            return by_event(encode_ecal_boards(boards, self._version, event, n_events), n_events)
        code = np.tile(self._card + self._code_offset, n_events).astype(np.uint32)
        cards = EcalCards(source, code, values, np.zeros(values.shape, np.bool_), (b"",) * len(code))
        return by_event(encode_ecal_cards(cards, event, n_events, _SOURCES_OF_CARDS), n_events)
