"""Files that are replayed: folders, kinds, gzip, damage, files that change, sources that come late."""

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest

from hltnode.daemon.commands.common import console
from hltnode.daemon.commands.mep_streams.replay_report import say_what_is_special
from hltnode.daemon.replay.input_files import FeedError, find_inputs
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.file_format import FileFormat
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import source_id
from tests.daemon.fakes import synthetic_meps

VELO = 2 << 11 | 7


def record(number: int, *, with_velo: bool = True, time_us: int = 0) -> bytes:
    velo = RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, VELO, memoryview(b"abcd" * (number % 50 + 1)))
    odin = encode_odin(Odin(run=5, event_id=number, gps_time_us=time_us))
    return encode_record(encode_banks([odin, velo] if with_velo else [odin]), run=5)


def stream_of(*paths: Path, events_per_mep: int = 10, **packing: object) -> MepStream:
    options = {"max_fragment_bytes": 1 << 20, **packing}
    return meps_of_files(paths, LHCB_READOUT, Packing(events_per_mep=events_per_mep, **options))  # type: ignore[arg-type]


def event_ids(stream: MepStream) -> list[int]:
    return [decode_odin(bank).event_id for mep in stream for bank in Mfp.parse(mep.mfps[0]).banks() if bank is not None]


def test_the_event_files_of_a_folder_are_replayed_by_name_and_foreign_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.mdf").write_bytes(record(2) + record(3))
    (tmp_path / "a.mdf").write_bytes(record(0) + record(1))
    (tmp_path / "c.mdf.gz").write_bytes(gzip.compress(record(4)))
    (tmp_path / "notes.txt").write_text("These are the events of the incident, 22 November.")
    (tmp_path / "empty.mdf").touch()
    (tmp_path / "older").mkdir()
    (tmp_path / "gone.mdf").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.mdf")
    stream = stream_of(tmp_path)
    assert event_ids(stream) == [0, 1, 2, 3, 4]
    assert stream.n_events == 5
    assert stream.files is not None
    assert {path.name: why for path, why in stream.files.left_out.items()} == {
        "notes.txt": "is neither MDF nor MEP",
        "empty.mdf": "is empty",
        "older": "cannot be read: Is a directory",
        "gone.mdf": "cannot be read: No such file or directory",
        "pipe.mdf": "is neither a file nor a folder",
    }


def test_a_folder_without_events_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(FeedError, match="no event file among 1 files"):
        find_inputs([tmp_path])


def test_kinds_that_cannot_be_mixed_are_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.mdf").write_bytes(record(0))
    (tmp_path / "b.mep").write_bytes(encode_mep(list(next(iter(synthetic_meps(1))).mfps.values())))
    with pytest.raises(
        FeedError, match=r"cannot be replayed together: 1 MDF \(.*a\.mdf \.\.\.\), 1 Run-3 MEP \(.*b\.mep \.\.\.\)"
    ):
        find_inputs([tmp_path])
    assert find_inputs([tmp_path / "b.mep"]).kind is FileFormat.MEP


