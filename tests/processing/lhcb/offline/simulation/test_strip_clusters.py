import numpy as np
import pytest

from hltnode.processing.lhcb.offline.simulation.response.strip_clusters import (
    Clusters,
    Crossings,
    cluster,
    links,
    share_charge,
)
from hltnode.processing.offline.event_random import EventRandom


def clusters_of(deposits: dict[int, float]) -> Clusters:
    channel = np.array(list(deposits), dtype=np.int64)
    charge, dead = np.array(list(deposits.values())), np.zeros(len(channel), dtype=bool)
    return cluster(channel, charge, dead, threshold=1.0, seed=2.0, total=3.0)


def test_neighbours_above_threshold_form_a_cluster_at_their_centre_of_gravity() -> None:
    found = clusters_of({10: 1.0, 11: 3.0, 12: 1.0, 20: 4.0, 22: 3.5})
    assert found.first.tolist() == [10, 20, 22]
    assert found.size.tolist() == [3, 1, 1]
    np.testing.assert_allclose(found.position, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(found.channel_charge, [1.0, 3.0, 1.0, 4.0, 3.5])
    assert found.of_deposit.tolist() == [0, 0, 0, 1, 2]


def test_clusters_without_seed_or_with_little_charge_are_dropped() -> None:
    found = clusters_of({10: 1.9, 11: 1.9, 30: 2.5, 50: 5.0, 51: 0.5})
    assert found.first.tolist() == [50]
    assert found.of_deposit.tolist() == [-1, -1, -1, 0, -1]


def test_deposits_of_one_channel_add_up_and_dead_channels_have_none() -> None:
    channel = np.array([7, 8, 7, 9], dtype=np.int64)
    dead = np.array([False, False, False, True])
    found = cluster(channel, np.array([1.5, 1.0, 1.5, 9.0]), dead, threshold=1.0, seed=2.0, total=3.0)
    assert (found.first.tolist(), found.size.tolist(), found.charge.tolist()) == ([7], [2], [4.0])
    assert found.of_deposit.tolist() == [0, 0, 0, -1]


def test_without_deposits_there_are_no_clusters() -> None:
    assert len(clusters_of({}).first) == 0
    assert len(clusters_of({5: 0.1}).first) == 0


@pytest.mark.parametrize(("centre", "width"), [(10.5, 0.2), (10.0, 1.0), (10.9, 3.0), (0.1, 2.0)])
def test_shared_charge_adds_up_and_keeps_its_centre(centre: float, width: float) -> None:
    row, channel, parts = share_charge(np.array([5.0, centre]), np.array([1.0, width]), np.array([0.1, 1.0]), 20, 0.0)
    of_second = row == 1
    # At the edge, charge beyond the first channel is lost.
    inside = min(1.0, 0.5 + centre / width)
    assert parts[of_second].sum() == pytest.approx(inside)
    # Inside a channel the position is lost.
    assert np.average(channel[of_second] + 0.5, weights=parts[of_second]) == pytest.approx(
        max(centre, (centre + width / 2) / 2), abs=0.5
    )
    assert parts[~of_second].sum() == pytest.approx(0.1)


def test_small_shares_are_lost() -> None:
    row, channel, parts = share_charge(np.array([3.1]), np.array([2.0]), np.array([10.0]), 20, 1.0)
    assert (row.tolist(), channel.tolist()) == ([0, 0], [2, 3])
    np.testing.assert_allclose(parts, [4.5, 5.0])


def test_links_are_distinct_pairs_by_particle() -> None:
    particle, which = links(np.array([3, 3, 1, -1, 3]), np.array([0, 0, 5, 2, -1]), 6)
    assert (particle.tolist(), which.tolist()) == ([1, 3], [5, 0])


def test_spill_over_flies_in_the_mirrored_direction_from_the_mirrored_place() -> None:
    one = [np.array([value]) for value in (10.0, -20.0, 0.1, -0.2)]
    crossings = Crossings(np.array([4]), np.array([0]), np.array([2]), *one)
    found = crossings.with_spill_over(EventRandom([np.random.default_rng(1)]), 1.0)
    assert (found.row.tolist(), found.event.tolist(), found.layer.tolist()) == ([4, -1], [0, 0], [2, 2])
    for name, value in zip(("x", "y", "tx", "ty"), one, strict=True):
        assert getattr(found, name).tolist() == [value[0], -value[0]]
    assert len(crossings.with_spill_over(EventRandom([np.random.default_rng(1)]), 0.0)) == 1
