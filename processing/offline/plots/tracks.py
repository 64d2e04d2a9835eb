"""Figures of track finding: efficiencies, clones, purities and ghosts against the variables of particles and tracks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.plots.figures import (
    BACKGROUND,
    MIN_ENTRIES,
    Result,
    format_axes,
    legend,
    panels,
    points,
    rate_interval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackFigures:
    """Figures of the stages of a checker ("stages" of its histograms).

    binnings: the variables, by their names in the JSON. labels: of categories in legends; a category without a label
    has its name. of_events: variables of the whole event instead of a track. spectrum, spectrum_label: the category
    whose spectrum is drawn in grey, and its label.
    """

    binnings: Mapping[str, Binning]
    labels: Mapping[str, str]
    of_events: frozenset[str]
    spectrum: str
    spectrum_label: str

    def efficiency_figure(self, results: Sequence[Result], stage: str) -> Figure:
        """Efficiency of each category against each variable; the spectrum in grey."""
        return self._category_figure(results, stage, "efficiency", "reconstructed", "reconstructible")

    def clone_figure(self, results: Sequence[Result], stage: str) -> Figure:
        """Clone rate: further tracks of a particle / all tracks that match one."""
        return self._category_figure(results, stage, "clone rate", "clones", "tracks")

    def _category_figure(self, results: Sequence[Result], stage: str, title: str, part: str, whole: str) -> Figure:
        figure, axes = panels(len(self.binnings))
        for axis, variable in zip(axes, self.binnings, strict=True):
            drawn = []
            for number, (result, name, counts) in self._curves(results, stage, variable):
                rate, low, high = rate_interval(counts[part], counts[whole])
                shown = np.array(counts[whole]) >= MIN_ENTRIES
                drawn += [low[shown], high[shown]]
                points(
                    axis, counts, np.where(shown, rate, np.nan), low, high, number, self._label(results, result, name)
                )
            format_axes(axis, self.binnings[variable], title, drawn, top=title == "efficiency")
            self._spectrum(axis, results, stage, variable)
        legend(figure, axes)
        return figure

    def purity_figure(self, results: Sequence[Result], stage: str) -> Figure:
        """Mean hit purity of the tracks that match a particle, and its standard error."""
        return self._mean_figure(results, stage, "purity", "hit purity")

    def hit_efficiency_figure(self, results: Sequence[Result], stage: str) -> Figure:
        """Mean hit efficiency of the tracks that match a particle, and its standard error."""
        return self._mean_figure(results, stage, "hit_efficiency", "hit efficiency")

    def _mean_figure(self, results: Sequence[Result], stage: str, quantity: str, title: str) -> Figure:
        figure, axes = panels(len(self.binnings))
        for axis, variable in zip(axes, self.binnings, strict=True):
            drawn = []
            for number, (result, name, counts) in self._curves(results, stage, variable):
                n = np.array(counts["tracks"], dtype=np.float64)
                n[n < MIN_ENTRIES] = np.nan
                mean = np.array(counts[f"{quantity}_sum"]) / n
                error = np.sqrt(np.maximum(np.array(counts[f"{quantity}_squares"]) / n - mean**2, 0) / n)
                drawn += [mean - error, mean + error]
                points(axis, counts, mean, mean - error, mean + error, number, self._label(results, result, name))
            format_axes(axis, self.binnings[variable], title, drawn, top=True)
        legend(figure, axes)
        return figure

    def ghost_figure(self, results: Sequence[Result], stage: str) -> Figure:
        """Ghost rate against those variables that the tracks of the stage have."""
        variables = [name for name in self.binnings if name in results[0][1]["stages"][stage]["tracks"]]
        figure, axes = panels(len(variables))
        for axis, variable in zip(axes, variables, strict=True):
            drawn = []
            for number, (result, histograms) in enumerate(results):
                counts = histograms["stages"].get(stage, {}).get("tracks", {}).get(variable)
                if counts is not None:
                    rate, low, high = rate_interval(counts["ghosts"], counts["tracks"])
                    shown = np.array(counts["tracks"]) >= MIN_ENTRIES
                    drawn += [low[shown], high[shown]]
                    points(axis, counts, np.where(shown, rate, np.nan), low, high, (number, number), result)
            of = "" if variable in self.of_events else "track "
            format_axes(axis, self.binnings[variable], "ghost rate", drawn, top=False, of=of)
        legend(figure, axes, single=len(results) == 1)
        return figure

    def _curves(
        self, results: Sequence[Result], stage: str, variable: str
    ) -> list[tuple[tuple[int, int], tuple[str, str, dict[str, Any]]]]:
        """Numbers of the category and of the result, names of both, and the sums, for each curve."""
        names = list(results[0][1]["stages"][stage]["categories"])
        return [
            ((names.index(name), number), (result, name, categories[name][variable]))
            for number, (result, histograms) in enumerate(results)
            for categories in [histograms["stages"].get(stage, {"categories": {}})["categories"]]
            for name in names
            if name in categories
        ]

    def _label(self, results: Sequence[Result], result: str, category: str) -> str:
        label = self.labels.get(category, category)
        return label if len(results) == 1 else f"{label}, {result}"

    def _spectrum(self, axis: Axes, results: Sequence[Result], stage: str, variable: str) -> None:
        """The spectrum of the particles of one category, in grey and in arbitrary units."""
        counts = results[0][1]["stages"][stage]["categories"].get(self.spectrum, {}).get(variable)
        if counts is None:
            return
        edges, n = np.array(counts["edges"]), np.array(counts["reconstructible"])
        density = n / np.diff(np.log(edges) if self.binnings[variable].logarithmic else edges)
        low, high = axis.get_ylim()
        axis.stairs(
            low + 0.45 * (high - low) * density / max(density.max(), 1e-9),
            edges,
            baseline=low,
            fill=True,
            color=BACKGROUND,
            zorder=0.4,
            label=self.spectrum_label,
        )
        axis.set_ylim(low, high)
