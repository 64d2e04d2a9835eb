"""Measurements: what is written is read, other versions and chains are refused, and times are drawn from them."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode import __version__
from hltnode.daemon.farm_model.description import FarmError
from hltnode.daemon.farm_model.measurement import (
    Measurement,
    load_measurement,
    parse_measurement,
    point_of,
)
from hltnode.daemon.farm_model.service_times import MeasuredTimes, Uniform

SECONDS = np.random.default_rng(1).gamma(4.0, 1e-3, 500)


def measurement(**changes: Any) -> Measurement:
    values: dict[str, Any] = {
        "hltnode": __version__,
        "chain": "lhcb",
        "sequence": "forward",
        "tck": "0x1",
        "back_end": "cpu",
        "threads": 1,
        "machine": "x86_64",
        "is_estimate": False,
        "accepted": 0.05,
        "points": (
            point_of("all", 10, 5e4, SECONDS.tolist()),
            point_of("all", 30, 5e4, (2 * SECONDS).tolist()),
            point_of("high", 10, 9e4, (3 * SECONDS).tolist()),
        ),
    }
    return Measurement(**{**values, **changes})


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**measurement().as_json(), **changes}))
    return path


def test_a_measurement_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert load_measurement(write(tmp_path / "m.json"), "lhcb", __version__) == measurement()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"chain": "mu3e"}, "measured for chain mu3e, expected lhcb"),
        ({"hltnode": "0.0.1"}, f"measured by hltnode 0.0.1, this is {__version__}"),
        ({"version": 2}, "measurement of version 2, expected 1"),
        ({"format": "other"}, "not a measurement of `hltnode farm measure`"),
        ({"points": []}, "points: expected a list of 1 to"),
        ({"points": [{}]}, "lacks the key 'seconds'"),
        ({"accepted": 1.5}, "accepted: expected a number from 0 to 1"),
        ({"threads": "1"}, "threads: expected int"),
        ({"is_estimate": 0}, "is_estimate: expected bool"),
        ({"points": [measurement().as_json()["points"][0]] * 2}, "two have the same occupancy and number of events"),
        ({"points": [{**measurement().as_json()["points"][0], "seconds": [1.0] * 64}]}, "expected 65 quantiles"),
        ({"points": [{**measurement().as_json()["points"][0], "seconds": [1.0, *[0.5] * 64]}]}, "ascending quantiles"),
        ({"points": [{**measurement().as_json()["points"][0], "seconds": [0.0] * 65}]}, "expected a number from 1e-09"),
        ({"points": [{**measurement().as_json()["points"][0], "occupancy": "most"}]}, "occupancy: expected one of"),
        ({"points": [{**measurement().as_json()["points"][0], "events": 0}]}, "points: events"),
    ],
)
def test_another_measurement_is_refused_with_the_reason(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(FarmError) as error:
        load_measurement(write(tmp_path / "m.json", **changes), "lhcb", __version__)
    assert expected in str(error.value)
    assert str(tmp_path / "m.json") in str(error.value)


@given(st.binary(max_size=100) | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_any_bytes_are_a_farm_error(raw: bytes) -> None:
    with pytest.raises(FarmError, match="any"):
        parse_measurement(raw, "any")


_KEYS = sorted(measurement().as_json())


@given(
    st.dictionaries(
        st.sampled_from(_KEYS),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers() | st.just({})),
        min_size=1,
    )
)
def test_any_values_are_a_measurement_or_a_farm_error(changes: dict[str, Any]) -> None:
    with contextlib.suppress(FarmError):
        found = parse_measurement(json.dumps({**measurement().as_json(), **changes}).encode(), "any")
        assert found.points


def test_drawn_times_have_the_measured_distribution() -> None:
    times = MeasuredTimes(measurement(), "all", 1.0, np.random.default_rng(2))
    drawn = np.array([times.draw(10) for _ in range(20_000)])
    assert drawn.mean() == pytest.approx(SECONDS.mean(), rel=0.02)
    assert drawn.mean() == pytest.approx(times.mean(10), rel=0.02)
    for part in (0.1, 0.5, 0.9):
        assert np.quantile(drawn, part) == pytest.approx(np.quantile(SECONDS, part), rel=0.03)
    assert SECONDS.min() <= drawn.min()
    assert drawn.max() <= SECONDS.max()


def test_times_follow_the_batch_size_the_occupancy_and_the_speed() -> None:
    times = MeasuredTimes(measurement(), "all", 1.0, np.random.default_rng(2))
    at_10 = times.mean(10)
    assert times.mean(1) == pytest.approx(at_10), "a small batch costs its overhead"
    assert times.mean(20) == pytest.approx(1.5 * at_10)
    assert times.mean(60) == pytest.approx(4 * at_10), "above the largest size, in proportion"
    assert MeasuredTimes(measurement(), "high", 1.0, np.random.default_rng(2)).mean(10) == pytest.approx(3 * at_10)
    assert MeasuredTimes(measurement(), "all", 2.0, np.random.default_rng(2)).mean(10) == pytest.approx(at_10 / 2)
    with pytest.raises(FarmError, match="no times for 'low', only for all, high"):
        MeasuredTimes(measurement(), "low", 1.0, np.random.default_rng(2))


def test_uniform_numbers_are_those_of_the_generator() -> None:
    uniform = Uniform(np.random.default_rng(3))
    drawn = [uniform.draw() for _ in range(5000)]
    assert sorted(drawn[:4096]) == sorted(np.random.default_rng(3).random(4096).tolist())
    assert len(set(drawn)) == 5000
