"""Rings against truth, for `hltnode validate`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.na62.offline.validation.report import page_of, text_of
from hltnode.processing.na62.offline.validation.ring_checker import RingChecker
from hltnode.processing.na62.rich.collections import MAX_RINGS, hit_count, ring, ring_count
from hltnode.processing.offline.chain_tools import CheckedSample, NoOptions, Results
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.protocol.na62.rich_banks import rings_of
from hltnode.protocol.raw_data.raw_bank import RawBank


class RichTruthCheck:
    """Compares the rings of one sample with its truth."""

    retained = (hit_count.name, ring_count.name, ring.name)
    encoding = AUTO

    def __init__(self) -> None:
        self._checker = RingChecker()

    @property
    def events_seen(self) -> int:
        """Number of events so far."""
        return self._checker.events

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Raw banks of the events of a file."""
        return read_events(path)

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch. Raises BankError for truth that cannot be read."""
        events = [banks for mep in batch.meps for banks in mep.events]
        counts = batch.workspace.host_array(ring_count.name)
        hits = batch.workspace.host_array(hit_count.name)
        rings = batch.workspace.fetch(ring.name, MAX_RINGS * len(events)).reshape(-1, MAX_RINGS)
        for i, banks in enumerate(events):
            self._checker.add(rings_of(list(banks)), rings[i, : int(counts[i])], int(hits[i]))

    def finish(self, rows: RowChoice) -> CheckedSample:  # noqa: ARG002
        """The numbers of all batches."""
        checker = self._checker
        result = checker.result()
        error = "no event has truth" if checker.events == checker.without_truth else ""
        return CheckedSample(text=text_of(result), result=lambda: result, error=error)


class RichValidation:
    """Efficiency by the number of rings, fakes, resolution."""

    options = NoOptions

    def reads(self, options: NoOptions) -> tuple[Path | None, ...]:  # noqa: ARG002
        """None."""
        return ()

    def check(
        self,
        sequence: AlgorithmSequence,  # noqa: ARG002
        geometry: Path | None,  # noqa: ARG002
        options: NoOptions,  # noqa: ARG002
    ) -> RichTruthCheck:
        """A check of the rings of any sequence."""
        return RichTruthCheck()

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
        if not isinstance(result, dict) or not {"rings", "of_distance", "of_noise"} <= result.keys():
            raise ValueError(f"{path}: it is no result of hltnode validate --chain na62_rich")
        return result

    def page(self, results: Results, text: str) -> str:
        """One or several results as one HTML file; `text` are the tables."""
        return page_of(results, text)
