"""The most expensive events of all detectors: dense ones, noise, and hits in the busiest search windows.

If the global event cut would reject an event, its UT and SciFi clusters are reduced to the limit of the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.raw_data.global_event_cut import MAX_CLUSTERS
from hltnode.processing.lhcb.velo.decoding.cluster_limit import cluster_limit
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.scifi import N_BANKS, SciFiWords, decode_scifi_words, encode_scifi
from hltnode.protocol.lhcb.banks.ut import UtHits, decode_ut, encode_ut_v4
from hltnode.protocol.lhcb.banks.velo import RetinaClusters, decode_retina_clusters, encode_retina_clusters
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.muon.muon_samples import all_digits, banks_of, taken
from tests.processing.lhcb.velo.dense_events import VELO_BANKS, crowded_in_phi, noise

N_UT = MAX_CLUSTERS // 5
N_SCIFI = MAX_CLUSTERS - N_UT - N_BANKS
"""The limit of the global event cut, divided about as in real events.

The cut also counts the padding of SciFi banks.
"""
MAX_OF_LINK = 31
"""Maximum of SciFi clusters in a link."""
MAX_OF_LANE = 254
"""Maximum of UT strips in a lane."""
CELLS, STRIPS = 128, 512
VELO_CLUSTERS = int(cluster_limit.constants[0].value)
"""Limit on VELO clusters of a reconstructed event."""
FIRST_FORWARD_SENSOR = 4 * 24
"""First sensor of the modules behind most collisions."""
MUON_DIGITS = 11_000
"""These digits give nearly the maximum number of hits of an event."""

Banks = list[RawBank]
Columns = TypeVar("Columns", SciFiWords, UtHits)


@cache
def crossing(nu: float) -> tuple[RawBank, ...]:
    """A simulated crossing with a mean number of collisions."""
    return tuple(full_events(1, 3, nu=nu)[0])


def velo_of(event: Sequence[RawBank]) -> Banks:
    return [bank for bank in event if bank.type in VELO_BANKS]


def muon_of(event: Sequence[RawBank]) -> Banks:
    return [bank for bank in event if bank.type == LhcbBankType.MUON]


def event_of(*parts: Banks) -> Banks:
    """One event with the banks of its detectors."""
    odin = [bank for bank in crossing(7.6) if bank.type == BankType.ODIN]
    return [*odin, *(bank for part in parts for bank in part)]


def scifi_of(events: Sequence[Sequence[RawBank]]) -> SciFiWords:
    """The words of several events merged into one event: each word once, and only the first ones of each link."""
    words = decode_scifi_words([bank for event in events for bank in event])
    place = (words.bank << np.uint32(14) | words.link << np.uint32(7) | words.cell).astype(np.int64)
    _, first = np.unique(place, return_index=True)
    of_link = place[first] >> 7
    number = np.arange(len(first)) - np.searchsorted(of_link, of_link)
    return some_of(words, first[number < MAX_OF_LINK])


def ut_of(events: Sequence[Sequence[RawBank]]) -> UtHits:
    return decode_ut([bank for event in events for bank in event])


def some_of(columns: Columns, chosen: NDArray[np.int64]) -> Columns:
    """Some of the words or hits, in their order."""
    arrays = {it.name: getattr(columns, it.name) for it in fields(columns)}
    shorter: dict[str, Any] = {name: it[chosen] for name, it in arrays.items() if isinstance(it, np.ndarray)}
    return replace(columns, **shorter)


def thinned(columns: Columns, n: int) -> Columns:
    """At most n words or hits, chosen at random. Without edges, because a wide cluster could lose one of its two."""
    size = len(columns.fraction)
    chosen = np.sort(np.random.default_rng(1).choice(size, min(n, size), replace=False))
    some = some_of(columns, chosen)
    return replace(some, edge=np.zeros(len(chosen), np.uint32)) if isinstance(some, SciFiWords) else some


def busiest_links(n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Bank and link of the busiest SciFi links: next to the beam pipe, in all layers."""
    words = scifi_of([crossing(60.0)])
    pairs, counts = np.unique(np.stack([words.bank, words.link]), axis=1, return_counts=True)
    bank, link = pairs[:, np.argsort(-counts, kind="stable")[:n]]
    return bank, link


