"""`import hltnode` and `hltnode process --tuple` with each installed chain but lhcb, which has tests of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import pytest
import uproot
from typer.testing import CliRunner

import hltnode
from hltnode.analysis.tuple_files import column_name
from hltnode.daemon.cli import app
from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.framework.sub_slices import between_empty_margins
from hltnode.processing.offline.chain_tools import installed_tools
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.trigger_chain import ENTRY_POINTS, installed_chain
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import encode_banks
from tests.analysis.conftest import run

N_EVENTS = 5


@dataclass(frozen=True, slots=True)
class Example:
    """What the tests know of a chain.

    lines: folder of processing/ with its input of lines `rows`; cut: on a candidate of it; hz, event: the rate of
    events, and what one event is; options: of the simulation.
    """

    lines: str
    rows: str
    cut: str
    hz: float
    event: str
    options: dict[str, Any] = field(default_factory=dict)


EXAMPLES = {
    "alice_tpc": Example("alice", "tpc_merged_tracks", "t.pt > 1.5", 5e5, "collision", {"pile_up": 0.0}),
    "ccl": Example("imaging", "components", "t.area > 20", 1e3, "event", {"kind": "blobs", "bits": 8}),
    "km3net": Example("km3net", "time_windows", "t.pmts > 5", 4e4, "sub-slice"),
    "mu3e": Example("mu3e", "tracks", "t.momentum > 25", 2.5e6, "sub-slice"),
    "na62_rich": Example("na62", "rings", "t.radius > 180", 1e6, "L0 trigger", {"decay": "munu"}),
    "raw": Example("raw", "banks", "t.size > 400", 1e3, "event"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Simulated events of a chain, a configuration with the line `Chosen`, and the arrays of its fields."""

    chain: str
    path: Path
    trigger: Path
    arrays: ak.Array

    @property
    def of(self) -> Example:
        return EXAMPLES[self.chain]

    @property
    def accepted(self) -> list[bool]:
        return [bool(each) for each in self.arrays.decisions.Chosen]


@pytest.fixture(scope="module", params=EXAMPLES)
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    chain = request.param
    of = EXAMPLES[chain]
    folder = tmp_path_factory.mktemp(chain)
    path = hltnode.simulate(folder / "sample.mdf", N_EVENTS, chain=chain, seed=3, jobs=1, **of.options)
    (folder / "chosen.py").write_text(
        f'from hltnode.processing.{of.lines}.lines import *\nlines = [Line("Chosen", {of.rows}, lambda t: {of.cut})]\n'
    )
    trigger = folder / "trigger.toml"
    trigger.write_text('line_files = ["chosen.py"]\nlines = []\n')
    fields = ("event.*", "decisions.Chosen", f"{of.rows}.*")
    arrays = hltnode.process(path, fields, trigger=trigger, chain=chain, backend="cpu", threads=1)
    return Sample(chain, path, trigger, arrays)


def test_each_installed_chain_with_a_simulation_has_an_example() -> None:
    installed = entry_points(group=ENTRY_POINTS).names
    simulated = {name for name in installed if installed_tools(name).simulation is not None}
    assert simulated == {"lhcb", *EXAMPLES}
    assert installed_chain("lhcb").event_rate == EventRate(30e6, "bunch crossing")


def test_arrays_have_the_candidates_that_the_line_selects(sample: Sample) -> None:
    arrays, of = sample.arrays, sample.of
    assert len(arrays) == N_EVENTS
    candidates = arrays[of.rows]
    selected = eval(of.cut, {"t": candidates})
    assert ak.any(selected, axis=1).to_list() == sample.accepted
    assert sum(sample.accepted) > 0, "the sample and the cut must make some events pass"
    known = {each.name: each for each in hltnode.fields(sample.chain)}
    for name in (*(f"event.{each}" for each in arrays.event.fields), *(f"{of.rows}.{e}" for e in candidates.fields)):
        assert arrays.attrs["fields"][name] == {"unit": known[name].unit, "description": known[name].description}
    assert arrays.attrs["chain"] == sample.chain
    usual = hltnode.process(sample.path, chain=sample.chain, backend="cpu", threads=1)
    assert of.rows in usual.fields
    assert len(usual) == N_EVENTS


def test_events_have_named_banks_and_decisions(sample: Sample, tmp_path: Path) -> None:
    events = list(hltnode.open(sample.path, chain=sample.chain))
    readout = installed_chain(sample.chain).readout
    assert len(events) == N_EVENTS
    for event in events:
        assert all(bank.name == readout.bank_types.get(bank.type, bank.name) for bank in event.banks)
        assert {bank.name for bank in event.banks} & set(readout.bank_types.values())
        assert event.run is not None or f"event {event.index} of sample.mdf" in repr(event)
    accepted = tmp_path / "accepted.mdf"
    options = ("--chain", sample.chain, "--trigger", sample.trigger, "--backend", "cpu", "--threads", 1)
    run("process", sample.path, *options, "--accepted", accepted)
    kept = list(hltnode.open(accepted, chain=sample.chain))
    assert [event.decisions for event in kept] == [("Chosen",)] * sum(sample.accepted)


