"""The likeness of two samples as tables for the terminal."""

from collections.abc import Iterator, Sequence

from hltnode.processing.offline.likeness.comparison import MAX_DIFFERENCE, Compared
from hltnode.processing.offline.likeness.distribution import Distribution

_NAME_LENGTH = 18
"""Letters of the name of a sample that fit above a column."""


def likeness_text(names: tuple[str, str], compared: Sequence[Compared]) -> str:
    """Means and distances of the distributions, then the quantities that the tracking depends on."""
    first, second = (name[:_NAME_LENGTH] for name in names)
    return "\n".join(_lines(first, second, compared))


def _lines(first: str, second: str, compared: Sequence[Compared]) -> Iterator[str]:
    yield f"{'mean of':<34}{first:>20}{second:>20}{'ratio':>8}{'D':>7}{'chance':>8}"
    for pair in compared:
        if pair.ratio is not None and not pair.quantity.of_tracking:
            mark = f"  differs by more than {100 * MAX_DIFFERENCE:.0f} %" if pair.differs else ""
            yield (
                f"{_quantity(pair):<34}{_mean(pair.reference):>20}{_mean(pair.other):>20}"
                f"{pair.ratio:8.3f}{pair.distance:7.3f}{pair.chance:8.3f}{mark}"
            )
    yield from _tracking_lines(first, second, compared)
    yield "D: Kolmogorov distance of the distributions; chance: its mean if the distributions are the same"
    yield f"ratio: {second} / {first}"


def _tracking_lines(first: str, second: str, compared: Sequence[Compared]) -> Iterator[str]:
    """Means, widths and medians of the quantities that the tracking depends on, with their errors."""
    found = [pair for pair in compared if pair.quantity.of_tracking and pair.values is not None]
    if not found:
        return
    yield f"{'tracking':<36}{'':<8}{first:>22}{second:>22}{'ratio':>8}{'errors':>8}"
    for pair in found:
        assert pair.values is not None
        values = "".join(f"{_with_error(*value):>22}" for value in pair.values)
        numbers = "".join(f"{'-' if x is None else f'{x:.2f}':>8}" for x in (pair.ratio, pair.errors_apart))
        mark = "  differs" if pair.differs else ""
        yield f"{_quantity(pair):<36}{pair.quantity.statistic or '':<8}{values}{numbers}{mark}"


def _quantity(pair: Compared) -> str:
    return f"{pair.quantity.name} [{pair.quantity.unit}]" if pair.quantity.unit else pair.quantity.name


def _mean(of: Distribution | None) -> str:
    """Mean and its error."""
    if of is None or of.mean is None:
        return "-"
    return _with_error(of.mean, of.mean_error)


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.5g}" if error is None else f"{value:.5g} +- {error:.3g}"
