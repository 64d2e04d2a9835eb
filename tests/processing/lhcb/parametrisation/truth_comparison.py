"""Predictions of the parametrisation for the long particles of the real events, compared with measurements.

`python -m tests.processing.lhcb.parametrisation.truth_comparison FOLDER`, with the folder of shared data, prints the
table of docs/physics/magnet-parametrisation.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.magnet import DOWN
from hltnode.processing.lhcb.parametrisation.forms import Z_UT
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.scattering import Quantity
from tests.processing.lhcb.parametrisation.truth_tracks import TruthTracks, truth_tracks

FloatArray = NDArray[np.float64]
MOMENTUM_BINS = (1.5, 3.0, 5.0, 10.0, 1000.0)
QUANTITIES = {
    "x of momentum, mm": Quantity.X_BEHIND,
    "tx of momentum, mrad": Quantity.TX_BEHIND,
    "x at the UT of momentum, mm": Quantity.X_AT_UT,
    "x matched at the magnet, mm": Quantity.MATCH_X,
    "y matched, mm": Quantity.MATCH_Y,
    "ty matched, mrad": Quantity.MATCH_TY,
    "momentum of kink, per cent": Quantity.KINK,
}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Predicted minus measured value of each quantity, and the expected error, f64[n]."""

    p: FloatArray
    slope_x: FloatArray
    slope_y: FloatArray
    errors: dict[str, FloatArray]
    expected: dict[str, FloatArray]

    @classmethod
    def of(cls, tracks: TruthTracks, parameters: LongTrackParameters) -> Comparison:
        functions, line, measured, s = parameters.behind_velo, tracks.velo, tracks.behind, tracks.s(DOWN)
        kink = measured.tx - line.tx
        foreseen, of_kink = functions.curve(line, functions.kink(line, s)), functions.curve(line, kink)
        measured_p = 1000.0 / np.abs(functions.momentum(line, kink)) + parameters.energy_loss
        ut_x, _ = parameters.before_ut.state(line, s, Z_UT)
        errors = (
            foreseen.x - measured.x,
            1e3 * (foreseen.tx - measured.tx),
            ut_x - tracks.ut_x,
            of_kink.x - measured.x,
            of_kink.y - measured.y,
            1e3 * (of_kink.ty - measured.ty),
            100.0 * (measured_p / tracks.p - 1.0),
        )
        scales = (1.0, 1e3, 1.0, 1.0, 1.0, 1e3, 100.0 / np.abs(kink))
        p, angle = tracks.p / 1000.0, np.hypot(line.tx, line.ty)
        expected = [
            scale * np.sqrt(parameters.errors.variance(quantity, p, angle))
            for scale, quantity in zip(scales, QUANTITIES.values(), strict=True)
        ]
        return cls(
            p,
            line.tx * np.sign(s),
            line.ty,
            dict(zip(QUANTITIES, errors, strict=True)),
            dict(zip(QUANTITIES, expected, strict=True)),
        )

    def between(self, name: str, lowest: float, highest: float) -> tuple[float, float, float, float, int]:
        """Median, its error, half the width of the central 68 %, the same of error over expected error; number of
        tracks."""
        inside = (self.p >= lowest) & (self.p < highest) & np.isfinite(self.errors[name])
        values = self.errors[name][inside]
        low, median, high = np.quantile(values, [0.16, 0.5, 0.84])
        width, n = 0.5 * (high - low), len(values)
        pull_low, pull_high = np.quantile(values / self.expected[name][inside], [0.16, 0.84])
        return median, 1.25 * width / np.sqrt(n), width, 0.5 * (pull_high - pull_low), n


def main(shared: Path) -> None:
    """Print the table of the physics page."""
    parameters = LongTrackParameters.builtin()
    compared = Comparison.of(truth_tracks(shared, parameters.behind_velo), parameters)
    for name in QUANTITIES:
        cells = []
        for lowest, highest in pairwise(MOMENTUM_BINS):
            median, error, width, pull, _ = compared.between(name, lowest, highest)
            cells.append(f"{median:+.2f} ± {error:.2f}, {width:.2f} ({pull:.2f})")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("tracks:", [compared.between("y matched, mm", *edges)[4] for edges in pairwise(MOMENTUM_BINS)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
