"""hltnode rates."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.daemon.commands.cached_samples import CachedOption
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.tools.simulation import LhcbSimulation
from hltnode.processing.offline.sample_cache import NamedSample
from hltnode.protocol.lhcb.bank_types import TRUTH_TYPES
from hltnode.protocol.lhcb.truth import decode_vertices
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks
from tests.processing.lhcb.full_events import full_events

TRIGGER = """
[sequence]
name = "velo"
[[lines]]
type = "NDisplacedVeloTracks"
name = "Hlt1Displaced"
[[lines]]
type = "VeloMicroBias"
name = "Hlt1MicroBias"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty crossings with two collisions in the mean, in two files; and two configurations."""
    found = tmp_path_factory.mktemp("rates")
    events = list(simulate_events(40, 2, geometry=VeloGeometry.builtin(), nu=2.0))
    records = [encode_record(encode_banks(banks), run=1) for banks in events]
    (found / "first.mdf").write_bytes(b"".join(records[:15]))
    (found / "second.mdf").write_bytes(b"".join(records[15:]))
    (found / "one.toml").write_text(TRIGGER)
    (found / "other.toml").write_text(TRIGGER + "min_tracks = 30\n")
    vertices = [decode_vertices(next(b for b in banks if b.type == 33)) for banks in events]
    (found / "empty.json").write_text(json.dumps(sum(len(one) == 0 for one in vertices)))
    return found


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["rates", *(str(argument) for argument in arguments)])


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_every_event_of_all_files_is_a_crossing_even_without_collision(folder: Path, tmp_path: Path) -> None:
    files = (folder / "first.mdf", folder / "second.mdf")
    found = run(*files, "--trigger", folder / "one.toml", "--json", tmp_path / "out.json", "--crossing-rate", 4e4)
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "out.json").read_text())
    without_collision = json.loads((folder / "empty.json").read_text())
    assert without_collision > 0
    assert (result["events"], result["sequence"], result["crossing_rate_hz"]) == (40, "velo", 4e4)
    line = result["lines"]["Hlt1MicroBias"]
    assert {"rate_hz", "error_hz", "exclusive_hz"} <= line.keys()
    assert line["events"] <= 40 - without_collision
    assert line["rate_hz"] == 1e3 * line["events"]
    assert result["total"]["rate_hz"] >= line["rate_hz"] > 0
    assert result["total"]["error_hz"] > 0
    assert "compare" not in result
    assert np.shape(result["overlap"]["events"]) == (2, 2)


def test_json_table_and_report_contain_a_scan_and_a_second_configuration(folder: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "page.html"
    found = run(
        *(folder / "second.mdf", "--trigger", folder / "one.toml", "--compare", folder / "other.toml"),
        *("--scan", "Hlt1MicroBias.min_tracks=1,30,1000", "--json", out, "--report", page, "--threads", 1),
    )
    assert found.exit_code == 0, found.output
    result = json.loads(out.read_text())
    points = result["scans"][0]["points"]
    rates = [point["line"]["rate_hz"] for point in points]
    assert rates[0] == result["lines"]["Hlt1MicroBias"]["rate_hz"]
    assert rates[1] == result["compare"]["lines"]["Hlt1MicroBias"]["rate_hz"]
    assert rates[2] == 0.0
    assert points[2]["total"]["rate_hz"] == result["lines"]["Hlt1Displaced"]["rate_hz"]
    assert "other.toml: rate [kHz]" in found.output
    assert "one.toml: Hlt1MicroBias.min_tracks" in found.output
    text = page.read_text()
    assert text.count("<figure>") == 4
    assert "one.toml against other.toml" in text


def test_the_columns_of_the_report_have_numbers_to_sort_by_and_bars(folder: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "page.html"
    options = ("--scan", "Hlt1MicroBias.min_tracks=1,1000", "--json", out, "--report", page, "--threads", 1)
    found = run(folder / "second.mdf", "--trigger", folder / "one.toml", *options)
    assert found.exit_code == 0, found.output
    of_lines, of_scan, *_ = (rows_of(table) for table in re.findall(r"<table.*?</table>", page.read_text(), re.DOTALL))
    heads = ["line", "events", "rate [kHz]", "events for 10 %", "alone [kHz]", "kept [MB/s]"]
    assert [text for _, text in of_lines[0]] == heads
    result = json.loads(out.read_text())
    for (_, name), *cells in of_lines[1:-1]:
        of = result["lines"][name]
        assert [value_of(attributes) for attributes, _ in cells] == [
            of["events"],
            of["rate_hz"] / 1e3,
            of["events_for_10_percent"],
            of["exclusive_hz"] / 1e3,
            of["bytes_per_second"] / 1e6,
        ]
    rates = [value_of(row[2][0]) for row in of_lines[1:-1]]
    shares = [float(re.findall(r"--share:([\d.]+)%", row[2][0])[0]) for row in of_lines[1:-1]]
    assert shares == pytest.approx([100 * rate / max(rates) for rate in rates], abs=0.05)
    assert ["--share" in attributes for attributes, _ in of_lines[1]] == [False, False, True, False, True, True]
    assert not any("--share" in attributes for attributes, _ in of_lines[-1])
    column = [text for _, text in of_scan[0]].index("events for 10 %, line")
    needed = [point["line"]["events_for_10_percent"] for point in result["scans"][0]["points"]]
    assert [value_of(row[column][0]) for row in of_scan[1:]] == needed
    assert of_scan[2][column][1].startswith("&gt;")


def rows_of(table: str) -> list[list[tuple[str, str]]]:
    """Attributes and text of each cell, by row."""
    return [
        [(attributes, text.strip()) for attributes, text in re.findall(r"<t[hd]([^>]*)>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    ]


def value_of(attributes: str) -> float:
    return float(re.findall('data-value="([^"]+)"', attributes)[0])


def test_a_cached_sample_by_name_replaces_the_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"few": NamedSample(events=6, options={"nu": 1.0, "enrich": True}, description="")}
    monkeypatch.setattr(LhcbSimulation, "named_samples", few)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = ("--cached", "few", "--trigger", folder / "one.toml", "--json", tmp_path / "out.json")
    assert "simulated" in run(*arguments).output
    again = run(*arguments, "--force")
    assert "from the cache" in again.output
    result = json.loads((tmp_path / "out.json").read_text())
    assert (result["events"], result["sample"]["kinds"], result["sample"]["weighted"]) == (6, {"minbias": 6}, True)
    assert "6 events with weights" in again.output
    assert "--cached none, chain lhcb: no sample 'none'; the chain has few" in error_of(run("--cached", "none"))
    assert "INPUT or --cached NAME, not both" in error_of(run("--cached", "few", folder / "first.mdf"))
    assert "expected INPUT" in error_of(run())


def test_help_names_every_cached_sample() -> None:
    """--cached names the option of simulate that lists the others."""
    words = set(str(typing.get_args(CachedOption)[1].help).replace(",", " ").replace(".", " ").split())
    shown = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "400"}).output
    listed = re.search(r"--sample <([^>]*)>", shown)
    assert listed is not None
    assert "--sample" in words
    assert set(LhcbSimulation().named_samples) <= {*listed[1].split("|"), *words}


def test_signal_is_named_in_the_table_and_recorded_data_are_not(folder: Path, tmp_path: Path) -> None:
    events = full_events(2, 3, sample="z", nu=1.0)
    recorded = [[bank for bank in banks if bank.type not in TRUTH_TYPES] for banks in events]
    for name, of, warns in (("z", events, True), ("recorded", recorded, False)):
        path = tmp_path / f"{name}.mdf"
        path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in of))
        output = run(path, "--trigger", folder / "one.toml").output
        assert ("warning: the sample is z, not minimum bias" in output) is warns


def test_unreadable_input_is_one_line_with_exit_code_2(folder: Path, tmp_path: Path) -> None:
    sample, trigger = folder / "first.mdf", folder / "one.toml"
    empty, broken = tmp_path / "empty.mdf", tmp_path / "broken.toml"
    empty.write_bytes(b"")
    broken.write_text("[menu")
    assert "empty.mdf: the file is empty" in error_of(run(empty, "--trigger", trigger))
    assert "none.mdf: No such file" in error_of(run(tmp_path / "none.mdf", "--trigger", trigger))
    assert "broken.toml: not a TOML file" in error_of(run(sample, "--trigger", broken))
    assert "none.toml: cannot be read" in error_of(
        run(sample, "--trigger", trigger, "--compare", tmp_path / "none.toml")
    )
    assert "LINE.CUT=FIRST:LAST:N" in error_of(run(sample, "--trigger", trigger, "--scan", "Hlt1MicroBias"))
    assert "Hlt1MicroBios: no line has this name; the nearest are Hlt1MicroBias" in error_of(
        run(sample, "--trigger", trigger, "--scan", "Hlt1MicroBios.min_tracks=1,2")
    )
    assert "given twice" in error_of(run(sample, sample, "--trigger", trigger))
    assert "2 to 1000 finite values" in error_of(
        run(sample, "--trigger", trigger, "--scan", "Hlt1MicroBias.min_tracks=1:2:1")
    )
    assert "a finite rate above 0 is expected" in error_of(run(sample, "--trigger", trigger, "--crossing-rate", 0))
    assert "there is no folder" in error_of(run(sample, "--trigger", trigger, "--json", tmp_path / "no" / "out.json"))
