"""hltnode compare: are the events of one sample like those of another?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hltnode.daemon.commands.common import (
    GeometryOption,
    JsonOption,
    console,
    require_packages,
    require_writable,
    user_errors,
    write_json,
    write_text,
)
from hltnode.processing.framework.event_files import EventFileError, read_events
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.validation.checker.truth_check import event_name
from hltnode.processing.lhcb.offline.validation.likeness import SampleSummary
from hltnode.processing.offline.likeness import comparison
from hltnode.processing.offline.likeness.distribution import Distribution
from hltnode.protocol.errors import ProtocolError


def compare(
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="Events to compare with (MDF or MEP).")],
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Events that should be like them.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="REPORT.html", help="Report to write.")],
    geometry: GeometryOption = None,
    json: JsonOption = None,
) -> None:
    """Compare banks, hits and truth of two samples: distributions, means, Kolmogorov distances.

    Example: hltnode compare lhcb.mdf minbias.mdf -o report.html
    """
    with user_errors():
        require_packages("an HTML report", "matplotlib")
        require_writable(output, json, reads=(reference, other))
        # Only reports need matplotlib, an extra.
        from hltnode.processing.offline.likeness.page import likeness_page

        detector = Detector.builtin() if geometry is None else Detector.load(geometry)
        samples = (_summary(reference, detector), _summary(other, detector))
        compared = comparison.compare(*samples)
        write_text(output, likeness_page((reference.name, other.name), *samples, compared))
        write_json(json, {"reference": str(reference), "other": str(other), **comparison.comparison_result(*samples)})
    names = _heading(reference), _heading(other)
    typer.echo(f"{'mean of':<34}{names[0]:>20}{names[1]:>20}{'ratio':>8}{'D':>7}{'chance':>8}")
    for pair in compared:
        if pair.ratio is not None and not pair.quantity.of_tracking:
            mark = f"  differs by more than {100 * comparison.MAX_DIFFERENCE:.0f} %" if pair.differs else ""
            typer.echo(
                f"{_quantity(pair):<34}{_mean(pair.reference):>20}{_mean(pair.other):>20}"
                f"{pair.ratio:8.3f}{pair.distance:7.3f}{pair.chance:8.3f}{mark}"
            )
    _echo_tracking(names, compared)
    typer.echo("D: Kolmogorov distance of the distributions; chance: what it is on average if they are the same")
    typer.echo(f"ratio: {names[1]} / {names[0]}")
    typer.echo(f"{samples[0].events} events of {reference} and {samples[1].events} of {other}: {output}")


def _heading(path: Path) -> str:
    """The name of a sample, as far as it fits: whether it is real or simulated is for the user to know."""
    return path.stem[:18]


def _quantity(pair: comparison.Compared) -> str:
    return f"{pair.quantity.name} [{pair.quantity.unit}]" if pair.quantity.unit else pair.quantity.name


def _echo_tracking(names: tuple[str, str], compared: list[comparison.Compared]) -> None:
    """What the tracking depends on: means, widths and medians with their errors."""
    found = [pair for pair in compared if pair.quantity.of_tracking and pair.values is not None]
    if not found:
        return
    typer.echo(f"{'tracking':<36}{'':<8}{names[0]:>22}{names[1]:>22}{'ratio':>8}{'errors':>8}")
    for pair in found:
        assert pair.values is not None
        values = "".join(f"{_with_error(*value):>22}" for value in pair.values)
        numbers = "".join(f"{'-' if x is None else f'{x:.2f}':>8}" for x in (pair.ratio, pair.errors_apart))
        mark = "  differs" if pair.differs else ""
        typer.echo(f"{_quantity(pair):<36}{pair.quantity.statistic or '':<8}{values}{numbers}{mark}")


def _mean(of: Distribution | None) -> str:
    """Mean and its error."""
    if of is None or of.mean is None:
        return "-"
    return _with_error(of.mean, of.mean_error)


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.5g}" if error is None else f"{value:.5g} +- {error:.3g}"


def _summary(path: Path, geometry: Detector) -> SampleSummary:
    """The distributions of a file. Raises EventFileError, which names file and event."""
    summary = SampleSummary(geometry)
    columns = (SpinnerColumn(), TextColumn(f"{path.name}: {{task.completed}} events"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        for banks in read_events(path):
            try:
                summary.add_event(banks)
            except ProtocolError as error:
                raise EventFileError(f"{path}, {event_name(banks)}: {error}") from error
            progress.advance(task)
    return summary
