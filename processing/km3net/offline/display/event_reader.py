"""From the raw banks of a sub-slice, or of the record of a window, to its picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.km3net.geometry.pmt_table import Detector
from hltnode.processing.km3net.hits.collections import (
    MAX_CANDIDATES,
    MAX_WINDOWS,
    candidate,
    candidate_count,
    window,
    window_count,
)
from hltnode.processing.offline.counted import counted
from hltnode.processing.offline.sub_slice_reader import SubSliceReader, readable_hits
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.km3net.hit_banks import HIT, TRUE_MUON, hits_of, muons_of
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window

AROUND = 500
"""ns before the first and behind the last candidate that the colours span."""
_RETAINED = (candidate_count.name, candidate.name, window_count.name, window.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPicture:
    """Hits of a sub-slice, or of a window that a node kept.

    times: i64[hits] in ns since the start of the sub-slice, or of the window. pmts: i64[hits]. charges: i64[hits],
    hundredths of a photoelectron. windows: i64[windows, 2], start and end in ns. candidates: i64[candidates], times.
    muons: TRUE_MUON[muons]. lines: those that accept the sub-slice; None where none was run.
    """

    detector: Detector
    times: NDArray[np.int64]
    pmts: NDArray[np.int64]
    charges: NDArray[np.int64]
    windows: NDArray[np.int64]
    candidates: NDArray[np.int64]
    muons: NDArray[np.void]
    title: str
    flags: tuple[str, ...]
    lines: tuple[str, ...] | None

    @property
    def summary(self) -> str:
        """Numbers of hits, candidates and windows, or of the hits of a window."""
        if self.lines is None:
            return f"{counted(len(self.times), 'hit')} in {self.windows[0, 1]} ns"
        truth = f"; true muons: {len(self.muons)}" if len(self.muons) else ""
        return f"hits: {len(self.times)}, candidates: {len(self.candidates)}, windows: {len(self.windows)}{truth}"

    @property
    def span(self) -> tuple[int, int]:
        """The times in ns between which hits have colours: those of candidates, of windows without any, or of all."""
        if len(self.candidates):
            return int(self.candidates.min()) - AROUND, int(self.candidates.max()) + 2 * AROUND
        of = self.windows if len(self.windows) else self.times
        return (int(of.min()), int(of.max()) + 1) if of.size else (0, 1)


class EventReader:
    """Runs single sub-slices through the chain and its lines. Raises TriggerConfigError and BackendError."""

    def __init__(
        self, chain: TriggerChain, backend: Backend, geometry: Constants, trigger: TriggerConfig, detector: Detector
    ) -> None:
        self._detector = detector
        self._reader = SubSliceReader(chain, backend, geometry, trigger, _RETAINED)

    def close(self) -> None:
        """Stop the back end."""
        self._reader.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> HitPicture:
        """The picture of a sub-slice or of a window. Raises ProtocolError, BackendError, and ValueError."""
        kept = decode_window(banks)
        return self._of_sub_slice(banks, encoding) if kept is None else self._of_window(kept)

    def _of_window(self, kept: TimeWindow) -> HitPicture:
        shown = self._reader.shown(kept, HIT)
        return self._picture(
            shown.hits,
            shown.times,
            windows=shown.windows,
            candidates=np.empty(0, np.int64),
            muons=np.empty(0, TRUE_MUON),
            title=shown.title,
            flags=shown.flags,
            lines=None,
        )

    def _of_sub_slice(self, banks: Sequence[RawBank], encoding: str) -> HitPicture:
        computed = self._reader.compute(banks, encoding)
        workspace, place = computed.workspace, computed.place
        candidates = workspace.fetch(candidate.name).reshape(-1, MAX_CANDIDATES)[place]
        windows = workspace.fetch(window.name).reshape(-1, MAX_WINDOWS)[place]
        windows = windows[: int(workspace.host_array(window_count.name)[place])]
        hits = readable_hits(banks, hits_of, HIT)
        true = muons_of(banks)
        return self._picture(
            hits,
            hits["time"].astype(np.int64),
            windows=np.column_stack([windows["start_ns"], windows["end_ns"]]).astype(np.int64),
            candidates=candidates["time"][: int(workspace.host_array(candidate_count.name)[place])].astype(np.int64),
            muons=np.empty(0, TRUE_MUON) if true is None else true,
            title=computed.title,
            flags=computed.flags,
            lines=computed.lines,
        )

    def _picture(
        self,
        hits: NDArray[np.void],
        times: NDArray[np.int64],
        *,
        windows: NDArray[np.int64],
        candidates: NDArray[np.int64],
        muons: NDArray[np.void],
        title: str,
        flags: tuple[str, ...],
        lines: tuple[str, ...] | None,
    ) -> HitPicture:
        known = hits["pmt"] < len(self._detector.pmts)
        return HitPicture(
            detector=self._detector,
            times=times[known],
            pmts=hits["pmt"][known].astype(np.int64),
            charges=hits["charge"][known].astype(np.int64),
            windows=windows,
            candidates=candidates,
            muons=muons,
            title=title,
            flags=flags,
            lines=lines,
        )
