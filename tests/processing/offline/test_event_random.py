import numpy as np

from hltnode.processing.offline.event_random import EventRandom


def test_the_random_numbers_of_an_event_do_not_depend_on_its_neighbours() -> None:
    def chunk(seeds: list[int]) -> EventRandom:
        return EventRandom([np.random.default_rng(seed) for seed in seeds])

    together, alone = chunk([1, 2, 3]), chunk([2])
    event = np.array([0, 0, 1, 1, 1, 2])
    for draw in ("uniform", "normal"):
        of_chunk = getattr(together, draw)(event, 2)
        np.testing.assert_array_equal(of_chunk[2:5], getattr(alone, draw)(np.zeros(3, dtype=np.int64), 2))
    np.testing.assert_array_equal(together.exponential(event)[2:5], alone.exponential(np.zeros(3, dtype=np.int64)))
    shape = np.linspace(0.1, 1.0, 6)
    np.testing.assert_array_equal(together.gamma(event, shape)[2:5], alone.gamma(np.zeros(3, dtype=int), shape[2:5]))
    np.testing.assert_array_equal(together.poisson(np.full((3, 2), 4.0))[1], alone.poisson(np.full((1, 2), 4.0))[0])
