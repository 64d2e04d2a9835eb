"""The library gives the banks and sources of events as arrays."""

from __future__ import annotations

from pathlib import Path

import hltnode
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id

EVENTS = [{3: (200, b"abc"), 60000: (192, b"")}, {}, {60000: (7, bytes(500))}]


def test_sizes_types_and_sources_are_fields_of_events(tmp_path: Path) -> None:
    file = tmp_path / "events.mdf"
    banks = [[RawBank(t, 1, s, memoryview(p)) for s, (t, p) in event.items()] for event in EVENTS]
    file.write_bytes(b"".join(encode_record(encode_banks(event), run=1, checksum=False) for event in banks))
    names = ["banks.size", "banks.type", "banks.source", "sources.id", "sources.bytes", "sources.has_bank"]
    events = hltnode.process([file], [*names, "event.bytes", "event.missing_banks"], chain="raw", backend="cpu")
    assert events.banks.size.to_list() == [[3, 0], [], [500]]
    assert events.banks["type"].to_list() == [[200, 192], [], [7]]
    assert events.banks.source.to_list() == [[3, 60000], [], [60000]]
    assert events.sources.id.to_list() == [[3, 60000]] * 3
    assert events.sources.bytes.to_list() == [[3, 0], [0, 0], [0, 500]]
    assert events.sources.has_bank.to_list() == [[True, True], [False, False], [False, True]]
    assert events.event.bytes.to_list() == [3, 0, 500]
    assert events.event.missing_banks.to_list() == [False, True, False]


def test_the_usual_fields_are_those_of_the_event_and_of_its_banks(tmp_path: Path) -> None:
    file = tmp_path / "events.mdf"
    record = encode_banks([RawBank(200, 1, 3, memoryview(b"abc"))])
    file.write_bytes(encode_record(record, run=1, checksum=False))
    events = hltnode.process(file, chain="raw", backend="cpu")
    assert events.fields == ["event", "banks", "decisions"]
    assert events.event.n_banks.to_list() == [1]
    assert events.banks.fields == ["source", "type", "size"]


def test_a_file_of_meps_without_odin(tmp_path: Path) -> None:
    file = tmp_path / "events.mep"
    boards = [source_id(USER_SUBDETECTORS[0], number) for number in (0, 5)]
    mfps = [
        encode_mfp(source_id=board, event_id=40, version=1, types=[200, NO_BANK], fragments=[b"abc" * (at + 1), b""])
        for at, board in enumerate(boards)
    ]
    file.write_bytes(encode_mep(mfps) * 2)
    events = hltnode.process(file, ["banks.size", "banks.source"], chain="raw", backend="cpu")
    assert events.banks.size.to_list() == [[3, 6], []] * 2
    assert events.banks.source.to_list() == [boards, []] * 2