def test_a_truncated_gzip_file_is_reported_with_the_events_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.mdf.gz"
    noise = np.random.default_rng(1)
    banks = [RawBank(LhcbBankType.VP_RETINA_CLUSTER, 4, VELO, memoryview(noise.bytes(6000))) for _ in range(20)]
    events = [encode_record(encode_banks([encode_odin(Odin(run=5, event_id=0)), bank]), run=5) for bank in banks]
    packed = gzip.compress(b"".join(events))
    path.write_bytes(packed[: len(packed) * 3 // 4])
    stream = stream_of(path)
    assert sum(mep.n_events for mep in stream) in {13, 14, 15}
    (text,) = stream.damage.first
    assert re.search(r"cut\.mdf\.gz: damaged gzip file after 1[345] whole events", text)


@pytest.mark.parametrize("in_memory", [True, False])
def test_damaged_events_are_left_out_of_every_pass_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.setattr("hltnode.daemon.replay.mep_source._IN_MEMORY_BYTES", 0)
    events = [bytearray(record(i)) for i in range(6)]
    events[1][-1] ^= 1
    # The first bank of the fourth event is longer than the event; without checksum.
    events[3][12:16] = bytes(4)
    events[3][50:52] = b"\xff\xff"
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(events)[:-1])
    stream = stream_of(path, repeat=2)
    assert event_ids(stream) == [0, 2, 4] * 2
    assert [text.split(": ", 1)[1].split(": ")[0] for text in stream.damage.first] == [
        f"MDF record at byte {sum(map(len, events[:i]))}" for i in (1, 3, 5)
    ]


def test_a_packed_mep_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "x.mep.gz"
    path.write_bytes(gzip.compress(encode_mep(list(next(iter(synthetic_meps(1))).mfps.values()))))
    with pytest.raises(FeedError, match=r"x\.mep\.gz: is a Run-3 MEP in a gzip file: unpack it"):
        stream_of(path)


@pytest.mark.parametrize("change", ["appended", "cut", "replaced", "removed"])
def test_a_file_that_changes_while_it_is_replayed_ends_the_replay_and_is_named(tmp_path: Path, change: str) -> None:
    path = tmp_path / "growing.mdf"
    path.write_bytes(b"".join(map(record, range(100))))
    # Each pass reads the file again.
    meps = iter(stream_of(path, events_per_mep=100, repeat=3))
    next(meps)
    if change == "appended":
        with path.open("ab") as file:
            file.write(record(100))
    elif change == "cut":
        os.truncate(path, 1234)
    elif change == "replaced":
        (tmp_path / "other").write_bytes(b"".join(map(record, range(100))))
        (tmp_path / "other").replace(path)
    else:
        path.unlink()
    with pytest.raises(FeedError, match=r"growing\.mdf: the file (changed|disappeared) during the replay"):
        list(meps)


def test_a_mep_file_truncated_during_its_replay_is_reported_without_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "x.mep"
    path.write_bytes(b"".join(encode_mep(list(m.mfps.values())) for m in synthetic_meps(200)))
    meps = iter(stream_of(path, run=5))
    next(meps)
    os.truncate(path, 0)
    with pytest.raises(FeedError, match=r"x\.mep: the file changed during the replay: \d+ bytes before, 0 now"):
        list(meps)


def test_a_source_that_appears_late_is_known_from_the_start_and_named(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(record(i, with_velo=i >= 300) for i in range(310)))
    stream = stream_of(path)
    assert stream.late_sources == {VELO: 300}
    first = next(iter(stream))
    assert VELO in first.mfps


TDET = source_id(SubDetector.TDET, 0)


def own_event(number: int, *banks: RawBank) -> bytes:
    return encode_record(encode_banks([encode_odin(Odin(run=5, event_id=number)), *banks]), run=5)


def test_a_board_with_a_source_of_the_test_detector_is_sent_and_truth_is_not(tmp_path: Path) -> None:
    board = RawBank(LhcbBankType.TEST_DET, 1, TDET, memoryview(b"a board of one's own"))
    truth = RawBank(LhcbBankType.MC_TRACKS, 2, 0, memoryview(b"particles"))
    path = tmp_path / "own.mdf"
    path.write_bytes(own_event(0, board) + own_event(1, board))
    [mep] = stream_of(path)
    assert [bytes(bank.payload) for bank in Mfp.parse(mep.mfps[TDET]).banks() if bank is not None] == [
        bytes(board.payload)
    ] * 2
    path.write_bytes(own_event(0, truth))
    assert stream_of(path).sources == (0,)
    assert stream_of(path, with_truth=True).sources == (0, TDET)


def test_an_error_bank_of_another_version_is_sent_like_any_other(tmp_path: Path) -> None:
    source = SubDetector.VELO_A << 11
    data = RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, source, memoryview(b"clusters"))
    error = RawBank(LhcbBankType.DAQ_ERROR_FRAGMENT_MISSING, 0, source, memoryview(b""))
    paths = [tmp_path / "a.mdf", tmp_path / "b.mdf"]
    paths[0].write_bytes(own_event(0, data) + own_event(1, error) + own_event(2, data))
    paths[1].write_bytes(own_event(3, error))
    for given, n_events in ((paths[:1], 3), (paths, 4), (paths[::-1], 4)):
        stream = meps_of_files(given, LHCB_READOUT, Packing(events_per_mep=10, max_fragment_bytes=1000))
        (mep,) = list(stream)
        sent = mep.mfp(source)
        assert sent is not None
        mfp = Mfp.parse(sent)
        assert (mfp.version, mfp.n_fragments) == (3, n_events)
        types = [bank.type for bank in mfp.banks() if bank is not None]
        assert types.count(LhcbBankType.DAQ_ERROR_FRAGMENT_MISSING) == n_events - 2


def test_banks_of_unknown_sources_are_reported_and_banks_outside_the_readout_are_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown = RawBank(200, 1, 3, memoryview(b"whose"))
    reports = RawBank(BankType.HLT_DEC_REPORTS, 3, 1 << 13, memoryview(b"0123456789abcdef"))
    truth = RawBank(LhcbBankType.MC_TRACKS, 2, 0, memoryview(b"particles"))
    path = tmp_path / "x.mdf"
    path.write_bytes(own_event(0, reports, truth) + own_event(1, unknown) + own_event(2, unknown))
    stream = stream_of(path)
    assert stream.unsent_types == [200]
    assert stream.sources == (0,)
    say_what_is_special([stream])
    console.file.drain(5.0)  # type: ignore[attr-defined]
    assert "banks of type 200, whose source is not known" in " ".join(capfd.readouterr().err.split())


