"""Tracks that ACTS simulates and fits in a telescope of the 159 rows (https://acts.readthedocs.io, package `pyacts`).

Fatras moves pions through planes at the x of the rows in 0.5 T and scatters them; gaussian errors make measurements of
y and z; ACTS's Kalman filter with its smoother fits them. All lengths that this module returns are in cm.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.processing.alice.toy_events import GEOMETRY

Floats = NDArray[np.float64]

SIGMA = 0.08
"""cm: error of y and z of a measurement."""
SILICON = 9.370
"""cm: radiation length of the planes of the telescope."""
PLANE = 0.00032
"""cm of silicon in each row: as much matter as 1 cm of the gas."""
MIN_PT, MAX_PT = 0.5, 10.0
"""GeV/c."""


def effective_radiation_length() -> float:
    """The radiation length in cm of the filter of this project that scatters as ACTS does.

    ACTS uses Highland's formula with its logarithm for each plane; the filter here has no logarithm. A mean distance of
    rows has one plane.
    """
    thickness = PLANE / SILICON
    row_distance = float(np.diff(GEOMETRY.row_x).mean())
    return row_distance / thickness / (1.0 + 0.038 * math.log(thickness)) ** 2


@dataclass(frozen=True, slots=True)
class ActsSample:
    """places: f64[tracks, 159, 2], y and z of the measurements; parameters: f64[tracks, 5], (y, z, sin phi, pz/pT, q/pT
    in c/GeV) of the smoothed track at row 0; covariance: f64[tracks, 5, 5]; chi2_ndf: f64[tracks]. seconds: processor
    time of the fits. lost: tracks without a measurement in each row."""

    places: Floats
    parameters: Floats
    covariance: Floats
    chi2_ndf: Floats
    seconds: float
    lost: int


def slice_parameters(bound: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Parameters and covariance of a slice from those of a plane: -z and y in mm, phi, theta, q/p in 1/GeV."""
    z, y, phi, theta, q_p = bound[:5]
    sine, cosine = math.sin(theta), math.cos(theta)
    found = np.array([0.1 * y, -0.1 * z, math.sin(phi), cosine / sine, q_p / sine])
    jacobian = np.zeros((5, 5))
    jacobian[0, 1], jacobian[1, 0], jacobian[2, 2] = 0.1, -0.1, math.cos(phi)
    jacobian[3, 3], jacobian[4, 3], jacobian[4, 4] = -1.0 / sine**2, -q_p * cosine / sine**2, 1.0 / sine
    return found, jacobian @ covariance[:5, :5] @ jacobian.T


