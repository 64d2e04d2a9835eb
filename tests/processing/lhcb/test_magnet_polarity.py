"""The polarity of the conditions against the charges of long tracks, in events of both polarities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from hltnode.daemon.monitoring.detector_conditions import ConditionReading, DetectorConditions
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.histograms import HistogramContent, contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.conditions import MAGNET_POLARITY
from hltnode.processing.lhcb.geometry.magnet import DOWN, UP
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions
from hltnode.processing.lhcb.offline.simulation.generation.sources import Source, sample_source
from hltnode.processing.offline.event_random import EventRandom
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.full_events import builtin_detector

pytestmark = pytest.mark.physics

EVENTS = 150
POSITIVE = 0.7
"""Of particles straight from collisions. In LHCb's simulation 0.504: the test would need 100,000 events."""
PAIR = ("long_x_positive", "long_x_negative")


def mostly_positive(source: Source, random: EventRandom, event_ids: Sequence[int]) -> list[SimulatedCollisions]:
    """Events of a source, with most particles positive."""
    found = source(random, event_ids)
    rng = np.random.default_rng(3)
    for event in found:
        prompt = np.arange(len(event.collision))
        flipped = (rng.random(len(prompt)) < POSITIVE) != (event.particles.charge[prompt] > 0)
        event.particles.charge[prompt[flipped]] *= -1
        event.particles.pid[prompt[flipped]] *= -1
    return found


@cache
def events(polarity: float, *, excess: bool) -> tuple[list[RawBank], ...]:
    detector = builtin_detector().with_polarity(polarity)
    source = sample_source("minbias", 7.6, detector.velo.beamline)
    return tuple(FullSimulation(detector, partial(mostly_positive, source) if excess else source).events(EVENTS, 5))


@cache
def reconstructed(
    truth: float, condition: float, sequence: str, *, excess: bool = True
) -> tuple[ConditionReading, Mapping[str, HistogramContent]]:
    """The reading of the polarity, and all histograms."""
    chain = CHAIN.with_sequence(sequence)
    trigger: TriggerConfig = replace(CHAIN.load_trigger(None, sequence), conditions=((MAGNET_POLARITY, condition),))
    limits = BatchLimits(events=16, input_bytes=8 << 20)
    engine = chain.create_engine(create_backend("cpu", chain.kernels), chain.load_geometry(None), trigger, limits)
    runner = OfflineRunner(engine)
    for _ in runner.run(encode_meps(chain, events(truth, excess=excess), 16)):
        pass
    counts = runner.take_histogram_counts().astype(np.uint32)
    conditions = DetectorConditions(engine.measured, engine.histograms)
    conditions.add(1, counts)
    engine.close()
    [reading] = [each for each in conditions.readings() if each.name == MAGNET_POLARITY]
    return reading, {content.shape.name: content for content in contents(engine.histograms, counts)}


@pytest.mark.parametrize("sequence", ["forward", "matching"])
@pytest.mark.parametrize("truth", [DOWN, UP])
def test_an_excess_of_positive_tracks_shows_the_polarity_of_the_magnet(truth: float, sequence: str) -> None:
    right, _ = reconstructed(truth, truth, sequence)
    wrong, _ = reconstructed(truth, -truth, sequence)
    assert (right.configured, right.measured, right.is_off) == (truth, truth, False)
    assert (wrong.configured, wrong.measured, wrong.is_off) == (-truth, truth, True)


def test_without_an_excess_no_polarity_is_measured() -> None:
    for condition in (DOWN, UP):
        reading, _ = reconstructed(DOWN, condition, "forward", excess=False)
        assert reading.measured is None
        assert reading.values > 500


def test_the_wrong_polarity_changes_the_charges_and_nothing_else() -> None:
    _, right = reconstructed(DOWN, DOWN, "forward")
    _, wrong = reconstructed(DOWN, UP, "forward")
    names = dict(zip(PAIR, reversed(PAIR), strict=True))
    for name, content in right.items():
        np.testing.assert_array_equal(wrong[names.get(name, name)].counts, content.counts, name)
    assert right[PAIR[0]].entries > 1.3 * right[PAIR[1]].entries
