"""The likeness report as one self-contained HTML file: table of means, then every distribution.

Needs matplotlib and Jinja2.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from hltnode.processing.framework.page_templates import render
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.likeness.comparison import (
    MAX_DIFFERENCE,
    TRACKING_DIFFERENCE,
    TRACKING_ERRORS,
    TRACKING_MEDIAN,
    Compared,
    Sample,
)
from hltnode.processing.offline.likeness.distribution import Distribution, Quantity, Statistic
from hltnode.processing.offline.pages.elements import Drawn, Section, drawn
from hltnode.processing.offline.pages.tables import Row
from hltnode.processing.offline.pages.template_folder import TEMPLATES
from hltnode.processing.offline.plots.figures import COLOURS, axis_title, in_per_cent, panels

_PANELS_PER_FIGURE = 9
# Titles do not name these: the label of the axis does.
_PER_LARGE_THING = ("event", "bank", "sensor")
# This fraction of the entries on either side is not drawn.
_HIDDEN_TAIL = 0.002
# Letters of a sample's name that fit into a legend.
_LABEL_LENGTH = 18
_FEWEST_BINS, _MOST_BINS = 8, 50


def likeness_page(names: tuple[str, str], reference: Sample, other: Sample, compared: Sequence[Compared]) -> str:
    """The report: names of the two samples, their summaries, and the quantities as `compare` gives them."""
    means = [pair for pair in compared if pair.ratio is not None and not pair.quantity.of_tracking]
    tracking = [pair for pair in compared if pair.quantity.of_tracking and pair.values is not None]
    events = (reference.events, other.events)
    return render(
        "likeness.html",
        TEMPLATES,
        title=f"Likeness: {names[0]} and {names[1]}",
        names=names,
        events=events,
        max_difference=f"{100 * MAX_DIFFERENCE:.0f}",
        differing=[f"{_title(pair.quantity)} ({pair.ratio:.2f})" for pair in means if pair.differs],
        left_out=[(name, of.faults) for name, of in zip(names, (reference, other), strict=True) if of.faults.events],
        means=[_means_row(pair) for pair in means],
        tracking=[_tracking_row(pair) for pair in tracking],
        tracking_limits=(f"{100 * TRACKING_DIFFERENCE:.0f}", TRACKING_MEDIAN, f"{TRACKING_ERRORS:.0f}"),
        tracking_differing=[_title(pair.quantity) for pair in tracking if pair.differs],
        shapes=[
            _shapes_row(pair)
            for pair in compared
            if pair.ratio is None and pair.distance is not None and not pair.quantity.of_tracking
        ],
        only=_only_in_one(names, compared),
        drawn=[
            Section(
                detector, _figures(names, [pair for pair in compared if pair.quantity.detector == detector], events)
            )
            for detector in dict.fromkeys(pair.quantity.detector for pair in compared)
        ],
    )


def _only_in_one(names: tuple[str, str], compared: Sequence[Compared]) -> list[tuple[str, list[str]]]:
    """Names of the samples, each with the titles of the quantities that only it has."""
    reference = [_title(pair.quantity) for pair in compared if pair.other is None and pair.reference]
    other = [_title(pair.quantity) for pair in compared if pair.reference is None and pair.other]
    return [(name, titles) for name, titles in zip(names, (reference, other), strict=True) if titles]


def _means_row(pair: Compared) -> Row:
    it = pair.quantity
    assert pair.reference is not None
    assert pair.other is not None
    numbers = (f"{number:.3f}" for number in (pair.ratio, pair.distance, pair.chance))
    cells = [_title(it), it.per, _mean(pair.reference), _mean(pair.other), *numbers, "differs" if pair.differs else ""]
    return Row(cells, pair.differs)


def _tracking_row(pair: Compared) -> Row:
    assert pair.values is not None
    numbers = ("–" if number is None else f"{number:.2f}" for number in (pair.ratio, pair.errors_apart))
    values = (_value(*value) for value in pair.values)
    it = pair.quantity
    cells = [_title(it), it.per, str(it.statistic), *values, *numbers, "differs" if pair.differs else ""]
    return Row(cells, pair.differs)


def _value(value: float, error: float | None) -> str:
    return f"{value:.4g}" if error is None else f"{value:.4g} ± {float(f'{error:.2g}'):g}"


def _shapes_row(pair: Compared) -> Row:
    samples = [
        "–" if sample is None or sample.mean is None else f"{sample.mean:.4g}, {sample.width:.4g}"
        for sample in (pair.reference, pair.other)
    ]
    return Row([_title(pair.quantity), pair.quantity.per, *samples, f"{pair.distance:.3f}", f"{pair.chance:.3f}"])


def _figures(names: tuple[str, str], compared: Sequence[Compared], events: tuple[int, int]) -> list[Drawn]:
    return [
        _figure(names, compared[start : start + _PANELS_PER_FIGURE], *events)
        for start in range(0, len(compared), _PANELS_PER_FIGURE)
    ]


def _mean(sample: Distribution) -> str:
    assert sample.mean is not None
    return _value(sample.mean, sample.mean_error)


def _title(quantity: Quantity) -> str:
    title = quantity.title.replace("$p_T$", "pT").replace(r"$\eta$", "η").replace(r"$\phi$", "φ")
    return f"{title} [{quantity.unit}]" if quantity.unit else title


def _figure(names: tuple[str, str], compared: Sequence[Compared], reference_events: int, other_events: int) -> Drawn:
    figure, axes = panels(len(compared))
    for axis, pair in zip(axes, compared, strict=True):
        edges, groups = _bins(pair)
        per_event = (reference_events, other_events) if pair.quantity.occupancy else (None, None)
        heights = []
        if pair.other is not None:
            values, _ = _heights(pair.other, groups, per_event[1])
            axis.stairs(values, edges, color=COLOURS[1], linewidth=1.3, label=_label(names[1], pair.other))
            heights.append(values)
        if pair.reference is not None:
            values, errors = _heights(pair.reference, groups, per_event[0])
            _draw_points(axis, edges, values, errors, _label(names[0], pair.reference))
            heights.append(values)
        per = f" / {pair.quantity.per}" if pair.quantity.per in _PER_LARGE_THING else ""
        axis.set_xlabel(axis_title(pair.quantity.title + per, pair.quantity.unit))
        axis.set_ylabel("hits per event" if pair.quantity.occupancy else f"{_plural(pair.quantity.per)} [%]")
        _format_axes(axis, pair.quantity, edges, np.concatenate(heights))
        if not pair.quantity.occupancy:
            in_per_cent(axis)
        distance = "" if pair.distance is None else f"D = {pair.distance:.3f} (by chance {pair.chance:.3f})"
        axis.legend(loc="upper right", fontsize=8, frameon=False, title=distance, title_fontsize=8)
    return drawn(figure, ", ".join(_title(pair.quantity) for pair in compared) + ".")


def _format_axes(axis: Axes, quantity: Quantity, edges: Float64Array, heights: Float64Array) -> None:
    """Scale and ticks of both axes, with room for the legend."""
    filled = heights[heights > 0]
    if quantity.falls and len(filled):
        low, high = 0.5 * filled.min(), 1.5 * filled.max()
        axis.set_yscale("log", nonpositive="clip")
        axis.set_ylim(low, high * (high / low) ** 0.4)
    else:
        axis.set_ylim(0, 1.45 * axis.get_ylim()[1])
    if quantity.place_names:
        many = len(quantity.place_names) > 4
        axis.set_xticks(
            range(len(quantity.place_names)),
            quantity.place_names,
            rotation=90 if many else 0,
            fontsize=7 if many else None,
        )
        return
    if quantity.whole and len(edges) == 2:  # a single bin would be as wide as the plot
        axis.set_xlim(edges[0] - 3, edges[1] + 3)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=quantity.whole))


def _plural(per: str) -> str:
    return "entries" if per in ("bank", "sensor") else f"{per}s"


def _label(name: str, sample: Distribution) -> str:
    name = Path(name).stem[:_LABEL_LENGTH]
    if sample.quantity.statistic is not Statistic.MEAN or sample.mean is None:
        return name
    return f"{name}, mean {sample.mean:.0f}" if sample.mean >= 1000 else f"{name}, mean {sample.mean:.3g}"


def _draw_points(axis: Axes, edges: Float64Array, values: Float64Array, errors: Float64Array, label: str) -> None:
    filled = values > 0
    axis.errorbar(
        ((edges[:-1] + edges[1:]) / 2)[filled],
        values[filled],
        yerr=errors[filled],
        color="black",
        marker="o",
        markersize=3,
        linestyle="none",
        linewidth=0.9,
        label=label,
    )


def _bins(pair: Compared) -> tuple[Float64Array, Int64Array]:
    """Edges of the bins to draw, and the first fine bin of each.

    They cover the range with entries; fewer entries have wider bins.
    """
    samples = [sample for sample in (pair.reference, pair.other) if sample is not None and sample.entries]
    it = pair.quantity
    first, last = it.bins, 0
    for sample in samples:
        cumulative = np.cumsum(sample.counts[1:-1]) / max(sample.counts[1:-1].sum(), 1)
        first = min(first, int(np.searchsorted(cumulative, _HIDDEN_TAIL)))
        last = max(last, int(np.searchsorted(cumulative, 1 - _HIDDEN_TAIL)))
    if it.occupancy or first > last:
        first, last = 0, it.bins - 1
    fewest = min((sample.entries for sample in samples), default=0)
    wanted = int(np.clip(2 * np.sqrt(fewest), _FEWEST_BINS, _MOST_BINS))
    width = it.drawn_together if it.occupancy else max(1, -(-(last + 1 - first) // wanted))
    groups = np.arange(first, last + 1, width)
    edges = it.low + (it.high - it.low) / it.bins * np.append(groups, groups[-1] + width)
    return edges, groups


def _heights(sample: Distribution, groups: Int64Array, events: int | None) -> tuple[Float64Array, Float64Array]:
    """Height and √n error of each bin: fractions of all entries, or hits per event."""
    fine = np.append(sample.counts[1:-1], np.zeros(int(groups[-1]) + len(sample.counts)))
    width = int(groups[1] - groups[0]) if len(groups) > 1 else sample.quantity.bins
    n = np.array([fine[start : start + width].sum() for start in groups])
    scale = max(sample.entries, 1) if events is None else max(events, 1)
    return n / scale, np.sqrt(n) / scale
