"""The checker: reconstructed tracks and vertices against Monte Carlo truth, as Allen counts.

Rules: docs/physics/validation.md. A stage is counted from the first batch that has its tracks, so that a longer chain
needs no change here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.validation.checker.categories import Stage
from hltnode.processing.lhcb.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.validation.checker.muon_id import MuonIdCounts
from hltnode.processing.lhcb.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.validation.checker.stage_counts import StageCounts
from hltnode.processing.lhcb.validation.checker.track_resolution import TrackResolution
from hltnode.processing.lhcb.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.validation.checker.truth_check import TruthFaults
from hltnode.processing.lhcb.validation.checker.vertices import VertexCounts
from hltnode.protocol.raw_data.truth import McVertex


class Checker:
    """Accumulates the comparison of reconstructed events with their truth.

    Batches of events are added one at a time (`add`), in any order; `result` gives the numbers of all so far. `faults`
    counts the events whose truth does not match, `cut_events` those that the global event cut has removed; both are
    left out by the caller.
    """

    def __init__(self) -> None:
        self.events = 0
        self.stages: dict[Stage, StageCounts] = {Stage.VELO: StageCounts(Stage.VELO)}
        self.resolutions: dict[Stage, TrackResolution] = {}
        self.vertices: VertexCounts | None = None
        self.muon_id: MuonIdCounts | None = None
        self.faults = TruthFaults()
        self.cut_events = 0

    def add(
        self,
        particles: ParticleTable,
        tracks: Mapping[Stage, TrackTable],
        pvs: Sequence[NDArray[np.float32]] = (),
        vertices: Sequence[Sequence[McVertex] | None] = (),
    ) -> None:
        """Compare a batch of events.

        tracks: those of each stage that ran; pvs: for each event f32[n, 6] = x, y, z (mm) and their variances (mm²);
        vertices: the true collisions of each event, None where its truth has none.
        """
        self.events += particles.n_events
        # Samples without collisions have no origins of particles.
        has_origins = any(collisions is not None for collisions in vertices)
        for found, collisions in zip(pvs, vertices, strict=True):
            if collisions is not None:
                if self.vertices is None:
                    self.vertices = VertexCounts()
                self.vertices.add_event(found, collisions)
        for stage, of_stage in tracks.items():
            matches = match_tracks(of_stage, particles)
            self.stages.setdefault(stage, StageCounts(stage)).add(of_stage, particles, matches)
            self.resolutions.setdefault(stage, TrackResolution()).add(of_stage, particles, matches, has_origins)
            if stage is Stage.LONG and of_stage.is_muon is not None:
                if self.muon_id is None:
                    self.muon_id = MuonIdCounts()
                self.muon_id.add(of_stage.is_muon, particles, matches)

    @property
    def has_truth(self) -> bool:
        """Whether there was any particle to find."""
        return any(counts.reconstructible for _, counts in self.stages[Stage.VELO].categories)

    def result(self) -> dict[str, Any]:
        """The JSON object of `hltnode validate`; rates are fractions 0..1, None if the denominator is 0.

        "velo", "pv" and "lines" (all lines of the text) are always present, other keys if there are entries.
        """
        result: dict[str, Any] = {
            Stage.VELO.value: self.stages[Stage.VELO].result(),
            "pv": None if self.vertices is None else self.vertices.result(),
        }
        result |= {stage.value: counts.result() for stage, counts in self.stages.items() if stage is not Stage.VELO}
        if self.vertices is not None:
            result["pv_details"] = self.vertices.details()
        resolutions = {stage.value: found.result() for stage, found in self.resolutions.items() if found.histograms}
        if self.vertices is not None:
            resolutions["pv"] = {
                name: {"unit": residual.unit, **residual.result()["summary"]}
                for name, residual in self.vertices.residuals.items()
            }
        if resolutions:
            result["resolution"] = resolutions
        if self.muon_id is not None:
            result["muon"] = self.muon_id.result()
        if Stage.LONG in self.resolutions and (momentum := self.resolutions[Stage.LONG].momentum()):
            result["momentum"] = momentum
        result["lines"] = {stage.value: counts.lines() for stage, counts in self.stages.items()}
        if self.cut_events:
            result["events_cut"] = self.cut_events
        if self.faults.events:
            result["truth"] = self.faults.result()
        return result

    def histograms(self) -> dict[str, Any]:
        """The JSON object "histograms": binned sums of all stages and of residuals, enough to draw every plot."""
        residuals = {
            stage.value: {name: histogram.result() for name, histogram in found.histograms.items()}
            for stage, found in self.resolutions.items()
            if found.histograms
        }
        histograms = {
            "events": self.events,
            "stages": {stage.value: counts.histograms() for stage, counts in self.stages.items()},
            "residuals": residuals,
        }
        if self.vertices is not None:
            residuals["pv"] = {name: histogram.result() for name, histogram in self.vertices.residuals.items()}
            histograms["pv"] = self.vertices.histograms()
        return histograms
