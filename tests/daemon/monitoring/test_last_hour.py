"""The samples of the last hour, and the curves that are drawn from them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.status_page.curves import CURVE_HEIGHT, CURVE_WIDTH, HOUR_NS, drawn_curves
from hltnode.daemon.monitoring.status_page.last_hour import PERIOD_NS, QUANTITIES, SAMPLES, LastHour, as_columns
from hltnode.daemon.monitoring.status_page.rates import RateWindow

SECOND = 1_000_000_000


def hour_of(n: int) -> LastHour:
    """Samples of growing rates: 10 k events/s in sample k, a tenth accepted, a quarter dead time, 20 ms latency."""
    counters = Counters()
    hour = LastHour(counters)
    hour.note(0)
    for k in range(1, n + 1):
        counters.events_processed += 100 * k
        counters.events_accepted += 10 * k
        counters.dead_time[DeadTimeReason.DISK] += 2.5
        counters.end_to_end.observe(0.02, times=4)
        hour.note(k * PERIOD_NS)
    return hour


def test_samples_have_the_rates_of_ten_seconds() -> None:
    samples = hour_of(3).samples()
    assert samples.ends.tolist() == [PERIOD_NS, 2 * PERIOD_NS, 3 * PERIOD_NS]
    assert samples.values.tolist() == [pytest.approx([10 * k, k, 0.25, 0.02]) for k in (1, 2, 3)]
    assert hour_of(3).latest_latency() == pytest.approx(0.02)


def test_only_the_last_hour_is_kept_in_a_fixed_memory() -> None:
    hour = hour_of(SAMPLES + 40)
    samples = hour.samples()
    assert samples.ends.tolist() == [k * PERIOD_NS for k in range(41, SAMPLES + 41)]
    assert samples.values[-1, 0] == 10 * (SAMPLES + 40)
    assert hour._ends.nbytes + hour._values.nbytes < 10_000


def test_a_tick_within_ten_seconds_takes_no_sample() -> None:
    counters = Counters()
    window = RateWindow(counters)
    for tick in range(50):
        window.note(tick * SECOND // 2)
    assert len(window.hour.samples().ends) == 2


def test_a_sample_without_a_decision_has_no_latency() -> None:
    hour = LastHour(Counters())
    assert hour.latest_latency() is None
    hour.note(0)
    hour.note(PERIOD_NS)
    assert hour.latest_latency() is None
    columns = as_columns(hour.samples(), 2 * PERIOD_NS, 1000.0)
    rates = {key: [0.0] for key in ("events_per_s", "accepted_per_s", "dead_time")}
    assert columns == {"time": [990.0], **rates, "latency_s": [None]}


def test_the_json_of_a_full_hour_is_small() -> None:
    columns = as_columns(hour_of(SAMPLES).samples(), HOUR_NS, 1.8e9)
    assert set(columns) == {"time", *QUANTITIES}
    assert len(json.dumps(columns)) < 25_000


def test_curves_end_at_the_newest_sample_and_are_scaled_to_the_highest_value() -> None:
    curves = drawn_curves(hour_of(SAMPLES).samples(), HOUR_NS + 5 * SECOND, 1.8e9)
    rate, _, dead, latency = curves.curves
    points = [tuple(map(float, point.split())) for point in re.findall(r"[ML]([\d.]+ [\d.]+)", rate.path)]
    assert len(points) == SAMPLES
    assert points[-1] == pytest.approx((CURVE_WIDTH, 0), abs=0.5)
    assert points[0] == pytest.approx((CURVE_WIDTH / SAMPLES, CURVE_HEIGHT), abs=0.5)
    assert rate.path.count("M") == 1
    assert (rate.last, rate.highest, rate.lowest) == ("3.60 kHz", "3.60 kHz", "10 Hz")
    assert (dead.last, latency.last) == ("25.0 %", "20 ms")
    assert (curves.start, curves.end, curves.newest) == ("07:00", "08:00", "07:59:55")
    # Dead time is drawn on a scale of 0 to 100 %.
    assert f" {CURVE_HEIGHT * 0.75:.1f}" in dead.path


def test_a_missing_sample_and_a_value_that_is_not_known_interrupt_a_curve() -> None:
    samples = hour_of(10).samples()
    samples.ends[5:] += 4 * PERIOD_NS
    samples.values[2, 3] = np.nan
    rate, *_, latency = drawn_curves(samples, 15 * PERIOD_NS, 1.8e9).curves
    assert rate.path.count("M") == 2
    assert latency.path.count("M") == 3
    assert len(re.findall("[ML]", latency.path)) == 9


def test_a_node_without_samples_has_empty_curves() -> None:
    curves = drawn_curves(LastHour(Counters()).samples(), 0, 1.8e9)
    assert [(curve.path, curve.last) for curve in curves.curves] == [("", "–")] * 4
    assert curves.newest == ""
