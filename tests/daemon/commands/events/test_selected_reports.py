"""From raw banks to a file and back: the reports of accepted events hold what the lines selected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.framework.backends import cpu
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.evaluation.candidates import candidates_of, columns_of_candidates
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.reports import decode_dec_reports
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, decode_sel_reports

SEQUENCE = "forward_then_matching"
LINES = """
from hltnode.processing.lhcb.lines import *
lines = [
    Line("Hlt1Track", long_tracks, lambda t: t.pt > 1.2 * GeV),
    Line("Hlt1Muon", muons, lambda t: t.p > 3 * GeV),
    Line("Hlt1Pair", two_track_vertices, lambda v: (v.chi2 < 10) & (v.min_pt > 300 * MeV)),
    Line("Hlt1V0Pair", v0_pairs, lambda p: p.doca < 1000 * mm),
    Line("Hlt1Velo", velo_tracks, lambda t: (t.n_hits >= 16) | (t.n_hits == 4) & t.backward & (t.z < -100 * mm)),
    Line("Hlt1Vertex", primary_vertices, lambda v: v.n_tracks > 30),
    Line("Hlt1Crowded", event, lambda e: e.n_long_tracks > 5),
]
"""
HITS = ("velo_tracks.hit_count", "velo_tracks.hits", "velo_hits.id", "long_tracks.velo_track", "long_tracks.ut_hits")
OFFSETS = ("velo_clusters.offset", "ut_hits.offset", "scifi_hits.offset")
MORE = (*HITS, *OFFSETS, "ut_hits.id", "long_tracks.hits", "scifi_hits.id", "two_track_vertices.chi2")
runner = CliRunner()


def run(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def real_events(shared: Path) -> Path:
    return shared / "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"


@pytest.fixture(scope="module")
def trigger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selected")
    (folder / "lines.py").write_text(LINES)
    (folder / "trigger.toml").write_text(f'line_files = ["lines.py"]\nlines = []\n[sequence]\nname = "{SEQUENCE}"\n')
    return folder / "trigger.toml"


@pytest.fixture(scope="module")
def accepted(real_events: Path, shared: Path, trigger: Path) -> Path:
    path = trigger.parent / "accepted.mdf"
    geometry = ("--geometry", shared / "data/lhcb-geometry")
    run("process", real_events, "--trigger", trigger, "--backend", "cpu", "--threads", 1, "--accepted", path, *geometry)
    return path


@pytest.fixture(scope="module")
def found(real_events: Path, shared: Path, trigger: Path) -> Iterator[tuple[Any, int, dict[Column, NDArray[Any]]]]:
    """The trigger configuration, the number of events and the columns of all of them."""
    chain = CHAIN.with_sequence(SEQUENCE)
    configured = chain.load_trigger(trigger)
    columns = columns_of_candidates(configured.lines, chain.reports)
    names = {*MORE, *(column.name for column in columns)}
    backend = create_backend("cpu", chain.kernels, threads=1)
    geometry = chain.load_geometry(shared / "data/lhcb-geometry")
    limits = BatchLimits(events=16, input_bytes=4 << 20)
    engine = chain.create_engine(backend, geometry, configured, limits, retain=names)
    (batch,) = OfflineRunner(engine).run(encode_meps(engine.chain, read_events(real_events), 16))
    workspace = batch.workspace
    by_name = {column.name: column for column in (*workspace.sequence.columns, *columns)}
    content = {by_name[name]: workspace.fetch(name) for name in names}
    yield configured, workspace.n_events, content
    engine.close()


def reports_of(path: Path) -> list[tuple[Any, HltSelReports]]:
    found = []
    for banks in read_events(path):
        of_type = {bank.type: bank for bank in banks}
        report = decode_dec_reports(of_type[BankType.HLT_DEC_REPORTS])
        found.append((report, decode_sel_reports(of_type[BankType.HLT_SEL_REPORTS])))
    return found


def described(report: HltSelReports, index: int) -> Any:
    """An object by its hits, its parts, or its position."""
    one = report.objects[index]
    if one.parts:
        return tuple(described(report, part) for part in one.parts)
    return one.ids or one.info


def test_reports_hold_the_candidates_that_numpy_selects(
    accepted: Path, found: tuple[Any, int, dict[Column, NDArray[Any]]]
) -> None:
    configured, n_events, content = found
    columns = {column.name: values for column, values in content.items()}
    places = {column.collection.name: column.collection for column in content if column.collection is not None}

    def first(collection: str, event: int) -> int:
        placement = places[collection].placement
        assert placement is not None
        offsets = None if placement.offsets is None else columns[placement.offsets.name]
        return int(placement.first(offsets, n_events)[event])

    def velo_ids(event: int, track: int) -> tuple[int, ...]:
        at = first("velo_tracks", event) + track
        hits = columns["velo_tracks.hits"][26 * at :][: columns["velo_tracks.hit_count"][at]]
        return tuple(columns["velo_hits.id"][first("velo_hits", event) + hits].tolist())

    def ids(event: int, track: int) -> tuple[int, ...]:
        at = first("long_tracks", event) + track
        all_ids = velo_ids(event, int(columns["long_tracks.velo_track"][at]))
        for name, detector, width in (("ut_hits", "ut_hits", 4), ("hits", "scifi_hits", 12)):
            hits = columns[f"long_tracks.{name}"][width * at :][:width]
            all_ids += tuple(columns[f"{detector}.id"][first(detector, event) + hits[hits != 0xFFFF]].tolist())
        return all_ids

    def candidate(collection: str, event: int, number: int) -> Any:
        at = first(collection, event) + number
        if collection == "velo_tracks":
            return velo_ids(event, number)
        if collection == "long_tracks":
            return ids(event, number)
        if collection == "pvs":
            return tuple(columns["pvs.vertex"][at][axis].item() for axis in ("x", "y", "z"))
        name, part = ("vertices", "two_track_vertices") if collection == "v0_pairs" else ("tracks", "long_tracks")
        parts = columns[f"{collection}.{name}"][2 * at : 2 * at + 2].tolist()
        return tuple(candidate(part, event, one) for one in parts)

    evaluator = Evaluator(content, n_events)
    reports = reports_of(accepted)
    assert len(reports) == n_events, "the last line accepts every event"
    n_of_line = []
    for place, line in enumerate(configured.lines[:-1]):
        selected = candidates_of(line, evaluator)
        n_of_line.append(len(selected.event))
        for event, (report, objects) in enumerate(reports):
            numbers = selected.number[selected.event == event].tolist()
            expected = [candidate(selected.collection.name, event, number) for number in numbers[:32]]
            written = [described(objects, i) for i in objects.selections.get(place + 1, ())]
            assert written == expected, (line.name, event)
            assert (report.lines[place].decision, report.lines[place].candidates) == (
                bool(numbers),
                min(len(numbers), 15),
            )
    assert all(n_of_line), n_of_line
    assert max(len(objects.objects) for _, objects in reports) > 20


def test_objects_have_the_classes_and_numbers_of_lhcb(
    accepted: Path, found: tuple[Any, int, dict[Column, NDArray[Any]]]
) -> None:
    _, _, content = found
    chi2 = {
        round(float(value), 6)
        for column, values in content.items()
        if column.name.endswith("s.chi2")
        for value in values
    }
    for _, report in reports_of(accepted):
        kinds = [one.class_id for one in report.objects]
        assert kinds == sorted(kinds[: kinds.count(1)]) + sorted(kinds[kinds.count(1) :], reverse=True)
        for one in report.objects:
            if one.class_id == ClassId.TRACK:
                assert len(one.info) in (5, 8)
                assert len(one.ids) >= 3
                if len(one.info) == 8:
                    z, x, y, _tx, _ty, qop, _chi2, ndf = one.info
                    assert abs(z) < 1000
                    assert abs(x) < 50
                    assert abs(y) < 50
                    assert 0 < abs(qop) < 1e-2
                    n_velo = sum(1 for channel in one.ids if channel >> 28 == 2)
                    assert ndf == 2 * n_velo - 4
                    assert sum(1 for channel in one.ids if channel >> 28 == 5) >= 9
            elif one.class_id == ClassId.VERTEX and len(one.info) == 4:
                assert round(one.info[3], 6) in chi2
                assert len(one.parts) == 2


def test_inspect_shows_the_selected_objects_of_each_line(accepted: Path, trigger: Path) -> None:
    document = trigger.parent / "trigger.json"
    run("tck", "export", "--trigger", trigger, "-o", document)
    out = trigger.parent / "inspected.json"
    text = run("inspect", accepted, "--tck", document, "--json", out)
    (decisions,) = json.loads(out.read_text())["trigger"]["decisions"]
    by_name = {line["name"]: line["selected"] for line in decisions["lines"]}
    expected: dict[str, dict[str, int]] = {"Hlt1Crowded": {}}
    for name, place, kind in (("Hlt1Track", 1, "track"), ("Hlt1Pair", 3, "vertex"), ("Hlt1Velo", 5, "track")):
        expected[name] = {kind: sum(len(report.selections.get(place, ())) for _, report in reports_of(accepted))}
    assert {name: by_name[name] for name in expected} == expected
    assert f"{expected['Hlt1Pair']['vertex']} vertex" in text


def test_a_machine_without_compiler_writes_the_same_file(
    accepted: Path, real_events: Path, shared: Path, trigger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "compile_kernel", lambda *_: None)
    path = trigger.parent / "numpy.mdf"
    geometry = ("--geometry", shared / "data/lhcb-geometry")
    run("process", real_events, "--trigger", trigger, "--backend", "cpu", "--threads", 2, "--accepted", path, *geometry)
    assert path.read_bytes() == accepted.read_bytes()
