"""Measurements alternate, so that a machine that changes its speed favours none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.measure import Throughput, compare, compare_in_turn, in_turn


def measure_of(rates: list[float], name: str = "", order: list[str] | None = None) -> Callable[[], Throughput]:
    """Returns one rate after the other; the first one is for the warm-up."""
    left = iter(rates)

    def measure() -> Throughput:
        if order is not None:
            order.append(name)
        rate = next(left)
        return Throughput(rate, 1e6 / rate)

    return measure


def test_every_second_turn_has_reverse_order_after_one_warm_up_of_all() -> None:
    order: list[str] = []
    in_turn([measure_of([1.0] * 4, name, order) for name in "abc"], 3)
    assert "".join(order) == "abc" + "abc" + "cba" + "abc"


def test_what_the_warm_up_gives_does_not_count() -> None:
    assert in_turn([measure_of([7.0, 1.0, 2.0])], 2) == [[Throughput(1.0, 1e6), Throughput(2.0, 0.5e6)]]


def test_a_machine_that_changes_its_speed_changes_no_ratio() -> None:
    speeds = [1.0, 2.0, 0.5]
    found = compare_in_turn(measure_of([1.0, *speeds]), measure_of([1.0, *(3.0 * it for it in speeds)]), 3)
    assert (found.ratio, found.cpu_ratio) == pytest.approx((3.0, 3.0))


def test_figures_are_medians_of_the_turns() -> None:
    found = compare(*([Throughput(rate, 1.0) for rate in rates] for rates in ([1.0, 2.0, 9.0], [4.0, 5.0, 6.0])))
    assert (found.first.per_second, found.second.per_second, found.ratio) == (2.0, 5.0, 2.5)
