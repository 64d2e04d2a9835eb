"""The menus besides that of proton collisions: their choice, and both sides of the cuts that only their types have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.line_types.beam_lines import BeamGasImaging, HeavyIon, HeavyIonEnergy
from hltnode.processing.lhcb.lines.line_types.gas_target import (
    GasD2KPi,
    GasDiMuonMass,
    GasDisplacedDiMuon,
    GasKsToPiPi,
    GasL02PPi,
    GasMuon,
    GasTrack,
    GasTwoTracks,
)
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.expressions.canonical import canonical
from hltnode.processing.selection.lines.line_type import LineType
from tests.processing.lhcb.lines.candidates import Event, Pv, Track, VeloTrack, Vertex, case_of, changed, event_with
from tests.processing.lhcb.lines.plain_lines import D0
from tests.processing.selection.line_evaluators import by_numpy

GAS = Pv(-440.0)
FORWARD = "forward_then_matching"


def load(folder: Path, text: str, sequence: str = FORWARD) -> TriggerConfig:
    path = folder / "trigger.toml"
    path.write_text(f'{text}\n[sequence]\nname = "{sequence}"\n')
    return CHAIN.load_trigger(path)


def test_a_configuration_chooses_a_menu_by_name(tmp_path: Path) -> None:
    default = CHAIN.load_trigger(None, FORWARD)
    assert load(tmp_path, '[menu]\nname = "pp"') == default
    tcks = set()
    for name, menu in HLT1_MENU.others.items():
        trigger = load(tmp_path, f'[menu]\nname = "{name}"')
        assert trigger.line_names == tuple(line.name for line in menu.lines)
        assert trigger.from_menu == len(menu.lines)
        without_ecal = {line.name for line in menu.of("hlt1_2026")} - set(trigger.line_names)
        left_out = CHAIN.not_available(trigger)
        assert set(left_out) == {*without_ecal, *menu.not_available}
        if name != "composites":
            reasons = dict.fromkeys(without_ecal, "reads events.ecal_energy")
            reasons |= dict.fromkeys(without_ecal & {"Hlt1VeloLargeClusters"}, "reads velo_tracks.large_clusters")
            assert left_out == {**reasons, **menu.not_available}
        whole = load(tmp_path, f'[menu]\nname = "{name}"', "hlt1_2026")
        assert whole.line_names == tuple(line.name for line in menu.of("hlt1_2026"))
        assert CHAIN.not_available(whole) == menu.not_available
        tcks.add(CHAIN.document(trigger).tck)
    assert len(tcks) == len(HLT1_MENU.others) == 7


def test_a_line_of_a_chosen_menu_may_be_changed(tmp_path: Path) -> None:
    text = '[menu]\nname = "smog2"\n[menu.Hlt1SMOG2SingleMuon]\nmin_pt = 1000.0\nprefilters = ["event_cut"]'
    trigger = load(tmp_path, text)
    line = next(line for line in trigger.lines if line.name == "Hlt1SMOG2SingleMuon")
    assert [prefilter.name for prefilter in line.prefilters] == ["event_cut"]
    assert trigger != load(tmp_path, '[menu]\nname = "smog2"')


@pytest.mark.parametrize(
    ("text", "sequence", "message"),
    [
        ('[menu]\nname = "smog3"', FORWARD, "menu.name: there is no menu smog3; there are pp, smog2, pbpb, light_ion"),
        ("[menu]\nname = 1", FORWARD, "menu.name: the name of a menu is expected, not 1"),
        ('[menu]\nname = "smog2"', "velo", "line Hlt1SMOG2D2Kpi: it reads .* sequence velo does not make"),
        ('[menu.Hlt1TrackMVA]\nprefilters = ["no"]', FORWARD, "menu.Hlt1TrackMVA.prefilters: no is no .* beam_one, "),
        ('[menu.Hlt1TrackMVA]\nprefilters = "no_beam"', FORWARD, "menu.Hlt1TrackMVA.prefilters: "),
        ('[menu.Hlt1TrackMVA]\nprefilters = ["no_beam", "no_beam"]', FORWARD, "a name is given twice"),
    ],
)
def test_a_wrong_choice_is_named(tmp_path: Path, text: str, sequence: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        load(tmp_path, text, sequence)


def test_two_prefilters_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(
        "from hltnode.processing.lhcb.lines import *\n"
        "mine = Prefilter('event_cut', event, lambda e: e.n_pvs > 1)\n"
        "lines = [Line('A', event, lambda e: e.n_pvs > 0, prefilters=[mine]),\n"
        "         Line('B', event, lambda e: e.n_pvs > 0, prefilters=[event_cut])]\n"
    )
    with pytest.raises(TriggerConfigError, match=r"two prefilters have the name 'event_cut', made at .*lines.py:2"):
        load(tmp_path, 'line_files = ["lines.py"]')


@pytest.mark.parametrize(
    ("prefilter", "message"),
    [
        ("Prefilter('Upper', event, lambda e: e.n_pvs > 0)", "prefilter Upper: a name of at most 60 lower-case"),
        ("Prefilter('a', muons, lambda e: True)", "prefilter a: a prefilter decides on events"),
        ("Prefilter('a', event, lambda e: e.n_pvs)", "prefilter a: the condition of a prefilter takes a condition"),
        ("'event_cut'", "line A: prefilters: a list of prefilters is expected, it contains"),
    ],
)
def test_a_wrong_prefilter_of_a_file_is_named(tmp_path: Path, prefilter: str, message: str) -> None:
    (tmp_path / "lines.py").write_text(
        "from hltnode.processing.lhcb.lines import *\n"
        f"lines = [Line('A', event, lambda e: e.n_pvs > 0, prefilters=[{prefilter}])]\n"
    )
    with pytest.raises(TriggerConfigError, match=message):
        load(tmp_path, 'line_files = ["lines.py"]')


def test_documents_hold_prefilters_and_run_without_the_chain_that_named_them(tmp_path: Path) -> None:
    trigger = load(tmp_path, '[menu]\nname = "smog2"')
    document = CHAIN.document(trigger)
    assert set(document.content["prefilters"]) == {prefilter.name for prefilter in trigger.prefilters}
    read = TckDocument.from_text(document.text)
    again = CHAIN.trigger_of(read)
    for one, other in ((again.prefilters, trigger.prefilters), (again.lines, trigger.lines)):
        assert [canonical(each.condition) for each in one] == [canonical(each.condition) for each in other]
    assert any(path.startswith("prefilters.pv_in_gas") for path in read.values)
    assert "prefilters" not in CHAIN.document(CHAIN.load_trigger(None, FORWARD)).content
    damaged = {**document.content, "prefilters": {}}
    with pytest.raises(TriggerConfigError, match="prefilters: velo_closed is no prefilter; there are none"):
        CHAIN.trigger_of(TckDocument(document.chain, document.sequence, document.collections, damaged))


# --- cuts of the types ------------------------------------------------------------------------------------------------

MUON = Track(p=5e4, pt=5000.0, chi2=1.0, is_muon=True, pv=GAS)
PAIR = Vertex(
    track1=Track(pt=900.0), track2=Track(pt=600.0), displaced=True, pv=GAS, m_kpi=D0, m_pipi=1400.0, fd_chi2=1e4
)
KS = Vertex(ks=True, pv=GAS, m_pipi=500.0)
PROTON = Track(p=2e4, pt=800.0, ip=0.1, ip_chi2=20.0)
PION = Track(p=1e4, pt=900.0, ip=0.5, ip_chi2=100.0)
LAMBDA = Vertex(PROTON, PION, pv=GAS, lambda0=True, m_ppi=1115.0, m_pip=1200.0, x=3.0, y=4.0, z=-100.0)
DIMUON = Vertex(dimuon=True, pv=GAS, m_mumu=3000.0)
IN_GAS: tuple[list[dict[str, Any]], list[dict[str, Any]]] = (
    [{"pv": Pv(-540.9)}, {"pv": Pv(-341.1)}],
    [{"pv": Pv(-541.0)}, {"pv": Pv(-341.0)}, {"pv": Pv()}, {"pv": None}],
)
Changes = list[dict[str, Any]]
CASES: dict[LineType, tuple[Track | Vertex, Changes, Changes]] = {
    GasD2KPi("A"): (
        PAIR,
        [{"m_kpi": 1.0, "m_pik": D0 + 99}, {"track1.pt": 100.0, "track2.pt": 801.0}],
        [
            *({"m_kpi": D0 + 101}, {"min_pt": 500.0}, {"track1.pt": 799.0}, {"min_ip_chi2": 7.0}, {"fd_chi2": 25.0}),
            *({"same_sign": True}, {"displaced": False}),
        ],
    ),
    GasTwoTracks("A"): (
        PAIR,
        [{"m_kpi": 1.0}],
        [
            *({"m_pipi": 1300.0}, {"min_pt": 500.0}, {"min_ip_chi2": 7.0}, {"chi2": 25.0}, {"same_sign": True}),
            {"displaced": False},
        ],
    ),
    GasKsToPiPi("A"): (KS, [], [{"m_pipi": 400.0}, {"ks": False}]),
    GasL02PPi("A", min_pt=2500.0): (LAMBDA, [], [{"pt": 2500.0}, {"lambda0": False}]),
    GasTrack("A"): (MUON, [{"is_muon": False}, {"pt": 3001.0}], [{"pt": 2999.0}, {"chi2": 2.5}]),
    GasMuon("A"): (MUON, [{"pt": 1251.0}], [{"is_muon": False}, {"pt": 1249.0}]),
    GasDiMuonMass("A"): (DIMUON, [], [{"m_mumu": 2700.0}, {"min_pt": 500.0}, {"same_sign": True}]),
    GasDisplacedDiMuon("A"): (DIMUON, [{"fd_chi2": 101.0}], [{"fd_chi2": 100.0}, {"min_ip_chi2": 6.0}]),
}


@pytest.mark.parametrize("line", CASES, ids=lambda line: type(line).__name__)
def test_lines_on_the_gas_select_one_side_of_each_cut(line: LineType) -> None:
    base, selected, rejected = CASES[line]
    changes = [{}, *IN_GAS[0], *selected, *IN_GAS[1], *rejected]
    events = [replace(event_with(changed(base, each)), velo_tracks=[VeloTrack()]) for each in changes]
    decided = by_numpy(case_of([line], events))
    wanted = [1] * (1 + len(IN_GAS[0]) + len(selected)) + [0] * (len(IN_GAS[1]) + len(rejected))
    assert list(zip(changes, decided.masks, strict=True)) == list(zip(changes, wanted, strict=True))


def masks(line: LineType, events: Sequence[Event], x: float = 0.0, y: float = 0.0) -> list[int]:
    case = case_of([line], events)
    n = len(case.columns["velo_beamline.z"])
    return by_numpy(
        replace(case, columns={**case.columns, "velo_beamline.x": np.full(n, x), "velo_beamline.y": np.full(n, y)})
    ).masks


def test_beam_gas_imaging_counts_tracks_near_the_beam() -> None:
    events = [Event(velo_tracks=[VeloTrack(z=z) for z in zs]) for zs in ((0, 2999, -2999), (0, 3000, -3000), (0, 1))]
    line = BeamGasImaging("A", min_tracks=3)
    assert masks(line, events) == [1, 0, 0]
    assert masks(line, events, x=1.8, y=-2.3) == [1, 0, 0]
    assert masks(line, events, x=1.8, y=-2.5) == [0, 0, 0]
    assert masks(replace(line, beam_x=1.0, beam_y=-1.0), events, x=1.8, y=-2.5) == [1, 0, 0]
    assert masks(replace(line, min_z=0.0, min_tracks=2), events) == [0, 0, 0]
    assert masks(replace(line, min_z=-1.0, min_tracks=2), events) == [1, 0, 1]


def test_lines_on_ions_count_tracks_and_vertices_on_both_sides_of_the_border() -> None:
    pvs = [(), (Pv(),), (Pv(-400.0),), (Pv(), Pv(-400.0)), (Pv(-341.0),)]
    events = [Event(primary_vertices=each, velo_tracks=[VeloTrack()] * i) for i, each in enumerate(pvs)]
    # The first vertex of every event lies far upstream.
    assert masks(HeavyIon("A", min_pvs=1), events) == [0, 1, 0, 1, 0]
    assert masks(HeavyIon("A", max_pvs=0), events) == [1, 0, 1, 0, 1]
    assert masks(HeavyIon("A", min_gas_pvs=2), events) == [0, 0, 1, 1, 1]
    assert masks(HeavyIon("A", max_gas_pvs=1), events) == [1, 1, 0, 0, 0]
    assert masks(HeavyIon("A", min_velo_tracks=2), events) == [0, 0, 1, 1, 1]
    assert masks(HeavyIon("A", max_velo_tracks=2), events) == [1, 1, 1, 0, 0]


def test_lines_on_the_energy_of_ions_have_a_range() -> None:
    energies = (93999.0, 94000.0, 94001.0)
    events = [Event(ecal_energy=energy, velo_tracks=[VeloTrack()]) for energy in energies]
    assert masks(HeavyIonEnergy("A", max_energy=94000.0), events) == [1, 1, 0]
    assert masks(HeavyIonEnergy("A", min_energy=94000.0), events) == [0, 1, 1]
    assert masks(HeavyIonEnergy("A", min_energy=94000.0, min_velo_tracks=2), events) == [0, 0, 0]
