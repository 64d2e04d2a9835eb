"""Fields of events as arrays: the numbers that lines compare, for all candidates."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import awkward as ak
import numpy as np
import pytest

import hltnode
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.analysis.conftest import run


def test_each_event_has_its_candidates_and_lines_select_by_these_numbers(
    arrays: ak.Array, real_events: Path, trigger: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    run("process", real_events, "--trigger", trigger, "--backend", "cpu", "--threads", 1, "--json", out)
    per_event = json.loads(out.read_text())["per_event"]
    assert arrays.event.event_id_low.to_list() == [event["event"] for event in per_event] == list(range(6001, 6008))
    for name, count in (
        ("long_tracks", "long_tracks"),
        ("two_track_vertices", "secondary_vertices"),
        ("primary_vertices", "pvs"),
    ):
        assert ak.num(arrays[name]).to_list() == [event[count] for event in per_event]
    decided = {name: [name in event["lines"] for event in per_event] for name in arrays.decisions.fields[1:]}
    assert {name: arrays.decisions[name].to_list() for name in decided} == decided
    assert arrays.decisions.accepted.to_list() == [event["accepted"] for event in per_event]
    assert decided["Hlt1Track"] == ak.any(arrays.long_tracks.pt > 2000.0, axis=1).to_list()
    pairs = arrays.two_track_vertices
    assert decided["Hlt1Pair"] == ak.any((pairs.chi2 < 10.0) & (pairs.min_pt > 500.0), axis=1).to_list()
    assert decided["Hlt1Vertex"] == ak.any(arrays.primary_vertices.n_tracks > 60.0, axis=1).to_list()
    assert decided["Hlt1Crowded"] == (arrays.event.n_long_tracks > 50).to_list()
    # The cuts divide the events, so a field of another candidate or event would be noticed.
    assert all(0 < sum(values) < 7 for values in decided.values())


def test_values_agree_with_each_other(arrays: ak.Array) -> None:
    pairs = arrays.two_track_vertices
    # min_pt is taken at the vertex, pt at the beam line.
    assert ak.all(np.isclose(np.minimum(pairs.track1.pt, pairs.track2.pt), pairs.min_pt, rtol=0.01))
    assert ak.sum(pairs.track1.pt < pairs.track2.pt) > 0
    assert ak.sum(pairs.track1.pt > pairs.track2.pt) > 0
    assert ak.all(np.isclose(np.hypot(pairs.px, pairs.py), pairs.pt, rtol=1e-5))
    tracks = arrays.long_tracks
    slope = np.hypot(tracks.tx, tracks.ty)
    assert ak.all(np.isclose(tracks.p * slope / np.sqrt(1 + slope**2), tracks.pt, rtol=1e-5))
    assert ak.all(np.isclose(1 / abs(tracks.qop), tracks.p, rtol=1e-6))
    for of_tracks, vertices in zip(tracks.to_list(), arrays.primary_vertices.z.to_list(), strict=True):
        of_vertices = [track["pv"]["z"] for track in of_tracks if track["has_pv"]]
        assert set(of_vertices) <= set(vertices)
        assert len(set(of_vertices)) > 1
        assert all(np.isnan(track["pv"]["z"]) for track in of_tracks if not track["has_pv"])
    assert ak.all(ak.num(arrays.muons) == ak.sum(tracks.is_muon, axis=1))
    assert ak.sum(tracks.is_muon) > 0
    assert arrays.muons.p.to_list() == tracks.p[tracks.is_muon].to_list()


def test_types_units_and_descriptions(arrays: ak.Array) -> None:
    chosen = arrays[["long_tracks"]][["long_tracks"]]
    assert str(chosen.long_tracks[["pt", "is_muon", "n_scifi_hits"]].type) == (
        "7 * var * {pt: float32, is_muon: bool, n_scifi_hits: uint32}"
    )
    assert arrays.attrs["fields"]["long_tracks.pt"] == {"unit": "MeV", "description": "transverse momentum"}
    assert arrays.attrs["fields"]["long_tracks.pv.z"] == {
        "unit": "mm",
        "description": "the primary vertex with the smallest ip_chi2: position",
    }
    assert arrays.attrs["fields"]["event.n_pvs"]["unit"] == ""
    assert (arrays.attrs["chain"], arrays.attrs["sequence"]) == ("lhcb", "forward_then_matching")
    listed = {field.name for field in hltnode.fields()}
    # All fields without wildcard are listed, related ones excepted.
    assert {name for name in arrays.attrs["fields"] if name.count(".") == 1 and "decisions" not in name} <= listed


def test_chunks_are_the_parts_of_the_whole(real_events: Path) -> None:
    several = [real_events] * 40
    seen: list[int] = []
    fields = ("event.event_id_low", "velo_tracks.x", "primary_vertices.z")
    options: dict[str, Any] = {"sequence": "velo", "backend": "cpu", "threads": 1}
    chunks = list(hltnode.iterate(several, fields, step=150, progress=seen.append, **options))
    assert [len(chunk) for chunk in chunks][:-1] == [n for n in map(len, chunks) if n >= 150]
    assert len(chunks) > 1
    whole = hltnode.process(several, fields, **options)
    assert sum(seen) == len(whole) == 280
    assert ak.concatenate(chunks).to_list() == whole.to_list()
    assert whole.event.event_id_low.to_list() == list(range(6001, 6008)) * 40
    assert whole[:7].to_list() == whole[-7:].to_list()


def test_an_array_has_no_more_events_than_reach_the_step(real_events: Path) -> None:
    options: dict[str, Any] = {"sequence": "velo", "backend": "cpu", "threads": 1}
    sizes = [len(part) for part in hltnode.iterate([real_events] * 40, "event.n_pvs", step=1, **options)]
    assert len(sizes) > 2
    again = hltnode.iterate([real_events] * 40, "event.n_pvs", step=sizes[0], **options)
    assert [len(part) for part in again][:1] == sizes[:1]


def test_usual_fields_are_those_that_the_sequence_makes(real_events: Path) -> None:
    velo = hltnode.process(real_events, sequence="velo", backend="cpu", threads=1)
    assert velo.fields == ["event", "decisions"]
    whole = hltnode.process(real_events, backend="cpu", threads=1)
    assert len(whole.attrs["fields"]) == 20


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("long_tracks.ptt", "field 'long_tracks.ptt': long tracks have no such field; the nearest are pt, p"),
        ("tracks.pt", "field 'tracks.pt': expected INPUT.FIELD with an input of chain lhcb"),
        ("long_tracks", "expected INPUT.FIELD"),
        ("long_tracks.pv", "it is a candidate of primary vertices: choose one of its fields (long_tracks.pv.n_tracks"),
        ("long_tracks.pt.x", "field 'long_tracks.pt.x': pt is a number and has no fields"),
        ("decisions.Hlt1TrackMV", "the configuration has no such line; the nearest are Hlt1TrackMVA"),
        ("lang_tracks.*", "no field of chain lhcb matches it"),
        ("muons.p", "field 'muons.p': it reads"),
    ],
)
def test_a_field_that_does_not_exist_is_named(real_events: Path, field: str, message: str) -> None:
    with pytest.raises(ValueError, match="field") as error:
        hltnode.process(real_events, field, sequence="velo" if field == "muons.p" else None, backend="cpu")
    assert message in str(error.value)


def test_a_damaged_event_ends_the_work_or_is_left_out(real_events: Path, tmp_path: Path) -> None:
    content = real_events.read_bytes()
    cut = tmp_path / "cut.mdf"
    cut.write_bytes(content[:-4])
    options: dict[str, Any] = {"sequence": "velo", "backend": "cpu", "threads": 1}
    with pytest.raises(hltnode.EventFileError, match=r"cut\.mdf"):
        hltnode.process(cut, "event.n_pvs", **options)
    events = hltnode.process(cut, "event.n_pvs", damaged="skip", **options)
    assert len(events) == 6
    (text,) = events.attrs["damage"]
    assert "cut.mdf" in text
    cut.write_bytes(content[:100])
    with pytest.raises(hltnode.EventFileError, match="100 are left"):
        hltnode.iterate(cut, "event.n_pvs", damaged="skip", **options)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.mdf"):
        hltnode.process(tmp_path / "nowhere.mdf", "event.n_pvs")
    invalid: tuple[dict[str, Any], ...] = ({"damaged": "ignore"}, {"step": 0}, {"files": []})
    for arguments in invalid:
        given: dict[str, Any] = {"files": cut, "fields": "event.n_pvs"} | arguments
        with pytest.raises(ValueError, match="expected"):
            hltnode.iterate(**given)


def test_another_chain(tiny: ModuleType, tmp_path: Path) -> None:
    hits = [3, 0, 12, 7]
    path = tmp_path / "tiny.mdf"
    banks = (
        [
            RawBank(tiny.HITS, 1, source, memoryview(n * b"\xff"))
            for n, source in ((hits[i], tiny.SOURCES[0]), (1, tiny.SOURCES[1]))
        ]
        for i in range(4)
    )
    path.write_bytes(b"".join(encode_record(encode_banks(of_event), run=1) for of_event in banks))
    events = hltnode.process(path, "event.n_hits", chain="tiny", backend="cpu", threads=1)
    assert events.event.n_hits.to_list() == [n + 1 for n in hits]
    assert hltnode.process(path, chain="tiny", backend="cpu", threads=1).event.fields == ["n_hits", "number"]