def acts_sample(folder: Path, n_tracks: int, seed: int, matter: bool) -> ActsSample:
    """Simulate and fit tracks, in planes that scatter with `matter`; skips the test if ACTS is not installed.

    The filter starts at the truth. Its errors there are wide for a track, but not inflated by the default of ACTS: then
    the first steps reach momenta of 10 MeV/c, where the derivatives are wrong.
    """
    acts: Any = pytest.importorskip("acts", reason="pyacts is not installed (dependency group `peers`)")
    examples: Any = pytest.importorskip("acts.examples")
    simulation: Any = pytest.importorskip("acts.examples.simulation")
    reconstruction: Any = pytest.importorskip("acts.examples.reconstruction")
    unit = acts.UnitConstants
    smearing = [{"index": i, "mean": 0.0, "stddev": SIGMA * unit.cm, "type": "Gauss"} for i in (0, 1)]
    digitization = folder / "smearing.json"
    digitization.write_text(
        json.dumps(
            {
                "acts-geometry-hierarchy-map": {"format-version": 0, "value-identifier": "digitization-configuration"},
                "entries": [{"volume": 0, "value": {"smearing": smearing}}],
            }
        )
    )
    detector = examples.TelescopeDetector(
        bounds=[2600.0, 2600.0],
        positions=(GEOMETRY.row_x * unit.cm).tolist(),
        stereos=[0.0] * len(GEOMETRY.row_x),
        rotDirection=0,
        thickness=PLANE * unit.cm,
    )
    planes = detector.trackingGeometry()
    field = acts.ConstantBField(acts.Vector3(0.0, 0.0, 0.5 * unit.T))
    numbers = examples.RandomNumbers(seed=seed)
    # One thread: the processor time of the process between two algorithms is that of the fit between them.
    steps = examples.Sequencer(
        events=n_tracks, numThreads=1, logLevel=acts.logging.WARNING, outputDir=str(folder), trackFpes=False
    )
    simulation.addParticleGun(
        steps,
        simulation.MomentumConfig(MIN_PT * unit.GeV, MAX_PT * unit.GeV, transverse=True),
        simulation.EtaConfig(0.05, 0.8, uniform=True),
        simulation.PhiConfig(-0.1, 0.1),
        simulation.ParticleConfig(1, acts.PdgParticle.ePionPlus, randomizeCharge=True),
        rnd=numbers,
        # Before the first row, inside the world that the telescope builds around its planes.
        vtxGen=examples.GaussianVertexGenerator(
            mean=acts.Vector4(845.0, 0.0, 500.0, 0.0), stddev=acts.Vector4(0.0, 50.0, 100.0, 0.0)
        ),
    )
    generated = "particles_generated"
    simulation.addFatras(steps, planes, field, rnd=numbers, enableInteractions=matter, inputParticles=generated)
    simulation.addDigitization(steps, planes, field, digiConfigFile=digitization, rnd=numbers)
    reconstruction.addSeeding(
        steps,
        planes,
        field,
        seedingAlgorithm=reconstruction.SeedingAlgorithm.TruthSmeared,
        rnd=numbers,
        selectedParticles=generated,
        particleHypothesis=acts.ParticleHypothesis.pion,
        trackSmearingSigmas=reconstruction.TrackSmearingSigmas(*[0.0] * 10),
        initialSigmas=[10 * unit.mm, 10 * unit.mm, unit.degree, unit.degree, 0.1 / unit.GeV, unit.ns],
        initialSigmaQoverPt=0.0,
        initialSigmaPtRel=0.0,
        initialVarInflation=[1.0] * 6,
    )
    done = examples.ProcessCode.SUCCESS

    class Clock(examples.IAlgorithm):  # type: ignore[misc]
        """The processor time at which each event passes."""

        def __init__(self, name: str) -> None:
            super().__init__(name, acts.logging.WARNING)
            self.seconds = 0.0

        def execute(self, context: Any) -> Any:
            self.seconds += time.process_time()
            return done

    class Collect(examples.IAlgorithm):  # type: ignore[misc]
        """Measurements and the track of each event."""

        def __init__(self) -> None:
            super().__init__("collect", acts.logging.WARNING)
            self.tracks = examples.ReadDataHandle(self, examples.ConstTrackContainer, "tracks")
            self.tracks.initialize("kf_tracks")
            self.found: list[tuple[Floats, Floats, Floats, float]] = []
            self.lost = 0

        def execute(self, context: Any) -> Any:
            for track in self.tracks(context.eventStore):
                states = sorted(track.trackStates, key=lambda state: state.referenceSurface.center(geometry)[0])
                if len(states) != len(GEOMETRY.row_x) or track.nMeasurements != len(states):
                    self.lost += 1
                    continue
                places = np.array([state.effectiveCalibrated for state in states])
                first = states[0]
                matrix = first.smoothedCovariance
                covariance = np.array([[matrix[i, j] for j in range(6)] for i in range(6)])
                parameters, covariance = slice_parameters(np.array(list(first.smoothed)), covariance)
                chi2_ndf = track.chi2 / (track.nDoF - 5)
                self.found.append((places[:, ::-1] * [0.1, -0.1], parameters, covariance, chi2_ndf))
            return done

    geometry = acts.GeometryContext.dangerouslyDefaultConstruct()
    before, after, collect = Clock("before"), Clock("after"), Collect()
    steps.addAlgorithm(before)
    reconstruction.addKalmanTracks(steps, planes, field, multipleScattering=matter, energyLoss=matter)
    steps.addAlgorithm(after)
    steps.addAlgorithm(collect)
    steps.run()
    places, parameters, covariances, chi2 = (np.array(each) for each in zip(*collect.found, strict=True))
    return ActsSample(places, parameters, covariances, chi2, after.seconds - before.seconds, collect.lost)
