"""The triggers by brute force: matrices over all pairs of hits, without the kernels' order of work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.geometry.pmt_table import Detector
from hltnode.processing.km3net.hits.collections import CANDIDATE, MAX_CANDIDATES, MAX_HITS, MAX_WINDOWS, WINDOW
from hltnode.protocol.km3net.hit_banks import HIT

DEFAULTS = {
    constant.name: constant.value
    for algorithm in CHAIN.sequence
    if algorithm.name.startswith("km3net")
    for constant in algorithm.constants
}
N7, DN7, SC, FC, AFC, CHARGE, CAUSAL = (1 << bit for bit in range(7))
TESTED = 64


@dataclass
class Expected:
    """What a sub-slice must give; keys: the sorted hits as words."""

    keys: NDArray[np.uint64]
    own: int
    candidates: NDArray[np.void]
    windows: NDArray[np.void]
    flags: set[str] = field(default_factory=set)


def expected(
    detector: Detector,
    here: NDArray[np.void],
    behind: NDArray[np.void] | None,
    *,
    margin: bool = False,
    **changed: Any,
) -> Expected:
    """The candidates of HIT[hits] of a sub-slice and of the one behind it, None without one."""
    cut = DEFAULTS | changed
    length, window = int(cut["length"]), int(cut["time_window"])
    flags: set[str] = {"MARGIN"} if margin else set()
    parts = []
    for hits, end, shift in ((here, length, 0), (behind, window, length)):
        if hits is None:
            continue
        known, inside = hits["pmt"] < len(detector.pmts), hits["time"] < end
        if shift == 0:
            flags |= {"UNKNOWN_PMT"} if not known.all() else set()
            flags |= {"TIME_OUTSIDE"} if not inside.all() else set()
        used = hits[known & inside].copy()
        used["time"] += shift
        parts.append(used)
    hits = np.concatenate([np.zeros(0, HIT), *parts])
    if len(hits) > MAX_HITS:
        flags.add("TOO_MANY_HITS")
        hits = hits[:0]
    hits = hits[np.lexsort((hits["charge"], hits["pmt"], hits["time"]))]
    words = [hits[name].astype(np.uint64) << np.uint64(at) for name, at in (("time", 32), ("pmt", 16), ("charge", 0))]
    keys: NDArray[np.uint64] = words[0] | words[1] | words[2]
    own = int((hits["time"] < length).sum())
    if behind is None and not margin:
        flags.add("NOTHING_BEHIND")
    found = [] if margin else [one for i in range(own) if (one := _candidate(detector, hits, i, cut, flags))]
    listed = np.array(found[:MAX_CANDIDATES], CANDIDATE.dtype)
    if len(found) > MAX_CANDIDATES:
        flags.add("TRIGGERS_LEFT_OUT")
    return Expected(keys, own, listed, _windows(np.array(found, CANDIDATE.dtype), int(cut["padding"]), flags), flags)


def _candidate(
    detector: Detector, hits: NDArray[np.void], i: int, cut: dict[str, Any], flags: set[str]
) -> tuple[int, ...] | None:
    time = hits["time"].astype(np.int64)
    near = np.flatnonzero((np.arange(len(hits)) >= i) & (time - time[i] < cut["time_window"]))
    n = len(near)
    if n < cut["min_hits"]:
        return None
    if n > TESTED:
        flags.add("CROWDED")
    near = near[:TESTED]
    t, pmt, charge = time[near], hits["pmt"][near].astype(np.int64), hits["charge"][near].astype(np.int64)
    place = detector.pmts[pmt]
    line, floor, group = (place[name].astype(np.int64) for name in ("line", "floor", "group"))
    apart = np.abs(t[:, None] - t)
    same_line = line[:, None] == line
    same_floor = same_line & (floor[:, None] == floor) & (pmt[:, None] != pmt)
    bits = N7
    bits |= SC if (same_floor & (group[:, None] == group) & (apart < cut["simple_window"])).any() else 0
    bits |= FC if (same_floor & (apart < cut["floor_window"])).any() else 0
    next_floor = same_line & (np.abs(floor[:, None] - floor) == 1)
    bits |= AFC if (next_floor & (apart < cut["adjacent_window"])).any() else 0
    if not ((bits & SC and bits & AFC) or (bits & FC and bits & AFC)):
        return None
    pmts = len(np.unique(pmt))
    bits |= DN7 if pmts >= cut["min_pmts"] else 0
    bits |= CHARGE if (charge > cut["min_charge"]).any() else 0
    group_size = _group(place, pmt, t, cut)
    bits |= CAUSAL if group_size >= cut["min_causal"] else 0
    if bits & cut["required"] != cut["required"]:
        return None
    return int(time[i]), bits, n, pmts, group_size, int(charge.sum())


def _group(place: NDArray[np.void], pmt: NDArray[np.int64], t: NDArray[np.int64], cut: dict[str, Any]) -> int:
    position = np.column_stack([place[axis] for axis in "xyz"])
    members = [0]
    for k in range(1, len(pmt)):
        away = position[members] - position[k]
        square = away[:, 0] * away[:, 0] + away[:, 1] * away[:, 1] + away[:, 2] * away[:, 2]
        late = (t[k] - t[members]).astype(np.float32) - np.float32(cut["causal_slack"])
        pace = np.float32(cut["ns_per_metre"])
        connected = (late <= 0) | (late * late <= square * (pace * pace))
        if connected.all() and (pmt[members] != pmt[k]).all():
            members.append(k)
    return len(members)


def _windows(found: NDArray[np.void], padding: int, flags: set[str]) -> NDArray[np.void]:
    """The union of the intervals of all candidates, the 16th with all that follow."""
    groups: list[list[Any]] = []
    for one in found:
        if groups and int(one["time"]) - padding <= int(groups[-1][-1]["time"]) + padding:
            groups[-1].append(one)
        elif len(groups) == MAX_WINDOWS:
            flags.add("WINDOWS_JOINED")
            groups[-1].append(one)
        else:
            groups.append([one])
    rows = []
    for group in groups:
        of = np.array(group, CANDIDATE.dtype)
        most = [int(of[name].max()) for name in ("hits", "pmts", "causal_hits", "charge")]
        bits = int(np.bitwise_or.reduce(of["triggers"]))
        rows.append((int(of["time"][0]) - padding, int(of["time"][-1]) + padding, bits, len(of), *most))
    return np.array(rows, WINDOW.dtype)
