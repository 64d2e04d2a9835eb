"""Muon identification: the kernels against the oracle and against truth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.muon_fields import FieldsOfInterest
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.muon.collections import NO_HIT
from hltnode.protocol.lhcb.banks.muon import decode_muon
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import with_block_size
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.muon.muon_chain import MuonBatch, MuonEvent, encode_mep, muon_chain
from tests.processing.lhcb.muon.muon_oracle import identify, sorted_hits
from tests.processing.lhcb.muon.muon_samples import BUILTIN, banks_of, random_digits, simulated_events
from tests.processing.lhcb.muon.test_hits import real_events
from tests.processing.lhcb.muon.truth_tracks import Tracks, forward_tracks, truth_tracks
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of
from tests.ptx.parser import Module, parse

FIELDS = FieldsOfInterest.builtin()
DUMPS = "data/lhcb-minbias-reference/forward_tracks"
CLOSE = 1e-4
"""Decisions closer than this to the limit may differ in single precision."""


def as_input(tracks: Tracks) -> NDArray[np.float64]:
    """x, y, tx, ty, q/p, rounded to the floats of the kernel."""
    of_event = np.column_stack([tracks.states, 1.0 / tracks.p])
    return of_event.astype(np.float32).astype(np.float64)


def random_tracks(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Tracks from near the collisions, in the acceptance; a few have impossible momenta."""
    tx, ty = rng.uniform(-0.25, 0.25, n), rng.uniform(-0.2, 0.2, n)
    qop = rng.choice([-1.0, 1.0], n) / rng.choice([2900.0, 3500.0, 5e3, 7e3, 9.9e3, 12e3, 40e3, 1e7, 1e12], n)
    rows = np.stack([9410 * tx + rng.normal(0, 300, n), 9410 * ty, tx, ty, qop], axis=1)
    return rows.astype(np.float32).astype(np.float64)


def assert_tracks_are(
    event: MuonEvent, banks: Sequence[RawBank], geometry: MuonGeometry, tracks: NDArray[np.float64]
) -> int:
    """Compare with the oracle; returns the number of tracks with hits in their fields."""
    hits = sorted_hits(geometry, decode_muon(banks))
    n_found = 0
    for i, track in enumerate(tracks):
        expected = identify(hits, track, FIELDS)
        if expected.margin < CLOSE:
            continue
        assert event.muon_hits[i].tolist() == list(expected.nearest)
        assert event.is_muon[i] == expected.is_muon
        assert event.chi2[i] == pytest.approx(expected.chi2, rel=1e-3, abs=1e-4)
        n_found += expected.nearest[0] != NO_HIT
    return n_found


def real_tracks(shared: Path, kind: str) -> list[Tracks]:
    geometry = SciFiGeometry.load(shared / "data/lhcb-geometry")
    events = real_events(shared)
    if kind == "truth":
        return [truth_tracks(event, geometry) for event in events]
    dumps = [shared / DUMPS / f"6718861_{number}.bin" for number in range(6001, 6008)]
    return [forward_tracks(event, geometry, dump) for event, dump in zip(events, dumps, strict=True)]


@pytest.mark.parametrize("kind", ["truth", "forward"])
def test_tracks_of_the_real_events_are_identified_as_by_the_oracle(shared: Path, kind: str) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    events, tracks = real_events(shared), [as_input(of_event) for of_event in real_tracks(shared, kind)]
    made = MuonBatch(encode_mep(events), geometry, tracks).run()
    n_found = sum(
        assert_tracks_are(event, banks, geometry, of_event)
        for event, banks, of_event in zip(made, events, tracks, strict=True)
    )
    assert n_found == {"truth": 13, "forward": 4}[kind]


def test_random_tracks_are_identified_as_by_the_oracle() -> None:
    rng = np.random.default_rng(3)
    events = [banks_of(random_digits(rng, 1500)), *simulated_events(6)]
    tracks = [random_tracks(rng, 300) for _ in events]
    made = MuonBatch(encode_mep(events), BUILTIN, tracks).run()
    n_found = sum(
        assert_tracks_are(event, banks, BUILTIN, of_event)
        for event, banks, of_event in zip(made, events, tracks, strict=True)
    )
    assert n_found > 20


