"""Impact parameter and momentum resolution of tracks matched to particles, with pulls."""

from typing import Any

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.checks.residuals import ResidualHistogram, summary

# The IP resolution is a straight line in 1/pt: multiple scattering over a constant.
_INVERSE_PT = Binning("$1/p_T$", "1/GeV", np.linspace(0, 5, 21), scale=1000.0)
# The straight line is fitted to bins with this number of entries and pT above 1/3 GeV: softer tracks also curl.
_MIN_ENTRIES, _LARGEST_INVERSE_PT = 20, 3.0
# Largest residual of p with a bin of its own (%): the UT alone measures it within 15 to 20 %.
_MOMENTUM_LIMITS = {Stage.UT: 80.0}
# Particles that start farther from the beam line than this (mm) come from the material.
_LARGEST_ORIGIN = 1.0


def _ip_histograms() -> dict[str, ResidualHistogram]:
    of_ip = {f"ip_{a}": ResidualHistogram(f"$IP_{a}$", "µm", 400.0, _INVERSE_PT) for a in "xy"}
    pulls = {f"pull_ip_{a}": ResidualHistogram(f"pull of $IP_{a}$", "", 5.0, _INVERSE_PT) for a in "xy"}
    return of_ip | pulls


def _momentum_histograms(limit: float, with_pull: bool) -> dict[str, ResidualHistogram]:
    p = PARTICLE_BINNINGS["p"]
    found = {"dp_over_p": ResidualHistogram(r"$\Delta p/p$", "%", limit, p)}
    return found | ({"pull_qop": ResidualHistogram("pull of q/p", "", 5.0, p)} if with_pull else {})


class TrackResolution:
    """Residuals of the long, prompt, non-electron particles in 2 < eta < 5, for tracks with the necessary columns.

    The IP residual is the distance in x and y between the track, at the z of the particle's true origin, and that
    origin: the resolution of the track alone.
    """

    def __init__(self, stage: Stage) -> None:
        self._momentum_limit = _MOMENTUM_LIMITS.get(stage, 10.0)
        self.histograms: dict[str, ResidualHistogram] = {}

    def add(self, tracks: TrackTable, particles: ParticleTable, matches: TrackMatches, has_origins: bool) -> None:
        """Count the matched tracks of a batch; has_origins: the truth has the origins of particles."""
        wanted = particles.is_long & ~particles.is_electron & particles.in_acceptance & particles.is_prompt
        wanted &= np.hypot(particles.origin[:, 0], particles.origin[:, 1]) < _LARGEST_ORIGIN
        chosen = wanted[matches.particle]
        track, particle = matches.track[chosen], matches.particle[chosen]
        if has_origins and tracks.states is not None:
            self._add_ip(tracks.states, track, particles.origin[particle], particles.pt[particle])
        if tracks.p is not None:
            self._add_momentum(tracks.p[track], tracks.qop_error, track, particles.p[particle])

    def _add_ip(self, states: TrackStates, track: Int64Array, origin: Float64Array, pt: Float64Array) -> None:
        if not self.histograms.keys() >= {"ip_x"}:
            self.histograms |= _ip_histograms()
        dz = origin[:, 2] - states.z[track]
        of_x = (states.c00, states.c20, states.c22)
        of_y = (states.c11, states.c31, states.c33)
        ends = (("x", states.x, states.tx, of_x, origin[:, 0]), ("y", states.y, states.ty, of_y, origin[:, 1]))
        for axis, place, slope, (c_place, c_both, c_slope), true_place in ends:
            sigma = np.sqrt(c_place[track] + 2 * dz * c_both[track] + dz**2 * c_slope[track])
            residual = place[track] + slope[track] * dz - true_place
            self.histograms[f"ip_{axis}"].add(residual * 1000, 1 / pt)
            self.histograms[f"pull_ip_{axis}"].add(residual / sigma, 1 / pt)

    def _add_momentum(
        self, p: Float64Array, qop_error: Float64Array | None, track: Int64Array, true_p: Float64Array
    ) -> None:
        if "dp_over_p" not in self.histograms:
            self.histograms |= _momentum_histograms(self._momentum_limit, qop_error is not None)
        self.histograms["dp_over_p"].add(100 * (p / true_p - 1), true_p)
        if qop_error is not None:
            self.histograms["pull_qop"].add((1 / p - 1 / true_p) / qop_error[track], true_p)

    def momentum(self) -> dict[str, Any] | None:
        """The JSON object "momentum": half of the central 68.3 % of p/p_true - 1, and its median; None without
        tracks."""
        if "dp_over_p" not in self.histograms:
            return None
        found = self.histograms["dp_over_p"].result()["summary"]
        if not found["entries"]:
            return None
        return {
            "core_resolution": found["width"] / 100,
            "core_resolution_error": found["width_error"] / 100,
            "bias": found["median"] / 100,
            "entries": found["entries"],
        }

    def ip_lines(self) -> dict[str, dict[str, float]]:
        """Straight lines through the widths of the impact parameter against 1/pT: `constant` in µm, `per_inverse_pt` in
        µm GeV; a line needs three bins with entries."""
        lines: dict[str, dict[str, float]] = {}
        for name in ("ip_x", "ip_y"):
            if name in self.histograms and (line := _line(self.histograms[name])) is not None:
                lines[name] = line
        return lines

    def result(self) -> dict[str, Any]:
        """The JSON object: entries, median and width of each residual; of impact parameters the line against 1/pT."""
        lines = self.ip_lines()
        return {
            name: {"unit": histogram.unit, **histogram.result()["summary"], **lines.get(name, {})}
            for name, histogram in self.histograms.items()
        }


def _line(histogram: ResidualHistogram) -> dict[str, float] | None:
    found = [summary(row, histogram.limit) for row in histogram.counts]
    edges = histogram.against.edges
    points = np.array(
        [
            (0.5 * (edges[i] + edges[i + 1]), of["width"], of["width_error"])
            for i, of in enumerate(found)
            if (of["entries"] or 0) >= _MIN_ENTRIES and edges[i + 1] <= _LARGEST_INVERSE_PT
        ]
    ).reshape(-1, 3)
    if len(points) < 3:
        return None
    slope, constant = np.polyfit(points[:, 0], points[:, 1], 1, w=1 / points[:, 2])
    return {"constant": float(constant), "per_inverse_pt": float(slope)}
