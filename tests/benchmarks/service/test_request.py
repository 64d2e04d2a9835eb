"""Figures of the benchmark of requests."""

import pytest

from benchmarks.service.request import ABOVE, request_mep, results, summary
from hltnode.protocol.raw_data.mep import mep_places


def test_the_difference_is_that_of_the_medians_of_each_round() -> None:
    rounds = [([0.003, 0.002, 0.9], [0.001, 0.001, 0.5]), ([0.004, 0.004, 0.004], [0.002, 0.002, 0.002])]
    rounds.append(([0.010, 0.010, 0.010], [0.003, 0.003, 0.003]))
    found = list(results(rounds))
    assert summary(found) == {"request_ms": pytest.approx(2.0)}
    above = found[-1]
    assert (above.name, above.reached) == (ABOVE, False)
    assert above.ratio == pytest.approx(0.125)


def test_a_request_has_the_events_and_boards_that_it_says() -> None:
    n_events, places = mep_places(request_mep(3))
    assert (n_events, len(places), set(places[:, 1] % 8)) == (3, 16, {0})
