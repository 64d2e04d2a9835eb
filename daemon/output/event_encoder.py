"""An event as it is kept: its raw banks, the decision report and the routing bits, in one MDF record."""

from functools import lru_cache

from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_bank
from hltnode.protocol.raw_data.reports import HltDecReports, encode_dec_reports, encode_routing_bits

# Task that wrote a decision report, as LHCb numbers them: 1 is HLT1.
HLT1_TASK_ID = 1
# Bits of the first routing word (formats.md B13).
PHYSICS_BIT = 14
READOUT_ERROR_BIT = 25


class EventEncoder:
    """Writes the events of one trigger configuration.

    The TCK also stands as encoding key of the report: the table of decision names is part of what it identifies.
    """

    def __init__(self, tck: int, n_lines: int) -> None:
        self._tck = tck
        self._n_lines = n_lines
        # Few combinations of lines and flags occur in a run, and encoding 64 lines costs more than the whole rest.
        self._trailer = lru_cache(maxsize=4096)(self._encode_trailer)

    def encode(
        self, *, run: int, orbit: int, bunch_id: int, banks: bytes, accepted: bool, lines: int, flags: int
    ) -> bytes:
        """MDF record (sub-header version 3) of the event's encoded `banks`, HltDecReports v3 and HltRoutingBits v0.

        Bit i of `lines` is the decision of line i; `flags` are `EventFlag` bits. The checksum is left 0, as in real
        data: at 2 ms per MB the format's byte-wise hash would cost more than all the rest of keeping an event.

        Raises:
            ProtocolError: a header field that does not fit the format.
        """
        report, routing_bits = self._trailer(accepted, lines, flags)
        return encode_record(
            banks + report,
            run=run,
            orbit=orbit,
            bunch_id=bunch_id,
            routing_bits=(*routing_bits, 0),
            version=3,
            checksum=False,
        )

    def _encode_trailer(self, accepted: bool, lines: int, flags: int) -> tuple[bytes, tuple[int, int, int]]:
        report = HltDecReports.of_line_mask(lines, self._n_lines, key=self._tck, tck=self._tck, task_id=HLT1_TASK_ID)
        unreadable = bool(flags & (EventFlag.BANK_ERROR | EventFlag.ODIN_ERROR))
        routing_bits = (accepted << PHYSICS_BIT | unreadable << READOUT_ERROR_BIT, 0, 0)
        return encode_bank(encode_dec_reports(report)) + encode_bank(encode_routing_bits(routing_bits)), routing_bits
