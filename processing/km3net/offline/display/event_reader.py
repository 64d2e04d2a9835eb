"""From the raw banks of a sub-slice, or of the record of a window, to its picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep
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
from hltnode.processing.offline.shown_event import accepting_lines, run_and_event
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.errors import BankError
from hltnode.protocol.km3net.hit_banks import HIT, TRUE_MUON, hits_of, muons_of
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.time_windows import TimeWindow, decode_window

LIMITS = BatchLimits(events=5, meps=1, input_bytes=8 << 20, rows=2048)
"""A sub-slice and empty margins."""
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
            return f"{len(self.times)} hits in {self.windows[0, 1]} ns"
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
        self._engine = chain.create_engine(backend, geometry, trigger, LIMITS, retain=_RETAINED, with_lists=False)
        self._runner = OfflineRunner(self._engine, workspaces=1)

    def close(self) -> None:
        """Stop the back end."""
        self._engine.close()

    def read(self, banks: Sequence[RawBank], encoding: str = AUTO) -> HitPicture:
        """The picture of a sub-slice or of a window. Raises ProtocolError, BackendError, and ValueError."""
        kept = decode_window(banks)
        return self._of_sub_slice(banks, encoding) if kept is None else self._of_window(kept)

    def _of_window(self, kept: TimeWindow) -> HitPicture:
        hits = np.ascontiguousarray(kept.hits).view(HIT)[:, 0] if kept.hits.shape[1] == HIT.itemsize else None
        if hits is None:
            raise ValueError(f"hits of {kept.hits.shape[1]} bytes, those of this chain have {HIT.itemsize}")
        return self._picture(
            hits,
            kept.times - kept.start_ns,
            windows=np.array([[0, kept.end_ns - kept.start_ns]], np.int64),
            candidates=np.empty(0, np.int64),
            muons=np.empty(0, TRUE_MUON),
            title=f"run {kept.run}, slice {kept.slice}, window {kept.number} at {kept.start_ns} ns",
            flags=tuple(self._engine.flags.names(kept.flags)),
            lines=None,
        )

    def _of_sub_slice(self, banks: Sequence[RawBank], encoding: str) -> HitPicture:
        chain = self._engine.chain
        streaming = chain.streaming
        before, behind = (0, 0) if streaming is None else (streaming.margin_before, streaming.margin_behind)
        read_out = [bank for bank in banks if chain.readout.source_of(bank) is not None]
        empty = [RawBank(bank.type, bank.version, bank.source_id, memoryview(b"")) for bank in read_out]
        events = [*[empty] * before, list(banks), *[empty] * behind]
        (batch,) = self._runner.run([encode_mep(chain, events, encoding=encoding)])
        workspace = batch.workspace
        candidates = workspace.fetch(candidate.name).reshape(-1, MAX_CANDIDATES)[before]
        windows = workspace.fetch(window.name).reshape(-1, MAX_WINDOWS)[before]
        windows = windows[: int(workspace.host_array(window_count.name)[before])]
        run, number = run_and_event(banks)
        hits = _hits(banks)
        true = muons_of(banks)
        return self._picture(
            hits,
            hits["time"].astype(np.int64),
            windows=np.column_stack([windows["start_ns"], windows["end_ns"]]).astype(np.int64),
            candidates=candidates["time"][: int(workspace.host_array(candidate_count.name)[before])].astype(np.int64),
            muons=np.empty(0, TRUE_MUON) if true is None else true,
            title="sub-slice" if number is None else f"run {run}, sub-slice {number}",
            flags=tuple(self._engine.flags.names(int(workspace.host_array(event_flags.name)[before]))),
            lines=accepting_lines(self._engine.lines, workspace.output.lines[before]),
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


def _hits(banks: Sequence[RawBank]) -> NDArray[np.void]:
    """The hits of a sub-slice; none of a bank that the kernels refuse, too."""
    found = [np.empty(0, HIT)]
    for bank in banks:
        try:
            found.append(hits_of([bank]))
        except BankError:
            continue
    return np.concatenate(found)
