"""An event as it is kept: its raw banks, the decision report and the routing bits, in one MDF record."""

from functools import lru_cache

from hltnode.processing.framework.flags import EventFlag
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_bank
from hltnode.protocol.raw_data.reports import LineMaskEncoder, encode_routing_bits

# Task that wrote a decision report, as LHCb numbers them: 1 is HLT1.
HLT1_TASK_ID = 1
# Bits of the first routing word (docs/formats/trigger-banks.md).
PHYSICS_BIT = 14
READOUT_ERROR_BIT = 25
# Encoded reports that are kept, and about how many bytes of them.
MAX_CACHED = 4096
CACHE_BYTES = 16 << 20
REPORT_BYTES = 64


class EventEncoder:
    """Writes the events of one trigger configuration.

    The TCK is also the encoding key of the report, because it identifies the table of decision names too.
    """

    def __init__(self, tck: int, n_lines: int) -> None:
        self._report = LineMaskEncoder(n_lines, key=tck, tck=tck, task_id=HLT1_TASK_ID)
        # With a small menu few combinations of lines and flags occur in a run.
        self._trailer = lru_cache(maxsize=min(MAX_CACHED, CACHE_BYTES // (REPORT_BYTES + 4 * n_lines)))(
            self._encode_trailer
        )

    def encode(
        self, *, run: int, orbit: int, bunch_id: int, banks: bytes, accepted: bool, lines: bytes, flags: int
    ) -> bytes:
        """MDF record (sub-header version 3) of the event's encoded `banks`, HltDecReports v3 and HltRoutingBits v0.

        Bit i % 8 of byte i // 8 of `lines` is the decision of line i; `flags` are `EventFlag` bits. The checksum is
        left 0, as in real data: at 2 ms per MB the format's byte-wise hash would cost more than all the rest of keeping
        an event.

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

    def _encode_trailer(self, accepted: bool, lines: bytes, flags: int) -> tuple[bytes, tuple[int, int, int]]:
        unreadable = bool(flags & (EventFlag.BANK_ERROR | EventFlag.ODIN_ERROR))
        routing_bits = (accepted << PHYSICS_BIT | unreadable << READOUT_ERROR_BIT, 0, 0)
        return encode_bank(self._report.encode(lines)) + encode_bank(encode_routing_bits(routing_bits)), routing_bits
