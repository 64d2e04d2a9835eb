"""The checker: reconstructed tracks and vertices against Monte Carlo truth, as Allen counts.

Rules: docs/physics/validation.md. A stage is counted from the first batch that has its tracks, so that a longer chain
needs no change here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.calorimeter import EcalClusterCounts, ElectronCounts
from hltnode.processing.lhcb.offline.validation.checker.calorimeter_columns import ClusterTable
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.clusters import ClusterCounts
from hltnode.processing.lhcb.offline.validation.checker.curves import Curves
from hltnode.processing.lhcb.offline.validation.checker.decays import DecayChecks, VertexTable
from hltnode.processing.lhcb.offline.validation.checker.downstream import DownstreamCounts
from hltnode.processing.lhcb.offline.validation.checker.downstream_tracks import DownstreamTrackCounts
from hltnode.processing.lhcb.offline.validation.checker.downstream_v0s import downstream_checks
from hltnode.processing.lhcb.offline.validation.checker.half_vertices import HalfVertexCounts, HalfVertices
from hltnode.processing.lhcb.offline.validation.checker.losses import LossCounts
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches, match_tracks
from hltnode.processing.lhcb.offline.validation.checker.muon_id import MuonIdCounts
from hltnode.processing.lhcb.offline.validation.checker.muon_scores import MuonScoreCounts
from hltnode.processing.lhcb.offline.validation.checker.muon_stubs import StubCounts, StubTable
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.stage_counts import StageCounts
from hltnode.processing.lhcb.offline.validation.checker.track_resolution import TrackResolution
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.checker.vertices import VertexCounts
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.protocol.lhcb.truth import McVertex


class Checker:
    """Accumulates the comparison of reconstructed events with their truth.

    Batches of events are added one at a time (`add`), in any order; `result` gives the numbers of all so far. `faults`
    counts the events whose truth does not match, `cut_events` those that the global event cut has removed; both are
    left out by the caller. muon_trees: trees whose muon identification is also compared.
    """

    def __init__(self, muon_trees: Ensemble | None = None) -> None:
        self.events = 0
        self._muon_trees = muon_trees
        self.stages: dict[Stage, StageCounts] = {Stage.VELO: StageCounts(Stage.VELO)}
        self.resolutions: dict[Stage, TrackResolution] = {}
        self.vertices: VertexCounts | None = None
        self.halves: HalfVertexCounts | None = None
        self.muon_id: MuonIdCounts | None = None
        self.muon_scores: MuonScoreCounts | None = None
        self.muon_stubs: StubCounts | None = None
        self.electrons: ElectronCounts | None = None
        self.ecal_clusters: EcalClusterCounts | None = None
        self.clusters = ClusterCounts()
        self.curves = Curves()
        self.losses: LossCounts | None = None
        self.downstream: DownstreamCounts | None = None
        self.downstream_tracks: DownstreamTrackCounts | None = None
        self.downstream_decays: DecayChecks | None = None
        self.decays: DecayChecks | None = None
        self.faults = TruthFaults()
        self.cut_events = 0

    def add(
        self,
        particles: ParticleTable,
        tracks: Mapping[Stage, TrackTable],
        pvs: Sequence[NDArray[np.float32]] = (),
        vertices: Sequence[Sequence[McVertex] | None] = (),
        two_track: VertexTable | None = None,
        ecal_clusters: ClusterTable | None = None,
        showers: Sequence[NDArray[np.void] | None] = (),
        downstream: TrackTable | None = None,
        downstream_v0s: VertexTable | None = None,
        stubs: StubTable | None = None,
        halves: Sequence[HalfVertices] | None = None,
    ) -> None:
        """Compare a batch of events.

        tracks: those of each stage that ran; pvs: for each event f32[n, 6] = x, y, z (mm) and their variances (mm²);
        vertices: the true collisions of each event, None where its truth has none; two_track: vertices of two long
        tracks; ecal_clusters: of the calorimeter; showers: the true ones of each event, None where its truth has none;
        downstream: the downstream tracks; downstream_v0s: their vertices; stubs: of the muon stations;
        halves: vertices of the VELO halves of each event.
        """
        self.events += particles.n_events
        # Samples without collisions have no origins of particles.
        has_origins = any(collisions is not None for collisions in vertices)
        for found, collisions in zip(pvs, vertices, strict=True):
            if collisions is not None:
                if self.vertices is None:
                    self.vertices = VertexCounts()
                self.vertices.add_event(found, collisions)
        if halves is not None:
            self.halves = self.halves or HalfVertexCounts()
            self.halves.add(halves, particles, vertices)
        matches = {stage: match_tracks(of_stage, particles) for stage, of_stage in tracks.items()}
        for stage, of_stage in tracks.items():
            self.stages.setdefault(stage, StageCounts(stage)).add(of_stage, particles, matches[stage])
            self.resolutions.setdefault(stage, TrackResolution(stage)).add(
                of_stage, particles, matches[stage], has_origins
            )
            self.curves.add(stage, of_stage, particles, matches[stage])
        if ecal_clusters is not None:
            self.ecal_clusters = self.ecal_clusters or EcalClusterCounts()
            self.ecal_clusters.add(ecal_clusters, showers)
            self._add_electrons(tracks[Stage.LONG], particles, matches[Stage.LONG], ecal_clusters)
        if stubs is not None:
            self.muon_stubs = self.muon_stubs or StubCounts()
            self.muon_stubs.add(stubs, particles.n_events)
        if Stage.LONG in tracks:
            self._add_long(tracks[Stage.LONG], particles, matches, two_track, has_origins)
        if downstream is not None:
            self.downstream_tracks = self.downstream_tracks or DownstreamTrackCounts()
            of_downstream = match_tracks(downstream, particles)
            self.downstream_tracks.add(particles, downstream, of_downstream)
            if downstream_v0s is not None:
                self.downstream_decays = self.downstream_decays or downstream_checks()
                self.downstream_decays.add(downstream_v0s, downstream, particles, of_downstream, has_origins)

    def _add_electrons(
        self, long: TrackTable, particles: ParticleTable, matches: TrackMatches, clusters: ClusterTable
    ) -> None:
        if long.ecal is None or long.p is None or self.ecal_clusters is None:
            return
        self.electrons = self.electrons or ElectronCounts()
        self.electrons.add(long.ecal, long.p, particles, matches)
        self.ecal_clusters.add_electrons(clusters, long.ecal, long.event, particles, matches)

    def _add_long(
        self,
        long: TrackTable,
        particles: ParticleTable,
        matches: Mapping[Stage, TrackMatches],
        two_track: VertexTable | None,
        has_origins: bool,
    ) -> None:
        """Comparisons that need long tracks."""
        self.losses = self.losses or LossCounts()
        self.losses.add(particles, matches)
        self.downstream = self.downstream or DownstreamCounts()
        self.downstream.add(particles, long)
        if long.is_muon is not None:
            passes = long.passes_muon_stations
            self.muon_id = self.muon_id or MuonIdCounts()
            self.muon_id.add(
                long.is_muon, np.ones(len(long), bool) if passes is None else passes, particles, matches[Stage.LONG]
            )
            if long.muon_scores is not None:
                self.muon_scores = self.muon_scores or MuonScoreCounts(self._muon_trees)
                self.muon_scores.add(long.muon_scores, long.is_muon, particles, matches[Stage.LONG])
            if self.muon_stubs is not None and long.near_stub is not None and passes is not None:
                self.muon_stubs.add_tracks(long.near_stub, passes, particles, matches[Stage.LONG])
        if two_track is not None:
            self.decays = self.decays or DecayChecks()
            self.decays.add(two_track, long, particles, matches[Stage.LONG], has_origins)

    @property
    def has_truth(self) -> bool:
        """True if there was a particle to find."""
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
        if self.halves is not None:
            result["halves"] = self.halves.result()
        resolutions = {stage.value: found.result() for stage, found in self.resolutions.items() if found.histograms}
        if self.vertices is not None:
            resolutions["pv"] = {
                name: {"unit": residual.unit, **residual.result()["summary"]}
                for name, residual in self.vertices.residuals.items()
            }
        if resolutions:
            result["resolution"] = resolutions
        if self.clusters.true_hits:
            result["clusters"] = self.clusters.result()
        if self.muon_id is not None:
            result["muon"] = self.muon_id.result()
            if self.muon_scores is not None:
                result["muon"]["identification"] = self.muon_scores.result()
            if self.muon_stubs is not None:
                result["muon"]["stubs"] = self.muon_stubs.result()
        if self.electrons is not None:
            result["electron"] = self.electrons.result()
        if self.ecal_clusters is not None:
            result["cluster"] = self.ecal_clusters.result()
        if self.decays is not None:
            result["vertices"] = {
                "primary": result["pv"],
                "secondary": self.decays.result(),
                "masses": self.decays.masses(),
            }
        if self.losses is not None:
            result["losses"] = self.losses.result()
        if self.downstream is not None:
            result["downstream"] = self.downstream.result()
        if self.downstream_tracks is not None:
            result.setdefault("downstream", {})["tracks"] = self.downstream_tracks.result()
        if self.downstream_decays is not None:
            result["downstream"]["decays"] = self.downstream_decays.result()
            result["downstream"]["masses"] = self.downstream_decays.masses()
        if curves := self.curves.result():
            result["curves"] = curves
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
