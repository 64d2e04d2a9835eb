"""Efficiencies of lines on signal: selected decays, signal tracks, and numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.matching import match_tracks
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch, retained
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.offline.validation.selections.signal import SignalDecays, made_by_signal
from hltnode.processing.lhcb.offline.validation.selections.trigger_on_signal import SignalTracks, is_on_tracks
from hltnode.processing.lhcb.tracks.long.collections import long_tracks
from hltnode.processing.offline.checks.line_efficiencies import Efficiencies, SelectedSignal
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.studies.decided_events import DecidedEvents, DecidingPass
from hltnode.processing.selection.studies.scans import Scan
from hltnode.protocol.lhcb.truth import McParticle
from tests.processing.lhcb.full_events import full_events

VELO_ID = 0x20000000


def particle(
    key: int, mother: int, *, pid: int = 321, eta: float = 3.0, long: bool = True, signal: bool = True
) -> McParticle:
    return McParticle(
        key=key,
        pid=pid,
        p=10_000.0,
        pt=1000.0,
        eta=eta,
        phi=0.0 if key % 2 else np.pi,
        vertex_x=0.0,
        vertex_y=0.0,
        vertex_z=0.0,
        is_long=long,
        from_signal=signal,
        mother_key=900,
        mother_pid=mother,
        velo_ids=tuple(VELO_ID + 20 * key + i for i in range(10)),
    )


def test_products_are_the_charged_particles_that_the_decay_makes_not_what_they_make() -> None:
    phi, kaon, pion = 333, 321, 211
    decays = SignalDecays.of(
        ParticleTable.of_particles(
            [
                [particle(1, phi), particle(2, phi), particle(3, kaon, pid=13), particle(4, phi, signal=False)],
                [particle(1, phi), particle(3, phi), particle(2, phi, long=False), particle(4, phi, eta=5.5)],
                [particle(1, 310, pid=pion), particle(2, 443, pid=22)],
                [],
            ]
        )
    )
    assert decays.products.tolist() == [2, 4, 1, 0]
    assert decays.reconstructible.tolist() == [2, 2, 1, 0]
    assert decays.pt.tolist() == pytest.approx([0.0, 0.0, 1000.0, 0.0], abs=1e-3)


def test_a_track_is_made_by_signal_with_seven_of_ten_hits_of_all_its_particles_together() -> None:
    signal = [particle(1, 333), particle(2, 333)]
    others = [particle(3, 333, signal=False)]

    def track(*n_hits: int) -> np.ndarray:
        ids = [VELO_ID + 20 * (key + 1) + i for key, n in enumerate(n_hits) for i in range(n)]
        return np.array(ids, np.uint32)

    tracks = TrackTable.of_events(
        [[track(10, 0, 0), track(4, 3, 3), track(4, 2, 4), track(0, 0, 10)], [track(10, 0, 0)]]
    )
    particles = ParticleTable.of_particles([[*signal, *others], others])
    assert made_by_signal(tracks, particles).tolist() == [True, True, False, False, False]


TRIGGER = TriggerConfig.default(HLT1_MENU)
SCAN = Scan.read(f"{TRIGGER.line_names[1]}.prescale=0,1", TRIGGER)


def selected(n: int) -> SelectedSignal:
    rng = np.random.default_rng(3)
    fired = rng.random((n, 3)) < 0.4
    varied = rng.random((n, 2)) < 0.5
    products = np.where(rng.random(n) < 0.05, 3, 4)
    return SelectedSignal(
        fired=fired,
        on_signal=fired & (rng.random((n, 3)) < 0.5),
        varied=(varied,),
        varied_on_signal=(varied & (rng.random((n, 2)) < 0.5),),
        is_cut=rng.random(n) < 0.1,
        products=products,
        reconstructible=np.minimum(rng.integers(2, 5, n), products),
        pt=rng.uniform(0, 15_000, n),
        weights=np.ones(n),
    )


def test_efficiencies_are_those_of_fully_reconstructible_decays_and_of_all_events() -> None:
    found = selected(500)
    result = Efficiencies(["A", "B", "C"], [True, True, False], [SCAN], found).result()
    complete = found.reconstructible == 4
    assert (result["products"], result["events"], result["reconstructible"]) == (4, 500, complete.sum())
    for i, name in enumerate("AB"):
        of = result["lines"][name]
        assert of["efficiency"] == pytest.approx(found.fired[complete, i].mean())
        assert of["trigger_on_signal"] == pytest.approx(found.on_signal[complete, i].mean())
        assert of["efficiency_low"] < of["efficiency"] < of["efficiency_high"]
        assert of["of_kept"]["efficiency"] == pytest.approx(found.fired[complete & ~found.is_cut, i].mean())
        assert of["of_all"]["efficiency"] == pytest.approx(found.fired[:, i].mean())
        assert of["of_all"]["trigger_on_signal"] == pytest.approx(found.on_signal[:, i].mean())
    assert result["lines"]["C"]["trigger_on_signal"] is None
    assert result["any"]["efficiency"] == pytest.approx(found.fired[complete].any(axis=1).mean())
    assert result["any"]["trigger_on_signal"] == pytest.approx(found.on_signal[complete].any(axis=1).mean())
    assert result["kept_by_event_cut"]["all"] == pytest.approx((~found.is_cut).mean())
    assert sum(result["against_pt"]["reconstructible"]) == complete.sum()
    point = result["scans"][0]["points"][1]
    any_line = found.fired[:, [0, 2]].any(axis=1) | found.varied[0][:, 1]
    assert point["line"]["efficiency"] == pytest.approx(found.varied[0][complete, 1].mean())
    assert point["any"]["efficiency"] == pytest.approx(any_line[complete].mean())
    any_on_signal = found.on_signal[:, [0, 2]].any(axis=1) | found.varied_on_signal[0][:, 1]
    assert point["any"]["trigger_on_signal"] == pytest.approx(any_on_signal[complete].mean())


def test_efficiencies_count_events_with_their_weights() -> None:
    found = selected(400)
    weights = np.where(found.pt < 7000, 0.2, 1.8)
    result = Efficiencies(["A", "B", "C"], [True, True, False], [SCAN], replace(found, weights=weights)).result()
    complete = found.reconstructible == 4
    of, passed = result["lines"]["A"], complete & found.fired[:, 0]
    assert of["efficiency"] == pytest.approx(weights[passed].sum() / weights[complete].sum())
    assert of["of_all"]["efficiency"] == pytest.approx(weights[found.fired[:, 0]].sum() / weights.sum())
    equal = Efficiencies(["A", "B", "C"], [True, True, False], [SCAN], found).result()["lines"]["A"]
    assert of["efficiency_high"] - of["efficiency_low"] > equal["efficiency_high"] - equal["efficiency_low"]
    assert of["efficiency_events_for_10_percent"] > equal["efficiency_events_for_10_percent"]
    assert result["sample"]["weighted"]


def test_an_efficiency_needs_events_of_the_whole_sample() -> None:
    """An efficiency of 0.4 needs about 150 reconstructible decays for 10 %."""
    found = selected(400)
    result = Efficiencies(["A", "B", "C"], [True, True, False], [SCAN], found).result()
    of = result["lines"]["A"]
    needed = 100 * (1 - of["efficiency"]) / of["efficiency"] * 400 / result["reconstructible"]
    assert of["efficiency_events_for_10_percent"] == pytest.approx(needed, rel=0.05)


def test_events_in_parts_are_the_events_together() -> None:
    whole = selected(100)
    first = np.arange(100) < 30
    joined = SelectedSignal.joined([whole.of(first), whole.of(~first)])
    np.testing.assert_array_equal(joined.fired, whole.fired)
    np.testing.assert_array_equal(joined.varied_on_signal[0], whole.varied_on_signal[0])
    np.testing.assert_array_equal(joined.pt, whole.pt)


def test_a_sample_without_signal_is_refused() -> None:
    found = selected(5)
    none = SelectedSignal(
        found.fired, found.on_signal, (), (), found.is_cut, np.zeros(5, int), np.zeros(5, int), found.pt, found.weights
    )
    with pytest.raises(ValueError, match="no event has a signal decay"):
        Efficiencies(["A", "B", "C"], [True] * 3, [], none)


def test_a_line_triggers_on_signal_if_one_candidate_consists_of_signal_tracks() -> None:
    """Compare with loops over the candidates of each event, on simulated decays."""
    trigger = CHAIN.load_trigger(None, "forward")
    chain = CHAIN.with_sequence("forward")
    lines = [line for line in trigger.lines if line.name in ("Hlt1TrackMVA", "Hlt1TwoTrackMVA", "Hlt1Passthrough")]
    deciding = DecidingPass(
        CHAIN,
        trigger,
        create_backend("cpu", CHAIN.kernels, threads=1),
        chain.load_geometry(None),
        lines=lines,
        retain=retained(chain.sequence),
    )
    (decided,) = deciding.run(full_events(16, 3, sample="bsphiphi", nu=1.0))
    found = reconstructed_batch(decided.workspace)
    truth = [read_truth(banks, {}, TruthFaults()) for banks in decided.events]
    particles = ParticleTable.of_events([it.particles for it in truth if it is not None])
    triggered = SignalTracks(found, particles).triggered(lines, decided)
    assert not triggered[:, [is_on_tracks(line) for line in lines].index(False)].any()
    long = found.tracks[Stage.LONG]
    matches = match_tracks(long, particles)
    of_signal = set(matches.track[particles.from_signal[matches.particle]].tolist())
    n_triggered = 0
    for place, line in enumerate(lines):
        if not is_on_tracks(line):
            continue
        candidates, made_of = decided.candidates(line)
        expected = np.zeros(len(decided.events), bool)
        for row, event in enumerate(candidates.event.tolist()):
            numbers = made_of.number[made_of.candidate == row].tolist()
            first = int(np.searchsorted(long.event, event))
            if all(first + number in of_signal for number in numbers):
                expected[event] = True
        np.testing.assert_array_equal(triggered[:, place], expected)
        assert (decided.decisions([line])[:, 0] >= expected).all()
        n_triggered += int(expected.sum())
    assert n_triggered > 3
    deciding.engine.close()


def test_only_candidates_of_signal_tracks_alone_that_pass_the_scalers_trigger_on_signal() -> None:
    line = next(each for each in TRIGGER.lines if is_on_tracks(each))
    # Candidates of the events 0, 0, 1, 2 and 3, of two tracks each; the first track of event 0 is no signal.
    events = np.array([0, 0, 1, 2, 3])
    made_of = SimpleNamespace(
        collection=long_tracks,
        candidate=np.repeat(np.arange(5), 2),
        number=np.array([0, 1, 1, 2, 0, 1, 0, 1, 0, 1]),
    )
    made = np.array([False, True, True, True, True, True, False, True, True])
    signal = SignalTracks.__new__(SignalTracks)
    signal._made = {long_tracks: (np.array([0, 3, 5, 7]), made)}
    passed = np.array([True, True, True, False])
    decided = SimpleNamespace(
        events=[()] * 4,
        candidates=lambda _line: (SimpleNamespace(event=events), made_of),
        passes_scalers=lambda _line: passed,
    )
    assert signal.triggered_by(line, cast(DecidedEvents, decided)).tolist() == [True, True, False, False]
    passed[:] = [False, True, True, True]
    assert signal.triggered_by(line, cast(DecidedEvents, decided)).tolist() == [False, True, False, True]
