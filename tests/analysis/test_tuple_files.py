"""`hltnode process --tuple`: files that pandas, awkward and uproot read, with the values of the arrays."""

from __future__ import annotations

import json
from pathlib import Path

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import uproot
from typer.testing import CliRunner

from hltnode.analysis.tuple_files import column_name
from hltnode.daemon.cli import app
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from tests.analysis.conftest import FIELDS, run

OPTIONS = ("--backend", "cpu", "--threads", "2")


def test_one_row_per_event(real_events: Path, trigger: Path, arrays: ak.Array, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    paths = [tmp_path / f"events.{suffix}" for suffix in ("parquet", "root")]
    for path in paths:
        fields = ("--fields", ",".join(FIELDS[:3]), "--fields", ",".join(FIELDS[3:]))
        command = (
            "process",
            real_events,
            "--trigger",
            trigger,
            *OPTIONS,
            "--tuple",
            path,
            *fields,
            "--json",
            out,
            "--force",
        )
        output = run(*command, "--json", out, "--force")
        n_columns = len(arrays.attrs["fields"])
        assert f"events.{path.suffix[1:]}: 7 rows of {n_columns} columns" in output
        found = json.loads(out.read_text())["tuple"]
        assert (found["rows"], found["columns"], found["file"]) == (7, n_columns, str(path))
        assert found["seconds"] > 0
        assert found["seconds_ratio"] > 1
    parquet = ak.from_parquet(paths[0])
    root = uproot.open(paths[1])["events"].arrays()
    frame = pd.read_parquet(paths[0])
    for name in arrays.attrs["fields"]:
        expected = arrays
        for part in name.split("."):
            expected = expected[part]
        column = column_name(name)
        for read in (parquet[column], root[column], ak.Array(frame[column].to_list())):
            assert ak.array_equal(ak.nan_to_num(read, nan=-1), ak.nan_to_num(expected, nan=-1), dtype_exact=False), name
        assert ak.type(parquet[column]) == ak.type(expected)
    about = pq.read_schema(paths[0]).field("long_tracks_pt").metadata
    assert about == {b"unit": b"MeV", b"description": b"transverse momentum"}


def test_one_row_per_candidate(real_events: Path, trigger: Path, arrays: ak.Array, tmp_path: Path) -> None:
    fields = "event.event_id_low,decisions.Hlt1Pair,two_track_vertices.m_pipi,two_track_vertices.track1.pt"
    for suffix in ("parquet", "root"):
        path = tmp_path / f"pairs.{suffix}"
        # Two passes over the file: the index of the event goes on, its number does not.
        command = ("process", real_events, real_events, "--trigger", trigger, *OPTIONS)
        run(*command, "--tuple", path, "--fields", fields, "--rows", "two_track_vertices")
        frame = pd.read_parquet(path) if suffix == "parquet" else uproot.open(path)["events"].arrays(library="pd")
        n = ak.num(arrays.two_track_vertices).to_numpy()
        expected = pd.DataFrame(
            {
                "event_index": np.repeat(np.arange(14), np.tile(n, 2)),
                "event_event_id_low": np.tile(np.repeat(np.arange(6001, 6008), n), 2),
                "decisions_Hlt1Pair": np.tile(np.repeat(arrays.decisions.Hlt1Pair.to_numpy(), n), 2),
                "two_track_vertices_m_pipi": np.tile(ak.flatten(arrays.two_track_vertices.m_pipi).to_numpy(), 2),
                "two_track_vertices_track1_pt": np.tile(ak.flatten(arrays.two_track_vertices.track1.pt).to_numpy(), 2),
            }
        )
        pd.testing.assert_frame_equal(frame, expected, check_dtype=False)


@pytest.mark.parametrize("suffix", ["parquet", "root"])
def test_no_row_gives_a_file_with_columns(real_events: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"none.{suffix}"
    second = list(iter_records(real_events.read_bytes()))[1]
    without_dimuon = tmp_path / "second.mdf"
    without_dimuon.write_bytes(encode_record(bytes(second.body), run=1))
    fields = ("--fields", "event.n_pvs,dimuons.mass,dimuons.track1.is_muon", "--rows", "dimuons")
    run("process", without_dimuon, *OPTIONS, "--tuple", path, *fields)
    frame = pd.read_parquet(path) if suffix == "parquet" else uproot.open(path)["events"].arrays(library="pd")
    assert list(frame.columns) == ["event_index", "event_n_pvs", "dimuons_mass", "dimuons_track1_is_muon"]
    assert len(frame) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tuple", "x.csv"), "expected one of .parquet, .root as suffix"),
        (("--fields", "event.run"), "expected --tuple with --fields and --rows"),
        (("--rows", "muons"), "expected --tuple with --fields and --rows"),
        (("--tuple", "x.root", "--repeat", "2"), "expected only one of --repeat"),
        (
            ("--tuple", "x.root", "--fields", "event.run", "--rows", "muons"),
            "rows 'muons': expected event, or an input",
        ),
        (
            ("--tuple", "x.root", "--fields", "muons.p,velo_tracks.x", "--rows", "muons"),
            "field 'velo_tracks.x': it is no field of muons",
        ),
        (("--tuple", "x.root", "--fields", "muons.x.y"), "x is a number and has no fields"),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(
    real_events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["process", str(real_events), *OPTIONS, *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []
