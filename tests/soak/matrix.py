"""The matrix of a soak: kinds of fault and their effects, as plain text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.soak.decision_log import DecisionLog
from tests.soak.faults import FEEDER_KINDS, Kind, Standing
from tests.soak.timeline import Span, Timeline
from tests.soak.verdict import Judgement, Row

HEADERS = (
    "fault", "times", "in flight", "incomplete,\nexplained", "lost, doubled,\nexplained", "recovered\nin s, at most",
    "doubled", "lost", "incomplete,\nunexplained",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One row; None: the number does not apply."""

    row: Row
    times: int | None
    in_flight: int | None
    incomplete_explained: int
    lost_explained: int
    recovered_s: float | None
    doubled: int
    lost: int
    incomplete_unexplained: int
    note: str = ""

    def cells(self) -> list[str]:
        """The columns as text."""
        numbers = (self.incomplete_explained, self.lost_explained)
        defects = (self.doubled, self.lost, self.incomplete_unexplained)
        recovered = "" if self.recovered_s is None else f"{self.recovered_s:.1f}"
        return [str(self.row), *map(_text, (self.times, self.in_flight, *numbers)), recovered, *map(_text, defects)]


def make_rows(
    judgement: Judgement,
    timeline: Timeline,
    decisions: DecisionLog,
    nodes: Sequence[str],
    times: Mapping[Row, int],
    skipped: Mapping[Kind, str],
) -> list[MatrixRow]:
    """All kinds in order, then the other rows with their `times`; `skipped`: kinds with the reason."""
    rows = []
    for row in (*Kind, *Standing):
        spans = [span for span in timeline.spans if span.kind is row]
        in_flight = [span.in_flight for span in spans if span.in_flight is not None]
        recoveries = [each for span in spans if (each := recovery_seconds(span, decisions, nodes)) is not None]
        rows.append(
            MatrixRow(
                row,
                len(spans) if isinstance(row, Kind) else times.get(row),
                sum(in_flight) if isinstance(row, Kind) else None,
                judgement.incomplete_explained[row],
                judgement.lost_explained[row] + judgement.doubled_explained[row],
                max(recoveries, default=None),
                judgement.doubled[row],
                judgement.lost[row],
                judgement.incomplete_unexplained[row],
                skipped.get(row, "") if isinstance(row, Kind) else "",
            )
        )
    return rows


def recovery_seconds(span: Span, decisions: DecisionLog, nodes: Sequence[str]) -> float | None:
    """Seconds from the end of a fault to the next decision of its node, or of any node after that of a feeder."""
    targets = tuple(nodes) if span.kind in FEEDER_KINDS else (span.target,)
    first = decisions.first_after(targets, span.end)
    return None if first is None else first - span.end


def render(rows: Iterable[MatrixRow]) -> str:
    """Aligned columns under their headers."""
    rows = list(rows)
    table = [row.cells() for row in rows]
    n_lines = max(header.count("\n") for header in HEADERS) + 1
    head = [([""] * n_lines + header.split("\n"))[-n_lines:] for header in HEADERS]
    lines = [[head[column][line] for column in range(len(HEADERS))] for line in range(n_lines)]
    widths = [max(len(cells[column]) for cells in (*lines, *table)) for column in range(len(HEADERS))]
    aligned = [_aligned(cells, widths) for cells in lines]
    aligned.append("-" * len(aligned[-1]))
    for row, cells in zip(rows, table, strict=True):
        aligned.append(_aligned(cells, widths) + (f"  ({row.note})" if row.note else ""))
    return "\n".join(aligned)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))])


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