def encoded(number: int, *types: int, version: int = 2) -> bytes:
    """An event with VELO banks of these types, of one sensor."""
    banks = [RawBank(each, version, 7, memoryview(b"abcd")) for each in types]
    return encode_record(encode_banks([encode_odin(Odin(run=5, event_id=number)), *banks]), run=5)


RETINA, PIXELS = LhcbBankType.VP_RETINA_CLUSTER, LhcbBankType.VP


def test_files_of_two_encodings_are_refused_and_both_are_named(tmp_path: Path) -> None:
    one, two, neither = tmp_path / "one.mdf", tmp_path / "two.mdf", tmp_path / "neither.mdf"
    one.write_bytes(encoded(0, RETINA, PIXELS) + encoded(1, RETINA))
    two.write_bytes(encoded(2, PIXELS))
    neither.write_bytes(encoded(3))
    with pytest.raises(
        FeedError, match=r"one\.mdf is read as retina, .*two\.mdf as superpixel, .* replay them separately"
    ):
        stream_of(neither, one, two)
    # Each goes alone, and with events that have no VELO.
    assert [len(stream_of(neither, each).sources) for each in (one, two)] == [2, 2]


def test_events_of_two_encodings_in_one_file_are_refused_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "joined.mdf"
    path.write_bytes(encoded(0) + encoded(1, RETINA, PIXELS) * 300 + encoded(2, PIXELS))
    with pytest.raises(FeedError, match=r"joined\.mdf: event 1 is read as retina, event 301 as superpixel"):
        stream_of(path)


def test_files_with_two_bank_versions_of_a_source_are_refused_and_both_are_named(tmp_path: Path) -> None:
    one, two = tmp_path / "one.mdf", tmp_path / "two.mdf"
    one.write_bytes(encoded(0, PIXELS))
    two.write_bytes(encoded(1, PIXELS, version=1))
    with pytest.raises(FeedError, match=r"source \d+ has banks of version 2 in .*one\.mdf and 1 in .*two\.mdf"):
        stream_of(one, two)


def test_a_second_bank_of_a_source_becomes_an_error_bank_of_its_event_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(encoded(i, PIXELS) for i in range(13)) + encoded(13, PIXELS, PIXELS))
    types = []
    for mep in stream_of(path):
        (velo,) = (mfp for source, mfp in mep.mfps.items() if source != 0)
        types += [None if bank is None else bank.type for bank in Mfp.parse(velo).banks()]
    assert types == [PIXELS] * 13 + [LhcbBankType.DAQ_ERROR_FRAGMENT_MALFORMED]


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_file_that_lacks_sources_of_another_is_named_and_sends_empty_banks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.setattr("hltnode.daemon.replay.mep_source._IN_MEMORY_BYTES", 0)
    one, two = tmp_path / "one.mdf", tmp_path / "two.mdf"
    one.write_bytes(b"".join(record(i) for i in range(3)))
    two.write_bytes(b"".join(record(i, with_velo=False) for i in range(3, 5)))
    for given in ((one, two), (two, one)):
        stream = stream_of(*given)
        assert stream.lacking == {two: [VELO]}
        assert stream.late_sources == {}
        [mep] = stream
        assert [bank is None for bank in Mfp.parse(mep.mfps[VELO]).banks()].count(True) == 2
        assert len(event_ids(stream)) == 5


def test_another_run_number_is_written_into_the_odin_banks(tmp_path: Path) -> None:
    mdf, mep = tmp_path / "x.mdf", tmp_path / "x.mep"
    mdf.write_bytes(b"".join(map(record, range(5))))
    mep.write_bytes(encode_mep(list(next(iter(stream_of(mdf))).mfps.values())))
    for path in (mdf, mep):
        stream = stream_of(path, run=77)
        assert stream.run == 77
        for sent in stream:
            banks = Mfp.parse(sent.mfps[0]).banks()
            assert [(decode_odin(b).run, decode_odin(b).event_id) for b in banks if b] == [(77, i) for i in range(5)]
        assert stream_of(path).run == 5


def test_each_of_several_processes_sends_its_own_sources_of_the_same_meps(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(map(record, range(60))))
    # Only the VELO source has fragments for which the MEPs have to be divided.
    whole = stream_of(path, events_per_mep=60, max_fragment_bytes=3000)
    parts = [whole.of([source]) for source in whole.sources]
    n_meps = 0
    for complete, *of_parts in zip(whole, *parts, strict=True):
        n_meps += 1
        joined = {source: bytes(mfp) for part in of_parts for source, mfp in part.mfps.items()}
        assert joined == {source: bytes(mfp) for source, mfp in complete.mfps.items()}
        assert {part.n_events for part in of_parts} == {complete.n_events}
    assert n_meps > 1


def test_an_endless_replay_starts_again_with_continued_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(record(0) + record(1))
    stream = stream_of(path, events_per_mep=2, repeat=None)
    assert stream.n_events is None
    for number, mep in zip(range(50), stream, strict=False):
        assert (mep.mep, mep.first_event) == (number, 2 * number)
