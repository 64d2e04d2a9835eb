"""Cones beside the anti-kT jets of FastJet, which analyses use, on toy jets."""

from __future__ import annotations

from collections.abc import Iterator

import fastjet
import numpy as np
from numpy.typing import NDArray

from tests.processing.lhcb.jets.jet_oracle import Columns, Jet, directions, transverse_momenta
from tests.processing.lhcb.jets.toy_jets import Event, clusters_of, run_jets, tracks_of

RADIUS = 0.5


def fragments(rng: np.random.Generator, pt: float) -> NDArray[np.float64]:
    """pt and distances from the axis [n, (pt, dη, dφ)] of the parts of a jet; hard ones are close to it."""
    shares = rng.exponential(1.0, 14) ** 1.5
    shares /= shares.sum()
    width = np.minimum(0.02 / shares, 0.12)
    return np.column_stack([pt * shares, *(rng.normal(0, width) for _ in range(2))])


def events_with_two_jets(n: int) -> Iterator[Event]:
    """Two jets of one vertex back to back, a third of their parts photons; soft tracks of it and of another vertex."""
    rng = np.random.default_rng(64)
    for _ in range(n):
        phi, pt = rng.uniform(-np.pi, np.pi), rng.uniform(15e3, 80e3)
        parts = []
        for axis_phi, scale in ((phi, 1.0), (phi + np.pi, rng.uniform(0.6, 0.9))):
            own = fragments(rng, pt * scale)
            parts.append(own + np.array([0, rng.uniform(2.6, 4.0), axis_phi]))
        soft = np.column_stack([rng.exponential(350, 60) + 250, rng.uniform(1.9, 4.9, 60), rng.uniform(-3, 3, 60)])
        hard = np.concatenate(parts)
        is_photon = rng.random(len(hard)) < 0.33
        tracks = np.concatenate([hard[~is_photon], soft])
        pv = np.concatenate([np.zeros(int((~is_photon).sum())), rng.integers(0, 2, len(soft))])
        yield tracks_of(tracks[:, 0], tracks[:, 1], tracks[:, 2], pv), clusters_of(*hard[is_photon].T)


def hardest_anti_kt_jet(tracks: Columns, clusters: Columns, pv: int) -> tuple[float, float, float]:
    """pt, pseudorapidity and azimuth of the hardest jet of the tracks of a vertex and the photons."""
    own = {name: column[tracks["pv"] == pv] for name, column in tracks.items()}
    of_tracks = np.column_stack([transverse_momenta(own), *directions(own["beam_tx"], own["beam_ty"])])
    of_photons = np.column_stack([clusters["et"], *directions(clusters["x"] / 12650, clusters["y"] / 12650)])
    of_photons = of_photons[of_photons[:, 0] > 400]
    parts = [
        fastjet.PseudoJet(pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta), pt * np.cosh(eta))
        for pt, eta, phi in np.concatenate([of_tracks, of_photons]).tolist()
    ]
    sequence = fastjet.ClusterSequence(parts, fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS))
    jet = fastjet.sorted_by_pt(sequence.inclusive_jets())[0]
    return jet.perp(), jet.pseudorapidity(), jet.phi_std()


def distance(jet: Jet, eta: float, phi: float) -> float:
    return float(np.hypot(jet.eta - eta, (jet.phi - phi + np.pi) % (2 * np.pi) - np.pi))


def test_the_hardest_jet_has_momentum_and_axis_of_the_hardest_anti_kt_jet() -> None:
    events = list(events_with_two_jets(200))
    ratios, distances = [], []
    for event, (jets, _) in zip(events, run_jets(*events, constants={"radius": RADIUS}), strict=True):
        hardest = max(jets, key=lambda jet: jet.pt)
        pt, eta, phi = hardest_anti_kt_jet(*event, pv=hardest.pv)
        if (far := distance(hardest, eta, phi)) < RADIUS / 2:
            ratios.append(hardest.pt / pt)
            distances.append(far)
    assert len(ratios) >= 190
    assert abs(np.median(ratios) - 1) < 0.02
    low, high = np.quantile(ratios, (0.16, 0.84))
    assert (high - low) / 2 < 0.05
    assert np.median(distances) < 0.02
