"""rich_read_hits: positions of hits; every bank that is odd has its flag, and no other event is touched."""

from __future__ import annotations

import numpy as np

from hltnode.processing.na62.rich.pmt_positions import N_PMTS, PMTS_OF_SPOT, nearest_tubes, positions, spot_positions
from hltnode.protocol.na62.rich_banks import HIT, MAX_HITS, RICH_SOURCE, RichBankType, encode_hits
from tests.processing.na62.rich_events import mep_of_payloads, run_chain

GOOD = np.array([(0, 3), (PMTS_OF_SPOT, 200), (N_PMTS - 1, 255), (77, 0)], HIT)


def test_a_spot_has_about_a_thousand_tubes_eighteen_millimetres_apart() -> None:
    spots = positions().reshape(2, PMTS_OF_SPOT, 2)
    assert 950 < PMTS_OF_SPOT < 1000
    np.testing.assert_array_equal(spots[0], spots[1])
    apart = np.hypot(*(spots[0][:, None] - spots[0][None]).transpose(2, 0, 1)) + 1e3 * np.eye(PMTS_OF_SPOT)
    np.testing.assert_allclose(apart.min(1), 18.0, rtol=1e-6)
    assert np.hypot(*spots[0].T).max() < 295.5


def test_a_place_belongs_to_the_nearest_tube_of_its_cell() -> None:
    places = np.random.default_rng(1).uniform(-330, 330, (3000, 2))
    away = np.hypot(*(places[:, None] - spot_positions()).transpose(2, 0, 1))
    expected = np.where(away.min(1) <= 18.0 / np.sqrt(3.0), away.argmin(1), -1)
    inside = np.hypot(*places.T) < 280
    np.testing.assert_array_equal(nearest_tubes(places)[inside], expected[inside])
    assert (nearest_tubes(places)[np.hypot(*places.T) > 310] == -1).all()
    assert (expected[inside] >= 0).sum() > 400


def test_hits_have_the_places_of_their_tubes_and_flags_only_where_a_bank_is_odd() -> None:
    out_of_range = np.array([(5, 1), (N_PMTS, 2), (65535, 3), (6, 4)], HIT)
    full = np.array([(i, 9) for i in range(MAX_HITS)], HIT)
    cases: list[tuple[bytes | None, list[str], np.ndarray]] = [
        (encode_hits(GOOD), [], GOOD),
        (None, ["NO_RICH"], GOOD[:0]),
        (b"", ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD)[:-1], ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD) + b"\0", ["BAD_RICH_BANK"], GOOD[:0]),
        (encode_hits(GOOD[:0]), [], GOOD[:0]),
        (encode_hits(out_of_range), ["BAD_PMT"], out_of_range[[0, 3]]),
        (encode_hits(full), [], full),
        (encode_hits(np.zeros(MAX_HITS + 1, HIT)), ["TOO_MANY_RICH_HITS"], GOOD[:0]),
        (encode_hits(GOOD), [], GOOD),
    ]
    first = (7 << 32) - 4
    found = run_chain(mep_of_payloads([payload for payload, _, _ in cases], first))
    table = positions()
    for i, (_, flags, expected) in enumerate(cases):
        assert found.flags[i] == flags
        np.testing.assert_array_equal(found.hit_x[i], table[expected["pmt"], 0])
        np.testing.assert_array_equal(found.hit_y[i], table[expected["pmt"], 1])
        np.testing.assert_array_equal(found.hit_time[i], expected["time"])
    numbers = found.numbers.astype(np.uint64)
    np.testing.assert_array_equal(numbers[:, 1] << np.uint64(32) | numbers[:, 0], first + np.arange(len(cases)))


def test_banks_of_another_type_version_or_source_are_not_read() -> None:
    payload = encode_hits(GOOD)
    for mep in (mep_of_payloads([payload], version=2), mep_of_payloads([payload], kind=RichBankType.SEVERAL_BANKS)):
        found = run_chain(mep)
        assert (found.flags, len(found.hit_x[0])) == ([["BAD_RICH_BANK"]], 0)
    found = run_chain(mep_of_payloads([payload], source=RICH_SOURCE + 1))
    assert (found.flags, len(found.hit_x[0])) == ([["NO_RICH"]], 0)
