"""Counters of luminosity summaries on their way from the back end to the banks of kept events."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from hltnode.daemon.compute.results import BatchResults
from hltnode.daemon.output.event_encoder import Decided, EventEncoder
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import no_words
from hltnode.processing.selection.reports.lumi_schema import lumi_schema
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.lumi_summary import CounterRange, decode_lumi_summary
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.odin import Odin, encode_odin

COUNTERS = (CounterRange("Small", 7), CounterRange("Shifted", 0xFFFF, 100, 2.0), CounterRange("Large", 0x1FFFFF))
LUMI = np.array([[2, 0, 0]], np.uint32)


def output(summary: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> SimpleNamespace:
    """Results of the back end for events that the only line accepts."""
    n = len(summary)
    return SimpleNamespace(
        accepted=np.ones(n, np.uint8),
        lines=np.ones((n, 1), np.uint32),
        flags=np.zeros(n, np.uint32),
        selected=no_words(n),
        counts={"tracks": np.full(n, 99, np.uint32)},
        lists={},
        summary=summary,
    )


def test_the_counters_of_an_event_come_into_its_bank() -> None:
    rng = np.random.default_rng(1)
    sent = rng.integers(0, (7, 0xFFFF, 0x1FFFFF), (6, 3)).astype(np.uint32)
    sent[2] = 8, 0x10000, 0x200000  # one more than fits
    meps = [SimpleNamespace(mep=mep, n_events=n, missing=(), dropped_by=None) for mep, n in ((4, 2), (5, 3), (6, 1))]
    results = BatchResults(meps, 1, ("tracks",), EventFlag.NOT_PROCESSED, n_counters=3)  # type: ignore[arg-type]
    # MEPs are computed in any order, the second one alone.
    results.add([meps[1]], output(sent[2:5]))  # type: ignore[list-item]
    results.add([meps[0], meps[2]], output(sent[[0, 1, 5]]))  # type: ignore[list-item]
    gathered = results.gathered()
    np.testing.assert_array_equal(gathered.summary, sent)
    np.testing.assert_array_equal(gathered.of_events(slice(1, 4)).summary, sent[1:4])

    odin = [encode_odin(Odin(run=3, event_id=i, orbit=5, bunch_id=i, crossing_type=i % 4)) for i in range(6)]
    decided = Decided(
        gathered.lines, gathered.flags, gathered.counts, gathered.selected, gathered.lists, gathered.summary
    )
    schema = lumi_schema(("tracks",), COUNTERS)
    encoder = EventEncoder(7, LUMI, ("tracks",), FlagTable(), (), COUNTERS)
    mfp = encode_mfp(source_id=0, event_id=0, version=7, types=[16] * 6, fragments=[bank.payload for bank in odin])
    of_batch = encoder.encode_batch(
        memoryview(mfp), [(6, np.array([[0, 0, len(mfp)]]))], np.array([0, 2, 5]), 3, decided
    )
    kept = np.array([0, 2, 5])
    of_events = encoder.encode_banks([[odin[i]] for i in kept], kept, decided)
    assert of_events.data == of_batch.data
    for i, record in zip(kept.tolist(), iter_records(of_batch.data), strict=True):
        (bank,) = [bank for bank in record.banks() if bank.type == BankType.HLT_LUMI_SUMMARY]
        counters = decode_lumi_summary(bank, schema)
        small, shifted, large = np.minimum(sent[i], (7, 0xFFFF, 0x1FFFFF)).tolist()
        assert (counters["Small"], counters["Shifted"], counters["Large"]) == (small, (shifted - 100) / 2, large)
        assert (counters["BXType"], counters["GEC"], counters["BCIDLow"]) == (i % 4, 1, 5 * 3564 + i)
        assert "Tracks" not in counters
