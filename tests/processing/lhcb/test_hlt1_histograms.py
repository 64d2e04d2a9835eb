"""Histograms of HLT1: every thread count, batch size and evaluator gives the same counts, and totals agree."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.histograms import contents
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from tests.processing.framework.chain_builder import compiler

N_EVENTS = 24


@pytest.fixture(scope="module")
def meps() -> list[EncodedMep]:
    events = simulate_events(N_EVENTS, 11, geometry=VeloGeometry.builtin(), nu=5.0)
    return list(encode_meps(CHAIN.with_sequence("velo"), events, 4))


def counts(meps: Sequence[EncodedMep], threads: int, events: int = 8) -> NDArray[np.uint64]:
    trigger = CHAIN.load_trigger(None, "velo")
    backend = CpuBackend(CHAIN.kernels, threads=threads)
    engine = CHAIN.create_engine(
        backend,
        CHAIN.with_sequence("velo").load_geometry(None),
        trigger,
        BatchLimits(events=events, input_bytes=4 << 20),
    )
    runner = OfflineRunner(engine)
    runner.warm_up(meps)
    runner.take_histogram_counts()
    found = [batch.workspace.output.counts["velo_tracks"].copy() for batch in runner.run(meps)]
    counted = runner.take_histogram_counts()
    assert not runner.take_histogram_counts().any(), "each count is taken once"
    held = {content.shape.name: content for content in contents(engine.histograms, counted)}
    tracks = np.concatenate(found)
    assert held["velo_tracks"].entries == N_EVENTS
    assert held["velo_tracks"].bins.tolist() == np.histogram(tracks, held["velo_tracks"].shape.edges)[0].tolist()
    assert held["pv_z"].entries > 0
    engine.close()
    return counted


def test_threads_batches_and_numpy_count_alike(meps: list[EncodedMep], monkeypatch: pytest.MonkeyPatch) -> None:
    compiler()
    expected = counts(meps, threads=1)
    assert counts(meps, threads=3).tolist() == expected.tolist()
    assert counts(meps, threads=2, events=24).tolist() == expected.tolist()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        without_compiler = counts(meps, threads=2)
    assert without_compiler.tolist() == expected.tolist()


def test_histograms_whose_quantities_a_sequence_does_not_make_are_left_out() -> None:
    velo = [histogram.shape.name for histogram in CHAIN.filled_histograms(CHAIN.load_trigger(None, "velo"))]
    whole = [histogram.shape.name for histogram in CHAIN.filled_histograms(CHAIN.load_trigger(None, "forward"))]
    assert "pv_z" in velo
    assert "jpsi_mass" not in velo
    assert {"jpsi_mass", "phi_mass", "Hlt1KsToPiPi_mass", "Hlt1D2KPi_mass", *velo} <= set(whole)
