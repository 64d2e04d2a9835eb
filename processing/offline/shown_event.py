"""What the displays of all chains tell of an event: its numbers and the lines that accept it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank


def run_and_event(banks: Sequence[RawBank]) -> tuple[int, int] | tuple[None, None]:
    """Run and event number from the ODIN bank; None without a readable one."""
    for bank in banks:
        if bank.type == BankType.ODIN:
            try:
                odin = decode_odin(bank)
            except ProtocolError:
                break
            return odin.run, odin.event_id
    return None, None


def accepting_lines(names: Sequence[str], words: NDArray[np.uint32]) -> tuple[str, ...]:
    """The names of the lines that accept an event. words: u32, one bit for each name."""
    bits = np.unpackbits(words.view(np.uint8), count=len(names), bitorder="little")
    return tuple(names[i] for i in np.flatnonzero(bits).tolist())
