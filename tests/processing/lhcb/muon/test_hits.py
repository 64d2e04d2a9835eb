"""Muon banks to hits: the kernels against the oracle on real, simulated and made-up banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.muon import N_STATIONS, MuonGeometry
from hltnode.processing.lhcb.muon.collections import NO_CROSSING
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.protocol import iter_records
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import MuonDigits, decode_muon
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import on_cpu
from tests.processing.lhcb.geometry.test_muon import read_reference
from tests.processing.lhcb.muon.muon_chain import MuonBatch, MuonEvent, encode_mep, muon_chain
from tests.processing.lhcb.muon.muon_oracle import sorted_hits
from tests.processing.lhcb.muon.muon_samples import (
    BUILTIN,
    all_digits,
    as_links,
    banks_of,
    link_banks_of,
    links_geometry,
    random_digits,
    simulated_events,
    taken,
)

MDF = "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"


def real_events(shared: Path) -> list[list[RawBank]]:
    return [record.banks() for record in iter_records((shared / MDF).read_bytes())]


def run(events: Sequence[Sequence[RawBank]], geometry: MuonGeometry = BUILTIN) -> list[MuonEvent]:
    return MuonBatch(encode_mep(events), geometry).run()


def assert_hits_are(event: MuonEvent, geometry: MuonGeometry, digits: MuonDigits) -> None:
    """Check that the hits are those of the oracle, in its order: positions as floats of the tables, the rest
    exactly."""
    expected = sorted_hits(geometry, digits)
    offsets = np.searchsorted(expected.station, np.arange(2 * N_STATIONS))
    assert event.station_offset.tolist() == offsets.tolist()
    assert event.hits["tile"].tolist() == expected.tile.tolist()
    for name in ("x", "y", "z", "dx", "dy"):
        assert event.hits[name].tolist() == getattr(expected, name).astype(np.float32).tolist()
    time = event.hits["time"].astype(int)
    assert (time & 0xF).tolist() == expected.time.tolist()
    assert ((time & NO_CROSSING) == 0).tolist() == expected.crossed.tolist()
    difference = (time & 0xF) - event.hits["time_y"].astype(int)
    assert difference.tolist() == np.where(expected.crossed, expected.time_difference, expected.time).tolist()


def test_hits_of_the_real_events_are_those_of_the_oracle(shared: Path) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    events = real_events(shared)
    for event, banks in zip(run(events, geometry), events, strict=True):
        assert event.flags == 0
        assert_hits_are(event, geometry, decode_muon(banks))


@pytest.mark.physics
def test_hits_of_the_real_events_are_those_of_the_reference(shared: Path) -> None:
    geometry = MuonGeometry.load(shared / "data/lhcb-geometry")
    n_hits = 0
    for number, event in enumerate(run(real_events(shared), geometry), 6001):
        expected = read_reference(shared / f"data/lhcb-minbias-reference/muon_common_hits/6718861_{number}.bin")
        station = np.searchsorted(event.station_offset[1:N_STATIONS], np.arange(len(event.hits["x"])), side="right")
        rounded = [np.round(event.hits[name], 1) for name in ("y", "x")]
        found = np.lexsort([event.hits["time"] & 0xF, *rounded, station])
        known = np.lexsort(
            [expected["time"], *(np.round(expected[name], 1) for name in ("y", "x")), expected["station"]]
        )
        assert station[found].tolist() == expected["station"][known].tolist()
        for name in ("x", "y", "z", "dx"):
            np.testing.assert_allclose(event.hits[name][found], expected[name][known], atol=0.01)
        # The reference used an older geometry, in which the strip of one hit has another height.
        np.testing.assert_allclose(event.hits["dy"][found], expected["dy"][known], atol=1.0)
        crossed = (event.hits["time"][found] & NO_CROSSING) == 0
        assert (~crossed).tolist() == (expected["uncrossed"][known] == 1).tolist()
        difference = (event.hits["time"][found] & 0xF).astype(int) - event.hits["time_y"][found]
        assert sorted(difference) == sorted(expected["time_difference"])
        n_hits += len(found)
    assert n_hits == 1691


@pytest.mark.physics
def test_spot_values_of_event_6002(shared: Path) -> None:
    event = run(real_events(shared), MuonGeometry.load(shared / "data/lhcb-geometry"))[1]
    for tile, station, crossed, values in (
        (0x8C0486D, 0, True, (857.025, 6.375, 849.022, 31.479, 15207.057)),
        (0x833304A, 3, False, (-86.867, 15.833, 405.566, 19.429, 18724.660)),
    ):
        (i,) = np.flatnonzero(event.hits["tile"] == tile)
        assert event.station_offset[station] <= i < event.station_offset[station + 1]
        assert (event.hits["time"][i] < NO_CROSSING) == crossed
        assert [event.hits[n][i] for n in ("x", "dx", "y", "dy", "z")] == pytest.approx(values, abs=2e-3)


def test_hits_of_simulated_events_are_those_of_the_oracle() -> None:
    events = simulated_events(6)
    for event, banks in zip(run(events), events, strict=True):
        assert event.flags == 0
        assert_hits_are(event, BUILTIN, decode_muon(banks))


def test_hits_of_the_common_kernel_are_those_of_the_oracle() -> None:
    """The other tests here run its form for the CPU."""
    common = on_cpu(kernels=muon_chain().kernels, common=True)
    digits = [random_digits(np.random.default_rng(seed), n, twice=3) for seed, n in enumerate((1, 40, 600))]
    events = MuonBatch(encode_mep([banks_of(of_event) for of_event in digits]), BUILTIN).run(common)
    for event, of_event in zip(events, digits, strict=True):
        assert_hits_are(event, BUILTIN, of_event)
    without_crossing = np.concatenate([event.hits["time"] & NO_CROSSING for event in events]) != 0
    assert 0 < without_crossing.sum() < len(without_crossing)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 600), st.integers(0, 20))
def test_any_digits_cross_as_by_the_oracle_and_count_once(seed: int, n: int, twice: int) -> None:
    digits = random_digits(np.random.default_rng(seed), n, twice=twice if n else 0)
    (event,) = run([banks_of(digits)])
    assert event.flags == 0
    assert_hits_are(event, BUILTIN, digits)


@pytest.mark.parametrize("with_maps", [False, True])
def test_banks_of_links_give_the_hits_of_the_oracle(with_maps: bool) -> None:
    dense = all_digits()
    dense = taken(dense, np.random.default_rng(1).random(len(dense.bank)) < 0.3)
    made_up = [random_digits(np.random.default_rng(seed), 300) for seed in range(3)]
    digits = [as_links(of_event) for of_event in (dense, *made_up, *map(decode_muon, simulated_events(6)))]
    events = run([link_banks_of(of_event, with_maps=with_maps) for of_event in digits], links_geometry())
    n_late = 0
    for event, of_event in zip(events, digits, strict=True):
        assert event.flags == 0
        # The thirteenth hit of a link and later ones have no time.
        sent = taken(of_event, np.lexsort((of_event.address, of_event.bank)))
        _, begin, place = np.unique(sent.bank * 64 + sent.batch, return_index=True, return_inverse=True)
        late = np.arange(len(place)) - begin[place] >= 12
        n_late += int(late.sum())
        assert_hits_are(event, links_geometry(), replace(sent, time=np.where(late, 0, sent.time).astype(np.uint32)))
    assert sum(len(event.hits["x"]) for event in events) > 500
    assert n_late > 0


def test_every_strip_at_once_makes_every_pad() -> None:
    digits = all_digits()
    limits = BatchLimits(events=1, meps=1, input_bytes=32 * 50_000, rows=10)
    batch = MuonBatch(encode_mep([banks_of(digits)]), BUILTIN, limits=limits)
    (refused,) = batch.run()
    assert (refused.flags, len(refused.hits["x"])) == (EventFlag.OVERFLOW, 0)
    (event,) = replace(batch, max_hits=50_000).run()
    assert event.flags == 0
    assert len(event.hits["x"]) == 46_080
    assert_hits_are(event, BUILTIN, digits)


def test_an_event_that_does_not_fit_is_flagged_and_those_before_it_are_kept() -> None:
    rng = np.random.default_rng(1)
    small = [random_digits(rng, 30) for _ in range(4)]
    events = [banks_of(digits) for digits in (*small, random_digits(rng, 1500))]
    limits = BatchLimits(events=5, meps=1, input_bytes=32 * 400, rows=10)
    made = MuonBatch(encode_mep(events), BUILTIN, limits=limits).run()
    assert [event.flags for event in made] == [0, 0, 0, 0, EventFlag.OVERFLOW]
    assert len(made[4].hits["x"]) == 0
    for event, digits in zip(made[:4], small, strict=True):
        assert_hits_are(event, BUILTIN, digits)


def test_an_event_that_was_cut_has_no_hits() -> None:
    banks = banks_of(random_digits(np.random.default_rng(2), 100))
    (event,) = MuonBatch(encode_mep([banks]), BUILTIN, flags=EventFlag(GLOBAL_EVENT_CUT.mask)).run(fill=0xFF)
    assert event.flags == GLOBAL_EVENT_CUT.mask
    assert event.station_offset.tolist() == [0] * 8


def test_events_without_banks_or_digits_have_no_hits() -> None:
    nothing = MuonDigits(*np.zeros((4, 0), np.uint32))
    one = random_digits(np.random.default_rng(3), 50)
    events = [[], banks_of(nothing), banks_of(one), banks_of(one)[3:5], []]
    made = MuonBatch(encode_mep(events), BUILTIN).run(fill=0xFF)
    assert [event.flags for event in made] == [0] * 5
    assert [len(event.hits["x"]) > 0 for event in made] == [False, False, True, True, False]
    assert_hits_are(made[3], BUILTIN, decode_muon(events[3]))


def test_a_bank_that_is_there_twice_counts_once() -> None:
    digits = random_digits(np.random.default_rng(4), 200)
    mep = encode_mep([banks_of(digits)])
    fragments = np.asarray(mep.fragments).tolist()
    twice = replace(mep, fragments=sorted(fragments + fragments[2:7]))
    (event,) = MuonBatch(twice, BUILTIN).run()
    assert_hits_are(event, BUILTIN, digits)


def bank(payload: bytes, number: int = 4, version: int = 2, bank_type: int = LhcbBankType.MUON) -> RawBank:
    return RawBank(bank_type, version, 13 << 11 | number, memoryview(payload))


@pytest.mark.parametrize(
    "broken",
    [
        bank(bytes(12), version=1),
        bank(bytes(12), version=3),
        bank(bytes(12), number=10),
        bank(bytes(12), bank_type=LhcbBankType.UT),
        bank(bytes(12), bank_type=91),
        bank(bytes(11)),
        bank(b""),
        bank(b"\xff\xff" * 6),
        bank(bytes(10)),
        bank(bytes(16)),
        bank(bytes(4) + b"\3\0" + bytes(6)),
        bank(bytes(12) + b"\1\0"),
    ],
    ids=[
        "version before",
        "version of other read-out",
        "number that does not exist",
        "other type",
        "type of a readout error",
        "half a word",
        "empty",
        "pads beyond the end",
        "batches missing",
        "words left over",
        "digits beyond the end",
        "a last word that is no padding",
    ],
)
def test_a_broken_bank_flags_its_event_and_gives_no_digits(broken: RawBank) -> None:
    digits = random_digits(np.random.default_rng(5), 100)
    good = [bank for bank in banks_of(digits) if bank.source_id != 4]
    for of_source_4, flags in ((broken, EventFlag.BANK_ERROR), (bank(bytes(12)), 0)):
        (event,) = run([[*good, of_source_4]])
        assert event.flags == flags
        assert_hits_are(event, BUILTIN, decode_muon(good))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(9),
        bytes([0, 0x60, 0, 0, 0, 0, 0]),
        bytes([0, 0x50, 0, 0, 0, 0, 0]) + bytes(40),
        bytes([0x20, 0, 0]),
        bytes([0x20, 0x80, 0, 0]) + bytes(40),
    ],
    ids=["empty", "too few links", "link beyond the end", "impossible size", "half a map", "link that is not active"],
)
def test_a_broken_bank_of_links_flags_its_event_and_gives_no_digits(content: bytes) -> None:
    digits = as_links(random_digits(np.random.default_rng(6), 300))
    good = [bank for bank in link_banks_of(digits) if bank.source_id != 4]
    (event,) = run([[*good, bank(content, version=3)]], links_geometry())
    assert event.flags == EventFlag.BANK_ERROR
    kept = sorted_hits(links_geometry(), taken(digits, digits.bank != 4))
    assert event.hits["tile"].tolist() == kept.tile.tolist()


def test_an_event_that_synchronises_links_has_no_digits() -> None:
    (event,) = run([[bank(b"\x10\xff", version=3)]], links_geometry())
    assert (event.flags, len(event.hits["x"])) == (0, 0)