def scifi_noise(n: int, of_links: int) -> SciFiWords:
    """About n clusters, spread over a number of the busiest links."""
    bank, link = busiest_links(of_links)
    n_each = max(1, min(n // len(bank), MAX_OF_LINK))
    cell = np.tile(np.arange(n_each, dtype=np.uint32) * np.uint32(CELLS // n_each), len(bank))
    bank, link = np.repeat(bank, n_each), np.repeat(link, n_each)
    none = np.zeros(len(cell), np.uint32)
    return SciFiWords(bank, link, cell, none, none)


def ut_noise(n: int, of_sectors: int, seed: int | None = None) -> UtHits:
    """About n strips, spread over a number of the busiest sectors; with a seed their places in them are random."""
    hits = ut_of([crossing(60.0)])
    pairs, counts = np.unique(np.stack([hits.board, hits.lane]), axis=1, return_counts=True)
    board, lane = pairs[:, np.argsort(-counts, kind="stable")[:of_sectors]]
    n_each = max(1, min(n // len(board), MAX_OF_LANE))
    strip = np.tile(np.arange(n_each, dtype=np.uint32) * np.uint32(STRIPS // n_each) + np.uint32(1), len(board))
    if seed is not None:
        rng = np.random.default_rng(seed)
        some = [np.sort(rng.choice(STRIPS - 1, n_each, replace=False)) + 1 for _ in board]
        strip = np.concatenate(some).astype(np.uint32)
    none = np.zeros(len(strip), np.uint32)
    return UtHits(np.repeat(board, n_each), np.repeat(lane, n_each), strip, none, none, none + np.uint32(8))


def muon_noise() -> Banks:
    digits = all_digits()
    chosen = np.random.default_rng(1).choice(len(digits.address), MUON_DIGITS, replace=False)
    return banks_of(taken(digits, np.sort(chosen)))


def within_cut(events: Sequence[Sequence[RawBank]]) -> Banks:
    """UT and SciFi banks of several events merged, thinned to the limit of the global event cut."""
    return [*encode_ut_v4(thinned(ut_of(events), N_UT)), *encode_scifi(thinned(scifi_of(events), N_SCIFI))]


TEN_TIMES = 76.0
"""Collisions in ten minimum-bias events."""
MOST_TRACKS = 140.0
"""Collisions in an event whose VELO clusters nearly reach the limit of reconstructed events."""


def dense_crossing(nu: float) -> Banks:
    event = crossing(nu)
    return event_of(velo_of(event), within_cut([event]), muon_of(event))


def noise_everywhere() -> Banks:
    return event_of(
        velo_of(noise(VELO_CLUSTERS)),
        encode_ut_v4(ut_noise(N_UT, 800)),
        encode_scifi(scifi_noise(N_SCIFI, 3000)),
        muon_noise(),
    )


def noise_at_the_beam_pipe(n_ut: int, n_scifi: int) -> Banks:
    """The maximum of reconstructed VELO tracks, and UT and SciFi hits in as few places as the format allows."""
    event = crossing(MOST_TRACKS)
    ut, scifi = ut_noise(n_ut, 1 + n_ut // MAX_OF_LANE), scifi_noise(n_scifi, 1 + n_scifi // MAX_OF_LINK)
    return event_of(velo_of(event), encode_ut_v4(ut), encode_scifi(scifi), muon_of(event))


def tracks_at_one_phi() -> Banks:
    velo = crowded_in_phi(14_000, 20, VeloGeometry.builtin())
    return event_of(velo_of(velo), within_cut([crossing(TEN_TIMES)]))


def forward_tracks_and_noise_in_the_ut(of_sectors: int = 40, seed: int | None = None) -> Banks:
    """VELO clusters up to the limit, nearly all from tracks towards the UT; UT hits next to the beam pipe."""
    of_events = [decode_retina_clusters(velo_of(crossing(nu))) for nu in (MOST_TRACKS, MOST_TRACKS - 20.0)]
    clusters: dict[str, Any] = {
        it.name: np.concatenate([getattr(event, it.name)[event.sensor >= FIRST_FORWARD_SENSOR] for event in of_events])
        for it in fields(RetinaClusters)
        if it.name != "fraction_bits"
    }
    order = np.argsort(clusters["sensor"], kind="stable")[:VELO_CLUSTERS]
    some = RetinaClusters(
        **{name: column[order] for name, column in clusters.items()}, fraction_bits=of_events[0].fraction_bits
    )
    return event_of(encode_retina_clusters(some, 3), encode_ut_v4(ut_noise(MAX_CLUSTERS - N_BANKS, of_sectors, seed)))


DENSE: dict[str, Callable[[], Banks]] = {
    "two crossings": lambda: dense_crossing(15.0),
    "three crossings": lambda: dense_crossing(23.0),
    "ten times denser": lambda: dense_crossing(TEN_TIMES),
    "noise everywhere": noise_everywhere,
    "noise at the beam pipe": lambda: noise_at_the_beam_pipe(N_UT, N_SCIFI),
    "all of it in the UT": lambda: noise_at_the_beam_pipe(MAX_CLUSTERS - N_BANKS, 0),
    "all of it in the SciFi": lambda: noise_at_the_beam_pipe(0, MAX_CLUSTERS - N_BANKS),
    "forward tracks, all of it in the UT": forward_tracks_and_noise_in_the_ut,
    "tracks at one phi": tracks_at_one_phi,
    "muon pads everywhere": lambda: event_of(velo_of(crossing(23.0)), within_cut([crossing(23.0)]), muon_noise()),
}
"""Events that pass the cuts."""
