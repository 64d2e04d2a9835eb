"""Results of the events of a sample: of a range of events, and merged for the sample.

Results do not depend on the division of the sample, nor on the machine that processed a part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hltnode.analysis.tuple_files import TupleFile
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.selection.studies.fields import FieldValues
from hltnode.processing.selection.studies.rates import RateCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """Results of consecutive events.

    per_event: as in the JSON object of `hltnode process`; objects: sums of the collections; histogram_counts: u64, as
    Workspace.take_histogram_counts; rates: rates of the lines, without scans; accepted: MDF records of the accepted
    events, empty if not requested; banks_left_out, reports_left_out, candidates_left_out: how many of these the records
    lack; events: number of processed events, including repetitions; seconds: time in the pipeline; unknown_types: types
    of banks whose source is not known; worker: address of the worker, "" for this process.
    """

    per_event: list[dict[str, Any]]
    objects: dict[str, int]
    histogram_counts: NDArray[np.uint64]
    rates: RateCounts
    accepted: bytes
    banks_left_out: int = 0
    reports_left_out: int = 0
    candidates_left_out: int = 0
    events: int
    seconds: float
    backend: str
    threads: int
    unknown_types: frozenset[int] = frozenset()
    fields: FieldValues | None = None
    fields_seconds: float = 0.0
    worker: str = ""


@dataclass(slots=True)
class SampleResult:
    """The merged parts of a sample, added in order.

    Records of accepted events are written to `accepted` at once, values of fields to `tuple`.
    """

    collections: Sequence[str]
    lines: Sequence[str]
    histograms: Sequence[HistogramShape]
    accepted: BinaryIO | None = None
    tuple: TupleFile | None = None
    per_event: list[dict[str, Any]] = field(default_factory=list)
    objects: dict[str, int] = field(init=False)
    histogram_counts: NDArray[np.uint64] = field(init=False)
    rates: RateCounts = field(init=False)
    events: int = 0
    seconds: float = 0.0
    fields_seconds: float = 0.0
    backend: str = ""
    threads: int = 0
    workers: set[str] = field(default_factory=set)
    unknown_types: set[int] = field(default_factory=set)
    banks_left_out: int = 0
    reports_left_out: int = 0
    candidates_left_out: int = 0

    def __post_init__(self) -> None:
        self.objects = dict.fromkeys(self.collections, 0)
        self.histogram_counts = np.zeros(n_counts(self.histograms), np.uint64)
        self.rates = RateCounts(self.lines)

    def add(self, part: PartResult) -> None:
        """Append the next events.

        Raises ValueError for a part from another back end, because its floating-point results may differ in the last
        bit.
        """
        if self.backend and part.backend != self.backend:
            raise ValueError(
                f"worker {part.worker} computes on {part.backend}, others on {self.backend}: choose one with --backend"
            )
        self.backend, self.threads = part.backend, part.threads
        if self.accepted is not None:
            self.accepted.write(part.accepted)
        if self.tuple is not None and part.fields is not None:
            self.tuple.add(part.fields)
        self.per_event += part.per_event
        self.unknown_types |= part.unknown_types
        self.banks_left_out += part.banks_left_out
        self.reports_left_out += part.reports_left_out
        self.candidates_left_out += part.candidates_left_out
        for name, count in part.objects.items():
            self.objects[name] += count
        self.histogram_counts += part.histogram_counts
        self.rates.add_counts(part.rates)
        self.events += part.events
        self.seconds += part.seconds
        self.fields_seconds += part.fields_seconds
        self.workers.add(part.worker)
