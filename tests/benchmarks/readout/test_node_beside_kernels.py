"""A node against its kernels: figures of the report."""

from __future__ import annotations

import pytest

from benchmarks.readout.node_beside_kernels import TARGET, Turn, node_rows, ratios


def test_the_ratio_of_a_node_counts_all_threads_and_is_the_median_over_the_turns() -> None:
    turns = [
        Turn(kernels=1000.0, node={"kernels": 1000.0, "event loop": node, "ZeroMQ": 50.0})
        for node in (50.0, 150.0, 950.0)
    ]
    assert [turn.ratio for turn in turns] == pytest.approx([1.1, 1.2, 2.0])
    whole, *threads = node_rows("mu3e", "us/sub-slice", turns)
    assert whole.value == pytest.approx(1200.0)
    assert whole.unit == "us/sub-slice"
    assert whole.ratio == pytest.approx(TARGET / 1.2)
    assert whole.reached
    assert next(node_rows("mu3e", "us/sub-slice", turns[2:])).reached is False
    assert [(row.name, row.value) for row in threads] == [
        ("  mu3e: kernels", 1000.0),
        ("  mu3e: event loop", 150.0),
        ("  mu3e: ZeroMQ", 50.0),
    ]


def test_the_figures_are_the_ratios_by_name() -> None:
    rows = [
        row for name, node in (("a", 110.0), ("b", 130.0)) for row in node_rows(name, "us", [Turn(100.0, {"x": node})])
    ]
    assert ratios(rows) == pytest.approx({"a": 1.1, "b": 1.3})
    assert ratios([]) == {}
