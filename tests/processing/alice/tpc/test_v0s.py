"""V0 candidates against all pairs of circles in double precision; each constant and each bound decides alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.slices import slice_angle
from hltnode.processing.alice.tpc.candidates.collections import MAX_PARTNERS, V0, V0_BINS
from hltnode.processing.alice.tpc.candidates.count_v0s import count_v0s
from hltnode.processing.alice.tpc.candidates.describe_v0_tracks import describe_v0_tracks
from hltnode.processing.alice.tpc.candidates.find_v0s import find_v0s
from hltnode.processing.alice.tpc.candidates.sort_v0_tracks import sort_v0_tracks
from hltnode.processing.alice.tpc.flags import CROWDED_V0S, MANY_V0S
from hltnode.processing.alice.tpc.merging.collections import MERGED_TRACK
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice import v0_oracle
from tests.processing.alice.toy_events import GEOMETRY, UNIT
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size

LIMITS = BatchLimits(events=3, input_bytes=1 << 20)
ALGORITHMS = (describe_v0_tracks, sort_v0_tracks, count_v0s, find_v0s)
CONSTANTS = {each.name: float(each.value) for algorithm in ALGORITHMS for each in algorithm.constants}
PION, PROTON, KAON, LAMBDA = 0.13957039, 0.93827209, 0.497611, 1.115683
WORST = {"x": 0.02, "y": 0.02, "z": 0.02, "pt": 1e-3, "slope": 1e-4, "dca": 0.02, "pointing": 1e-4}
FEW = 64
LIBRARY = KernelLibrary(CHAIN.kernels)


def tracks_at_rows(vertex: Any, momentum: Any, charge: Any, radius: float = 86.0) -> NDArray[np.void]:
    """Tracks f64[n, 3] of particles from places f64[n, 3] where they leave a cylinder, in the frame of their slice."""
    vertex, momentum = np.atleast_2d(vertex).astype(float), np.atleast_2d(momentum).astype(float)
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    k = UNIT * np.asarray(charge) / pt
    start, along = vertex[:, 0] + 1j * vertex[:, 1], (momentum[:, 0] + 1j * momentum[:, 1]) / pt
    way = np.zeros(len(pt))
    for _ in range(60):  # Newton's method for the radius
        place = start + along * (np.exp(1j * k * way) - 1) / (1j * k)
        slope = (np.conj(place) * along * np.exp(1j * k * way)).real / np.abs(place)
        way += (radius - np.abs(place)) / np.maximum(slope, 0.2)
    place = start + along * (np.exp(1j * k * way) - 1) / (1j * k)
    direction = along * np.exp(1j * k * way)
    tracks = np.zeros(len(pt), MERGED_TRACK.dtype)
    tracks["z"] = vertex[:, 2] + momentum[:, 2] / pt * way
    tracks["slice"] = np.floor(np.mod(np.angle(place), 2 * np.pi) / np.radians(20)).astype(int) % 18
    turn = np.exp(-1j * slice_angle(tracks["slice"].astype(int)))
    tracks["x"], tracks["y"] = (place * turn).real, (place * turn).imag
    tracks["sin_phi"], tracks["tan_lambda"] = (direction * turn).imag, momentum[:, 2] / pt
    # Particles that turn back before give no track.
    tracks["q_pt"], tracks["n_clusters"] = (
        np.asarray(charge) / pt,
        np.where(np.abs(np.abs(place) - radius) < 0.01, 100, 0),
    )
    return tracks


def decays(rng: np.random.Generator, n: int, kind: str, radius: float | None = None) -> NDArray[np.void]:
    """Both tracks of n decays, positive ones first."""
    m1, m2, mass = {"K0S": (PION, PION, KAON), "Lambda": (PROTON, PION, LAMBDA)}[kind]
    pt, phi, slope = rng.uniform(0.8, 4, n), rng.uniform(-np.pi, np.pi, n), rng.uniform(-0.8, 0.8, n)
    mother = np.column_stack([pt * np.cos(phi), pt * np.sin(phi), pt * slope])
    r = rng.uniform(3, 50, n) if radius is None else np.full(n, radius)
    vertex = np.column_stack([r * np.cos(phi), r * np.sin(phi), r * slope + rng.normal(0, 5, n)])
    unit = rng.standard_normal((n, 3))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    at_rest = unit * np.sqrt((mass**2 - (m1 + m2) ** 2) * (mass**2 - (m1 - m2) ** 2)) / (2 * mass)
    energy = np.sqrt((mother**2).sum(1) + mass**2)

    def boosted(p: NDArray[Any], m: float) -> NDArray[Any]:
        e = np.sqrt((p**2).sum(1) + m**2)
        along = (p * mother).sum(1)
        moved: NDArray[Any] = p + (along / (mass * (energy + mass)) + e / mass)[:, None] * mother
        return moved

    return np.concatenate(
        [
            tracks_at_rows(vertex, boosted(at_rest, m1), np.ones(n)),
            tracks_at_rows(vertex, boosted(-at_rest, m2), -np.ones(n)),
        ]
    )


def run(
    *events: NDArray[np.void], launch: Launch | None = None, clusters: int = 0, **constants: float
) -> list[tuple[NDArray[np.void], int]]:
    """Candidates and flags of each event; clusters: of each event, beyond 16 for each track."""
    algorithms = [
        replace(
            algorithm,
            constants=tuple(replace(each, value=constants.get(each.name, each.value)) for each in algorithm.constants),
        )
        for algorithm in ALGORITHMS
    ]
    begins = np.cumsum([0, *(len(tracks) * 16 + clusters for tracks in events)]).astype(np.uint32)
    places = [int(begin) // 16 + 36 * i for i, begin in enumerate(begins[:-1])]
    tracks = np.zeros(places[-1] + len(events[-1]), MERGED_TRACK.dtype)
    for place, own in zip(places, events, strict=True):
        tracks[place : place + len(own)] = own
    given = {
        "tpc.geometry": GEOMETRY.as_floats(),
        "events.first_cluster": begins,
        "tpc_merged_tracks.count": np.array([len(own) for own in events], np.uint32),
        "tpc_merged_tracks.track": tracks,
    }
    found = run_algorithms(algorithms, given, len(events), LIMITS, launch or on_cpu(kernels=CHAIN.kernels))
    v0s = found["tpc_v0s.v0"].view(V0.dtype)
    firsts = [int(begin) // 128 + 64 * i for i, begin in enumerate(begins[:-1])]
    return [
        (v0s[first : first + int(found["tpc_v0s.count"][i])], int(found["events.flags"][i]))
        for i, first in enumerate(firsts)
    ]


def one(tracks: NDArray[np.void], **constants: Any) -> int:
    ((found, flags),) = run(tracks, **constants)
    assert flags == 0
    return len(found)


def assert_equal(found: NDArray[np.void], tracks: NDArray[np.void], **constants: float) -> int:
    """Every candidate is one of the oracle; only one at a limit may be missing or additional. Returns their number."""
    limits = {**CONSTANTS, **constants}
    wide = {(each.positive, each.negative): each for each in v0_oracle.find_v0s(tracks, GEOMETRY, limits, 3e-4)}
    narrow = v0_oracle.find_v0s(tracks, GEOMETRY, limits, -3e-4)
    pairs = list(zip(found["positive"].tolist(), found["negative"].tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert set(pairs) <= wide.keys()
    assert {(each.positive, each.negative) for each in narrow} <= set(pairs)
    for record, pair in zip(found, pairs, strict=True):
        expected = wide[pair]
        for name, worst in WORST.items():
            if name != "slope":
                assert record[name] == pytest.approx(getattr(expected, name), abs=worst), name
        for name, mass in zip(("mass_k0s", "mass_lambda", "mass_antilambda"), expected.masses, strict=True):
            assert record[name] == pytest.approx(mass, abs=2e-4)
    return len(narrow)


def test_candidates_equal_a_search_over_all_pairs() -> None:
    rng = np.random.default_rng(7)
    several = [decays(rng, 25, "K0S"), decays(rng, 25, "Lambda")]
    tracks = rng.permutation(np.concatenate(several))
    wide: dict[str, Any] = {"kaon_window": 0.3, "max_dca": 8.0, "min_pointing": 0.9, "min_significance": 0.5}
    cases: tuple[dict[str, Any], ...] = ({}, wide)
    for constants in cases:
        first, second = run(tracks[:30], tracks, clusters=100_000, **constants)
        assert first[1] == second[1] == 0
        assert_equal(first[0], tracks[:30], **constants)
        assert assert_equal(second[0], tracks, **constants) > (25 if constants == {} else 60)


@pytest.mark.parametrize(("kind", "mass", "value"), [("K0S", "mass_k0s", KAON), ("Lambda", "mass_lambda", LAMBDA)])
def test_decays_have_their_mass_place_and_momentum(kind: str, mass: str, value: float) -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        tracks = decays(rng, 1, kind, radius=20.0)
        ((v0s, _),) = run(tracks)
        found += len(v0s)
        for v0 in v0s:
            assert v0[mass] == pytest.approx(value, abs=1e-3)
            assert np.hypot(v0["x"], v0["y"]) == pytest.approx(20.0, abs=0.1)
            assert v0["pointing"] > 0.99999
            assert v0["dca"] < 0.05
    assert found >= 10


def test_the_other_charge_gives_an_antilambda() -> None:
    rng = np.random.default_rng(2)
    tracks = decays(rng, 1, "Lambda", radius=20.0)
    ((found, _),) = run(tracks, min_significance=0.0, min_larger_significance=0.0)
    mirrored = tracks.copy()
    # A mirror at the middle of slice 0 turns charges round.
    mirrored["slice"] = (18 - mirrored["slice"].astype(int)) % 18
    for name in ("y", "sin_phi", "q_pt"):
        mirrored[name] = -mirrored[name]
    ((other, _),) = run(mirrored, min_significance=0.0, min_larger_significance=0.0)
    assert len(found) == len(other) == 1
    assert (found["positive"][0], other["positive"][0]) == (0, 1)
    assert other["mass_antilambda"][0] == pytest.approx(LAMBDA, abs=1e-3)
    assert found["mass_lambda"][0] == pytest.approx(LAMBDA, abs=1e-3)


def test_candidates_depend_neither_on_threads_nor_on_the_order_of_tracks() -> None:
    rng = np.random.default_rng(8)
    tracks = np.concatenate([decays(rng, 60, "K0S"), decays(rng, 60, "Lambda")])
    wide: dict[str, Any] = {"kaon_window": 0.3, "max_dca": 8.0, "min_pointing": 0.9}
    expected = run(tracks, tracks[:50], clusters=50_000, **wide)
    assert len(expected[0][0]) > 100
    for block in (1, 32, 256):
        launch = with_block_size(block, backward=block == 32, kernels=CHAIN.kernels)
        for (v0s, flags), (others, same) in zip(
            run(tracks, tracks[:50], launch=launch, clusters=50_000, **wide), expected, strict=True
        ):
            assert v0s.tobytes() == others.tobytes()
            assert flags == same
    order = rng.permutation(len(tracks))
    ((v0s, _),) = run(tracks[order], clusters=50_000, **wide)
    values = [name for name in V0.dtype.names or () if name not in ("positive", "negative")]
    for name in values:
        assert np.sort(v0s[name]).tolist() == np.sort(expected[0][0][name]).tolist()
    pairs = {(int(order[a]), int(order[b])) for a, b in zip(v0s["positive"], v0s["negative"], strict=True)}
    assert pairs == set(zip(*(expected[0][0][name].tolist() for name in ("positive", "negative")), strict=True))


def kaon(angle: float = 1.2, radius: float = 20.0, pt: float = 2.0, turned: float = 0.0) -> NDArray[np.void]:
    """A decay in the transverse plane in slice 0. angle: of the pions to the way at rest; turned: of the momentum to
    the way from the beam line."""
    size = np.sqrt(KAON**2 / 4 - PION**2)
    along, across = size * np.cos(angle), size * np.sin(angle)
    energy = np.hypot(pt, KAON)
    middle = np.exp(1j * np.radians(10.0))
    momenta = []
    for sign in (1, -1):
        p = pt / KAON * KAON / 2 + sign * along * energy / KAON + 1j * sign * across
        momenta.append(p * middle * np.exp(1j * turned))
    vertex = radius * middle
    return np.concatenate(
        [
            tracks_at_rows([vertex.real, vertex.imag, 10.0], [p.real, p.imag, 0.2 * abs(p)], np.array([charge]))
            for p, charge in zip(momenta, (1.0, -1.0), strict=True)
        ]
    )


def test_every_limit_of_a_candidate_decides_alone() -> None:
    tracks = kaon()
    circles = v0_oracle.circles_of(tracks, GEOMETRY)
    _, significance = v0_oracle.displaced(tracks, circles, CONSTANTS, 0.0)
    (pair,) = v0_oracle.find_v0s(tracks, GEOMETRY, {**CONSTANTS, "kaon_window": 1.0})
    low, high = sorted(significance.tolist())
    assert low > CONSTANTS["min_significance"]
    assert high > CONSTANTS["min_larger_significance"]
    off = abs(pair.masses[0] - KAON)
    shifted = tracks.copy()
    shifted["z"][0] += 0.5
    ((found, _),) = run(shifted, kaon_window=0.1)
    dca = float(found["dca"][0])
    assert dca == pytest.approx(0.5, abs=0.02)
    bent = kaon(turned=0.1)
    for given, constants, inside, outside in (
        (tracks, "min_significance", low - 0.01, low + 0.01),
        (tracks, "min_larger_significance", high - 0.01, high + 0.01),
        (tracks, "min_clusters", 100, 101),
        (tracks, "min_radius", 19.9, 20.1),
        (tracks, "max_radius", 20.1, 19.9),
        (tracks, "max_ahead", -64.0, -68.0),
        (tracks, "kaon_window", off + 2e-3, -1.0),
        (shifted, "max_dca", dca + 0.01, dca - 0.01),
        (bent, "min_pointing", np.cos(0.1) - 1e-3, np.cos(0.1) + 1e-3),
    ):
        base = {"kaon_window": 0.1, "min_pointing": 0.9, "lambda_window": 0.0}
        assert one(given, **{**base, constants: inside}) == 1, constants
        assert one(given, **{**base, constants: outside}) == 0, constants


def test_each_window_of_mass_decides_alone() -> None:
    rng = np.random.default_rng(5)
    tracks = decays(rng, 1, "Lambda", radius=20.0)
    open_to = {"min_significance": 0.0, "min_larger_significance": 0.0}
    assert one(tracks, kaon_window=-1.0, lambda_window=2e-3, **open_to) == 1
    assert one(tracks, kaon_window=-1.0, lambda_window=-1.0, **open_to) == 0
    assert one(kaon(), kaon_window=2e-3, lambda_window=-1.0) == 1


def test_tracks_of_the_beam_line_equal_charges_and_straight_tracks_give_none() -> None:
    tracks = kaon()
    assert one(tracks) == 1
    for charge in (1, -1):
        alike = tracks.copy()
        alike["q_pt"] = charge * np.abs(alike["q_pt"])
        assert one(alike, max_dca=1e3, min_pointing=-1.0, kaon_window=1e3) == 0
    straight = tracks.copy()
    straight["q_pt"] /= 1000.0
    assert one(straight, max_dca=1e3, min_pointing=-1.0, kaon_window=1e3, min_significance=0.0) == 0
    primaries = tracks_at_rows(np.full((2, 3), 1e-3), [[1.0, 0.1, 0.2], [1.0, 0.3, 0.2]], np.array([1.0, -1.0]))
    wide = {"max_dca": 1e3, "min_pointing": -1.0, "kaon_window": 1e3, "min_radius": 0.0}
    assert one(primaries, **wide, min_larger_significance=0.0) == 0


def test_a_steep_track_across_the_radius_is_left_out() -> None:
    """A track across the radius flies 61 cm from 60 cm to 86 cm, not 26. The rule on z allows 5 cm more for each."""
    open_limits = {"min_pointing": -1.0, "kaon_window": 1e3}
    middle = np.exp(1j * np.radians(10.0))
    vertex = [60.0 * middle.real, 60.0 * middle.imag, 10.0]
    for slope, expected in ((0.03, 1), (0.06, 0)):
        across, outwards = -3.0j * middle, 3.0 * middle * np.exp(-0.2j)
        tracks = np.concatenate(
            [
                tracks_at_rows(vertex, [p.real, p.imag, slope * abs(p)], np.array([charge]))
                for p, charge in ((across, 1.0), (outwards, -1.0))
            ]
        )
        circles = v0_oracle.circles_of(tracks, GEOMETRY)
        pairs = v0_oracle.pairs_of(circles, np.array([0]), np.array([1]))
        assert min(float(each.dz[0]) for each in pairs) < 0.1
        assert one(tracks, **open_limits) == expected, slope


def test_partners_are_searched_in_the_bins_around_a_track() -> None:
    """The limits are open: whether a pair is formed shows where partners are searched."""
    wide = {"max_dca": 1e4, "min_pointing": -1.0, "kaon_window": 1e3, "max_ahead": 1e4, "max_radius": 1e4}
    wide |= {"min_significance": 0.0, "min_larger_significance": 0.0, "min_radius": 0.0}
    tracks = kaon()
    step = 2 * np.pi / v0_oracle.PHI_BINS
    for bins, expected in ((5, 1), (-5, 1), (6, 0), (-6, 0)):
        moved = tracks.copy()
        moved["z"] = [5.0, 5.0 + 10.0 * bins]
        assert one(moved, **wide) == expected, bins
    for z, other, expected in ((-249.0, -199.0, 1), (-249.0, -189.0, 0), (249.0, 199.0, 1), (400.0, 201.0, 1)):
        moved = tracks.copy()
        moved["z"] = [z, other]
        assert one(moved, **wide) == expected, (z, other)
    for start in (0.5, 30.5, 63.5):  # the azimuth is periodic
        for bins, expected in ((10, 1), (-10, 1), (11, 0), (-11, 0)):
            phi = -np.pi + step * np.array([start, start + bins])
            momenta = np.column_stack([np.cos(phi), np.sin(phi), np.full(2, 0.1)]) * 3.0
            pair = tracks_at_rows(np.full((2, 3), 0.01), momenta, np.array([1.0, -1.0]))
            place = v0_oracle.circles_of(pair, GEOMETRY).place
            angle = np.angle(place) - phi
            momenta = np.column_stack([np.cos(phi - angle), np.sin(phi - angle), np.full(2, 0.1)]) * 3.0
            pair = tracks_at_rows(np.full((2, 3), 0.01), momenta, np.array([1.0, -1.0]))
            assert one(pair, **wide) == expected, (start, bins)


def test_a_track_with_too_many_partners_has_no_candidate_and_is_noted() -> None:
    positive, negative = np.split(kaon(), 2)
    for n, many in ((MAX_PARTNERS, False), (MAX_PARTNERS + 1, True)):
        others = np.repeat(negative, n)
        others["z"][:-1] += 30.0  # too far away, but in near bins
        ((found, flags),) = run(np.concatenate([others, positive]))
        assert flags == (CROWDED_V0S.mask if many else 0)
        assert found["negative"].tolist() == ([] if many else [n - 1])


def test_candidates_beyond_the_room_of_an_event_are_noted_and_those_of_its_first_tracks_kept() -> None:
    positive, negative = np.split(kaon(), 2)
    for n_positive, n_negative, kept, many in (
        (6, 11, 66, False),
        (5, 14, 4 * 14, True),
        (1, 73, 73, False),
        (1, 75, 0, True),
    ):
        tracks = np.concatenate([np.repeat(positive, n_positive), np.repeat(negative, n_negative)])
        room = 64 + len(tracks) * 16 // 128
        assert (n_positive * n_negative > room) == many
        (found, flags), (other, no_flags) = run(tracks, kaon())
        assert flags == (MANY_V0S.mask if many else 0)
        assert len(found) == kept
        expected = [(i, n_positive + j) for i in range(n_positive) for j in range(n_negative)][:kept]
        assert list(zip(found["positive"].tolist(), found["negative"].tolist(), strict=True)) == expected
        assert (len(other), no_flags) == (1, 0)


def in_both_forms(*events: NDArray[np.void], clusters: int = 0, **constants: float) -> list[NDArray[np.void]]:
    """The candidates of each event, which are the same bit by bit for forms and common kernels."""
    for target in LIBRARY.targets:
        form, common = (
            run(*events, launch=on_cpu(target, kernels=CHAIN.kernels, common=each), clusters=clusters, **constants)
            for each in (False, True)
        )
        for (found, flags), (expected, expected_flags) in zip(form, common, strict=True):
            assert found.tobytes() == expected.tobytes(), target
            assert flags == expected_flags
    return [found for found, _ in common]


@pytest.mark.parametrize(
    "constants",
    [
        {},
        {"kaon_window": 0.3, "max_dca": 8.0, "min_pointing": -1.0, "min_significance": 0.5},
        {"kaon_window": 10.0, "max_dca": 200.0, "min_pointing": -1.0, "min_significance": 0.0, "max_ahead": 500.0},
        {"min_larger_significance": 10.0, "min_radius": 20.0, "max_radius": 40.0, "max_ahead": -20.0},
    ],
)
def test_form_and_common_kernel_find_the_same_candidates(constants: dict[str, float]) -> None:
    """In three events: one of few partners, one of many vectors of them, and one with numbers that are none."""
    rng = np.random.default_rng(11)
    tracks = rng.permutation(np.concatenate([decays(rng, 150, "K0S"), decays(rng, 150, "Lambda")]))
    broken = tracks[:200].copy()
    for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt"):
        broken[name][rng.integers(200, size=6)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e30, -1e-30], 6)
    few, many, _ = in_both_forms(tracks[:10], tracks, broken, clusters=30_000, **constants)
    assert len(few) < len(many)
    assert len(many) > (5 if "min_radius" in constants else 100)


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (count_v0s, find_v0s):
            assert LIBRARY.address(target, each.kernel) != LIBRARY.address(target, each.kernel, common=True)


def test_broken_numbers_stay_in_bounds() -> None:
    for name in ("x", "y", "z", "sin_phi", "tan_lambda", "q_pt"):
        for value in (np.nan, np.inf, 1e30, 0.0):
            tracks = np.concatenate([kaon(), kaon(0.7)])
            tracks[name][0] = value
            ((found, flags),) = run(tracks)
            assert flags == 0
            assert len(found) <= 4


def test_an_event_without_tracks_has_no_candidates() -> None:
    (first, second, third) = run(kaon()[:0], kaon(), kaon()[:0])
    assert [len(each[0]) for each in (first, second, third)] == [0, 1, 0]
    assert V0_BINS < 0x8000
