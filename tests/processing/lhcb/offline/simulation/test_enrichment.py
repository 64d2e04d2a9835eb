"""Enriched minimum bias: weighted events have the distributions of plain ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.velo import Z_AXIS
from hltnode.processing.lhcb.offline.simulation.generation.collisions import SimulatedCollisions, generate
from hltnode.processing.lhcb.offline.simulation.generation.enrichment import (
    PROMPT,
    Harder,
    Kind,
    Mixture,
    added_frequency,
    places_to_add,
)
from hltnode.processing.lhcb.offline.simulation.generation.mixtures import ENRICHED
from hltnode.processing.offline.event_random import EventRandom

NU = 2.0
N_EVENTS = 1500
CHUNK = 100


@cache
def generated(seed: int, mixture: Mixture | None) -> list[SimulatedCollisions]:
    events: list[SimulatedCollisions] = []
    for first in range(0, N_EVENTS, CHUNK):
        random = EventRandom([np.random.default_rng((seed, first + number)) for number in range(CHUNK)])
        events += generate(random, NU, Z_AXIS, mixture=mixture)
    return events


def numbers(event: SimulatedCollisions) -> dict[str, float]:
    """Numbers of an event on which the kinds of the mixture differ most, and some on which they do not."""
    particles = event.particles
    forward = (particles.eta > 2) & (particles.eta < 5)
    straight = np.arange(len(particles)) < len(event.collision)
    muon = straight & forward & (np.abs(particles.pid) == 13)
    return {
        "collisions": len(event.positions),
        "particles": len(particles),
        "beauty": bool(particles.from_beauty.any()),
        "hard beauty": bool((particles.from_beauty & forward & (particles.dom_pt > 5000)).any()),
        "hard charm": bool((particles.from_charm & forward & (particles.dom_pt > 3000)).any()),
        "backward": bool((particles.from_charm & ~forward).any()),
        "strange": bool((particles.from_strange & forward & (particles.pt > 1200)).any()),
        "muon": bool((muon & (particles.pt > 1000)).any()),
        "two muons": int((muon & (particles.pt > 500)).sum()) > 1,
        "hard": bool((straight & forward & (particles.pt > 5000)).any()),
        "few": len(event.collision) < 20,
    }


def test_weighted_events_have_the_distributions_of_minimum_bias() -> None:
    """Pulls of eleven numbers, some of them correlated."""
    plain, enriched = generated(3, None), generated(4, ENRICHED)
    weights = np.array([event.weight for event in enriched])
    assert {event.weight for event in plain} == {1.0}
    of_plain, of_enriched = ([numbers(event) for event in events] for events in (plain, enriched))
    pulls = {"weight": (weights.mean() - 1) / (weights.std() / np.sqrt(len(weights)))}
    for name in of_plain[0]:
        values = np.array([row[name] for row in of_plain], float)
        weighted = weights * np.array([row[name] for row in of_enriched], float)
        error = np.hypot(values.std(), weighted.std()) / np.sqrt(N_EVENTS)
        pulls[name] = (weighted.mean() - values.mean()) / error
    assert max(abs(pull) for pull in pulls.values()) < 3.5, pulls


def test_no_weight_is_above_the_inverse_share_of_plain_events_and_rare_events_have_small_ones() -> None:
    enriched = generated(4, ENRICHED)
    weights = np.array([event.weight for event in enriched])
    assert weights.min() > 0
    assert weights.max() <= 1 / ENRICHED.kinds[0].share
    hard_beauty = np.array([numbers(event)["hard beauty"] for event in enriched])
    assert hard_beauty.sum() > 50
    assert weights[hard_beauty].mean() < 0.1


def test_an_event_without_a_collision_that_makes_the_particles_stays_as_it_is() -> None:
    mixture = Mixture([Kind(share=0.5), Kind(share=0.5, process=PROMPT, n=1, spectrum=Harder(pt=5.0))])
    random = EventRandom([np.random.default_rng((1, number)) for number in range(20)])
    events = generate(random, 0.0, Z_AXIS, mixture=mixture)
    assert [len(event.particles) for event in events] == [0] * 20
    assert [event.weight for event in events] == [1.0] * 20


def test_the_frequency_of_added_particles_is_a_sum_over_those_of_the_event() -> None:
    event, ratio, mean = np.array([0, 0, 1, 1, 1]), np.array([2.0, 3.0, 1.0, 0.5, 4.0]), np.array([2.0, 4.0, 0.0])
    np.testing.assert_allclose(added_frequency(1, event, ratio, mean), [5 / 2, 5.5 / 4, 1])
    pairs = [2 * 2 * 3, 2 * (1 * 0.5 + 1 * 4 + 0.5 * 4)]
    np.testing.assert_allclose(added_frequency(2, event, ratio, mean), [pairs[0] / 4, pairs[1] / 16, 1])


@pytest.mark.parametrize("spectrum", [Harder(pt=3.0), Harder(pt=0.5)])
def test_density_ratios_have_the_mean_one(spectrum: Harder) -> None:
    rng = np.random.default_rng(8)
    pt = 500 * np.exp(0.8 * rng.normal(size=200_000))
    assert spectrum.pt_ratio(pt, 500.0, 0.8).mean() == pytest.approx(1, abs=0.03)
    assert Harder(flight=1.5).flight_ratio(rng.exponential(size=200_000)).mean() == pytest.approx(1, abs=0.03)


def test_added_particles_are_the_last_of_their_source() -> None:
    marked = places_to_add(np.array([0, 0, 0, 2, 2, 3]), np.array([1, 0, 2, 0]))
    assert marked.tolist() == [False, False, True, True, True, False]
