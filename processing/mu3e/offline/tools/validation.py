"""Tracks, vertices and windows against simulated decays, for `hltnode validate`."""

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
from hltnode.processing.mu3e.chain import STREAMING
from hltnode.processing.mu3e.hits.flags import MARGIN
from hltnode.processing.mu3e.hits.sort_hits import sort_hits
from hltnode.processing.mu3e.offline.validation.decay_checker import DecayChecker, SliceContent
from hltnode.processing.mu3e.offline.validation.report import page_of, text_of
from hltnode.processing.mu3e.readout import MU3E_READOUT
from hltnode.processing.mu3e.tracks.collections import own_track_count, track, track_count, tracks
from hltnode.processing.mu3e.vertices.collections import (
    vertex,
    vertex_count,
    vertices,
    window,
    window_count,
    windows,
)
from hltnode.processing.offline.chain_tools import CheckedSample, NoOptions, Results
from hltnode.processing.offline.workspace_columns import Objects
from hltnode.processing.selection.studies.row_choice import RowChoice
from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.mu3e.hit_banks import (
    TRUE_DECAY,
    TRUE_PARTICLE,
    hits_of,
    true_decays_of,
    true_ids_of,
    true_particles_of,
)
from hltnode.protocol.raw_data.raw_bank import RawBank

_PIXELS = ("pixel0", "pixel1", "pixel2", "pixel3")


def true_hits(banks: Sequence[RawBank]) -> NDArray[np.int64]:
    """Pixel (sensor << 16 | column << 8 | row) and id of the particle of each hit with truth, i64[hits, 2].

    Raises BankError for broken banks, and for a number of ids that is not that of the hits.
    """
    hits, ids = hits_of(banks), true_ids_of(banks)
    if not len(ids):
        return np.empty((0, 2), np.int64)
    if len(ids) != len(hits):
        raise BankError(RejectReason.BAD_SIZE, f"{len(ids)} ids of particles for {len(hits)} hits")
    sensor, column, row = (hits[name].astype(np.int64) for name in ("sensor", "column", "row"))
    return np.column_stack([sensor << 16 | column << 8 | row, ids.astype(np.int64)])


class DecayTruthCheck:
    """Compares what the chain finds in one sample with its decays. Each MEP is a time slice."""

    retained = (
        *(event_flags.name, track_count.name, own_track_count.name, track.name),
        *(vertex_count.name, vertex.name, window_count.name, window.name),
    )
    encoding = AUTO

    def __init__(self, length: int) -> None:
        self._length = length
        self._checker = DecayChecker()
        self._seen = self._with_truth = 0

    @property
    def events_seen(self) -> int:
        """Number of sub-slices so far, margins included."""
        return self._seen

    def events(self, path: Path) -> Iterable[Sequence[RawBank]]:
        """Raw banks of the sub-slices of a file, between empty margins of the stream."""
        return between_empty_margins(MU3E_READOUT, STREAMING, read_event_tables(path))

    def add(self, batch: CompletedBatch) -> None:
        """Compare a batch. Raises BankError for truth that cannot be read."""
        n = sum(len(mep.events) for mep in batch.meps)
        workspace = batch.workspace
        is_margin = (workspace.host_array(event_flags.name)[:n] & MARGIN.mask) != 0
        found = _Found(batch)
        first = 0
        for mep in batch.meps:
            last = first + len(mep.events)
            self._add_slice(mep.events, is_margin[first:last], found, first)
            first = last
        self._seen += n

    def _add_slice(
        self, events: Iterable[Sequence[RawBank]], is_margin: NDArray[np.bool_], found: "_Found", first: int
    ) -> None:
        hits, particles, decays = [np.empty((0, 3), np.int64)], [], []
        for i, banks in enumerate(events):
            of_hits = true_hits(list(banks))
            hits.append(np.column_stack([np.full(len(of_hits), i), of_hits]))
            true, of_decays = true_particles_of(banks), true_decays_of(banks)
            self._with_truth += of_decays is not None
            particles.append(np.empty(0, TRUE_PARTICLE) if true is None else true)
            decays.append(np.empty(0, TRUE_DECAY) if of_decays is None else of_decays)
        number = np.arange(len(particles))
        last = first + len(particles)
        self._checker.add(
            SliceContent(
                length=self._length,
                is_margin=is_margin,
                hits=np.concatenate(hits),
                particles=np.concatenate(particles),
                particle_slice=np.repeat(number, [len(each) for each in particles]),
                decays=np.concatenate(decays),
                decay_slice=np.repeat(number, [len(each) for each in decays]),
                **found.of_slice(first, last, self._length),
            )
        )

    def finish(self, rows: RowChoice) -> CheckedSample:  # noqa: ARG002
        """The numbers of all batches."""
        result = self._checker.result()
        error = "" if self._with_truth else "no sub-slice has truth"
        return CheckedSample(text=text_of(result), result=lambda: result, error=error)


