"""A node of the chain `mu3e` over TCP: its windows and their hits are those of the stream in one slice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.detector_constants import MARGIN_BEFORE, MARGIN_BEHIND, SUB_SLICE_NS
from hltnode.processing.mu3e.offline.simulation.sample import (
    PixelOptions,
    PixelSample,
    sub_slice_banks,
)
from hltnode.processing.mu3e.tracks.collections import NO_PIXEL
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.mu3e.hit_banks import DecayKind, hits_of, true_decays_of
from tests.daemon.fakes import RUN, make_config
from tests.daemon.node.kept_windows import check_records, keep_windows
from tests.processing.mu3e.pixel_events import NO_HITS, Found, mep_of_hits, run_chain
from tests.processing.mu3e.vertex_oracle import CUTS, Helix, best_vertex, kinematics, triples

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

N, CORE = 60, 2
LENGTH = CORE * SUB_SLICE_NS
SAMPLE = PixelSample(SampleRequest(seed=6, run=RUN, file_format="mep"), PixelOptions(spacing=1, muon_rate=2e7))
PADDING = int(CUTS["padding"])
VALUES = {"vertices": "window_vertices", "chi2": "window_chi2", "energy_error": "window_energy_error",
          "momentum": "window_momentum", "hits": "window_hits"}  # fmt: skip
"""Names of the values of a window in a decision, by those of the chain."""


def windows_in_one_slice(found: Found) -> NDArray[np.int64]:
    """Start, end and lines of each window that the chain finds in the stream without cuts, i64[windows, 3]."""
    rows = [np.empty((0, 3), np.int64)]
    for number, of in enumerate(found.windows, start=-MARGIN_BEFORE):
        times = (np.maximum(of[name] + number * SUB_SLICE_NS, 0) for name in ("start_ns", "end_ns"))
        rows.append(np.column_stack([*times, of["lines"]]).astype(np.int64))
    return np.concatenate(rows)


def times_of_vertices(found: Found) -> NDArray[np.int64]:
    """First and last hit of each vertex in ns since the start of the stream, i64[vertices, 2]."""
    rows = [
        np.column_stack([of["first"], of["last"]]).astype(np.int64) + number * SUB_SLICE_NS
        for number, of in enumerate(found.vertices, start=-MARGIN_BEFORE)
    ]
    return np.concatenate(rows)


def windows_by_brute_force(found: Found) -> NDArray[np.int64]:
    """Start, end, lines and number of vertices of each window by all triples of tracks, in float64; i64[windows, 4]."""
    windows: list[list[int]] = []
    for number, tracks in enumerate(found.tracks, start=-MARGIN_BEFORE):
        helices = [Helix.of(track) for track in tracks]
        here: list[list[int]] = []
        for triple in triples(tracks):
            best = best_vertex([helices[t] for t in triple])
            if best is None or not is_within_cuts(*best, [helices[t] for t in triple]):
                continue
            of = tracks[list(triple)]
            start, end = int(of["first"].min()) - PADDING, int(of["last"].max()) + 1 + PADDING
            here.append([start, end, 7 if (of["recurl"] != NO_PIXEL).all() else 3, 1])
        joined: list[list[int]] = []
        for start, end, lines, n in sorted(here):
            if joined and start <= joined[-1][1]:
                joined[-1][1:] = max(joined[-1][1], end), joined[-1][2] | lines, joined[-1][3] + n
            else:
                joined.append([start, end, lines, n])
        origin = number * SUB_SLICE_NS
        windows += [[max(start + origin, 0), end + origin, lines, n] for start, end, lines, n in joined]
    return np.array(windows, np.int64)


def is_within_cuts(place: NDArray[np.float64], chi2: float, helices: list[Helix]) -> bool:
    """Whether a vertex is accepted; the cut that decides must not be close: the kernel computes in float32."""
    energy, momentum = kinematics(place, helices)
    inside = min(
        CUTS["max_chi2"] - chi2,
        CUTS["energy_window"] - abs(energy - CUTS["muon_mass"]),
        CUTS["max_sum"] - momentum,
        CUTS["max_radius"] - np.hypot(*place[:2]),
        CUTS["max_z"] - abs(place[2]),
    )
    assert abs(inside) > 0.3, "a vertex close to a cut: choose another seed"
    return bool(inside > 0.0)


def times_of_signal() -> NDArray[np.float64]:
    """Times of the simulated decays mu -> eee in ns since the start of the stream."""
    found = [np.empty(0)]
    for number in range(N):
        decays = true_decays_of(sub_slice_banks(SAMPLE, number))
        assert decays is not None
        found.append(decays["time"][decays["kind"] == DecayKind.SIGNAL] + float(number * SUB_SLICE_NS))
    return np.concatenate(found)


async def test_a_node_keeps_the_decays_of_the_stream_in_one_slice(tmp_path: Path) -> None:
    parts = [hits_of(sub_slice_banks(SAMPLE, number)) for number in range(N)]
    hits = np.concatenate(parts)
    times = np.concatenate([SUB_SLICE_NS * i + each["time"].astype(np.int64) for i, each in enumerate(parts)])
    found = run_chain(mep_of_hits([NO_HITS] * MARGIN_BEFORE + parts + [NO_HITS] * MARGIN_BEHIND))
    windows = windows_in_one_slice(found)
    assert len(windows) > 20
    config = make_config(tmp_path, trigger={"chain": "mu3e"})
    slices = [SAMPLE.encode_slice(number, CORE, N) for number in range(N // CORE)]
    kept = await keep_windows(CHAIN, config, slices, MARGIN_BEFORE + CORE + MARGIN_BEHIND)
    published = np.column_stack([kept.published[name] for name in ("start_ns", "end_ns", "lines", "window_vertices")])
    np.testing.assert_array_equal(published, windows_by_brute_force(found))
    np.testing.assert_array_equal(published[:, :3], windows)
    of_chain = np.concatenate(found.windows)
    for name, of_decision in VALUES.items():
        np.testing.assert_array_equal(kept.published[of_decision], of_chain[name], name)
    check_records(kept, windows, times, hits)

    vertices = times_of_vertices(found)
    across = vertices[vertices[:, 0] // LENGTH != vertices[:, 1] // LENGTH]
    assert len(across) > 1, "no decay has hits in two slices"
    for first, last in across.tolist():
        of_decay = (published[:, 0] + PADDING <= first) & (last < published[:, 1] - PADDING)
        assert of_decay.sum() == 1
        slices_of_decay = [
            record.slice
            for record in kept.records
            if record.start_ns + PADDING <= first and last < record.end_ns - PADDING
        ]
        assert slices_of_decay == [first // LENGTH]
    delay = across[:, :1] - times_of_signal()
    assert ((delay > -10.0) & (delay < 10.0)).any(), "they are all accidental"
