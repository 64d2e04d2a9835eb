"""How alike two samples of LHCb are, for `hltnode compare`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.validation.checker.truth_check import event_name
from hltnode.processing.lhcb.offline.validation.likeness import SampleSummary, comparison
from hltnode.processing.lhcb.offline.validation.likeness.distribution import Distribution
from hltnode.processing.offline.chain_tools import ComparedSamples
from hltnode.protocol.raw_data.raw_bank import RawBank


class LhcbComparison:
    """Distributions of banks, hits and truth, means, Kolmogorov distances."""

    def summaries(self, geometry: Path | None) -> tuple[SampleSummary, SampleSummary]:
        """Two empty summaries of one detector. Raises GeometryError."""
        detector = Detector.builtin() if geometry is None else Detector.load(geometry)
        return SampleSummary(detector), SampleSummary(detector)

    def event_name(self, banks: Sequence[RawBank]) -> str:
        """Run and event number."""
        return event_name(banks)

    def compare(self, files: tuple[Path, Path], samples: tuple[SampleSummary, SampleSummary]) -> ComparedSamples:
        """The likeness of the second sample to the first one."""
        # Only reports need matplotlib, an extra.
        from hltnode.processing.lhcb.offline.validation.likeness.html_report import likeness_page

        compared = comparison.compare(*samples)
        first, second = files
        return ComparedSamples(
            text="\n".join(_lines((_heading(first), _heading(second)), compared)),
            result=comparison.comparison_result(*samples),
            page=likeness_page((first.name, second.name), *samples, compared),
        )


def _heading(path: Path) -> str:
    """The name of a sample, as far as it fits."""
    return path.stem[:18]


def _lines(names: tuple[str, str], compared: list[comparison.Compared]) -> Iterator[str]:
    yield f"{'mean of':<34}{names[0]:>20}{names[1]:>20}{'ratio':>8}{'D':>7}{'chance':>8}"
    for pair in compared:
        if pair.ratio is not None and not pair.quantity.of_tracking:
            mark = f"  differs by more than {100 * comparison.MAX_DIFFERENCE:.0f} %" if pair.differs else ""
            yield (
                f"{_quantity(pair):<34}{_mean(pair.reference):>20}{_mean(pair.other):>20}"
                f"{pair.ratio:8.3f}{pair.distance:7.3f}{pair.chance:8.3f}{mark}"
            )
    yield from _tracking_lines(names, compared)
    yield "D: Kolmogorov distance of the distributions; chance: its mean if the distributions are the same"
    yield f"ratio: {names[1]} / {names[0]}"


def _tracking_lines(names: tuple[str, str], compared: list[comparison.Compared]) -> Iterator[str]:
    """Means, widths and medians of the quantities that the tracking depends on, with their errors."""
    found = [pair for pair in compared if pair.quantity.of_tracking and pair.values is not None]
    if not found:
        return
    yield f"{'tracking':<36}{'':<8}{names[0]:>22}{names[1]:>22}{'ratio':>8}{'errors':>8}"
    for pair in found:
        assert pair.values is not None
        values = "".join(f"{_with_error(*value):>22}" for value in pair.values)
        numbers = "".join(f"{'-' if x is None else f'{x:.2f}':>8}" for x in (pair.ratio, pair.errors_apart))
        mark = "  differs" if pair.differs else ""
        yield f"{_quantity(pair):<36}{pair.quantity.statistic or '':<8}{values}{numbers}{mark}"


def _quantity(pair: comparison.Compared) -> str:
    return f"{pair.quantity.name} [{pair.quantity.unit}]" if pair.quantity.unit else pair.quantity.name


def _mean(of: Distribution | None) -> str:
    """Mean and its error."""
    if of is None or of.mean is None:
        return "-"
    return _with_error(of.mean, of.mean_error)


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.5g}" if error is None else f"{value:.5g} +- {error:.3g}"
