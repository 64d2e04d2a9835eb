"""event_lines: each line against its definition in plain Python, scalers bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.lines import Line, NDisplacedVeloTracks, OdinEventType, Passthrough, VeloMicroBias
from hltnode.processing.lhcb.lines.event_lines import event_lines
from hltnode.processing.lhcb.raw_data.odin_decode import ODIN_DATA
from hltnode.processing.lhcb.velo.collections import NO_PV
from hltnode.processing.selection.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import Launch, run_algorithms, with_block_size
from tests.processing.lhcb.velo.track_sample import TrackSample
from tests.processing.selection.scalers_oracle import scaler_accepts


@dataclass(frozen=True, slots=True)
class Track:
    ip: float = 0.0
    ip_chi2: float = 0.0
    backward: bool = False
    pv: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    tracks: Sequence[Track] = ()
    event_type: int = 0
    run: int = 1
    gps_time: int = 0
    event_id: int = 0
    flags: EventFlag = field(default=EventFlag(0))


def decisions(
    lines: Sequence[Line], events: Sequence[Event], launch: Launch | None = None
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """(bit mask of the lines, accepted) of each event."""
    sample = TrackSample([[np.zeros((3, 3))] * len(event.tracks) for event in events])
    offset = sample.cluster_offset()
    columns = {
        "velo_tracks.ip": np.zeros(offset[-1] // 2, dtype=np.float32),
        "velo_tracks.ip_chi2": np.zeros(offset[-1] // 2, dtype=np.float32),
        "velo_tracks.backward": np.zeros(offset[-1] // 2, dtype=np.uint8),
        "velo_tracks.pv": np.zeros(offset[-1] // 2, dtype=np.uint8),
    }
    odin = np.zeros(len(events), dtype=ODIN_DATA.dtype)
    for number, event in enumerate(events):
        odin[number] = (
            event.run, event.event_type, event.gps_time % 2**32, event.gps_time >> 32,
            event.event_id % 2**32, event.event_id >> 32, 0, 3,
        )  # fmt: skip
        for i, track in enumerate(event.tracks):
            place = sample.first_track(number) + i
            for name, value in zip(columns, (track.ip, track.ip_chi2, track.backward, track.pv), strict=True):
                columns[name][place] = value
    given = columns | {
        "line_table": TriggerConfig(tuple(lines)).line_table(),
        "events.odin": odin,
        "events.flags": np.array([int(event.flags) for event in events]),
        "velo_clusters.offset": offset,
        "velo_tracks.count": np.array([len(event.tracks) for event in events]),
    }
    result = run_algorithms([event_lines], given, len(events), sample.limits, launch)
    return result["events.lines"], result["events.accepted"]


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


def test_an_event_without_odin_has_no_event_type() -> None:
    lines, _ = decisions([OdinEventType("Any")], [Event(event_type=0xFFFF, flags=EventFlag.ODIN_ERROR)])
    assert lines.tolist() == [0]


def test_a_flag_alone_neither_accepts_nor_rejects() -> None:
    events = [Event(flags=flag) for flag in EventFlag]
    _, accepted = decisions([VeloMicroBias("Bias")], events)
    assert not accepted.any()
    _, accepted = decisions([Passthrough("All")], events)
    assert accepted.all()


def test_the_last_of_64_lines_has_the_highest_bit() -> None:
    lines, _ = decisions([Passthrough(f"Line{i}", prescale=0.0 if i < 63 else 1.0) for i in range(64)], [Event()])
    assert lines.tolist() == [1 << 63]


def test_scalers_agree_with_plain_python() -> None:
    rng = np.random.default_rng(8)
    events = [
        Event(run=int(run), gps_time=int(time), event_id=int(number))
        for run, time, number in zip(
            rng.integers(0, 2**32, 400), rng.integers(0, 2**63, 400), rng.integers(0, 2**63, 400), strict=True
        )
    ]
    scales = [0.0, 1e-4, 0.1, 0.5, 0.99999999, 1.0]
    configured: list[Line] = [Passthrough(f"Pre{'x' * i}", prescale=scale) for i, scale in enumerate(scales)]
    configured += [Passthrough(f"Post{'y' * i}", postscale=scale) for i, scale in enumerate(scales)]
    configured.append(Passthrough("Both", prescale=0.6, postscale=0.7))
    lines, _ = decisions(configured, events)
    for event, mask in zip(events, lines, strict=True):
        expected = 0
        for i, line in enumerate(configured):
            passes = all(
                scaler_accepts(
                    line.name + suffix, scale, run=event.run, gps_time=event.gps_time, event_id=event.event_id
                )
                for suffix, scale in (("_pre", line.prescale), ("_post", line.postscale))
            )
            expected |= passes << i
        assert int(mask) == expected


def test_a_scaler_passes_its_fraction_of_events() -> None:
    events = [Event(run=300_000, gps_time=10**15 + 25 * i, event_id=i) for i in range(4000)]
    lines, _ = decisions([Passthrough("Tenth", prescale=0.1), Passthrough("Half", postscale=0.5)], events)
    assert int((lines & np.uint64(1)).sum()) == pytest.approx(400, abs=5 * np.sqrt(360))
    assert int((lines >> np.uint64(1)).sum()) == pytest.approx(2000, abs=5 * np.sqrt(1000))


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
    configured: list[Line] = [NDisplacedVeloTracks(f"N{n}", min_tracks=n) for n in (1, 3, 8, 15)]
    configured += [VeloMicroBias("Bias", min_tracks=70), Passthrough("Half", prescale=0.5)]
    reference, _ = decisions(configured, events)
    assert len(np.unique(reference)) > 4
    for backward in (False, True):
        lines, _ = decisions(configured, events, with_block_size(block_size, backward=backward))
        assert lines.tolist() == reference.tolist()
