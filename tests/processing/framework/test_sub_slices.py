"""Sub-slices of a file get margins without hits at the ends of their stream."""

from __future__ import annotations

from types import ModuleType

from hltnode.processing.framework.sub_slices import between_empty_margins, hit_banks
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.raw_bank import RawBank

FOREIGN = RawBank(16, 0, 0, memoryview(b"12345678"))
"""A bank of another sub-detector, as the one of the timing system."""


def sub_slice(chain: ModuleType, payload: bytes) -> list[RawBank]:
    """The banks of a sub-slice of the test chain, and a foreign one."""
    return [FOREIGN, *(RawBank(chain.HITS, 0, source, memoryview(payload)) for source in chain.SOURCES)]


def test_margins_have_each_bank_of_hits_without_a_hit_and_no_other_bank(stream: ModuleType) -> None:
    readout, streaming = stream.STREAM.readout, stream.STREAM.streaming
    events = [sub_slice(stream, bytes(16)), sub_slice(stream, bytes(8))]
    assert [bank.source_id for bank in hit_banks(readout, streaming, events[0])] == list(stream.SOURCES)
    for given in (events, [EventTable.of_events(events)]):
        found = list(between_empty_margins(readout, streaming, given))
        before, behind = streaming.margin_before, streaming.margin_behind
        assert len(found) == before + len(events) + behind
        assert found[before : before + len(events)] == events
        for banks in (*found[:before], *found[before + len(events) :]):
            assert [(bank.source_id, len(bank.payload)) for bank in banks] == [(each, 0) for each in stream.SOURCES]


def test_a_stream_without_a_sub_slice_has_no_margins(stream: ModuleType) -> None:
    assert list(between_empty_margins(stream.STREAM.readout, stream.STREAM.streaming, [])) == []
