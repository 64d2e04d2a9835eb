"""Smoothed states of simulated events through the whole sequence, against the true places where particles crossed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.output_lists import ListContent
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.simulation.response.velo_response import VeloResponse
from hltnode.processing.lhcb.offline.simulation.velo_generator import CHUNK, DEFAULT_NU

pytestmark = pytest.mark.physics

N_EVENTS = 2 * CHUNK
NEAR = 0.15
"""mm: a hit within this distance of a crossing of its sensor belongs to it."""
Crossings = dict[tuple[int, int], NDArray[np.float64]]
"""True places [n, (x, y)] in mm, by event and sensor."""


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture(scope="module")
def simulated(patch: pytest.MonkeyPatch) -> tuple[ListContent, Crossings]:
    detector = Detector.builtin()
    crossed: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    usual = VeloResponse._pixels_of_crossings

    def recorded(self: VeloResponse, random: Any, event: Any, slopes: Any, sensor: Any, local: Any) -> Any:
        # The second call of a chunk adds the charge of nuclei, of which there are none.
        if len(event):
            crossed.append((event, self._order[sensor], local.copy()))
        return usual(self, random, event, slopes, sensor, local)

    patch.setattr(VeloResponse, "_pixels_of_crossings", recorded)
    simulation = FullSimulation(detector, sample_source(Sample.BSPHIPHI, DEFAULT_NU, detector.velo.beamline))
    events = list(simulation.events(N_EVENTS, 5))
    configuration = CHAIN.load_trigger(None, "smoothed_tracks")
    engine = CHAIN.create_engine(
        create_backend("cpu", CHAIN.kernels, threads=1, device=0),
        CHAIN.with_sequence("smoothed_tracks").load_geometry(None),
        configuration,
        BatchLimits(events=N_EVENTS, input_bytes=16 << 20),
    )
    (batch,) = OfflineRunner(engine).run(encode_meps(engine.chain, events, CHUNK, "auto"))
    states = batch.workspace.output.lists["smoothed_states"].copy()
    engine.close()
    places: dict[tuple[int, int], list[NDArray[np.float64]]] = {}
    for chunk, (event, sensor, local) in enumerate(crossed):
        at = detector.velo.place(sensor, local[:, 0], local[:, 1])
        for number, of_sensor, xyz in zip(event.tolist(), sensor.tolist(), at, strict=True):
            places.setdefault((number + chunk * CHUNK, of_sensor), []).append(xyz[:2])
    return states, {key: np.array(value) for key, value in places.items()}


def _width(values: NDArray[np.float64]) -> float:
    """Half of the central 68 per cent."""
    low, high = np.percentile(values, (15.865, 84.135))
    return float(high - low) / 2


def test_pulls_at_the_first_middle_and_last_hit_are_one(simulated: tuple[ListContent, Crossings]) -> None:
    states, crossings = simulated
    values = states.values
    event = np.repeat(np.arange(N_EVENTS), states.counts)
    sensor = values["state_lhcb_id"] >> 18 & 0xFF
    key = event * 4096 + values["state_track"]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    ends = np.append(starts[1:], len(key))
    assert len(starts) > 1500
    assert np.all(np.diff(values["state_z"])[np.diff(key) == 0] > 0.0)
    for place, hits in (("first", starts), ("middle", (starts + ends - 1) // 2), ("last", ends - 1)):
        for name, variance, axis in (("state_x", "state_c00", 0), ("state_y", "state_c11", 1)):
            pulls = []
            for hit in hits:
                found = np.array([values["state_x"][hit], values["state_y"][hit]], np.float64)
                true = crossings.get((int(event[hit]), int(sensor[hit])))
                if true is None:
                    continue
                distance = true - found
                nearest = np.argmin((distance**2).sum(axis=1))
                if np.hypot(*distance[nearest]) < NEAR:
                    pulls.append(-distance[nearest, axis] / np.sqrt(float(values[variance][hit])))
            assert len(pulls) > 0.95 * len(hits)
            assert _width(np.array(pulls)) == pytest.approx(1.0, abs=0.1), (place, name)
            assert abs(np.median(pulls)) < 0.12, (place, name)  # four standard errors


def test_residuals_and_chi2_are_those_of_hits_without_bias(simulated: tuple[ListContent, Crossings]) -> None:
    values = simulated[0].values
    # The median of a chi2 distribution of two degrees of freedom is 2 ln 2.
    assert np.median(values["state_chi2"]) == pytest.approx(2 * np.log(2), abs=0.2)
