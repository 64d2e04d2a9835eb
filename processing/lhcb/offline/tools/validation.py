"""Efficiencies of LHCb's reconstruction against truth, for `hltnode validate`."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.muon.collections import FEATURES
from hltnode.processing.lhcb.offline.tools.options import VeloBanksOption
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.clusters import TrueHits
from hltnode.processing.lhcb.offline.validation.checker.muon_columns import has_scores
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.checker.truth_check import TruthFault
from hltnode.processing.lhcb.offline.validation.readers.velopix import encode_velopix, read_velopix, true_hits
from hltnode.processing.lhcb.offline.validation.reference.comparison import MUON_COLUMNS, ReferenceComparison
from hltnode.processing.lhcb.offline.validation.reports.long_report import reference_lines
from hltnode.processing.lhcb.offline.validation.reports.report import format_report
from hltnode.processing.lhcb.offline.validation.reports.result_file import read_result
from hltnode.processing.offline.chain_tools import CheckedSample, Results
from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.model_file import read_model
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.protocol.raw_data.raw_bank import RawBank


class InputFormat(StrEnum):
    """Formats with truth."""

    MDF = "mdf"
    VELOPIX = "velopix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """The options of `hltnode validate` that LHCb has of its own."""

    input_format: Annotated[InputFormat, typer.Option("--format", help="Format of INPUT.")] = InputFormat.MDF
    velo_banks: VeloBanksOption = "auto"
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", metavar="DIR", help="Also compare with dumps of the same events, quantity by quantity."
        ),
    ] = None
    muon_trees: Annotated[
        Path | None,
        typer.Option(
            "--muon-trees",
            metavar="FILE",
            help="Also judge muon identification by the trees of a model file, with a sequence that has the features.",
        ),
    ] = None


class LhcbTruthCheck:
    """Compares one sample with its truth, and with a reference where one is given."""

    def __init__(self, sequence: AlgorithmSequence, geometry: Path | None, options: ValidationOptions) -> None:
        self._options = options
        self._velo = VeloGeometry.builtin() if geometry is None else VeloGeometry.load(geometry)
        self._reference = None if options.reference is None else ReferenceComparison(options.reference, geometry)
        self._checker = Checker(None if options.muon_trees is None else _muon_trees(options.muon_trees, sequence))
        self._places: deque[TrueHits] = deque()
        self.retained = retained(sequence, () if self._reference is None else MUON_COLUMNS)
        self.encoding: str = options.velo_banks

    @property
    def events_seen(self) -> int:
        """Number of events so far, with those whose truth is not used."""
        return self._checker.events + self._checker.faults.events

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Events of a file in the format that was asked for."""
        return read_events(path) if self._options.input_format is InputFormat.MDF else self._velopix(path)

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch."""
        n_events = sum(len(mep.events) for mep in batch.meps)
        places = [self._places.popleft() for _ in range(n_events)] if self._places else None
        check_batch(self._checker, batch, self._reference, places)

    def finish(self, rows: RowChoice) -> CheckedSample:
        """The numbers of all batches. Raises ValueError for a reference of other events."""
        text = format_report(self._checker, rows)
        if self._reference is not None:
            self._reference.check_used()
            text += "\n\n\n" + "\n".join(reference_lines(self._reference))
        checker = self._checker
        error = remark = ""
        if checker.events == 0 and checker.faults.counts.keys() - {TruthFault.MISSING}:
            error = "no event has truth that matches it"
        elif not checker.has_truth:
            remark = "it has no truth of particles: there are no efficiencies"
        return CheckedSample(text=text, result=self._result, error=error, remark=remark)

    def _result(self) -> dict[str, Any]:
        result = self._checker.result() | {"histograms": self._checker.histograms()}
        if self._reference is not None:
            result["reference"] = self._reference.result()
        return result

    def _velopix(self, path: Path) -> Iterator[list[RawBank]]:
        for event in read_velopix(path):
            # Raw banks have no room for these positions. Batches keep the order of events.
            self._places.append(true_hits(event, self._velo))
            yield encode_velopix(event, self._velo)


def _muon_trees(path: Path, sequence: AlgorithmSequence) -> Ensemble:
    """The trees of a file. Raises ModelError, and ValueError for a sequence without their features."""
    if not has_scores(sequence):
        raise ValueError("--muon-trees: the sequence makes no features of muons; hlt1_2026 does")
    trees = read_model(path).trees
    if trees.n_features != len(FEATURES):
        raise ModelError(f"{path}: its trees take {trees.n_features} features, tracks have {len(FEATURES)}")
    return trees


class LhcbValidation:
    """Efficiencies, ghosts, clones, purities, primary vertices."""

    options = ValidationOptions

    def reads(self, options: ValidationOptions) -> tuple[Path | None, ...]:
        """The folder of the reference, and the file of trees."""
        return (options.reference, options.muon_trees)

    def check(self, sequence: AlgorithmSequence, geometry: Path | None, options: ValidationOptions) -> LhcbTruthCheck:
        """A check of what a sequence reconstructs. Raises GeometryError, ValueError."""
        return LhcbTruthCheck(sequence, geometry, options)

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""
        return read_result(path)

    def page(self, results: Results, text: str) -> str:
        """Numbers and plots as one HTML file."""
        # Only reports need matplotlib, an extra.
        from hltnode.processing.lhcb.offline.validation.reports.html_report import checker_page

        return checker_page(list(results), text)