@pytest.mark.physics
def test_the_muon_of_the_real_events_is_found_and_few_others(shared: Path) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    events = real_events(shared)
    counts = {}
    for kind in ("truth", "forward"):
        tracks = real_tracks(shared, kind)
        made = MuonBatch(encode_mep(events), geometry, [as_input(of_event) for of_event in tracks]).run()
        muon = np.concatenate([of_event.is_true_muon & (of_event.p > 3000) for of_event in tracks])
        in_fields = np.concatenate([event.muon_hits[:, 0] != NO_HIT for event in made])
        is_muon = np.concatenate([event.is_muon == 1 for event in made])
        others = [len(muon) - int(muon.sum()), int((in_fields & ~muon).sum()), int((is_muon & ~muon).sum())]
        counts[kind] = [int(muon.sum()), int((is_muon & muon).sum()), *others]
    # Muons, identified muons; other tracks, those with hits in their fields, those whose hits agree with one muon.
    assert counts == {"truth": [0, 0, 436, 13, 2], "forward": [1, 1, 132, 3, 0]}


@pytest.mark.physics
def test_simulated_muons_with_a_hit_in_every_station_are_found() -> None:
    events = simulated_events(60, "bjpsik")
    geometry = SciFiGeometry.builtin()
    tracks = [truth_tracks(event, geometry) for event in events]
    made = MuonBatch(encode_mep(events), BUILTIN, [as_input(of_event) for of_event in tracks]).run()
    muon = np.concatenate([of_event.is_true_muon & (of_event.p > 6000) for of_event in tracks])
    full = np.concatenate([(event.muon_hits != NO_HIT).all(axis=1) for event in made])
    is_muon = np.concatenate([event.is_muon == 1 for event in made])
    assert (muon & full).sum() > 60
    assert (is_muon & muon & full).sum() > 0.95 * (muon & full).sum()
    others = np.concatenate([~of_event.is_true_muon & (of_event.p > 6000) for of_event in tracks])
    assert (is_muon & others).sum() < 0.05 * others.sum()


def test_a_track_without_momentum_or_hits_is_no_muon() -> None:
    banks = banks_of(random_digits(np.random.default_rng(7), 400))
    slow = random_tracks(np.random.default_rng(8), 50)
    slow[:, 4] = 1 / 2999.0
    impossible = slow.copy()
    impossible[:, 4] = np.nan
    nowhere = slow.copy()
    nowhere[:, :2], nowhere[:, 4] = 1e30, 1e-4
    for event in MuonBatch(encode_mep([banks, banks, banks, []]), BUILTIN, [slow, impossible, nowhere, slow]).run():
        assert event.flags == 0
        assert not event.is_muon.any()
        assert (event.muon_hits == NO_HIT).all()
        assert not event.chi2.any()


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 64, 100, 256])
def test_results_do_not_depend_on_the_threads(block_size: int, backward: bool) -> None:
    rng = np.random.default_rng(5)
    events = [banks_of(random_digits(rng, n, twice=n // 20)) for n in (0, 1, 40, 900)] + simulated_events(6)[:3]
    batch = MuonBatch(encode_mep(events), BUILTIN, [random_tracks(rng, n) for n in (70, 0, 1, 300, 130, 40, 60)])
    expected = batch.run()
    assert sum(int((event.muon_hits != NO_HIT).any(axis=1).sum()) for event in expected) > 5
    launch = with_block_size(block_size, backward=backward, kernels=muon_chain().kernels)
    for event, other in zip(expected, batch.run(launch, fill=0xFF), strict=True):
        assert event.same_as(other)


@cache
def device_code() -> Module:
    return parse(ptx_of(nvrtc_of(CUDA_VERSION), muon_chain().kernels, "90"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("block_size", "backward"), [(32, False), (100, True)])
def test_device_code_gives_the_same_without_conflicts(block_size: int, backward: bool) -> None:
    rng = np.random.default_rng(6)
    events = [banks_of(random_digits(rng, n, twice=n // 20)) for n in (0, 30, 500)] + simulated_events(6)[:1]
    batch = MuonBatch(encode_mep(events), BUILTIN, [random_tracks(rng, n) for n in (5, 0, 150, 70)])
    machine = machine_of(device_code(), backward=backward)
    launcher = PtxLauncher(machine, block_size)
    made = batch.run(launcher, fill=0xFF, allocate=machine.allocate)
    assert all(event.same_as(other) for event, other in zip(made, batch.run(), strict=True))
    assert not launcher.conflicts
