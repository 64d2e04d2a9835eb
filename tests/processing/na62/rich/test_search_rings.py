"""rich_search_rings: rings against float64, thresholds one by one, and rings that no circle of the kernel may make."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.na62.rich.fit_ring import RESOLUTION
from hltnode.processing.na62.rich.pmt_positions import N_PMTS
from hltnode.protocol.na62.rich_banks import HIT, encode_hits
from tests.processing.na62.rich_events import mep_of_payloads, run_chain, simulated
from tests.processing.na62.ring_oracle import Search, algebraic_fit

SAFE_MARGIN = 2e-6
"""Relative distance from every threshold at which float32 and float64 decide alike."""


def test_the_rings_are_those_of_a_search_in_float64() -> None:
    events = [*simulated(21, 40), *simulated(22, 15, Decay.THREE_PIONS), *simulated(23, 20, Decay.TRACKS)]
    events = [hits for hits in events if len(hits) <= 64]
    found = run_chain(mep_of_payloads([encode_hits(hits) for hits in events]))
    compared = rings = 0
    for i in range(len(events)):
        search = Search(found.hit_x[i].astype(np.float64), found.hit_y[i].astype(np.float64))
        expected = search.run()
        if search.margin < SAFE_MARGIN:
            continue
        compared += 1
        rings += len(expected)
        assert len(found.rings[i]) == len(expected), i
        for ring, (x, y, radius, n, squares) in zip(found.rings[i], expected, strict=True):
            np.testing.assert_allclose([ring["x"], ring["y"], ring["radius"]], [x, y, radius], atol=2e-3)
            assert ring["hits"] == n
            np.testing.assert_allclose(ring["chi2"] * RESOLUTION**2, squares, rtol=1e-3, atol=0.02)
    assert compared > 0.8 * len(events)
    assert rings > 75


def places_on(radius: float, n: int, x: float = 0.0, y: float = 0.0, wiggle: float = 0.0) -> np.ndarray:
    """Points on a circle; every second one is `wiggle` farther out."""
    angle = 0.1 + 2 * np.pi * np.arange(n) / n
    size = radius + wiggle * (np.arange(n) % 2)
    return np.column_stack([x + size * np.cos(angle), y + size * np.sin(angle)])


def rings_of_places(places: np.ndarray, settings: str = "") -> list[list[float]]:
    """x, y and radius of the rings of one event of any points."""
    table = np.zeros((N_PMTS, 2), np.float32)
    table[: len(places)] = places
    hits = np.array([(i, 0) for i in range(len(places))], HIT)
    constants = {"rich.pmt_position": table.reshape(-1).view(np.uint8)}
    configuration = f"[sequence.rich_search_rings]\n{settings}" if settings else ""
    found = run_chain(mep_of_payloads([encode_hits(hits)]), configuration, constants)
    return [[float(ring[name]) for name in ("x", "y", "radius")] for ring in found.rings[0]]


def test_sums_of_the_most_hits_at_the_corners_of_their_box_do_not_overflow() -> None:
    # Here the sum of z z is largest: 64 times 4. The half side is a power of 2, so that no rounding makes it smaller.
    corners = 128.0 * np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    ((x, y, radius),) = rings_of_places(np.repeat(corners, 16, axis=0))
    np.testing.assert_allclose([x, y, radius], [0, 0, 128 * np.sqrt(2)], atol=1e-3)


def test_a_small_ring_at_the_edge_of_a_wide_box_keeps_its_place() -> None:
    # Steps are parts of the box, which three lone hits make wide.
    ring = places_on(65, 20, 220, 0, wiggle=8)
    (found,) = rings_of_places(np.append(ring, [[-290.0, 0.0], [0, 290], [0, -290]], 0))
    x, y = ring.astype(np.float32).astype(np.float64).T
    np.testing.assert_allclose(found, algebraic_fit(x, y, 1), atol=2e-3)


@pytest.mark.parametrize("triplets", [4, 8])
def test_three_rings_are_found_in_the_order_of_their_hits(triplets: int) -> None:
    true = [(150.0, 24, -90.0, 20.0), (180.0, 20, 95.0, -30.0), (120.0, 16, 10.0, 60.0)]
    found = rings_of_places(np.concatenate([places_on(*ring) for ring in true]), f"triplets = {triplets}\n")
    assert len(found) == 3
    np.testing.assert_allclose(sorted(found), sorted([x, y, r] for r, _, x, y in true), atol=3.0)


@pytest.mark.parametrize(
    ("places", "off", "on"),
    [
        (places_on(150, 9), "min_hits = 10", "min_hits = 9"),
        (places_on(150, 20), "min_radius = 150.1", "min_radius = 149.9"),
        (places_on(150, 20), "max_radius = 149.9", "max_radius = 150.1"),
        (places_on(150, 20, wiggle=8), "max_mean_square = 15.5", "max_mean_square = 16.5"),
        (places_on(70, 20), "min_distance = 125.0", "min_distance = 110.0"),
        (
            np.append(places_on(150, 12), [[290.0, 200.0], [-290, 200], [0, -290]], 0),
            "max_skipped = 0",
            "max_skipped = 1",
        ),
    ],
)
def test_each_threshold_decides(places: np.ndarray, off: str, on: str) -> None:
    assert rings_of_places(places, off + "\n") == []
    (ring,) = rings_of_places(places, on + "\n")
    np.testing.assert_allclose(ring[:2], [0, 0], atol=1.0)


def test_the_windows_choose_the_hits_of_a_ring() -> None:
    # Four of 24 hits are 9 mm off: they belong to the ring with one window and not with the other.
    places = np.append(places_on(150, 20), places_on(159, 4), 0)
    ((_, _, wide),) = rings_of_places(places, "window = 10.0\nmax_mean_square = 60.0\n")
    ((_, _, narrow),) = rings_of_places(places, "window = 5.0\nmax_mean_square = 60.0\n")
    assert wide - narrow > 0.5


def test_a_window_that_is_wider_than_the_ring_has_the_points_at_its_centre() -> None:
    places = np.append(places_on(60, 20), [[0.0, 0.0]], 0)
    settings = "min_distance = 50.0\nmin_radius = 30.0\nmax_mean_square = 1000.0\n"
    ((_, _, without),) = rings_of_places(places, settings + "first_window = 50.0\nwindow = 50.0\n")
    ((_, _, with_centre),) = rings_of_places(places, settings + "first_window = 70.0\nwindow = 70.0\n")
    assert without == pytest.approx(60.0, abs=0.01)
    assert with_centre < 59.0


def test_two_rings_that_nearly_coincide_are_merged() -> None:
    places = np.append(places_on(150, 24), places_on(163, 14), 0)
    settings = "window = 4.0\nfirst_window = 4.0\nmin_hits = 6\n"
    assert len(rings_of_places(places, settings + "merge_distance = 5.0\n")) == 2
    assert len(rings_of_places(places, settings + "merge_distance = 20.0\n")) == 1


@pytest.mark.parametrize(
    "places",
    [
        np.full((40, 2), 33.0),
        np.column_stack([np.linspace(-250, 250, 40), np.linspace(-100, 100, 40)]),
        np.repeat(places_on(150, 3), 5, axis=0)[:6],
    ],
)
def test_equal_points_and_points_on_a_line_are_no_ring(places: np.ndarray) -> None:
    assert rings_of_places(places) == []


def test_an_event_with_more_rings_than_the_list_holds_has_a_flag() -> None:
    # Seven small rings; the list has six.
    centres = [(-200, 0), (0, -200), (200, 0), (0, 200), (0, 0), (-200, 200), (200, 200)]
    places = np.concatenate([places_on(60, 9, x, y) for x, y in centres])
    table = np.zeros((N_PMTS, 2), np.float32)
    table[: len(places)] = places
    hits = np.array([(i, 0) for i in range(len(places))], HIT)
    settings = "[sequence.rich_search_rings]\nmin_radius = 50.0\nmax_radius = 70.0\nmin_distance = 60.0\nwindow = 4.0\n"
    found = run_chain(
        mep_of_payloads([encode_hits(hits)]), settings, {"rich.pmt_position": table.reshape(-1).view(np.uint8)}
    )
    assert len(found.rings[0]) == 6
    assert found.flags == [["TOO_MANY_RINGS"]]


def test_two_rings_that_the_last_fit_makes_one_are_written_once() -> None:
    # The last fit moves two rings of this event from more than 20 to 16 mm from each other.
    hits = simulated(7, 128, Decay.TRACKS)[127]
    mep = mep_of_payloads([encode_hits(hits)])
    counts = []
    for merge_distance in (15.0, 20.0):
        (rings,) = run_chain(mep, f"[sequence.rich_search_rings]\nmerge_distance = {merge_distance}\n").rings
        places = np.column_stack([rings[name].astype(float) for name in ("x", "y", "radius")])
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(len(places), 1)]
        assert np.all(apart >= merge_distance)
        counts.append(len(rings))
    assert counts[1] == counts[0] - 1


def test_a_search_that_ends_by_the_number_of_its_passes_has_a_flag() -> None:
    hits = np.column_stack([np.linspace(-250, 250, 40), np.linspace(-100, 100, 40)])
    table = np.zeros((N_PMTS, 2), np.float32)
    table[: len(hits)] = hits
    mep = mep_of_payloads([encode_hits(np.array([(i, 0) for i in range(len(hits))], HIT))])
    constants = {"rich.pmt_position": table.reshape(-1).view(np.uint8)}
    for max_skipped, flags in ((62, []), (63, []), (64, ["TOO_MANY_RINGS"])):
        settings = f"[sequence.rich_search_rings]\nmax_skipped = {max_skipped}\n"
        assert run_chain(mep, settings, constants).flags == [flags]
