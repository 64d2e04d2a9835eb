"""Counters of luminosity: kernels against plain NumPy, edges of bins and ranges, and banks of PLUME."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.luminosity.collections import LUMI_SATURATED
from hltnode.processing.lhcb.luminosity.counters import COUNTERS
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT, MISSING_DETECTOR
from hltnode.processing.selection.reports.lumi_schema import KNOWN_COUNTERS, lumi_schema
from tests.processing.framework.kernel_runner import Launch, with_block_size
from tests.processing.lhcb.luminosity.lumi_batches import BEAM, BUILTIN, INDEX, LumiEvent, expected, random_event, run
from tests.processing.lhcb.luminosity.plume_batches import bank, plume_events

SATURATED = INDEX["Saturated"]


def counted(counters: NDArray[Any]) -> dict[str, float]:
    """The counted values of one event by name."""
    return {
        each.name: (float(number) - each.shift) / each.scale
        for each, number in zip(COUNTERS, counters.tolist(), strict=True)
    }


def test_counters_are_those_of_the_oracle_for_each_block_size() -> None:
    rng = np.random.default_rng(17)
    events = [random_event(rng, n) for n in (0, 1, 60, 200)]
    found, flags = run(events)
    assert flags.tolist() == [0] * 4
    for event, counters in zip(events, found, strict=True):
        values = counted(counters)
        wanted = expected(event)
        assert values.keys() - wanted.keys() - {"Saturated"} == (
            set() if len(event.vertices) else {"VeloVertexX", "VeloVertexY", "VeloVertexZ"}
        )
        for each in COUNTERS:
            if each.name in wanted:
                # Half of the last bit; sums of the calorimeter are rounded to quarters of an MeV, cell by cell.
                within = 0.0 if each.scale == 1.0 and not each.shift else 0.501 / each.scale
                within += 15.0 if each.name.startswith("ECal") else 0.0
                assert values[each.name] == pytest.approx(wanted[each.name], abs=within), each.name
    for launch in (with_block_size(32), with_block_size(100, backward=True)):
        again, _ = run(events, launch, fill=0x55)
        np.testing.assert_array_equal(again, found)


def test_bins_of_pseudorapidity_end_at_whole_numbers() -> None:
    edges = np.array([-4, -3, -2, 2, 3, 4, 5])
    eta = np.column_stack([edges - 0.001, edges + 0.001]).ravel()
    tracks = np.zeros((len(eta), 6))
    tracks[:, 3], tracks[:, 5] = 1 / np.sinh(np.abs(eta)), eta < 0
    found, _ = run([LumiEvent(tracks=track[None].astype(np.float32)) for track in tracks])
    bins = found[:, INDEX["VeloTracksEtaBin0"] : INDEX["VeloTracksEtaBin7"] + 1].argmax(axis=1)
    assert bins.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7]


def test_the_fiducial_region_is_around_the_beam_line() -> None:
    cases = [(2.999, 0.0, 1), (3.001, 0.0, 0), (2.0, 299.9, 1), (2.0, 300.1, 0), (2.0, -299.9, 1), (2.0, -300.1, 0)]
    events = []
    for distance, z, _ in cases:
        x, y = BEAM.x + BEAM.slope_x * z + distance, BEAM.y + BEAM.slope_y * z
        # A track that flies in y: its distance from the beam line is that in x.
        track = [x, y, z, 0.0, 0.1, 0.0]
        events.append(LumiEvent(tracks=np.array([track], np.float32), vertices=np.array([[x, y, z]], np.float32)))
    found, _ = run(events)
    assert found[:, INDEX["VeloFiducialTracks"]].tolist() == [inside for *_, inside in cases]
    assert found[:, INDEX["FiducialVeloVertices"]].tolist() == [inside for *_, inside in cases]
    np.testing.assert_array_equal(found[:, INDEX["VeloTracks"]], 1)


def test_too_large_numbers_become_the_largest_and_flag_lumi_events_alone() -> None:
    many = np.zeros((130, 6), np.float32)
    many[:, 3], many[:, 5] = 1 / np.sinh(4.5), 1.0
    vertex = np.array([[0.0, 0.0, 600.0]], np.float32)
    hot = np.full(6016, 3839, np.int16)
    events = [
        LumiEvent(tracks=many[:127]),
        LumiEvent(tracks=many[:128]),
        LumiEvent(tracks=many, event_type=4),
        LumiEvent(vertices=vertex),
        LumiEvent(vertices=-vertex),
        LumiEvent(adc=hot),
        LumiEvent(vertices=np.full((1, 3), np.nan, np.float32)),
    ]
    found, flags = run(events)
    flag = LUMI_SATURATED.mask
    assert found[:3, INDEX["VeloTracksEtaBin0"]].tolist() == [127, 127, 127]
    assert found[3:5, INDEX["VeloVertexZ"]].tolist() == [0x3FFF, 0]
    assert found[5, INDEX["ECalET"] : INDEX["ECalETInnerBottom"] + 1].tolist() == [
        *(0x1FFFFF, 0x7FFFFF),
        *[0x3FFFF] * 6,
    ]
    assert found[:, SATURATED].tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert flags.tolist() == [0, flag, 0, flag, flag, flag, flag]


def test_energies_above_the_range_of_sums_are_the_largest_numbers() -> None:
    assert BUILTIN.gain.sum() * 3839 > 1e8
    adc = np.zeros(6016, np.int16)
    adc[np.argsort(BUILTIN.gain)[-2000:]] = 3839
    found, _ = run([LumiEvent(adc=adc)])
    assert found[0, INDEX["ECalETInnerTop"]] == 0x3FFFF


# The schema


def test_the_layout_is_that_of_lhcbs_generator() -> None:
    """It fills words first-fit by falling size."""
    ranges = [*((name, bits) for name, bits in KNOWN_COUNTERS), *((each.name, each.bits) for each in COUNTERS)]
    free = [0]
    places = {"encodingKey": 0}
    for name, bits in sorted(ranges, key=lambda each: each[1], reverse=True):
        word = 0
        while word < len(free) and free[word] < bits:
            word += 1
        if word == len(free):
            free.append(32)
        places[name] = 32 * word + 32 - free[word]
        free[word] -= bits
    schema = lumi_schema((), COUNTERS)
    assert {each.name: each.offset for each in schema.counters} == places
    assert schema.size == 4 * len(free)
    assert len(COUNTERS) == 123


# PLUME


@pytest.mark.parametrize("launch", [None, with_block_size(32), with_block_size(64, backward=True)])
def test_channels_of_plume_are_decoded(launch: Launch | None) -> None:
    sent = [bank(seed) for seed in range(3)]
    for (over, adc, _), event in zip(sent, plume_events([[each] for *_, each in sent], launch), strict=True):
        np.testing.assert_array_equal(event.adc, adc)
        np.testing.assert_array_equal(event.over, over)
        assert (event.is_read, event.flags) == (1, 0)


def test_bad_banks_of_plume_flag_their_event_alone() -> None:
    good = bank(1)[2]
    longer = good._replace(payload=memoryview(bytes(good.payload) + bytes(4)))
    shorter, empty = (good._replace(payload=good.payload[:n]) for n in (100, 0))
    for wrong in (shorter, longer, empty, good._replace(type=89)):
        first, bad, last = plume_events([[good], [wrong], [good]])
        assert (bad.flags, bad.is_read) == (EventFlag.BANK_ERROR, 0)
        assert not bad.adc.any()
        assert not bad.over.any()
        assert (first.flags, first.is_read) == (0, 1)
        assert last.same_as(first)
    # The version belongs to all events of an MFP.
    (event,) = plume_events([[good._replace(version=2)]])
    assert (event.flags, event.is_read) == (EventFlag.BANK_ERROR, 0)


def test_other_boards_are_not_read_and_missing_banks_flag_if_required() -> None:
    good = bank(1)[2]
    other = good._replace(source_id=0x5002, payload=memoryview(bytes(8)))
    for required in (0, 1):
        events = plume_events([[good, other], [other], []], required=required)
        missing = required * MISSING_DETECTOR.mask
        assert [event.flags for event in events] == [0, missing, missing]
        assert [event.is_read for event in events] == [1, 0, 0]


def test_plume_is_read_in_events_that_the_global_event_cut_rejected() -> None:
    (event,) = plume_events([[bank(1)[2]]], flags=EventFlag(GLOBAL_EVENT_CUT.mask))
    assert (event.flags, event.is_read) == (GLOBAL_EVENT_CUT.mask, 1)
