"""Reconstructed tracks of the events of a batch as columns: the input of the checker from any tracking stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.calorimeter_columns import EcalTracks
from hltnode.processing.lhcb.offline.validation.checker.muon_columns import MuonScores
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.protocol.lhcb.lhcb_id import detector_type


@dataclass(frozen=True, slots=True, eq=False)
class TrackStates:
    """States of tracks near the beam line, f64[n] each: position in mm, slopes, and their covariance.

    c00 = var(x) in mm², c20 = cov(x, tx) in mm, c22 = var(tx); c11, c31, c33 are those of y, x and y being independent.
    """

    x: Float64Array
    y: Float64Array
    z: Float64Array
    tx: Float64Array
    ty: Float64Array
    c00: Float64Array
    c20: Float64Array
    c22: Float64Array
    c11: Float64Array
    c31: Float64Array
    c33: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class TrackTable:
    """Tracks, one row each, in any order.

    event: i64[n], 0 ... in the batch; the LHCbIDs (u32, 2022 scheme) of all tracks follow one another in `ids`,
    n_ids (i64[n]) is their number for each track: hits of all detectors that the track uses, the VELO's included.
    If the stage has them: p, pt in MeV, eta, phi in rad, `qop_error` (standard deviation of q/p, 1/MeV), states, the
    result of muon identification and its scores, whether the line of the track passes all muon stations, whether a stub
    of the muon stations is near, and what the calorimeter says; otherwise None. `cuts`: numbers of each track that can
    be cut on, by name (curves.py).
    """

    event: Int64Array
    ids: NDArray[np.uint32]
    n_ids: Int64Array
    p: Float64Array | None = None
    pt: Float64Array | None = None
    eta: Float64Array | None = None
    phi: Float64Array | None = None
    qop_error: Float64Array | None = None
    states: TrackStates | None = None
    is_muon: Mask | None = None
    passes_muon_stations: Mask | None = None
    near_stub: Mask | None = None
    ecal: EcalTracks | None = None
    muon_scores: MuonScores | None = None
    cuts: Mapping[str, Float64Array] = field(default_factory=dict)

    @classmethod
    def of_events(cls, events: Sequence[Sequence[NDArray[np.uint32]]]) -> Self:
        """Tracks of events 0, 1, ... that are given by their LHCbIDs alone."""
        tracks = [np.asarray(track, dtype=np.uint32) for event in events for track in event]
        return cls(
            event=np.repeat(np.arange(len(events)), [len(event) for event in events]),
            ids=np.concatenate(tracks or [np.empty(0, np.uint32)]),
            n_ids=np.array([len(track) for track in tracks], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.event)

    def hits_of(self, number: int) -> Self:
        """The same tracks with the hits of one sub-detector only, named by its LHCbID type."""
        chosen = detector_type(self.ids) == number
        hit_track = np.repeat(np.arange(len(self)), self.n_ids)
        return replace(self, ids=self.ids[chosen], n_ids=np.bincount(hit_track[chosen], minlength=len(self)))

    def of_kept_events(self, kept: Mask) -> Self:
        """The tracks of the events that are kept (bool[events]), which are numbered anew."""
        event = np.where(kept, np.cumsum(kept) - 1, -1)[self.event]
        chosen = event >= 0
        columns = {
            name: None if (values := getattr(self, name)) is None else values[chosen]
            for name in ("p", "pt", "eta", "phi", "qop_error", "is_muon", "passes_muon_stations", "near_stub")
        }
        cuts = {name: values[chosen] for name, values in self.cuts.items()}
        columns["ecal"] = None if self.ecal is None else self.ecal.take(chosen)
        columns["muon_scores"] = None if self.muon_scores is None else self.muon_scores.take(chosen)
        states = self.states
        if states is not None:
            states = TrackStates(*(getattr(states, it.name)[chosen] for it in fields(TrackStates)))
        ids = self.ids[np.repeat(chosen, self.n_ids)]
        return replace(
            self, event=event[chosen], ids=ids, n_ids=self.n_ids[chosen], states=states, cuts=cuts, **columns
        )
