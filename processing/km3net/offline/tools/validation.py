"""Candidates against simulated muons, for `hltnode validate`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.event_files import read_event_tables
from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.framework.sub_slices import between_empty_margins
from hltnode.processing.km3net.chain import STREAMING
from hltnode.processing.km3net.hits.collections import (
    MAX_CANDIDATES,
    MAX_WINDOWS,
    candidate,
    candidate_count,
    window,
    window_count,
)
from hltnode.processing.km3net.hits.flags import MARGIN
from hltnode.processing.km3net.hits.sort_hits import sort_hits
from hltnode.processing.km3net.offline.validation.muon_checker import MuonChecker, SliceContent
from hltnode.processing.km3net.offline.validation.report import page_of, text_of
from hltnode.processing.km3net.readout import TELESCOPE_READOUT
from hltnode.processing.offline.chain_tools import CheckedSample, NoOptions, Results
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.protocol.km3net.hit_banks import muons_of
from hltnode.protocol.raw_data.raw_bank import RawBank


class MuonTruthCheck:
    """Compares the candidates of one sample with its muons. Each MEP is a time slice of consecutive sub-slices."""

    retained = (event_flags.name, candidate_count.name, candidate.name, window_count.name, window.name)
    encoding = AUTO

    def __init__(self, length: int, time_window: int) -> None:
        self._length = length
        self._checker = MuonChecker(time_window)
        self._seen = self._with_truth = 0

    @property
    def events_seen(self) -> int:
        """Number of sub-slices so far, margins included."""
        return self._seen

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Raw banks of the sub-slices of a file, between empty margins of the stream."""
        return between_empty_margins(TELESCOPE_READOUT, STREAMING, read_event_tables(path))

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch. Raises BankError for truth that cannot be read."""
        n = sum(len(mep.events) for mep in batch.meps)
        workspace = batch.workspace
        is_margin = (workspace.host_array(event_flags.name)[:n] & MARGIN.mask) != 0
        candidates = _listed(
            workspace.host_array(candidate_count.name)[:n], workspace.fetch(candidate.name), MAX_CANDIDATES
        )
        windows = _listed(workspace.host_array(window_count.name)[:n], workspace.fetch(window.name), MAX_WINDOWS)
        first = 0
        for mep in batch.meps:
            last = first + len(mep.events)
            self._add_slice(
                mep.events, is_margin[first:last], *(_part(each, first, last) for each in (candidates, windows))
            )
            first = last
        self._seen += n

    def _add_slice(
        self,
        events: Iterable[Sequence[RawBank]],
        is_margin: NDArray[np.bool_],
        candidates: tuple[NDArray[np.int64], NDArray[np.void]],
        windows: tuple[NDArray[np.int64], NDArray[np.void]],
    ) -> None:
        muons = [np.empty((0, 3), np.int64)]
        for i, banks in enumerate(events):
            true = muons_of(list(banks))
            self._with_truth += true is not None
            if true is not None and not is_margin[i]:
                start = i * self._length
                muons.append(
                    np.column_stack([true["first"] + start, true["last"] + start, true["hits"]]).astype(np.int64)
                )
        sub_slice, of = candidates
        times = np.column_stack([sub_slice * self._length + of["time"], of["triggers"]]).astype(np.int64)
        sub_slice, of = windows
        starts = sub_slice * self._length
        kept = np.column_stack([starts + of["start_ns"], starts + of["end_ns"], of["lines"]]).astype(np.int64)
        self._checker.add(SliceContent(int((~is_margin).sum()), self._length, np.concatenate(muons), times, kept))

    def finish(self, rows: RowChoice) -> CheckedSample:  # noqa: ARG002
        """The numbers of all batches."""
        result = self._checker.result()
        error = "" if self._with_truth else "no sub-slice has truth"
        return CheckedSample(text=text_of(result), result=lambda: result, error=error)


def _listed(
    counts: NDArray[np.uint32], content: NDArray[np.void], most: int
) -> tuple[NDArray[np.int64], NDArray[np.void]]:
    """Event and record of each object of a collection with `most` places for each event."""
    used = np.arange(most) < counts[:, None]
    return np.nonzero(used)[0].astype(np.int64), content[: used.size].reshape(used.shape)[used]


def _part(listed: tuple[NDArray[np.int64], NDArray[np.void]], first: int, last: int) -> tuple[Any, Any]:
    """The objects of events `first` to `last` - 1, numbered from 0."""
    event, content = listed
    inside = (event >= first) & (event < last)
    return event[inside] - first, content[inside]


class TelescopeValidation:
    """Efficiency by the hits of a muon and by trigger, background rate, candidates at borders."""

    options = NoOptions

    def reads(self, options: NoOptions) -> tuple[Path | None, ...]:  # noqa: ARG002
        """None."""
        return ()

    def check(
        self,
        sequence: AlgorithmSequence,
        geometry: Path | None,  # noqa: ARG002
        options: NoOptions,  # noqa: ARG002
    ) -> MuonTruthCheck:
        """A check with the length and the time window of a sequence."""
        of = {
            constant.name: int(constant.value)
            for algorithm in sequence
            if algorithm.name == sort_hits.name
            for constant in algorithm.constants
        }
        return MuonTruthCheck(of["length"], of["time_window"])

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
        if not isinstance(result, dict) or not {"efficiency", "of_hits", "of_triggers"} <= result.keys():
            raise ValueError(f"{path}: it is no result of hltnode validate --chain km3net")
        return result

    def page(self, results: Results, text: str) -> str:
        """One or several results as one HTML file; `text` are the tables."""
        return page_of(results, text)
