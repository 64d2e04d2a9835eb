"""Events of a file: banks, decisions, and selected candidates with names and numbers."""

from __future__ import annotations

from pathlib import Path

import awkward as ak
import numpy as np
import pytest

import hltnode
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import encode_banks, iter_banks
from hltnode.protocol.raw_data.reports import HltDecReports, LineReport
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject
from tests.analysis.conftest import run
from tests.protocol.raw_data.report_encoders import encode_dec_reports, encode_sel_reports


@pytest.fixture(scope="module")
def accepted(real_events: Path, trigger: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("accepted") / "accepted.mdf"
    run("process", real_events, "--trigger", trigger, "--backend", "cpu", "--threads", 1, "--accepted", path)
    return path


def test_banks_are_found_by_type_and_source(real_events: Path) -> None:
    file = hltnode.open(real_events)
    assert len(file) == 7
    assert [event.number for event in file] == [event.number for event in file[:]] == list(range(6001, 6008))
    event = file[-1]
    assert (event.index, event.number, event.run) == (6, 6007, file[0].run)
    record = list(iter_records(real_events.read_bytes()))[6]
    expected = list(iter_banks(record.body))
    assert [(bank.type, bank.version, bank.source, bank.data.tobytes()) for bank in event.banks] == [
        (bank.type, bank.version, bank.source_id, bytes(bank.payload)) for bank in expected
    ]
    (odin,) = event.banks_of("ODIN")
    assert odin.name == "ODIN"
    assert [bank.data.tobytes() for bank in event.banks_of(odin.type)] == [odin.data.tobytes()]
    velo = event.banks_of("VP_RETINA_CLUSTER")
    assert len(velo) > 1
    assert [bank.source for bank in event.banks_of(velo[1].name, velo[1].source)] == [velo[1].source]
    with pytest.raises(ValueError, match="VP_RETINA_CLUSTER"):
        event.banks_of("VELO_RETINA")
    with pytest.raises(IndexError, match="no event 7: the file has 7 events"):
        file[7]
    assert event.decisions == ()
    assert event.candidates("Hlt1Track") == ()


def test_candidates_have_the_numbers_of_the_arrays(accepted: Path, arrays: ak.Array) -> None:
    events = {event.number: event for event in hltnode.open(accepted)}
    lines = [name for name in arrays.decisions.fields if name != "accepted"]
    for of_event in arrays[arrays.decisions.accepted]:
        event = events.pop(of_event.event.event_id_low)
        assert event.decisions == tuple(name for name in lines if of_event.decisions[name])
        tracks = of_event.long_tracks
        selected = event.candidates("Hlt1Track")
        chosen = tracks[tracks.pt > 2000.0]
        assert len(selected) == len(chosen)
        for track, expected in zip(selected, chosen, strict=True):
            assert track.kind == "track"
            assert list(track.numbers) == ["z", "x", "y", "tx", "ty", "qop", "chi2", "ndf"]
            for name in ("z", "x", "y", "tx", "ty", "qop", "chi2"):
                assert np.float32(track.numbers[name]) == expected[name]
            assert track.tx == track.numbers["tx"]
            assert track.ndf > 0
            assert len(track.channels) > 10
            assert len(set(track.channels.tolist())) == len(track.channels)
        pairs = of_event.two_track_vertices
        for pair, expected in zip(
            event.candidates("Hlt1Pair"), pairs[(pairs.chi2 < 10.0) & (pairs.min_pt > 500.0)], strict=True
        ):
            assert (pair.kind, list(pair.numbers)) == ("vertex", ["x", "y", "z", "chi2"])
            assert np.float32(pair.chi2) == expected.chi2
            assert [np.float32(part.qop) for part in pair.parts] == [expected.track1.qop, expected.track2.qop]
        for vertex in event.candidates("Hlt1Vertex"):
            assert list(vertex.numbers) == ["x", "y", "z"]
            assert np.float32(vertex.z) in of_event.primary_vertices.z.to_list()
        assert event.candidates("Hlt1Crowded") == ()
        with pytest.raises(AttributeError, match="a track with the numbers z, x"):
            _ = (
                selected[0].charge
                if selected
                else hltnode.SelectedCandidate("track", {"z": 0, "x": 0}, np.zeros(0, np.uint32)).p
            )
    assert not events


def test_lines_have_numbers_without_their_document(accepted: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.mdf"
    alone.write_bytes(accepted.read_bytes())
    named = [event.decisions for event in hltnode.open(accepted)]
    (document,) = accepted.parent.glob("0x*.json")
    assert [event.decisions for event in hltnode.open(alone, tck=[document])] == named
    unnamed = [event.decisions for event in hltnode.open(alone)]
    assert all(name.startswith("line ") for names in unnamed for name in names)
    assert [len(names) for names in unnamed] == [len(names) for names in named]


def test_an_object_that_is_a_part_of_itself_is_refused(tmp_path: Path) -> None:
    selection = ReportedObject(ClassId.SELECTION, (1.0,), parts=(1,))
    for loop, whole in (((1,), False), ((2,), True)):
        objects = [selection, ReportedObject(ClassId.VERTEX, parts=loop), ReportedObject(ClassId.VERTEX)]
        banks = [
            encode_dec_reports(HltDecReports(0, 0, 1, (LineReport(True, 1),))),
            encode_sel_reports(HltSelReports(tuple(objects))),
        ]
        path = tmp_path / "loop.mdf"
        path.write_bytes(encode_record(encode_banks(banks), run=1))
        (event,) = hltnode.open(path)
        assert event.decisions == ("line 1",)
        if whole:
            (vertex,) = event.candidates("line 1")
            assert [part.kind for part in vertex.parts] == ["vertex"]
        else:
            with pytest.raises(ValueError, match="part of itself"):
                event.candidates("line 1")


def test_text_of_an_event_and_a_missing_file(real_events: Path, tmp_path: Path) -> None:
    event = hltnode.open(real_events)[0]
    assert repr(event) == f"<run {event.run}, event 6001: {len(event.banks)} banks>"
    assert "data" not in repr(event.banks[0])
    with pytest.raises(FileNotFoundError):
        hltnode.open(tmp_path / "none.mdf")
