"""Truth names the sample of an event, lines find the signals, weighted samples have the rates of plain ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.offline.simulation.blocks import SimulationRequest, blocks
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.rates import RateCounts
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.full_events import full_events

LINES = {
    "bsmumu": "Hlt1DiMuonHighMass",
    "d2kpi": "Hlt1TwoTrackMVA",
    "jpsi": "Hlt1DiMuonHighMass",
    "tau3mu": "Hlt1DiMuonLowMass",
}
N_SIGNAL = 60


def decided(
    trigger: TriggerConfig, events: Iterable[Sequence[RawBank]], threads: int = 1
) -> Iterator[tuple[EventTable, np.ndarray]]:
    backend = create_backend("cpu", CHAIN.kernels, threads=threads)
    deciding = DecidingPass(CHAIN, trigger, backend, CHAIN.with_sequence(trigger.sequence).load_geometry(None))
    for batch in deciding.run(events):
        yield batch.events, batch.fired
    deciding.engine.close()


@cache
def fired_by_minbias(trigger: str, n_events: int, nu: float) -> dict[str, int]:
    """Decisions of each line of a configuration (TOML; empty: the menu) on minimum-bias events."""
    config = TriggerConfig.from_toml(trigger, HLT1_MENU) if trigger else TriggerConfig.default(HLT1_MENU)
    events = full_events(n_events, 5, sample="minbias", nu=nu)
    fired = sum((of_batch.sum(axis=0) for _, of_batch in decided(config, events)), np.zeros(len(config.line_names)))
    return dict(zip(config.line_names, fired.astype(int).tolist(), strict=True))


@pytest.mark.parametrize("sample", list(LINES))
def test_a_line_of_the_shipped_menu_finds_the_signal(sample: str) -> None:
    trigger = TriggerConfig.default(HLT1_MENU)
    place = trigger.line_names.index(LINES[sample])
    events = full_events(N_SIGNAL, 5, sample=sample, nu=1.0)
    signal = sum(int(fired[:, place].sum()) for _, fired in decided(trigger, events))
    assert signal >= 3
    assert signal > 2 * fired_by_minbias("", N_SIGNAL, 1.0)[LINES[sample]]


SOFT = """
[sequence]
name = "forward_then_matching"
[[lines]]
type = "KsToPiPi"
name = "ks2pipi"
[[lines]]
type = "L02PPi"
name = "l2ppi"
min_pt = 0.0
"""


@pytest.mark.parametrize("sample", ["ks2pipi", "l2ppi"])
def test_a_line_without_a_cut_on_pt_finds_strange_decays(sample: str) -> None:
    """Those of the menu have such cuts, which few of these decays pass."""
    trigger = TriggerConfig.from_toml(SOFT, HLT1_MENU)
    place = trigger.line_names.index(sample)
    signal = sum(
        int(fired[:, place].sum()) for _, fired in decided(trigger, full_events(200, 5, sample=sample, nu=0.2))
    )
    assert signal >= 3
    assert signal > fired_by_minbias(SOFT, 200, 0.2)[sample]


@pytest.mark.parametrize("sample", ["minbias", "z"])
def test_the_truth_of_an_event_names_its_sample(sample: str) -> None:
    for banks in full_events(2, 3, sample=sample, nu=1.0):
        truth = LHCB_READOUT.sample_of(banks)
        assert truth is not None
        assert (truth.kind, truth.minimum_bias, truth.weight) == (sample, sample == "minbias", 1.0)


VELO = """
[sequence]
name = "velo"
[[lines]]
type = "NDisplacedVeloTracks"
name = "Hlt1One"
min_tracks = 1
[[lines]]
type = "NDisplacedVeloTracks"
name = "Hlt1Three"
min_tracks = 3
[[lines]]
type = "VeloMicroBias"
name = "Hlt1Crowded"
min_tracks = 60
"""


def pull(first: dict[str, float], second: dict[str, float]) -> float:
    """Difference of two rates in errors, each error that towards the other rate."""
    low, high = sorted((first, second), key=lambda of: of["rate_hz"])
    error = np.hypot(low["high_hz"] - low["rate_hz"], high["rate_hz"] - high["low_hz"])
    return (second["rate_hz"] - first["rate_hz"]) / error if error else 0.0


def counted(trigger: TriggerConfig, events: Iterable[Sequence[RawBank]], threads: int = 1) -> list[RateCounts]:
    """The counts of each batch."""
    parts = []
    for banks, fired in decided(trigger, events, threads):
        counts = RateCounts(trigger.line_names, readout=LHCB_READOUT)
        counts.add(banks, fired)
        parts.append(counts)
    return parts


def together(parts: Sequence[RateCounts]) -> RateCounts:
    whole = RateCounts(parts[0].names, readout=LHCB_READOUT)
    for part in parts:
        whole.add_counts(part)
    return whole


def test_an_enriched_sample_has_the_rates_of_a_plain_one(tmp_path: Path) -> None:
    """In the VELO alone, which is fast."""
    (tmp_path / "velo.toml").write_text(VELO)
    trigger = TriggerConfig.load(tmp_path / "velo.toml", HLT1_MENU)
    geometry = VeloGeometry.builtin()
    plain = together(counted(trigger, simulate_events(400, 21, geometry=geometry, nu=1.5))).result(CHAIN.event_rate)
    enriched = together(counted(trigger, simulate_events(400, 22, geometry=geometry, nu=1.5, enrich=True))).result(
        CHAIN.event_rate
    )
    sample = enriched["sample"]
    assert (sample["kinds"], sample["weighted"], sample["warning"]) == ({"minbias": 400}, True, None)
    assert sample["effective_events"] == pytest.approx(200, rel=0.4)
    pulls = {name: pull(plain["lines"][name], enriched["lines"][name]) for name in trigger.line_names}
    assert max(map(abs, pulls.values())) < 3.5, pulls
    assert plain["lines"]["Hlt1One"]["events"] > 20
    assert enriched["lines"]["Hlt1One"]["effective_events"] > 10


def full_sample(n: int, seed: int, *, enrich: bool) -> Iterator[Sequence[RawBank]]:
    for _, block in blocks(SimulationRequest(seed=seed, enrich=enrich), n, 2):
        for record in iter_records(block):
            yield list(record.banks())


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_five_thousand_enriched_events_agree_with_forty_thousand_plain_ones() -> None:
    """Rates of the shipped menu; pulls of independent parts of the enriched sample, for lines with enough events."""
    trigger = TriggerConfig.default(HLT1_MENU)
    plain = together(counted(trigger, full_sample(40_000, 31, enrich=False), 2)).result(CHAIN.event_rate)
    parts = counted(trigger, full_sample(5_000, 32, enrich=True), 2)
    enriched = together(parts).result(CHAIN.event_rate)
    pulls = {name: pull(plain["lines"][name], enriched["lines"][name]) for name in trigger.line_names}
    assert max(map(abs, pulls.values())) < 4, pulls
    assert np.mean(np.abs(list(pulls.values())) < 2) > 0.9
    groups = [together(parts[first::8]).result(CHAIN.event_rate) for first in range(8)]
    spread = [
        pull(group["lines"][name], enriched["lines"][name])
        for name in trigger.line_names
        for group in groups
        if enriched["lines"][name]["effective_events"] > 80
    ]
    assert len(spread) >= 16
    # Parts are an eighth of the whole, with which they are compared: sqrt(7 / 8) of 1, and a little more.
    assert 0.6 < np.std(spread) < 1.4