def n_accepted_between_margins(sample: Sample, folder: Path) -> int:
    """Accepted events, for a stream those between sub-slices without hits: the first and the last have windows then."""
    chain = installed_chain(sample.chain)
    if chain.streaming is None:
        return sum(sample.accepted)
    stream = between_empty_margins(chain.readout, chain.streaming, read_all_events([sample.path]))
    path = folder / "between_margins.mdf"
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in stream))
    options: dict[str, Any] = {"trigger": sample.trigger, "chain": sample.chain, "backend": "cpu", "threads": 1}
    fired = hltnode.process(path, ("decisions.Chosen",), **options).decisions.Chosen
    assert len(fired) == N_EVENTS + chain.streaming.margin_before + chain.streaming.margin_behind
    return int(ak.sum(fired))


def test_rates_are_those_of_the_events_of_the_chain(sample: Sample, tmp_path: Path) -> None:
    options: dict[str, Any] = {"trigger": sample.trigger, "chain": sample.chain, "backend": "cpu", "threads": 1}
    found = hltnode.rates(sample.path, **options)
    share = n_accepted_between_margins(sample, tmp_path) / N_EVENTS
    assert found.lines["Chosen"]["rate_hz"] == pytest.approx(sample.of.hz * share)
    assert f"each for one {sample.of.event} of " in str(found)
    assert hltnode.rates(sample.path, crossing_rate=10.0, **options).total["rate_hz"] == pytest.approx(10 * share)
    report = tmp_path / "rates.html"
    of_command = ("--chain", sample.chain, "--trigger", sample.trigger, "--backend", "cpu", "--report", report)
    assert f"each for one {sample.of.event} of " in run("rates", sample.path, *of_command)
    assert f"rate of {sample.of.event}s" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", ["parquet", "root"])
def test_tuples_have_the_values_of_the_arrays(sample: Sample, suffix: str, tmp_path: Path) -> None:
    of, candidates = sample.of, sample.arrays[sample.of.rows]
    options = ("--chain", sample.chain, "--trigger", sample.trigger, "--backend", "cpu", "--threads", 1)
    by_event, by_candidate = (tmp_path / f"{name}.{suffix}" for name in ("events", "candidates"))
    run("process", sample.path, *options, "--tuple", by_event, "--fields", f"event.*,{of.rows}.*")
    read = ak.from_parquet(by_event) if suffix == "parquet" else uproot.open(by_event)["events"].arrays()
    assert len(read) == N_EVENTS
    for name in candidates.fields:
        column = read[column_name(f"{of.rows}.{name}")]
        expected = ak.nan_to_num(candidates[name], nan=-1)
        assert ak.array_equal(ak.nan_to_num(column, nan=-1), expected, dtype_exact=False), name
    # Without --fields: the usual fields of these candidates, with those of their event.
    run("process", sample.path, *options, "--tuple", by_candidate, "--rows", of.rows)
    frame = (
        pd.read_parquet(by_candidate)
        if suffix == "parquet"
        else uproot.open(by_candidate)["events"].arrays(library="pd")
    )
    n = ak.num(candidates).to_numpy()
    assert frame["event_index"].to_list() == np.repeat(np.arange(N_EVENTS), n).tolist()
    usual = [name for name in candidates.fields if column_name(f"{of.rows}.{name}") in frame.columns]
    assert usual
    for name in usual:
        column = frame[column_name(f"{of.rows}.{name}")].to_numpy()
        np.testing.assert_array_equal(column, ak.flatten(candidates[name]).to_numpy())
    assert {column.partition("_")[0] for column in frame.columns} >= {"event", of.rows.partition("_")[0]}


def test_rows_of_no_input_are_refused_with_the_known_inputs(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    options = ["--chain", sample.chain, "--tuple", str(path), "--rows", "event_list"]
    result = CliRunner().invoke(app, ["process", str(sample.path), *options])
    assert result.exit_code != 0
    assert "rows 'event_list': expected event, or an input with a chosen field:" in result.output.replace("\n", " ")
    assert not path.exists()


def test_an_event_is_drawn(sample: Sample) -> None:
    events = hltnode.open(sample.path, chain=sample.chain)
    picture = hltnode.display(events[1], chain=sample.chain, trigger=sample.trigger)
    assert picture.lines == (("Chosen",) if sample.accepted[1] else ())
    assert "<svg" in picture.page or "<canvas" in picture.page
    assert picture.title
    assert picture.summary
