"""The times at which the sources have a complete MEP: regular or random, with bursts, and with the decay of a fill."""

import math

import numpy as np

from hltnode.daemon.farm_model.description import Arrivals, FarmDescription
from hltnode.daemon.farm_model.node_numbers import to_ns
from hltnode.daemon.farm_model.service_times import BLOCK


class MepTimes:
    """Times of MEPs in ns; the rate is that at the end of the previous MEP."""

    def __init__(self, description: FarmDescription, generator: np.random.Generator) -> None:
        self._seconds_per_mep = 1.0 / description.meps_per_second
        self._burst = description.burst
        self._lifetime = description.readout.lifetime_seconds
        self._is_random = description.readout.arrivals is Arrivals.POISSON
        self._generator = generator
        self._left: list[float] = []
        # Fractions of a ns are carried over, so that the rate is exact.
        self._rest = 0.0
        self.first_ns = max(1, to_ns(self._seconds_per_mep) + to_ns(description.nodes.control_seconds))

    def next_ns(self, now_ns: int) -> int | None:
        """The time of the next MEP; None if there is none in this age of the universe."""
        seconds = self._seconds_per_mep
        now = now_ns * 1e-9
        if self._lifetime:
            if now / self._lifetime > 40.0:
                return None
            seconds *= math.exp(now / self._lifetime)
        if self._burst is not None and now % self._burst.every_seconds < self._burst.seconds:
            seconds /= self._burst.factor
        if self._is_random:
            if not self._left:
                self._left = self._generator.exponential(1.0, BLOCK).tolist()
            seconds *= self._left.pop()
        exact = seconds * 1e9 + self._rest
        step = int(exact)
        self._rest = exact - step
        return now_ns + step
