"""km3net_sort_hits: banks that are odd have their flags; hits out of order are sorted and flagged."""

from __future__ import annotations

import numpy as np

from hltnode.protocol.km3net.hit_banks import HIT, HitBankType, encode_hits
from tests.processing.km3net.telescope_events import made_hits, mep_of_payloads, run_chain

GOOD = encode_hits(made_hits([(0, 30), (0, 31), (1, 5)]))


def times(found: np.ndarray) -> list[int]:
    """Times of sorted words."""
    return [int(word) >> 32 for word in found]


def test_only_banks_that_are_odd_set_flags_and_their_hits_are_not_used() -> None:
    cases: list[tuple[bytes | None, set[str], list[int]]] = [
        (GOOD, {"MARGIN"}, [5, 30, 31]),
        (None, {"NO_HITS_BANK"}, []),
        (b"", set(), []),
        (GOOD[:-1], {"BAD_HITS_BANK"}, []),
        (GOOD + b"\0", {"BAD_HITS_BANK"}, []),
        (encode_hits(made_hits([(0, 31), (0, 30)])), {"UNSORTED_HITS"}, [30, 31]),
        (encode_hits(made_hits([(1, 30), (0, 31)])), {"UNSORTED_HITS"}, [30, 31]),
        (encode_hits(made_hits([(0, 30), (0, 30)])), set(), [30, 30]),
        (encode_hits(made_hits([(0, 24_999)])), set(), [24_999]),
        (encode_hits(np.zeros(0, HIT)), {"MARGIN"}, []),
    ]
    payloads: list[bytes | None] = [payload for payload, _, _ in cases]
    found = run_chain(mep_of_payloads({3: payloads}, 9))
    for e, (_, flags, expected) in enumerate(cases):
        assert found.flags[e] == flags, e
        assert times(found.hits[e])[: found.own[e]] == expected, e


def test_one_bad_source_leaves_the_hits_of_the_others() -> None:
    found = run_chain(mep_of_payloads({0: [GOOD] * 3, 1: [GOOD, GOOD[1:], GOOD], 2: [None, None, None]}))
    assert found.flags == [{"MARGIN"}, {"BAD_HITS_BANK"}, {"MARGIN"}]
    assert found.own.tolist() == [6, 3, 6]


def test_banks_of_another_version_or_type_are_not_read() -> None:
    for mep in (
        mep_of_payloads({0: [GOOD] * 3}, version=2),
        mep_of_payloads({0: [GOOD] * 3}, kind=HitBankType.SEVERAL_BANKS),
    ):
        found = run_chain(mep)
        assert found.flags[1] == {"BAD_HITS_BANK"}
        assert found.own.tolist() == [0, 0, 0]


def test_hits_behind_the_end_are_read_as_far_as_triggers_need_them() -> None:
    behind = encode_hits(made_hits([(0, 499), (1, 500), (2, 0)]))
    found = run_chain(mep_of_payloads({0: [GOOD, GOOD, behind]}))
    assert times(found.hits[1]) == [5, 30, 31, 25_000, 25_499]
    assert found.own[1] == 3
