"""How alike two samples of LHCb are, for `hltnode compare`."""

from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.validation.checker.truth_check import event_name
from hltnode.processing.lhcb.offline.validation.likeness import SampleSummary
from hltnode.processing.offline.chain_tools import ComparedSamples
from hltnode.processing.offline.likeness import comparison
from hltnode.processing.offline.likeness.table import likeness_text
from hltnode.processing.selection.studies.row_choice import RowChoice
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

    def compare(
        self, files: tuple[Path, Path], samples: tuple[SampleSummary, SampleSummary], rows: RowChoice
    ) -> ComparedSamples:
        """The likeness of the second sample to the first one."""
        # Only reports need matplotlib, an extra.
        from hltnode.processing.offline.likeness.page import likeness_page

        compared = comparison.compare(*samples)
        first, second = files
        return ComparedSamples(
            text=likeness_text((first.stem, second.stem), comparison.chosen(compared, rows)),
            result=comparison.comparison_result(*samples),
            page=likeness_page((first.name, second.name), *samples, compared),
        )
