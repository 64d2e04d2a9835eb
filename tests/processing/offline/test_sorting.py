import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.offline.sorting import distinct, distinct_and_places, ranges, stable_order


def test_ranges_count_on_from_each_start() -> None:
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 50), max_size=60))
def test_sorting_helpers_agree_with_numpy(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    expected, places = np.unique(array, return_inverse=True)
    assert distinct(array).tolist() == expected.tolist()
    assert [part.tolist() for part in distinct_and_places(array)] == [expected.tolist(), places.tolist()]
    assert stable_order(array)[0].tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 1000])
def test_the_larger_the_values_the_fewer_can_be_sorted_up_to_the_bits_of_a_number(n: int) -> None:
    largest = 2**63 // (2 * n) - 1
    array = np.where(np.arange(n) % 3 == 1, largest - 1, largest)
    order, ordered = stable_order(array)
    assert order.tolist() == np.argsort(array, kind="stable").tolist()
    assert ordered.tolist() == np.sort(array).tolist()
