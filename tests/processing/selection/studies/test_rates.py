"""Rates of lines, compared with counts in plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.rates import RateCounts, size_of
from hltnode.processing.selection.studies.scans import Scan
from hltnode.processing.selection.studies.tables import rates_text
from hltnode.protocol.lhcb.bank_types import TRUTH_TYPES, LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

N_EVENTS = 400
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
    events = [[bank(int(n))] for n in rng.integers(0, 99, N_EVENTS)]
    counts = RateCounts(NAMES, [SCAN])
    for begin, end in ((0, 0), (0, 1), (1, 250), (250, N_EVENTS)):
        counts.add(events[begin:end], fired[begin:end], [varied[begin:end]])
    return counts, [set(np.flatnonzero(row).tolist()) for row in fired], [size_of(event) for event in events], varied


def test_rates_are_the_crossing_rate_times_the_fraction_of_all_events() -> None:
    counts, lines, sizes, _ = counted()
    result = counts.result(1e6)
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
    events = [[bank(int(n))] for n in rng.integers(0, 99, 30)]
    whole, first, second = (RateCounts(["A", "B", "C"]) for _ in range(3))
    whole.add(events, fired)
    first.add(events[:10], fired[:10])
    second.add(events[10:], fired[10:])
    first.add_counts(second)
    assert first.result() == whole.result()


def test_each_value_of_a_scan_stands_in_the_place_of_the_line() -> None:
    counts, lines, _, varied = counted()
    (scan,) = counts.result(N_EVENTS)["scans"]
    for i, point in enumerate(scan["points"]):
        others = [one - {1} for one in lines]
        own = varied[:, i].tolist()
        assert point["value"] == SCAN.values[i]
        assert point["line"]["rate_hz"] == sum(own)
        assert point["total"]["rate_hz"] == sum(mine or bool(rest) for mine, rest in zip(own, others, strict=True))
        assert point["exclusive"]["rate_hz"] == sum(mine and not rest for mine, rest in zip(own, others, strict=True))


def test_a_line_without_an_event_has_an_error_and_an_upper_end_above_zero() -> None:
    counts = RateCounts(["A", "B"])
    counts.add([[]] * 100, np.zeros((100, 2), bool))
    of = counts.result(100.0)["lines"]["A"]
    assert (of["rate_hz"], of["low_hz"]) == (0.0, 0.0)
    # (1 / n) / (1 + 1 / n): half an event in each direction of the Wilson interval.
    assert of["high_hz"] == pytest.approx(100 / 101)
    assert of["error_hz"] == pytest.approx(50 / 101)
    assert counts.result()["total"]["bytes_per_event"] is None


def test_no_event_is_no_rate() -> None:
    with pytest.raises(ValueError, match="at least one event"):
        RateCounts(["A"]).result()


def test_the_size_of_an_event_leaves_truth_and_reports_out_and_counts_headers_and_padding() -> None:
    added = [LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES, BankType.HLT_DEC_REPORTS, BankType.HLT_SEL_REPORTS]
    assert size_of([bank(0), bank(1), bank(4), *(bank(100, one) for one in added)], TRUTH_TYPES) == 8 + 12 + 12


def test_two_configurations_stand_beside_each_other_in_one_table() -> None:
    counts, *_ = counted()
    head = {"sequence": "velo", "tck": "0x00000001"}
    text = rates_text([("one", head | counts.result()), ("other", head | counts.result())])
    rows = [row for row in text.splitlines() if row.startswith("total")]
    assert len(rows) == 1
    assert rows[0].count("+") == 2
    assert f"one: {NAMES[1]}.prescale" in text
    assert f"other: {NAMES[1]}.prescale" in text
