"""Sub-slices of a stream that is read from files: between margins, as kernels expect them in a time slice."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained

from hltnode.processing.framework.readout import Readout
from hltnode.processing.framework.streaming import Streaming
from hltnode.protocol.event_table import EventTable, as_tables
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import subdetector_of


def hit_banks(readout: Readout, streaming: Streaming, banks: Iterable[RawBank]) -> list[RawBank]:
    """Those banks of a sub-slice that the sources of hits send."""
    wanted = streaming.subdetectors
    sent = (bank for bank in banks if readout.source_of(bank) is not None)
    return [bank for bank in sent if wanted is None or subdetector_of(bank.source_id) in wanted]


def between_empty_margins(
    readout: Readout, streaming: Streaming, events: Iterable[EventTable | Sequence[RawBank]]
) -> Iterator[Sequence[RawBank]]:
    """All sub-slices of a stream between margins without hits: before its start and behind its end there are none."""
    empty: list[RawBank] | None = None
    for banks in chained.from_iterable(as_tables(events)):
        if empty is None:
            empty = [bank._replace(payload=memoryview(b"")) for bank in hit_banks(readout, streaming, banks)]
            yield from [empty] * streaming.margin_before
        yield banks
    if empty is not None:
        yield from [empty] * streaming.margin_behind
