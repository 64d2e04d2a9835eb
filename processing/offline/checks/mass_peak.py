"""Mass, width and size of a peak over a straight background in a histogram."""

from dataclasses import dataclass

import numpy as np

from hltnode.processing.offline.arrays import Float64Array

# Half the range of the fit, in widths of the peak. The tails from scattered tracks lie outside.
_RANGE = 3.0
_MOST_STEPS = 60
_SMALLEST_STEP = 1e-4
# The position of a peak with fewer entries is not significant.
MIN_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class MassPeak:
    """Gaussian core over a straight line, fitted from `low` to `high`.

    mass, width: of the core, in MeV, with errors. signal, background: entries of the core and of the line within the
    range of the fit. slope: of the line, in entries per MeV².
    """

    mass: float
    mass_error: float
    width: float
    width_error: float
    signal: float
    background: float
    slope: float
    low: float
    high: float

    def density(self, mass: Float64Array) -> Float64Array:
        """Entries per MeV, of peak and line together."""
        line = self.background / (self.high - self.low) + self.slope * (mass - 0.5 * (self.low + self.high))
        return line + self.signal * _gauss(mass, self.mass, self.width)


def _gauss(x: Float64Array, mean: float, width: float) -> Float64Array:
    density: Float64Array = np.exp(-0.5 * ((x - mean) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return density


def fit_peak(counts: Float64Array, edges: Float64Array, mass: float, width: float) -> MassPeak | None:
    """The peak near `mass`, about `width` wide (MeV), by the largest Poisson likelihood; None if there is no peak.

    The range is three widths to both sides, and follows the fitted peak once.
    """
    peak = None
    for _ in range(2):
        peak = _fit(counts, edges, mass, width)
        if peak is None:
            return None
        mass, width = peak.mass, peak.width
    return peak


def _fit(counts: Float64Array, edges: Float64Array, mass: float, width: float) -> MassPeak | None:
    inside = (edges[:-1] >= mass - _RANGE * width) & (edges[1:] <= mass + _RANGE * width)
    n = counts[inside].astype(np.float64)
    if n.sum() < MIN_ENTRIES or inside.sum() < 6:
        return None
    low, high = edges[:-1][inside][0], edges[1:][inside][-1]
    x, bin_width = 0.5 * (edges[:-1] + edges[1:])[inside], np.diff(edges)[inside]
    middle = 0.5 * (low + high)
    # Entries of the peak, mass, width, entries of the line, slope of the line.
    at_ends = 0.5 * (n[0] + n[-1]) / bin_width[0] * (high - low)
    values = np.array([max(n.sum() - at_ends, 0.3 * n.sum()), mass, width, at_ends + 1.0, 0.0])

    def model(v: Float64Array) -> tuple[Float64Array, Float64Array]:
        peak, t = _gauss(x, v[1], v[2]), (x - v[1]) / v[2]
        expected = (v[0] * peak + v[3] / (high - low) + v[4] * (x - middle)) * bin_width
        ones = np.full_like(x, 1 / (high - low))
        derivative = np.stack([peak, v[0] * peak * t / v[2], v[0] * peak * (t**2 - 1) / v[2], ones, x - middle])
        return np.maximum(expected, 1e-3), derivative * bin_width

    def likelihood(v: Float64Array) -> float:
        expected, _ = model(v)
        return float((n * np.log(expected) - expected).sum())

    best = likelihood(values)
    for _ in range(_MOST_STEPS):
        expected, derivative = model(values)
        information = (derivative / expected) @ derivative.T
        gradient = derivative @ (n / expected - 1)
        try:
            step = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            return None
        scale = 1.0
        while scale > _SMALLEST_STEP:
            tried = values + scale * step
            if tried[2] > 0 and (better := likelihood(tried)) >= best:
                break
            scale /= 2
        else:
            break
        gained, best, values = better - best, better, tried
        if gained < 1e-6:
            break
    expected, derivative = model(values)
    try:
        error = np.sqrt(np.maximum(np.diag(np.linalg.inv((derivative / expected) @ derivative.T)), 0))
    except np.linalg.LinAlgError:
        return None
    if not (low < values[1] < high and values[0] > 0 and values[2] < high - low):
        return None
    signal, mean, sigma, background, slope = values.tolist()
    return MassPeak(mean, float(error[1]), sigma, float(error[2]), signal, background, slope, float(low), float(high))
