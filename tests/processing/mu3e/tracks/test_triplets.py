"""Triplets against brute force over all combinations, their fit against the exact chi2, and each cut at its edge."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.mu3e.detector_constants import MEV_PER_MM
from hltnode.processing.mu3e.tracks.collections import MAX_COMBINATIONS, MAX_TRACKS, MAX_TRIPLETS
from tests.processing.mu3e.made_particles import one_particle
from tests.processing.mu3e.pixel_events import NO_HITS, Found, crowded, hits_of, mep_of_hits, run_chain, simulated
from tests.processing.mu3e.track_oracle import CUTS, EventHits, combinations, fitted, selected, smallest_chi2, terms_of

SELECTION = ("max_xy01", "max_z01", "max_xy12", "max_z12", "max_z_residual")


def constants(algorithm: str, **values: float) -> str:
    """A table of a configuration."""
    return f"[sequence.{algorithm}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())


def triplets_of(found: Found, e: int) -> list[tuple[int, int, int]]:
    """The fitted triplets of a sub-slice."""
    return [(int(word) >> 32, int(word) >> 16 & 0xFFFF, int(word) & 0xFFFF) for word in found.fitted[e]]


NO_FIT = constants("mu3e_fit_triplets", max_chi2=1e30, min_momentum=1e-3, max_momentum=1e9)


def test_the_selection_finds_all_triplets_of_brute_force() -> None:
    made = simulated(41, 12, muon_rate=4e7)
    found = run_chain(mep_of_hits(hits_of(made)), NO_FIT)
    n = 0
    for e in range(1, 11):
        expected = selected(EventHits.of(found.hits[e], found.positions[e]))
        triplets = triplets_of(found, e)
        # Hits on a line have no circle.
        assert set(triplets) <= expected
        assert found.n_triplets[e] == len(expected)
        assert len(triplets) >= len(expected) - 1
        own = triplets[: found.own_tracks[e]]
        assert own == sorted(own)
        assert triplets[found.own_tracks[e] :] == sorted(triplets[found.own_tracks[e] :])
        n += len(expected)
    assert n > 200


def test_the_fit_keeps_the_triplets_of_the_closed_form_in_float64() -> None:
    found = run_chain(mep_of_hits(hits_of(simulated(42, 8))), constants("mu3e_extend_tracks", energy_loss=0.0))
    n = 0
    for e in range(1, 7):
        hits = EventHits.of(found.hits[e], found.positions[e])
        kept = set(triplets_of(found, e))
        for triplet in selected(hits):
            radius, chi2 = fitted([terms_of(*hits.place[list(triplet)])])
            limits = (chi2 - CUTS["max_chi2"], CUTS["min_momentum"] - radius * MEV_PER_MM,
                      radius * MEV_PER_MM - CUTS["max_momentum"])  # fmt: skip
            if min(map(abs, limits)) > 1e-2:
                assert (triplet in kept) == (max(limits) < 0.0)
                n += 1
    assert n > 500


def test_the_closed_form_has_the_smallest_exact_chi2() -> None:
    found = run_chain(mep_of_hits(hits_of(simulated(43, 6))))
    differences, gains = [], []
    for e in range(1, 5):
        hits = EventHits.of(found.hits[e], found.positions[e])
        for triplet in triplets_of(found, e):
            a, b, c = hits.place[list(triplet)]
            radius, chi2 = fitted([terms_of(a, b, c)])
            if chi2 < 3.0 and np.hypot(*(c - a)[:2]) < 1.2 * radius:
                exact, smallest = smallest_chi2(a, b, c, radius)
                differences.append(radius / exact - 1.0)
                gains.append(chi2 - smallest)
    assert len(differences) > 60
    # The error of the radius from scattering is about 5 %.
    assert np.median(np.abs(differences)) < 1e-3
    assert np.quantile(np.abs(differences), 0.95) < 0.02
    assert np.quantile(np.abs(gains), 0.95) < 0.1


def test_momentum_charge_and_direction_of_a_particle_without_material() -> None:
    for charge in (1, -1):
        for momentum in ((20.0, 3.0, 8.0), (-12.0, 30.0, -20.0), (5.0, -45.0, 10.0)):
            hits, truth = one_particle(momentum, charge)
            quiet = constants("mu3e_extend_tracks", energy_loss=0.0)
            found = run_chain(mep_of_hits([NO_HITS, hits, NO_HITS]), quiet)
            tracks = found.tracks[1]
            of = tracks[np.argmax(tracks["hits"])]
            assert of["charge"] == charge
            assert of["hits"] >= 4
            assert of["momentum"] == pytest.approx(truth.size, rel=0.02)
            direction = np.array([of["px"], of["py"], of["pz"]]) / of["momentum"]
            assert np.linalg.norm(direction) == pytest.approx(1.0, abs=1e-3)
            assert direction @ truth.direction_at_first_hit == pytest.approx(1.0, abs=2e-4)


def measures(hits: EventHits, triplet: tuple[int, int, int]) -> dict[str, float]:
    """The values of a triplet that the selection cuts on."""
    a, b, c = hits.place[list(triplet)]
    first, second = b - a, c - b
    lengths = np.hypot(*first[:2]), np.hypot(*second[:2])
    residual = second[2] - first[2] * lengths[1] / lengths[0]
    return {
        "max_xy01": float(lengths[0]),
        "max_z01": abs(float(first[2])),
        "max_xy12": float(lengths[1]),
        "max_z12": abs(float(second[2])),
        "max_z_residual": abs(float(residual)),
    }


@pytest.mark.parametrize("pz", [22.0, -22.0])
@pytest.mark.parametrize("name", SELECTION)
def test_each_cut_of_the_selection_decides_on_its_own(name: str, pz: float) -> None:
    hits, _ = one_particle((14.0, 3.0, pz), 1, (5.0, -3.0, 0.0), layers=(0, 1, 2))
    mep = mep_of_hits([NO_HITS, hits, NO_HITS])
    found = run_chain(mep, NO_FIT)
    (triplet,) = triplets_of(found, 1)
    value = measures(EventHits.of(found.hits[1], found.positions[1]), triplet)[name]
    assert value > 0.01
    for factor, n in ((0.999, 0), (1.001, 1)):
        changed = run_chain(mep, NO_FIT + constants("mu3e_select_triplets", **{name: factor * value}))
        assert changed.n_triplets[1] == n, name


@pytest.mark.parametrize("shifted", [0, 1, 2])
def test_hits_of_a_triplet_lie_within_the_time_window(shifted: int) -> None:
    hits, _ = one_particle((14.0, 3.0, 9.0), 1, layers=(0, 1, 2))
    for apart, n in ((19, 1), (20, 0), (-19, 1), (-20, 0)):
        moved = hits.copy()
        moved["time"] = 100
        moved["time"][shifted] = 100 + apart
        assert run_chain(mep_of_hits([NO_HITS, moved, NO_HITS]), NO_FIT).n_triplets[1] == n


def test_each_limit_of_the_fit_decides_on_its_own() -> None:
    (made,) = hits_of(simulated(45, 1, muon_rate=4e7))
    mep = mep_of_hits([NO_HITS, made, NO_HITS])
    found = run_chain(mep, NO_FIT)
    hits = EventHits.of(found.hits[1], found.positions[1])
    triplets = triplets_of(found, 1)
    fits = [fitted([terms_of(*hits.place[list(triplet)])]) for triplet in triplets]
    momenta, chi2 = np.array([radius for radius, _ in fits]) * MEV_PER_MM, np.array([value for _, value in fits])
    wide = {"max_chi2": 1e30, "min_momentum": 1e-3, "max_momentum": 1e9}
    for name, values, sign in (("max_chi2", chi2, 1), ("min_momentum", momenta, -1), ("max_momentum", momenta, 1)):
        middle = np.sort(values)[len(values) // 2 : len(values) // 2 + 2].mean()
        kept = triplets_of(run_chain(mep, constants("mu3e_fit_triplets", **(wide | {name: middle}))), 1)
        expected = [t for t, value in zip(triplets, values, strict=True) if sign * value <= sign * middle]
        assert kept == expected, name
        assert 0 < len(kept) < len(triplets)


def test_more_triplets_and_tracks_than_fit_are_flagged_and_none_is_used() -> None:
    (made,) = hits_of(simulated(46, 1, muon_rate=1.5e8))
    wide = constants("mu3e_select_triplets", max_xy01=90.0, max_z01=400.0, max_xy12=200.0, max_z12=800.0,
                     max_z_residual=1e4)  # fmt: skip
    for sequence in (None, "one_kernel"):
        name = "mu3e_find_triplets" if sequence else "mu3e_select_triplets"
        cuts = wide.replace("mu3e_select_triplets", name)
        found = run_chain(mep_of_hits([NO_HITS, made, NO_HITS]), cuts, sequence)
        assert "TOO_MANY_TRIPLETS" in found.flags[1]
        assert "TOO_MANY_TRACKS" not in found.flags[1]
        assert found.n_triplets[1] == len(found.tracks[1]) == 0
    few = made[::3]
    fit = NO_FIT.replace("mu3e_fit_triplets", "mu3e_find_triplets").split("\n", 1)[1]
    for sequence, cuts in ((None, wide + NO_FIT), ("one_kernel", wide.replace("select", "find") + fit)):
        found = run_chain(mep_of_hits([NO_HITS, few, NO_HITS]), cuts, sequence)
        assert MAX_TRACKS < found.n_triplets[1] <= MAX_TRIPLETS
        assert "TOO_MANY_TRACKS" in found.flags[1]
        assert len(found.tracks[1]) == found.own_tracks[1] == 0


@pytest.mark.parametrize("sequence", [None, "one_kernel"])
def test_more_combinations_in_time_than_are_allowed_are_flagged(sequence: str | None) -> None:
    for more in (0, 1):
        found = run_chain(mep_of_hits([NO_HITS, crowded(more), NO_HITS]), sequence=sequence)
        assert combinations(EventHits.of(found.hits[1], found.positions[1])) == MAX_COMBINATIONS + (more << 14)
        assert found.flags[1] == ({"TOO_MANY_TRIPLETS"} if more else set())
        assert found.n_triplets[1] == found.own_triplets[1] == found.own_tracks[1] == 0


def test_a_stream_of_the_highest_rate_is_far_from_the_bound_of_combinations() -> None:
    found = run_chain(mep_of_hits(hits_of(simulated(47, 3, muon_rate=1e8))))
    n = combinations(EventHits.of(found.hits[1], found.positions[1]))
    assert 1000 < n < MAX_COMBINATIONS / 40
    assert "TOO_MANY_TRIPLETS" not in found.flags[1]
