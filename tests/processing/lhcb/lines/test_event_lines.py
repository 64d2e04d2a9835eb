"""Lines on events and VELO tracks agree with their definition in plain Python, scalers bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.algorithms.decode_odin import ODIN_DATA
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs.event_fields import EVENT_WORDS
from hltnode.processing.lhcb.lines.line_types.event_lines import (
    BeamGas,
    OdinCrossingType,
    OdinEventType,
    OdinOrbit,
    Passthrough,
    TaePassthrough,
)
from hltnode.processing.lhcb.lines.line_types.velo import NDisplacedVeloTracks, VeloMicroBias
from hltnode.processing.lhcb.velo.collections import NO_PV
from hltnode.processing.selection.lines.line_type import LineType
from tests.processing.lhcb.velo.track_sample import TrackSample
from tests.processing.selection.line_evaluators import Case, Evaluator, by_blocks, by_compiler, by_numpy
from tests.processing.selection.lines.scalers_oracle import scaler_accepts


@dataclass(frozen=True, slots=True)
class Track:
    ip: float = 0.0
    ip_chi2: float = 0.0
    backward: bool = False
    pv: int = 0
    n_hits: int = 5
    z: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    tracks: Sequence[Track] = ()
    event_type: int = 0
    run: int = 1
    gps_time: int = 0
    event_id: int = 0
    crossing_type: int = 3
    flags: EventFlag = field(default=EventFlag(0))
    orbit: int = 0
    tae: tuple[int, int] = (0, 0)
    """Whether the event is the middle one of several crossings, and the number of crossings on each side."""


def decisions(
    lines: Sequence[LineType], events: Sequence[Event], evaluate: Evaluator = by_compiler
) -> tuple[NDArray[np.object_], NDArray[np.uint8]]:
    """(bit mask of the lines as one integer, accepted) of each event."""
    sample = TrackSample([[np.zeros((3, 3))] * len(event.tracks) for event in events])
    offset = sample.cluster_offset()
    columns = {
        "velo_tracks.ip": np.zeros(offset[-1] // 2, dtype=np.float32),
        "velo_tracks.ip_chi2": np.zeros(offset[-1] // 2, dtype=np.float32),
        "velo_tracks.backward": np.zeros(offset[-1] // 2, dtype=np.uint8),
        "velo_tracks.pv": np.zeros(offset[-1] // 2, dtype=np.uint8),
        "velo_tracks.hit_count": np.zeros(offset[-1] // 2, dtype=np.uint8),
        "velo_beamline.z": np.zeros(offset[-1] // 2, dtype=np.float32),
    }
    odin = np.zeros(len(events), dtype=ODIN_DATA.dtype)
    for number, event in enumerate(events):
        odin[number] = (
            event.run, event.event_type, event.gps_time % 2**32, event.gps_time >> 32,
            event.event_id % 2**32, event.event_id >> 32, 0, event.crossing_type,
            event.orbit, *event.tae,
        )  # fmt: skip
        for i, track in enumerate(event.tracks):
            place = sample.first_track(number) + i
            values = (track.ip, track.ip_chi2, track.backward, track.pv, track.n_hits, track.z)
            for name, value in zip(columns, values, strict=True):
                columns[name][place] = value
    given = columns | {
        "events.odin": odin,
        "events.flags": np.array([int(event.flags) for event in events]),
        "velo_clusters.offset": offset,
        "velo_tracks.count": np.array([len(event.tracks) for event in events]),
        "pvs.count": np.full(len(events), NO_PV),
    }
    limits = replace(sample.limits, lines=len(lines))
    decided = evaluate(Case(tuple(line.line() for line in lines), EVENT_WORDS, given, limits))
    return np.array(decided.masks, dtype=object), np.array(decided.accepted, dtype=np.uint8)


def expected_decision(line: LineType, event: Event) -> bool:
    """The selection of a line on an event, in plain Python."""
    match line:
        case VeloMicroBias():
            selected = len(event.tracks) >= line.min_tracks
        case NDisplacedVeloTracks():
            low, high, chi2 = np.float32(line.min_ip), np.float32(line.max_ip), np.float32(line.min_ip_chi2)
            displaced = [
                track
                for track in event.tracks
                if track.pv != NO_PV and not track.backward and low < track.ip < high and track.ip_chi2 > chi2
            ]
            selected = len(displaced) >= line.min_tracks
        case OdinEventType():
            selected = not event.flags & EventFlag.ODIN_ERROR and bool(event.event_type & line.mask)
        case _:
            selected = True
    return selected and all(
        scaler_accepts(line.name + suffix, scale, run=event.run, gps_time=event.gps_time, event_id=event.event_id)
        for suffix, scale in (("_pre", line.prescale), ("_post", line.postscale))
    )


def expected_masks(lines: Sequence[LineType], events: Sequence[Event]) -> list[int]:
    """The decisions of all lines on each event as one integer."""
    return [sum(expected_decision(line, event) << i for i, line in enumerate(lines)) for event in events]


def large_menu(n_lines: int) -> list[LineType]:
    """Lines of all types in turn; cuts and scales differ from line to line."""
    menu: list[LineType] = []
    for i in range(n_lines):
        scales = {"prescale": (1.0, 0.7)[i // 4 % 2], "postscale": (1.0, 1.0, 0.6)[i % 3]}
        make = (
            lambda name, i=i, scales=scales: NDisplacedVeloTracks(
                name, min_tracks=1 + i % 7, min_ip=0.002 * i, max_ip=1.5, min_ip_chi2=float(i), **scales
            ),
            lambda name, i=i, scales=scales: VeloMicroBias(name, min_tracks=1 + i % 90, **scales),
            lambda name, i=i, scales=scales: OdinEventType(name, mask=1 << i % 16, **scales),
            lambda name, scales=scales: Passthrough(name, **scales | {"prescale": 0.5}),
        )[i % 4]
        menu.append(make(f"Hlt1Line{i}"))
    return menu


BESIDE_WORD_BOUNDARIES = (0, 31, 32, 33, 63, 64, 65, 255, 256, 257, 499)


def random_events(n: int) -> list[Event]:
    """Events with up to 100 tracks and all event types; one of them has no ODIN."""
    rng = np.random.default_rng(5)
    return [
        Event(
            tracks=[
                Track(float(np.float32(ip)), float(np.float32(chi2)), bool(backward), int(pv))
                for ip, chi2, backward, pv in zip(
                    rng.uniform(0, 2, n_tracks),
                    rng.uniform(0, 900, n_tracks),
                    rng.random(n_tracks) < 0.2,
                    rng.choice([0, 1, NO_PV], n_tracks),
                    strict=True,
                )
            ],
            event_type=int(rng.integers(0, 2**16)),
            event_id=i,
            flags=EventFlag.ODIN_ERROR if i == 3 else EventFlag(0),
        )
        for i, n_tracks in enumerate(rng.integers(0, 100, n))
    ]


def test_one_line_selects_an_orbit_of_several_and_one_the_middle_of_several_crossings() -> None:
    lines = (
        OdinOrbit("A", mask=8),
        OdinOrbit("B", mask=8, every=7, remainder=0),
        TaePassthrough("C", min_half_window=2),
    )
    orbits = (0, 1, 7, 30, 31, 61, 2**32 - 1)
    events = [Event(event_type=kind, orbit=orbit) for orbit in orbits for kind in (8, 4, 0xFFFF)]
    events += [Event(tae=(central, window)) for central in (0, 1) for window in (0, 1, 2, 63)]
    events += [Event(event_type=8, orbit=1, tae=(1, 5), flags=EventFlag.ODIN_ERROR)]
    expected = [
        (bool(e.event_type & 8) and e.orbit % 30 == 1 and not e.flags)
        + 2 * (bool(e.event_type & 8) and e.orbit % 7 == 0 and not e.flags)
        + 4 * (e.tae[0] == 1 and e.tae[1] >= 2 and not e.flags)
        for e in events
    ]
    for evaluate in (by_numpy, by_compiler, by_blocks(32)):
        assert decisions(lines, events, evaluate)[0].tolist() == expected
    assert set(expected) == {0, 1, 2, 4}


@pytest.fixture(scope="module")
def decided_by_500_lines() -> tuple[list[LineType], list[Event], list[int]]:
    """(lines, events, expected masks); each line next to a word boundary accepts some events but not all."""
    lines, events = large_menu(500), random_events(40)
    masks = expected_masks(lines, events)
    for i in BESIDE_WORD_BOUNDARIES:
        assert 0 < sum(mask >> i & 1 for mask in masks) < len(events), f"line {i} accepts no event or all events"
    return lines, events, masks


def test_500_lines_decide_as_plain_python(decided_by_500_lines: tuple[list[LineType], list[Event], list[int]]) -> None:
    lines, events, expected = decided_by_500_lines
    masks, accepted = decisions(lines, events)
    assert masks.tolist() == expected
    assert accepted.tolist() == [int(mask != 0) for mask in expected]


@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_500_lines_decide_alike_with_every_block_size(
    decided_by_500_lines: tuple[list[LineType], list[Event], list[int]], block_size: int, backward: bool
) -> None:
    lines, events, expected = decided_by_500_lines
    masks, accepted = decisions(lines, events, by_blocks(block_size, backward=backward))
    assert masks.tolist() == expected
    assert accepted.tolist() == [int(mask != 0) for mask in expected]


@pytest.mark.parametrize("n_lines", [1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 512, 513])
def test_menus_that_end_beside_a_word_boundary_decide_as_plain_python(n_lines: int) -> None:
    lines, events = large_menu(n_lines), random_events(6)
    masks, _ = decisions(lines, events, by_numpy)
    assert masks.tolist() == expected_masks(lines, events)


@pytest.mark.parametrize("line", BESIDE_WORD_BOUNDARIES)
def test_a_line_beside_a_word_boundary_accepts_alone_by_its_own_bit(line: int) -> None:
    menu = [Passthrough(f"Line{i}", prescale=float(i == line)) for i in range(500)]
    masks, accepted = decisions(menu, [Event(), Event(event_id=1)])
    assert masks.tolist() == [1 << line] * 2
    assert accepted.tolist() == [1, 1]


def test_passthrough_accepts_every_event() -> None:
    lines, accepted = decisions([Passthrough("All")], [Event(), Event(tracks=[Track()])])
    assert lines.tolist() == [1, 1]
    assert accepted.tolist() == [1, 1]


def test_an_event_that_no_line_selects_is_not_accepted() -> None:
    lines, accepted = decisions([VeloMicroBias("Bias")], [Event(), Event(tracks=[Track()])])
    assert lines.tolist() == [0, 1]
    assert accepted.tolist() == [0, 1]


def test_velo_micro_bias_counts_tracks() -> None:
    events = [Event(tracks=[Track()] * n) for n in range(5)]
    lines, _ = decisions([VeloMicroBias("One"), VeloMicroBias("Three", min_tracks=3)], events)
    assert lines.tolist() == [0, 1, 1, 3, 3]


def test_displaced_tracks_pass_all_cuts() -> None:
    line = NDisplacedVeloTracks("Displaced", min_tracks=2, min_ip=0.5, max_ip=1.5, min_ip_chi2=400.0)
    good = Track(ip=1.0, ip_chi2=500.0)
    others = [
        Track(ip=0.4, ip_chi2=500.0),
        Track(ip=1.6, ip_chi2=500.0),
        Track(ip=1.0, ip_chi2=399.0),
        Track(ip=1.0, ip_chi2=500.0, backward=True),
        Track(ip=1.0, ip_chi2=500.0, pv=NO_PV),
    ]
    events = [Event(tracks=[good, good]), *(Event(tracks=[other, good, other]) for other in others)]
    lines, _ = decisions([line], events)
    assert lines.tolist() == [1, 0, 0, 0, 0, 0]


def test_odin_event_type_looks_at_the_bits_of_its_mask() -> None:
    events = [Event(event_type=bits) for bits in (0, 0x8, 0x4, 0xC, 0xFFF3)]
    lines, _ = decisions([OdinEventType("Lumi", mask=0x8), OdinEventType("NoBias", mask=0x4)], events)
    assert lines.tolist() == [0, 1, 2, 3, 0]


def test_odin_crossing_type_selects_its_crossings() -> None:
    events = [Event(crossing_type=crossing) for crossing in range(4)]
    lines, _ = decisions([OdinCrossingType("BeamOne", crossing=1)], events)
    assert lines.tolist() == [0, 1, 0, 0]


def test_an_event_without_odin_is_no_crossing_without_beam() -> None:
    events = [Event(crossing_type=0), Event(crossing_type=0, flags=EventFlag.ODIN_ERROR)]
    lines, _ = decisions([OdinCrossingType("NoBeam", crossing=0)], events, by_numpy)
    assert lines.tolist() == [1, 0]


def test_beam_gas_asks_for_a_long_track_before_the_detector() -> None:
    tracks = [
        Track(n_hits=12, z=-400.0),
        Track(n_hits=11, z=-400.0),
        Track(n_hits=20, z=-290.0),
        Track(n_hits=20, z=-551.0),
    ]
    events = [Event(tracks=[track, Track()], crossing_type=1) for track in tracks]
    lines, _ = decisions([BeamGas("Gas")], [*events, Event(tracks=tracks, crossing_type=3)])
    assert lines.tolist() == [1, 0, 0, 0, 0]


def test_an_event_without_odin_has_no_event_type() -> None:
    lines, _ = decisions([OdinEventType("Any")], [Event(event_type=0xFFFF, flags=EventFlag.ODIN_ERROR)])
    assert lines.tolist() == [0]


def test_a_flag_alone_neither_accepts_nor_rejects() -> None:
    events = [Event(flags=EventFlag(mask)) for mask in CHAIN.flag_table.masks.values()]
    _, accepted = decisions([VeloMicroBias("Bias")], events)
    assert not accepted.any()
    _, accepted = decisions([Passthrough("All")], events)
    assert accepted.all()


def test_scalers_agree_with_plain_python() -> None:
    rng = np.random.default_rng(8)
    events = [
        Event(run=int(run), gps_time=int(time), event_id=int(number))
        for run, time, number in zip(
            rng.integers(0, 2**32, 400), rng.integers(0, 2**63, 400), rng.integers(0, 2**63, 400), strict=True
        )
    ]
    scales = [0.0, 1e-4, 0.1, 0.5, 0.99999999, 1.0]
    configured: list[LineType] = [Passthrough(f"Pre{'x' * i}", prescale=scale) for i, scale in enumerate(scales)]
    configured += [Passthrough(f"Post{'y' * i}", postscale=scale) for i, scale in enumerate(scales)]
    configured.append(Passthrough("Both", prescale=0.6, postscale=0.7))
    lines, _ = decisions(configured, events)
    assert lines.tolist() == expected_masks(configured, events)


def test_a_scaler_passes_its_fraction_of_events() -> None:
    events = [Event(run=300_000, gps_time=10**15 + 25 * i, event_id=i) for i in range(4000)]
    lines, _ = decisions([Passthrough("Tenth", prescale=0.1), Passthrough("Half", postscale=0.5)], events)
    assert int((lines & 1).sum()) == pytest.approx(400, abs=5 * np.sqrt(360))
    assert int((lines >> 1).sum()) == pytest.approx(2000, abs=5 * np.sqrt(1000))


@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
def test_every_block_size_decides_alike(block_size: int) -> None:
    rng = np.random.default_rng(1)
    events = [
        Event(
            tracks=[
                Track(float(ip), float(chi2), bool(back), int(pv))
                for ip, chi2, back, pv in zip(
                    rng.uniform(0, 2, n),
                    rng.uniform(0, 900, n),
                    rng.random(n) < 0.2,
                    rng.integers(0, 3, n),
                    strict=True,
                )
            ],
            event_id=i,
        )
        for i, n in enumerate(rng.integers(0, 150, 40))
    ]
    configured: list[LineType] = [NDisplacedVeloTracks(f"N{n}", min_tracks=n) for n in (1, 3, 8, 15)]
    configured += [VeloMicroBias("Bias", min_tracks=70), Passthrough("Half", prescale=0.5)]
    reference, _ = decisions(configured, events)
    assert len(np.unique(reference)) > 4
    for backward in (False, True):
        lines, _ = decisions(configured, events, by_blocks(block_size, backward=backward))
        assert lines.tolist() == reference.tolist()
