"""Inputs of a feeder: numbering, announced sources, and files of every kind."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import Packing, meps_of_files, meps_of_simulation
from hltnode.processing.framework.event_files import EventFileError
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import Mfp, events_of_mfps
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import source_id
from tests.daemon.fakes import SOURCES, synthetic_meps

RUN = 99


def event(number: int, *, with_ut: bool = True) -> list[RawBank]:
    banks = [
        encode_odin(Odin(run=RUN, event_id=number)),
        RawBank(LhcbBankType.VP, 2, 7, memoryview(bytes([number, 0, 0, 0]))),
    ]
    if with_ut:
        banks.append(RawBank(LhcbBankType.UT, 4, 3, memoryview(b"ut" + bytes([number, 0]))))
    return banks


def packing(events_per_mep: int, *, repeat: int, run: int | None = None, with_truth: bool = False) -> Packing:
    return Packing(
        events_per_mep=events_per_mep, max_fragment_bytes=1 << 20, repeat=repeat, run=run, with_truth=with_truth
    )


def write_mdf(path: Path, events: list[list[RawBank]]) -> Path:
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=RUN, checksum=False) for banks in events))
    return path


def payloads(mfps: Mapping[int, Buffer]) -> list[list[bytes]]:
    return [[bytes(b.payload) for b in banks] for banks in events_of_mfps([Mfp.parse(m) for m in mfps.values()])]


def test_events_of_mdf_files_are_packed_with_consecutive_numbers(tmp_path: Path) -> None:
    one = write_mdf(tmp_path / "one.mdf", [event(i) for i in range(3)])
    two = write_mdf(tmp_path / "two.mdf", [event(i) for i in range(3, 5)])
    stream = meps_of_files([one, two], LHCB_READOUT, packing(2, repeat=2))
    assert stream.run == RUN
    meps = list(stream)
    assert [(m.mep, m.first_event, m.n_events) for m in meps] == [
        (0, 0, 2), (1, 2, 2), (2, 4, 2), (3, 6, 2), (4, 8, 2),
    ]  # fmt: skip
    assert all(Mfp.parse(mfp).event_id == m.first_event for m in meps for mfp in m.mfps.values())
    assert payloads(meps[0].mfps)[1] == [bytes(b.payload) for b in event(1)]
    numbers = [event[1][0] for mep in meps for event in payloads(mep.mfps)]
    assert numbers == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4], "MEPs reach across files and passes"


def test_a_source_without_a_bank_in_a_mep_still_delivers(tmp_path: Path) -> None:
    path = write_mdf(tmp_path / "x.mdf", [event(0), event(1, with_ut=False)])
    stream = meps_of_files([path], LHCB_READOUT, packing(1, repeat=1))
    first, second = list(stream)
    assert tuple(first.mfps) == tuple(second.mfps) == stream.sources
    empty = [m for m in (Mfp.parse(mfp) for mfp in second.mfps.values()) if m.types[0] == NO_BANK]
    assert [m.version for m in empty] == [4]


def test_run3_meps_keep_their_packing_and_are_renumbered(tmp_path: Path) -> None:
    path = tmp_path / "x.mep"
    path.write_bytes(b"".join(encode_mep(list(m.mfps.values())) for m in synthetic_meps(3, first=5)))
    stream = meps_of_files([path], LHCB_READOUT, packing(1000, repeat=1, run=4))
    assert (stream.run, stream.sources, stream.events_per_mep) == (4, SOURCES, 8)
    original = list(synthetic_meps(3, first=5))
    for index, mep in enumerate(stream):
        assert (mep.mep, mep.first_event) == (index, 8 * index)
        assert payloads(mep.mfps) == payloads(original[index].mfps)


def test_files_of_different_kinds_are_refused(tmp_path: Path) -> None:
    mdf = write_mdf(tmp_path / "x.mdf", [event(0)])
    mep = tmp_path / "x.mep"
    mep.write_bytes(b"".join(encode_mep(list(m.mfps.values())) for m in synthetic_meps(1)))
    with pytest.raises(FeedError, match="cannot be replayed together"):
        meps_of_files([mdf, mep], LHCB_READOUT, packing(1, repeat=1))


@pytest.mark.parametrize("content", [b"", b"garbage that is no event file at all, in no known format"])
def test_a_foreign_file_is_reported_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.mdf"
    path.write_bytes(content)
    with pytest.raises((FeedError, EventFileError), match=r"bad\.mdf"):
        meps_of_files([path], LHCB_READOUT, packing(1, repeat=1))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"nowhere\.mdf"):
        meps_of_files([tmp_path / "nowhere.mdf"], LHCB_READOUT, packing(1, repeat=1))


def test_truth_banks_that_come_later_are_announced(tmp_path: Path) -> None:
    def truth(number: int) -> RawBank:
        return RawBank(LhcbBankType.MC_TRACKS, 1, number, memoryview(b"abcd"))

    events = [[*event(0), truth(0)], [*event(1), truth(0), truth(1)]]
    stream = meps_of_simulation(lambda: iter(events), LHCB_READOUT, packing(1, repeat=1, with_truth=True), 2)
    assert source_id(SubDetector.TDET, 1) in stream.sources
    _, second = list(stream)
    assert Mfp.parse(second.mfps[source_id(SubDetector.TDET, 1)]).types[0] == LhcbBankType.MC_TRACKS


@pytest.mark.physics
def test_real_events_can_be_fed(shared: Path) -> None:
    paths = sorted((shared / "data/lhcb-minbias-mdf").glob("*retina3*.mdf"))
    stream = meps_of_files(paths, LHCB_READOUT, packing(3, repeat=1))
    meps = list(stream)
    assert sum(m.n_events for m in meps) == 7
    assert len(stream.sources) > 100
