"""Clock offsets of sources: hits are corrected before they are sorted, across the borders of sub-slices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.streaming import clock_offset_constants
from hltnode.processing.km3net.chain import CHAIN, STREAMING
from hltnode.processing.km3net.offline.simulation.stream import source_of_pmts
from hltnode.protocol.km3net.hit_banks import KM3NET_SUBDETECTOR, encode_hits
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.km3net.telescope_events import (
    TOWER,
    Found,
    made_hits,
    mep_of_hits,
    mep_of_payloads,
    run_chain,
    simulated,
)
from tests.processing.km3net.trigger_oracle import expected

LENGTH = STREAMING.sub_slice_ns
OFFSETS = {0: 40, 3: -75, 5: LENGTH - 4_000, 9: -(LENGTH - 4_000), 13: 1}
"""ns by the number of the source, which is the floor; the largest ones among them."""


def constants_of(offsets: dict[int, int]) -> dict[str, NDArray[np.uint8]]:
    return clock_offset_constants(
        "km3net", STREAMING, {source_id(KM3NET_SUBDETECTOR, number): ns for number, ns in offsets.items()}
    )


def sent_with_wrong_clocks(sub_slices: list[NDArray[np.void]]) -> list[NDArray[np.void]]:
    """The same stream as boards with wrong clocks cut it: each hit at its time less the offset of its source."""
    floors = source_of_pmts(TOWER)
    offsets = np.array([OFFSETS.get(floor, 0) for floor in range(int(floors.max()) + 1)])
    hits = np.concatenate(sub_slices)
    starts = np.repeat(np.arange(len(sub_slices)) * LENGTH, [len(each) for each in sub_slices])
    times = starts + hits["time"].astype(np.int64) - offsets[floors[hits["pmt"]]]
    found = []
    for number in range(len(sub_slices)):
        inside = times // LENGTH == number
        of = hits[inside].copy()
        of["time"] = times[inside] - number * LENGTH
        found.append(of)
    return found


def test_a_stream_of_wrong_clocks_gives_the_triggers_of_right_ones() -> None:
    true = list(simulated(21, 8, muon_rate=60_000.0))
    sent = sent_with_wrong_clocks(true)
    assert any(len(a) != len(b) for a, b in zip(true, sent, strict=True))
    uncorrected = run_chain(mep_of_hits(sent, 5))
    found = run_chain(mep_of_hits(sent, 5), constants=constants_of(OFFSETS))
    n_candidates = n_changed = 0
    # The first and the last sub-slice lack the hits that the stream has before and behind the slice.
    for e in range(1, len(true) - 1):
        # The time window behind the sub-slice before last is complete: its hits come from the last one at most.
        wanted = expected(TOWER, true[e], true[e + 1], margin=False)
        assert found.hits[e].tolist() == wanted.keys.tolist(), e
        assert found.own[e] == wanted.own
        assert found.candidates[e].tolist() == wanted.candidates.tolist()
        assert found.windows[e].tolist() == wanted.windows.tolist()
        assert found.flags[e] - {"HIT_MOVED", "UNSORTED_HITS"} == wanted.flags
        n_candidates += len(wanted.candidates)
        n_changed += found.hits[e].tolist() != uncorrected.hits[e].tolist()
    assert n_candidates > 5
    assert n_changed == len(true) - 2


def one_source(payloads: list[list[tuple[int, int]]], offset: int) -> Found:
    """The sub-slices of source 2 with an offset, between those of source 7 without."""
    mep = mep_of_payloads(
        {2: [encode_hits(made_hits(each)) for each in payloads], 7: [encode_hits(made_hits([(60, 5)]))] * len(payloads)}
    )
    return run_chain(mep, constants=constants_of({2: offset}))


def own_times(found: Found, e: int) -> list[int]:
    return [int(word) >> 32 for word in found.hits[e][: found.own[e]] if int(word) >> 16 & 0xFFFF == 12]


@pytest.mark.parametrize(
    ("offset", "time", "at", "moved"),
    [
        (0, LENGTH - 1, (2, LENGTH - 1), False),
        (1, LENGTH - 2, (2, LENGTH - 1), False),
        (1, LENGTH - 1, (3, 0), True),
        (-1, 1, (2, 0), False),
        (-1, 0, (1, LENGTH - 1), True),
        (21_000, 4_000, (3, 0), True),
        (21_000, LENGTH - 1, (3, 20_999), True),
        (-21_000, 0, (1, 4_000), True),
    ],
)
def test_a_hit_belongs_to_the_sub_slice_of_its_corrected_time(
    offset: int, time: int, at: tuple[int, int], moved: bool
) -> None:
    found = one_source([[], [], [(12, time)], [], []], offset)
    assert {e: own_times(found, e) for e in range(5)} == {e: [at[1]] if e == at[0] else [] for e in range(5)}
    assert [e for e in range(5) if "HIT_MOVED" in found.flags[e]] == ([2] if moved else [])


def test_a_time_outside_its_sub_slice_is_no_matter_of_the_clock() -> None:
    found = one_source([[], [], [(12, LENGTH + 5)], [], []], -10)
    assert "TIME_OUTSIDE" in found.flags[2]
    assert "HIT_MOVED" not in found.flags[2]
    assert not any(own_times(found, e) for e in range(5))


def test_offsets_that_margins_do_not_allow_are_refused_by_source() -> None:
    most = LENGTH - 4_000
    source = source_id(KM3NET_SUBDETECTOR, 3)
    for offsets, message in (
        ({source: most + 1}, f"source {source}: {most + 1} ns, but with these .* is {most} ns"),
        ({source: -most - 1}, f"source {source}: -{most + 1} ns"),
        ({source_id(4, 3): 1}, "takes no hits from sub-detector 4"),
    ):
        with pytest.raises(ValueError, match=message):
            clock_offset_constants("km3net", CHAIN.streaming, offsets)
    longer = STREAMING.configured({"length": [50_000], "margin_before": [0], "margin_behind": [1]})
    assert longer.max_clock_offset_ns == 0
    assert constants_of({3: -7})["km3net.clock_offset"].view("<i4").tolist() == [0, 0, 0, -7, *[0] * 2044]
    assert constants_of({}) == {}
