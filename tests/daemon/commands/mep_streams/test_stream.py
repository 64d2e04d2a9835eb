"""Options of `hltnode stream`, the simulated stretch that it repeats, and its summary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.mep_streams.simulated_stream import Stretch, sample_at_rate, write_stretch
from hltnode.daemon.commands.mep_streams.stream import describe, text_of
from hltnode.daemon.configuration.node_sections import PipelineSection
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.real_time import Lateness
from hltnode.daemon.replay.single_node import FeedReport
from hltnode.processing.km3net.chain import CHAIN, STREAMING
from hltnode.processing.mu3e.chain import CHAIN as MU3E
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.selection.trigger_chain import TriggerChain
from hltnode.protocol.km3net.hit_banks import HIT, hits_of, muons_of
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import Mfp

CORE, N_SLICES, RUN = 3, 2, 9


@pytest.mark.parametrize(("chain", "slices"), [(CHAIN, 2), (MU3E, 4)])
def test_usual_slices_with_their_margins_fill_a_batch_of_the_default_configuration(
    chain: TriggerChain, slices: int
) -> None:
    assert chain.streaming is not None
    n_events = chain.streaming.sub_slices + chain.streaming.margins
    assert slices * n_events == PipelineSection().max_events


def test_slices_repeat_one_another_across_the_end_of_the_stretch(tmp_path: Path) -> None:
    slices, truth = tmp_path / "slices.mep", tmp_path / "truth.mdf"
    sample = sample_at_rate("km3net", SampleRequest(seed=1, run=RUN), 30_000.0)
    stretch = write_stretch(CHAIN, sample, CORE, N_SLICES, slices, truth, RUN)
    n = CORE * N_SLICES
    records = [record.banks() for record in iter_records(truth.read_bytes())]
    made = list(sample.events(n))
    assert [hits_of(banks).tolist() for banks in records] == [hits_of(banks).tolist() for banks in made]
    of_file, of_sample = ([muons_of(banks) for banks in each] for each in (records, made))
    np.testing.assert_equal(of_file, of_sample)

    endless = Packing(events_per_mep=CORE, max_fragment_bytes=1 << 20, repeat=None, run=RUN)
    meps = list(meps_of_files([slices], CHAIN.readout, endless).first(5))
    assert [mep.mep for mep in meps] == list(range(5))
    for mep in meps:
        # The core, and a sub-slice of each neighbour, of the stream that repeats itself.
        numbers = np.arange(mep.mep * CORE - 1, (mep.mep + 1) * CORE + 1) % n
        for source, mfp in mep.mfps.items():
            banks = [bank for bank in Mfp.parse(mfp).banks() if bank is not None]
            expected = [
                [bank.payload for bank in made[number] if bank.source_id == source and bank.type == banks[0].type]
                for number in numbers
            ]
            assert [[bytes(bank.payload)] for bank in banks] == [[bytes(each) for each in row] for row in expected]
    of_slices = [sum(len(hits_of(banks)) for banks in made[i * CORE : (i + 1) * CORE]) for i in range(N_SLICES)]
    assert stretch.hits.tolist() == of_slices
    assert stretch.hits_of_first(5) == 2 * sum(of_slices) + of_slices[0]
    assert stretch.slice_ns == CORE * STREAMING.sub_slice_ns


def test_the_rate_is_that_of_the_detector() -> None:
    request = SampleRequest(seed=1)
    n = [
        sum(len(hits_of(banks)) for banks in sample_at_rate("km3net", request, rate).events(40)) for rate in (1e4, 1e5)
    ]
    assert 3 < n[1] / n[0] < 10
    assert HIT.itemsize == STREAMING.hit.size


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--chain", "lhcb"], "chain lhcb does not cut time into slices: hltnode replay sends its events"),
        (["--chain", "mu3e", "--rate", "3e9"], "--rate 3e+09: chain mu3e expects 0 to 2e+09 stopped muons/s"),
        (["--chain", "km3net", "--rate", "-1"], "--rate -1: chain km3net expects 0 to 1e+07 Hz of hits of a PMT"),
        (["--chain", "km3net", "--rate", "nan"], "--rate nan: chain km3net expects"),
        (["--chain", "km3net", "--seconds", "inf"], "--seconds inf: expected 1e+08 at most"),
        (["--chain", "km3net", "--sub-slices", "65534"], "a slice of chain km3net has 65533 at most"),
        (["--chain", "km3net", "--to", "node7"], "--to"),
        (["--chain", "km3net", "--encrypt-data"], "--encrypt-data: expected --server-key and --key-file"),
    ],
    ids=["no slices", "high", "negative", "nan", "endless", "long", "endpoint", "keys"],
)
def test_options_that_do_not_fit_are_refused(options: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["stream", *options])
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("lateness", "texts"),
    [
        (Lateness(5, 0, 2_000_000, 3_000_000), ("5 slices, within 10 ms", "late           none")),
        (
            Lateness(3, 2, 45_000_000, 60_000_000),
            ("late           2 slices, at most 60 ms", "behind by 45 ms at the end", "did NOT keep up"),
        ),
    ],
    ids=["in time", "late"],
)
def test_the_summary_never_hides_that_the_stream_was_late(lateness: Lateness, texts: tuple[str, ...]) -> None:
    report = FeedReport(5, 25, 10, 1000, 1, {}, 2, [(3, 4)], 1.5, {})
    text = text_of(describe(report, lateness, _stretch(), 2, RUN, Path("truth.mdf")))
    for each in (*texts, "acknowledged   3 slices", "missing        slices 3-4", "sent again     1 fragment of 10"):
        assert each in text
    assert ("did NOT keep up" in text) == (lateness.late > 0)
    assert max(map(len, text.splitlines())) <= 80


def _stretch() -> Stretch:
    return Stretch(core=CORE, streaming=STREAMING, hits=np.array([7, 5]))
