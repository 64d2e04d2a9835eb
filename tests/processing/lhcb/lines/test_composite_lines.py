"""Lines on decays into more than two tracks: both sides of each cut, the menu, and a mass peak in simulated decays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs.event_fields import EVENT_WORDS
from hltnode.processing.lhcb.lines.line_types.composite_lines import (
    COMPOSITES,
    ECAL_LINES,
    LINES,
    TAU_MASS,
    three_muons,
)
from hltnode.processing.lhcb.lines.line_types.downstream_composites import COMPOSITES as DOWNSTREAM_COMPOSITES
from hltnode.processing.lhcb.lines.line_types.downstream_composites import LINES as DOWNSTREAM_LINES
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.lhcb.secondary_vertices.collections import VertexKind
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.expressions.nodes import Element, postorder
from hltnode.processing.selection.prefilter_events import Stages
from hltnode.processing.selection.studies.decided_events import LIMITS
from tests.processing.selection.line_evaluators import Case, by_compiler, by_numpy

KS, LAMBDA = int(VertexKind.VERTEX_KS), int(VertexKind.VERTEX_LAMBDA)
USUAL = {"pt": 5000.0, "doca": 0.05, "chi2": 2.0, "fd": 50.0, "dira": 1.0}
SLOPE = 0.1
"""Of the track of a candidate: pt is its momentum divided by some 10."""

Changes = list[tuple[dict[str, float], bool]]
"""Changes of a candidate by columns, and whether the line still selects it."""

DOWNSTREAM_KS = {"downstream_v0s.m_pipi": 497.0, "downstream_v0s.pt": 3000.0}
OF_DOWNSTREAM_KS: Changes = [
    ({"downstream_v0s.m_pipi": 472.0}, False),
    ({"downstream_v0s.m_pipi": 523.0}, False),
    ({"downstream_v0s.m_pipi": 475.0}, True),
    ({"downstream_v0s.pt": 490.0}, False),
    ({"pt": 1990.0}, False),
    ({"doca": 2.9}, True),
    ({"doca": 3.1}, False),
]
"""Cuts that the lines with a downstream K0S share."""

CUTS: dict[str, tuple[dict[str, float], Changes]] = {
    "Hlt1Dst2D0Pi": (
        {"mass": 2010.2, "two_track_vertices.m_kpi": 1864.8, "two_track_vertices.min_ip_chi2": 10.0},
        [
            ({"mass": 2007.0}, False),
            ({"mass": 2013.5}, False),
            ({"mass": 2012.5}, True),
            ({"two_track_vertices.m_kpi": 1800.0, "mass": 1945.5}, False),
            ({"two_track_vertices.m_kpi": 1810.0, "mass": 1955.5}, True),
            ({"two_track_vertices.m_kpi": 0.0, "two_track_vertices.m_pik": 1864.8}, True),
            ({"two_track_vertices.min_ip_chi2": 3.9}, False),
            ({"pt": 1990.0}, False),
            ({"doca": 0.29}, True),
            ({"doca": 0.31}, False),
        ],
    ),
    "Hlt1D2KPiPi": (
        {"mass": 1869.0},
        [
            ({"mass": 1809.0}, False),
            ({"mass": 1930.5}, False),
            ({"mass": 1925.0}, True),
            ({"pt": 1990.0}, False),
            ({"fd": 1.9}, False),
            ({"dira": 0.998}, False),
        ],
    ),
    "Hlt1TauTo3Mu": (
        {"mass": 1777.0},
        [
            ({"mass": 1550.0}, False),
            ({"mass": 2003.0}, False),
            ({"mass": 1990.0}, True),
            ({"pt": 490.0}, False),
            ({"fd": 0.01}, True),
            ({"dira": 0.89}, False),
        ],
    ),
    "Hlt1TauToPhiMu": (
        {"mass": 1777.0, "two_track_vertices.m_kk": 1020.0},
        [
            ({"mass": 1550.0}, False),
            ({"mass": 2003.0}, False),
            ({"two_track_vertices.m_kk": 999.0}, False),
            ({"two_track_vertices.m_kk": 1040.0}, False),
            ({"pt": 990.0}, False),
            ({"dira": 0.98}, False),
        ],
    ),
    **{
        name: (
            {"mass": 494.0},
            [
                ({"mass": 494.0 - window - 1}, False),
                ({"mass": 494.0 - window + 2}, True),
                ({"mass": 494.0 + window + 1}, False),
                ({"pt": 490.0}, False),
                ({"fd": 19.0}, False),
                ({"dira": 0.998}, False),
            ],
        )
        for name, window in (("Hlt1Kplus2PiMuMu", 30.0), ("Hlt1Kplus23Pi", 30.0), ("Hlt1Kplus2PiEE", 80.0))
    },
    **{
        name: (
            {"two_track_vertices.kind": own, "long_tracks.beam_qop": 1e-4, "long_tracks.ip_chi2": 20.0},
            [
                ({"two_track_vertices.kind": other}, False),
                ({"two_track_vertices.kind": KS | LAMBDA}, own == KS),
                ({"long_tracks.beam_qop": 2.1e-4}, False),
                ({"long_tracks.ip_chi2": 11.0}, False),
                ({"pt": 2490.0}, False),
                ({"fd": 1.9}, False),
                ({"dira": 0.98}, False),
            ],
        )
        for name, own, other in (("Hlt1KsLLDetachedTrack", KS, LAMBDA), ("Hlt1LambdaLLDetachedTrack", LAMBDA, KS))
    },
    "Hlt1XiOmegaLLL": (
        {"mass": 1322.0, "m_omega": 1500.0},
        [
            ({"mass": 1290.0}, False),
            ({"mass": 1353.0}, False),
            ({"mass": 1400.0, "m_omega": 1672.0}, True),
            ({"mass": 1400.0, "m_omega": 1703.0}, False),
            ({"mass": 1400.0, "m_omega": 1641.0}, False),
            ({"pt": 990.0}, False),
            ({"fd": 4.9}, False),
            ({"dira": 0.9994}, False),
        ],
    ),
    "Hlt1D2Kshh": (
        {"mass": 1865.0},
        [({"mass": 1784.0}, False), ({"mass": 1946.0}, False), ({"pt": 1990.0}, False), ({"dira": 0.998}, False)],
    ),
    "Hlt1D2KshhDD": (
        {"mass": 1865.0, **DOWNSTREAM_KS, "two_track_vertices.fd_chi2": 30.0},
        [
            ({"mass": 1784.0}, False),
            ({"mass": 1946.0}, False),
            ({"mass": 1940.0}, True),
            ({"two_track_vertices.fd_chi2": 24.0}, False),
            *OF_DOWNSTREAM_KS,
        ],
    ),
    "Hlt1D02KsKsLD": (
        {"mass": 1865.0, **DOWNSTREAM_KS, "two_track_vertices.m_pipi": 497.0, "two_track_vertices.pt": 3000.0},
        [
            ({"mass": 1804.0}, False),
            ({"mass": 1926.0}, False),
            ({"two_track_vertices.m_pipi": 472.0}, False),
            ({"two_track_vertices.m_pipi": 523.0}, False),
            ({"two_track_vertices.pt": 490.0}, False),
            *OF_DOWNSTREAM_KS,
        ],
    ),
    "Hlt1D02KsKsDD": (
        {"mass": 1865.0, **DOWNSTREAM_KS},
        [({"mass": 1804.0}, False), ({"mass": 1926.0}, False), *OF_DOWNSTREAM_KS],
    ),
}  # fmt: skip
COMMON: Changes = [({"doca": 0.4}, False), ({"chi2": 24.0}, True), ({"chi2": 26.0}, False), ({"fd": np.nan}, False)]
TYPES = {line.name: line for line in (*LINES, *ECAL_LINES, *DOWNSTREAM_LINES)}


@pytest.mark.parametrize("evaluate", [by_numpy, by_compiler])
@pytest.mark.parametrize("name", TYPES)
def test_a_line_selects_one_side_of_each_of_its_cuts(name: str, evaluate: Any) -> None:
    base, changes = CUTS[name]
    tried = [({}, True), *changes, *(() if "downstream_v0s.pt" in base else COMMON)]
    line = TYPES[name].line()
    prefix = line.input.collection.name  # type: ignore[union-attr]
    columns: dict[str, Any] = {}
    limits = BatchLimits(events=len(tried), lines=1)
    for at in postorder([line.condition]):
        if not isinstance(at.payload, Element):
            continue
        column = at.payload.column
        of_event = column.count(limits) // len(tried)
        content = columns.setdefault(column.name, np.full(len(tried) * of_event, 1 if column.of_event else 0, float))
        for event, (change, _) in enumerate(tried):
            values = {**USUAL, "long_tracks.beam_tx": SLOPE, **base, **change}
            value = values.get(column.name, values.get(column.name.removeprefix(f"{prefix}.")))
            if value is not None:
                content[event * of_event] = value
    for variable in {line.variable}:
        columns[variable.count.name] = np.ones(len(tried), int)  # type: ignore[union-attr]
    decided = evaluate(Case((line,), EVENT_WORDS, columns, limits))
    wrong = [change for (change, selected), mask in zip(tried, decided.masks, strict=True) if bool(mask) != selected]
    assert wrong == []


def test_the_menu_of_composites_adds_lines_behind_those_of_the_default_menu(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    path.write_text('[menu]\nname = "composites"\n')
    forward, whole = (CHAIN.load_trigger(path, name).line_names for name in ("forward_then_matching", "hlt1_2026"))
    assert forward == (*(line.name for line in HLT1_MENU.lines), *(line.name for line in LINES))
    assert whole[: len(forward)] == forward
    ecal = HLT1_MENU.of("hlt1_2026")[len(HLT1_MENU.lines) :]
    assert whole[len(forward) :] == tuple(line.name for line in (*ecal, *ECAL_LINES, *DOWNSTREAM_LINES))
    with pytest.raises(TriggerConfigError, match=r"line \w+: .*reads .*, which sequence velo does not make"):
        CHAIN.load_trigger(path, "velo")


def test_a_composite_of_inputs_that_the_sequence_does_not_make_is_named(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(
        "from hltnode.processing.lhcb.lines import *\n"
        "mine = composite('mine', dimuons, long_tracks, masses=(1 * MeV, 1 * MeV), decays_at_first=True,\n"
        "                 where=lambda v, t, both: both.doca < 1 * mm)\n"
        "outer = composite('outer', mine, long_tracks, masses=(1 * MeV, 1 * MeV), decays_at_first=True,\n"
        "                  where=lambda v, t, both: both.doca < 1 * mm)\n"
        "lines = [Line('Hlt1Mine', outer, lambda c: c.pt > 1 * GeV)]\n"
    )
    path = tmp_path / "trigger.toml"
    path.write_text('lines = []\nline_files = ["lines.py"]\n')
    assert [each.name for each in CHAIN.load_trigger(path).composites] == ["mine", "outer"]
    with pytest.raises(
        TriggerConfigError, match=r"line Hlt1Mine: composite mine reads .*two_track_vertices.*velo does"
    ):
        CHAIN.load_trigger(path, "velo")


def test_a_document_without_the_python_file_makes_the_same_composites(tmp_path: Path) -> None:
    trigger = TriggerConfig.from_toml('[menu]\nname = "composites"\n', CHAIN.menu, "hlt1_2026")
    document = CHAIN.document(trigger)
    again = CHAIN.trigger_of(TckDocument.from_text(document.text))
    assert [each.content() for each in again.composites] == [each.content() for each in trigger.composites]
    assert {each.name for each in again.composites} == {each.name for each in (*COMPOSITES, *DOWNSTREAM_COMPOSITES)}
    assert CHAIN.document(again).text == document.text
    assert document.numbers_of_composites(13) == tuple(three_muons.combination.public)
    assert document.numbers_of_composites(14)[-1] == "m_omega"
    assert document.numbers_of_composites(5) == ()
    counts = CHAIN.with_lines(again, with_lists=False).counts
    assert {"composite_dstar", "composite_dstar_left_out"} <= set(counts)


def test_a_document_whose_composites_read_each_other_is_refused() -> None:
    trigger = TriggerConfig.from_toml('[menu]\nname = "composites"\n', CHAIN.menu, "hlt1_2026")
    content = CHAIN.document(trigger).content
    by_name = {each["name"]: each for each in content["composites"]}
    of_taus = "composite_tau3mu composite_tau3mu.count 0"
    for changed in ({**by_name["tau3mu"], "first": of_taus}, {**by_name["dstar"], "first": of_taus}):
        composites = [changed if each["name"] == changed["name"] else each for each in content["composites"]]
        document = TckDocument("lhcb", "hlt1_2026", (), {**content, "composites": composites})
        message = rf"composites\[\d\]: composite {changed['name']}: .*the sequence does not make composite_tau3mu.count"
        with pytest.raises(TriggerConfigError, match=message):
            CHAIN.trigger_of(document)


@pytest.mark.physics
def test_simulated_taus_make_a_peak_at_their_mass() -> None:
    detector = Detector.builtin()
    simulation = FullSimulation(detector, sample_source(Sample.TAU3MU, DEFAULT_NU, detector.velo.beamline))
    events = list(simulation.events(60, 3))
    trigger = TriggerConfig.from_toml('[menu]\nname = "composites"\n', CHAIN.menu, "forward_then_matching")
    made = three_muons.combination
    kept = [made.count.name, made.columns["mass"].name]
    geometry = CHAIN.with_sequence(trigger.sequence).load_geometry(None)
    engine = CHAIN.create_engine(CpuBackend(CHAIN.kernels), geometry, trigger, LIMITS, retain=kept)
    batch = next(iter(OfflineRunner(engine).run([encode_mep(engine.chain, events)])))
    counts = batch.workspace.fetch(made.count.name)[: len(events)]
    masses = batch.workspace.fetch(made.columns["mass"].name).reshape(-1, made.bound)[: len(events)]
    found = np.concatenate([row[:n] for row, n in zip(masses, counts, strict=True)])
    near = np.abs(found - TAU_MASS)
    assert (near < 30).sum() >= 8
    assert (near < 30).sum() > 2 * ((near > 60) & (near < 120)).sum()


def test_the_example_of_the_page_on_lines_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/how-to/write-a-line.md").read_text(encoding="utf-8")
    block = page.partition("## More than two tracks")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "lines.py").write_text(block)
    path = tmp_path / "trigger.toml"
    path.write_text('lines = []\nline_files = ["lines.py"]\n')
    assert [each.bound for each in CHAIN.load_trigger(path).composites] == [64]


def test_prefilters_count_the_whole_reconstruction_as_needed_by_a_line_on_a_composite() -> None:
    trigger = TriggerConfig.from_toml(
        '[menu]\nname = "composites"\n[menu.Hlt1TauTo3Mu]\nprefilters = ["both_beams"]\n', CHAIN.menu
    )
    sequence = CHAIN.with_lines(trigger).sequence
    stages = Stages(sequence, CHAIN.skip_points, 0)
    assert stages.of_column[three_muons.combination.count] == len(CHAIN.skip_points)
    names = [algorithm.name for algorithm in sequence]
    assert names.index("prefilter_events_1") < names.index("composite_tau3mu") < names.index("select_lines")
