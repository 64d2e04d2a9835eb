"""Rates of lines, compared with counts in plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hltnode.processing.framework.readout import SampleTruth
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.readout import LhcbReadout
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.event_rate import EventRate, frequency
from hltnode.processing.selection.studies.rates import RateCounts, sizes_of
from hltnode.processing.selection.studies.scans import Scan
from hltnode.processing.selection.studies.tables import needed_text, rates_text
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.lhcb.bank_types import TRUTH_TYPES, LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

N_EVENTS = 400
CROSSINGS = EventRate(30e6, "bunch crossing")
TRIGGER = TriggerConfig.default(HLT1_MENU)
NAMES = TRIGGER.line_names
SCAN = Scan.read(f"{NAMES[1]}.prescale=0:1:3", TRIGGER)


def bank(nbytes: int, bank_type: int = LhcbBankType.VP) -> RawBank:
    return RawBank(bank_type, 1, 0, memoryview(bytes(nbytes)))


def counted() -> tuple[RateCounts, list[set[int]], list[int], np.ndarray]:
    """Random decisions in batches of several sizes; returns the lines and bytes of each event, and the scan
    decisions."""
    rng = np.random.default_rng(11)
    fired = rng.random((N_EVENTS, len(NAMES))) < np.linspace(0.3, 0.0, len(NAMES))
    varied = rng.random((N_EVENTS, len(SCAN.values))) < 0.3
    events = EventTable.of_events([[bank(int(n))] for n in rng.integers(0, 99, N_EVENTS)])
    counts = RateCounts(NAMES, [SCAN])
    for begin, end in ((0, 0), (0, 1), (1, 250), (250, N_EVENTS)):
        counts.add(events[begin:end], fired[begin:end], [varied[begin:end]])
    return counts, [set(np.flatnonzero(row).tolist()) for row in fired], sizes_of(events).tolist(), varied


def test_rates_are_the_crossing_rate_times_the_fraction_of_all_events() -> None:
    counts, lines, sizes, _ = counted()
    result = counts.result(EventRate(1e6))
    per_event = 1e6 / N_EVENTS
    assert result["events"] == N_EVENTS
    for i, name in enumerate(NAMES):
        of = result["lines"][name]
        assert of["rate_hz"] == pytest.approx(per_event * sum(i in one for one in lines))
        assert of["exclusive_hz"] == pytest.approx(per_event * sum(one == {i} for one in lines))
        kept = sum(size for one, size in zip(lines, sizes, strict=True) if i in one)
        assert of["bytes_per_second"] == pytest.approx(per_event * kept)
        for j in range(len(NAMES)):
            assert result["overlap"]["events"][i][j] == sum(i in one and j in one for one in lines)
    total = result["total"]
    assert total["rate_hz"] == pytest.approx(per_event * sum(bool(one) for one in lines))
    assert total["bytes_per_second"] == pytest.approx(
        per_event * sum(size for one, size in zip(lines, sizes, strict=True) if one)
    )


def test_counts_of_two_parts_of_a_sample_add_up_to_those_of_the_whole() -> None:
    rng = np.random.default_rng(12)
    fired = rng.random((30, 3)) < 0.4
    events = EventTable.of_events([[bank(int(n))] for n in rng.integers(0, 99, 30)])
    whole, first, second = (RateCounts(["A", "B", "C"]) for _ in range(3))
    whole.add(events, fired)
    first.add(events[:10], fired[:10])
    second.add(events[10:], fired[10:])
    first.add_counts(second)
    assert first.result(CROSSINGS) == whole.result(CROSSINGS)


def test_each_value_of_a_scan_stands_in_the_place_of_the_line() -> None:
    counts, lines, _, varied = counted()
    (scan,) = counts.result(EventRate(N_EVENTS))["scans"]
    for i, point in enumerate(scan["points"]):
        others = [one - {1} for one in lines]
        own = varied[:, i].tolist()
        assert point["value"] == SCAN.values[i]
        assert point["line"]["rate_hz"] == sum(own)
        assert point["total"]["rate_hz"] == sum(mine or bool(rest) for mine, rest in zip(own, others, strict=True))
        assert point["exclusive"]["rate_hz"] == sum(mine and not rest for mine, rest in zip(own, others, strict=True))


def test_a_line_without_an_event_has_an_error_and_an_upper_end_above_zero() -> None:
    counts = RateCounts(["A", "B"])
    counts.add(EventTable.of_events([[]] * 100), np.zeros((100, 2), bool))
    of = counts.result(EventRate(100.0))["lines"]["A"]
    assert (of["rate_hz"], of["low_hz"]) == (0.0, 0.0)
    # (1 / n) / (1 + 1 / n): half an event in each direction of the Wilson interval.
    assert of["high_hz"] == pytest.approx(100 / 101)
    assert of["error_hz"] == pytest.approx(50 / 101)
    assert counts.result(CROSSINGS)["total"]["bytes_per_event"] is None


class Weighted(LhcbReadout):
    """Reads weight and kind of an event from the size of its truth bank."""

    def sample_of(self, banks: Sequence[RawBank]) -> SampleTruth | None:
        size = len(banks[0].payload)
        if size == 99:
            raise TruthError(RejectReason.BAD_SIZE, "MC sample")
        return None if size == 0 else SampleTruth("z" if size > 50 else "minbias", size <= 50, size / 10)


def counts_of(sizes: Sequence[int], fired: np.ndarray) -> RateCounts:
    counts = RateCounts(["A", "B"], readout=Weighted())
    events = [[bank(size), bank(size, LhcbBankType.MC_SAMPLE)] for size in sizes]
    counts.add(EventTable.of_events(events), fired)
    return counts


def test_weights_of_simulated_events_enter_rates_errors_overlaps_and_bytes() -> None:
    rng = np.random.default_rng(13)
    sizes, fired = rng.integers(1, 20, 600), rng.random((600, 2)) < 0.05
    weights = sizes / 10
    result = counts_of(sizes.tolist(), fired).result(EventRate(1000.0))
    own, total = weights[fired[:, 0]], weights.sum()
    of = result["lines"]["A"]
    assert of["events"] == fired[:, 0].sum()
    assert of["rate_hz"] == pytest.approx(1000 * own.sum() / total)
    assert of["effective_events"] == pytest.approx(own.sum() ** 2 / (own**2).sum())
    assert of["error_hz"] == pytest.approx(1000 * np.sqrt((own**2).sum()) / total, rel=0.06)
    assert of["exclusive_hz"] == pytest.approx(1000 * weights[fired[:, 0] & ~fired[:, 1]].sum() / total)
    banks = sizes_of(EventTable.of_events([[bank(int(size))] for size in sizes]))
    assert of["bytes_per_second"] == pytest.approx(1000 * (weights * banks)[fired[:, 0]].sum() / total)
    assert result["total"]["rate_hz"] == pytest.approx(1000 * weights[fired.any(axis=1)].sum() / total)
    assert result["overlap"]["weights"][0][1] == pytest.approx(weights[fired.all(axis=1)].sum())
    assert result["overlap"]["events"][0][1] == fired.all(axis=1).sum()
    assert result["sample"]["weighted"]
    assert result["sample"]["largest_event_hz"] == pytest.approx(1000 * 1.9 / total)
    text = rates_text([("x", {"sequence": "velo", "tck": "0x1"} | result)])
    assert "600 events with weights" in text
    assert "an event of a kind that is not drawn more often counts 0.0 kHz" in text


def test_parts_of_a_weighted_sample_add_up() -> None:
    rng = np.random.default_rng(14)
    sizes, fired = rng.integers(1, 60, 80).tolist(), rng.random((80, 2)) < 0.3
    whole, first, second = (counts_of(sizes[part], fired[part]) for part in (slice(80), slice(30), slice(30, 80)))
    first.add_counts(second)
    summed, at_once = first.result(CROSSINGS), whole.result(CROSSINGS)
    assert summed["sample"]["kinds"] == at_once["sample"]["kinds"]
    assert summed["sample"]["effective_events"] == pytest.approx(at_once["sample"]["effective_events"])
    assert summed["lines"]["A"] == pytest.approx(at_once["lines"]["A"])


def test_a_sample_that_is_not_minimum_bias_is_named() -> None:
    nothing = np.zeros((4, 2), bool)
    warnings = [
        counts_of(sizes, nothing).result(CROSSINGS)["sample"]["warning"] for sizes in ([5] * 4, [0] * 4, [0, 5, 5, 0])
    ]
    assert warnings == [None] * 3
    signal = counts_of([60] * 4, nothing).result(CROSSINGS)
    assert signal["sample"]["kinds"] == {"z": 4}
    assert signal["sample"]["warning"].startswith("the sample is z, not minimum bias")
    assert "warning: the sample is z" in rates_text([("x", {"sequence": "velo", "tck": "0x1"} | signal)])
    assert "1 of 4 events are z" in counts_of([5, 5, 60, 0], nothing).result(CROSSINGS)["sample"]["warning"]
    assert (
        "weight of 1 events cannot be read" in counts_of([5, 99, 5, 0], nothing).result(CROSSINGS)["sample"]["warning"]
    )


def test_the_number_of_events_for_a_tenth_is_stated_and_is_a_lower_limit_without_an_event() -> None:
    fired = np.zeros((1000, 2), bool)
    fired[:5, 0] = True
    result = counts_of([0] * 1000, fired).result(CROSSINGS)
    assert result["lines"]["A"]["events_for_10_percent"] == pytest.approx(20_000, rel=0.01)
    assert result["lines"]["B"]["events_for_10_percent"] == pytest.approx(100_000, rel=0.01)
    text = rates_text([("x", {"sequence": "velo", "tck": "0x1"} | result)])
    rows = {row.split()[0]: row.split() for row in text.splitlines() if row[:1] in ("A", "B")}
    assert "20k" in rows["A"]
    assert ">100k" in rows["B"]


@pytest.mark.parametrize(
    ("events", "text"), [(7, "7"), (99, "99"), (101, "100"), (12_345, "12k"), (1_234_567, "1200k"), (98_765_432, "99M")]
)
def test_needed_events_are_shown_with_two_digits(events: int, text: str) -> None:
    assert needed_text(events, 1) == text
    assert needed_text(events, 0) == f">{text}"


def test_no_event_is_no_rate() -> None:
    with pytest.raises(ValueError, match="at least one event"):
        RateCounts(["A"]).result(CROSSINGS)


def test_the_size_of_an_event_leaves_truth_and_reports_out_and_counts_headers_and_padding() -> None:
    added = [LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES, BankType.HLT_DEC_REPORTS, BankType.HLT_SEL_REPORTS]
    banks = [bank(0), bank(1), bank(4), *(bank(100, one) for one in added)]
    assert sizes_of(EventTable.of_events([banks, [], banks[1:2]]), TRUTH_TYPES).tolist() == [8 + 12 + 12, 0, 12]


def test_two_configurations_stand_beside_each_other_in_one_table() -> None:
    counts, *_ = counted()
    head = {"sequence": "velo", "tck": "0x00000001"}
    text = rates_text([("one", head | counts.result(CROSSINGS)), ("other", head | counts.result(CROSSINGS))])
    rows = [row for row in text.splitlines() if row.startswith("total")]
    assert len(rows) == 1
    assert rows[0].count("+") == 2
    assert f"one: {NAMES[1]}.prescale" in text
    assert f"other: {NAMES[1]}.prescale" in text


def test_the_table_says_what_one_event_is_and_how_often_it_comes() -> None:
    counts, *_ = counted()
    of_slices = counts.result(EventRate(1e9 / 24_000, "sub-slice"))
    assert (of_slices["crossing_rate_hz"], of_slices["event"]) == (1e9 / 24_000, "sub-slice")
    text = rates_text([("one", {"sequence": "velo", "tck": "0x00000001"} | of_slices)])
    assert "400 events, each for one sub-slice of 41.6667 kHz; errors" in text
    assert [frequency(hz) for hz in (30e6, 1e6, 999.0, 1e3, 0.5)] == ["30 MHz", "1 MHz", "999 Hz", "1 kHz", "0.5 Hz"]
