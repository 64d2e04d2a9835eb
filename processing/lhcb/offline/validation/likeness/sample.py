"""The distributions of one sample, filled event by event."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.geometry.muon import MuonHits
from hltnode.processing.lhcb.geometry.scifi import SciFiHitPositions
from hltnode.processing.lhcb.geometry.ut import UtHitPositions
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    COLUMN_SHIFT,
    SENSOR_SHIFT,
    label_clusters,
    retina_ids,
)
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import retina_clusters as clusters_of_pixels
from hltnode.processing.lhcb.offline.validation.checker.truth_check import EventTruth, read_truth
from hltnode.processing.lhcb.offline.validation.checker.vertices import MIN_TRACKS
from hltnode.processing.lhcb.offline.validation.likeness.calorimeter import (
    ecal_adc,
    ecal_values,
    electron_values,
    hadron_values,
)
from hltnode.processing.lhcb.offline.validation.likeness.long_particles import (
    LongParticles,
    MagnetFlight,
    long_electrons,
    long_hadrons,
    velo_lines,
)
from hltnode.processing.lhcb.offline.validation.likeness.muon_fields import muon_values
from hltnode.processing.lhcb.offline.validation.likeness.quantities import BANKS, QUANTITIES
from hltnode.processing.lhcb.offline.validation.likeness.residuals import (
    TruthHits,
    curve_at,
    fast_long_particles,
    fit_curves,
)
from hltnode.processing.lhcb.offline.validation.likeness.search_windows import window_values
from hltnode.processing.lhcb.offline.validation.likeness.tracking import (
    Values,
    magnet_values,
    scifi_values,
    t_track_values,
    velo_values,
)
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.likeness.distribution import Distribution
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import UtVersion
from hltnode.protocol.lhcb.banks.muon import N_BANKS as N_MUON_BANKS
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.lhcb.banks.scifi import N_BANKS as N_SCIFI_BANKS
from hltnode.protocol.lhcb.banks.scifi import decode_scifi
from hltnode.protocol.lhcb.banks.ut import BOARDS, N_BOARDS, decode_ut, decode_ut_charges
from hltnode.protocol.lhcb.banks.velo import (
    N_SENSORS,
    RetinaClusters,
    decode_retina_clusters,
    decode_superpixels,
)
from hltnode.protocol.lhcb.lhcb_id import FT_TYPE, UT_TYPE, VP_TYPE, in_2022_scheme
from hltnode.protocol.lhcb.truth_columns import McParticleColumns
from hltnode.protocol.raw_data.raw_bank import RawBank

# Stereo layers are tilted by more than this (dx/dy).
_SCIFI_X_SLOPE = 0.01
# Middle of the SciFi tracker in z (mm).
_SCIFI_MIDDLE = 8600.0


@dataclass(frozen=True, slots=True, eq=False)
class _VeloHits:
    ids: NDArray[np.uint32]
    position: Float64Array


class SampleSummary:
    """Distributions of the quantities that a sample has, and the events whose truth does not match (left out of the
    distributions of truth)."""

    quantities = QUANTITIES

    def __init__(self, geometry: Detector) -> None:
        self.geometry = geometry
        self.events = 0
        self.distributions: dict[str, Distribution] = {}
        self.faults = TruthFaults()
        self._flight: MagnetFlight | None = None

    def _add(self, name: str, values: ArrayLike) -> None:
        self.distributions.setdefault(name, Distribution(QUANTITIES[name])).add(values)

    def _add_values(self, values: Values) -> None:
        for name, of_quantity in values.items():
            if len(of_quantity):
                self._add(name, of_quantity)

    def add_event(self, banks: Sequence[RawBank]) -> None:
        """Count one event. Raises ProtocolError for a bank that cannot be read."""
        self.events += 1
        types = {bank.type for bank in banks}
        self._add_banks(banks)
        velo = self._add_velo(banks, types)
        ut = self._add_ut(banks) if LhcbBankType.UT in types else None
        scifi = self._add_scifi(banks) if LhcbBankType.FT_CLUSTER in types else None
        muon = self._add_muon(banks) if LhcbBankType.MUON in types else None
        adc = None
        if types & {LhcbBankType.ECAL_PACKED, LhcbBankType.CALO}:
            adc = ecal_adc(banks, self.geometry.ecal)
            self._add_values({} if adc is None else ecal_values(adc, self.geometry.ecal))
        if LhcbBankType.MC_TRACKS in types:
            hits = {VP_TYPE: velo.ids}
            if ut is not None:
                hits[UT_TYPE] = ut.lhcb_id
            if scifi is not None:
                hits[FT_TYPE] = scifi.lhcb_id
            truth = read_truth(banks, hits, self.faults)
            if truth is not None:
                self._add_truth(truth)
                line = self._add_velo_residuals(truth.particles, velo)
                if ut is not None:
                    self._add_ut_residuals(truth.particles, ut, line)
                if scifi is not None:
                    self._add_scifi_residuals(truth.particles, scifi)
                if ut is not None and scifi is not None and muon is not None:
                    self._add_tracking(truth.particles, velo, ut, scifi, muon, adc)

    def _add_banks(self, banks: Sequence[RawBank]) -> None:
        for bank_type, (_, name, _, _) in BANKS.items():
            sizes = [len(bank.payload) for bank in banks if bank.type == bank_type]
            if sizes:
                self._add(f"{name}_bank_size", sizes)
                self._add(f"{name}_bytes_per_event", sum(sizes))
                self._add(f"{name}_banks_per_event", len(sizes))

    def _add_velo(self, banks: Sequence[RawBank], types: set[int]) -> _VeloHits:
        clusters: RetinaClusters | None = None
        if LhcbBankType.VP in types:
            superpixels = decode_superpixels(banks)
            self._add("velo_superpixels_per_event", len(superpixels.sensor))
            sensor, column, row = (values.astype(np.int64) for values in superpixels.pixels())
            pixels = np.unique(sensor << SENSOR_SHIFT | column << COLUMN_SHIFT | row)
            labels = label_clusters(pixels) if len(pixels) else pixels
            self._add("velo_cluster_size", np.bincount(labels))
            clusters = clusters_of_pixels(pixels, labels)
        if LhcbBankType.VP_RETINA_CLUSTER in types:
            clusters = decode_retina_clusters(banks)
        if clusters is None:
            return _VeloHits(np.empty(0, np.uint32), np.empty((0, 3)))
        self._add("velo_clusters_per_event", len(clusters.sensor))
        self._add("velo_clusters_per_sensor", np.bincount(clusters.sensor, minlength=N_SENSORS))
        self._add("velo_sensor", clusters.sensor)
        scale = 1 << clusters.fraction_bits
        position = self.geometry.velo.local_to_global(
            clusters.sensor, clusters.column, clusters.row, clusters.fraction_x / scale, clusters.fraction_y / scale
        )
        from_beam = position[:, :2] - self.geometry.velo.beamline.at(position[:, 2])
        self._add("velo_cluster_radius", np.hypot(from_beam[:, 0], from_beam[:, 1]))
        return _VeloHits(retina_ids(clusters), position)

    def _add_ut(self, banks: Sequence[RawBank]) -> UtHitPositions:
        hits = decode_ut(banks)
        if all(bank.version == UtVersion.CLUSTERS for bank in banks if bank.type == LhcbBankType.UT):
            self._add("ut_cluster_size", decode_ut_charges(banks).n_strips)
        self._add("ut_hits_per_event", len(hits.board))
        self._add("ut_hits_per_board", np.bincount(hits.board, minlength=N_BOARDS)[list(BOARDS)])
        positions = self.geometry.ut.hits(hits)
        self._add("ut_layer", positions.layer)
        self._add("ut_sector", positions.sector)
        self._add("ut_hit_x", np.abs(positions.x))
        return positions

    def _add_scifi(self, banks: Sequence[RawBank]) -> SciFiHitPositions:
        hits = decode_scifi(banks)
        self._add("scifi_hits_per_event", len(hits.bank))
        self._add("scifi_hits_per_bank", np.bincount(hits.bank, minlength=N_SCIFI_BANKS))
        self._add("scifi_pseudo_size", hits.pseudo_size)
        positions = self.geometry.scifi.hits(hits)
        self._add("scifi_layer", positions.layer)
        self._add("scifi_mat", positions.mat)
        self._add("scifi_hit_x", np.abs(positions.x))
        return positions

    def _add_muon(self, banks: Sequence[RawBank]) -> MuonHits:
        digits = decode_muon(banks)
        self._add("muon_digits_per_event", len(digits.bank))
        self._add("muon_digits_per_bank", np.bincount(digits.bank, minlength=N_MUON_BANKS))
        hits = self.geometry.muon.hits(digits)
        self._add("muon_hits_per_event", len(hits.station))
        self._add("muon_region", 4 * hits.station + hits.region)
        self._add("muon_hit_x", np.abs(hits.x))
        self._add("muon_hit_y", np.abs(hits.y))
        self._add("muon_time", digits.time)
        return hits

    def _add_truth(self, truth: EventTruth) -> None:
        particles, values = truth.particles, truth.particles.values
        seen = particles.n_velo_ids + particles.n_ut_ids + particles.n_scifi_ids > 0
        velo, long = values["has_velo"] != 0, values["is_long"] != 0
        self._add("particles_per_event", seen.sum())
        self._add("velo_particles_per_event", velo.sum())
        self._add("long_per_event", long.sum())
        self._add("downstream_per_event", ((values["is_down"] != 0) & ~velo).sum())
        self._add("velo_hits_per_particle", particles.n_velo_ids[velo])
        self._add("velo_eta", values["eta"][velo])
        self._add("velo_hits_per_long", particles.n_velo_ids[long])
        if particles.n_ut_ids.any():
            self._add("ut_hits_per_long", particles.n_ut_ids[long])
        if particles.n_scifi_ids.any():
            self._add("scifi_hits_per_long", particles.n_scifi_ids[long])
        self._add("long_p", values["p"][long] / 1000)
        self._add("long_pt", values["pt"][long] / 1000)
        self._add("long_eta", values["eta"][long])
        self._add("long_phi", values["phi"][long])
        if truth.vertices is not None:
            self._add("pvs_per_event", sum(vertex.n_tracks >= MIN_TRACKS for vertex in truth.vertices))
            self._add("tracks_per_pv", [vertex.n_tracks for vertex in truth.vertices])
            for axis in "xyz":
                self._add(f"pv_{axis}", [getattr(vertex, axis) for vertex in truth.vertices])

    def _add_velo_residuals(self, particles: McParticleColumns, velo: _VeloHits) -> tuple[Float64Array, Float64Array]:
        """The straight lines x(z) and y(z) of the fast long particles, nan for all others."""
        ids = in_2022_scheme(particles.velo_ids)
        found = TruthHits.find(ids, particles.n_velo_ids, fast_long_particles(particles), velo.ids)
        x, y, z = velo.position[found.hit].T
        lines = []
        for place in (x, y):
            line = fit_curves(found.owner, z, place, 1, len(particles))
            self._add("velo_residual", 1000 * (place - curve_at(line[found.owner], z)))
            lines.append(line)
        return lines[0], lines[1]

    def _add_ut_residuals(
        self, particles: McParticleColumns, ut: UtHitPositions, line: tuple[Float64Array, Float64Array]
    ) -> None:
        found = TruthHits.find(particles.ut_ids, particles.n_ut_ids, fast_long_particles(particles), ut.lhcb_id)
        z = ut.z[found.hit]
        line_x, line_y = (curve_at(of_axis[found.owner], z) for of_axis in line)
        self._add("ut_residual", ut.x[found.hit] + ut.dx_dy[found.hit] * line_y - line_x)

    def _add_scifi_residuals(self, particles: McParticleColumns, scifi: SciFiHitPositions) -> None:
        ids = in_2022_scheme(particles.scifi_ids)
        in_x_layer = np.abs(scifi.dx_dy) < _SCIFI_X_SLOPE
        wanted = fast_long_particles(particles)
        found = TruthHits.find(ids, particles.n_scifi_ids, wanted, scifi.lhcb_id[in_x_layer])
        # Around the middle of the detector, otherwise the powers of z are too strongly correlated.
        near, place = scifi.z[in_x_layer][found.hit] - _SCIFI_MIDDLE, scifi.x[in_x_layer][found.hit]
        curve = fit_curves(found.owner, near, place, 3, len(particles))
        self._add("scifi_residual", 1000 * (place - curve_at(curve[found.owner], near)))

    def _add_tracking(
        self,
        particles: McParticleColumns,
        velo: _VeloHits,
        ut: UtHitPositions,
        scifi: SciFiHitPositions,
        muon: MuonHits,
        adc: NDArray[np.int64] | None,
    ) -> None:
        """Quantities that the tracking depends on, for events with all detectors; E/p if there is a calorimeter."""
        line = velo_lines(particles, velo.ids, velo.position)
        long = LongParticles.of(particles, line, scifi, long_hadrons(particles))
        if self._flight is None:
            self._flight = MagnetFlight(self.geometry.magnet, np.array(UT_LAYER_Z))
        values: Values = {
            **velo_values(particles, line, velo.ids, velo.position),
            **magnet_values(long, particles, ut, self._flight, self.geometry.magnet.polarity),
            **scifi_values(long, scifi),
            **window_values(particles, line, scifi),
            **t_track_values(particles),
            **muon_values(long, particles, muon),
        }
        self._add_values(values)
        if adc is not None:
            electrons = LongParticles.of(particles, line, scifi, long_electrons(particles))
            self._add_values(hadron_values(long, particles, adc, self.geometry.ecal))
            self._add_values(electron_values(electrons, adc, self.geometry.ecal))
