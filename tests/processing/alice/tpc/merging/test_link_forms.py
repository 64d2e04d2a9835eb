"""The searches for links and turns: form for the CPU and common kernel, on many segments of the same helices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.tpc.merging.collections import NO_END, SEGMENT_END
from hltnode.processing.alice.tpc.merging.links.find_turns import find_turns
from hltnode.processing.alice.tpc.merging.links.link_segments import link_segments
from hltnode.processing.alice.tpc.merging.segments.sort_segments import sort_segments
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.alice.merging_oracle import best_ends, best_turns, chain_numbers, limits_of
from tests.processing.framework.kernel_runner import on_cpu, run_algorithms

LIBRARY = KernelLibrary(CHAIN.kernels)
LIMITS = BatchLimits(events=1, input_bytes=1 << 16)
FOUND = ("tpc_tracks.best_end", "tpc_tracks.turn_score", "tpc_tracks.turn_chain")
HELD = 64
"""Ends that a form holds before it compares them: wide_ends::capacity."""


def segments(rng: np.random.Generator, n: int, n_helices: int, spread: float = 1.0) -> NDArray[np.void]:
    """Both ends, SEGMENT_END[n, 2], of segments of some helices; spread: differences in units of the errors."""
    ends = np.zeros((n, 2), SEGMENT_END.dtype)
    of = rng.integers(n_helices, size=n)
    radius = rng.uniform(40.0, 200.0, n_helices)[of]
    turn, slope = rng.uniform(0, 6.0, n_helices)[of], rng.uniform(-0.3, 0.3, n_helices)[of]
    begin, length = rng.uniform(0, 5.0, n), rng.uniform(0.1, 0.8, n)
    for side, angle in ((0, begin), (1, begin + length)):
        sign, end = (1.0 if side else -1.0), ends[:, side]
        for name, variance in (("dd", 0.01), ("zz", 0.01), ("ff", 1e-4), ("kk", 1e-8), ("ll", 1e-5)):
            end[name] = variance * rng.uniform(0.5, 2.0, n)
        off = {name: spread * rng.normal(0, np.sqrt(end[name])) for name in ("dd", "zz", "ff", "kk", "ll")}
        end["x"] = radius * (np.cos(turn + angle) - np.cos(turn)) + off["dd"]
        end["y"] = radius * (np.sin(turn + angle) - np.sin(turn)) + off["dd"]
        end["z"] = slope * radius * angle + off["zz"]
        end["along_x"] = -sign * np.sin(turn + angle + off["ff"])
        end["along_y"] = sign * np.cos(turn + angle + off["ff"])
        end["curvature"] = sign * (1.0 / radius + off["kk"])
        end["slope"] = sign * (slope + off["ll"])
    return ends


def helices() -> NDArray[np.void]:
    """Some without outer end."""
    ends = segments(np.random.default_rng(41), 150, 12)
    ends[::17, 1] = np.zeros((), SEGMENT_END.dtype)
    return ends


def alike(n: int) -> NDArray[np.void]:
    """So large errors that no slope or curvature excludes an end."""
    ends = segments(np.random.default_rng(n), n, 3)
    ends["ll"] = ends["kk"] = 10.0
    return ends


def strange() -> NDArray[np.void]:
    """Straight ways, and numbers that are negative, infinite, or none."""
    rng = np.random.default_rng(43)
    ends = segments(rng, 120, 4)
    ends["curvature"][:20] = 0.0
    values = np.array([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e30, -1e-30], np.float32)
    for name in SEGMENT_END.dtype.names or ():
        ends[name][rng.integers(120, size=6), rng.integers(2, size=6)] = rng.choice(values, 6)
    return ends


def event_of(ends: NDArray[np.void], bins: NDArray[np.uint16]) -> tuple[NDArray[np.void], dict[str, NDArray[Any]]]:
    """The columns of an event; each seventh segment is a clone of the one before it."""
    n = len(ends)
    longer, shorter = np.full(n, NO_END, np.uint32), np.full(n, NO_END, np.uint32)
    clones = np.arange(7, n, 7)
    longer[clones], shorter[clones - 1] = clones - 1, clones
    given = {"count": np.array([n], np.uint32), "inner": ends[:, 0], "outer": ends[:, 1], "bin": bins}
    given |= {"longer": longer, "shorter": shorter}
    return ends, {f"tpc_tracks.{name}": column for name, column in given.items()}


@cache
def events() -> dict[str, tuple[NDArray[np.void], dict[str, NDArray[Any]]]]:
    rng = np.random.default_rng(44)
    middle = 30 * 64 + 20

    def around(n: int, lines: int, columns: int) -> NDArray[np.uint16]:
        return (middle + 64 * rng.integers(-lines, lines + 1, n) + rng.integers(-columns, columns + 1, n)).astype("u2")

    found = {"none": event_of(alike(0), around(0, 0, 0))}
    found |= {f"{n} alike": event_of(alike(n), around(n, 0, 0)) for n in (1, 2, 3, HELD // 2, HELD // 2 + 1, 130)}
    found["helices"] = event_of(helices(), around(150, 1, 2))
    found["in bins"] = event_of(segments(rng, 200, 5), around(200, 4, 8))
    found["strange"] = event_of(strange(), around(120, 1, 2))
    return found


EVENTS = ("none", "1 alike", "2 alike", "3 alike", "32 alike", "33 alike", "130 alike", "helices", "in bins", "strange")


@cache
def found_in(event: str, target: str, common: bool) -> dict[str, NDArray[Any]]:
    _, given = events()[event]
    launch = on_cpu(target, kernels=CHAIN.kernels, common=common)
    return run_algorithms([sort_segments, link_segments, find_turns], given, 1, LIMITS, launch)


@pytest.mark.parametrize("event", EVENTS)
def test_form_and_common_kernel_find_the_same_links_and_turns(event: str) -> None:
    """Also in places that hold no segment."""
    for target in LIBRARY.targets:
        form, common = found_in(event, target, False), found_in(event, target, True)
        for name in FOUND:
            assert form[name].tobytes() == common[name].tobytes(), (name, target)


@pytest.mark.parametrize("event", [name for name in EVENTS if name != "strange"])
def test_links_and_turns_are_those_of_a_search_over_all_pairs(event: str) -> None:
    ends, given = events()[event]
    n, bins, longer = len(ends), given["tpc_tracks.bin"], given["tpc_tracks.longer"]
    clones = {int(of): i for i, of in enumerate(longer) if of != NO_END}
    left_out = longer != NO_END
    found = found_in(event, LIBRARY.targets[0], False)
    limits, c = limits_of(link_segments)
    best = best_ends(limits, ends, bins, left_out, c)
    assert found["tpc_tracks.best_end"][: 2 * n].tolist() == best.tolist()
    limits, c = limits_of(find_turns)
    score, turn = best_turns(limits, ends, bins, chain_numbers(best, clones), c)
    assert found["tpc_tracks.turn_score"][:n].tolist() == score.tolist()
    assert found["tpc_tracks.turn_chain"][:n].tolist() == turn.tolist()


def test_the_events_have_links_and_turns_and_fill_what_a_form_holds() -> None:
    assert set(EVENTS) == set(events())
    for event in ("130 alike", "helices", "in bins", "strange"):
        found = found_in(event, LIBRARY.targets[0], True)
        n = len(events()[event][0])
        assert (found["tpc_tracks.best_end"][: 2 * n] != NO_END).sum() > n // 4, event
        assert (found["tpc_tracks.turn_chain"][:n] != NO_END).any(), event
    # An end has 62, 64 or 258 others to compare with: the memory of a form is not full, full once, and several times.
    assert [2 * (len(events()[event][0]) - 1) for event in ("32 alike", "33 alike", "130 alike")] == [62, HELD, 258]


def test_an_end_without_direction_differs_in_slope_from_all_others() -> None:
    ends, _ = events()["helices"]
    found = found_in("helices", LIBRARY.targets[0], True)
    order = found["tpc_tracks.sorted"][: len(ends)]
    by_bins = ends[order].reshape(-1)
    without = (by_bins["along_x"] == 0) & (by_bins["along_y"] == 0)
    slope = found["tpc_tracks.near_slope"][: 2 * len(ends)]
    assert without.sum() == 9
    assert (slope[without] == np.float32(1e18)).all()
    assert slope[~without].tolist() == by_bins["slope"][~without].tolist()
    for column, name in (
        ("near_curvature", "curvature"),
        ("near_slope_variance", "ll"),
        ("near_curvature_variance", "kk"),
    ):
        assert found[f"tpc_tracks.{column}"][: 2 * len(ends)].tolist() == by_bins[name].tolist()


def test_the_library_has_both_forms() -> None:
    for target in LIBRARY.targets:
        for each in (link_segments, find_turns):
            assert LIBRARY.address(target, each.kernel) != LIBRARY.address(target, each.kernel, common=True)
