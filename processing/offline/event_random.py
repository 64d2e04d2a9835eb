"""Random numbers for several events at once, each event's from its own generator.

The numbers of an event depend on its own seed and requests, not on the other events: numbers for the rows of a chunk of
events are drawn event by event and concatenated.
"""

from collections.abc import Sequence

import numpy as np

from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask


class EventRandom:
    """The generators of the events of a chunk.

    `event` arguments are the event (0, 1, ... of the chunk) of each row and must rise.
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self.generators = generators

    def __len__(self) -> int:
        return len(self.generators)

    def uniform(self, event: Int64Array, width: int = 1) -> Float64Array:
        """Numbers from 0 to 1, f64[n, width], or [n] for width 1."""
        parts = [rng.random((count, width)) for rng, count in zip(self.generators, self._counts(event), strict=True)]
        return self._joined(parts, width)

    def normal(self, event: Int64Array, width: int = 1) -> Float64Array:
        """Standard normal numbers, f64[n, width], or [n] for width 1; of float32 precision, which is faster."""
        parts = [
            rng.standard_normal((count, width), dtype=np.float32).astype(np.float64)
            for rng, count in zip(self.generators, self._counts(event), strict=True)
        ]
        return self._joined(parts, width)

    def exponential(self, event: Int64Array) -> Float64Array:
        """Exponential numbers of mean 1, f64[n]."""
        parts = [
            rng.standard_exponential((count, 1))
            for rng, count in zip(self.generators, self._counts(event), strict=True)
        ]
        return self._joined(parts, 1)

    def gamma(self, event: Int64Array, shape: Float64Array) -> Float64Array:
        """Gamma-distributed numbers of scale 1 with each row's own shapes, f64 like `shape` [n, width]."""
        ends = np.cumsum(self._counts(event)).tolist()
        starts = [0, *ends[:-1]]
        parts = [
            rng.standard_gamma(shape[start:end]) for rng, start, end in zip(self.generators, starts, ends, strict=True)
        ]
        return np.concatenate(parts)

    def poisson(self, means: Float64Array) -> Int64Array:
        """One number per event and column of `means` f64[n_events, width], i64."""
        return np.stack([rng.poisson(mean) for rng, mean in zip(self.generators, means, strict=True)])

    def poisson_by_row(self, event: Int64Array, means: Float64Array) -> Int64Array:
        """One number per row, i64, with each row's own mean."""
        ends = np.cumsum(self._counts(event)).tolist()
        starts = [0, *ends[:-1]]
        return np.concatenate(
            [rng.poisson(means[a:b]) for rng, a, b in zip(self.generators, starts, ends, strict=True)]
        )

    def chance(self, event: Int64Array, probability: float | Float64Array) -> Mask:
        """True with the given probability, row by row."""
        happens: Mask = self.uniform(event) < probability
        return happens

    def _counts(self, event: Int64Array) -> list[int]:
        counts: list[int] = np.bincount(event, minlength=len(self.generators)).tolist()
        return counts

    @staticmethod
    def _joined(parts: list[Float64Array], width: int) -> Float64Array:
        rows = np.concatenate(parts)
        return rows[:, 0] if width == 1 else rows