class _Found:
    """Tracks, vertices and windows of a batch."""

    def __init__(self, batch: CompletedBatch) -> None:
        workspace = batch.workspace
        all_tracks = Objects(workspace, tracks, track_count)
        of_vertices = Objects(workspace, vertices, vertex_count)
        of_windows = Objects(workspace, windows, window_count)
        own = workspace.fetch(own_track_count.name, workspace.n_events).astype(np.int64)
        self._track = all_tracks(track)
        self._track_event = all_tracks.event
        self._first_row = all_tracks.first_row
        self._own = np.arange(len(self._track_event)) - self._first_row[self._track_event] < own[self._track_event]
        self._vertex, self._vertex_event = of_vertices(vertex), of_vertices.event
        self._window, self._window_event = of_windows(window), of_windows.event

    def of_slice(self, first: int, last: int, length: int) -> dict[str, Any]:
        """Fields of SliceContent for events `first` to `last` - 1.

        Tracks that begin behind their sub-slice are listed behind the others, as vertices name them.
        """
        inside = (self._track_event >= first) & (self._track_event < last)
        chosen = self._track[inside]
        before = int(np.flatnonzero(inside)[0]) if inside.any() else 0
        of_vertices = self._vertex[(self._vertex_event >= first) & (self._vertex_event < last)]
        vertex_event = self._vertex_event[(self._vertex_event >= first) & (self._vertex_event < last)]
        names = np.column_stack([of_vertices[name].astype(np.int64) for name in ("track0", "track1", "track2")])
        in_windows = (self._window_event >= first) & (self._window_event < last)
        starts = (self._window_event[in_windows] - first) * length
        of_windows = self._window[in_windows]
        return {
            "pixels": np.column_stack([chosen[name].astype(np.int64) for name in _PIXELS]),
            "recurls": chosen["recurl"].astype(np.int64),
            "momenta": chosen["momentum"].astype(np.float64),
            "charges": chosen["charge"].astype(np.int64),
            "own": self._own[inside],
            "track_slice": self._track_event[inside] - first,
            "vertices": np.column_stack([of_vertices[name].astype(np.float64) for name in "xyz"]),
            "vertex_tracks": names + (self._first_row[vertex_event] - before)[:, None],
            "windows": np.column_stack([starts + of_windows["start_ns"], starts + of_windows["end_ns"]]).astype(
                np.int64
            ),
        }


class PixelValidation:
    """Efficiency for signal, rate reduction, resolutions of momentum and vertex."""

    options = NoOptions

    def reads(self, options: NoOptions) -> tuple[Path | None, ...]:  # noqa: ARG002
        """None."""
        return ()

    def check(
        self,
        sequence: AlgorithmSequence,
        geometry: Path | None,  # noqa: ARG002
        options: NoOptions,  # noqa: ARG002
    ) -> DecayTruthCheck:
        """A check with the length of the sub-slices of a sequence."""
        (length,) = {
            int(constant.value)
            for algorithm in sequence
            if algorithm.name == sort_hits.name
            for constant in algorithm.constants
            if constant.name == "length"
        }
        return DecayTruthCheck(length)

    def read_result(self, path: Path) -> dict[str, Any]:
        """An earlier JSON object. Raises ValueError, which names the file."""
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
        if not isinstance(result, dict) or not {"signal_efficiency", "rate_reduction", "vertex"} <= result.keys():
            raise ValueError(f"{path}: it is no result of hltnode validate --chain mu3e")
        return result

    def page(self, results: Results, text: str) -> str:
        """One or several results as one HTML file; `text` are the tables."""
        return page_of(results, text)
