"""Electrons and clusters of the calorimeter against truth (docs/physics/validation.md)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_ecal import SHOWER_MAXIMUM_Z
from hltnode.processing.lhcb.offline.validation.checker.calorimeter_columns import ClusterTable, EcalTracks
from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import MUON, ParticleTable
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.checks.counts import ratio

MIN_ET = 400.0
"""MeV: photons above it are looked for, and clusters above it that no particle explains are fakes."""
# A shower explains a cluster with at least this part of its energy.
_LEAST_PART = 0.3
_PHOTON = 22


NETWORK_CUTS = (0.5, 0.73, 0.9, 0.94, 0.98)
"""Cuts on the electron network for which rates are given; lines use two of them."""


class ElectronCounts:
    """Long particles with a track that crosses the calorimeter: how many are identified by E/p and by the electron
    network, and the momentum of electrons.

    A particle counts once; it is identified if one of its tracks is.
    """

    def __init__(self) -> None:
        self.electrons = self.found = self.hadrons = self.hadrons_found = 0
        self.electron_nn: list[Float64Array] = []
        self.hadron_nn: list[Float64Array] = []
        self.before: list[Float64Array] = []
        self.after: list[Float64Array] = []

    def add(self, tracks: EcalTracks, p: Float64Array, particles: ParticleTable, matches: TrackMatches) -> None:
        """Count a batch; `p` of the tracks, MeV."""
        crossing, flagged = np.zeros((2, len(particles)), dtype=bool)
        in_ecal = tracks.in_ecal[matches.track]
        crossing[matches.particle[in_ecal]] = True
        flagged[matches.particle[in_ecal & tracks.is_electron[matches.track]]] = True
        response = np.zeros(len(particles))
        np.maximum.at(response, matches.particle[in_ecal], tracks.electron_nn[matches.track[in_ecal]])
        electron = particles.is_electron & particles.is_long
        hadron = ~particles.is_electron & particles.is_long & (np.abs(particles.pid) != MUON)
        self.electrons += int((crossing & electron).sum())
        self.found += int((crossing & electron & flagged).sum())
        self.hadrons += int((crossing & hadron).sum())
        self.hadrons_found += int((crossing & hadron & flagged).sum())
        self.electron_nn.append(response[crossing & electron])
        self.hadron_nn.append(response[crossing & hadron])
        chosen = in_ecal & electron[matches.particle]
        track, true_p = matches.track[chosen], particles.p[matches.particle[chosen]]
        self.before.append(p[track] / true_p)
        self.after.append((p[track] + tracks.brem_energy[track]) / true_p)

    def result(self) -> dict[str, Any]:
        """The JSON object "electron"; rates and medians are None without entries."""
        before, after = (np.concatenate(values) for values in (self.before, self.after))
        return {
            "electrons": self.electrons,
            "efficiency": ratio(self.found, self.electrons),
            "hadrons": self.hadrons,
            "hadron_rate": ratio(self.hadrons_found, self.hadrons),
            "network": self._of_network(),
            "p_over_true": _median(before),
            "p_over_true_with_bremsstrahlung": _median(after),
        }

    def _of_network(self) -> dict[str, Any]:
        """Rates at each of NETWORK_CUTS; the smallest cut that flags no more hadrons than E/p does, and the efficiency
        and hadron rate there; the hadron rate of the largest cut that finds as many electrons as E/p."""
        electrons, hadrons = (np.sort(np.concatenate(values)) for values in (self.electron_nn, self.hadron_nn))

        def rate(of: Float64Array, cut: float) -> float | None:
            return ratio(int((of > cut).sum()), len(of))

        result: dict[str, Any] = {
            "cuts": list(NETWORK_CUTS),
            "efficiency": [rate(electrons, cut) for cut in NETWORK_CUTS],
            "hadron_rate": [rate(hadrons, cut) for cut in NETWORK_CUTS],
        }
        # As many hadrons have a larger response as E/p flags. A response of 0 is above no cut.
        cut = float(hadrons[-self.hadrons_found - 1]) if self.hadrons_found < len(hadrons) else 0.0
        result["at_hadron_rate_of_eop"] = {
            "cut": cut,
            "efficiency": rate(electrons, cut),
            "hadron_rate": rate(hadrons, cut),
        }
        if self.found:
            least = float(electrons[-self.found])
            result["hadron_rate_at_efficiency_of_eop"] = ratio(int((hadrons >= least).sum()), len(hadrons))
        return result


class FoundClusters:
    """Particles that should have a cluster, those that have one, and its deviations."""

    def __init__(self) -> None:
        self.total = self.found = 0
        self.energy: list[Float64Array] = []
        self.offset: list[Float64Array] = []

    def add(self, energy: Float64Array, place: Float64Array, cluster: Int64Array, clusters: ClusterTable) -> None:
        """`cluster` i64[n]: row of the cluster of each particle, -1 for none."""
        found = cluster >= 0
        self.total += len(found)
        self.found += int(found.sum())
        self.energy.append(clusters.energy[cluster[found]] / energy[found] - 1.0)
        self.offset.append((clusters.place[cluster[found]] - place[found]).ravel())

    def result(self) -> dict[str, Any]:
        """Efficiency; median and half of the central 68 % of energy / true - 1 and of the distances in x and y (mm)."""
        energy, offset = (np.concatenate(values or [np.empty(0)]) for values in (self.energy, self.offset))
        return {
            "particles": self.total,
            "efficiency": ratio(self.found, self.total),
            "energy_median": _median(energy),
            "energy_width": _width(energy),
            "position_width_mm": _width(offset),
        }


class EcalClusterCounts:
    """Clusters against truth: photons above MIN_ET, electrons with a long track, and clusters that nothing explains.

    Photons and fakes need the truth of the calorimeter, which only simulated events have.
    """

    def __init__(self) -> None:
        self.photons, self.electrons = FoundClusters(), FoundClusters()
        self.clusters = self.hard = self.fakes = 0

    def add(self, clusters: ClusterTable, showers: Sequence[NDArray[np.void] | None]) -> None:
        """Count the events of a batch; `showers`: SHOWER rows of each event, None without such truth."""
        self.clusters += len(clusters.event)
        edges = np.searchsorted(clusters.event, np.arange(len(showers) + 1))
        for event, of_event in enumerate(showers):
            if of_event is None:
                continue
            rows = np.arange(edges[event], edges[event + 1])
            place = np.stack([of_event["x"], of_event["y"]], axis=1).astype(np.float64)
            energy, visible = of_event["energy"].astype(np.float64), of_event["visible"].astype(np.float64)
            radius = np.hypot(*place.T)
            photon = (of_event["pid"] == _PHOTON) & (energy * radius / np.hypot(radius, SHOWER_MAXIMUM_Z) > MIN_ET)
            self.photons.add(energy[photon], place[photon], _nearest(place[photon], rows, clusters), clusters)
            hard = rows[clusters.et[rows] > MIN_ET]
            near = _distance(clusters.place[hard], place) < 1.5 * clusters.width[hard][:, None]
            explained = (near * visible).sum(axis=1) > _LEAST_PART * clusters.energy[hard]
            self.hard += len(hard)
            self.fakes += int((~explained).sum())

    def add_electrons(
        self, clusters: ClusterTable, tracks: EcalTracks, event: Int64Array, particles: ParticleTable,
        matches: TrackMatches,
    ) -> None:  # fmt: skip
        """Count the true electrons with a long track in the calorimeter; `event` of each track."""
        chosen = np.flatnonzero(
            tracks.in_ecal[matches.track] & (particles.is_electron & particles.is_long)[matches.particle]
        )
        _, first = np.unique(matches.particle[chosen], return_index=True)
        track, particle = matches.track[chosen[first]], matches.particle[chosen[first]]
        edges = np.searchsorted(clusters.event, np.arange(particles.n_events + 1))
        found = np.full(len(track), -1)
        for i, of in enumerate(track):
            rows = np.arange(edges[event[of]], edges[event[of] + 1])
            found[i] = _nearest(tracks.place[of : of + 1], rows, clusters)[0]
        self.electrons.add(particles.p[particle], tracks.place[track], found, clusters)

    def result(self) -> dict[str, Any]:
        """The JSON object "cluster"; without truth of the calorimeter the fakes are None."""
        return {
            "clusters": self.clusters,
            "photons": self.photons.result(),
            "electrons": self.electrons.result(),
            "hard_clusters": self.hard,
            "fake_rate": ratio(self.fakes, self.hard),
        }


def _distance(some: Float64Array, others: Float64Array) -> Float64Array:
    """f64[n, m]: the larger of the distances in x and in y."""
    distance: Float64Array = np.abs(some[:, None] - others[None]).max(axis=2)
    return distance


def _nearest(place: Float64Array, rows: Int64Array, clusters: ClusterTable) -> Int64Array:
    """Row of the nearest cluster of each place that is less than a cell away, -1 for none; several may share one."""
    if not len(rows):
        return np.full(len(place), -1)
    distance = _distance(place, clusters.place[rows])
    nearest = distance.argmin(axis=1)
    is_near = distance[np.arange(len(place)), nearest] < clusters.width[rows[nearest]]
    return np.where(is_near, rows[nearest], -1)


def _median(values: Float64Array) -> float | None:
    return float(np.median(values)) if len(values) else None


def _width(values: Float64Array) -> float | None:
    """Half of the central 68.3 %."""
    if not len(values):
        return None
    low, high = np.quantile(values, [0.1585, 0.8415])
    return float(high - low) / 2
