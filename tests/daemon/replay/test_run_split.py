"""Inputs of several runs: each becomes a stream of its own, without a lost or a doubled event."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from hltnode.daemon.commands.common import console
from hltnode.daemon.commands.mep_streams.replay_report import say_what_is_special
from hltnode.daemon.replay import mep_source
from hltnode.daemon.replay.input_files import FeedError
from hltnode.daemon.replay.mep_source import MepStream, Packing, meps_of_files, runs_of_files
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import Mfp, encode_mfp
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import ODIN_SOURCE

VELO = 2 << 11 | 7


def record(run: int, number: int, *, header: int | None = None, with_odin: bool = True, version: int = 4) -> bytes:
    velo = RawBank(LhcbBankType.VP_RETINA_CLUSTER, version, VELO, memoryview(b"abcd" * (number % 5 + 1)))
    banks = [encode_odin(Odin(run=run, event_id=number)), velo] if with_odin else [velo]
    return encode_record(encode_banks(banks), run=run if header is None else header)


def mep(run: int, numbers: Sequence[int], *, with_odin: bool = True) -> bytes:
    n = len(numbers)
    velo = encode_mfp(
        source_id=VELO,
        event_id=numbers[0],
        version=4,
        types=[LhcbBankType.VP_RETINA_CLUSTER] * n,
        fragments=[number.to_bytes(8, "little") for number in numbers],
    )
    odins = [encode_odin(Odin(run=run, event_id=number)) for number in numbers]
    odin = encode_mfp(
        source_id=ODIN_SOURCE,
        event_id=numbers[0],
        version=odins[0].version,
        types=[bank.type if with_odin else NO_BANK for bank in odins],
        fragments=[bytes(bank.payload) if with_odin else b"" for bank in odins],
    )
    return encode_mep([odin, velo])


def streams_of(*paths: Path, events_per_mep: int = 4, **packing: object) -> list[MepStream]:
    options = {"max_fragment_bytes": 1 << 20, **packing}
    return runs_of_files(paths, LHCB_READOUT, Packing(events_per_mep=events_per_mep, **options))  # type: ignore[arg-type]


def events(stream: MepStream) -> list[tuple[int, int]]:
    """(run, event number) of each event, by its ODIN bank."""
    odins = [decode_odin(b) for sent in stream for b in Mfp.parse(sent.mfps[ODIN_SOURCE]).banks() if b is not None]
    return [(odin.run, odin.event_id) for odin in odins]


@pytest.fixture(params=[True, False], ids=["in_memory", "read_again"])
def in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(mep_source, "_IN_MEMORY_BYTES", 0)


@pytest.mark.usefixtures("in_memory")
def test_interleaved_runs_of_a_file_are_separated_and_keep_their_order_and_packing(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(record(5 + i % 3 % 2, i) for i in range(1000)))
    five, six = streams_of(path)
    assert (five.run, five.n_events, six.run, six.n_events) == (5, 667, 6, 333)
    assert events(five) == [(5, i) for i in range(1000) if i % 3 != 1]
    assert events(six) == [(6, i) for i in range(1, 1000, 3)]
    meps = list(six)
    assert [sent.mep for sent in meps] == list(range(84))
    assert {sent.n_events for sent in meps[:-1]} == {4}
    assert [sent.first_event for sent in meps] == list(range(0, 333, 4))


@pytest.mark.usefixtures("in_memory")
def test_runs_that_span_files_are_read_from_their_files_only_in_every_pass(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("a.mdf", "b.mdf.gz", "c.mdf"))
    one.write_bytes(b"".join(record(7, i) for i in range(3)))
    two.write_bytes(gzip.compress(b"".join(record(7, i) for i in range(3, 6)) + record(3, 0)))
    three.write_bytes(b"".join(record(3, i) for i in range(1, 6)))
    seven, three_ = streams_of(one, two, three, repeat=2)
    assert [seven.run, three_.run] == [7, 3]
    assert events(seven) == [(7, i) for i in range(6)] * 2
    assert events(three_) == [(3, i) for i in range(6)] * 2
    assert seven.files is not None
    assert three_.files is not None
    assert [file.path for file in seven.files.files] == [one, two]
    assert [file.path for file in three_.files.files] == [two, three]


@pytest.mark.usefixtures("in_memory")
def test_events_without_a_run_belong_to_the_run_before_them_or_to_the_first(tmp_path: Path) -> None:
    one, two, three = (tmp_path / f"{name}.mdf" for name in "abc")
    lost = [record(0, 0, header=0, with_odin=False)]
    one.write_bytes(b"".join([*lost, record(8, 1), *lost]))
    two.write_bytes(b"".join([record(9, 2), *lost, *lost]))
    three.write_bytes(b"".join([*lost, record(8, 3)]))
    eight, nine = streams_of(one, two, three)
    assert (eight.n_events, nine.n_events) == (4, 4)
    assert sum(sent.n_events for sent in eight) == 4
    assert sum(sent.n_events for sent in nine) == 4


def test_the_run_in_odin_separates_events_whose_headers_have_none(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(b"".join(record(5 + i // 3, i, header=0) for i in range(6)))
    assert [events(stream) for stream in streams_of(path)] == [
        [(5, 0), (5, 1), (5, 2)],
        [(6, 3), (6, 4), (6, 5)],
    ]


def test_headers_of_two_runs_with_one_run_in_odin_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(record(5, 0, header=1) + record(5, 1, header=2))
    with pytest.raises(FeedError, match=r"runs 1 and 2 in their MDF headers have run 5 in their ODIN banks: .*--run"):
        streams_of(path)
    [stream] = streams_of(path, run=5)
    assert events(stream) == [(5, 0), (5, 1)]


def test_a_chosen_number_makes_all_events_one_run(tmp_path: Path) -> None:
    path, packed = tmp_path / "x.mdf", tmp_path / "x.mep"
    path.write_bytes(b"".join(record(5 + i % 2, i) for i in range(10)))
    packed.write_bytes(mep(5, [0, 1]) + mep(6, [2, 3]))
    assert events(meps_of_files([path], LHCB_READOUT, Packing(events_per_mep=4, max_fragment_bytes=1000, run=9))) == [
        (9, i) for i in range(10)
    ]
    [stream] = streams_of(packed, run=9)
    assert events(stream) == [(9, i) for i in range(4)]


def test_each_run_has_its_own_sources_bank_versions_and_name(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    path.write_bytes(record(5, 0) + record(6, 0, version=3) + record(5, 1) + record(6, 1, version=3))
    five, six = streams_of(path)
    assert five.sources == six.sources == (ODIN_SOURCE, VELO)
    assert [Mfp.parse(sent.mfps[VELO]).version for stream in (five, six) for sent in stream] == [4, 3]
    assert len({five.input_name, six.input_name, ""}) == 3
    # Another file with a third run changes no name: an interrupted replay can continue.
    other = tmp_path / "y.mdf"
    other.write_bytes(record(7, 0))
    assert [stream.input_name for stream in streams_of(path, other)[:2]] == [five.input_name, six.input_name]


def test_the_meps_of_two_runs_are_separated_and_a_mep_without_odin_follows_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "x.mep"
    path.write_bytes(
        mep(6, [9], with_odin=False) + mep(5, [0, 1]) + mep(6, [0, 1, 2]) + mep(6, [8], with_odin=False) + mep(5, [2])
    )
    five, six = streams_of(path, repeat=2)
    assert (five.run, five.n_events, six.run, six.n_events) == (5, 8, 6, 8)
    assert events(five) == [(5, 0), (5, 1), (5, 2)] * 2
    assert [sent.n_events for sent in five] == [1, 2, 1] * 2
    assert [sent.n_events for sent in six] == [3, 1] * 2
    assert events(six) == [(6, 0), (6, 1), (6, 2)] * 2


@pytest.mark.usefixtures("in_memory")
def test_damage_is_named_once_and_left_out_of_every_run(tmp_path: Path) -> None:
    path = tmp_path / "x.mdf"
    records = [bytearray(record(5 + i % 2, i)) for i in range(8)]
    records[3][-1] ^= 1
    path.write_bytes(b"".join(records))
    five, six = streams_of(path)
    assert events(five) == [(5, 0), (5, 2), (5, 4), (5, 6)]
    assert events(six) == [(6, 1), (6, 5), (6, 7)]
    assert five.damage is six.damage
    assert five.damage.n == 1
    assert f"MDF record at byte {sum(map(len, records[:3]))}" in five.damage.first[0]


def test_what_is_special_is_said_with_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.mdf"
    unknown = encode_banks([encode_odin(Odin(run=6, event_id=0)), RawBank(200, 1, 3, memoryview(b"whose"))])
    path.write_bytes(record(5, 0) + encode_record(unknown, run=6))
    say_what_is_special(streams_of(path))
    console.file.drain(5.0)  # type: ignore[attr-defined]
    said = " ".join(capfd.readouterr().err.split())
    assert "the input has events of 2 runs, which are sent one by one: 5, 6" in said
    assert "run 6: banks of type 200" in said or "run 6: not sent" in said
